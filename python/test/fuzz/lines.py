"""Kernels that go along a line of elements and take their positions apart.

They do the same at each position, whose digits (row, column, channel) say what they share.
"""

from __future__ import annotations

from .expressions import apply
from .grids import LIMIT, SMOOTH, scaled_linearly
from .integers import count, first_id
from .program import LARGEST, Kernel, Value


def part(k: Kernel, p: str, limits: tuple[int, ...], first: int, last: int) -> str:
    """Return digits `first` to `last` of position `p`, the lowest first: in one of several ways."""
    below, within = count(limits[:first]), count(limits[first:last])
    quotient = p if first == 0 else f"({p} // {k.argument(below)})"
    if last == len(limits):
        return quotient
    if k.maybe("remainder by a product", 45):
        return f"({quotient} - {quotient} // {k.argument(within)} * {k.argument(within)})"
    if k.maybe("quotient of a remainder", 45):
        return f"({p} % {k.argument(below * within)} // {k.argument(below)})"
    return f"({quotient} % {k.argument(within)})"


def gathered(k: Kernel, at: str, size: int, shape, mask: str) -> Value:
    """Load an input of `size` elements at `at`."""
    buffer = k.buffer("input")
    buffer.size = size
    masked = f", mask={mask}, other=0.0" if mask else ""
    return k.floating(f"tl.load({buffer.name} + {at}{masked}).to(T)", shape, -LARGEST, LARGEST)


def along_a_line(k: Kernel) -> None:
    """Write the body of a kernel that does the same at each position of a line."""
    k.feature("line")
    limits = tuple(k.choices.pick([2, 3, 4, 1, 5, 8]) for _ in range(k.choices.between(2, 3)))
    size, block = count(limits), k.choices.pick([16, 8, 32])
    # A row may end in the middle.
    end = size - (k.choices.between(1, 3) if size > 4 and k.choices.chance(10) else 0)
    k.grid = (-(-end // block),)
    shape = (block,)
    text = f"{first_id(k).text} * {block} + tl.arange(0, {block})"
    p = k.integer(text, shape, 0, k.grid[0] * block - 1).text
    unmasked = end % block == 0 and k.choices.chance(50)
    mask = "" if unmasked else f"{p} < {k.argument(end)}"
    value = gathered(k, p, k.grid[0] * block, shape, mask)
    for _ in range(k.choices.between(1, 3)):
        first = k.choices.below(len(limits))
        last = k.choices.between(first + 1, len(limits))
        at = part(k, p, limits, first, last)
        # What follows a last row that is cut off.
        extent = count(limits[first:last]) if last < len(limits) else k.grid[0] * block
        shared = gathered(k, at, extent, shape, mask)
        text = f"{value.text} {k.choices.pick(['*', '+'])} {shared.text}"
        bound = (value.size + 1) * (LARGEST + 1)
        value = scaled_linearly(k, k.floating(text, shape, -bound, bound), LIMIT)
        if k.choices.chance(40):
            value = apply(k, k.choices.pick(SMOOTH), value)
    value = scaled_linearly(k, value, LIMIT)
    output = k.buffer("sum")
    output.size = end
    stored = f", mask={mask}" if mask else ""
    how = k.choices.pick(["tl.store", "tl.atomic_add"])
    k.emit(f"{how}({output.name} + {p}, {value.text}{stored})")
