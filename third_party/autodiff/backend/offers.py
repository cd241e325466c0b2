"""Launches in place of the user's: what a plan is for, or offers another plan for."""

from __future__ import annotations

from dataclasses import dataclass

from .checks import DistinctCheck
from .errors import CheckError
from .expr import evaluate, used_arguments, validate
from .fields import get, require


@dataclass(frozen=True)
class Launch:
    """The launch that a plan is for, where iterations have become programs, or lanes of tiles.

    `grid` are three expressions over the user's launch. Both do the same if the numbers `assumed`
    are not negative there, and the `checks` of outputs hold for the programs of this one. The loop
    that became programs is at `position`; those that became an axis at `batched`. The digits of a
    position that became axes are those of the division at `unraveled`, the lowest first.
    """

    grid: tuple
    assumed: tuple
    checks: tuple[DistinctCheck, ...]
    position: str = ""
    batched: tuple[str, ...] = ()
    unraveled: str = ""
    axes: tuple[int, ...] = ()

    @classmethod
    def from_json(cls, data, arguments: int) -> Launch:
        """Build it from its JSON form, raising `PlanError` if that is malformed."""
        grid, assumed = (tuple(get(data, key, list)) for key in ("grid", "assumed"))
        require(len(grid) == 3, f"a grid has three extents, got {grid!r}")
        for expr in (*grid, *assumed):
            validate(expr, arguments)
        checks = (DistinctCheck.from_json(c, arguments) for c in get(data, "checks", list))
        batch, unraveled = (get(data, key, dict, {}) for key in ("batch", "unraveled"))
        return cls(
            grid,
            assumed,
            tuple(checks),
            get(data, "position", str, ""),
            tuple(get(batch, "positions", list, [])),
            get(unraveled, "position", str, ""),
            tuple(get(unraveled, "lengths", list, [get(batch, "length", int)] if batch else [])),
        )

    def used_arguments(self) -> set[int]:
        """Return the scalar arguments that decide the grid, and whether it holds."""
        used = (used_arguments(e) for e in (*self.grid, *self.assumed))
        return set().union(*used, *(check.used_arguments() for check in self.checks))

    def replaced(self, args, grid) -> tuple[int, int, int] | None:
        """Return the grid in place of that of a launch; None if it would not do the same."""
        if any(evaluate(e, args, grid) < 0 for e in self.assumed):
            return None
        programs = tuple(evaluate(e, args, grid) for e in self.grid)
        return programs if all(c.holds(args, programs) for c in self.checks) else None


@dataclass(frozen=True)
class Batch:
    """How many iterations all loops have, and how long an axis of them may be.

    It has to have as many, the number itself, if it is `exact`.
    """

    trips: object
    most: int
    exact: bool

    @classmethod
    def from_json(cls, data, arguments: int) -> Batch:
        """Build it from its JSON form, raising `PlanError` if that is malformed."""
        trips = data.get("trips") if isinstance(data, dict) else None
        validate(trips, arguments)
        return cls(trips, get(data, "most", int), get(data, "exact", bool))

    @property
    def expressions(self) -> list:
        """The expressions over a launch that decide."""
        return [self.trips]

    def axes(self, args, grid) -> tuple[int, ...]:
        """Return how long the axis is for a launch, a power of two; nothing if there is none."""
        try:
            trips = evaluate(self.trips, args, grid)
        except CheckError:
            return ()
        if trips <= 0:
            return ()
        length = _power_of_two(trips)
        return () if length > self.most or (self.exact and length != trips) else (length,)


@dataclass(frozen=True)
class Unravel:
    """The limits of the digits of positions, the lowest first, and how many lanes a tile has."""

    limits: tuple
    lanes: int

    @classmethod
    def from_json(cls, data, arguments: int) -> Unravel:
        """Build it from its JSON form, raising `PlanError` if that is malformed."""
        limits = tuple(get(data, "limits", list))
        for limit in limits:
            validate(limit, arguments)
        return cls(limits, get(data, "lanes", int))

    @property
    def expressions(self) -> list:
        """The expressions over a launch that decide."""
        return list(self.limits)

    def axes(self, args, grid) -> tuple[int, ...]:
        """Return how long an axis of tiles is for each digit, powers of two; nothing if none is.

        Lower digits, whose elements are neighbours in memory, get the lanes first.
        """
        try:
            limits = [evaluate(limit, args, grid) for limit in self.limits]
        except CheckError:
            return ()
        lanes, axes = self.lanes, []
        for limit in limits:
            if limit <= 0:
                return ()
            axes.append(_fitting(limit, lanes))
            lanes //= axes[-1]
        return tuple(axes)


OFFERS = (("batch", Batch), ("unravel", Unravel))


def _power_of_two(number: int) -> int:
    """Return the least power of two that is not below a number above zero."""
    return 1 << (number - 1).bit_length()


def _fitting(limit: int, most: int) -> int:
    """Return a power of two, at most `most`, multiples of which cover `limit` closely.

    It is the largest that leaves out an eighth of the lanes or less, if there is one from 64 on.
    """

    def covered(length):
        return -(-limit // length) * length

    longest = min(_power_of_two(limit), most)
    lengths = [longest >> n for n in range(longest.bit_length()) if longest >> n >= 64]
    close = (length for length in lengths if 8 * covered(length) <= 9 * limit)
    return next(close, min(lengths, key=covered, default=longest))
