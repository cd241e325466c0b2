"""One random operation on tiles, of any kind."""

from __future__ import annotations

from .expressions import LIMIT, binary, scaled, unary
from .layouts import rearranged
from .memory import load
from .products import decay, product
from .program import Kernel, Value
from .softmax import statistic
from .tiles import Shape, converted, operand, scanned


def expression(k: Kernel, shape: Shape) -> Value:
    """Define a float of a shape by one random operation or a few."""
    tall = shape != ()
    how = k.kind(
        "operation",
        {
            "binary": 10,
            "unary": 8,
            "load": 3,
            "scan": 2 * tall,
            "layout": 3 * tall,
            "normalisation": 2 * tall,
            "product": 1,
            "decay": 1,
        },
    )
    if how == "load":
        return load(k, shape)
    if how == "product":
        return converted(k, scaled(k, product(k), LIMIT), shape)
    if how == "decay":
        return converted(k, scaled(k, decay(k), LIMIT), shape)
    value = operand(k, shape)
    if how == "scan":
        return scanned(k, value)
    if how == "layout":
        return rearranged(k, value)
    if how == "normalisation":
        return statistic(k, value)
    if how == "unary":
        return unary(k, value)
    other = () if k.choices.chance(20) else shape
    return binary(k, value, operand(k, other))
