"""How many floating-point operations a kernel needs, by PyTorch's rule: only products count.

A product of M×K and K×N elements counts 2·M·N·K, each time that a program executes it. Loop bounds
and conditions are computed for all programs of a launch from its scalar arguments. If a condition
depends on more than that, both sides count: an upper bound. If only an upper bound of a loop's end
is known from scalars, the loop counts with that, and a warning. If a trip count depends on data
alone, that is an error.
"""

from __future__ import annotations

import functools
import math
import re
import warnings

import numpy

from ..errors import AutodiffError, CheckError
from ..programs.binding import grid_of
from ..support.arithmetic import divided

_VALUE = re.compile(r"%[\w$.#-]+")
_SHAPES = re.compile(r"tensor<((?:\d+x)+)")
_LOOP = re.compile(r"scf\.for (%\S+) = (%\S+) to (%\S+) step (%\S+)")
_TRUTH = {"true": 1, "false": 0}
_AXES = {"x": 0, "y": 1, "z": 2}


def _quotient(a, b):
    with numpy.errstate(divide="ignore"):
        return divided(a, b)


_OPERATIONS = {
    "arith.addi": numpy.add,
    "arith.subi": numpy.subtract,
    "arith.muli": numpy.multiply,
    "arith.divsi": _quotient,
    "arith.divui": _quotient,
    "arith.remsi": lambda a, b: a - b * _quotient(a, b),
    "arith.remui": lambda a, b: a - b * _quotient(a, b),
    "arith.minsi": numpy.minimum,
    "arith.maxsi": numpy.maximum,
    "arith.andi": numpy.bitwise_and,
    "arith.ori": numpy.bitwise_or,
    "arith.xori": numpy.bitwise_xor,
    "arith.select": numpy.where,
    "arith.extsi": lambda a: a,
    "arith.extui": lambda a: a,
    "arith.trunci": lambda a: a,
    "arith.index_cast": lambda a: a,
}
# Operations that increase with each operand; and with the first one, if the second is not negative.
_RISING = {"arith.addi", "arith.maxsi", "arith.extsi", "arith.trunci", "arith.index_cast"}
_RISING_WITH_FIRST = {"arith.muli", "arith.divsi"}
_COMPARISONS = {
    "eq": numpy.equal,
    "ne": numpy.not_equal,
    **{sign + "lt": numpy.less for sign in "su"},
    **{sign + "le": numpy.less_equal for sign in "su"},
    **{sign + "gt": numpy.greater for sign in "su"},
    **{sign + "ge": numpy.greater_equal for sign in "su"},
}


class _Programs:
    """The programs of one launch. All scalars are known that do not depend on memory."""

    def __init__(self, name: str, ttir: str, grid, arguments):
        self._name, self._grid = name, grid
        raw = ttir.splitlines()
        start = next(n for n, line in enumerate(raw) if "tt.func public" in line)
        lines = [line.split(" loc(")[0].strip() for line in raw]
        names = re.findall(r"(%[\w$.#-]+): ", raw[start])
        self._values = dict(zip(names, arguments, strict=True))
        # Upper bounds of values that are not known.
        self._most: dict = {}
        programs = numpy.arange(math.prod(grid), dtype=numpy.int64)
        self._pids = (
            programs % grid[0],
            programs // grid[0] % grid[1],
            programs // (grid[0] * grid[1]),
        )
        self._lines, self._count = lines, programs.size
        self._next = start + 1

    def total(self) -> int:
        """Return the operations of all programs."""
        if not any(" tt.dot" in line for line in self._lines):
            return 0
        body, _ = self._region(self._next)
        return int(self._flops(body).sum())

    def _region(self, place: int):
        """Return the operations of a region, with their own regions, and the line where it ends."""
        found = []
        while not self._lines[place].startswith("}"):
            line, regions = self._lines[place], []
            place += 1
            if line.endswith("{") or line.endswith("({"):
                more = True
                while more:
                    region, place = self._region(place)
                    regions.append(region)
                    more = self._lines[place].endswith("{")
                    place += 1
            found.append((line, regions))
        return found, place

    def _flops(self, body):
        """Return the number of floating-point operations of each program in a region."""
        total = numpy.zeros(self._count, numpy.int64)
        for line, regions in body:
            if regions:
                total = total + self._of_regions(line, regions)
            elif " tt.dot" in line:
                total = total + _product(line)
            else:
                self._evaluate(line)
        return total

    def _of_regions(self, line, regions):
        if not any(_multiplies(region) for region in regions):
            return 0
        if (loop := _LOOP.search(line)) is not None:
            return self._of_loop(loop, regions[0])
        if "scf.if" in line:
            condition = self._values.get(_VALUE.findall(line.split("scf.if")[1])[0])
            either = [self._flops(region) for region in regions]
            either += [0] * (2 - len(either))
            if condition is None:
                return numpy.maximum(*either)
            return numpy.where(condition, *either)
        raise self._unknown(line)

    def _of_loop(self, loop, body):
        variable, *bounds = loop.groups()
        lower, upper, step = (self._values.get(bound) for bound in bounds)
        if upper is None and (upper := self._most.get(bounds[1])) is not None:
            warnings.warn(
                f"the operations of kernel {self._name!r} that are counted are an upper bound: "
                f"memory may end '{loop.group()}' earlier than the scalars of the launch do",
                stacklevel=2,
            )
        if lower is None or upper is None or step is None:
            raise self._unknown(loop.group())
        trips = numpy.maximum(0, -((lower - upper) // step)) + numpy.zeros(self._count, numpy.int64)
        if not any(regions for _, regions in body):
            return trips * self._flops(body)
        total = numpy.zeros(self._count, numpy.int64)
        for trip in range(int(trips.max(initial=0))):
            self._values[variable] = lower + trip * step
            total = total + numpy.where(trip < trips, self._flops(body), 0)
        return total

    def _evaluate(self, line) -> None:
        result, _, rest = line.partition(" = ")
        operation = rest.split(" ")[0]
        value = None
        if operation == "arith.constant":
            number = re.match(r"arith\.constant (-?\d+|true|false)(?: : i|$)", rest)
            if number is not None:
                value = numpy.int64(_TRUTH.get(number[1], number[1]))
        elif operation == "tt.get_program_id":
            value = self._pids[_AXES[rest.split(" ")[1]]]
        elif operation == "tt.get_num_programs":
            value = numpy.int64(self._grid[_AXES[rest.split(" ")[1]]])
        else:
            compared = operation == "arith.cmpi"
            function = (
                _COMPARISONS[rest.split(" ")[1].rstrip(",")]
                if compared
                else _OPERATIONS.get(operation)
            )
            operands = [self._values.get(name) for name in _VALUE.findall(rest)]
            if function is not None and all(operand is not None for operand in operands):
                value = function(*operands)
            else:
                self._most[result] = self._bound(operation, _VALUE.findall(rest))
        self._values[result] = value

    def _bound(self, operation: str, names):
        """Return an upper bound of a value of which not all operands are known; None if there is
        none.
        """
        exact = [self._values.get(name) for name in names]
        most = [self._most.get(n) if v is None else v for n, v in zip(names, exact, strict=True)]
        if operation == "arith.minsi":
            given = [bound for bound in most if bound is not None]
            return functools.reduce(numpy.minimum, given) if given else None
        if any(bound is None for bound in most):
            return None
        rises = operation in _RISING or (
            operation in _RISING_WITH_FIRST and exact[1] is not None and numpy.all(exact[1] >= 0)
        )
        return _OPERATIONS[operation](*most) if rises else None

    def _unknown(self, line: str) -> AutodiffError:
        return AutodiffError(
            f"the products of kernel {self._name!r} cannot be counted: how often those in "
            f"'{line}' run depends on more than the scalars of a launch. Register the operation, "
            "and a count of your own: torch.utils.flop_counter.register_flop_formula"
        )


def _product(line: str) -> int:
    """Return the operations of a product, from its types."""
    types = line[line.index(" : ") :]
    shapes = [[int(n) for n in shape.split("x")[:-1]] for shape in _SHAPES.findall(types)]
    # Two 4-bit numbers share a byte.
    inner = shapes[0][-1] * (2 if "lhs = e2m1" in line else 1)
    return 2 * math.prod(shapes[-1]) * inner


def _multiplies(body) -> bool:
    return any(" tt.dot" in line or any(map(_multiplies, regions)) for line, regions in body)


def _scalars(leaves):
    return [numpy.int64(v) if isinstance(v, (int, bool)) else None for v in leaves]


def of_launch(spec, grid, leaves) -> int:
    """Return the operations of a launch of a kernel with these arguments."""
    return _Programs(spec.name, spec.ttir, tuple(grid), _scalars(leaves)).total()


def of_backward(backward, leaves) -> int:
    """Return the operations of a backward, for a launch with these arguments."""
    facts = backward.facts
    chosen = []
    for kernel in backward.plan.backward:
        suits = (v for v in kernel.variants if facts.evaluate(v.when) != 0)
        chosen.append(next(suits, kernel))
    return _of_kernels(chosen, backward, leaves)


def of_program(program, leaves) -> int:
    """Return the operations of the kernels that a bound program launches."""
    return _of_kernels([bound.executable.kernel for bound in program.sequence], program, leaves)


def _of_kernels(kernels, program, leaves) -> int:
    facts, plan, leaves = program.facts, program.plan, _scalars(leaves)
    total = 0
    for kernel in kernels:
        operands = [_operand(kind, n, leaves, plan, facts) for kind, n in kernel.operands]
        total += _Programs(kernel.name, kernel.ttir, grid_of(kernel, facts), operands).total()
    return total


def _operand(kind, index, leaves, plan, facts):
    if kind == "argument":
        return leaves[index]
    if kind == "size":
        try:
            return numpy.int64(facts.evaluate(plan.sizes[index]))
        except CheckError:
            return None
    return None
