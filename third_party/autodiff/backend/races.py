"""Finds elements to which several programs, or lanes of one, store.

It is undefined which value memory keeps, so there is no gradient, unless all store the same value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy

from .checks import DistinctCheck
from .errors import CheckError
from .expr import used_arguments
from .fields import get, number_below
from .spaces import Digit, Space

# The columns of a table of accesses.
_PLACE, _PROGRAM, _ITERATION, _CONTENT, _ORDER = range(5)


@dataclass(frozen=True)
class Store:
    """A store of a kernel whose addresses a launch knows.

    If all `deciders`, sums of digits, are equal, the stored values are equal. Without them, it is
    not known whether any two programs store the same. The `check` is about all stores to the
    argument.
    """

    argument: int
    position: str
    space: Space
    deciders: tuple[tuple[Digit, ...], ...] | None
    check: DistinctCheck | None

    @classmethod
    def from_json(cls, data, arguments: int) -> Store:
        """Build it from JSON; raises `PlanError` if that is malformed."""
        deciders = data.get("deciders") if isinstance(data, dict) else None
        if deciders is not None:
            deciders = tuple(
                tuple(Digit.from_json(digit, arguments) for digit in digits) for digits in deciders
            )
        check = data.get("check") if isinstance(data, dict) else None
        return cls(
            number_below(get(data, "argument", int), arguments, "argument"),
            get(data, "position", str),
            Space.from_json(data.get("reach"), arguments),
            deciders,
            None if check is None else DistinctCheck.from_json(check, arguments),
        )

    def used_arguments(self) -> set[int]:
        """Return the scalar arguments on which addresses and deciders depend."""
        digits = [digit for decider in self.deciders or () for digit in decider]
        exprs = [e for digit in digits for e in (digit.step, digit.extent) if e is not None]
        return self.space.used_arguments().union(*(used_arguments(e) for e in exprs))

    def accesses(self, args, grid) -> numpy.ndarray | None:
        """Return a table of what programs store where; None if that is not known.

        Elements are left out if iterations store different values and it is not known which is the
        last.
        """
        try:
            if not self.space.is_exact(args, grid):
                return None
            found = self.space.places(args, grid)
            ids = found.programs
            program = ((ids[2] * grid[1] + ids[1]) * grid[0] + ids[0])[:, None]
            contents = [program]
            if self.deciders is not None:
                contents = [
                    sum(found.values(digit, args, grid) for digit in decider)
                    for decider in self.deciders
                ]
        except CheckError:
            return None
        shape = found.places.shape
        columns = (found.places, program, found.iterations()[None, :], *contents)
        rows = [numpy.broadcast_to(c, shape)[found.reached] for c in columns]
        table = numpy.stack([*rows[:_CONTENT], numpy.zeros_like(rows[0])], axis=1)
        for values in rows[_CONTENT:]:
            content = table[:, _CONTENT]
            _, content = numpy.unique(content, return_inverse=True)
            _, values = numpy.unique(values, return_inverse=True)
            table[:, _CONTENT] = content * (values.max(initial=0) + 1) + values
        return _settled(table) if found.is_cut else table


class Race(NamedTuple):
    """Two programs, by number, that store to one element; the same one twice if its lanes do.

    The first one may do so by another of the kernel's stores, `other`.
    """

    store: Store
    place: int
    programs: tuple[int, ...]
    other: Store | None = None


def objection(stores, spec, args, grid) -> str | None:
    """Return in words where stores to one argument, in order, disagree; None if they do not."""
    race = find(stores, args, grid)
    if race is None:
        return None
    programs = [_spelled(number, grid) for number in race.programs]
    who = f"programs {' and '.join(programs)} store"
    if len(programs) == 1:
        who = f"lanes of program {programs[0]} store"
    positions = [s.position for s in (race.other, race.store) if s is not None and s.position]
    where = f" at {' and '.join(positions)}" if positions else ""
    way_out = "Let one of them store each element, or add with tl.atomic_add"
    if race.other is not None:
        way_out = (
            "Let one of them store each element; if these are the mirrored blocks of a symmetric "
            "result, take square blocks, and let programs on one side of the diagonal return"
        )
    return (
        f"{who} to element {race.place} of argument {spec.names[race.store.argument]!r} of kernel "
        f"{spec.name!r}{where}, and what they store is not known to be the same: which of them "
        f"memory keeps is not defined, so there is no gradient. {way_out}"
    )


def find(stores, args, grid) -> Race | None:
    """Return where stores to one argument, in order, are known to disagree; None if nowhere.

    Stores and iterations of the same program are in order.
    """
    if any(store.check is not None and store.check.holds(args, grid) for store in stores):
        return None
    tables = []
    for order, store in enumerate(stores):
        rows = store.accesses(args, grid)
        if rows is not None and len(rows):
            race = _between_lanes(store, rows)
            if race is not None:
                return race
            tables.append(numpy.column_stack([rows, numpy.full(len(rows), order)]))
    return _between_programs(stores, numpy.concatenate(tables)) if tables else None


def _spelled(program: int, grid) -> str:
    """Return a program's ids along the axes of the grid, in words."""
    ids = [int(i) for i in numpy.unravel_index(program, grid, order="F")]
    while len(ids) > 1 and grid[len(ids) - 1] == 1:
        ids.pop()
    return str(ids[0]) if len(ids) == 1 else str(tuple(ids))


def _distinct(rows, *columns) -> numpy.ndarray:
    """Return the distinct rows of some columns, sorted."""
    rows = rows[:, columns]
    rows = rows[numpy.lexsort(rows.T[::-1])]
    return rows[numpy.append(True, (rows[1:] != rows[:-1]).any(axis=1))]


def _continues(rows, columns: int) -> numpy.ndarray:
    """Return, for each row but the first, whether its first columns equal those of the row
    before.
    """
    return (rows[1:, :columns] == rows[:-1, :columns]).all(axis=1)


def _settled(rows) -> numpy.ndarray:
    """Return the rows of elements to which a program stores only one value."""
    rows = _distinct(rows, _PLACE, _PROGRAM, _CONTENT, _ITERATION)
    first = numpy.append(True, ~_continues(rows, 2))
    group = numpy.cumsum(first) - 1
    is_new = numpy.append(False, _continues(rows, 2) & ~_continues(rows, 3))
    is_open = numpy.zeros(group.max(initial=-1) + 1, bool)
    is_open[group[is_new]] = True
    return rows[~is_open[group]][:, [0, 1, 3, 2]]


def _between_lanes(store, rows) -> Race | None:
    rows = _distinct(rows, _PLACE, _PROGRAM, _ITERATION, _CONTENT)
    at = numpy.flatnonzero(_continues(rows, 3))
    return Race(store, int(rows[at[0], 0]), (int(rows[at[0], 1]),)) if len(at) else None


def _between_programs(stores, rows) -> Race | None:
    # The value that the last iteration of a program's last store leaves.
    rows = _distinct(rows, _PLACE, _PROGRAM, _ORDER, _ITERATION, _CONTENT)
    is_last = numpy.append(~_continues(rows, 2), True)
    rows = rows[is_last][:, [0, 1, 2, 4]]
    at = numpy.flatnonzero(_continues(rows, 1) & (rows[1:, 2:] != rows[:-1, 2:]).any(axis=1))
    if not len(at):
        return None
    one, other = rows[at[0]], rows[at[0] + 1]
    first, second = (stores[int(row[2])] for row in (one, other))
    programs = (int(one[1]), int(other[1]))
    return Race(second, int(one[0]), programs, None if first is second else first)
