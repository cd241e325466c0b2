"""Products of matrices in tiles whose operands are not masked where they are loaded.

Rows past the end are loaded and thrown away: only the store has a mask. Their gradient is zero, and
its place is beyond the tensor's. Programs go through the tiles in many orders.
"""

from __future__ import annotations

from .grids import scaled_linearly, smooth, swizzle
from .integers import first_id
from .lanes import fitting
from .products import dot
from .program import LARGEST, Buffer, Kernel, Lanes, Value

LIMIT = 3.0
# Elements from row to row: far apart, what is out of place is far away.
FAR = 4096


def order(k: Kernel, rows: int, columns: int) -> tuple[str, str]:
    """Write which tile a program has; return its row and column."""
    how = k.kind(
        "tiles in order",
        {"of rows": 2, "of columns": 1, "of groups": 3, "of swizzle2d": 2, "of a snake": 2,
         "of axes": 1},
    )  # fmt: skip
    if how == "of axes":
        k.grid = (rows, columns)
        column = k.define("tl.program_id(1)", "i", (), 0, columns - 1, "pid")
        return first_id(k).text, column.text
    k.grid = (rows * columns,)
    p, width, height = first_id(k).text, k.argument(columns), k.argument(rows)
    if how == "of groups":
        row, column = swizzle(k, p, rows, columns)
        return row.text, column.text
    if how == "of columns":
        texts = f"{p} % {height}", f"{p} // {height}"
    else:
        texts = f"{p} // {width}", f"{p} % {width}"
    row = k.integer(texts[0], (), 0, rows - 1).text
    column = k.integer(texts[1], (), 0, columns - 1).text
    if how == "of swizzle2d":
        first, second = k.fresh("k"), k.fresh("k")
        k.emit(f"{first}, {second} = tl.swizzle2d({row}, {column}, {height}, {width}, 2)")
        k.values += [Value(first, "i", (), 0, rows - 1), Value(second, "i", (), 0, columns - 1)]
        return first, second
    if how == "of a snake":
        text = f"tl.where({row} % 2 == 0, {column}, {width} - 1 - {column})"
        column = k.integer(text, (), 0, columns - 1).text
    return row, column


class Operand:
    """A matrix, a row for each row (or column) of the product, in tiles of `block` by `depth`."""

    def __init__(self, k: Kernel, buffer: Buffer, index: str, mask: str | None, step: int):
        self.k, self.buffer, self.index, self.mask, self.step = k, buffer, index, mask, step

    def load(self, i: str, block: int, depth: int, lanes: Lanes, transposed: bool) -> Value:
        """Load the tile of an iteration; its rows are along the second axis if transposed."""
        k = self.k
        rows, inner = ("[None, :]", "[:, None]") if transposed else ("[:, None]", "[None, :]")
        at = f"{self.index}{rows} * {k.argument(self.step)}"
        at += f" + ({i} * {depth} + tl.arange(0, {depth})){inner}"
        masked = f", mask={self.mask}{rows}, other=0.0" if self.mask else ""
        shape = (depth, block) if transposed else (block, depth)
        text = f"tl.load({self.buffer.name} + {at}{masked}).to(T)"
        own = None if self.mask else Lanes(lanes.mask, int(transposed))
        return k.floating(text, shape, -LARGEST, LARGEST, own)


def operand(k: Kernel, index: str, mask: str, tiles: int, block: int, end: int, inner: int):
    """Return an operand of which `end` rows are there, perhaps masked where they are loaded."""
    step = inner + k.choices.pick([0, 0, 1, FAR])
    buffer = k.buffer("input")
    k.tiled.add(buffer.name)
    buffer.size = (tiles * block - 1) * step + inner
    is_masked = not k.maybe("rows without a mask", 70)
    # Where the tensor ends with its last row, or with what is between two rows.
    last = (end - 1) * step + inner + k.choices.pick([0, step - inner]) * (end < tiles * block)
    buffer.hidden = max(buffer.size - last, 0)
    return Operand(k, buffer, index, mask if is_masked else None, step)


def tiled(k: Kernel) -> None:
    """Write the body of a kernel that computes a product, or one of a matrix and itself."""
    rows, columns = k.choices.pick([2, 3, 1, 4]), k.choices.pick([2, 1, 3])
    trips, depth = k.choices.between(1, 3), 16 if k.on_gpu else k.choices.pick([4, 1, 2, 8])
    row, column = order(k, rows, columns)
    m, n = k.rows, k.columns
    is_own = k.maybe("product with itself", 30)
    ends, masks, indices = [], [], []
    for place, tiles, block in ((row, rows, m), (column, columns, n)):
        # Both are rows of the same matrix then.
        end = ends[0] if is_own and ends else tiles * block - k.choices.below(block)
        ends.append(min(end, tiles * block))
        text = f"{place} * {block} + tl.arange(0, {block})"
        indices.append(k.integer(text, (block,), 0, tiles * block - 1).text)
        masks.append(k.fresh("m"))
        k.emit(f"{masks[-1]} = {indices[-1]} < {k.argument(ends[-1])}")
    a = operand(k, indices[0], masks[0], rows, m, ends[0], trips * depth)
    if is_own:
        b = Operand(k, a.buffer, indices[1], None if a.mask is None else masks[1], a.step)
        # It has as many rows as either of them reads.
        reach = max(rows * m, columns * n) * a.step
        a.buffer.hidden += max(reach - a.buffer.size, 0)
        a.buffer.size = max(reach, a.buffer.size)
    else:
        b = operand(k, indices[1], masks[1], columns, n, ends[1], trips * depth)
    shape = (m, n)
    both = k.fresh("m")
    k.emit(f"{both} = {masks[0]}[:, None] & {masks[1]}[None, :]")
    lanes = Lanes(both)
    total = k.floating(f"tl.zeros([{m}, {n}], T)", shape, 0.0, 0.0, lanes)
    k.values.remove(total)
    i = k.fresh("i")
    k.emit(f"for {i} in range({k.argument(trips)}):")
    with k.block():
        x = smooth(k, a.load(i, m, depth, Lanes(masks[0]), False))
        y = smooth(k, b.load(i, n, depth, Lanes(masks[1]), True))
        part = dot(k, x.text, y.text, shape, x.size * y.size * depth, lanes)
        part = fitting(k, scaled_linearly(k, part, LIMIT), lanes)
        k.emit(f"{total.text} += {part.text}")
    value = Value(total.text, "f", shape, -LIMIT * trips, LIMIT * trips)
    k.values.append(value)
    value = smooth(k, value)
    output = k.buffer("output")
    k.tiled.add(output.name)
    output.size = m * n
    at = f"{indices[0]}[:, None] * {k.argument(columns * n)} + {indices[1]}[None, :]"
    k.emit(f"tl.store({output.name} + {at}, {value.text}, mask={both})")
