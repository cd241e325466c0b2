"""What expressions of a plan compute with integers; modules that `export` writes have this, too."""

from __future__ import annotations

import math


def divided(a, b):
    """Return a quotient as C rounds it, towards zero; of integers, or of arrays of them."""
    quotient = abs(a) // abs(b)
    return quotient * (1 - 2 * ((a < 0) != (b < 0)))


def remainder(a, b):
    """Return what C's division leaves."""
    return a - b * divided(a, b)


def square_root(a: int) -> int:
    """Return the largest integer whose square is no more."""
    return math.isqrt(a)


def coarsest(a: int, b: int) -> int:
    """Return the largest power of two of which a multiple lies from `a` to `b`."""
    # Of 2^k one lies there if a - 1 and b differ when divided by it.
    return 1 << ((a - 1) ^ b).bit_length() - 1
