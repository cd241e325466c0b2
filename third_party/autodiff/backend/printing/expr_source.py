"""Expressions of a plan as Python text: what `expr.evaluate` computes, written out.

`["add", ["arg", 2], 1]` is `n + 1` where argument 2 is called `n`.
"""

from __future__ import annotations

from collections.abc import Callable

from ..checking.expr import evaluate, named
from ..errors import AutodiffError

# Python's precedence of operators; calls and names bind tightest.
_SUM, _PRODUCT, _ATOM = range(3)
_INFIX = {
    "add": ("+", _SUM),
    "sub": ("-", _SUM),
    "mul": ("*", _PRODUCT),
    "floordiv": ("//", _PRODUCT),
}
# The functions of support/arithmetic.py that stand for operators in an exported module.
_CALLS = {"div": "divided", "rem": "remainder", "isqrt": "square_root", "coarsest": "coarsest"}
_BUILTIN = {"min": "min", "max": "max"}


class Text:
    """Writes expressions as Python; `known` has the names of values that a launch knows, by
    operator.

    `grid` is the name of a launch's grid, `pids` are names for program ids, and `calls(name)`
    returns the name in the module of a function from `exporting/exported.py`.
    """

    def __init__(self, known: dict[str, Callable[..., str]], grid: str, pids, calls):
        self._known = {
            "grid": lambda axis: f"{grid}[{axis}]",
            "pid": lambda axis: pids[axis],
            **known,
        }
        self._grid, self.pids, self._calls = grid, pids, calls
        self._called: list[tuple[object, str]] = []

    def call(self, expr, name: str) -> None:
        """Use a name for an expression from now on; a constant stays one."""
        if not isinstance(simplified(expr), int):
            self._called.append((simplified(expr), name))

    def of(self, expr) -> str:
        """Return an expression as Python.

        Raises an `AutodiffError` for values that have no name.
        """
        return self._write(simplified(expr))[0]

    def programs(self, axes) -> str:
        """Return the loops over programs along some axes, for a comprehension."""
        return " ".join(
            f"for {self.pids[a]} in range({self._grid}[{a}])" for a in sorted(axes, reverse=True)
        )

    def _write(self, expr) -> tuple[str, int]:
        if isinstance(expr, int):
            return str(expr), _ATOM if expr >= 0 else _SUM
        name = next((name for called, name in self._called if called == expr), None)
        if name is not None:
            return name, _ATOM
        operator, *operands = expr
        if operator == "element":
            held, place = self._known[operator](operands[0]), self._write(operands[1])[0]
            return f"{self._calls('at')}({held}, {place})", _ATOM
        if operator in self._known:
            return self._known[operator](*operands), _ATOM
        if operator in _INFIX:
            sign, level = _INFIX[operator]
            left = self._at_least(operands[0], level)
            # Subtrahends and divisors keep their parentheses, and so does a quotient that is a
            # factor.
            apart = operator in ("sub", "floordiv") or _is(operands[1], "floordiv")
            right = self._at_least(operands[1], level + apart)
            return f"{left} {sign} {right}", level
        if operator == "ceildiv":
            upper, lower = (self._at_least(e, _ATOM) for e in operands)
            return f"-(-{upper} // {lower})", _ATOM
        if operator == "maxpids":
            axes = named(operands[0], "pid")
            return f"max({self._write(operands[0])[0]} {self.programs(axes)})", _ATOM
        if operator not in (*_CALLS, *_BUILTIN):
            raise AutodiffError(f"it depends on {operator!r}")
        name = self._calls(_CALLS[operator]) if operator in _CALLS else _BUILTIN[operator]
        return f"{name}({', '.join(self._write(e)[0] for e in operands)})", _ATOM

    def _at_least(self, expr, level: int) -> str:
        text, own = self._write(expr)
        return text if own >= level else f"({text})"


def _is(expr, operator: str) -> bool:
    return isinstance(expr, list) and expr[0] == operator


def simplified(expr):
    """Simplify an expression: without factors of one, and without a minimum of equal numbers."""
    if isinstance(expr, int) or expr[0] in ("arg", "grid", "pid"):
        return expr
    operator, *operands = expr
    operands = [simplified(e) if isinstance(e, (int, list)) else e for e in operands]
    numbers = all(isinstance(e, int) for e in operands)
    if numbers and (operator in _INFIX or operator in ("ceildiv", "min", "max", "div", "rem")):
        return evaluate([operator, *operands], (), ())
    if operator in ("add", "mul", "min", "max") and isinstance(operands[0], int):
        # Constants come last.
        operands.reverse()
    a, b = (*operands, None, None)[:2]
    nothing = {"add": 0, "sub": 0, "mul": 1, "ceildiv": 1, "floordiv": 1, "div": 1}
    if operator in nothing and b == nothing[operator]:
        return a
    if operator == "mul" and b == 0:
        return 0
    if operator in ("min", "max") and a == b:
        return a
    return [operator, *operands]
