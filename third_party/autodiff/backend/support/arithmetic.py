"""Integer arithmetic of a plan's expressions; modules that `export` writes contain it, too."""

from __future__ import annotations

import math


def divided(a, b):
    """Divide integers, or arrays of them, and truncate towards zero, as C does."""
    quotient = abs(a) // abs(b)
    return quotient * (1 - 2 * ((a < 0) != (b < 0)))


def remainder(a, b):
    """Return the remainder of C's division."""
    return a - b * divided(a, b)


def square_root(a: int) -> int:
    """Return the integer square root, rounded down."""
    return math.isqrt(a)


def coarsest(a: int, b: int) -> int:
    """Return the largest power of two of which a multiple lies from `a` to `b`."""
    # A multiple of 2^k is there if (a - 1) >> k and b >> k differ.
    return 1 << ((a - 1) ^ b).bit_length() - 1
