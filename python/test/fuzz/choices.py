"""Where a generator's decisions come from: a seed, a recorded sequence, or hypothesis.

Every decision is a number below a bound, and 0 is the simplest, so that any sequence of numbers
makes a program and smaller sequences make simpler ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence


class Choices:
    """Decisions from a function that returns a number below its argument; `taken` records them."""

    def __init__(self, number: Callable[[int], int]):
        self._number = number
        self.taken: list[int] = []

    def below(self, bound: int) -> int:
        """Return a number from 0 to bound - 1."""
        value = self._number(bound) if bound > 1 else 0
        self.taken.append(value)
        return value

    def between(self, low: int, high: int) -> int:
        """Return a number from low to high, both included."""
        return low + self.below(high - low + 1)

    def pick(self, options: Sequence):
        """Return one of the options; the first is the simplest."""
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        """Return whether something optional happens."""
        return self.below(100) >= 100 - percent

    def weighted(self, options: dict):
        """Return a key of `options` with the probability of its weight."""
        left = self.below(sum(options.values()))
        for option, weight in options.items():
            if left < weight:
                return option
            left -= weight
        raise AssertionError("weights are positive")


def seeded(seed) -> Choices:
    """Return random choices that the seed determines."""
    return Choices(random.Random(str(seed)).randrange)


def replayed(numbers: Sequence[int]) -> Choices:
    """Return recorded choices; numbers too large are reduced, after the last one come zeros."""
    left = iter(numbers)
    return Choices(lambda bound: min(next(left, 0), bound - 1))
