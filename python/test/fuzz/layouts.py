"""The elements of a tile in another order: what joins, splits, permutes and sorts them."""

from __future__ import annotations

from .expressions import apply, scaled, unary
from .integers import arithmetic, count, reduced, spread
from .lanes import mixable, settled
from .program import Kernel, Value
from .tiles import converted, lined, operand, reduced_over

Shape = tuple[int, ...]


def flipped(k: Kernel, value: Value) -> Value:
    # Triton does not flip an axis of one element.
    axes = [axis for axis, n in enumerate(value.shape) if n > 1]
    if not axes:
        return gathered(k, value)
    axis = k.choices.pick(axes)
    value = mixable(k, value, axis)
    return k.floating(f"tl.flip({value.text}, {axis})", value.shape, value.low, value.high)


def gathered(k: Kernel, value: Value) -> Value:
    axis = k.choices.below(len(value.shape))
    value, n = mixable(k, value, axis), value.shape[axis]
    index = reduced(k, arithmetic(k, k.integer(f"tl.arange(0, {n})", (n,), 0, n - 1)), n - 1)
    places = f"tl.broadcast_to({spread(index.text, value.shape, axis)}, {value.text}.shape)"
    text = f"tl.gather({value.text}, {places}, {axis})"
    return k.floating(text, value.shape, value.low, value.high)


def sorted_(k: Kernel, value: Value) -> Value:
    """Sort along the last axis, or take the largest ones of it and repeat them."""
    value = mixable(k, value, len(value.shape) - 1)
    order = k.choices.pick(["", ", descending=True"])
    text = f"tl.sort({value.text}{order})"
    return k.floating(text, value.shape, value.low, value.high)


def exchanged(k: Kernel, value: Value) -> Value:
    """Put neighbours in order by an exclusive or of their bits."""
    if value.shape[-1] < 2:
        return flipped(k, value)
    value = mixable(k, value, len(value.shape) - 1)
    return k.floating(f"c.exchanged_by_bits({value.text})", value.shape, value.low, value.high)


def halves(k: Kernel, pair: str, shape: Shape, low: float, high: float) -> tuple[Value, Value]:
    """Split a tile whose last axis has two elements."""
    first, second = k.fresh("v"), k.fresh("v")
    k.emit(f"{first}, {second} = tl.split({pair})")
    k.values += [Value(name, "f", shape, low, high) for name in (first, second)]
    return k.values[-2], k.values[-1]


def both(k: Kernel, first: Value, second: Value) -> Value:
    """Return one of two values, or their product."""
    if k.choices.chance(50):
        return k.choices.pick([first, second])
    a, b = scaled(k, first, 3.0), scaled(k, second, 3.0)
    return k.floating(f"{a.text} * {b.text}", a.shape, -a.size * b.size, a.size * b.size)


def joined(k: Kernel, value: Value) -> Value:
    value = lined(k, value)
    other = settled(k, operand(k, value.shape))
    low, high = min(value.low, other.low), max(value.high, other.high)
    lanes = k.lanes.get(value.text)
    text = f"tl.join({value.text}, {other.text})"
    pair = k.floating(text, (*value.shape, 2), low, high, lanes)
    if k.maybe("join along the first axis", 25) and lanes is None:
        axes = (len(value.shape), *range(len(value.shape)))
        moved = f"tl.permute({pair.text}, {axes})"
        pair = k.floating(moved, (2, *value.shape), low, high)
        return converted(k, pair, value.shape)
    some = settled(k, unary(k, pair))
    return both(k, *halves(k, some.text, value.shape, some.low, some.high))


def interleaved(k: Kernel, value: Value) -> Value:
    value, other = settled(k, value), settled(k, operand(k, value.shape))
    doubled = (*value.shape[:-1], 2 * value.shape[-1])
    low, high = min(value.low, other.low), max(value.high, other.high)
    text = f"tl.interleave({value.text}, {other.text})"
    return converted(k, k.floating(text, doubled, low, high), value.shape)


def permuted_pairs(k: Kernel, value: Value) -> Value:
    """Interleave two tiles and take them apart by other pairs, as rotary embeddings do."""
    value, other = settled(k, value), settled(k, operand(k, value.shape))
    low, high = min(value.low, other.low), max(value.high, other.high)
    *outer, n = value.shape
    text = f"tl.interleave({value.text}, {other.text})"
    line = k.floating(text, (*outer, 2 * n), low, high)
    k.values.remove(line)
    rank = len(outer)
    axes = (*range(rank), rank + 1, rank)
    pairs = f"tl.permute(tl.reshape({line.text}, {[*outer, 2, n]}), {axes})"
    return both(k, *halves(k, pairs, value.shape, low, high))


def swapped(k: Kernel, value: Value) -> Value:
    value = settled(k, value)
    shape = value.shape
    if shape[-1] < 2:
        return flipped(k, value)
    pairs = (*shape[:-1], shape[-1] // 2, 2)
    text = f"tl.reshape({value.text}, {list(pairs)})"
    first, second = halves(k, text, pairs[:-1], value.low, value.high)
    text = f"tl.interleave({second.text}, {first.text})"
    return k.floating(text, shape, value.low, value.high)


def permuted(k: Kernel, value: Value) -> Value:
    value = settled(k, value)
    shape = value.shape
    axes = {1: [(0,)], 2: [(1, 0)], 3: [(2, 0, 1), (1, 2, 0), (0, 2, 1), (2, 1, 0), (1, 0, 2)]}
    order = k.choices.pick(axes[len(shape)])
    text = f"tl.permute({value.text}, {order})"
    moved = k.floating(text, tuple(shape[i] for i in order), value.low, value.high)
    if k.choices.chance(50):
        moved = settled(k, unary(k, moved))
    return k.floating(f"tl.reshape({moved.text}, {list(shape)})", shape, moved.low, moved.high)


def reshaped(k: Kernel, value: Value) -> Value:
    """Reshape, combine with a sum along an axis, and reshape back."""
    value = scaled(k, settled(k, value), 3.0)
    n = count(value.shape)
    width = k.choices.pick([e for e in (2, 4, 8, 1, 16) if e <= n])
    shape = (n // width, width)
    text = f"tl.reshape({value.text}, {list(shape)})"
    matrix = k.floating(text, shape, value.low, value.high)
    axis = k.choices.below(2)
    total = f"tl.sum({matrix.text}, {axis}, keep_dims=True)"
    bound = value.size**2 * shape[axis]
    product = k.floating(f"{matrix.text} * {total}", shape, -bound, bound)
    product = scaled(k, product, 3.0)
    text = f"tl.reshape({product.text}, {list(value.shape)})"
    return k.floating(text, value.shape, product.low, product.high)


def concatenated(k: Kernel, value: Value) -> Value:
    """Concatenate vectors, whose elements come in any order, and reduce them."""
    value = settled(k, value)
    n = count(value.shape)
    text = value.text if len(value.shape) == 1 else f"tl.ravel({value.text})"
    first = k.floating(f"{text} * 1.0", (n,), value.low, value.high)
    second = settled(k, operand(k, (n,)))
    low, high = min(first.low, second.low), max(first.high, second.high)
    text = f"tl.cat({first.text}, {second.text}, can_reorder=True)"
    line = k.floating(text, (2 * n,), low, high)
    some = scaled(k, apply(k, k.choices.pick(["square", "sin", "exp"]), line), 3.0)
    k.values = [v for v in k.values if v.shape != (2 * n,)]
    total = f"tl.{k.choices.pick(['sum', 'max', 'min'])}({some.text}, 0)"
    scalar = k.floating(total, (), -2 * n * some.size, 2 * n * some.size)
    return converted(k, scaled(k, scalar, 3.0), value.shape)


def broadcast_back(k: Kernel, value: Value) -> Value:
    """Reduce to a number, or along an axis, and broadcast what is left."""
    axis = None if k.choices.chance(50) else k.choices.below(len(value.shape))
    left = reduced_over(k, value, axis)
    return converted(k, left, value.shape)


LAYOUTS = {
    "flip": flipped,
    "gather": gathered,
    "join": joined,
    "interleave": interleaved,
    "permuted pairs": permuted_pairs,
    "swapped pairs": swapped,
    "permute": permuted,
    "reshape": reshaped,
    "cat": concatenated,
    "sort": sorted_,
    "exchange by bits": exchanged,
    "broadcast back": broadcast_back,
}


def rearranged(k: Kernel, value: Value) -> Value:
    """Return a tile of the same shape made of a tile's elements, some perhaps repeated."""
    return LAYOUTS[k.kind("layout", dict.fromkeys(LAYOUTS, 1))](k, value)
