"""Integer values: counters, program ids' digits, table entries, and arithmetic on them."""

from __future__ import annotations

import math

from .program import Kernel, Value


def spread(name: str, shape: tuple[int, ...], axis: int) -> str:
    """Return the expression that lays a vector out along an axis of a shape."""
    if len(shape) == 1:
        return name
    return f"{name}[{', '.join(':' if i == axis else 'None' for i in range(len(shape)))}]"


def scalars(k: Kernel) -> list[Value]:
    """Return the scalar integers in scope."""
    return [v for v in k.values if v.kind == "i" and v.shape == ()]


def small_scalar(k: Kernel, high: int) -> Value:
    """Return a scalar integer from 0 to at most `high`, often not known at compile time."""
    known = scalars(k)
    how = k.choices.weighted({"constant": 4, "known": 4, "loaded": 2, "derived": 2})
    if how in ("known", "derived") and known:
        value = k.choices.pick(known[::-1])
        if how == "derived":
            value = arithmetic(k, value)
        return reduced(k, value, high)
    if how == "loaded":
        return loaded_scalar(k, high)
    number = k.choices.below(high + 1)
    return Value(k.argument(number), "i", (), number, number)


def reduced(k: Kernel, value: Value, high: int) -> Value:
    """Return an integer from 0 to `high` made of a value."""
    if value.low >= 0 and value.high <= high:
        return value
    text = value.text
    if value.low < 0:
        text = f"({text} - ({value.low}))"
    if value.high - min(value.low, 0) > high:
        text = f"{text} % {high + 1}"
    return k.integer(text, value.shape, 0, min(high, value.high - min(value.low, 0)))


def table(k: Kernel, size: int, high: int) -> str:
    """Return the name of a table of at least `size` numbers from 0 to `high`."""
    k.feature("table")
    for buffer in k.having("table"):
        if max(buffer.numbers) <= high and k.choices.chance(60):
            while len(buffer.numbers) < size:
                buffer.numbers.append(k.choices.below(high + 1))
            return buffer.name
    buffer = k.buffer("table")
    buffer.numbers = [k.choices.below(high + 1) for _ in range(size)]
    return buffer.name


def entries(k: Kernel, name: str, index: str) -> str:
    """Return an expression of entries of a table, as numbers of 32 bits."""
    types = {buffer.name: buffer.type for buffer in k.having("table")}
    return f"tl.load({name} + {index})" + ".to(tl.int32)" * (types[name] != "torch.int32")


def loaded_scalar(k: Kernel, high: int) -> Value:
    """Load a scalar from 0 to `high` from a table, at an index that is known or loaded."""
    known = [v for v in scalars(k) if v.low >= 0 and v.high < 12]
    index = k.choices.pick(known) if known else Value("0", "i", (), 0, 0)
    name = table(k, index.high + 1, high)
    return k.integer(entries(k, name, index.text), (), 0, high)


def arithmetic(k: Kernel, value: Value) -> Value:
    """Return a function of an integer value."""
    low, high, c = value.low, value.high, k.choices.between(1, 4)
    how = k.choices.pick(["add", "multiply", "reverse", "divide", "remainder", "mask", "minimum",
                          "maximum", "select", "xor", "product", "long"])  # fmt: skip
    other = k.choices.pick(scalars(k) or [Value("1", "i", (), 1, 1)])
    text = value.text
    if how in ("divide", "remainder", "mask", "xor") and low < 0:
        text, low, high = f"({text} - ({low}))", 0, high - low
    if how == "add":
        return k.integer(f"{text} + {k.argument(c)}", value.shape, low + c, high + c)
    if how == "multiply":
        return k.integer(f"{text} * {k.argument(c)}", value.shape, low * c, high * c)
    if how == "reverse":
        return k.integer(f"{k.argument(c)} - {text}", value.shape, c - high, c - low)
    if how == "divide":
        return k.integer(f"{text} // {k.argument(c)}", value.shape, low // c, high // c)
    if how == "remainder":
        return k.integer(f"{text} % {k.argument(c)}", value.shape, 0, min(high, c - 1))
    if how == "mask":
        return k.integer(f"{text} & {c}", value.shape, 0, min(high, c))
    if how == "minimum":
        return k.integer(f"tl.minimum({text}, {c})", value.shape, min(low, c), min(high, c))
    if how == "maximum":
        return k.integer(f"tl.maximum({text}, {c})", value.shape, max(low, c), max(high, c))
    if how == "select":
        lowest, highest = min(low, 0), max(high, 0)
        text = f"tl.where({text} > {c}, {text}, 0)"
        return k.integer(text, value.shape, lowest, highest)
    if how == "xor":
        bound = (1 << max(int(high).bit_length(), 3)) - 1
        return k.integer(f"{text} ^ {c}", value.shape, 0, bound)
    if how == "long":
        return k.integer(f"({text}.to(tl.int64) + 1).to(tl.int32)", value.shape, low + 1, high + 1)
    ends = [a * b for a in (low, high) for b in (other.low, other.high)]
    if max(map(abs, ends)) > 10**6:
        return value
    return k.integer(f"{text} * {other.text}", value.shape, min(ends), max(ends))


def first_id(k: Kernel) -> Value:
    """Define the program's number along the first axis; or few programs go through all of them, in
    a loop around the rest of the kernel."""
    extent = k.grid[0]
    if not k.choices.chance(15):
        return k.define("tl.program_id(0)", "i", (), 0, extent - 1, "pid")
    k.feature("loop over the grid")
    k.launched = k.choices.between(1, extent)
    step = k.choices.pick(["tl.num_programs(0)", k.argument(k.launched)])
    value = Value(k.fresh("pid"), "i", (), 0, extent - 1)
    k.emit(f"for {value.text} in range(tl.program_id(0), {k.argument(extent)}, {step}):")
    k.depth += 1
    k.values.append(value)
    return value


def program_ids(k: Kernel) -> None:
    """Choose a grid, and define each program's number in a random order of the programs."""
    rank = k.choices.weighted({1: 5, 2: 3, 3: 1})
    k.grid = tuple(k.choices.between(1, (5, 3, 2)[rank - 1]) for _ in range(rank))
    ids = [first_id(k)]
    ids += [
        k.define(f"tl.program_id({axis})", "i", (), 0, extent - 1, "pid")
        for axis, extent in enumerate(k.grid[1:], 1)
    ]
    number, extent = ids[0].text, k.grid[0]
    for axis in range(1, rank):
        k.feature("grid of several axes")
        counts = [str(k.grid[axis - 1])]
        if axis > 1 or k.launched is None:
            counts.append(f"tl.num_programs({axis - 1})")
        count = k.choices.pick(counts)
        if axis == 1:
            number = f"{ids[1].text} * {count} + {number}"
        else:
            number = f"({ids[2].text} * {k.grid[1]} + {ids[1].text}) * {k.grid[0]} + {ids[0].text}"
        extent *= k.grid[axis]
    program = k.define(number, "i", (), 0, extent - 1, "p")
    k.share = program.text
    how = k.choices.weighted({"same": 5, "digits": 3, "reversed": 1, "table": 1})
    if how == "digits" and extent > 1:
        k.feature("program digits")
        divisors = [d for d in range(1, extent + 1) if extent % d == 0]
        inner = k.choices.pick(divisors)
        outer, h = extent // inner, k.argument(inner)
        q = k.integer(f"{program.text} // {h}", (), 0, outer - 1)
        r = k.integer(f"{program.text} % {h}", (), 0, inner - 1)
        k.share = k.integer(f"{r.text} * {k.argument(outer)} + {q.text}", (), 0, extent - 1).text
    elif how == "reversed":
        k.share = k.integer(f"{extent - 1} - {program.text}", (), 0, extent - 1).text
    elif how == "table" and extent > 1:
        k.feature("programs in the order of a table")
        buffer = k.buffer("table")
        order = list(range(extent))
        while order:
            buffer.numbers.append(order.pop(k.choices.below(len(order))))
        text = entries(k, buffer.name, program.text)
        k.share = k.integer(text, (), 0, extent - 1).text


def tile(k: Kernel, shape: tuple[int, ...], strides: tuple[int, ...]) -> Value:
    """Return the sum over axes of index times stride, some axes permuted or through a table."""
    terms, low, high = [], 0, 0
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        if extent == 1:
            continue
        name, top = f"tl.arange(0, {extent})", extent - 1
        how = k.choices.weighted(
            {"plain": 12, "reversed": 2, "repeated": 1, "wrapped": 1, "table": 2}
        )
        if how == "reversed":
            name = f"({top} - {name})"
        elif how == "repeated":
            name, top = f"({name} // 2)", top // 2
        elif how == "wrapped":
            name, top = f"({name} % {max(extent // 2, 1)})", max(extent // 2, 1) - 1
        elif how == "table":
            k.feature("gather")
            name = entries(k, table(k, extent, top), name)
        vector = k.define(name, "i", (extent,), 0, top, "r")
        factor = "" if stride == 1 else f" * {k.argument(stride)}"
        terms.append(spread(vector.text, shape, axis) + factor)
        high += top * stride
    if not shape:
        return Value("0", "i", (), 0, 0)
    if len(terms) < len(shape):
        terms.append(f"tl.zeros({list(shape)}, tl.int32)")
    return k.integer(" + ".join(terms), shape, low, high)


def dense_strides(k: Kernel, shape: tuple[int, ...], padded: bool = True) -> tuple[int, ...]:
    """Return strides that give each element of a tile a place of its own, in a random order."""
    order = list(range(len(shape)))
    if len(order) > 1 and k.choices.chance(25):
        k.feature("transposed addresses")
        order.reverse()
    padding = k.choices.pick([0, 0, 0, 1, 3]) if padded else 0
    step, strides = 1, [0] * len(shape)
    for axis in reversed(order):
        strides[axis] = step
        step = step * shape[axis] + padding
    return tuple(strides)


def count(shape: tuple[int, ...]) -> int:
    """Return the number of elements."""
    return math.prod(shape)
