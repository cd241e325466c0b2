"""Softmax: of a tile, and of scores that a loop goes through, in the spellings of many kernels."""

from __future__ import annotations

from .expressions import scaled
from .integers import spread
from .lanes import mixable
from .program import Kernel, Lanes, Value

Shape = tuple[int, ...]


def hidden(k: Kernel, scores: str, seen: str) -> str:
    """Return scores of which a mask hides some, in one of several ways."""
    how = k.kind("scores hidden by", {"where": 3, "an additive mask": 3, "a large number": 1})
    if how == "where":
        return f"tl.where({seen}, {scores}, float('-inf'))"
    least = "float('-inf')" if how == "an additive mask" else "-1.0e6"
    return f"{scores} + tl.where({seen}, 0.0, {least})"


def masked_scores(k: Kernel, value: Value, axis: int) -> Value:
    """Hide scores along an axis of a matrix, and all of those in rows that do not count."""
    mask, extent = k.tail
    other = 1 - axis
    if value.shape[other] != extent:
        return value
    shape = value.shape
    lanes = Lanes(mask, other)
    lane, row = (spread(f"tl.arange(0, {shape[i]})", shape, i) for i in (axis, other))
    some = k.choices.pick([f"({lane} <= {row})", f"({lane} <= {k.argument(1)})"])
    text = hidden(k, value.text, f"{k.mask_of(lanes, shape)} & {some}")
    lanes = k.common([k.lanes.get(value.text), lanes], shape)
    return k.floating(text, shape, value.low, value.high, lanes)


def statistic(k: Kernel, value: Value) -> Value:
    """Return a value minus, or divided by, something along an axis: a kind of normalisation."""
    axis = k.choices.below(len(value.shape))
    value = mixable(k, scaled(k, value, 3.0), axis)
    x, n, shape = value.text, value.shape[axis], value.shape
    how = k.kind(
        "normalisation",
        dict.fromkeys(["mean", "maximum", "softmax", "norm", "logsumexp", "minimum"], 1),
    )
    along = f"{axis}, keep_dims=True"
    if how == "mean":
        return k.floating(f"{x} - tl.sum({x}, {along}) / {n}", shape, -6.0, 6.0)
    if how in ("maximum", "minimum"):
        return k.floating(f"{x} - tl.{how[:3]}({x}, {along})", shape, -6.0, 6.0)
    if how == "norm":
        return k.floating(f"{x} / c.norm({x}, {axis})", shape, -1.0, 1.0)
    if k.tail is not None and len(shape) == 2 and k.choices.chance(50):
        value = masked_scores(k, value, axis)
        k.values = [v for v in k.values if v.text != value.text or v.text == x]
        x = value.text
    one = (*shape[:axis], 1, *shape[axis + 1 :])
    top = k.floating(f"tl.max({x}, {along})", one, -3, 3)
    k.values.remove(top)
    e = k.floating(f"tl.exp({x} - {top.text})", shape, 0.0, 1.0)
    if how == "softmax":
        return k.floating(f"{e.text} / tl.sum({e.text}, {along})", shape, 0.0, 1.0)
    # What a mask has hidden would be infinite.
    text = f"tl.maximum({x}, -4.0) - tl.log(tl.sum({e.text}, {along})) - {top.text}"
    return k.floating(text, shape, -12.0, 0.0)


class OnlineSoftmax:
    """Variables that a loop carries: a running maximum, a sum, and sums of weighted values."""

    def __init__(self, k: Kernel, shape: Shape):
        """`shape` is that of the weighted sums, along whose first axis the rows are."""
        rows = [shape[0]]
        self.shape = shape
        self.top, self.total, self.result = (k.fresh("v") for _ in range(3))
        self.lowest = k.choices.pick(["float('-inf')", "-9.0"])
        k.emit(f"{self.top} = tl.full({rows}, {self.lowest}, T)")
        k.emit(f"{self.total} = tl.zeros({rows}, T)")
        k.emit(f"{self.result} = tl.zeros({list(shape)}, T)")
        self.rescaled = k.kind(
            "online softmax by",
            {"a factor": 4, "a factor of its own": 2, "dead code": 2, "a quotient": 1},
        )
        self.guarded = k.maybe("guarded maximum", 20)
        self.power = k.choices.pick(["exp", "exp", "exp2"])

    def across(self, name: str) -> str:
        """Return a vector of rows for the weighted sums' shape."""
        return spread(name, self.shape, 0)

    def change(self, k: Kernel, scores: str, part) -> None:
        """Write an iteration; `part` makes of its weights what is added to the sums."""
        top, total, result, exp = self.top, self.total, self.result, f"tl.{self.power}"
        new, weights, factor = (k.fresh("s") for _ in range(3))
        k.emit(f"{new} = tl.maximum({top}, tl.max({scores}, 1))")
        shift = new
        if self.guarded:
            shift = k.fresh("s")
            k.emit(f"{shift} = tl.where({new} == float('-inf'), 0.0, {new})")
        k.emit(f"{weights} = {exp}({scores} - {shift}[:, None])")
        k.emit(f"{factor} = {exp}({top} - {shift})")
        added = part(weights)
        own = factor
        if self.rescaled == "a factor of its own":
            own = f"{exp}({top} - {shift})"
        elif self.rescaled == "dead code":
            own = k.fresh("s")
            k.emit(f"{own} = {total} * 0 + {factor}")
        elif self.rescaled == "a quotient":
            own = k.fresh("s")
            k.emit(f"{own} = 1.0 / {exp}({shift} - {top})")
        if k.choices.chance(50):
            k.emit(f"{total} = {total} * {factor} + tl.sum({weights}, 1)")
            k.emit(f"{result} = {result} * {self.across(own)} + {added}")
        else:
            k.emit(f"{result} = {result} * {self.across(own)} + {added}")
            k.emit(f"{total} = {total} * {factor} + tl.sum({weights}, 1)")
        k.emit(f"{top} = {new}")
