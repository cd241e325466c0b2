"""Finds elements to which several programs, or lanes of one, store.

It is undefined which value memory keeps, so there is no gradient, unless all store the same value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy

from ..errors import CheckError, PlanError
from ..support.fields import get, number_below
from .checks import BijectiveCheck, DistinctCheck, address_check
from .expr import used_arguments
from .spaces import Digit, Space

# The columns of a table of accesses. Stores of one function have the same number there.
_PLACE, _PROGRAM, _ITERATION, _CONTENT, _ORDER, _FUNCTION = range(6)


@dataclass(frozen=True)
class Store:
    """A store of a kernel whose addresses a launch knows.

    If all `deciders`, sums of digits, are equal, the stored values are equal. Without them, it is
    not known whether any two programs store the same. Stores with the same number `function` agree,
    too, where their deciders are equal. So they do where each decider has swapped with the one that
    `exchange` names. The `check` is about all stores to the argument: that none meets another.
    `fills` is, too: that they are the argument's elements.
    """

    argument: int
    position: str
    space: Space
    deciders: tuple[tuple[Digit, ...], ...] | None
    function: int | None
    exchange: tuple[int, ...]
    check: DistinctCheck | None
    fills: BijectiveCheck | None = None

    @classmethod
    def from_json(cls, data, arguments: int) -> Store:
        """Build it from JSON; raises `PlanError` if that is malformed."""
        deciders = data.get("deciders") if isinstance(data, dict) else None
        if deciders is not None:
            deciders = tuple(
                tuple(Digit.from_json(digit, arguments) for digit in digits) for digits in deciders
            )
        check = data.get("check") if isinstance(data, dict) else None
        check = None if check is None else address_check(check, arguments)
        fills = check if isinstance(check, BijectiveCheck) else None
        function = get(data, "function", int) if "function" in data else None
        exchange = tuple(data.get("exchange", ()))
        if exchange and sorted(exchange) != list(range(len(deciders or ()))):
            raise PlanError(f"malformed exchange {exchange!r}")
        return cls(
            number_below(get(data, "argument", int), arguments, "argument"),
            get(data, "position", str),
            Space.from_json(data.get("reach"), arguments),
            deciders,
            function,
            exchange,
            check if fills is None else fills.weakened(),
            fills,
        )

    def used_arguments(self) -> set[int]:
        """Return the scalar arguments on which addresses and deciders depend."""
        digits = [digit for decider in self.deciders or () for digit in decider]
        exprs = [e for digit in digits for e in (digit.step, digit.extent) if e is not None]
        return self.space.used_arguments().union(*(used_arguments(e) for e in exprs))

    def accesses(self, args, grid) -> Accesses | None:
        """Return what programs store where; None if that is not known."""
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
        rows = numpy.stack([numpy.broadcast_to(c, shape)[found.reached] for c in columns])
        numbers = _exchanged(rows[_CONTENT:], self.exchange)
        return Accesses(rows[:_CONTENT].T, numbers, found.is_cut)


class Accesses(NamedTuple):
    """A table of accesses, as yet without contents; numbers that tell contents apart, a column for
    each access; whether some iterations were left out.
    """

    table: numpy.ndarray
    numbers: numpy.ndarray
    is_cut: bool


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
            "Let one of them store each element; if these are the mirrored blocks of a result that "
            "is symmetric only where an input is, take square blocks, and let programs on one side "
            "of the diagonal return"
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
    found = [(order, store.accesses(args, grid)) for order, store in enumerate(stores)]
    found = [(order, accesses) for order, accesses in found if accesses and len(accesses.table)]
    tables = []
    for number, group in _by_function(stores, found).items():
        contents = _contents([accesses.numbers for _, accesses in group])
        for (order, accesses), content in zip(group, contents, strict=True):
            rows = numpy.column_stack([accesses.table, content])
            # Which iteration is the last is not known if some are left out.
            rows = _settled(rows) if accesses.is_cut else rows
            if not len(rows):
                continue
            race = _between_lanes(stores[order], rows)
            if race is not None:
                return race
            same = numpy.full((len(rows), 1), order), numpy.full((len(rows), 1), number)
            tables.append(numpy.column_stack([rows, *same]))
    return _between_programs(stores, numpy.concatenate(tables)) if tables else None


def _by_function(stores, found) -> dict[int, list]:
    """Return the accesses of stores with the same function, by a number of it."""
    groups: dict[int, list] = {}
    for order, accesses in found:
        function = stores[order].function
        alike = (n for n, store in enumerate(stores) if store.function == function)
        first = order if function is None else next(alike)
        groups.setdefault(first, []).append((order, accesses))
    return groups


def _exchanged(numbers, exchange) -> numpy.ndarray:
    """Return a table in which each column is the lesser of itself and itself with rows swapped."""
    if not exchange:
        return numbers
    swapped = numbers[list(exchange)]
    differ = numbers != swapped
    first = differ.argmax(axis=0)[None, :]
    is_less = numpy.take_along_axis(swapped < numbers, first, axis=0)
    return numpy.where(is_less, swapped, numbers)


def _contents(tables: list[numpy.ndarray]) -> list[numpy.ndarray]:
    """Return a number for each column of some tables; equal columns have the same."""
    lengths = [numbers.shape[1] for numbers in tables]
    content = numpy.zeros(sum(lengths), numpy.int64)
    for values in numpy.concatenate(tables, axis=1):
        _, content = numpy.unique(content, return_inverse=True)
        _, values = numpy.unique(values, return_inverse=True)
        content = content * (values.max(initial=0) + 1) + values
    return numpy.split(content, numpy.cumsum(lengths)[:-1])


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
    rows = _distinct(rows, _PLACE, _PROGRAM, _ORDER, _ITERATION, _CONTENT, _FUNCTION)
    is_last = numpy.append(~_continues(rows, 2), True)
    rows = rows[is_last][:, [0, 1, 4, 5, 2]]
    at = numpy.flatnonzero(_continues(rows, 1) & (rows[1:, 2:4] != rows[:-1, 2:4]).any(axis=1))
    if not len(at):
        return None
    one, other = rows[at[0]], rows[at[0] + 1]
    first, second = (stores[int(row[4])] for row in (one, other))
    programs = (int(one[1]), int(other[1]))
    return Race(second, int(one[0]), programs, None if first is second else first)
