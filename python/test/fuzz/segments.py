"""Kernels whose programs load where in a tensor their part begins: packed sequences, segments."""

from __future__ import annotations

from .grids import LIMIT, scaled_linearly, smooth
from .integers import entries
from .program import LARGEST, Kernel, Value


def segment(k: Kernel, number: str, segments: int) -> tuple[str, str, int, int]:
    """Load where a segment starts, and its length; also returns the most rows, and those of all."""
    how = k.choices.weighted({"packed": 4, "apart": 2, "anywhere": 2})
    k.feature(f"segments {how}")
    lengths = [k.choices.below(2 * k.rows + 2) for _ in range(segments)]
    firsts = k.buffer("table")
    start = k.fresh("k")
    k.emit(f"{start} = {entries(k, firsts.name, number)}")
    if how == "packed":
        firsts.numbers = [sum(lengths[:n]) for n in range(segments + 1)]
        length = f"{entries(k, firsts.name, f'{number} + 1')} - {start}"
    else:
        gaps = [k.choices.below(3) for _ in lengths]
        firsts.numbers = [sum(lengths[:n]) + sum(gaps[: n + 1]) for n in range(segments)]
        if how == "anywhere":
            firsts.numbers = [k.choices.below(first + 1) for first in firsts.numbers]
        other = k.buffer("table")
        other.numbers = lengths
        length = entries(k, other.name, number)
    name = k.fresh("k")
    k.emit(f"{name} = {length}")
    ends = [first + n for first, n in zip(firsts.numbers, lengths, strict=False)]
    return start, name, max(lengths), max(ends)


def rows_of(k: Kernel, start: str, first: str, length: str, size: int) -> Value:
    """Load as many rows of a segment as a tile holds, from its row `first` on."""
    buffer = k.buffer("input")
    buffer.size = max(size * k.columns, 1)
    rows = k.fresh("k")
    k.emit(f"{rows} = {first} + tl.arange(0, {k.rows})")
    width = k.argument(k.columns)
    at = f"({start} + {rows}[:, None]) * {width} + tl.arange(0, {k.columns})[None, :]"
    return k.floating(
        f"tl.load({buffer.name} + {at}, mask={rows}[:, None] < {length}, other=0.0).to(T)",
        (k.rows, k.columns), -LARGEST, LARGEST,
    )  # fmt: skip


def keep(k: Kernel, number: str, value: Value) -> None:
    """Store the result of a program."""
    value = scaled_linearly(k, value, LIMIT)
    output = k.buffer("output")
    output.size = k.columns
    at = f"{number} * {k.columns} + tl.arange(0, {k.columns})"
    k.emit(f"tl.store({output.name} + {at}, {value.text})")


def added(k: Kernel, text: str, part) -> Value:
    """Write a loop that adds up rows, which `part` makes of its counter."""
    total = k.define(f"tl.zeros([{k.columns}], T)", "f", (k.columns,), 0.0, 0.0)
    k.values.remove(total)
    i = k.fresh("i")
    k.emit(f"for {i} in {text}:")
    with k.block():
        value = smooth(k, part(i))
        k.emit(f"{total.text} += tl.sum({value.text}, 0)")
    # No more than four iterations of rows of this size.
    bound = 4 * k.rows * LIMIT
    k.values.append(Value(total.text, "f", total.shape, -bound, bound))
    return k.values[-1]


def segmented(k: Kernel) -> None:
    """Write the body of a kernel whose programs have parts of tensors, or share them."""
    segments = k.choices.between(1, 4)
    number = k.define("tl.program_id(0)", "i", (), 0, segments - 1, "pid").text
    start, length, longest, size = segment(k, number, segments)
    if k.choices.chance(40):
        k.feature("walk along a segment")
        k.grid = (segments,)
        end = k.fresh("k")
        k.emit(f"{end} = {start} + {length}")
        text = f"range({start}, {end}, {k.rows})"
        keep(k, number, added(k, text, lambda i: rows_of(k, "0", i, end, size)))
        return
    blocks = max(-(-longest // k.rows), 1)
    k.grid = (segments, blocks)
    block = k.define("tl.program_id(1)", "i", (), 0, blocks - 1, "pid").text
    if k.choices.chance(50):
        k.feature("blocks that a segment does not have")
        k.emit(f"if {block} * {k.rows} >= {length}:")
        k.emit("    return")
    own = smooth(k, rows_of(k, start, f"{block} * {k.rows}", length, size))
    if k.choices.chance(50):
        start, length, _, size = segment(k, number, segments)
    first, end = "0", length
    if k.choices.chance(30):
        k.feature("loop from a place")
        first, start = start, "0"
        end = length = k.integer(f"{first} + {length}", (), 0, size).text
    elif k.choices.chance(30):
        k.feature("causal segments")
        end = f"tl.minimum({length}, ({block} + 1) * {k.rows})"

    def part(i):
        other = smooth(k, rows_of(k, start, i, length, size))
        bound = own.size * other.size
        return k.floating(f"{own.text} * {other.text}", own.shape, -bound, bound)

    text = f"range({first}, {end}, {k.rows})"
    keep(k, f"({number} * {blocks} + {block})", added(k, text, part))
