"""Assertions, as Python text, that a launch satisfies what an exported plan assumes.

They check the same as `asking.Suitability`: that every check holds, and every assumption.
"""

from __future__ import annotations

import contextlib

from ..checking.checks import BijectiveCheck
from ..checking.expr import named
from ..errors import AutodiffError
from ..printing.expr_source import Text, simplified
from ..printing.python_text import call, tuple_of
from . import exported


class Unwritten(Exception):
    """Cannot be written in Python. Instead, the values of the exported launch are asserted."""


# The longest table that is written into the text.
_MOST_PINNED = 64

_WAY_OUT = "export it as a launch that is simpler there, or keep calling it through this package"


def refused(name: str, why: str, way_out: str = _WAY_OUT) -> AutodiffError:
    """Return the error for a launch that cannot be exported."""
    return AutodiffError(f"kernel {name!r} cannot be exported: {why}; {way_out}")


class Assertions:
    """Writes the assertions of one launch.

    `text` writes expressions, `grid` is the launch's grid, `of` the `ExportedLaunch`.
    """

    def __init__(self, of, text: Text, grid: str):
        self._text, self._grid = text, grid
        self._kernel, self._names, self._layouts = of.kernel_name, of.spec.names, of.layouts
        self._variables, self._held = of.variables, of.held
        self._calls, self._give = of.call, of.names.give
        self._facts = of.facts if grid == of.programs else of.execution.facts
        self._inside = "require_in_tensor" if of.knows_storage else "require_nothing_around"
        self.lines: list[str] = []

    def say(self, function: str, *arguments: str) -> None:
        """Write a call of a function of `exported.py`."""
        self.lines.append(call(f"{self._calls(function)}(", arguments, indent=4))

    def require(self, condition: str, message: str) -> None:
        """Assert a condition, in words if it fails."""
        self.say("require", condition, f'"{message}"')

    def not_negative(self, expr) -> None:
        """Assert that a number is not negative in any program."""
        expr = simplified(expr)
        if isinstance(expr, int):
            if expr < 0:
                raise refused(self._kernel, "its plan is for no launch")
            return
        axes, text = named(expr, "pid"), f"{self._text.of(expr)} >= 0"
        over = f"all({text} {self._text.programs(axes)})" if axes else text
        self.require(over, f"the kernels are for {text}")

    def pin(self, scalars, argument: int) -> None:
        """Assert the exported values of the scalars and of the argument that decide something."""
        facts, like = self._facts, self._layouts[argument]
        self.say("require_same", '"the grid"', self._grid, str(tuple(facts.grid)))
        for i in sorted(scalars):
            if isinstance(facts.scalars[i], (int, float)):
                name, value = self._variables[i], str(facts.scalars[i])
                self.say("require_same", f'"{self._names[i]}"', name, value)
            else:
                self._pin_contents(i)
        tensor = facts.tensors[argument]
        layout = f"({tuple(tensor.shape)}, {tuple(tensor.strides)})"
        found = f"(tuple({like}.shape), {like}.strides)"
        self.say("require_same", f'"the layout of {self._names[argument]}"', found, layout)

    def _pin_contents(self, i: int) -> None:
        """Assert that a tensor holds the same integers as in the exported launch."""
        contents, count = self._facts.scalars[i], self._facts.tensors[i].own.total
        if contents is None or count > _MOST_PINNED:
            raise refused(self._kernel, f"it depends on what {self._names[i]!r} holds")
        numbers = tuple(contents.at(range(count)).tolist())
        self.say("require_same", f'"what {self._names[i]} holds"', self._held(i), str(numbers))

    def check(self, check) -> None:
        """Assert a check of addresses, which held in the exported launch."""
        with self.writing(check.used_arguments(), check.argument):
            self._check(check)

    @contextlib.contextmanager
    def writing(self, scalars, argument: int):
        """Write an assertion about scalars and an argument; if that fails, pin their values."""
        written = len(self.lines)
        try:
            yield
        except Unwritten:
            del self.lines[written:]
            self.pin(scalars, argument)

    def _check(self, check) -> None:
        name = self._names[check.argument]
        filled = isinstance(check, BijectiveCheck)
        varying = [e[1] for dim in check.dims for _, e in dim.digits if _is_of_programs(e)]
        if check.programs is not None:
            self._sum(check.programs)
        if check.moves:
            self._check_parts(check, filled)
            return
        if check.programs is None:
            if varying:
                self._extents = iter(self._box(varying, filled))
            else:
                self._every_axis(check)
        dims = [self._indices(dim, filled) for dim in check.dims]
        listed = call("[", dims, "]")
        if filled:
            for number, limit in check.within:
                pair = f"{self._text.of(number)} <= {self._text.of(limit)}"
                self.require(pair, f"the kernels are for {pair}")
            for number in check.not_negative:
                self.not_negative(number)
            offset = self._text.of(check.offset)
            like = self._layouts[check.argument]
            self.say("require_cover", f'"{name}"', like, offset, listed)
        else:
            self.say("require_distinct", f'"{name}"', listed)

    def _check_parts(self, check, filled: bool) -> None:
        """Assert a check of the ranges of programs, whose lengths differ."""
        name, parts = self._names[check.argument], parts_of(check, self._text, self._calls)
        if filled:
            like = self._layouts[check.argument]
            self.say("require_parts_cover", f'"{name}"', like, parts)
        else:
            self.say("require_parts_distinct", f'"{name}"', parts)

    def _indices(self, dim, filled: bool) -> str:
        """Return a dimension of a check."""
        stride = self._text.of(dim.stride)
        digits = []
        for step, extent in dim.digits:
            varies = _is_of_programs(extent)
            extent = next(self._extents) if varies else self._text.of(extent)
            digits.append(f"({self._text.of(step)}, {extent})")
        listed = f"[{', '.join(digits)}]"
        if dim.chunk is not None:
            text = (
                f"{self._calls('bounded')}({listed}, {dim.chunk[0]}, {self._text.of(dim.chunk[1])})"
            )
            listed = text if filled else f"{text} or {listed}"
        limits = [("bound", dim.bound), ("start", dim.start)]
        given = [f"{name}={self._text.of(e)}" for name, e in limits if e is not None]
        return f"{self._calls('indices')}({', '.join([stride, listed, *given])})"

    def _every_axis(self, check) -> None:
        """Assert that programs only differ in numbers that are part of the address."""
        named = [extent for dim in check.dims for _, extent in dim.digits]
        self._no_more_than_one(axis for axis in range(3) if ["grid", axis] not in named)

    def _sum(self, programs) -> None:
        """Assert that the programs that are summed over only differ in these numbers."""
        axes = [e[1] for e in programs if isinstance(e, list) and e[0] == "pid"]
        if len(set(axes)) == len(programs):
            self._no_more_than_one(axis for axis in range(3) if axis not in axes)
        else:
            self.say("box", *self._places(programs), "True")

    def _box(self, values, filled: bool) -> list[str]:
        """Assert that each program has its own position; returns the extents of the box."""
        found = self._give("extents")
        begin = f"{found} = {self._calls('box')}("
        self.lines.append(call(begin, [*self._places(values), str(filled)], indent=4))
        return [f"{found}[{number}]" for number in range(len(values))]

    def _places(self, values) -> tuple[str, str]:
        """Return the grid, and a function from program ids to values."""
        place = tuple_of(self._text.of(value) for value in values)
        return self._grid, f"lambda {', '.join(self._text.pids)}: {place}"

    def _no_more_than_one(self, axes) -> None:
        for axis in axes:
            condition = f"{self._grid}[{axis}] <= 1"
            message = f"programs along axis {axis} of the grid would repeat what others do"
            if not any(condition in line for line in self.lines):
                self.require(condition, message)

    def inside(self, argument: int, spaces) -> None:
        """Assert that all touched elements are inside of a tensor."""
        for space in spaces:
            with self.writing(space.used_arguments(), argument):
                self.between_ends(argument, space)

    def between_ends(self, argument: int, space) -> None:
        """Assert that the ends of a space are inside of a tensor; raises `Unwritten` if nobody
        knows the ends, or if they are not.
        """
        name, like, ends = self._names[argument], self._layouts[argument], ends_of(space)
        self._rehearse(self._inside, argument, *ends)
        self.say(self._inside, f'"{name}"', like, *map(self._text.of, ends))

    def _rehearse(self, function: str, argument: int, *given) -> None:
        """Raise `Unwritten` if the assertion would fail for this launch.

        The text may use an upper bound of the touched elements.
        """
        facts = self._facts
        tensor = facts.tensors[argument]
        like = exported.Layout(
            tensor.shape, tensor.strides, tensor.span, tensor.dtype, facts.device
        )

        def value(part):
            is_pairs = isinstance(part, list) and part and isinstance(part[0], tuple)
            return [tuple(map(value, p)) for p in part] if is_pairs else facts.evaluate(part)

        try:
            getattr(exported, function)(self._names[argument], like, *map(value, given))
        except AssertionError as error:
            raise Unwritten(str(error)) from error

    def among(self, argument: int, spaces) -> None:
        """Assert that all touched elements are elements of a tensor, which may have gaps."""
        name, like = self._names[argument], self._layouts[argument]
        for space in spaces:
            with self.writing(space.used_arguments(), argument):
                start, axes = box_of(space)
                self._rehearse("require_among", argument, start, axes)
                box = [tuple_of(self._text.of(e) for e in pair) for pair in axes]
                first = self._text.of(start)
                self.say("require_among", f'"{name}"', like, first, call("[", box, "]"))


def parts_of(check, text: Text, calls) -> str:
    """Return the ranges of programs, whose lengths differ, as Python."""
    start, box = check.offset, []
    for dim in check.dims:
        own = []
        for step, extent in dim.digits:
            if _is_of_programs(extent):
                start = ["add", start, ["mul", ["mul", dim.stride, step], extent[1]]]
            else:
                is_each = isinstance(extent, list) and extent[0] == "each"
                own.append((step, extent[1] if is_each else extent))
        if own or dim.bound is not None:
            digits = ", ".join(tuple_of(map(text.of, digit)) for digit in own)
            bound = [] if dim.bound is None else [text.of(dim.bound)]
            length = call(f"{calls('part')}(", [f"[{digits}]", *bound])
            box.append(tuple_of([text.of(dim.stride), length]))
    found = tuple_of([text.of(start), f"[{', '.join(box)}]"])
    first = [f"{text.of(e)} == 0" for e in (check.programs or ())[: check.summed]]
    condition = f" if {' and '.join(first)}" if first else ""
    return f"[{found} {text.programs(range(3))}{condition}]"


def box_of(space) -> tuple:
    """Return the first element of a box that contains a space, and its axes.

    These are `(count, stride)` pairs of expressions. Raises `Unwritten` if they are not known.
    """
    start, axes = space.offset, []
    for index in space.indices:
        low, high = _ends(index)
        ends = [["mul", index.stride, end] for end in (low, high)]
        start = ["add", start, _least(index.stride, ends)]
        stride = ["max", index.stride, ["sub", 0, index.stride]]
        axes.append((["add", ["sub", high, low], 1], stride))
    return start, axes


def ends_of(space) -> tuple:
    """Return the first and the last element that a space touches, as expressions.

    Raises `Unwritten` if they are not known.
    """
    low = high = space.offset
    for index in space.indices:
        first, last = _ends(index)
        if not isinstance(index.stride, int):
            # For an empty range, the end would be before the beginning.
            last = ["max", last, first]
        ends = [["mul", index.stride, end] for end in (first, last)]
        low = ["add", low, _least(index.stride, ends)]
        high = ["add", high, _most(index.stride, ends)]
    return low, high


def _ends(index) -> tuple:
    """Return the smallest and the largest value of an index, as expressions."""
    low = high = 0
    for number, digit in enumerate(index.digits):
        ends = [["mul", digit.step, end] for end in _ends_of_digit(digit)]
        low = ["add", low, _least(digit.step, ends)]
        high = ["add", high, _most(digit.step, ends)]
        if index.chunk is not None and number + 1 == index.chunk[0]:
            high = ["min", high, ["sub", index.chunk[1], 1]]
    if index.start is not None:
        low = ["max", low, index.start]
    if index.bound is not None:
        high = ["min", high, ["sub", index.bound, 1]]
    return low, high


def _ends_of_digit(digit) -> tuple:
    extent = digit.extent
    if extent is None:
        raise Unwritten("nobody knows how often a loop runs")
    if digit.owner != "program":
        return 0, ["sub", extent, 1]
    if isinstance(extent, list) and extent[0] == "pid":
        return 0, ["sub", ["grid", extent[1]], 1]
    if not named(extent, "pid"):
        return extent, extent
    return ["sub", 0, ["maxpids", ["sub", 0, extent]]], ["maxpids", extent]


def _is_of_programs(extent) -> bool:
    """Whether a digit has one value in each program."""
    return isinstance(extent, list) and extent[0] == "pids"


def _least(factor, ends):
    return ends[factor < 0] if isinstance(factor, int) else ["min", *ends]


def _most(factor, ends):
    return ends[factor >= 0] if isinstance(factor, int) else ["max", *ends]
