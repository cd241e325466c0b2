"""Loads, stores and atomic adds, in bounds by construction, and no two programs in conflict."""

from __future__ import annotations

from .expressions import LIMIT, predicate, scaled
from .integers import count, dense_strides, scalars, spread, tile
from .lanes import settled, unseen
from .program import LARGEST, Buffer, Kernel, Lanes, Value

Shape = tuple[int, ...]
# The largest offset of an input's element.
FARTHEST = 250


def mask(k: Kernel, offsets: Value) -> tuple[Lanes, float]:
    """Write a mask of an access; also returns how far it reaches."""
    shape, n = offsets.shape, offsets.high + 1
    known = [v for v in k.values if v.kind == "f" and v.shape == shape]
    tall = shape != ()
    how = k.kind(
        "mask",
        {
            "tail": 4,
            "axis": 2 * tall,
            "rows": 3 * (k.tail is not None and k.tail[1] in shape),
            "data": 2 * bool(known),
            "program": tall,
            "triangle": len(shape) == 2,
            "nothing": 1,
        },
    )
    axis = None
    if how == "rows":
        return Lanes(
            k.tail[0], k.choices.pick([i for i, e in enumerate(shape) if e == k.tail[1]])
        ), n
    if how == "data":
        condition = predicate(k, k.choices.pick(known), k.choices.pick(known))
    elif how == "axis":
        axis = k.choices.below(len(shape))
        extent = k.argument(k.choices.between(0, shape[axis]))
        condition = f"tl.arange(0, {shape[axis]}) < {extent}"
    elif how == "program":
        scalar = k.choices.pick(scalars(k))
        condition = f"({offsets.text} >= 0) & ({scalar.text} > {k.argument(1)})"
    elif how == "triangle":
        rows, columns = (spread(f"tl.arange(0, {e})", shape, i) for i, e in enumerate(shape))
        condition = f"{rows} {k.choices.pick(['>=', '<', '!='])} {columns}"
    elif how == "nothing":
        condition = f"{offsets.text} < 0"
    else:
        n = max(n - k.choices.below(int(n) // 3 + 2), 0)
        condition = f"{offsets.text} < {k.argument(int(n))}"
        n = max(n, 1)
    return Lanes(k.define(condition, "b", shape, 0, 1, "m").text, axis), n


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
    if k.choices.chance(4):
        return at_the_edge(k, shape)
    inputs = [b for b in k.having("input") if not b.lead and not b.hidden]
    if inputs and (len(inputs) > 3 or k.choices.chance(60)):
        buffer = k.choices.pick(inputs)
    else:
        buffer = k.buffer("input")
    where = offsets(k, shape)
    pointer = f"{buffer.name} + {where.text}"
    how = k.kind("load", {"of all": 6, "with other": 2, "of some lanes": 3 * (shape != ())})
    if how == "of all":
        buffer.size = max(buffer.size, int(where.high) + 1)
        return k.floating(f"tl.load({pointer}).to(T)", shape, -LARGEST, LARGEST)
    lanes, reach = mask(k, where)
    if how == "of some lanes":
        buffer.size = max(buffer.size, int(where.high) + 1)
        return unseen(k, pointer, shape, lanes)
    buffer.size = max(buffer.size, int(reach))
    name = k.mask_of(lanes, shape)
    known = [v for v in k.values if v.kind == "f" and v.shape == shape and v.size < LIMIT]
    if known and k.maybe("other from data", 30):
        value = settled(k, k.choices.pick(known))
        bounds = min(-LARGEST, value.low), max(LARGEST, value.high)
        return k.floating(f"tl.load({pointer}, {name}, other={value.text}).to(T)", shape, *bounds)
    other = k.choices.pick(["0.0", "0.75", "-1.25"])
    text = f"tl.load({pointer}, mask={name}, other={other}).to(T)"
    return k.floating(text, shape, -LARGEST, LARGEST)


def at_the_edge(k: Kernel, shape: Shape) -> Value:
    """Load a tile from an input that is a part of memory, of which the kernel reads more."""
    buffer = k.buffer("input")
    # A launch knows these places: where addresses are data, only what is in a tensor may be read.
    strides, buffer.size = private_strides(k, shape)
    inside = private_offsets(k, shape, strides)
    where = k.integer(inside, shape, 0, buffer.size - 1)
    options = {"a view": 2, "before a view": 2, "beyond a tensor": 2 * (shape != ())}
    how = k.kind("edge", options)
    pointer = f"{buffer.name} + {where.text}"
    if how == "beyond a tensor":
        buffer.hidden = k.choices.between(1, buffer.size)
        lanes = Lanes(k.fresh("m"))
        k.emit(f"{lanes.mask} = {where.text} < {k.argument(max(buffer.size - buffer.hidden, 1))}")
        return k.floating(f"tl.load({pointer}).to(T)", shape, -LARGEST, LARGEST, lanes)
    buffer.lead = k.choices.between(1, 5)
    if how == "before a view":
        pointer += f" - {k.argument(k.choices.between(1, buffer.lead))}"
    return k.floating(f"tl.load({pointer}).to(T)", shape, -LARGEST, LARGEST)


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


def own_input(k: Kernel, shape: Shape) -> tuple[str, str]:
    """Return a new input, of one tile that all programs read, and the expression that loads it."""
    source = k.buffer("input")
    source.size = count(shape)
    inside = private_offsets(k, shape, dense_strides(k, shape, padded=False))
    return source.name, f"tl.load({source.name} + {inside}).to(T)"


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


def condition_of(k: Kernel, where: Value, value: Value, masked: bool) -> str:
    """Return the mask of a store: lanes that do not count are left out."""
    masks = []
    lanes = k.lanes.get(value.text)
    if lanes is not None:
        masks.append(k.mask_of(lanes, value.shape))
    if masked:
        masks.append(k.mask_of(mask(k, where)[0], value.shape))
    return f", mask={' & '.join(masks)}" if masks else ""


def put(k: Kernel, buffer: Buffer, where: str, value: Value, masked: bool, again=False) -> str:
    """Store a tile at some offsets, `again` if something is there; return its mask's text."""
    offsets = Value(where, "i", value.shape, 0, buffer.size - 1)
    condition = condition_of(k, offsets, value, masked)
    if again:
        wait_for_threads(k)
    k.emit(f"tl.store({buffer.name} + {where}, {value.text}{condition})")
    k.values = [v for v in k.values if v.text != where]
    return condition


def store(k: Kernel, value: Value) -> None:
    """Store a tile to the program's share of an output or of an updated input."""
    value = scaled(k, value, LIMIT)
    if k.choices.chance(3):
        store_raced(k, value)
        return
    role = k.kind("store to", {"output": 4, "update": 1})
    # A share of each, but of those that programs divide up as tiles.
    present = [b for b in k.having(role) if b.name not in k.tiled]
    full = len(k.having("output", "update")) > 3
    buffer = k.choices.pick(present) if present and (full or k.choices.chance(40)) else (
        k.buffer(role)
    )  # fmt: skip
    at = counter(k)
    slot, last = (at.text, int(at.high)) if at else ("0", 0)
    where, _ = place(k, buffer, value.shape, slot, last)
    if not put(k, buffer, where, value, k.choices.chance(30), again=buffer in present):
        # The very offsets; they are read again wherever the store has been passed.
        k.written.append((buffer.name, where, value))


def store_part(k: Kernel, shape: Shape) -> None:
    """Store some lanes of a tile only, all of which decide about two others."""
    value = settled(k, load(k, shape))
    buffer = k.buffer("output")
    where, _ = place(k, buffer, shape, "0", 0)
    put(k, buffer, where, value, masked=True)
    condition = predicate(k, value, value)
    # Nothing else asks for its lanes.
    k.values = [v for v in k.values if v.text != value.text]
    one, other = settled(k, load(k, shape)), settled(k, load(k, shape))
    low, high = min(one.low, other.low), max(one.high, other.high)
    k.floating(f"tl.where({condition}, {one.text}, {other.text})", shape, low, high)


def store_steady(k: Kernel, value: Value) -> None:
    """Store to an output of its own what has derivative zero, with a history or without one."""
    value, shape = settled(k, value), value.shape
    mask = predicate(k, value, value)
    whole = f"tl.zeros({list(shape)}, T) + "
    without = {
        "mask": f"({mask}).to(T)",
        "count": f"{whole}tl.sum(({mask}).to(T), 0)",
        "place": f"{whole}tl.argmax({value.text}, 0)",
        "selection": f"tl.where({mask}, 1.0, -0.5).to(T)",
        "integer": f"({value.text} * 4).to(tl.int32).to(T)",
    }
    flat = len(shape) == 1
    weights = {"mask": 1, "count": 2 * flat, "place": flat, "selection": 1, "integer": 1}
    how = k.kind("steady", {**weights, "zero": 1, "floor": 1})
    inputs = []
    if how in without:
        text = without[how]
    else:
        source, x = own_input(k, shape)
        text = f"0.0 * {x}" if how == "zero" else f"tl.floor({x})"
        inputs = [source]
    stored = k.floating(text, shape, -LIMIT, LIMIT, None)
    buffer = k.buffer("output")
    # Nothing else is stored there.
    k.tiled.add(buffer.name)
    k.histories[buffer.name] = inputs
    where, _ = place(k, buffer, shape, "0", 0)
    put(k, buffer, where, stored, k.choices.chance(30))


def store_where(k: Kernel, value: Value) -> None:
    """Store the elements of a tile for which a comparison of floats holds."""
    buffer = k.buffer("output")
    where, reach = place(k, buffer, value.shape, "0", 0)
    known = [v for v in k.values if v.kind == "f" and v.shape == value.shape]
    condition = predicate(k, k.choices.pick(known[::-1]), k.choices.pick(known[::-1]))
    name = k.define(condition, "b", value.shape, 0, 1, "m").text
    own = condition_of(k, Value(where, "i", value.shape, 0, reach - 1), value, masked=False)
    masks = f"{own} & {name}" if own else f", mask={name}"
    k.emit(f"tl.store({buffer.name} + {where}, {value.text}{masks})")
    k.values = [v for v in k.values if v.text != where]


def store_raced(k: Kernel, value: Value) -> None:
    """Store a tile where other programs store as well: the same numbers, or others."""
    how = k.kind("race of", {"equal numbers": 1, "different numbers": not k.on_gpu})
    # Only where a launch knows which elements are stored, it can tell that there is a race.
    value = settled(k, value)
    if how == "equal numbers":
        # All programs read the same.
        _, text = own_input(k, value.shape)
        value = k.floating(text, value.shape, -LARGEST, LARGEST)
    buffer = k.buffer("raced")
    strides, buffer.size = private_strides(k, value.shape)
    where = private_offsets(k, value.shape, strides)
    k.emit(f"tl.store({buffer.name} + {where}, {value.text})")


def store_copy(k: Kernel, value: Value, iteration: str = "0", last: int = 0) -> None:
    """Store what the kernel goes on with, in fewer bits maybe, to a tensor that nobody reads."""
    buffer = k.buffer("copy")
    where, _ = place(k, buffer, value.shape, iteration, last)
    put(k, buffer, where, value, masked=False)


def store_state(k: Kernel, state: Value, iteration: str, last: int) -> None:
    """Store what a loop carries, each iteration to a slot of its own."""
    k.feature("stored state")
    buffer = k.buffer("output")
    where, _ = place(k, buffer, state.shape, iteration, last)
    put(k, buffer, where, state, k.choices.chance(30))


def wait_for_threads(k: Kernel) -> None:
    """On a GPU, threads of a program overwrite, and read, what others of it have stored."""
    if k.on_gpu:
        k.emit("tl.debug_barrier()")


def reload(k: Kernel, shape: Shape) -> Value | None:
    """Load what the program stored, or what an updated input holds; None if there is nothing."""
    written = [w for w in k.written if w[2].shape == shape]
    if written and k.choices.chance(60):
        k.feature("load of a stored value")
        name, where, value = k.choices.pick(written)
        wait_for_threads(k)
        return k.floating(f"tl.load({name} + {where}).to(T)", shape, -LIMIT, LIMIT)
    updates = k.having("update")
    if not updates:
        return None
    k.feature("load of an update")
    buffer = k.choices.pick(updates)
    at = counter(k)
    slot, last = (at.text, int(at.high)) if at else ("0", 0)
    where, _ = place(k, buffer, shape, slot, last)
    k.values = [v for v in k.values if v.text != where]
    wait_for_threads(k)
    return k.floating(f"tl.load({buffer.name} + {where}).to(T)", shape, -LIMIT, LIMIT)


def atomic_add(k: Kernel, value: Value) -> None:
    """Add a tile to places that others may add to as well."""
    k.feature("atomic add")
    value = scaled(k, value, LIMIT)
    present = k.having("sum")
    buffer = k.choices.pick(present) if present and k.choices.chance(60) else k.buffer("sum")
    where = offsets(k, value.shape, 60)
    buffer.size = max(buffer.size, int(where.high) + 1)
    condition = condition_of(k, where, value, k.choices.chance(30))
    k.emit(f"tl.atomic_add({buffer.name} + {where.text}, {value.text}{condition})")
