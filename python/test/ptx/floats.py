"""Arithmetic of floats, rounded in every way, and its approximations."""

from __future__ import annotations

import math

from rounding import (
    BF16,
    F16,
    F32,
    F64,
    add,
    divide,
    multiply,
    multiply_add,
    quantum,
    root,
    rounded,
)

from .table import DTYPES, FORMATS, enter, flushing, numbers, rectifying, saturating


def _larger(x, y):
    if math.isnan(x) or math.isnan(y):
        return y if math.isnan(x) else x
    if x == y:
        return x if math.copysign(1, x) > 0 else y
    return max(x, y)


def _smaller(x, y):
    return -_larger(-x, -y)


def _or_nan(function):
    return lambda *x: math.nan if any(map(math.isnan, x)) else function(*x)


ARITHMETIC = {
    "add": (2, add),
    "sub": (2, lambda x, y, *how: add(x, -y, *how)),
    "mul": (2, multiply),
    "fma": (3, multiply_add),
}


# Results are rounded as if exponents had no end, and flushed then: seen on an H100.
ENDLESS = F32._replace(smallest=-500)


def _rounding(function, *how):
    return lambda *x: function(*x, *how)


def _enter_arithmetic():
    for kind, form in FORMATS.items():
        wide = kind in ("f32", "f64")
        for opcode, (count, function) in ARITHMETIC.items():
            modes = ("rn", "rz", "rm", "rp") if wide else ("rn",)
            for mode in modes:
                exact = _rounding(function, form, mode)
                text = f"{opcode}.{mode}.{kind}"
                operands = " ".join([kind] * count)
                arguments = numbers(0, count + 1)
                # Halves are rounded in the same way, with or without saying so.
                capability = 90 if kind == "bf16" and opcode != "fma" else 80
                enter(text, f"{text} {arguments};", operands, kind, exact, capability=capability)
                if kind == "f32":
                    endless = _rounding(function, ENDLESS, mode)
                    enter(f"{text} flushing", f"{opcode}.{mode}.ftz.f32 {arguments};", operands,
                           kind, flushing(endless, F32))  # fmt: skip
                    enter(f"{text} saturating", f"{opcode}.{mode}.sat.f32 {arguments};", operands,
                           kind, saturating(exact))  # fmt: skip
        enter(f"neg.{kind}", f"neg.{kind} $0, $1;", kind, kind, lambda x: -x)
        enter(f"abs.{kind}", f"abs.{kind} $0, $1;", kind, kind, abs)
        enter(f"mov.{kind}", f"mov.b{8 * DTYPES[kind].itemsize} $0, $1;", kind, kind, lambda x: x)
        pair = f"{kind} {kind}"
        for opcode, function in (("max", _larger), ("min", _smaller)):
            enter(f"{opcode}.{kind}", f"{opcode}.{kind} $0, $1, $2;", pair, kind, function)
            if kind != "f64":
                enter(f"{opcode}.NaN.{kind}", f"{opcode}.NaN.{kind} $0, $1, $2;", pair, kind,
                       _or_nan(function))  # fmt: skip
        if wide:
            enter(f"copysign.{kind}", f"copysign.{kind} $0, $2, $1;", pair, kind, math.copysign)
    for kind in ("f16", "bf16"):
        form = FORMATS[kind]
        fused = _rounding(multiply_add, form)
        three = " ".join([kind] * 3)
        enter(f"fma.{kind}x2", f"fma.rn.{kind}x2 $0, $1, $2, $3;", three, kind, fused, pack=2)
        enter(f"fma.relu.{kind}x2", f"fma.rn.relu.{kind}x2 $0, $1, $2, $3;", three, kind,
               rectifying(fused), pack=2)  # fmt: skip
        enter(f"max.{kind}x2", f"max.{kind}x2 $0, $1, $2;", f"{kind} {kind}", kind, _larger,
               pack=2)  # fmt: skip
        enter(f"neg.{kind}x2", f"neg.{kind}x2 $0, $1;", kind, kind, lambda x: -x, pack=2)
    enter("add.f16x2", "add.rn.f16x2 $0, $1, $2;", "f16 f16", "f16",
           lambda x, y: add(x, y, F16), pack=2)  # fmt: skip
    enter("fma.sat.f16", "fma.rn.sat.f16 $0, $1, $2, $3;", "f16 f16 f16", "f16",
           saturating(lambda *x: multiply_add(*x, F16)))  # fmt: skip
    enter("max.ftz.f32", "max.ftz.f32 $0, $1, $2;", "f32 f32", "f32", flushing(_larger, F32))
    enter("abs.ftz.f32", "abs.ftz.f32 $0, $1;", "f32", "f32", flushing(abs, F32))
    for kind, form in (("f32", F32), ("f64", F64)):
        for mode in ("rn", "rz", "rm", "rp"):
            how = (form, mode)
            enter(f"div.{mode}.{kind}", f"div.{mode}.{kind} $0, $1, $2;", f"{kind} {kind}", kind,
                   lambda x, y, how=how: divide(x, y, *how))  # fmt: skip
            enter(f"rcp.{mode}.{kind}", f"rcp.{mode}.{kind} $0, $1;", kind, kind,
                   lambda x, how=how: divide(1.0, x, *how))  # fmt: skip
            enter(f"sqrt.{mode}.{kind}", f"sqrt.{mode}.{kind} $0, $1;", kind, kind,
                   lambda x, how=how: root(x, *how))  # fmt: skip


def _within(ulps: float, form=F32):
    """In units of the last place of what is expected."""
    return lambda expected, got, *_: abs(got - expected) <= ulps * float(quantum(expected, form))


def _relative(bound: float):
    return lambda expected, got, *_: abs(got - expected) <= bound * abs(expected)


def _absolute(bound: float):
    return lambda expected, got, *_: abs(got - expected) <= bound


def _logarithm(expected, got, x):
    bound = 2.0**-22
    return abs(got - expected) <= (bound if 0.5 < x < 2 else bound * abs(expected))


def _power(x):
    if x > 1000:
        return math.inf
    return 2.0**-1000 if x < -1000 else 2.0**x


def _log2(x):
    if x == 0:
        return -math.inf
    return math.nan if x < 0 else math.log2(x) if x < math.inf else x


def _finite(function):
    return lambda x: function(x) if math.isfinite(x) else math.nan


def _quotient(x, y):
    """What div.approx gives, which multiplies by a reciprocal that it flushes."""
    if 2.0**126 < abs(y) < math.inf:
        return math.nan if math.isinf(x) or math.isnan(x) else x * 0.0 * math.copysign(1, y)
    return divide(x, y, F64)


APPROXIMATE = {
    "ex2.approx": (_power, {"tolerance": _within(2)}),
    "lg2.approx": (_log2, {"tolerance": _logarithm}),
    "rcp.approx": (lambda x: divide(1.0, x, F64), {"tolerance": _within(1.5)}),
    "sqrt.approx": (lambda x: root(x, F64), {"tolerance": _within(2)}),
    "rsqrt.approx": (
        lambda x: divide(1.0, root(x, F64), F64),
        {"tolerance": _relative(2.0**-22.4)},
    ),
    "sin.approx": (_finite(math.sin), {"tolerance": _absolute(2.0**-20), "limit": 6.28}),
    "cos.approx": (_finite(math.cos), {"tolerance": _absolute(2.0**-20), "limit": 6.28}),
}


def _narrow(function, form):
    """In a narrower format than the function is computed in."""
    return lambda *x: rounded(function(*x), form)


def _enter_approximations():
    for opcode, (function, options) in APPROXIMATE.items():
        exact = _narrow(function, F32)
        enter(f"{opcode}.f32", f"{opcode}.f32 $0, $1;", "f32", "f32", exact, **options)
        enter(f"{opcode}.ftz.f32", f"{opcode}.ftz.f32 $0, $1;", "f32", "f32",
               flushing(exact, F32), **options)  # fmt: skip
    enter("tanh.approx.f32", "tanh.approx.f32 $0, $1;", "f32", "f32", math.tanh,
           tolerance=_relative(2.0**-10.9))  # fmt: skip
    for kind, bound in (("f16", 2.0**-10), ("bf16", 2.0**-7)):
        form = FORMATS[kind]
        enter(f"tanh.approx.{kind}", f"tanh.approx.{kind} $0, $1;", kind, kind,
               _narrow(math.tanh, form), tolerance=_absolute(bound), capability=90)  # fmt: skip
        enter(f"tanh.approx.{kind}x2", f"tanh.approx.{kind}x2 $0, $1;", kind, kind,
               _narrow(math.tanh, form), tolerance=_absolute(bound), pack=2,
               capability=90)  # fmt: skip
    enter("ex2.approx.f16", "ex2.approx.f16 $0, $1;", "f16", "f16", _narrow(_power, F16),
           tolerance=_within(2, F16))  # fmt: skip
    enter("ex2.approx.f16x2", "ex2.approx.f16x2 $0, $1;", "f16", "f16", _narrow(_power, F16),
           tolerance=_within(2, F16), pack=2)  # fmt: skip
    enter("ex2.approx.ftz.bf16x2", "ex2.approx.ftz.bf16x2 $0, $1;", "bf16", "bf16",
           flushing(_narrow(_power, BF16), BF16), tolerance=_within(2, BF16), pack=2,
           capability=90)  # fmt: skip
    full = _narrow(lambda x, y: divide(x, y, F64), F32)
    enter("div.full.f32", "div.full.f32 $0, $1, $2;", "f32 f32", "f32", full,
           tolerance=_within(2.5), limit=2.0**120)  # fmt: skip
    enter("div.approx.f32", "div.approx.f32 $0, $1, $2;", "f32 f32", "f32",
           _narrow(_quotient, F32), tolerance=_within(2.5))  # fmt: skip


_enter_arithmetic()
_enter_approximations()
