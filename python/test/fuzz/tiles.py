"""Operands of a shape, made of values of others: views, broadcasts, reductions; and scans."""

from __future__ import annotations

from .expressions import positive, scaled
from .integers import count, reduced, spread
from .lanes import mixable, moved_lanes, reduced_lanes, settled
from .memory import load
from .program import Kernel, Lanes, Value

Shape = tuple[int, ...]


def shapes(k: Kernel) -> list[Shape]:
    """Return the shapes that the kernel's tiles may have."""
    rows, columns = k.rows, k.columns
    return [(columns,), (rows, columns), (rows,), (), (columns, rows), (2, rows, columns)]


def operand(k: Kernel, shape: Shape) -> Value:
    """Return a float of a shape: a recent one, a loaded one, or one of another shape."""
    floats = [v for v in k.values if v.kind == "f"]
    same = [v for v in floats if v.shape == shape]
    how = k.choices.weighted({"same": 10, "converted": 3, "loaded": 2, "integer": 1})
    if how == "integer":
        known = [v for v in k.values if v.kind == "i" and v.shape in (shape, ())]
        if known:
            k.feature("integer to float")
            value = reduced(k, k.choices.pick(known[::-1]), 8)
            low, high = value.low * 0.25, value.high * 0.25
            value = k.floating(f"{value.text}.to(T) * 0.25", value.shape, low, high)
            return converted(k, value, shape)
    if how == "converted" and floats:
        return converted(k, k.choices.pick(floats[::-1][:8]), shape)
    if how == "loaded" or not same:
        return load(k, shape) if k.choices.chance(70) or not floats else converted(
            k, k.choices.pick(floats[::-1][:8]), shape
        )  # fmt: skip
    return k.choices.pick(same[::-1][:6])


def converted(k: Kernel, value: Value, shape: Shape) -> Value:
    """Return a value of a shape made of a value of another."""
    if value.shape == shape:
        return value
    own = value.shape
    x, low, high = value.text, value.low, value.high
    if own == ():
        k.feature("broadcast of a scalar")
        if k.choices.chance(50):
            return k.floating(f"tl.broadcast_to({x}, {list(shape)})", shape, low, high)
        return k.floating(f"{x} + tl.zeros({list(shape)}, T)", shape, low, high)
    if shape == ():
        return reduced_over(k, value, None)
    if len(own) == 2 and shape == own[::-1] and k.choices.chance(60):
        k.feature("trans")
        text = k.choices.pick([f"tl.trans({x})", f"{x}.T", f"tl.permute({x}, (1, 0))"])
        return k.floating(text, shape, low, high, transposed(k, value))
    if count(own) == count(shape):
        k.feature("reshape")
        value = settled(k, value)
        text = f"tl.reshape({value.text}, {list(shape)})"
        return k.floating(text, shape, value.low, value.high)
    if len(own) < len(shape):
        axes = [i for i, extent in enumerate(shape) if extent == own[-1]]
        if len(own) == 1 and axes:
            k.feature("broadcast")
            axis = k.choices.pick(axes)
            lanes = moved_lanes(k, value, {0: axis, None: axis})
            text = f"tl.broadcast_to({spread(x, shape, axis)}, {list(shape)})"
            return k.floating(text, shape, low, high, lanes)
        if len(own) == 2 and shape[1:] == own:
            k.feature("broadcast")
            value = lined(k, value)
            lanes = moved_lanes(k, value, {0: 1, 1: 2})
            text = f"tl.broadcast_to({value.text}[None, :, :], {list(shape)})"
            return k.floating(text, shape, value.low, value.high, lanes)
    axis = k.choices.below(len(own))
    return converted(k, reduced_over(k, value, axis), shape)


def reduced_over(k: Kernel, value: Value, axis: int | None) -> Value:
    """Return a reduction of a value along one axis, or along all of them."""
    if axis is None and len(value.shape) > 1:
        how = k.choices.pick(["axes", "flat"])
        if how == "axes":
            return reduced_over(k, reduced_over(k, value, k.choices.below(len(value.shape))), None)
        value, shape = settled(k, value), (count(value.shape),)
        x = f"tl.reshape({value.text}, {list(shape)})"
        value = k.floating(x, shape, value.low, value.high)
    axis = axis or 0
    value = mixable(k, scaled(k, value, 4.0), axis)
    lanes = reduced_lanes(k, value, axis)
    shape = value.shape[:axis] + value.shape[axis + 1 :]
    n, x, low, high = value.shape[axis], value.text, value.low, value.high
    options = {"sum": 6, "max": 3, "min": 2, "mean": 1, "product": 1, "combine": 3, "pair": 2}
    how = k.kind("reduce", {**options, "argmax": lanes is None})
    if how == "sum":
        return k.floating(f"tl.sum({x}, {axis})", shape, n * min(low, 0), n * max(high, 0), lanes)
    if how == "max" or how == "min":
        return k.floating(f"tl.{how}({x}, {axis})", shape, low, high, lanes)
    if how == "mean":
        return k.floating(f"tl.sum({x}, {axis}) / {n}", shape, low, high, lanes)
    if how == "argmax":
        which = k.choices.pick(["argmax", "argmin"])
        index = k.integer(f"tl.{which}({x}, {axis})", shape, 0, n - 1)
        return k.floating(f"{index.text}.to(T) * 0.1", shape, 0, 0.1 * (n - 1))
    if how == "pair":
        which = k.choices.pick(["max", "min"])
        name, index = k.fresh("v"), k.fresh("k")
        k.emit(f"{name}, {index} = tl.{which}({x}, {axis}, return_indices=True)")
        if lanes is None:
            k.values.append(Value(index, "i", shape, 0, n - 1))
        return named(k, name, shape, low, high, lanes)
    if how == "product":
        small = scaled(k, value, 1.25)
        bound = small.size**n if small.size > 1 else 1.0
        text = f"tl.reduce({small.text}, {axis}, c.multiply)"
        return k.floating(text, shape, -bound, bound, lanes)
    return combined(k, value, axis, shape, lanes, lambda x, f: f"tl.reduce({x}, {axis}, c.{f})")


def named(k: Kernel, name: str, shape: Shape, low: float, high: float, lanes) -> Value:
    """Let later lines use a float variable that a line with several results has defined."""
    value = Value(name, "f", shape, low, high)
    k.values.append(value)
    if lanes is not None:
        k.lanes[name] = lanes
    return value


def transposed(k: Kernel, value: Value) -> Lanes | None:
    """Return the lanes of a matrix's transpose."""
    lanes = k.lanes.get(value.text)
    if lanes is not None and lanes.axis is None:
        name = k.fresh("m")
        k.emit(f"{name} = tl.trans({lanes.mask})")
        return Lanes(name)
    return moved_lanes(k, value, {0: 1, 1: 0})


def lined(k: Kernel, value: Value) -> Value:
    """Return a value of which whole lines count or do not."""
    lanes = k.lanes.get(value.text)
    return settled(k, value) if lanes is not None and lanes.axis is None else value


# Of combiners that are not associative, the compiler has to say so, or be right. What they make of
# different numbers depends on their order, which a GPU chooses.
COMBINERS = {
    **dict.fromkeys(
        ("add", "maximum", "minimum", "log_add_exp", "probabilistic_or", "root_of_squares",
         "linear_recurrence", "complex_product", "soft_maximum", "moments", "larger_pair"), 2,
    ),
    "average": 1, "average of equals": 1, "difference": 1,
}  # fmt: skip


def combined(k: Kernel, value: Value, axis: int, shape: Shape, lanes, write) -> Value:
    """Return what a random combiner makes along an axis, by `write(operands, combiner)`."""
    n, x, low, high = value.shape[axis], value.text, value.low, value.high
    ordered = ["average", "difference"]
    if shape != value.shape:
        # Reductions on a GPU swap sides.
        ordered.append("linear_recurrence")
    left_out = dict.fromkeys(ordered, 0) if k.on_gpu else {}
    how = k.kind("combine", {**COMBINERS, **left_out})

    def single(x: str, name: str, low: float, high: float) -> Value:
        return k.floating(write(x, name), shape, low, high, lanes)

    if how == "add":
        return single(x, how, n * min(low, 0), n * max(high, 0))
    if how in ("maximum", "minimum", "average"):
        return single(x, how, low, high)
    if how == "difference":
        return single(x, how, -n * value.size, n * value.size)
    if how == "average of equals":
        first = f"tl.broadcast_to(tl.sum({x}, {axis}, keep_dims=True) * {1 / n}, {x}.shape)"
        return single(k.floating(first, value.shape, low, high).text, "average", low, high)
    if how == "log_add_exp":
        return single(x, how, low, high + 3.5)
    if how == "probabilistic_or":
        # So that what is left of one is not small beside its rounding.
        small = k.floating(f"0.06 + 0.05 * tl.sin({x})", value.shape, 0.01, 0.11)
        return single(small.text, how, 0.0, 1.0)
    if how == "root_of_squares":
        some = positive(k, value)
        return single(some.text, how, some.low, some.high * n)
    results = [k.fresh("v") for _ in range(3 if how == "moments" else 2)]
    if how == "linear_recurrence" or how == "complex_product":
        other = settled(k, operand(k, value.shape))
        other = scaled(k, other, 1.0 if how == "linear_recurrence" else 0.7)
        first = scaled(k, value, 1.0 if how == "linear_recurrence" else 0.7)
        k.emit(f"{', '.join(results)} = {write(f'({other.text}, {first.text})', how)}")
        bounds = [(-1.0, 1.0), (-float(n), float(n))]
        if how == "complex_product":
            bounds = [(-1.0, 1.0)] * 2
    elif how == "soft_maximum":
        k.emit(f"{', '.join(results)} = {write(f'({x}, {x} * 0.0 + 1.0)', how)}")
        bounds = [(low, high), (1.0, float(n))]
    elif how == "moments":
        triple = f"({x} * 0.0 + 1.0, {x}, {x} * 0.0)"
        k.emit(f"{', '.join(results)} = {write(triple, how)}")
        bounds = [(1.0, float(n)), (low, high), (0.0, n * (high - low) ** 2)]
    else:
        results[1] = k.fresh("k")
        index = f"tl.broadcast_to({spread(f'tl.arange(0, {n})', value.shape, axis)}, {x}.shape)"
        k.emit(f"{', '.join(results)} = {write(f'({x}, {index})', how)}")
        if lanes is None:
            k.values.append(Value(results[1], "i", shape, 0, n - 1))
        return named(k, results[0], shape, low, high, lanes)
    made = [named(k, r, shape, *b, lanes) for r, b in zip(results, bounds, strict=True)]
    return k.choices.pick(made)


def scanned(k: Kernel, value: Value) -> Value:
    """Return a scan of a value along an axis."""
    axis = k.choices.below(len(value.shape))
    value = mixable(k, scaled(k, value, 3.0), axis)
    n, x, shape = value.shape[axis], value.text, value.shape
    reverse = ", reverse=True" if k.choices.chance(40) else ""
    how = k.kind("scan", {"sum": 4, "product": 2, "combine": 5})
    if how == "sum":
        return k.floating(
            f"tl.cumsum({x}, {axis}{reverse})", shape, -n * value.size, n * value.size
        )
    if how == "product":
        small = scaled(k, value, 1.25)
        bound = max(small.size**n, small.size)
        return k.floating(f"tl.cumprod({small.text}, {axis}{reverse})", shape, -bound, bound)
    lanes = k.lanes.get(value.text)
    return combined(
        k, value, axis, shape, lanes,
        lambda x, f: f"tl.associative_scan({x}, {axis}, c.{f}{reverse})",
    )  # fmt: skip
