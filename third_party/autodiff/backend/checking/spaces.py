"""The elements that a load or a store touches in a launch: the first, the last, and each of them.

Elements are counted from the one that the argument points to.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

import numpy

from ..errors import CheckError, PlanError
from .expr import evaluate, used_arguments, validate, values_at

# For more accesses, looking at each would cost more than it gains.
_MOST_PLACES = 1 << 17


@dataclass(frozen=True)
class Digit:
    """A number times `step`: the value of `extent` in each program, or a number 0 … extent − 1.

    It counts programs, iterations ("loop 0" is the outermost), or lanes along an axis of the tile
    (its number). An unknown extent is None.
    """

    step: object
    extent: object
    owner: object

    @classmethod
    def from_json(cls, data, arguments: int) -> Digit:
        """Build it from JSON; raises `PlanError` if that is malformed."""
        if not isinstance(data, list) or len(data) != 3:
            raise PlanError(f"malformed digit {data!r}")
        step, extent, owner = data
        is_loop = isinstance(owner, str) and owner.startswith("loop ")
        if owner != "program" and not is_loop and type(owner) is not int:
            raise PlanError(f"a digit of {owner!r}")
        validate(step, arguments)
        if extent is not None:
            validate(extent, arguments, per_program=owner == "program")
        return cls(step, extent, owner)

    @property
    def is_loop(self) -> bool:
        """Whether it counts iterations."""
        return isinstance(self.owner, str) and self.owner != "program"

    def ends(self, args, grid) -> tuple[float, float] | None:
        """Return the smallest and the largest value; None if there is none."""
        step = evaluate(self.step, args, grid)
        if step == 0:
            return 0, 0
        if self.owner == "program":
            negative = ["sub", 0, self.extent]
            first, last = (evaluate(["maxpids", e], args, grid) for e in (negative, self.extent))
            first = -first
        else:
            count = math.inf if self.extent is None else evaluate(self.extent, args, grid)
            first, last = 0, count - 1
        return None if first > last else tuple(sorted((step * first, step * last)))


@dataclass(frozen=True)
class Index:
    """A sum of digits, from `start` on, below `bound`; of a chunk, whose digits have a bound of
    their own.
    """

    stride: object
    digits: tuple[Digit, ...]
    bound: object
    start: object
    chunk: tuple | None

    @classmethod
    def from_json(cls, data, arguments: int) -> Index:
        """Build it from JSON; raises `PlanError` if that is malformed."""
        if not isinstance(data, dict):
            raise PlanError(f"malformed dimension {data!r}")
        digits = tuple(Digit.from_json(d, arguments) for d in data.get("digits", ()))
        chunk = data.get("chunk")
        if chunk is not None and (not isinstance(chunk, list) or len(chunk) != 2):
            raise PlanError(f"malformed chunk {chunk!r}")
        bounds = [data.get("bound"), data.get("start"), chunk and chunk[1]]
        for expr in (data.get("stride"), *(b for b in bounds if b is not None)):
            validate(expr, arguments)
        return cls(data["stride"], digits, *bounds[:2], chunk and tuple(chunk))

    def expressions(self) -> list:
        """Return all expressions."""
        optional = (self.bound, self.start, self.chunk and self.chunk[1])
        digits = (e for digit in self.digits for e in (digit.step, digit.extent))
        return [self.stride, *(e for e in (*optional, *digits) if e is not None)]

    def ends(self, args, grid) -> tuple[float, float] | None:
        """Return the smallest and the largest value; None if there is none."""
        low = high = 0
        for number, digit in enumerate(self.digits):
            ends = digit.ends(args, grid)
            if ends is None:
                return None
            low, high = low + ends[0], high + ends[1]
            if self.chunk is not None and number + 1 == self.chunk[0]:
                high = min(high, evaluate(self.chunk[1], args, grid) - 1)
        if self.start is not None:
            low = max(low, evaluate(self.start, args, grid))
        if self.bound is not None:
            high = min(high, evaluate(self.bound, args, grid) - 1)
        return None if low > high else (low, high)

    def ranges(self, args, grid) -> list[tuple[int, int, int]]:
        """Return ranges, `(first, last, step)`, whose sums include all values.

        There has to be a value.
        """
        if self.bound is None and self.start is None and self.chunk is None:
            steps = (max(abs(evaluate(digit.step, args, grid)), 1) for digit in self.digits)
            ends = (digit.ends(args, grid) for digit in self.digits)
        else:
            steps, ends = (1,), (self.ends(args, grid),)
        return [(*pair, step) for pair, step in zip(ends, steps, strict=True)]


@dataclass(frozen=True)
class Places:
    """The elements that programs touch, a row for each program, and whether each is really touched.

    `owners` maps what lanes and iterations count to a number for each column. If `is_cut`, some
    iterations are left out.
    """

    programs: numpy.ndarray
    places: numpy.ndarray
    reached: numpy.ndarray
    owners: dict
    is_cut: bool

    def values(self, digit: Digit, args, grid) -> numpy.ndarray:
        """Return the value of a digit for all elements, in an array that broadcasts to them."""
        step = evaluate(digit.step, args, grid)
        if digit.owner == "program":
            return step * values_at(digit.extent, args, grid, self.programs)[:, None]
        # Axes of length 1 have no digit.
        counted = self.owners.get(digit.owner)
        return numpy.zeros((1, 1), numpy.int64) if counted is None else step * counted[None, :]

    def iterations(self) -> numpy.ndarray:
        """Return a number for each column that identifies its iteration."""
        numbers = numpy.zeros(self.places.shape[1], numpy.int64)
        for owner, values in self.owners.items():
            if isinstance(owner, str):
                numbers = numbers * (values.max(initial=0) + 1) + values
        return numbers


@dataclass(frozen=True)
class Guard:
    """Conditions of masks, branches and loops that are no bound of an index.

    One of the alternatives holds: there, every sum of digits is less than its bound.
    """

    alternatives: tuple[tuple[tuple[tuple[Digit, ...], object], ...], ...]

    @classmethod
    def from_json(cls, data, arguments: int) -> Guard:
        """Build it from JSON; raises `PlanError` if that is malformed."""
        pairs = [pair for constraints in data for pair in constraints]
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise PlanError(f"malformed guard {data!r}")
        for _, bound in pairs:
            validate(bound, arguments)

        def digits(sum_):
            return tuple(Digit.from_json(digit, arguments) for digit in sum_)

        return cls(tuple(tuple((digits(s), bound) for s, bound in c) for c in data))

    def expressions(self) -> list:
        """Return all expressions."""
        pairs = [pair for constraints in self.alternatives for pair in constraints]
        digits = [digit for sum_, _ in pairs for digit in sum_]
        own = [e for digit in digits for e in (digit.step, digit.extent) if e is not None]
        return [*(bound for _, bound in pairs), *own]

    def holds(self, places: Places, args, grid) -> numpy.ndarray:
        """Return where it holds, in an array that broadcasts to the elements."""
        anywhere = numpy.zeros((1, 1), bool)
        for constraints in self.alternatives:
            everywhere = numpy.ones((1, 1), bool)
            for digits, bound in constraints:
                total = sum(places.values(digit, args, grid) for digit in digits)
                everywhere = everywhere & (total < evaluate(bound, args, grid))
            anywhere = anywhere | everywhere
        return anywhere


@dataclass(frozen=True)
class Space:
    """The elements `offset` plus the sum of stride times index over all indices.

    Only these are touched, and only where the `guards` hold. If it is exact, and no number of
    `not_negative` is negative, all of them are.
    """

    offset: object
    indices: tuple[Index, ...]
    exact: bool
    not_negative: tuple = ()
    guards: tuple[Guard, ...] = ()

    @classmethod
    def from_json(cls, data, arguments: int) -> Space:
        """Build it from JSON; raises `PlanError` if that is malformed."""
        if not isinstance(data, dict) or not isinstance(data.get("exact"), bool):
            raise PlanError(f"malformed reach {data!r}")
        indices = tuple(Index.from_json(d, arguments) for d in data.get("dims", ()))
        numbers = tuple(data.get("notNegative", ()))
        for expr in (data.get("offset"), *numbers):
            validate(expr, arguments)
        guards = tuple(Guard.from_json(g, arguments) for g in data.get("guards", ()))
        return cls(data["offset"], indices, data["exact"], numbers, guards)

    def used_arguments(self) -> set[int]:
        """Return the scalar arguments on which the elements depend."""
        exprs = [e for part in (*self.indices, *self.guards) for e in part.expressions()]
        return set().union(*(used_arguments(e) for e in (self.offset, *self.not_negative, *exprs)))

    def ends(self, args, grid) -> tuple[int, int] | None:
        """Return the first and the last element that may be touched; None if none is.

        Raises `CheckError` for undefined expressions.
        """
        if 0 in grid:
            return None
        low = high = evaluate(self.offset, args, grid)
        for index in self.indices:
            ends = index.ends(args, grid)
            if ends is None:
                return None
            stride = evaluate(index.stride, args, grid)
            if stride:
                reached = sorted(stride * end for end in ends)
                low, high = low + reached[0], high + reached[1]
        if math.isinf(low) or math.isinf(high):
            raise CheckError("nobody knows how far it reaches")
        return low, high

    def box(self, args, grid) -> tuple[int, list[tuple[int, int]]]:
        """Return the first element of a box that contains all touched elements, and its axes.

        These are `(count, stride)` pairs. Raises `CheckError` for undefined expressions.
        """
        start, axes = evaluate(self.offset, args, grid), []
        for index in self.indices:
            stride = evaluate(index.stride, args, grid)
            for low, high, step in index.ranges(args, grid) if stride else ():
                start += min(stride * low, stride * high)
                axes.append(((high - low) // step + 1, abs(stride) * step))
        return start, axes

    def has_exact_ends(self, args, grid) -> bool:
        """Return whether the first and the last element are touched, if any are."""
        return not self.guards and self.is_exact(args, grid)

    def is_exact(self, args, grid) -> bool:
        """Return whether all these elements are touched."""
        return self.exact and all(evaluate(e, args, grid) >= 0 for e in self.not_negative)

    def places(self, args, grid) -> Places:
        """Return the elements that programs touch; only for some programs, or iterations, if there
        are too many.

        Raises `CheckError` for undefined expressions, and if there are too many lanes.
        """
        digits = [digit for index in self.indices for digit in index.digits]
        own = [digit for digit in digits if digit.owner != "program"]
        if any(digit.extent is None for digit in own):
            raise CheckError("nobody knows how often a loop runs")
        counts = [max(evaluate(digit.extent, args, grid), 0) for digit in own]
        lanes = math.prod(n for n, d in zip(counts, own, strict=True) if not d.is_loop)
        if lanes * 2 > _MOST_PLACES:
            raise CheckError(f"{lanes} lanes are too many to compare their places")
        room, wanted = _MOST_PLACES // max(2 * lanes, 1), list(counts)
        for number, digit in enumerate(own):
            if digit.is_loop:
                counts[number] = min(counts[number], room)
                room //= max(counts[number], 1)
        programs = _programs(grid, _MOST_PLACES // max(math.prod(counts), 1))
        columns = numpy.indices(counts, numpy.int64).reshape(len(own), math.prod(counts))
        owners = {digit.owner: row for digit, row in zip(own, columns, strict=True)}
        shape = (programs.shape[1], columns.shape[1])
        places = numpy.full(shape, evaluate(self.offset, args, grid), numpy.int64)
        found = Places(programs, places, numpy.ones(shape, bool), owners, counts != wanted)
        for index in self.indices:
            total = numpy.zeros((1, 1), numpy.int64)
            for number, digit in enumerate(index.digits):
                total = total + found.values(digit, args, grid)
                if index.chunk is not None and number + 1 == index.chunk[0]:
                    found.reached[:] &= total < evaluate(index.chunk[1], args, grid)
            if index.bound is not None:
                found.reached[:] &= total < evaluate(index.bound, args, grid)
            if index.start is not None:
                found.reached[:] &= total >= evaluate(index.start, args, grid)
            found.places[:] += evaluate(index.stride, args, grid) * total
        for guard in self.guards:
            found.reached[:] &= guard.holds(found, args, grid)
        return found


def bounds(spaces, args, grid) -> tuple[int, int] | None:
    """Return between which elements those of several spaces are; None if there is none.

    Spaces that are None, or that a launch cannot compute, are left out.
    """
    return _union_of(Space.ends, spaces, args, grid)


def touched(spaces, args, grid) -> tuple[int, int] | None:
    """Return the first and the last element that are touched for certain in one of several
    spaces; None if there is none.
    """
    return _union_of(_certain_ends, spaces, args, grid)


def are_inside(ends, size: int) -> bool:
    """Return whether all from the first to the last of some elements are a tensor's of this size;
    None is no element.
    """
    return ends is None or 0 <= ends[0] <= ends[1] < size


def _union_of(find, spaces, args, grid) -> tuple[int, int] | None:
    found = []
    for space in spaces:
        if space is not None:
            with suppress(CheckError):
                found.append(find(space, args, grid))
    return union(found)


def _certain_ends(space: Space, args, grid) -> tuple[int, int] | None:
    """Return the first and the last element that are touched; with guards, in those programs that
    can be looked at.
    """
    if 0 in grid or not space.is_exact(args, grid):
        return None
    if not space.guards:
        return space.ends(args, grid)
    found = space.places(args, grid)
    places = found.places[found.reached]
    return (int(places.min()), int(places.max())) if places.size else None


def union(ends) -> tuple[int, int] | None:
    """Return the first and the last element of several `Space.ends`; None if there is none."""
    found = [pair for pair in ends if pair is not None]
    return (min(a for a, _ in found), max(b for _, b in found)) if found else None


def _programs(grid, most: int) -> numpy.ndarray:
    """Return program ids, a row for each axis: about the first `most` programs of a grid.

    There are two along each axis if possible.
    """
    counts = [min(extent, 2) for extent in grid]
    for axis, extent in enumerate(grid):
        others = math.prod(counts) // max(counts[axis], 1)
        counts[axis] = min(extent, max(counts[axis], most // max(others, 1)))
    return numpy.indices(counts, numpy.int64).reshape(3, -1)
