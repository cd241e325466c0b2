"""Values that count in some of their lanes only: elsewhere they are NaN, or infinite, or anything.

Such a value is made here, in many ways, and may be computed with; nothing may come of the other
lanes, so it is stored under its mask, or settled by a `where` before lanes are mixed.
"""

from __future__ import annotations

from .integers import spread
from .program import LARGEST, Kernel, Lanes, Value

Shape = tuple[int, ...]


def settled(k: Kernel, value: Value) -> Value:
    """Return a value that counts everywhere."""
    lanes = k.lanes.get(value.text)
    if lanes is None:
        return value
    mask, x, shape = k.mask_of(lanes, value.shape), value.text, value.shape
    how = k.kind("settled by", {"a number": 4, "an inverted mask": 2, "another value": 2})
    low, high = value.low, value.high
    if how == "another value":
        known = [v for v in k.values if v.kind == "f" and v.shape == shape]
        known = [v for v in known if v.text not in k.lanes and v.size <= max(value.size, 4.0)]
        if known:
            other = k.choices.pick(known[::-1])
            low, high = min(low, other.low), max(high, other.high)
            return k.floating(f"tl.where({mask}, {x}, {other.text})", shape, low, high, None)
    number = k.choices.pick([0.0, 0.5])
    text = f"tl.where({mask}, {x}, {number})"
    if how == "an inverted mask":
        text = f"tl.where(~{mask}, {number}, {x})"
    return k.floating(text, shape, min(low, number), max(high, number), None)


def mixable(k: Kernel, value: Value, axis: int) -> Value:
    """Return a value of which lanes along an axis may be mixed: all of a line count, or none."""
    lanes = k.lanes.get(value.text)
    if lanes is None or lanes.axis not in (None, axis):
        return value
    return settled(k, value)


def reduced_lanes(k: Kernel, value: Value, axis: int) -> Lanes | None:
    """Return the lanes of what is left of a value without an axis."""
    lanes = k.lanes.get(value.text)
    if lanes is None:
        return None
    return Lanes(lanes.mask, lanes.axis - (lanes.axis > axis))


def moved_lanes(k: Kernel, value: Value, axes: dict[int, int]) -> Lanes | None:
    """Return the lanes of a value whose axes are others now."""
    lanes = k.lanes.get(value.text)
    return lanes and Lanes(lanes.mask, axes[lanes.axis])


def tail(k: Kernel, number: str, last: int, extents: list[int]) -> None:
    """Let rows of the kernel's tiles not count: in the last one of `last + 1` programs, or all."""
    extent = k.choices.pick(extents)
    rows = f"tl.arange(0, {extent})"
    end = k.choices.between(0, extent)
    how = k.kind("tail of", {"all programs": 2, "the last program": 3})
    if how == "the last program":
        rows, end = f"{number} * {extent} + {rows}", last * extent + end
    name = k.fresh("m")
    k.emit(f"{name} = {rows} < {k.argument(end)}")
    k.tail = name, extent


def tail_lanes(k: Kernel, shape: Shape) -> Lanes | None:
    """Return the kernel's tail as lanes of a shape, if it has such an axis and one is wanted."""
    if k.tail is None:
        return None
    name, extent = k.tail
    axes = [axis for axis, n in enumerate(shape) if n == extent]
    return Lanes(name, k.choices.pick(axes)) if axes and k.choices.chance(70) else None


def fitting(k: Kernel, value: Value, lanes: Lanes | None) -> Value:
    """Return a value that counts at least in these lanes."""
    return value if k.lanes.get(value.text) in (None, lanes) else settled(k, value)


def some_lanes(k: Kernel, shape: Shape) -> Lanes:
    """Choose lanes by their places."""
    known = tail_lanes(k, shape)
    if known:
        return known
    axis = k.choices.below(len(shape))
    index = f"tl.arange(0, {shape[axis]})"
    if len(shape) == 2 and k.choices.chance(30):
        k.feature("lanes of a triangle")
        rows, columns = (spread(f"tl.arange(0, {n})", shape, i) for i, n in enumerate(shape))
        name = k.fresh("m")
        k.emit(f"{name} = {rows} {k.choices.pick(['>=', '<'])} {columns}")
        return Lanes(name)
    name = k.fresh("m")
    compare = k.choices.pick(["<", ">=", "!="])
    k.emit(f"{name} = {index} {compare} {k.argument(k.choices.between(0, shape[axis]))}")
    return Lanes(name, axis)


# What a lane that does not count adds to or multiplies a value with, and a function that is NaN or
# infinite there. The value is positive.
LEAVES = {
    "logarithm of zero": ("*", "0.0", "tl.log({x})"),
    "logarithm of less": ("-", "40.0", "tl.log({x})"),
    "division by zero": ("*", "0.0", "1.0 / {x}"),
    "root of less": ("-", "40.0", "tl.sqrt({x})"),
    "reciprocal root of zero": ("*", "0.0", "tl.rsqrt({x})"),
    "power of zero": ("*", "0.0", "tl.exp(-0.5 * tl.log({x}))"),
    "exponential of much": ("+", "1000.0", "tl.exp({x})"),
    "difference of infinities": ("+", "float('inf')", "({x} - {x} * 0.5)"),
}
RANGES = {"tl.log({x})": (-2.0, 2.0), "tl.sqrt({x})": (0.4, 2.0), "tl.exp({x})": (1.2, 20.1)}


def leaving(k: Kernel, value: Value) -> Value:
    """Return a function of a value from 0.2 to 3 that leaves its domain in some lanes."""
    how = k.kind("domain left by", dict.fromkeys(LEAVES, 1))
    lanes = some_lanes(k, value.shape)
    mask = k.mask_of(lanes, value.shape)
    operation, number, function = LEAVES[how]
    inside = "1.0" if operation == "*" else "0.0"
    moved = f"{value.text} {operation} tl.where({mask}, {inside}, {number})"
    common = k.common([k.lanes.get(value.text), lanes], value.shape)
    argument = k.floating(moved, value.shape, value.low, value.high, common)
    k.values.remove(argument)
    low, high = RANGES.get(function, (0.0, 5.0))
    return k.floating(function.format(x=argument.text), value.shape, low, high, common)


def from_data(k: Kernel, value: Value) -> Value:
    """Return a function that is defined on one side of a comparison of its argument."""
    how = k.kind("side of a comparison", {"log": 1, "rsqrt": 1, "power": 1})
    k.feature("mask data")
    edge = k.choices.pick([0.1, -0.3])
    name = k.fresh("m")
    k.emit(f"{name} = {value.text} > {edge}")
    lanes = k.common([k.lanes.get(value.text), Lanes(name)], value.shape)
    # Not nearer to zero than that: functions stay smooth.
    x = f"({value.text} - {edge} + tl.where({name}, 0.3, 0.0))"
    text = {
        "log": f"tl.log({x})",
        "rsqrt": f"tl.rsqrt({x})",
        "power": f"tl.exp(1.5 * tl.log({x}))",
    }[how]
    top = max(value.high - edge + 0.3, 1.0)
    return k.floating(text, value.shape, -1.3, max(top**1.5, 2.0), lanes)


# What lanes are loaded with that do not count.
ANYTHING = {"float('nan')": 3, "float('inf')": 2, "float('-inf')": 1}


def unseen(k: Kernel, pointer: str, shape: Shape, lanes: Lanes) -> Value:
    """Load a tile that counts in some lanes only; what is in the others is hidden, or not."""
    how = k.kind("lanes loaded", {"without a mask": 4, "without other": 2, "with other": 3})
    masked = "" if how == "without a mask" else f", mask={k.mask_of(lanes, shape)}"
    if how == "with other":
        masked += f", other={k.kind('lanes hold', ANYTHING)}"
    return k.floating(f"tl.load({pointer}{masked}).to(T)", shape, -LARGEST, LARGEST, lanes)
