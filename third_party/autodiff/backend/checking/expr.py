"""Integer expressions of a plan, evaluated on the host for one launch.

An expression is an int or a list `[operator, operands…]`. Division truncates, as in C; `floordiv`
and `ceildiv` round down and up. Other operators are:

  * `["maxpids", e]`: the maximum of `e` over all program ids of the grid, evaluated with numpy
    over the axes that `e` mentions. Outside of it, an expression with `["pid", axis]` has a value
    for each program, see `values_of_programs`.
  * `["counted", n]`: what a counting kernel has left in counter n.
  * `["coarsest", a, b]`: the largest power of two with a multiple from a to b.
  * `["element", i, e]`: the integer at index e of what argument i points to (see contents.py).

The launch knows the values of the following ones; `substitute` puts them in. For the tensor passed
as argument i:

  * `["extent", i]`: the elements from its first to its last one.
  * `["span", i]`: the elements of its storage.
  * `["lead", i]`: the elements of its storage before its first one.
  * `["pitch", i, n]`: the distance of rows that tiles of length n may have (see storage/memory.py).

And for the whole launch:

  * `["processors"]`: how many programs the device runs side by side.
  * `["shared"]`: 1 if memory that the kernel writes is shared by arguments, else 0.
  * `["parts"]`: 1 if outputs overlap or are parts of larger tensors, else 0.
  * `["deterministic"]`: 1 if gradients must not be added atomically, else 0.
"""

from __future__ import annotations

import math

import numpy

from ..errors import CheckError, PlanError
from ..support.arithmetic import coarsest, divided, remainder, square_root

# Elements of one vectorised evaluation; a larger grid is processed in slices.
_CHUNK = 1 << 20


def _minimum(a, b):
    vector = isinstance(a, numpy.ndarray) or isinstance(b, numpy.ndarray)
    return numpy.minimum(a, b) if vector else min(a, b)


def _maximum(a, b):
    vector = isinstance(a, numpy.ndarray) or isinstance(b, numpy.ndarray)
    return numpy.maximum(a, b) if vector else max(a, b)


_BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "ceildiv": lambda a, b: -(-a // b),
    "div": divided,
    "rem": remainder,
    "min": _minimum,
    "max": _maximum,
}
_DIVIDING = ("floordiv", "ceildiv", "div", "rem")
# Operators whose values a launch knows, without and with an argument; for the latter, how many
# numbers follow.
_OF_LAUNCHES = ("processors", "shared", "parts", "deterministic")
_OF_TENSORS = {"extent": 1, "span": 1, "lead": 1, "pitch": 2}


def validate(expr, arguments: int, per_program: bool = False) -> None:
    """Raise `PlanError` unless `expr` is an expression over `arguments` kernel arguments.

    Only a `per_program` one may mention program ids.
    """
    if isinstance(expr, int) and not isinstance(expr, bool):
        return
    if not isinstance(expr, list) or not expr or not isinstance(expr[0], str):
        raise PlanError(f"expected an integer expression, got {expr!r}")
    operator, *operands = expr
    if operator in ("arg", "grid", "pid"):
        limit = arguments if operator == "arg" else 3
        valid = len(operands) == 1 and isinstance(operands[0], int) and 0 <= operands[0] < limit
        if not valid or (operator == "pid" and not per_program):
            raise PlanError(f"malformed or misplaced expression {expr!r}")
    elif operator == "element":
        if len(operands) != 2 or type(operands[0]) is not int or not 0 <= operands[0] < arguments:
            raise PlanError(f"malformed expression {expr!r}")
        validate(operands[1], arguments, per_program)
    elif operator == "isqrt":
        if len(operands) != 1 or per_program:
            raise PlanError(f"isqrt outside of programs takes one operand, got {expr!r}")
        validate(operands[0], arguments)
    elif operator in _OF_TENSORS:
        valid = len(operands) == _OF_TENSORS[operator] and all(type(n) is int for n in operands)
        if not valid or not 0 <= operands[0] < arguments or min(operands) < 0 or per_program:
            raise PlanError(f"malformed or misplaced expression {expr!r}")
    elif operator in _OF_LAUNCHES:
        if operands or per_program:
            raise PlanError(f"malformed or misplaced expression {expr!r}")
    elif operator == "coarsest":
        if len(operands) != 2 or per_program:
            raise PlanError(f"coarsest outside of programs takes two operands, got {expr!r}")
        for operand in operands:
            validate(operand, arguments)
    elif operator == "counted":
        if len(operands) != 1 or not isinstance(operands[0], int) or operands[0] < 0 or per_program:
            raise PlanError(f"malformed or misplaced expression {expr!r}")
    elif operator == "maxpids":
        if len(operands) != 1 or per_program:
            raise PlanError(f"malformed or nested expression {expr!r}")
        validate(operands[0], arguments, per_program=True)
    elif operator in _BINARY:
        if len(operands) != 2:
            raise PlanError(f"{operator} takes two operands, got {expr!r}")
        for operand in operands:
            validate(operand, arguments, per_program)
    else:
        raise PlanError(f"unknown operator {operator!r} in {expr!r}")


def named(expr, operator: str) -> set[int]:
    """Return the indices that `operator` has in `expr`."""
    if isinstance(expr, int):
        return set()
    own = {expr[1]} if expr[0] == operator else set()
    return own.union(*(named(e, operator) for e in expr[1:]))


def mentions(expr, operator: str) -> bool:
    """Return whether an operator is anywhere in an expression."""
    if isinstance(expr, int):
        return False
    return expr[0] == operator or any(mentions(e, operator) for e in expr[1:])


def used_arguments(expr) -> set[int]:
    """Return the kernel arguments that `expr` reads, or reads elements of."""
    return named(expr, "arg") | named(expr, "element")


def used_counters(expr) -> set[int]:
    """Return the indices of the counters that `expr` reads."""
    return named(expr, "counted")


def substitute(expr, known):
    """Replace the operators in `known` by values; those that are functions are called."""
    if isinstance(expr, int):
        return expr
    operator, *operands = expr
    if operator in known:
        return known[operator](*operands)
    return [operator, *(substitute(e, known) for e in operands)]


def evaluate(expr, args, grid) -> int:
    """Return the value of `expr` for arguments `args[i]` and a grid of three extents.

    Arguments are scalars, and `Contents` where elements are read.
    """
    return int(_evaluate(expr, args, grid, None))


def _evaluate(expr, args, grid, pids):
    if isinstance(expr, int):
        return expr
    operator = expr[0]
    if operator == "arg":
        value = args[expr[1]]
        if not isinstance(value, int):
            raise CheckError(f"argument {expr[1]} should be an integer, got {value!r}")
        return int(value)
    if operator == "grid":
        return grid[expr[1]]
    if operator in ("counted", *_OF_LAUNCHES, *_OF_TENSORS):
        raise CheckError(f"nobody has told {expr!r}")
    if operator == "pid":
        return pids[expr[1]]
    if operator == "maxpids":
        return _max_over_programs(expr[1], args, grid)
    if operator == "element":
        contents = args[expr[1]]
        if contents is None:
            raise CheckError(f"nobody has told what argument {expr[1]} points to")
        return contents.at(_evaluate(expr[2], args, grid, pids))
    a = _evaluate(expr[1], args, grid, pids)
    if operator == "isqrt":
        return square_root(a)
    b = _evaluate(expr[2], args, grid, pids)
    if operator == "coarsest":
        if not 0 < a <= b:
            raise CheckError(f"there is no multiple of a power of two from {a} to {b}")
        return coarsest(a, b)
    if operator in _DIVIDING and numpy.any(numpy.equal(b, 0)):
        raise CheckError(f"division by zero in {expr!r}")
    return _BINARY[operator](a, b)


def _programs(axes, grid):
    """Yield program ids along `axes`, in slices: an array for each axis."""
    total = math.prod(grid[axis] for axis in axes)
    for start in range(0, total, _CHUNK):
        linear = numpy.arange(start, min(start + _CHUNK, total), dtype=numpy.int64)
        pids = {}
        for axis in axes:
            pids[axis] = linear % grid[axis]
            linear = linear // grid[axis]
        yield pids


def _max_over_programs(expr, args, grid) -> int:
    axes = sorted(named(expr, "pid"))
    if any(grid[axis] <= 0 for axis in axes):
        raise CheckError(f"maximum over the programs of an empty grid {tuple(grid)}")
    return max(int(numpy.max(_evaluate(expr, args, grid, pids))) for pids in _programs(axes, grid))


def values_of_programs(exprs, args, grid) -> numpy.ndarray:
    """Return the values of expressions in every program, as int64: a row for each expression.

    Ids along the first axis run fastest.
    """
    shape = tuple(reversed(grid))
    # Arrays that broadcast, so that an expression is only computed along axes that it mentions.
    pids = tuple(reversed(numpy.ogrid[tuple(slice(extent) for extent in shape)]))
    try:
        values = [numpy.asarray(_evaluate(e, args, grid, pids), numpy.int64) for e in exprs]
    except OverflowError as error:
        raise CheckError(
            f"an expression over program ids needs more than 64 bits: {error}"
        ) from None
    return numpy.stack([numpy.broadcast_to(value, shape).reshape(-1) for value in values])


def values_at(expr, args, grid, pids) -> numpy.ndarray:
    """Return the values of an expression in some programs; the rows of `pids` are their ids."""
    value = numpy.asarray(_evaluate(expr, args, grid, pids), numpy.int64)
    return numpy.broadcast_to(value, pids.shape[1:])
