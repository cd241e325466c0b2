"""Symmetric results: programs store a tile, and the same tile transposed.

Tiles of any sides: those that cross the diagonal overlap, and what programs store there must agree.
"""

from __future__ import annotations

from .grids import scaled_linearly, smooth
from .products import dot
from .program import LARGEST, Kernel, Value
from .tiled import LIMIT, order


def rows_of(k: Kernel, index: str, mask: str | None, i: str, depth: int, step: str) -> str:
    """Return a load of rows of the matrix, in a tile of some of its columns."""
    name = k.having("input")[0].name
    at = f"{index}[:, None] * {step} + ({i} * {depth} + tl.arange(0, {depth}))[None, :]"
    masked = f", mask={mask}[:, None], other=0.0" if mask else ""
    return f"tl.load({name} + {at}{masked}).to(T)"


def mirrored(k: Kernel) -> None:
    """Write the body of a kernel that computes a product of a matrix and itself transposed."""
    m, n = k.rows, k.columns
    rows = k.choices.pick([2, 3, 1, 4])
    end = max(rows * m - k.choices.below(m), 1)
    columns = -(-end // n)
    trips, depth = k.choices.between(1, 3), 16 if k.on_gpu else k.choices.pick([4, 1, 2, 8])
    inner = trips * depth
    k.feature("square mirrored tiles" if m == n else "mirrored tiles that overlap")
    k.feature("product with itself")
    row, column = order(k, rows, columns)
    skips = k.kind("tiles left out", {"below": 3, "above": 2, "nowhere": 1})
    kept = ""
    if skips != "nowhere":
        low, high = (f"{column} * {n} + {n}", f"{row} * {m}")
        if skips == "above":
            low, high = (f"{row} * {m} + {m}", f"{column} * {n}")
        if k.depth == 1:
            k.emit(f"if {low} <= {high}:")
            k.emit("    return")
        else:
            # Triton has no return in a loop over tiles.
            kept = f" & ({low} > {high})"
    source = k.buffer("input")
    source.size = max(rows * m, columns * n) * inner
    # The same to the compiler, too: with another name, it may be another number.
    step, bound = k.argument(inner), k.argument(end)
    indices, masks = [], []
    for place, block in ((row, m), (column, n)):
        indices.append(k.fresh("k"))
        k.emit(f"{indices[-1]} = {place} * {block} + tl.arange(0, {block})")
        masks.append(k.fresh("m"))
        k.emit(f"{masks[-1]} = {indices[-1]} < {bound}")
    is_masked = k.maybe("mirrored rows with a mask", 60)
    total = k.fresh("v")
    k.emit(f"{total} = tl.zeros([{m}, {n}], T)")
    i = k.fresh("i")
    k.emit(f"for {i} in range({k.argument(trips)}):")
    with k.block():
        factors = [k.fresh("v"), k.fresh("v")]
        loads = [
            rows_of(k, index, mask if is_masked else None, i, depth, step)
            for index, mask in zip(indices, masks, strict=True)
        ]
        # In one line, they have one noise.
        k.emit(f"{', '.join(factors)} = {', '.join(loads)}")
        size = LARGEST**2 * depth
        part = dot(k, factors[0], f"tl.trans({factors[1]})", (m, n), size)
        part = scaled_linearly(k, part, LIMIT)
        k.emit(f"{total} += {part.text}")
    result = smooth(k, Value(total, "f", (m, n), -LIMIT * trips, LIMIT * trips))
    output = k.buffer("raced")
    output.size = end * end
    inside = k.fresh("m")
    k.emit(f"{inside} = {masks[0]}[:, None] & {masks[1]}[None, :]{kept}")
    width = k.argument(end)
    for first, second, value, m in (
        (*indices, result.text, inside),
        (*indices[::-1], f"tl.trans({result.text})", f"tl.trans({inside})"),
    ):
        at = f"{first}[:, None] * {width} + {second}[None, :]"
        k.emit(f"tl.store({output.name} + {at}, {value}, mask={m})")
