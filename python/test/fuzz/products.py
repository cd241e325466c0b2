"""Matrix products, of any axes, and the decays between rows that they are taken of."""

from __future__ import annotations

from .expressions import LIMIT, scaled
from .integers import scalars
from .lanes import ANYTHING, mixable
from .memory import store_where
from .program import Kernel, Lanes, Value
from .tiles import operand

# The shortest axis that a product may sum over on a GPU.
SHORTEST = 16


def dot(k: Kernel, left: str, right: str, shape, bound: float, lanes=None, added="") -> Value:
    """Write a product of what two expressions hold."""
    how = k.kind("product of", {"T": 4, "M": 3 * (not added), "A": not added})
    names = [text if text.isidentifier() else k.fresh("v") for text in (left, right)]
    for name, text in zip(names, (left, right), strict=True):
        if name != text:
            k.emit(f"{name} = {text}")
    if how != "T":
        # Tensor cores take operands as they are in memory.
        names = [f"{name}.to({how})" for name in names]
    left, right = names
    text = f"tl.dot({left}, {right}{added}, input_precision=P).to(T)"
    return k.floating(text, shape, -bound, bound, lanes)


def product(k: Kernel) -> Value:
    """Return a matrix product, two-dimensional or batched, perhaps added to something."""
    sizes = [k.rows, k.columns, 1, 2, 4, 8]
    m, n = k.choices.pick(sizes), k.choices.pick(sizes)
    inner = k.choices.pick([16, 32] if k.on_gpu else [k.columns, 1, 2, 4, 8, 16])
    for name, extent in (("M", m), ("N", n), ("K", inner)):
        if extent < SHORTEST:
            k.feature(f"product with {name} of {extent}")
    batch = (2,) if k.choices.chance(25) else ()
    if batch:
        k.feature("batched product")
    rank = len(batch)
    a = mixable(k, scaled(k, operand(k, (*batch, m, inner)), 2.0), rank + 1)
    transposed = k.choices.chance(50)
    shape = (*batch, n, inner) if transposed else (*batch, inner, n)
    b = mixable(k, scaled(k, operand(k, shape), 2.0), rank + 1 if transposed else rank)
    text, lanes = b.text, k.lanes.get(b.text)
    if transposed:
        text = f"tl.permute({b.text}, {(*range(rank), rank + 1, rank)})"
        lanes = lanes and Lanes(lanes.mask, lanes.axis + (lanes.axis == rank))
    shape = (*batch, m, n)
    lanes = k.common([k.lanes.get(a.text), lanes], shape)
    bound, added = 4.0 * inner, ""
    if k.maybe("product added to another", 25):
        start = chosen(k, scaled(k, operand(k, shape), 2.0))
        lanes = k.common([lanes, k.lanes.get(start.text)], shape)
        added, bound = f", acc={start.text}, out_dtype=T", bound + start.size
    result = dot(k, a.text, text, shape, bound, lanes, added)
    if k.maybe("product stored by its values", 25):
        store_where(k, scaled(k, result, LIMIT))
    return result


def chosen(k: Kernel, start: Value) -> Value:
    """Return what a product is added to: a tile, or zero where a number says so."""
    known = scalars(k)
    if not known or not k.maybe("summand chosen by a number", 40):
        return start
    number = k.choices.pick(known[::-1])
    text = f"tl.where({number.text} > {k.argument(0)}, {start.text}, 0.0)"
    low, high = min(start.low, 0.0), max(start.high, 0.0)
    return k.floating(text, start.shape, low, high)


def decay(k: Kernel) -> Value:
    """Return a product of decays between rows, e^(a - b) of each row and those before it."""
    n = k.choices.pick([16, 32] if k.on_gpu else [8, 4, 16])
    how = k.kind("decay in rows", {"all": 1, "of zero": 2, "of anything": 3})
    end = n if how == "all" else k.choices.between(1, n)
    rows, columns = f"tl.arange(0, {n})[:, None]", f"tl.arange(0, {n})[None, :]"
    mask = k.fresh("m")
    k.emit(f"{mask} = tl.arange(0, {n}) < {k.argument(end)}")
    source = k.buffer("input")
    source.size = n
    other = {"all": "0.0", "of zero": "0.0"}.get(how) or k.kind("lanes hold", ANYTHING)
    loaded = f", mask={mask}, other={other}"
    if how == "of anything" and k.choices.chance(40):
        loaded = ""
    step = f"tl.load({source.name} + tl.arange(0, {n}){loaded})"
    # Far below zero, so that a row of zeros is too far above for an exponential.
    sums = k.floating(f"{step}.to(T) * 0.5 - 800.0", (n,), -801.0, -799.0, Lanes(mask, 0))
    if how == "of zero":
        text = f"tl.where({mask}, {sums.text}, 0.0)"
        sums = k.floating(text, (n,), -801.0, 0.0, Lanes(mask, 0))
    k.values = k.values[:-1] if how != "of zero" else k.values[:-2]
    a = sums.text
    inside = f"tl.where({rows} >= {columns}, tl.exp({a}[:, None] - {a}[None, :]), 0.0)"
    shape = (n, n)
    weights = k.floating(inside, shape, 0.0, 4.5, Lanes(mask, 0))
    k.values.remove(weights)
    width = k.choices.pick([k.columns, 1, 2, 4])
    right = mixable(k, scaled(k, operand(k, (n, width)), 2.0), 0)
    lanes = k.common([Lanes(mask, 0), k.lanes.get(right.text)], (n, width))
    return dot(k, weights.text, right.text, (n, width), 9.0 * n, lanes)
