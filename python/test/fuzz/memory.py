"""Loads, stores and atomic adds, in bounds by construction, and no two programs in conflict."""

from __future__ import annotations

from .expressions import LIMIT, predicate, scaled, unary
from .integers import count, dense_strides, scalars, spread, tile
from .program import LARGEST, Buffer, Kernel, Value

Shape = tuple[int, ...]
# The largest offset of an input's element.
FARTHEST = 250


def mask(k: Kernel, offsets: Value) -> tuple[str, float]:
    """Return a mask of an access, and how far it reaches."""
    shape, n = offsets.shape, offsets.high + 1
    how = k.choices.weighted({"tail": 4, "axis": 2, "data": 2, "program": 1, "nothing": 1})
    known = [v for v in k.values if v.kind == "f" and v.shape == shape]
    if how == "data" and known:
        k.feature("mask from data")
        a, b = k.choices.pick(known), k.choices.pick(known)
        return predicate(k, a, b), n
    if how == "axis" and shape:
        axis = k.choices.below(len(shape))
        extent = k.argument(k.choices.between(0, shape[axis]))
        index = spread(f"tl.arange(0, {shape[axis]})", shape, axis)
        return f"tl.broadcast_to({index} < {extent}, {list(shape)})", n
    if how == "program" and shape:
        scalar = k.choices.pick(scalars(k))
        return f"({offsets.text} >= 0) & ({scalar.text} > {k.argument(1)})", n
    if how == "nothing":
        return f"{offsets.text} < 0", n
    reach = max(n - k.choices.below(int(n) // 3 + 2), 0)
    return f"{offsets.text} < {k.argument(int(reach))}", max(reach, 1)


def offsets(k: Kernel, shape: Shape, farthest: int = FARTHEST) -> Value:
    """Return in-bounds offsets: a tile's strides, and program ids and counters times others."""
    strides = dense_strides(k, shape)
    inside = tile(k, shape, strides)
    text, low, high = inside.text, inside.low, inside.high
    for _ in range(k.choices.weighted({1: 5, 0: 2, 2: 2})):
        known = scalars(k)
        if not known:
            break
        scalar = k.choices.pick(known[::-1])
        stride = k.choices.pick([1, max(count(shape), 1), 3, k.columns, k.rows])
        text = f"{text} + {scalar.text} * {k.argument(stride)}"
        low, high = low + scalar.low * stride, high + scalar.high * stride
    if low < 0:
        text, low, high = f"{text} + {k.argument(int(-low))}", 0, high - low
    if high > farthest:
        text, low, high = f"({text}) % {k.argument(farthest)}", 0, farthest - 1
    return k.integer(text, shape, low, high)


def load(k: Kernel, shape: Shape) -> Value:
    """Load a float tile from an input, or from what the program itself stored."""
    if k.choices.chance(12):
        value = reload(k, shape)
        if value is not None:
            return value
    inputs = k.having("input")
    if inputs and (len(inputs) > 3 or k.choices.chance(60)):
        buffer = k.choices.pick(inputs)
    else:
        buffer = k.buffer("input")
    where = offsets(k, shape)
    pointer = f"{buffer.name} + {where.text}"
    if not k.choices.chance(40):
        buffer.size = max(buffer.size, int(where.high) + 1)
        return k.floating(f"tl.load({pointer}).to(T)", shape, -LARGEST, LARGEST)
    condition, reach = mask(k, where)
    buffer.size = max(buffer.size, int(reach))
    name = k.define(condition, "b", shape, 0, 1, "m").text
    if k.choices.chance(50):
        k.feature("masked load with other")
        other = k.choices.pick(["0.0", "0.75", "-1.25"])
        known = [v for v in k.values if v.kind == "f" and v.shape == shape and v.size < LIMIT]
        if known and k.choices.chance(30):
            k.feature("other from data")
            value = k.choices.pick(known)
            bounds = min(-LARGEST, value.low), max(LARGEST, value.high)
            return k.floating(f"tl.load({pointer}, {name}, other={value.text})", shape, *bounds)
        text = f"tl.load({pointer}, mask={name}, other={other}).to(T)"
        return k.floating(text, shape, -LARGEST, LARGEST)
    # What a mask hides has no value: it may be computed with, and must not be used.
    k.feature("masked load without other")
    value = k.floating(f"tl.load({pointer}, mask={name}).to(T)", shape, -LARGEST, LARGEST)
    before = len(k.values) - 1
    for _ in range(k.choices.below(3)):
        value = unary(k, value)
    hidden = value
    del k.values[before:]
    text = f"tl.where({name}, {hidden.text}, {k.choices.pick(['0.0', '0.5'])})"
    low, high = min(hidden.low, 0.0), max(hidden.high, 0.5)
    return k.floating(text, shape, low, high)


def private_strides(k: Kernel, shape: Shape) -> tuple[tuple[int, ...], int]:
    """Return strides that keep a tile's elements apart, and how far they reach."""
    strides = dense_strides(k, shape)
    reach = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    return strides, reach


def private_offsets(k: Kernel, shape: Shape, strides) -> str:
    """Return the offsets of a tile of which no two elements share a place."""
    terms = []
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        index = f"tl.arange(0, {extent})"
        if k.choices.chance(15):
            index = f"({extent - 1} - {index})"
        term = spread(index, shape, axis)
        terms.append(term if stride == 1 else f"{term} * {k.argument(stride)}")
    return " + ".join(terms) if terms else "0"


def place(k: Kernel, buffer: Buffer, shape: Shape, slot: str, last: int) -> tuple[str, int]:
    """Return the offsets of a tile in the program's share, at a slot up to `last`."""
    strides, reach = private_strides(k, shape)
    inside = private_offsets(k, shape, strides)
    buffer.size = max(buffer.size, (last + 1) * reach)
    base = f"{k.share} * S_{buffer.name}"
    skip = f" + ({slot}) * {reach}" if last else ""
    return k.integer(f"{base}{skip} + {inside}", shape, 0, 10**6).text, reach


def counter(k: Kernel) -> Value | None:
    """Return a counter to choose the slot of a store by, if one is at hand."""
    small = [v for v in scalars(k) if v.low >= 0 and v.high <= 5]
    return k.choices.pick(small[::-1]) if small and k.choices.chance(50) else None


def store(k: Kernel, value: Value) -> None:
    """Store a tile to the program's share of an output or of an updated input."""
    value = scaled(k, value, LIMIT)
    role = "update" if k.choices.chance(20) else "output"
    # A share of each, but of those that programs divide up as tiles.
    present = [b for b in k.having(role) if b.name not in k.tiled]
    full = len(k.having("output", "update")) > 3
    buffer = k.choices.pick(present) if present and (full or k.choices.chance(40)) else (
        k.buffer(role)
    )  # fmt: skip
    k.feature(f"store to {role}")
    at = counter(k)
    slot, last = (at.text, int(at.high)) if at else ("0", 0)
    where, _ = place(k, buffer, value.shape, slot, last)
    masked = k.choices.chance(30)
    condition = ""
    if masked:
        condition = f", mask={mask(k, Value(where, 'i', value.shape, 0, buffer.size - 1))[0]}"
    k.emit(f"tl.store({buffer.name} + {where}, {value.text}{condition})")
    if not masked:
        # The very offsets; they are read again wherever the store has been passed.
        k.written.append((buffer.name, where, value))
    k.values = [v for v in k.values if v.text != where]


def store_state(k: Kernel, state: Value, iteration: str, last: int) -> None:
    """Store what a loop carries, each iteration to a slot of its own."""
    k.feature("stored state")
    buffer = k.buffer("output")
    where, _ = place(k, buffer, state.shape, iteration, last)
    condition = ""
    if k.choices.chance(30):
        condition = f", mask={mask(k, Value(where, 'i', state.shape, 0, buffer.size - 1))[0]}"
    k.emit(f"tl.store({buffer.name} + {where}, {state.text}{condition})")
    k.values = [v for v in k.values if v.text != where]


def reload(k: Kernel, shape: Shape) -> Value | None:
    """Load what the program stored, or what an updated input holds; None if there is nothing."""
    written = [w for w in k.written if w[2].shape == shape]
    if written and k.choices.chance(60):
        k.feature("load of a stored value")
        name, where, value = k.choices.pick(written)
        return k.floating(f"tl.load({name} + {where})", shape, -LIMIT, LIMIT)
    updates = k.having("update")
    if not updates:
        return None
    k.feature("load of an update")
    buffer = k.choices.pick(updates)
    at = counter(k)
    slot, last = (at.text, int(at.high)) if at else ("0", 0)
    where, _ = place(k, buffer, shape, slot, last)
    k.values = [v for v in k.values if v.text != where]
    return k.floating(f"tl.load({buffer.name} + {where})", shape, -LIMIT, LIMIT)


def atomic_add(k: Kernel, value: Value) -> None:
    """Add a tile to places that others may add to as well."""
    k.feature("atomic add")
    value = scaled(k, value, LIMIT)
    present = k.having("sum")
    buffer = k.choices.pick(present) if present and k.choices.chance(60) else k.buffer("sum")
    where = offsets(k, value.shape, 60)
    buffer.size = max(buffer.size, int(where.high) + 1)
    condition = f", mask={mask(k, where)[0]}" if k.choices.chance(30) else ""
    k.emit(f"tl.atomic_add({buffer.name} + {where.text}, {value.text}{condition})")
