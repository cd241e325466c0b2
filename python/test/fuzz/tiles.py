"""What changes or looks across the shape of a tile: views, reductions, scans, products."""

from __future__ import annotations

from .expressions import LIMIT, binary, positive, scaled, unary
from .integers import arithmetic, count, reduced, spread
from .memory import load
from .program import Kernel, Value

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
    x, low, high = value.text, value.low, value.high
    own = value.shape
    if own == ():
        if k.choices.chance(50):
            return k.floating(f"tl.broadcast_to({x}, {list(shape)})", shape, low, high)
        return k.floating(f"{x} + tl.zeros({list(shape)}, T)", shape, low, high)
    if shape == ():
        return reduced_over(k, value, None)
    if len(own) == 2 and shape == own[::-1] and k.choices.chance(60):
        k.feature("trans")
        text = k.choices.pick([f"tl.trans({x})", f"{x}.T", f"tl.permute({x}, (1, 0))"])
        return k.floating(text, shape, low, high)
    if count(own) == count(shape):
        k.feature("reshape")
        return k.floating(f"tl.reshape({x}, {list(shape)})", shape, low, high)
    if len(own) < len(shape):
        axes = [i for i, extent in enumerate(shape) if extent == own[-1]]
        if len(own) == 1 and axes:
            k.feature("broadcast")
            text = spread(x, shape, k.choices.pick(axes))
            return k.floating(f"tl.broadcast_to({text}, {list(shape)})", shape, low, high)
        if len(own) == 2 and shape[1:] == own:
            k.feature("broadcast")
            text = f"tl.broadcast_to({x}[None, :, :], {list(shape)})"
            return k.floating(text, shape, low, high)
    axis = k.choices.below(len(own))
    return converted(k, reduced_over(k, value, axis), shape)


def reduced_over(k: Kernel, value: Value, axis: int | None) -> Value:
    """Return a reduction of a value along one axis, or along all of them."""
    if axis is None and len(value.shape) > 1:
        how = k.choices.pick(["axes", "flat"])
        if how == "axes":
            return reduced_over(k, reduced_over(k, value, k.choices.below(len(value.shape))), None)
        shape = (count(value.shape),)
        x = f"tl.reshape({value.text}, {list(shape)})"
        value = k.floating(x, shape, value.low, value.high)
    axis = axis or 0
    value = scaled(k, value, 4.0)
    shape = value.shape[:axis] + value.shape[axis + 1 :]
    n, x, low, high = value.shape[axis], value.text, value.low, value.high
    how = k.choices.weighted(
        {
            "sum": 6,
            "max": 3,
            "min": 2,
            "mean": 1,
            "product": 1,
            "combine": 3,
            "argmax": 1,
            "pair": 2,
        }
    )
    k.feature(f"reduce {how}")
    if how == "sum":
        return k.floating(f"tl.sum({x}, {axis})", shape, n * min(low, 0), n * max(high, 0))
    if how == "max" or how == "min":
        return k.floating(f"tl.{how}({x}, {axis})", shape, low, high)
    if how == "mean":
        return k.floating(f"tl.sum({x}, {axis}) / {n}", shape, low, high)
    if how == "argmax":
        which = k.choices.pick(["argmax", "argmin"])
        index = k.integer(f"tl.{which}({x}, {axis})", shape, 0, n - 1)
        return k.floating(f"{index.text}.to(T) * 0.1", shape, 0, 0.1 * (n - 1))
    if how == "pair":
        which = k.choices.pick(["max", "min"])
        name, index = k.fresh("v"), k.fresh("k")
        k.emit(f"{name}, {index} = tl.{which}({x}, {axis}, return_indices=True)")
        k.values.append(Value(index, "i", shape, 0, n - 1))
        k.values.append(Value(name, "f", shape, low, high))
        return k.values[-1]
    if how == "product":
        small = scaled(k, value, 1.25)
        bound = small.size**n if small.size > 1 else 1.0
        return k.floating(f"tl.reduce({small.text}, {axis}, c.multiply)", shape, -bound, bound)
    return combined(k, value, axis, shape, lambda x, f: f"tl.reduce({x}, {axis}, c.{f})")


def combined(k: Kernel, value: Value, axis: int, shape: Shape, write) -> Value:
    """Return what a random combiner makes along an axis, by `write(operands, combiner)`."""
    n, x, low, high = value.shape[axis], value.text, value.low, value.high
    how = k.choices.pick(["add", "maximum", "minimum", "log_add_exp", "probabilistic_or",
                          "root_of_squares", "linear_recurrence", "complex_product",
                          "soft_maximum", "moments", "larger_pair"])  # fmt: skip
    k.feature(f"combine {how}")
    if how == "add":
        return k.floating(write(x, how), shape, n * min(low, 0), n * max(high, 0))
    if how in ("maximum", "minimum"):
        return k.floating(write(x, how), shape, low, high)
    if how == "log_add_exp":
        return k.floating(write(x, how), shape, low, high + 3.5)
    if how == "probabilistic_or":
        small = k.floating(f"0.5 + 0.45 * tl.sin({x})", value.shape, 0.05, 0.95)
        return k.floating(write(small.text, how), shape, 0.0, 1.0)
    if how == "root_of_squares":
        some = positive(k, value)
        return k.floating(write(some.text, how), shape, some.low, some.high * n)
    results = [k.fresh("v") for _ in range(3 if how == "moments" else 2)]
    if how == "linear_recurrence" or how == "complex_product":
        other = scaled(k, operand(k, value.shape), 1.0 if how == "linear_recurrence" else 0.7)
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
        index = f"tl.broadcast_to({spread(f'tl.arange(0, {n})', value.shape, axis)}, {x}.shape)"
        k.emit(f"{', '.join(results)} = {write(f'({x}, {index})', how)}")
        k.values.append(Value(results.pop(), "i", shape, 0, n - 1))
        bounds = [(low, high)]
    made = [Value(r, "f", shape, *b) for r, b in zip(results, bounds, strict=True)]
    k.values += made
    return k.choices.pick(made)


def scanned(k: Kernel, value: Value) -> Value:
    """Return a scan of a value along an axis."""
    axis = k.choices.below(len(value.shape))
    value = scaled(k, value, 3.0)
    n, x, shape = value.shape[axis], value.text, value.shape
    reverse = ", reverse=True" if k.choices.chance(40) else ""
    how = k.choices.weighted({"sum": 4, "product": 2, "combine": 5})
    k.feature(f"scan {how}")
    if how == "sum":
        return k.floating(
            f"tl.cumsum({x}, {axis}{reverse})", shape, -n * value.size, n * value.size
        )
    if how == "product":
        small = scaled(k, value, 1.25)
        bound = max(small.size**n, small.size)
        return k.floating(f"tl.cumprod({small.text}, {axis}{reverse})", shape, -bound, bound)
    return combined(
        k, value, axis, shape, lambda x, f: f"tl.associative_scan({x}, {axis}, c.{f}{reverse})"
    )


def product(k: Kernel) -> Value:
    """Return a matrix product, two-dimensional or batched, perhaps added to something."""
    rows, columns = k.rows, k.columns
    batch = (2,) if k.choices.chance(25) else ()
    a = scaled(k, operand(k, (*batch, rows, columns)), 2.0)
    if batch:
        text = f"tl.permute({scaled(k, operand(k, a.shape), 2.0).text}, (0, 2, 1))"
    else:
        text = scaled(k, operand(k, (columns, rows)), 2.0).text
    shape = (*batch, rows, rows)
    bound = 4.0 * columns
    k.feature("dot batched" if batch else "dot")
    if k.choices.chance(30):
        start = scaled(k, k.floating(f"tl.dot({a.text}, {text})", shape, -bound, bound), 2.0)
        again = a.text if rows == columns else None
        if again:
            text = f"tl.dot({again}, {start.text}, acc={start.text}, out_dtype=T)"
            return k.floating(text, shape, -2 - bound, 2 + bound)
        return start
    return k.floating(f"tl.dot({a.text}, {text})", shape, -bound, bound)


def rearranged(k: Kernel, value: Value) -> Value:
    """Return the same elements in another order, some perhaps repeated."""
    x, shape, low, high = value.text, value.shape, value.low, value.high
    axis = k.choices.below(len(shape))
    n = shape[axis]
    how = k.choices.pick(["flip", "gather", "join", "interleave", "swap", "permute"])
    k.feature(how)
    if how == "flip":
        return k.floating(f"tl.flip({x}, {axis})", shape, low, high)
    if how == "gather":
        index = reduced(k, arithmetic(k, k.integer(f"tl.arange(0, {n})", (n,), 0, n - 1)), n - 1)
        text = f"tl.broadcast_to({spread(index.text, shape, axis)}, {x}.shape)"
        return k.floating(f"tl.gather({x}, {text}, {axis})", shape, low, high)
    if how == "permute" and len(shape) == 3:
        swapped = k.floating(f"tl.permute({x}, (2, 0, 1))", (shape[2], *shape[:2]), low, high)
        return k.floating(f"tl.reshape({swapped.text}, {list(shape)})", shape, low, high)
    other = operand(k, shape)
    bounds = min(low, other.low), max(high, other.high)
    if how == "join" or len(shape) > 2 or shape[-1] < 2:
        joined = k.floating(f"tl.join({x}, {other.text})", (*shape, 2), *bounds)
        some = unary(k, joined)
        first, second = k.fresh("v"), k.fresh("v")
        k.emit(f"{first}, {second} = tl.split({some.text})")
        k.values += [Value(name, "f", shape, some.low, some.high) for name in (first, second)]
        return k.values[-1]
    if how == "interleave":
        doubled = (*shape[:-1], 2 * shape[-1])
        both = k.floating(f"tl.interleave({x}, {other.text})", doubled, *bounds)
        return converted(k, both, shape)
    halves = (*shape[:-1], shape[-1] // 2, 2)
    first, second = k.fresh("v"), k.fresh("v")
    k.emit(f"{first}, {second} = tl.split(tl.reshape({x}, {list(halves)}))")
    return k.floating(f"tl.interleave({second}, {first})", shape, low, high)


def statistic(k: Kernel, value: Value) -> Value:
    """Return a value minus, or divided by, something along an axis: a kind of normalisation."""
    axis = k.choices.below(len(value.shape))
    value = scaled(k, value, 3.0)
    x, n, shape = value.text, value.shape[axis], value.shape
    how = k.choices.pick(["mean", "maximum", "softmax", "norm", "logsumexp", "minimum"])
    k.feature(f"normalisation {how}")
    along = f"{axis}, keep_dims=True"
    if how == "mean":
        return k.floating(f"{x} - tl.sum({x}, {along}) / {n}", shape, -6.0, 6.0)
    if how in ("maximum", "minimum"):
        return k.floating(f"{x} - tl.{how[:3]}({x}, {along})", shape, -6.0, 6.0)
    if how == "norm":
        return k.floating(f"{x} / c.norm({x}, {axis})", shape, -1.0, 1.0)
    top = k.define(f"tl.max({x}, {along})", "f", (*shape[:axis], 1, *shape[axis + 1 :]), -3, 3)
    k.values.remove(top)
    e = k.floating(f"tl.exp({x} - {top.text})", shape, 0.0, 1.0)
    if how == "softmax":
        return k.floating(f"{e.text} / tl.sum({e.text}, {along})", shape, 0.0, 1.0)
    text = f"{x} - tl.log(tl.sum({e.text}, {along})) - {top.text}"
    return k.floating(text, shape, -10.0, 0.0)


def expression(k: Kernel, shape: Shape) -> Value:
    """Define a float of a shape by one random operation or a few."""
    tall = shape != ()
    how = k.choices.weighted(
        {
            "binary": 10,
            "unary": 8,
            "load": 3,
            "scan": 2 * tall,
            "rearranged": 2 * tall,
            "statistic": 2 * tall,
            "dot": 1,
        }
    )
    if how == "load":
        return load(k, shape)
    if how == "dot":
        return converted(k, scaled(k, product(k), LIMIT), shape)
    value = operand(k, shape)
    if how == "scan":
        return scanned(k, value)
    if how == "rearranged":
        return rearranged(k, value)
    if how == "statistic":
        return statistic(k, value)
    if how == "unary":
        return unary(k, value)
    other = () if k.choices.chance(20) else shape
    return binary(k, value, operand(k, other))
