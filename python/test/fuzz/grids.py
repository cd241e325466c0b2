"""What the programs of a grid share: weights, and loops over tiles that all of them read.

Gradients of what is shared meet in memory, unless the compiler finds another schedule: loop and
grid interchanged, or few programs that keep sums. A kernel of this kind is smooth, so that it can
be checked in half precision too.
"""

from __future__ import annotations

from dataclasses import dataclass

from .expressions import apply
from .integers import count, first_id, spread
from .lanes import fitting, mixable, settled, tail, unseen
from .memory import condition_of, store, store_copy
from .products import dot
from .program import LARGEST, Kernel, Lanes, Value
from .softmax import OnlineSoftmax, hidden

Shape = tuple[int, ...]
SMOOTH = ("sin", "neg", "square", "exp", "cos", "sigmoid", "tanh", "silu", "erf")
# What a loop adds up stays below TRIPS times this.
LIMIT = 3.0
TRIPS = 4


@dataclass
class Grid:
    """Digits of the program's id, and how many values each has."""

    row: Value
    column: Value
    rows: int
    columns: int


def digits(k: Kernel) -> Grid:
    """Choose a grid of rows and columns, and how a program finds its own."""
    rows, columns = k.choices.pick([2, 3, 4]), k.choices.pick([1, 2, 3])
    how = k.kind("grid", {"axes": 3, "digits": 3, "swapped": 1, "swizzle": 2})
    if how == "axes":
        k.grid = (rows, columns)
        row = first_id(k)
        column = k.define("tl.program_id(1)", "i", (), 0, columns - 1, "pid")
    else:
        k.grid = (rows * columns,)
        p = first_id(k).text
        width = k.argument(columns)
        if how == "digits":
            row = k.integer(f"{p} // {width}", (), 0, rows - 1)
            column = k.integer(f"{p} % {width}", (), 0, columns - 1)
        elif how == "swapped":
            column = k.integer(f"{p} // {k.argument(rows)}", (), 0, columns - 1)
            row = k.integer(f"{p} % {k.argument(rows)}", (), 0, rows - 1)
        else:
            row, column = swizzle(k, p, rows, columns)
    k.share = k.integer(f"{row.text} * {columns} + {column.text}", (), 0, rows * columns - 1).text
    if k.choices.chance(40):
        tail(k, row.text, rows - 1, [k.rows])
    return Grid(row, column, rows, columns)


def swizzle(k: Kernel, p: str, rows: int, columns: int) -> tuple[Value, Value]:
    """Return row and column of programs that run in groups of two rows, column by column."""
    span = k.integer(f"2 * {k.argument(columns)}", (), 2 * columns, 2 * columns).text
    first = k.integer(f"{p} // {span} * 2", (), 0, rows - 1).text
    height = k.integer(f"tl.minimum({k.argument(rows)} - {first}, 2)", (), 1, 2).text
    row = k.integer(f"{first} + {p} % {span} % {height}", (), 0, rows - 1)
    column = k.integer(f"{p} % {span} // {height}", (), 0, columns - 1)
    return row, column


def numbered(k: Kernel, places: list[tuple[Value, int]], step: int) -> tuple[str, int]:
    """Return the offset of a choice of counters, and how many choices there are."""
    terms, numbers = [], 1
    for counter, extent in reversed(places):
        terms.insert(0, f"{counter.text} * {k.argument(numbers * step)}")
        numbers *= extent
    if len(places) == 2 and k.choices.chance(15):
        k.feature("number of a program")
        (first, _), (second, extent) = places
        terms = [f"({first.text} * {extent} + {second.text}) * {k.argument(step)}"]
    return " + ".join(terms) or "0", numbers


def rows_lanes(k: Kernel, shape: Shape) -> Lanes | None:
    """Return the lanes of tiles of the program's own rows."""
    return Lanes(k.tail[0], 0) if k.tail and shape and shape[0] == k.tail[1] else None


def load(k: Kernel, shape: Shape, places: list[tuple[Value, int]], seen: str = "") -> Value:
    """Load a tile of an input: one for each choice of the counters in `places`, or parts of one.

    Nothing is loaded unless the condition `seen` holds.
    """
    present = [b for b in k.having("input") if b.name in k.tiled]
    buffer = k.choices.pick(present) if present and k.choices.chance(12) else k.buffer("input")
    k.tiled.add(buffer.name)
    matrix = len(shape) == 2 and len(places) == 2 and k.choices.chance(60)
    rows = [spread(f"tl.arange(0, {extent})", shape, axis) for axis, extent in enumerate(shape)]
    if matrix:
        # As operands of products are: each counter moves along its axis.
        (first, _), (second, last) = places
        width = shape[1] * last
        text = (
            f"({first.text} * {shape[0]} + {rows[0]}) * {k.argument(width)}"
            f" + {second.text} * {shape[1]} + {rows[1]}"
        )
        high = (places[0][1] * shape[0]) * width - 1
    else:
        inside = " + ".join(
            f"{row} * {k.argument(count(shape[axis + 1 :]))}" for axis, row in enumerate(rows)
        )
        # Overlapping pieces have several contributions to each element.
        step = max(count(shape) // 2, 1) if k.choices.chance(12) else count(shape)
        number, numbers = numbered(k, places, step)
        text = f"{number} + {inside or '0'}"
        high = (numbers - 1) * step + count(shape) - 1
    where = k.integer(text, shape, 0, high)
    k.values.remove(where)
    pointer = f"{buffer.name} + {where.text}"
    lanes = rows_lanes(k, shape)
    if lanes is not None and not seen and k.choices.chance(60):
        buffer.size = max(buffer.size, high + 1)
        return unseen(k, pointer, shape, lanes)
    # As is usual, nothing is left over: gradients that fill their tensors need not be cleared.
    reach = high + 1
    masked = k.choices.chance(30)
    if masked:
        reach -= k.choices.below(count(shape))
    buffer.size = max(buffer.size, reach)
    conditions = [seen] if seen else []
    if masked:
        conditions.append(f"({where.text} < {k.argument(reach)})")
    if conditions:
        text = f"tl.load({pointer}, mask={' & '.join(conditions)}, other=0.0).to(T)"
        return k.floating(text, shape, -LARGEST, LARGEST)
    return k.floating(f"tl.load({pointer}).to(T)", shape, -LARGEST, LARGEST)


def smooth(k: Kernel, value: Value) -> Value:
    """Return a smooth function of a value, not too large."""
    for _ in range(k.choices.below(3)):
        value = apply(k, k.choices.pick(SMOOTH), scaled_linearly(k, value, LIMIT))
    return scaled_linearly(k, value, LIMIT)


def scaled_linearly(k: Kernel, value: Value, limit: float) -> Value:
    """Return the value, or a multiple of it if it may exceed the limit."""
    if value.size <= limit:
        return value
    factor = limit / value.size
    text = f"{value.text} * {factor!r}"
    return k.floating(text, value.shape, value.low * factor, value.high * factor)


def counted(k: Kernel, grid: Grid) -> tuple[Value, int, str]:
    """Begin a loop; return its counter, a bound of it, and what holds where it may be seen."""
    i = k.fresh("i")
    if k.maybe("shared loop from below zero", 12):
        # Those of one program, or of several.
        step = k.choices.pick([1, 3])
        first, extent = f"{grid.row.text} * {step}", (grid.rows - 1) * step + 3
        k.emit(f"for {i} in range({first} - 2, {first} + 1):")
        return Value(f"({i} + 2)", "i", (), 0, extent - 1), extent, f"({i} >= 0)"
    text, extent = bounds(k, grid)
    k.emit(f"for {i} in {text}:")
    return Value(i, "i", (), 0, extent - 1), extent, ""


def bounds(k: Kernel, grid: Grid) -> tuple[str, int]:
    """Return the range of a loop, and a bound of its counter."""
    rows, row = grid.rows, grid.row.text
    how = k.kind("shared loop", {"all": 5, "causal": 2, "rest": 1, "window": 1, "steps": 1})
    if how == "causal":
        return f"range({row} + 1)", rows
    if how == "rest":
        return f"range({row}, {k.argument(rows)})", rows
    if how == "window":
        return f"range(tl.maximum({row} - 1, 0), tl.minimum({row} + 2, {k.argument(rows)}))", rows
    trips = k.choices.between(1, TRIPS)
    if how == "steps":
        return f"range(0, {k.argument(2 * trips)}, 2)", 2 * trips
    return f"range({k.argument(trips)})", trips


def places(k: Kernel, grid: Grid, counter: tuple[Value, int] | None) -> list[tuple[Value, int]]:
    """Return what the address of a load depends on: rarely all of the program's digits."""
    row, column = (grid.row, grid.rows), (grid.column, grid.columns)
    if counter is None:
        return k.choices.pick([[row], [row, column], [], [column]])
    several = [[row, counter], [counter, column], [column, counter], [row, column, counter]]
    return [counter] if k.choices.chance(50) else k.choices.pick(several)


def accumulated(k: Kernel, grid: Grid) -> Value:
    """Write a loop that adds up products of tiles, most of them shared by programs."""
    m, n = k.rows, k.columns
    options = {"dot": 4, "product": 3, "sum": 2, "softmax": 2, "recurrence": 1, "decay": 2}
    how = k.kind("shared loop with", options)
    if how in ("dot", "softmax") and k.on_gpu:
        n = max(n, 16)
    own = load(k, (m, n), places(k, grid, None))
    if how == "softmax":
        return attention(k, grid, own)
    width = k.choices.pick([m, 1, 2, 4, 8])
    shape = {"dot": (m, width), "sum": (m,)}.get(how, (m, n))
    lanes = rows_lanes(k, shape)
    total = k.floating(f"tl.zeros({list(shape)}, T)", shape, 0.0, 0.0, lanes)
    k.values.remove(total)
    counter, extent, seen = counted(k, grid)
    with k.block():
        left = own
        if k.choices.chance(40):
            left = load(k, (m, n), places(k, grid, (counter, extent)), seen)
        if how == "dot":
            right = load(k, (n, width), places(k, grid, (counter, extent)), seen)
            left, right = mixable(k, smooth(k, left), 1), settled(k, smooth(k, right))
            bound = left.size * right.size * n
            part = dot(k, left.text, right.text, shape, bound, k.lanes.get(left.text))
        else:
            right = load(k, (m, n), places(k, grid, (counter, extent)), seen)
            bound = left.size * right.size
            part = k.floating(f"{left.text} * {right.text}", (m, n), -bound, bound)
        if how == "sum":
            part = mixable(k, smooth(k, part), 1)
            bound = n * part.size
            part_lanes = k.lanes.get(part.text)
            part = k.floating(f"tl.sum({part.text}, 1)", shape, -bound, bound, part_lanes)
        part = fitting(k, smooth(k, part), lanes)
        if how == "recurrence":
            k.emit(f"{total.text} = tl.sin({total.text}) * 0.5 + {part.text}")
        elif how == "decay":
            # The gradient of what a state is multiplied by needs the state.
            gate = fitting(k, smooth(k, left), lanes)
            bound = max(gate.size, 1.0)
            k.emit(f"{total.text} = {total.text} * ({gate.text} * {1 / bound}) + {part.text}")
            if k.maybe("copies of states", 60):
                state = Value(total.text, "f", shape, -LIMIT * extent, LIMIT * extent)
                store_copy(k, state, counter.text, extent - 1)
        else:
            k.emit(f"{total.text} += {part.text}")
    bound = LIMIT * max(extent, TRIPS)
    k.values.append(Value(total.text, "f", shape, -bound, bound))
    return k.values[-1]


def attention(k: Kernel, grid: Grid, query: Value) -> Value:
    """Write a loop that keeps the softmax of products with shared keys, and sums shared values."""
    m, n = query.shape
    block = 16 if k.on_gpu else k.choices.pick([m, 4, 8, 2, 1])
    lanes = rows_lanes(k, (m, n))
    state = OnlineSoftmax(k, (m, n))
    text, extent = bounds(k, grid)
    i = k.fresh("i")
    k.emit(f"for {i} in {text}:")
    with k.block():
        counter = Value(i, "i", (), 0, extent - 1)
        where = places(k, grid, (counter, extent))
        keys, values = (settled(k, load(k, (block, n), where)) for _ in range(2))
        # Queries may be keys. A softmax that is nearly one has a gradient that nearly cancels.
        transposed = f"tl.trans({keys.text})"
        scores = dot(k, query.text, transposed, (m, block), 40.0, k.lanes.get(query.text))
        text = f"{scores.text} * 0.1"
        row, lane = f"tl.arange(0, {m})[:, None]", f"tl.arange(0, {block})[None, :]"
        # A row sees something of each block, or it is no row that counts.
        seen = [k.mask_of(lanes, (m, block))] if lanes else []
        if k.maybe("causal mask", 40):
            seen.append(f"({lane} <= {row} + {i})")
        if seen and k.choices.chance(70):
            text = hidden(k, text, " & ".join(seen))
        scores = k.floating(text, (m, block), -4, 4)
        k.values.remove(scores)

        def part(weights: str) -> str:
            return dot(k, weights, values.text, (m, n), 4.0).text

        state.change(k, scores.text, part)
    text = f"{state.result} / {state.total}[:, None]"
    return k.floating(text, (m, n), -LARGEST, LARGEST, lanes)


def normalized(k: Kernel, grid: Grid) -> None:
    """Write two loops over the program's own tiles, the second one with shared weights."""
    n = k.columns
    extent = k.choices.between(1, TRIPS)
    bound = k.argument(extent)
    own = [(grid.row, grid.rows), (grid.column, grid.columns)]
    square = k.floating("tl.zeros([], T)", (), 0.0, 0.0)
    k.values.remove(square)
    name = k.buffer("input").name
    buffer = k.having("input")[-1]
    size = grid.rows * grid.columns * extent * n
    buffer.size = size
    number, _ = numbered(k, own, extent * n)
    i, j = k.fresh("i"), k.fresh("i")

    def tile(counter):
        at = f"{number} + {counter} * {n} + tl.arange(0, {n})"
        return k.floating(f"tl.load({name} + {at}).to(T)", (n,), -LARGEST, LARGEST)

    k.emit(f"for {i} in range({bound}):")
    with k.block():
        x = tile(i)
        k.emit(f"{square.text} += tl.sum({x.text} * {x.text}, 0)")
    scale = k.floating(f"tl.rsqrt({square.text} / {extent * n} + 0.1)", (), 0.0, 3.5)
    if k.maybe("copy of a statistic", 50):
        store_copy(k, scale)
    k.emit(f"for {j} in range({bound}):")
    with k.block():
        counter = Value(j, "i", (), 0, extent - 1)
        x = tile(j)
        weights = load(k, (n,), [(counter, extent)])
        text = f"{x.text} * {scale.text} * {weights.text}"
        y = k.floating(text, (n,), -6.0 * LARGEST, 6.0 * LARGEST)
        keep(k, grid, y, (counter, extent))


def weighted(k: Kernel, value: Value) -> Value:
    """Return a value times and plus vectors that all programs share."""
    axis = len(value.shape) - 1
    extent = value.shape[axis]
    value = scaled_linearly(k, value, LIMIT)
    scale, shift = (settled(k, load(k, (extent,), [])) for _ in range(2))
    bound = (value.size + 1) * LARGEST
    text = " + ".join(
        (f"{value.text} * {spread(scale.text, value.shape, axis)}",
         spread(shift.text, value.shape, axis))
    )  # fmt: skip
    return k.floating(text, value.shape, -bound, bound)


def keep(k: Kernel, grid: Grid, value: Value, *inner: tuple[Value, int]) -> None:
    """Store a tile to an output, one for each program and each choice of the other counters."""
    value = scaled_linearly(k, value, LIMIT)
    if k.choices.chance(20):
        store(k, value)
        return
    shape, buffer = value.shape, k.buffer("output")
    k.tiled.add(buffer.name)
    own = [(grid.row, grid.rows), (grid.column, grid.columns), *inner]
    rows = [spread(f"tl.arange(0, {extent})", shape, axis) for axis, extent in enumerate(shape)]
    if len(shape) == 2 and not inner:
        width = grid.columns * shape[1]
        at = (
            f"({grid.row.text} * {shape[0]} + {rows[0]}) * {k.argument(width)}"
            f" + {grid.column.text} * {shape[1]} + {rows[1]}"
        )
    else:
        terms = [f"{row} * {count(shape[axis + 1 :])}" for axis, row in enumerate(rows)]
        at = " + ".join([numbered(k, own, count(shape))[0], *terms])
    buffer.size = count(shape)
    for _, extent in inner:
        buffer.size *= extent
    # Rows that do not count are no rows of the output.
    where = Value(at, "i", shape, 0, buffer.size - 1)
    k.emit(f"tl.store({buffer.name} + {at}, {value.text}{condition_of(k, where, value, False)})")


def shared(k: Kernel) -> None:
    """Write the body of a kernel whose programs share what they read."""
    grid = digits(k)
    how = k.kind("shared", {"loops": 4, "norm": 1, "rows": 2})
    if how == "norm":
        normalized(k, grid)
    for _ in range(k.choices.between(how == "loops", 2 - (how == "norm"))):
        if how == "rows":
            shape = k.choices.pick([(k.columns,), (k.rows, k.columns)])
            value = smooth(k, load(k, shape, places(k, grid, None)))
        else:
            value = accumulated(k, grid)
            if k.maybe("copy of a sum", 30):
                store_copy(k, value)
        if how == "rows" or k.choices.chance(40):
            value = weighted(k, value)
        keep(k, grid, smooth(k, value))
    if how == "rows":
        value = weighted(k, smooth(k, load(k, (k.columns,), places(k, grid, None))))
        keep(k, grid, smooth(k, value))
