"""Integer expressions of a plan, evaluated on the host for one launch.

An expression is an int or a list `[operator, operands…]`. Division follows C (it truncates);
`floordiv` and `ceildiv` round down and up. `["maxpids", e]` is the maximum of `e` over all
program ids of the grid, evaluated with numpy over the axes that `e` mentions.
"""

from __future__ import annotations

import numpy

from .errors import CheckError, PlanError

# Elements of one vectorised evaluation; a larger program space is walked in slices.
_CHUNK = 1 << 20


def _divide(a, b):
    quotient = abs(a) // abs(b)
    negative = (a < 0) != (b < 0)
    if isinstance(quotient, numpy.ndarray):
        return numpy.where(negative, -quotient, quotient)
    return -quotient if negative else quotient


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
    "div": _divide,
    "rem": lambda a, b: a - b * _divide(a, b),
    "min": _minimum,
    "max": _maximum,
}
_DIVIDING = ("floordiv", "ceildiv", "div", "rem")


def validate(expr, arguments: int, inside_maxpids: bool = False) -> None:
    """Raise `PlanError` unless `expr` is an expression over `arguments` kernel arguments."""
    if isinstance(expr, int) and not isinstance(expr, bool):
        return
    if not isinstance(expr, list) or not expr or not isinstance(expr[0], str):
        raise PlanError(f"expected an integer expression, got {expr!r}")
    operator, *operands = expr
    if operator in ("arg", "grid", "pid"):
        limit = arguments if operator == "arg" else 3
        valid = len(operands) == 1 and isinstance(operands[0], int) and 0 <= operands[0] < limit
        if not valid or (operator == "pid" and not inside_maxpids):
            raise PlanError(f"malformed or misplaced expression {expr!r}")
    elif operator == "maxpids":
        if len(operands) != 1 or inside_maxpids:
            raise PlanError(f"malformed or nested expression {expr!r}")
        validate(operands[0], arguments, inside_maxpids=True)
    elif operator in _BINARY:
        if len(operands) != 2:
            raise PlanError(f"{operator} takes two operands, got {expr!r}")
        for operand in operands:
            validate(operand, arguments, inside_maxpids)
    else:
        raise PlanError(f"unknown operator {operator!r} in {expr!r}")


def used_arguments(expr) -> set[int]:
    """Return the indices of the kernel arguments that `expr` reads."""
    if isinstance(expr, int):
        return set()
    if expr[0] == "arg":
        return {expr[1]}
    return set().union(*(used_arguments(e) for e in expr[1:] if isinstance(e, list)))


def _axes(expr) -> set[int]:
    if isinstance(expr, int):
        return set()
    if expr[0] == "pid":
        return {expr[1]}
    return set().union(*(_axes(e) for e in expr[1:] if isinstance(e, list)))


def evaluate(expr, args, grid) -> int:
    """Return the value of `expr` for scalar arguments `args[i]` and a grid of three extents."""
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
    if operator == "pid":
        return pids[expr[1]]
    if operator == "maxpids":
        return _max_over_programs(expr[1], args, grid)
    a = _evaluate(expr[1], args, grid, pids)
    b = _evaluate(expr[2], args, grid, pids)
    if operator in _DIVIDING and numpy.any(numpy.equal(b, 0)):
        raise CheckError(f"division by zero in {expr!r}")
    return _BINARY[operator](a, b)


def _max_over_programs(expr, args, grid) -> int:
    axes = sorted(_axes(expr))
    extents = [grid[axis] for axis in axes]
    if any(extent <= 0 for extent in extents):
        raise CheckError(f"maximum over the programs of an empty grid {tuple(grid)}")
    total = 1
    for extent in extents:
        total *= extent
    best = None
    for start in range(0, total, _CHUNK):
        linear = numpy.arange(start, min(start + _CHUNK, total), dtype=numpy.int64)
        pids = {}
        for axis, extent in zip(axes, extents, strict=True):
            pids[axis] = linear % extent
            linear = linear // extent
        value = int(numpy.max(_evaluate(expr, args, grid, pids)))
        best = value if best is None else max(best, value)
    return best
