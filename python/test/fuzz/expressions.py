"""Elementwise float expressions, each with bounds, so that every function stays on its domain."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .lanes import from_data, leaving, settled
from .program import Kernel, Value

# Larger numbers are scaled down, so that finite differences keep their digits.
LIMIT = 12.0


@dataclass(frozen=True)
class Function:
    """A function of one argument: how it is written, where it is smooth, and its range."""

    text: str
    domain: str  # "any", "positive", or "small"
    bounds: Callable[[float, float], tuple[float, float]]


def _monotonic(f):
    return lambda low, high: (f(low), f(high))


def _even(f):
    def bounds(low, high):
        top = max(f(low), f(high))
        return (0.0 if low <= 0 <= high else min(f(low), f(high)), top)

    return bounds


def _range(low, high):
    return lambda *_: (low, high)


FUNCTIONS = {
    "neg": Function("-{x}", "any", lambda low, high: (-high, -low)),
    "square": Function("{x} * {x}", "any", _even(lambda x: x * x)),
    "exp": Function("tl.exp({x})", "small", _monotonic(math.exp)),
    "exp2": Function("tl.exp2({x})", "small", _monotonic(lambda x: 2.0**x)),
    "log": Function("tl.log({x})", "positive", _monotonic(math.log)),
    "log2": Function("tl.log2({x})", "positive", _monotonic(math.log2)),
    "sqrt": Function("tl.sqrt({x})", "positive", _monotonic(math.sqrt)),
    "rsqrt": Function(
        "tl.rsqrt({x})", "positive", lambda low, high: (1 / math.sqrt(high), 1 / math.sqrt(low))
    ),
    "reciprocal": Function("1.0 / {x}", "positive", lambda low, high: (1 / high, 1 / low)),
    "sin": Function("tl.sin({x})", "any", _range(-1.0, 1.0)),
    "cos": Function("tl.cos({x})", "any", _range(-1.0, 1.0)),
    "abs": Function("tl.abs({x})", "any", _even(abs)),
    "erf": Function("tl.erf({x})", "any", _range(-1.0, 1.0)),
    "sigmoid": Function("tl.sigmoid({x})", "any", _range(0.0, 1.0)),
    "floor": Function("tl.floor({x})", "any", lambda low, high: (low - 1, high)),
    "ceil": Function("tl.ceil({x})", "any", lambda low, high: (low, high + 1)),
    "tanh": Function("c.tanh({x})", "any", _range(-1.0, 1.0)),
    "silu": Function("c.silu({x})", "any", lambda low, high: (min(low, -0.3), max(high, 0.0))),
    "libdevice.tanh": Function("libdevice.tanh({x})", "any", _range(-1.0, 1.0)),
    "libdevice.atan": Function("libdevice.atan({x})", "any", _range(-1.6, 1.6)),
    "libdevice.log1p": Function("libdevice.log1p({x})", "positive", _monotonic(math.log1p)),
    "libdevice.expm1": Function("libdevice.expm1({x})", "small", _monotonic(math.expm1)),
    "libdevice.asinh": Function("libdevice.asinh({x})", "any", _monotonic(math.asinh)),
    "narrow": Function("{x}.to(M).to(T)", "any", lambda low, high: (low, high)),
    "narrow otherwise": Function("{x}.to(A).to(T)", "any", lambda low, high: (low, high)),
    "abs by bits": Function("c.abs_by_bits({x})", "any", lambda low, high: (0.0, max(-low, high))),
    "negated by bits": Function("c.negated_by_bits({x})", "any", lambda low, high: (-high, -low)),
    "clamp": Function("tl.clamp({x}, -0.9, 1.1)", "any", _range(-0.9, 1.1)),
    "remainder": Function("{x} % 1.7", "any", _range(-1.7, 1.7)),
    "integer": Function(
        "tl.cast({x} * 2.0, tl.int32).to(T)", "any", lambda low, high: (2 * low - 1, 2 * high + 1)
    ),
}


def scaled(k: Kernel, value: Value, limit: float) -> Value:
    """Return the value, or a smaller one made of it if it may exceed the limit."""
    if value.size <= limit:
        return value
    x = value.text
    how = k.choices.weighted({"factor": 4, "sin": 1, "quotient": 2, "clamp": 1, "wave": 1})
    if how == "factor":
        factor = limit / value.size
        low, high = value.low * factor, value.high * factor
        return k.floating(f"{x} * {factor!r}", value.shape, low, high)
    bound = min(1.0, limit)
    text = {
        "sin": f"tl.sin({x})",
        "quotient": f"{x} / (1.0 + tl.abs({x}))",
        # Limits that no rounded input is equal to: two kinks at a point have no one derivative.
        "clamp": f"tl.minimum(tl.maximum({x}, -0.9973), 0.9973)",
        "wave": f"tl.cos({x} * 0.5)",
    }[how]
    if limit < 1.0:
        text = f"{text} * {limit}" if how in ("sin", "clamp", "wave") else f"({text}) * {limit}"
    return k.floating(text, value.shape, -bound, bound)


def positive(k: Kernel, value: Value, limit: float = LIMIT) -> Value:
    """Return a value from 0.2 to the limit, which is at least 3, made of a value."""
    if value.low >= 0.2 and value.high <= limit:
        return value
    value = scaled(k, value, math.sqrt(limit - 0.5))
    how = k.choices.pick(["abs", "square", "exp", "shift", "maximum"])
    x, shape = value.text, value.shape
    if how == "abs":
        return k.floating(f"tl.abs({x}) + 0.5", shape, 0.5, value.size + 0.5)
    if how == "square":
        return k.floating(f"{x} * {x} + 0.5", shape, 0.5, value.size**2 + 0.5)
    if how == "exp":
        small = scaled(k, value, 1.0)
        return k.floating(f"tl.exp({small.text})", shape, math.exp(small.low), math.exp(small.high))
    if how == "shift":
        shift = 0.5 - value.low
        return k.floating(f"{x} + {shift!r}", shape, 0.5, value.high + shift)
    return k.floating(f"tl.maximum({x}, 0.3)", shape, 0.3, max(value.high, 0.3))


def apply(k: Kernel, name: str, value: Value) -> Value:
    """Return a function of a value."""
    function = FUNCTIONS[name]
    k.feature(f"function {name}")
    if function.domain == "positive":
        value = positive(k, value)
    else:
        value = scaled(k, value, 2.0 if function.domain == "small" else LIMIT)
    low, high = function.bounds(value.low, value.high)
    return k.floating(function.text.format(x=value.text), value.shape, low, high)


def unary(k: Kernel, value: Value) -> Value:
    """Return a random function of a value, that may be undefined in some lanes."""
    tall = value.shape != ()
    options = {"function": 8, "beside its domain": 2 * tall, "on one side": tall}
    how = k.choices.weighted(options)
    if how == "beside its domain":
        return leaving(k, positive(k, value, 3.0))
    if how == "on one side":
        return from_data(k, scaled(k, value, 3.0))
    return apply(k, k.kind("function", dict.fromkeys(FUNCTIONS, 1)), value)


BINARY = (
    "add", "multiply", "subtract", "divide", "maximum", "minimum", "fma", "where", "power", "call",
    "multiply in M", "add in A", "chosen by bits",
)  # fmt: skip


def binary(k: Kernel, a: Value, b: Value) -> Value:
    """Return a random function of two values whose shapes broadcast to that of the first."""
    how = k.kind("function of two", dict.fromkeys(BINARY, 1))
    a, b = scaled(k, a, LIMIT), scaled(k, b, LIMIT)
    if how == "add":
        return k.floating(f"{a.text} + {b.text}", a.shape, a.low + b.low, a.high + b.high)
    if how == "subtract":
        return k.floating(f"{a.text} - {b.text}", a.shape, a.low - b.high, a.high - b.low)
    if how == "maximum":
        text = f"tl.maximum({a.text}, {b.text})"
        return k.floating(text, a.shape, max(a.low, b.low), max(a.high, b.high))
    if how == "minimum":
        text = f"tl.minimum({a.text}, {b.text})"
        return k.floating(text, a.shape, min(a.low, b.low), min(a.high, b.high))
    if how == "where":
        condition = predicate(k, a, b)
        text = f"tl.where({condition}, {a.text}, {b.text})"
        return k.floating(text, a.shape, min(a.low, b.low), max(a.high, b.high))
    if how == "chosen by bits":
        condition = predicate(k, a, b)
        text = f"c.chosen_by_bits({a.text}, {b.text}, {condition})"
        return k.floating(text, a.shape, min(a.low, b.low), max(a.high, b.high))
    if how == "divide":
        b = positive(k, b)
        bound = a.size / b.low
        return k.floating(f"{a.text} / {b.text}", a.shape, -bound, bound)
    if how == "power":
        base, exponent = positive(k, a, 3.0), scaled(k, b, 1.5)
        bound = max(base.high, 1 / base.low) ** exponent.size
        text = f"tl.exp({exponent.text} * tl.log({base.text}))"
        return k.floating(text, a.shape, 1 / bound, bound)
    a, b = scaled(k, a, 3.0), scaled(k, b, 3.0)
    bound = a.size * b.size
    if how == "multiply":
        return k.floating(f"{a.text} * {b.text}", a.shape, -bound, bound)
    if how == "multiply in M":
        return k.floating(f"({a.text}.to(M) * {b.text}.to(M)).to(T)", a.shape, -bound, bound)
    if how == "add in A":
        text = f"({a.text}.to(A) + {b.text}.to(A)).to(T)"
        return k.floating(text, a.shape, a.low + b.low, a.high + b.high)
    if how == "call":
        bound = a.size**3 + a.size * b.size
        # Only scalars can be passed to a function that is not inlined.
        name = "cubic" if a.shape or b.shape else "cubic_call"
        return k.floating(f"c.{name}({a.text}, {b.text})", a.shape, -bound, bound)
    text = f"tl.fma({a.text}, {b.text}, {a.text})"
    if a.shape != b.shape:
        text = f"{a.text} * {b.text} + {a.text}"
    return k.floating(text, a.shape, -bound - a.size, bound + a.size)


def predicate(k: Kernel, a: Value, b: Value) -> str:
    """Return a comparison of floats; b broadcasts to a's shape."""
    how = k.choices.weighted({"greater": 4, "less": 3, "constant": 2, "and": 1, "or": 1, "not": 1})
    a, b = settled(k, a), settled(k, b)
    x, y = a.text, b.text
    return {
        "greater": f"{x} > {y}",
        "less": f"{x} < {y}",
        "constant": f"{x} > {k.choices.pick([0.1, -0.3, 0.7])}",
        "and": f"({x} > {y}) & ({x} < 0.8)",
        "or": f"({x} > {y}) | ({x} < -0.2)",
        "not": f"~({x} > {y})",
    }[how]
