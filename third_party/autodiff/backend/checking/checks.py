"""Host checks: facts about one launch that the compiler could not prove for all launches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, NamedTuple

import numpy

from ..errors import CheckError, PlanError
from .coverage import GAPS, Indices, bounded, cover, indices, merge, repeat, spelled
from .expr import evaluate, used_arguments, validate, values_of_programs
from .ranges import Ranges
from .spaces import Digit, Index, Space

# For more programs, comparing addresses would cost more than it gains.
_MOST_PROGRAMS = 1 << 24
_MOST_RANGES = 1 << 20


class _Dimension(NamedTuple):
    """An index and its stride; see `_AddressCheck`."""

    stride: object
    digits: tuple
    bound: object
    chunk: tuple | None
    start: object

    @classmethod
    def from_json(cls, dim, arguments: int, moves: bool) -> _Dimension:
        """Build a dimension of a check; `moves` as there. Raises `PlanError` if it is malformed."""
        stride, bound, chunk = dim.get("stride"), dim.get("bound"), dim.get("chunk")
        start = dim.get("start")
        validate(stride, arguments)
        if start is not None:
            if moves or chunk is not None:
                raise PlanError(f"a start in a dimension that moves or has parts, {dim!r}")
            validate(start, arguments)
        if bound is not None:
            validate(bound, arguments, per_program=moves)
        digits = []
        for digit in dim.get("digits", ()):
            if not isinstance(digit, list) or len(digit) != 2:
                raise PlanError(f"a digit is a [stride, extent] pair, got {digit!r}")
            step, extent = digit
            validate(step, arguments)
            if _varies(extent) or (moves and _differs(extent)):
                if len(extent) != 2:
                    raise PlanError(f"malformed extent {extent!r}")
                validate(extent[1], arguments, per_program=True)
            else:
                validate(extent, arguments)
            digits.append((step, extent))
        if moves and bound is not None and any(_varies(extent) for _, extent in digits):
            raise PlanError(f"a bound of what moves, {dim!r}")
        if chunk is not None:
            if moves or bound is None or not isinstance(chunk, list) or len(chunk) != 2:
                raise PlanError(f"malformed chunk {chunk!r}")
            if chunk[0] not in range(1, len(digits)):
                raise PlanError(f"a chunk of {len(digits)} digits, {chunk!r}")
            validate(chunk[1], arguments)
        return cls(stride, tuple(digits), bound, chunk, start)

    def expressions(self) -> list:
        """Return all expressions; a digit has two."""
        bounds = [self.bound, self.chunk and self.chunk[1], self.start]
        return [self.stride, *chain(*self.digits), *(b for b in bounds if b is not None)]


@dataclass(frozen=True)
class _AddressCheck:
    """A question about the element offsets that a load or store touches, over all programs.

    An offset is `offset` plus the sum of stride times index over `dims`. An index is a sum of
    digits. It is below the bound, unless that is None, and at least the start. A digit `(stride,
    extent)` takes the values 0 … extent - 1 times the stride. With the extent `["grid", axis]`, it
    is a program id. A digit `(stride, ["pids", e])` has the value of `e` in each program. A `chunk`
    is `(count, bound)`: the first `count` digits add up to less than a bound of their own. All
    numbers are expressions.

    With `programs`, no digit is a program id: contributions of programs with equal values of these
    expressions are summed. The programs fill the box of all combinations of values, each once.

    A check that `moves` is about the range that each program touches, a box. A digit's extent may
    then be `["each", e]`, and a bound an expression, with different values in different programs.
    The first `summed` of `programs` are summed over; boxes are those of programs where these are
    zero, and do not depend on them. If the check is about the `whole`, boxes may be longer than
    what is read, and it is not enough that they are distinct.

    In each pair of `within`, the first number must not exceed the second one. Masks admit all that
    the dimensions say if no number of `not_negative` is negative.
    """

    argument: int
    offset: object
    dims: tuple
    programs: tuple | None = None
    within: tuple = ()
    moves: bool = False
    summed: int = 0
    whole: bool = False
    not_negative: tuple = ()

    kind: ClassVar[str]

    @classmethod
    def from_json(cls, data, arguments: int):
        """Build the check from JSON; raises `PlanError` if that is malformed."""
        if not isinstance(data, dict) or data.get("kind") != cls.kind:
            raise PlanError(f"expected a host check of kind {cls.kind!r}, got {data!r}")
        argument = data.get("argument")
        if not isinstance(argument, int) or not 0 <= argument < arguments:
            raise PlanError(f"check of unknown argument {argument!r}")
        validate(data.get("offset"), arguments)
        moves, summed = data.get("moves", False), data.get("summed", 0)
        whole = data.get("whole", False)
        if not all(isinstance(flag, bool) for flag in (moves, whole)) or not isinstance(
            summed, int
        ):
            raise PlanError(f"malformed check {data!r}")
        dims = tuple(_Dimension.from_json(d, arguments, moves) for d in data.get("dims", ()))
        programs = data.get("programs")
        if programs is not None:
            for expr in programs:
                validate(expr, arguments, per_program=True)
            programs = tuple(programs)
        within = tuple((number, limit) for number, limit in data.get("within", ()))
        for pair in within:
            for expr in pair:
                validate(expr, arguments)
        not_negative = tuple(data.get("notNegative", ()))
        for expr in not_negative:
            validate(expr, arguments)
        return cls(
            argument, data["offset"], dims, programs, within, moves, summed, whole, not_negative
        )

    @property
    def space(self) -> Space:
        """The elements that are touched, as far as the check allows for; for checks that do not
        move.
        """
        indices = (
            Index(
                stride,
                # Which of them the lanes and iterations are does not matter here.
                tuple(
                    Digit(s, e[1], "program") if _varies(e) else Digit(s, e, 0) for s, e in digits
                ),
                bound,
                start,
                chunk,
            )
            for stride, digits, bound, chunk, start in self.dims
        )
        return Space(self.offset, tuple(indices), exact=False)

    def used_arguments(self) -> set[int]:
        """Return the scalar arguments that the result depends on."""
        exprs = [expr for dim in self.dims for expr in dim.expressions()]
        exprs += self.programs or ()
        exprs += [expr for pair in self.within for expr in pair]
        exprs += self.not_negative
        return set().union(*(used_arguments(e) for e in exprs))

    def _dims(self, args, grid, filled: bool) -> list[Indices]:
        """Return the indices of each dimension as numbers.

        Raises `CheckError` for undefined expressions; see `_program_extents` for `filled`.
        """
        varying = [e[1] for dim in self.dims for _, e in dim.digits if _varies(e)]
        if self.programs is not None:
            _require_box(self.programs, args, grid)
            extents = iter(())
        elif varying:
            extents = iter(_program_extents(varying, args, grid, filled))
        else:
            extents = iter(())
            self._require_every_axis(grid)
        dims = []
        for stride, digits, bound, chunk, start in self.dims:
            values = [
                (evaluate(s, args, grid), next(extents) if _varies(e) else evaluate(e, args, grid))
                for s, e in digits
            ]
            if chunk is not None:
                together = bounded(values, chunk[0], evaluate(chunk[1], args, grid))
                values = together if filled else together or values
            stride, bound, start = (
                None if e is None else evaluate(e, args, grid) for e in (stride, bound, start)
            )
            dims.append(indices(stride, values, bound, start))
        return dims

    def _ranges(self, args, grid) -> Ranges:
        """Return the range of each program; raises `CheckError` for undefined expressions."""
        programs = math.prod(grid)
        if programs > _MOST_RANGES:
            raise CheckError(f"{programs} programs are too many to compare their ranges")
        if programs <= 0:
            return Ranges((), (), numpy.zeros(0, dtype=bool))

        def of_programs(expr):
            return values_of_programs([expr], args, grid)[0]

        runs = numpy.ones(programs, dtype=bool)
        if self.programs is not None:
            _require_box(self.programs, args, grid)
            for expr in self.programs[: self.summed]:
                runs &= of_programs(expr) == 0
        dims, offsets = [], []
        for stride, digits, bound, *_ in self.dims:
            stride = evaluate(stride, args, grid)
            own = []
            for step, extent in digits:
                step = evaluate(step, args, grid)
                if _varies(extent):
                    offsets.append((stride * step, of_programs(extent[1])))
                else:
                    own.append((step, of_programs(extent[1] if _differs(extent) else extent)))
            lengths = _lengths(own, programs)
            if lengths is None:
                raise CheckError(GAPS)
            if bound is not None:
                lengths = numpy.minimum(lengths, of_programs(bound))
            dims.append((stride, lengths))
        return Ranges(dims, offsets, runs)

    def _require_every_axis(self, grid) -> None:
        """Raise `CheckError` if programs differ in an id that is no digit: they touch the same
        elements.
        """
        named = [extent for dim in self.dims for _, extent in dim.digits]
        for axis, extent in enumerate(grid):
            if extent > 1 and ["grid", axis] not in named:
                raise CheckError(f"programs along axis {axis} repeat addresses")


class BijectiveCheck(_AddressCheck):
    """Checks that the accesses of one load touch every element of a tensor exactly once."""

    kind = "bijective"

    def used_arguments(self) -> set[int]:
        """Return the scalar arguments that the result depends on."""
        return super().used_arguments() | used_arguments(self.offset)

    def objection(self, shape, strides, args, grid) -> str | None:
        """Return why the check fails for a tensor of `shape` and `strides`; None if it holds.

        `args` are the launch's arguments, `grid` its three extents. The check also fails if an
        expression is undefined; that only selects a more careful plan.
        """
        try:
            offset = evaluate(self.offset, args, grid)
            if self.moves:
                if offset != 0:
                    return f"the first element that it reaches is number {offset}"
                return _objection_to(self._ranges(args, grid), shape, strides)
            dims = self._dims(args, grid, filled=True)
            for number, limit in self.within:
                if evaluate(number, args, grid) > evaluate(limit, args, grid):
                    return "the launch has fewer positions than elements"
            if any(evaluate(number, args, grid) < 0 for number in self.not_negative):
                return "its mask is not what it is for sizes that are not negative"
        except CheckError as error:
            return str(error)
        return cover(shape, strides, offset, dims)

    def holds(self, shape, strides, args, grid) -> bool:
        """Return whether the check holds."""
        return self.objection(shape, strides, args, grid) is None

    def weakened(self) -> DistinctCheck:
        """Return the weaker check that no element is touched twice."""
        return DistinctCheck(
            self.argument, self.offset, self.dims, self.programs, (), self.moves, self.summed
        )


class DistinctCheck(_AddressCheck):
    """Checks that no two accesses of one load or store touch the same element."""

    kind = "distinct"

    def holds(self, args, grid) -> bool:
        """Return whether the check holds for the launch's arguments and its three grid extents."""
        try:
            if self.moves:
                return self._ranges(args, grid).are_distinct()
            return repeat(self._dims(args, grid, filled=False)) is None
        except CheckError:
            return False

    def ends(self, args, grid) -> tuple[int, int] | None:
        """Return the first and the last element of ranges that move; None if there are none.

        Raises `CheckError` for undefined expressions.
        """
        offset, ends = evaluate(self.offset, args, grid), self._ranges(args, grid).ends()
        return None if ends is None else (offset + ends[0], offset + ends[1])

    def objection(self, shape, strides, args, grid) -> str | None:
        """Return why the check fails; None if it holds."""
        return None if self.holds(args, grid) else "it may reach an element more than once"


def address_check(data, arguments: int) -> BijectiveCheck | DistinctCheck:
    """Build a check of either kind from JSON; raises `PlanError` if that is malformed."""
    distinct = isinstance(data, dict) and data.get("kind") == DistinctCheck.kind
    return (DistinctCheck if distinct else BijectiveCheck).from_json(data, arguments)


def _varies(extent) -> bool:
    """Return whether a digit has one value in each program (`pids`)."""
    return isinstance(extent, list) and extent[:1] == ["pids"]


def _differs(extent) -> bool:
    """Return whether a digit has another extent in each program (`each`)."""
    return isinstance(extent, list) and extent[:1] == ["each"]


def _objection_to(ranges: Ranges, shape, strides) -> str | None:
    """Return why boxes do not cover each element of a tensor once; None if they do."""
    if not ranges.programs:
        return "it reaches no element"
    if not ranges.are_distinct():
        return "programs may reach an element more than once"
    hull = ranges.hull()
    reached = merge((length, stride) for _, length, stride in hull)
    held = merge(zip(shape, strides, strict=True))
    if reached != held or any(start != 0 for start, *_ in hull):
        return f"it reaches parts of {spelled(reached)}, and the tensor is {spelled(held)}"
    count = math.prod(shape)
    if ranges.count() != count:
        return f"it reaches {ranges.count()} elements of {count}"
    return None


def _lengths(digits, programs: int) -> numpy.ndarray | None:
    """Return `length_of` for each program; extents are arrays with a number per program.

    None if a program's range has gaps or repeats.
    """
    length = numpy.ones(programs, dtype=numpy.int64)
    for step, extent in sorted(digits, key=lambda digit: digit[0]):
        if numpy.any((length != step) & (extent > 1) & (length > 0)):
            return None
        length = length * extent * (extent > 0)
    return length


def _require_box(exprs, args, grid) -> None:
    """Raise `CheckError` unless programs fill a box of these values, each at its own position."""
    axes = [expr[1] for expr in exprs if isinstance(expr, list) and expr[0] == "pid"]
    if len(set(axes)) == len(exprs):
        if any(extent > 1 for axis, extent in enumerate(grid) if axis not in axes):
            raise CheckError("programs along an axis that the kernel does not use repeat its work")
    else:
        _program_extents(exprs, args, grid, filled=True)


def _program_extents(exprs, args, grid, filled: bool) -> list[int]:
    """Return the extents of a box in which each program has its own position, given by values.

    Raises `CheckError` if two programs have the same values, if a value is negative, if there are
    too many programs, or if positions are empty although the box should be `filled`.
    """
    programs = math.prod(grid)
    if programs <= 0:
        return [0] * len(exprs)
    if programs > _MOST_PROGRAMS:
        raise CheckError(f"{programs} programs are too many to compare their addresses")
    values = values_of_programs(exprs, args, grid)
    extents = [int(extent) + 1 for extent in values.max(axis=1)]
    places = math.prod(extents)
    if values.min() < 0 or places >= 1 << 63 or (filled and places != programs):
        raise CheckError(f"programs do not fill a box of {extents}")
    place = numpy.zeros(programs, dtype=numpy.int64)
    for row, extent in zip(values, extents, strict=True):
        place = place * extent + row
    if len(numpy.unique(place)) != programs:
        raise CheckError("programs repeat addresses")
    return extents
