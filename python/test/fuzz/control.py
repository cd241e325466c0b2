"""Loops with carried values of every class, branches, and loops that end on a condition."""

from __future__ import annotations

from .expressions import LIMIT, scaled
from .integers import arithmetic, reduced, scalars, small_scalar
from .lanes import fitting, settled, tail_lanes
from .memory import atomic_add, own_input, store, store_part, store_state
from .operations import expression
from .products import dot
from .program import LARGEST, Kernel, Lanes, Value
from .softmax import OnlineSoftmax, hidden
from .tiles import operand, shapes

# No loop runs more often, so that nothing grows out of bounds.
TRIPS = 4
DEPTH = 4


def statement(k: Kernel) -> None:
    """Write one statement, or a loop or branch of several."""
    nested = 2 * (k.depth < DEPTH)
    options = {"expression": 12, "store": 2, "integer": 1, "loop": 2 * nested, "branch": nested}
    options |= {"while": nested // 2, "atomic add": 1, "store of a part": 1}
    how = k.kind("statement", options)
    if how == "loop":
        loop(k)
    elif how == "branch":
        branch(k)
    elif how == "while":
        while_loop(k)
    elif how == "integer":
        arithmetic(k, k.choices.pick(scalars(k)[::-1]))
    elif how == "expression":
        expression(k, k.choices.pick(shapes(k)))
    elif how == "store of a part":
        store_part(k, k.choices.pick(shapes(k)))
    else:
        value = expression(k, k.choices.pick(shapes(k)))
        (store if how == "store" else atomic_add)(k, value)


def statements(k: Kernel, most: int) -> None:
    """Write up to so many statements."""
    for _ in range(k.choices.between(1, most)):
        if not k.burn():
            break
        statement(k)


def copied(k: Kernel, value: Value, limit: float, lanes: Lanes | None = None) -> Value:
    """Return a new variable with the value, within the limit, that counts in these lanes."""
    value = fitting(k, scaled(k, value, limit), lanes)
    return k.floating(value.text, value.shape, value.low, value.high, lanes)


class Carried:
    """A value that a loop carries: how it starts, and how an iteration changes it."""

    KINDS = {
        "accumulator": 1, "general": 2, "swap": 1, "maximum": 1, "product": 1, "counter": 1,
        "integer": 1, "pointer": 1, "delay": 1, "conditional": 1, "softmax": 2, "best": 1,
        "decayed": 1, "scalar": 1,
    }  # fmt: skip

    def __init__(self, k: Kernel):
        self.kind = kind = k.kind("carried", self.KINDS)
        self.shape = () if kind in ("best", "scalar") else k.choices.pick(shapes(k))
        # Where what is carried counts, whatever it starts from or becomes.
        self.lanes = tail_lanes(k, self.shape)
        self.values: list[Value] = []
        if kind == "counter":
            start = k.choices.below(3)
            self.step = k.choices.below(4)
            text = k.integer(str(start), (), 0, 0).text
            self.add(k, Value(text, "i", (), start, start + TRIPS * self.step))
        elif kind == "integer":
            self.add(k, Value(k.integer("2", (), 2, 2).text, "i", (), 0, 6))
        elif kind == "pointer":
            self.start_pointer(k)
        elif kind == "softmax":
            self.shape = k.choices.pick([s for s in shapes(k) if len(s) == 1])
            self.lanes = tail_lanes(k, self.shape)
            self.softmax = OnlineSoftmax(k, self.shape)
        else:
            self.start(k)
            if kind in ("swap", "delay"):
                self.start(k, again=True)
        if kind == "best":
            self.add(k, Value(k.integer("0", (), 0, 0).text, "i", (), 0, TRIPS))

    def add(self, k: Kernel, value: Value) -> Value:
        """Carry a variable."""
        k.values = [v for v in k.values if v.text != value.text] + [value]
        self.values.append(value)
        return value

    def start(self, k: Kernel, again: bool = False) -> None:
        limit = 1.0 if self.kind in ("accumulator", "product") else 3.0
        if self.kind == "accumulator" and k.choices.chance(60):
            text = f"tl.zeros({list(self.shape)}, T)"
            first = k.floating(text, self.shape, 0.0, 0.0, self.lanes)
        else:
            first = copied(k, operand(k, self.shape), limit, self.lanes)
        if again:
            # Of values that start alike and change places, Triton takes the loop away.
            text = f"{first.text} * 0.5"
            first = k.floating(text, self.shape, first.low, first.high, self.lanes)
        bound = {"accumulator": 1.0 + 3.0 * TRIPS}.get(self.kind, 3.0)
        self.add(k, Value(first.text, "f", self.shape, -bound, bound))

    def start_pointer(self, k: Kernel) -> None:
        self.buffer = k.buffer("input")
        self.pointer = k.fresh("q")
        self.step = k.choices.between(0, 5)
        self.shape = k.choices.pick([(), (k.columns,)])
        extent = self.shape[0] if self.shape else 1
        first = k.choices.pick([v for v in scalars(k) if v.low >= 0 and v.high < 30])
        offset = f" + tl.arange(0, {extent})" if self.shape else ""
        k.emit(f"{self.pointer} = {self.buffer.name} + {first.text}{offset}")
        self.buffer.size = int(first.high) + extent + self.step * TRIPS

    def change(self, k: Kernel) -> None:
        """Write what an iteration does to the value."""
        names = [v.text for v in self.values]
        if self.kind == "counter":
            k.emit(f"{names[0]} += {k.argument(self.step)}")
        elif self.kind == "integer":
            k.emit(f"{names[0]} = ({names[0]} * 3 + {k.argument(k.choices.below(5))}) % 7")
        elif self.kind == "pointer":
            k.emit(f"{self.pointer} += {k.argument(self.step)}")
        elif self.kind == "softmax":
            self.change_softmax(k)
        else:
            self.change_floats(k, names)

    def change_floats(self, k: Kernel, names: list[str]) -> None:
        limit, first = 1.0 if self.kind == "product" else 3.0, names[0]
        new = fitting(k, scaled(k, operand(k, self.shape), limit), self.lanes).text
        if self.kind == "accumulator":
            sign = k.choices.pick(["+", "+", "-"])
            k.emit(f"{first} {sign}= {new}")
        elif self.kind == "general":
            mixed = scaled(k, expression(k, self.shape), 3.0)
            k.emit(f"{first} = {fitting(k, mixed, self.lanes).text}")
        elif self.kind == "swap":
            k.emit(f"{first}, {names[1]} = {names[1]}, {new}")
        elif self.kind == "delay":
            k.emit(f"{names[1]} = {first}")
            k.emit(f"{first} = {new}")
        elif self.kind == "maximum":
            which = k.choices.pick(["maximum", "minimum"])
            k.emit(f"{first} = tl.{which}({first}, {new})")
        elif self.kind == "product":
            k.emit(f"{first} = {first} * {new}")
        elif self.kind == "scalar":
            k.emit(f"{first} = {first} * {new} * 0.2 + {first} / (1.0 + tl.abs({first}))")
        elif self.kind == "decayed":
            k.emit(f"{first} = {first} * 0.6 + {new} * 0.4")
        elif self.kind == "conditional":
            k.emit(f"if {condition(k)}:")
            with k.block():
                k.emit(f"{first} = {new}")
        else:
            better = k.fresh("m")
            k.emit(f"{better} = {new} > {first}")
            k.emit(f"{first} = tl.where({better}, {new}, {first})")
            k.emit(f"{names[1]} = tl.where({better}, {names[1]} + 1, {names[1]})")

    def change_softmax(self, k: Kernel) -> None:
        rows = self.shape[0]
        columns = k.columns if rows == k.rows else k.rows
        lanes = self.lanes
        scores = scaled(k, operand(k, (rows, columns)), 3.0)
        scores = fitting(k, scores, lanes)
        other = fitting(k, scaled(k, operand(k, scores.shape), 2.0), lanes)
        if k.choices.chance(40):
            seen = f"(tl.arange(0, {columns})[None, :] <= tl.arange(0, {rows})[:, None])"
            if lanes is not None:
                seen = f"{lanes.mask}[:, None] & {seen}"
            text = hidden(k, scores.text, seen)
            scores = k.floating(text, scores.shape, -3.0, 3.0, lanes)
            k.values.remove(scores)
        self.softmax.change(k, scores.text, lambda e: f"tl.sum({e} * {other.text}, 1)")

    def inside(self, k: Kernel) -> None:
        """Make what a body can use of it available there."""
        if self.kind == "pointer":
            k.floating(f"tl.load({self.pointer}).to(T)", self.shape, -1.5, 1.5)

    def finish(self, k: Kernel) -> None:
        """Make what is left after the loop available."""
        if self.kind == "pointer" and k.choices.chance(50):
            k.floating(f"tl.load({self.pointer}).to(T)", self.shape, -1.5, 1.5)
        if self.kind == "softmax":
            sums = f"tl.maximum({self.softmax.total}, 0.01)"
            k.floating(f"{self.softmax.result} / {sums}", self.shape, -2.0, 2.0, self.lanes)
            if k.choices.chance(50):
                text = f"tl.maximum({self.softmax.top}, -4.0) + tl.log({sums})"
                k.floating(text, self.shape, -9.0, 9.0, self.lanes)


def _stored(k: Kernel, carried: list[Carried]) -> Value | None:
    """Return what a loop carries, and stores in every iteration; None for nothing."""
    floats = [v for value in carried for v in value.values if v.kind == "f"]
    if not floats or len(k.having("output", "update")) > 3 or not k.choices.chance(30):
        return None
    return k.choices.pick(floats)


def loop(k: Kernel) -> None:
    """Write a counted loop: constant, run-time, program-dependent or loaded bounds, any step."""
    start, trips = small_scalar(k, 2), small_scalar(k, TRIPS)
    step = k.choices.pick([1, 1, 2, 3])
    carried = [Carried(k) for _ in range(k.choices.between(1, 2))]
    i = k.fresh("i")
    how = k.kind("loop", {"range": 6, "static": 1, "to": 3})
    high = start.high + step * TRIPS
    if how == "static":
        number = k.choices.below(TRIPS)
        k.emit(f"for {i} in tl.static_range({number}):")
    elif how == "to":
        # The bound does not depend on where it starts: there may be nothing to do.
        stop = small_scalar(k, TRIPS)
        k.emit(f"for {i} in range({start.text}, {stop.text}, {k.argument(step)}):")
    else:
        stop = f"{start.text} + {trips.text} * {step}"
        k.emit(f"for {i} in range({start.text}, {stop}, {k.argument(step)}):")
    with k.block():
        if how == "static":
            # A literal in each copy of the body: arithmetic on it needs a tensor.
            k.integer(f"{i} + tl.zeros((), tl.int32)", (), 0, TRIPS)
        else:
            k.values.append(Value(i, "i", (), 0, high))
        for value in carried:
            value.inside(k)
        state = _stored(k, carried) if how != "static" else None
        before = state is not None and k.choices.chance(40)
        if before:
            store_state(k, state, i, high)
        early = carried[:1] if k.choices.chance(20) else []
        for value in early:
            value.change(k)
        statements(k, 4)
        for value in carried:
            if value not in early:
                value.change(k)
        if state is not None and not before:
            store_state(k, state, i, high)
    for value in carried:
        value.finish(k)


def condition(k: Kernel) -> str:
    """Return a scalar condition on integers or floats."""
    how = k.choices.weighted({"integer": 5, "float": 3, "both": 1})
    left = k.choices.pick(scalars(k)[::-1])
    compare = k.choices.pick([">", "<=", "=="])
    first = f"{left.text} {compare} {k.argument(k.choices.below(4))}"
    if how == "integer":
        if k.choices.chance(25):
            return f"{left.text} % 2 == 0"
        return first
    k.feature("branch on a float")
    second = f"{operand(k, ()).text} > {k.choices.pick([0.1, -0.4, 0.6])}"
    return second if how == "float" else f"({first}) & ({second})"


def branch(k: Kernel) -> None:
    """Write an if, with or without else, that assigns floats."""
    if k.maybe("value that decides", 20):
        return decided(k)
    results = []
    for _ in range(k.choices.between(1, 2)):
        shape = k.choices.pick(shapes(k))
        results.append(copied(k, operand(k, shape), LIMIT, tail_lanes(k, shape)))
    k.emit(f"if {condition(k)}:")
    for side in range(k.choices.pick([1, 2, 2])):
        if side:
            k.emit("else:")
        with k.block():
            statements(k, 3)
            for result in results:
                if k.choices.chance(85):
                    value = scaled(k, operand(k, result.shape), LIMIT)
                    value = fitting(k, value, k.lanes.get(result.text))
                    k.emit(f"{result.text} = {value.text}")
    k.values = [v for v in k.values if v not in results]
    k.values += [Value(r.text, "f", r.shape, -LIMIT, LIMIT) for r in results]


def decided(k: Kernel) -> None:
    """Write a number that a value decides, zero whatever it is, and a branch that adds the value.

    Where the branch is not taken, nothing depends on the value, nor on an input of its own.
    """

    def own(shape) -> Value:
        return k.floating(own_input(k, shape)[1], shape, -LARGEST, LARGEST)

    known = list(k.values)
    shape = k.choices.pick(shapes(k))
    if len(shape) == 2 and k.choices.chance(60):
        inner = k.choices.pick([16, 32] if k.on_gpu else [k.columns, 2, 8, 16])
        left = own((shape[0], inner))
        right = settled(k, scaled(k, operand(k, (inner, shape[1])), 2.0))
        value = dot(k, left.text, right.text, shape, 3.0 * inner)
    else:
        left, right = own(shape), scaled(k, operand(k, shape), 3.0)
        value = k.floating(f"{left.text} * {right.text}", shape, -4.5, 4.5)
    value = settled(k, scaled(k, value, LIMIT))
    # What it is made of is not used elsewhere.
    k.values = known
    x = value.text
    how = k.kind("decided by", {"comparison": 1, "truncation": 1, "place": shape != ()})
    number = {
        "comparison": f"({x} > 0.1).to(T)",
        "truncation": f"({x} * 4).to(tl.int32).to(T)",
        "place": f"tl.zeros({list(shape)}, T) + tl.argmax({x}, 0, keep_dims=True)",
    }[how]
    result = k.floating(f"({number}) * 0.0", shape, min(value.low, 0.0), max(value.high, 0.0))
    counter = k.choices.pick(scalars(k)[::-1])
    never = f"{counter.text} > {k.argument(int(counter.high))}"
    k.emit(f"if {never if k.choices.chance(60) else condition(k)}:")
    with k.block():
        k.emit(f"{result.text} += {x}")


def while_loop(k: Kernel) -> None:
    """Write a loop that ends on a condition, on floats perhaps."""
    state = copied(k, operand(k, k.choices.pick(shapes(k))), 3.0)
    k.values.remove(state)
    k.values.append(Value(state.text, "f", state.shape, -3.0, 3.0))
    bound = small_scalar(k, TRIPS)
    if k.on_gpu and bound.high == 0:
        # Triton dies of memory that a loop accesses which is known not to run.
        bound = Value(k.argument(1), "i", (), 1, 1)
    i = k.integer("0", (), 0, TRIPS).text
    test = f"{i} < {bound.text}"
    if k.choices.chance(50):
        k.feature("while on a float")
        total = state.text if state.shape == () else f"tl.sum({state.text})"
        test = f"({test}) & ({total} < {k.choices.pick([2.0, 0.5, 5.0])})"
    k.emit(f"while {test}:")
    with k.block():
        statements(k, 3)
        new = settled(k, scaled(k, expression(k, state.shape), 3.0))
        k.emit(f"{state.text} = {new.text}")
        k.emit(f"{i} += 1")


def early_return(k: Kernel) -> None:
    """Let some programs end here."""
    k.feature("early return")
    value = reduced(k, k.choices.pick(scalars(k)), 6)
    k.emit(f"if {value.text} > {k.choices.between(1, 4)}:")
    k.emit("    return")
