"""Rearranged launches: launches that replace the user's."""

from __future__ import annotations

from dataclasses import dataclass

from ..checking.checks import DistinctCheck
from ..checking.expr import evaluate, used_arguments, validate
from ..support.fields import get, require


@dataclass(frozen=True)
class RearrangedLaunch:
    """A launch that does the same as the user's: iterations of loops are programs, or lanes of
    tiles.

    `grid` is three expressions over the user's launch. Both launches do the same if the numbers
    `assumed` are not negative, and the `checks` of outputs hold for the programs of this one. The
    loop at `position` has become programs, and the loops at `batched` an axis of tiles. The digits
    of the division at `unraveled` have become axes, the lowest first.
    """

    grid: tuple
    assumed: tuple
    checks: tuple[DistinctCheck, ...]
    position: str = ""
    batched: tuple[str, ...] = ()
    unraveled: str = ""
    axes: tuple[int, ...] = ()

    @classmethod
    def from_json(cls, data, arguments: int) -> RearrangedLaunch:
        """Build it from JSON; raises `PlanError` if that is malformed."""
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
        """Return the scalar arguments on which the grid, and the checks, depend."""
        used = (used_arguments(e) for e in (*self.grid, *self.assumed))
        return set().union(*used, *(check.used_arguments() for check in self.checks))

    def replaced(self, args, grid) -> tuple[int, int, int] | None:
        """Return the grid for a launch of the user's; None if it would not do the same."""
        if self.first_broken(args, grid) is not None:
            return None
        programs = tuple(evaluate(e, args, grid) for e in self.grid)
        return programs if all(c.holds(args, programs) for c in self.checks) else None

    def first_broken(self, args, grid):
        """Return the first expression that must not be negative, and is; None if there is none.

        Later ones may be undefined then.
        """
        return next((e for e in self.assumed if evaluate(e, args, grid) < 0), None)
