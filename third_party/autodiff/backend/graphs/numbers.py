"""Evaluates expressions about all programs, for grids that may be symbols.

An exported module loops over programs: `max(min((i + 1) * 64, n) for i in range(grid[0]))`. Here
`i` stands for all programs at once, as an interval, and is split into digits if programs compute `i
// n` and `i % n`. If that does not work, the grid becomes a constant of the graph.
"""

from __future__ import annotations

import ast
import builtins
import functools

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ..exporting import exported
from ..exporting.bundle import private


class Unclear(TypeError):
    """The values of a number in all programs do not follow from its minimum and maximum."""


class Ends:
    """The minimum and maximum of a number that programs compute; both occur.

    `origins` are the digits that it is computed from. Two numbers that are added have none in
    common.
    """

    def __init__(self, low, high, origins):
        self.low, self.high, self.origins = low, high, origins

    def _with(self, other):
        """Return the interval of another operand, and the digits of both."""
        if not isinstance(other, Ends):
            return other, other, self.origins
        for a in self.origins:
            for b in other.origins:
                shorter = builtins.min(len(a), len(b))
                if a[:shorter] == b[:shorter]:
                    raise Unclear
        return other.low, other.high, self.origins | other.origins

    def __add__(self, other):
        low, high, origins = self._with(other)
        return Ends(self.low + low, self.high + high, origins)

    def __neg__(self):
        return Ends(-self.high, -self.low, self.origins)

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        if isinstance(other, Ends):
            raise Unclear
        ends = (self.low * other, self.high * other)
        return Ends(*(ends if other >= 0 else ends[::-1]), self.origins)

    def __floordiv__(self, other):
        if isinstance(other, Ends) or not other > 0:
            raise Unclear
        return Ends(self.low // other, self.high // other, self.origins)

    __radd__, __rmul__ = __add__, __mul__

    def _compared(self, other):
        raise Unclear

    __lt__ = __le__ = __gt__ = __ge__ = __mod__ = __rfloordiv__ = _compared


class Digit(Ends):
    """A number from zero to below an extent, which may be split into quotient and remainder."""

    def __init__(self, extent, path):
        super().__init__(0, extent - 1, frozenset([path]))
        self.extent, self._path = extent, path
        self._by = self._parts = None

    def split(self, by) -> tuple[Digit, Digit]:
        """Return the quotient and the remainder of a division; it has to divide the extent."""
        if self._parts is None and not isinstance(by, Ends) and self.extent % by == 0:
            parts = Digit(self.extent // by, (*self._path, 0)), Digit(by, (*self._path, 1))
            self._by, self._parts = by, parts
        if self._parts is None or self._by != by:
            raise Unclear
        return self._parts

    def leaves(self) -> list[Digit]:
        """Return the digits that are not split."""
        if self._parts is None:
            return [self]
        high, low = self._parts
        return [*high.leaves(), *low.leaves()]


def _divided(a, b):
    if isinstance(a, Digit):
        return a.split(b)[0]
    if isinstance(a, Ends):
        if not a.low >= 0:
            raise Unclear
        return a // b
    # PyTorch cannot compare truth values of symbols.
    quotient = abs(a) // abs(b)
    return -quotient if a * b < 0 else quotient


def _remainder(a, b):
    return a.split(b)[1] if isinstance(a, Digit) else a - b * _divided(a, b)


def _pairwise(name: str):
    """Return `min` or `max` as an expression of symbols, without comparing them."""
    plain, symbolic = getattr(builtins, name), getattr(torch, f"sym_{name}")

    def pair(a, b):
        if isinstance(b, Ends):
            a, b = b, a
        if isinstance(a, Ends):
            low, high, origins = a._with(b)
            return Ends(pair(a.low, low), pair(a.high, high), origins)
        is_symbol = isinstance(a, torch.SymInt) or isinstance(b, torch.SymInt)
        return symbolic(a, b) if is_symbol else plain(a, b)

    def choose(*values, **options):
        return plain(*values, **options) if len(values) < 2 else functools.reduce(pair, values)

    return choose


def _box(grid, place_of, filled: bool) -> list:
    """Return the extents of a box in which each program has its own position.

    Raises unless each program has one, and, if it is `filled`, unless they fill the box.
    """
    digits = [Digit(extent, (axis,)) for axis, extent in enumerate(grid)]
    try:
        places = list(place_of(*digits))
        leaves = [leaf for digit in digits for leaf in digit.leaves()]
        named = {id(place) for place in places}
        if len(named) == len(places) and named <= {id(leaf) for leaf in leaves}:
            if all(id(leaf) in named or leaf.extent <= 1 for leaf in leaves):
                return [place.extent for place in places]
    except Unclear:
        pass

    def place(*program):
        return tuple(map(int, place_of(*program)))

    return exported.box(tuple(map(int, grid)), place, filled)


def _greatest(value, *extents):
    """Return the maximum of a function of numbers from zero to below extents."""
    try:
        found = value(*(Digit(extent, (place,)) for place, extent in enumerate(extents)))
        return found.high if isinstance(found, Ends) else found
    except Unclear:
        return _over_all(value, *map(int, extents))


def _over_all(value, extent, *extents):
    if not extents:
        return max(value(i) for i in range(extent))
    return max(_over_all(functools.partial(value, i), *extents) for i in range(extent))


def _constant(value):
    """Return numbers in their present value, which makes them constants of the graph."""
    if isinstance(value, exported.Layout):
        return exported.Layout(*map(_constant, value))
    if isinstance(value, (tuple, list)):
        return tuple(map(_constant, value))
    return int(value) if isinstance(value, torch.SymInt) else value


def _of_constants(function):
    """Return a function that checks constants, and adds nothing to a graph."""

    @functools.wraps(function)
    def call(*values):
        values = map(_constant, values)
        with _disable_current_modes():
            function(*values)

    return call


_OF_CONSTANTS = (
    exported.require_parts_cover,
    exported.require_parts_distinct,
    exported.require_same,
)
REPLACED = {
    **{private(f.__name__): _of_constants(f) for f in _OF_CONSTANTS},
    **{private("box"): _box, private("greatest"): _greatest},
    **{private("divided"): _divided, private("remainder"): _remainder},
    **{name: _pairwise(name) for name in ("min", "max")},
}


class _Comprehensions(ast.NodeTransformer):
    def visit_Call(self, node):
        self.generic_visit(node)
        is_maximum = isinstance(node.func, ast.Name) and node.func.id == "max"
        if not is_maximum or not isinstance(node.args[0], ast.GeneratorExp):
            return node
        loops = node.args[0].generators
        if not all(isinstance(loop.iter, ast.Call) for loop in loops):
            return node
        names = [ast.arg(loop.target.id) for loop in loops]
        extents = [loop.iter.args[0] for loop in loops]
        arguments = ast.arguments([], names, None, [], [], None, [])
        value = ast.Lambda(arguments, node.args[0].elt)
        return ast.Call(ast.Name(private("greatest"), ast.Load()), [value, *extents], [])


def without_comprehensions(text: str) -> str:
    """Replace `max(value for i in range(n))` in a module by a call with a function of `i`."""
    tree = ast.parse(text)
    for function in tree.body:
        if isinstance(function, (ast.FunctionDef, ast.ClassDef)) and not _is_kernel(function):
            _Comprehensions().visit(function)
    return ast.unparse(ast.fix_missing_locations(tree))


def _is_kernel(function) -> bool:
    return any("jit" in ast.unparse(decorator) for decorator in function.decorator_list)
