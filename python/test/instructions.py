"""PTX instructions and what each of them is, computed exactly: a table for the tests.

An entry has the assembly, the types of operands and result, a function of one element, and how far
an approximation may be off. Elements are Python floats, or integers as they are in registers.
"""

from __future__ import annotations

import dataclasses
import math
import struct
from collections.abc import Callable

import torch
from rounding import (
    BF16,
    E4M3,
    E5M2,
    F16,
    F32,
    F64,
    TF32,
    add,
    divide,
    flushed,
    multiply,
    multiply_add,
    quantum,
    root,
    rounded,
    whole,
)

FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
}


@dataclasses.dataclass(frozen=True)
class Instruction:
    """A piece of assembly for one element, or for `pack` of them."""

    text: str
    operands: tuple[str, ...]
    result: str
    function: Callable
    pack: int = 1
    #: (expected, got, operands) → whether an approximation is good enough; exact without it.
    tolerance: Callable | None = None
    #: What operands are limited to, where the error is only stated for these.
    limit: float | None = None
    #: The least compute capability that has it.
    capability: int = 80


TABLE: dict[str, Instruction] = {}


def _enter(name: str, text: str, operands: str, result: str, function, **options):
    assert name not in TABLE, name
    TABLE[name] = Instruction(text, tuple(operands.split()), result, function, **options)


def _numbers(first: int, count: int) -> str:
    return ", ".join(f"${i}" for i in range(first, first + count))


def _flushing(function, form):
    return lambda *x: flushed(function(*(flushed(value, form) for value in x)), form)


def _saturating(function):
    def saturated(*x):
        y = function(*x)
        return 0.0 if not y > 0 else min(y, 1.0)

    return saturated


def _rectifying(function):
    def rectified(*x):
        y = function(*x)
        return y if math.isnan(y) or y > 0 else 0.0

    return rectified


# --------------------------------------------------------------------------- arithmetic of floats


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


def _enter_arithmetic():
    for kind, form in FORMATS.items():
        wide = kind in ("f32", "f64")
        for opcode, (count, function) in ARITHMETIC.items():
            modes = ("rn", "rz", "rm", "rp") if wide else ("rn",)
            for mode in modes:
                exact = lambda *x, f=function, form=form, mode=mode: f(*x, form, mode)  # noqa: E731
                text = f"{opcode}.{mode}.{kind}"
                operands = " ".join([kind] * count)
                arguments = _numbers(0, count + 1)
                # Halves are rounded in the same way, with or without saying so.
                capability = 90 if kind == "bf16" and opcode != "fma" else 80
                _enter(text, f"{text} {arguments};", operands, kind, exact, capability=capability)
                if kind == "f32":
                    _enter(f"{text} flushing", f"{opcode}.{mode}.ftz.f32 {arguments};", operands,
                           kind, _flushing(exact, F32))  # fmt: skip
                    _enter(f"{text} saturating", f"{opcode}.{mode}.sat.f32 {arguments};", operands,
                           kind, _saturating(exact))  # fmt: skip
        unit = lambda x: x  # noqa: E731
        _enter(f"neg.{kind}", f"neg.{kind} $0, $1;", kind, kind, lambda x: -x)
        _enter(f"abs.{kind}", f"abs.{kind} $0, $1;", kind, kind, abs)
        _enter(f"mov.{kind}", f"mov.b{8 * DTYPES[kind].itemsize} $0, $1;", kind, kind, unit)
        pair = f"{kind} {kind}"
        for opcode, function in (("max", _larger), ("min", _smaller)):
            _enter(f"{opcode}.{kind}", f"{opcode}.{kind} $0, $1, $2;", pair, kind, function)
            if kind != "f64":
                _enter(f"{opcode}.NaN.{kind}", f"{opcode}.NaN.{kind} $0, $1, $2;", pair, kind,
                       _or_nan(function))  # fmt: skip
        if wide:
            _enter(f"copysign.{kind}", f"copysign.{kind} $0, $2, $1;", pair, kind, math.copysign)
    for kind in ("f16", "bf16"):
        form = FORMATS[kind]
        fused = lambda *x, form=form: multiply_add(*x, form)  # noqa: E731
        three = " ".join([kind] * 3)
        _enter(f"fma.{kind}x2", f"fma.rn.{kind}x2 $0, $1, $2, $3;", three, kind, fused, pack=2)
        _enter(f"fma.relu.{kind}x2", f"fma.rn.relu.{kind}x2 $0, $1, $2, $3;", three, kind,
               _rectifying(fused), pack=2)  # fmt: skip
        _enter(f"max.{kind}x2", f"max.{kind}x2 $0, $1, $2;", f"{kind} {kind}", kind, _larger,
               pack=2)  # fmt: skip
        _enter(f"neg.{kind}x2", f"neg.{kind}x2 $0, $1;", kind, kind, lambda x: -x, pack=2)
    _enter("add.f16x2", "add.rn.f16x2 $0, $1, $2;", "f16 f16", "f16",
           lambda x, y: add(x, y, F16), pack=2)  # fmt: skip
    _enter("fma.sat.f16", "fma.rn.sat.f16 $0, $1, $2, $3;", "f16 f16 f16", "f16",
           _saturating(lambda *x: multiply_add(*x, F16)))  # fmt: skip
    _enter("max.ftz.f32", "max.ftz.f32 $0, $1, $2;", "f32 f32", "f32", _flushing(_larger, F32))
    _enter("abs.ftz.f32", "abs.ftz.f32 $0, $1;", "f32", "f32", _flushing(abs, F32))
    for kind, form in (("f32", F32), ("f64", F64)):
        for mode in ("rn", "rz", "rm", "rp"):
            how = (form, mode)
            _enter(f"div.{mode}.{kind}", f"div.{mode}.{kind} $0, $1, $2;", f"{kind} {kind}", kind,
                   lambda x, y, how=how: divide(x, y, *how))  # fmt: skip
            _enter(f"rcp.{mode}.{kind}", f"rcp.{mode}.{kind} $0, $1;", kind, kind,
                   lambda x, how=how: divide(1.0, x, *how))  # fmt: skip
            _enter(f"sqrt.{mode}.{kind}", f"sqrt.{mode}.{kind} $0, $1;", kind, kind,
                   lambda x, how=how: root(x, *how))  # fmt: skip


# --------------------------------------------------------------------------- approximations


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
        _enter(f"{opcode}.f32", f"{opcode}.f32 $0, $1;", "f32", "f32", exact, **options)
        _enter(f"{opcode}.ftz.f32", f"{opcode}.ftz.f32 $0, $1;", "f32", "f32",
               _flushing(exact, F32), **options)  # fmt: skip
    _enter("tanh.approx.f32", "tanh.approx.f32 $0, $1;", "f32", "f32", math.tanh,
           tolerance=_relative(2.0**-10.9))  # fmt: skip
    for kind, bound in (("f16", 2.0**-10), ("bf16", 2.0**-7)):
        form = FORMATS[kind]
        _enter(f"tanh.approx.{kind}", f"tanh.approx.{kind} $0, $1;", kind, kind,
               _narrow(math.tanh, form), tolerance=_absolute(bound), capability=90)  # fmt: skip
        _enter(f"tanh.approx.{kind}x2", f"tanh.approx.{kind}x2 $0, $1;", kind, kind,
               _narrow(math.tanh, form), tolerance=_absolute(bound), pack=2,
               capability=90)  # fmt: skip
    _enter("ex2.approx.f16", "ex2.approx.f16 $0, $1;", "f16", "f16", _narrow(_power, F16),
           tolerance=_within(2, F16))  # fmt: skip
    _enter("ex2.approx.f16x2", "ex2.approx.f16x2 $0, $1;", "f16", "f16", _narrow(_power, F16),
           tolerance=_within(2, F16), pack=2)  # fmt: skip
    _enter("ex2.approx.ftz.bf16x2", "ex2.approx.ftz.bf16x2 $0, $1;", "bf16", "bf16",
           _flushing(_narrow(_power, BF16), BF16), tolerance=_within(2, BF16), pack=2,
           capability=90)  # fmt: skip
    full = _narrow(lambda x, y: divide(x, y, F64), F32)
    _enter("div.full.f32", "div.full.f32 $0, $1, $2;", "f32 f32", "f32", full,
           tolerance=_within(2.5), limit=2.0**120)  # fmt: skip
    _enter("div.approx.f32", "div.approx.f32 $0, $1, $2;", "f32 f32", "f32",
           _narrow(_quotient, F32), tolerance=_within(2.5))  # fmt: skip


# --------------------------------------------------------------------------- conversions


def _to_integer(mode, bits, signed, wide):
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)

    def convert(x):
        if math.isnan(x):
            return 2 ** (bits - 1) if wide else 0
        if math.isinf(x):
            return high if x > 0 else low
        return min(max(int(whole(x, mode)), low), high)

    return convert


def _signed(value: int, bits: int) -> int:
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def _enter_conversions():
    for narrow, modes in (("f16", ("rn", "rz", "rm", "rp")), ("bf16", ("rn", "rz"))):
        form = FORMATS[narrow]
        for mode in modes:
            _enter(f"cvt.{mode}.{narrow}.f32", f"cvt.{mode}.{narrow}.f32 $0, $1;", "f32", narrow,
                   lambda x, how=(form, mode): rounded(x, *how))  # fmt: skip
        _enter(f"cvt.f32.{narrow}", f"cvt.f32.{narrow} $0, $1;", narrow, "f32", lambda x: x,
               capability=90 if narrow == "bf16" else 80)  # fmt: skip
        # One element and a zero are packed; the zero is thrown away again.
        _enter(f"cvt.rn.{narrow}x2.f32",
               f"{{ .reg .b32 t; .reg .b16 u; cvt.rn.{narrow}x2.f32 t, 0f00000000, $1; "
               "mov.b32 {$0, u}, t; }", "f32", narrow,
               lambda x, form=form: rounded(x, form))  # fmt: skip
        _enter(f"cvt.rz.relu.{narrow}x2.f32",
               f"{{ .reg .b32 t; .reg .b16 u; cvt.rz.relu.{narrow}x2.f32 t, $1, 0f3F800000; "
               "mov.b32 {u, $0}, t; }", "f32", narrow,
               _rectifying(lambda x, form=form: rounded(x, form, "rz")))  # fmt: skip
    for mode in ("rn", "rz", "rm", "rp"):
        _enter(f"cvt.{mode}.f32.f64", f"cvt.{mode}.f32.f64 $0, $1;", "f64", "f32",
               lambda x, mode=mode: rounded(x, F32, mode))  # fmt: skip
        _enter(f"cvt.{mode}.f32.s32", f"cvt.{mode}.f32.s32 $0, $1;", "i32", "f32",
               lambda x, mode=mode: rounded(float(x), F32, mode))  # fmt: skip
        _enter(f"cvt.{mode}.f32.u32", f"cvt.{mode}.f32.u32 $0, $1;", "i32", "f32",
               lambda x, mode=mode: rounded(float(x % 2**32), F32, mode))  # fmt: skip
    _enter("cvt.f64.f32", "cvt.f64.f32 $0, $1;", "f32", "f64", lambda x: x)
    _enter("cvt.ftz.f64.f32", "cvt.ftz.f64.f32 $0, $1;", "f32", "f64", lambda x: flushed(x, F32))
    _enter("cvt.rn.f64.s64", "cvt.rn.f64.s64 $0, $1;", "i64", "f64", float)
    _enter("cvt.rn.f16.s32", "cvt.rn.f16.s32 $0, $1;", "i32", "f16",
           lambda x: rounded(float(x), F16))  # fmt: skip
    _enter("cvt.rn.f32.u8", "cvt.rn.f32.u8 $0, $1;", "i32", "f32", lambda x: float(x % 256))
    _enter("cvt.sat.f32.f32", "cvt.sat.f32.f32 $0, $1;", "f32", "f32", _saturating(lambda x: x))
    for mode in ("rni", "rzi", "rmi", "rpi"):
        _enter(f"cvt.{mode}.f32.f32", f"cvt.{mode}.f32.f32 $0, $1;", "f32", "f32",
               lambda x, mode=mode: whole(x, mode))  # fmt: skip
        _enter(f"cvt.{mode}.f64.f64", f"cvt.{mode}.f64.f64 $0, $1;", "f64", "f64",
               lambda x, mode=mode: whole(x, mode))  # fmt: skip
        for kind, bits, signed in (("s32", 32, True), ("u32", 32, False)):
            _enter(f"cvt.{mode}.{kind}.f32", f"cvt.{mode}.{kind}.f32 $0, $1;", "f32", "i32",
                   _to_integer(mode, bits, signed, wide=False))  # fmt: skip
    for kind, bits, signed in (("s64", 64, True), ("u64", 64, False)):
        for source in ("f32", "f64"):
            _enter(f"cvt.rzi.{kind}.{source}", f"cvt.rzi.{kind}.{source} $0, $1;", source, "i64",
                   _to_integer("rzi", bits, signed, wide=True))  # fmt: skip
    _enter("cvt.rzi.s32.f64", "cvt.rzi.s32.f64 $0, $1;", "f64", "i32",
           _to_integer("rzi", 32, True, wide=True))  # fmt: skip
    for kind, bits, signed in (("s8", 8, True), ("u8", 8, False), ("s16", 16, True)):
        narrow = _to_integer("rni", bits, signed, wide=False)
        _enter(f"cvt.rni.{kind}.f32", f"cvt.rni.{kind}.f32 $0, $1;" if bits == 8 else
               f"{{ .reg .s16 t; cvt.rni.{kind}.f32 t, $1; cvt.s32.s16 $0, t; }}", "f32", "i32",
               narrow)  # fmt: skip
        _enter(f"cvt.sat.{kind}.s32", f"{{ .reg .{kind} t; cvt.sat.{kind}.s32 t, $1; "
               f"cvt.s32.{kind} $0, t; }}", "i32", "i32",
               lambda x, b=bits, s=signed: min(max(x, -(2 ** (b - 1)) if s else 0),
                                               2 ** (b - s) - 1))  # fmt: skip
    _enter("cvt.s32.s8", "cvt.s32.s8 $0, $1;", "i32", "i32", lambda x: _signed(x, 8))
    _enter("cvt.u32.u16", "cvt.u32.u16 $0, $1;", "i32", "i32", lambda x: x % 2**16)
    _enter("cvt.s64.s32", "cvt.s64.s32 $0, $1;", "i32", "i64", lambda x: x)
    _enter("cvt.u64.u32", "cvt.u64.u32 $0, $1;", "i32", "i64", lambda x: x % 2**32)
    _enter("cvt.rna.tf32.f32", "cvt.rna.tf32.f32 $0, $1;", "f32", "f32",
           lambda x: rounded(x, TF32, "rna"))  # fmt: skip
    for mode in ("rn", "rz"):
        _enter(f"cvt.{mode}.tf32.f32", f"cvt.{mode}.tf32.f32 $0, $1;", "f32", "f32",
               lambda x, mode=mode: rounded(x, TF32, mode), capability=90)  # fmt: skip
    for kind, form in (("e4m3", E4M3), ("e5m2", E5M2)):
        there = f".reg .b16 t; .reg .b32 u; cvt.rn.satfinite.{kind}x2.f32 t, $1, 0f3F800000;"
        back = f"cvt.rn.f16x2.{kind}x2 u, t; .reg .b16 v, w; mov.b32 {{v, w}}, u;"
        _enter(f"cvt.{kind}x2.f32", f"{{ {there} {back} cvt.f32.f16 $0, w; }}", "f32", "f32",
               lambda x, form=form: rounded(x, form), capability=89)  # fmt: skip
        pair = f"{{ .reg .b16 t; cvt.rn.satfinite.{kind}x2.f16x2 t, $1; cvt.rn.f16x2.{kind}x2 $0, t; }}"  # noqa: E501
        _enter(f"cvt.{kind}x2.f16x2", pair, "f16", "f16", lambda x, form=form: rounded(x, form),
               pack=2, capability=89)  # fmt: skip


# --------------------------------------------------------------------------- integers and bits


def _unsigned(function, bits: int = 32):
    return lambda *x: function(*(value % 2**bits for value in x))


def _truncated(x: int, y: int) -> int:
    """Return the quotient toward zero."""
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _permuted(order):
    def permute(a, b):
        data = (a % 2**32).to_bytes(4, "little") + (b % 2**32).to_bytes(4, "little")
        chosen = bytearray()
        for place in range(4):
            choice = order >> 4 * place & 0xF
            byte = data[choice & 7]
            chosen.append((0xFF if byte & 0x80 else 0) if choice & 8 else byte)
        return int.from_bytes(chosen, "little")

    return permute


def _logic(table):
    def combine(a, b, c):
        bits = 0
        for i in range(32):
            row = (a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1
            bits |= (table >> row & 1) << i
        return bits

    return combine


def _extracted(low, length, signed):
    def extract(a):
        a %= 2**32
        top = min(low + length - 1, 31)
        fill = a >> top & 1 if signed and length else 0
        bits = 0
        for i in range(32):
            inside = i < length and i + low <= 31
            bits |= (a >> (i + low) & 1 if inside else fill) << i
        return bits

    return extract


def _inserted(low, length):
    mask = sum(1 << i for i in range(32) if low <= i < low + length)
    return lambda a, b: (b & ~mask) | (a << low & mask)


def _enter_integers():
    one, two, three = "i32", "i32 i32", "i32 i32 i32"
    for name, function in {
        "add.s32": lambda x, y: x + y,
        "sub.s32": lambda x, y: x - y,
        "mul.lo.s32": lambda x, y: x * y,
        "mul.hi.s32": lambda x, y: x * y >> 32,
        "mul.hi.u32": _unsigned(lambda x, y: x * y >> 32),
        "min.s32": min,
        "max.u32": _unsigned(max),
        "and.b32": lambda x, y: x & y,
        "or.b32": lambda x, y: x | y,
        "xor.b32": lambda x, y: x ^ y,
        "shl.b32": lambda x, y: x << y % 2**32 if y % 2**32 < 32 else 0,
        "shr.u32": _unsigned(lambda x, y: x >> y if y < 32 else 0),
        "shr.s32": lambda x, y: x >> min(y % 2**32, 31),
        "add.sat.s32": lambda x, y: min(max(x + y, -(2**31)), 2**31 - 1),
        "sub.sat.s32": lambda x, y: min(max(x - y, -(2**31)), 2**31 - 1),
    }.items():
        _enter(name, f"{name} $0, $1, $2;", two, one, function)
    for name, function in {
        "abs.s32": abs,
        "neg.s32": lambda x: -x,
        "not.b32": lambda x: ~x,
        "cnot.b32": lambda x: int(x == 0),
        "popc.b32": _unsigned(lambda x: bin(x).count("1")),
        "clz.b32": _unsigned(lambda x: 32 - x.bit_length()),
        "brev.b32": _unsigned(lambda x: int(f"{x:032b}"[::-1], 2)),
    }.items():
        _enter(name, f"{name} $0, $1;", one, one, function)
    for name, divisor, function in (
        ("div.s32", -7, _truncated),
        ("div.u32", 7, lambda x, y: x % 2**32 // y),
        ("rem.s32", 7, lambda x, y: x - _truncated(x, y) * y),
        ("rem.u32", 10, lambda x, y: x % 2**32 % y),
    ):
        _enter(name, f"{name} $0, $1, {divisor};", one, one,
               lambda x, y=divisor, f=function: f(x, y))  # fmt: skip
    _enter("mad.lo.s32", "mad.lo.s32 $0, $1, $2, $3;", three, one, lambda x, y, z: x * y + z)
    _enter("mad.lo.u32 by 5", "mad.lo.u32 $0, $1, 5, $2;", two, one, lambda x, y: x * 5 + y)
    _enter("mul.wide.s32", "mul.wide.s32 $0, $1, $2;", two, "i64", lambda x, y: x * y)
    _enter("mad.wide.u32", "{ .reg .u64 t; cvt.u64.u32 t, $3; mad.wide.u32 $0, $1, $2, t; }",
           three, "i64", _unsigned(lambda x, y, z: x * y + z))  # fmt: skip
    for table in (0xF8, 0xEA, 0x96, 0xE8, 0x1B, 0xCA, 0x3F, 0x00, 0xFF, 0x80, 0x01):
        _enter(f"lop3.b32 {table:#x}", f"lop3.b32 $0, $1, $2, $3, {table:#x};", three, one,
               _logic(table))  # fmt: skip
    for order in (0x5746, 0x0123, 0xB3A1, 0x7531):
        _enter(f"prmt.b32 {order:#x}", f"prmt.b32 $0, $1, $2, {order:#x};", two, one,
               _permuted(order))  # fmt: skip
    for low, length in ((0, 0), (4, 8), (20, 12), (25, 20), (31, 1), (0, 32), (40, 5)):
        where = f"{low} {length}"
        for kind in ("u", "s"):
            _enter(f"bfe.{kind}32 {where}", f"bfe.{kind}32 $0, $1, {low}, {length};", one, one,
                   _extracted(low, length, kind == "s"))  # fmt: skip
        _enter(f"bfi.b32 {where}", f"bfi.b32 $0, $1, $2, {low}, {length};", two, one,
               _inserted(low, length))  # fmt: skip

    def funnel(up, clamps):
        def shift(a, b, c):
            both = (b % 2**32) << 32 | a % 2**32
            places = min(c % 2**32, 32) if clamps else c % 32
            return both << places >> 32 if up else both >> places

        return shift

    for up in "lr":
        for mode in ("wrap", "clamp"):
            _enter(f"shf.{up}.{mode}.b32", f"shf.{up}.{mode}.b32 $0, $1, $2, $3;", three, one,
                   funnel(up == "l", mode == "clamp"))  # fmt: skip
    for kind, places in (("u", 9), ("s", 9), ("s", 40)):
        _enter(f"shr.{kind}32 {places}", f"shr.{kind}32 $0, $1, {places};", one, one,
               (lambda x, p=places: x >> p) if kind == "s" else
               _unsigned(lambda x, p=places: x >> p))  # fmt: skip


# --------------------------------------------------------------------------- predicates


COMPARISONS = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x < y or x > y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}


def _is_unordered(x, y):
    return math.isnan(x) or math.isnan(y)


def _enter_comparisons():
    pair = "f32 f32"
    tests = {f"{name}": test for name, test in COMPARISONS.items()}
    tests |= {
        f"{name}u": lambda x, y, t=test: t(x, y) or _is_unordered(x, y)
        for name, test in COMPARISONS.items()
    }
    tests |= {"num": lambda x, y: not _is_unordered(x, y), "nan": _is_unordered}
    for name, test in tests.items():
        _enter(f"setp.{name}.f32", f"{{ .reg .pred p; setp.{name}.f32 p, $1, $2; "
               "selp.b32 $0, 5, -7, p; }", pair, "i32",
               lambda x, y, t=test: 5 if t(x, y) else -7)  # fmt: skip
        _enter(f"set.{name}.u32.f32", f"set.{name}.u32.f32 $0, $1, $2;", pair, "i32",
               lambda x, y, t=test: -1 if t(x, y) else 0)  # fmt: skip
    for name, test in COMPARISONS.items():
        _enter(f"setp.{name}.ftz.f32", f"{{ .reg .pred p; setp.{name}.ftz.f32 p, $1, $2; "
               "selp.b32 $0, 5, -7, p; }", pair, "i32",
               lambda x, y, t=test: 5 if t(flushed(x, F32), flushed(y, F32)) else -7)  # fmt: skip
        _enter(f"setp.{name}.s32", f"{{ .reg .pred p; setp.{name}.s32 p, $1, $2; "
               "selp.b32 $0, 5, -7, p; }", "i32 i32", "i32",
               lambda x, y, t=test: 5 if t(x, y) else -7)  # fmt: skip
        _enter(f"setp.{name}.f16x2", f"{{ .reg .pred p, q; .reg .b16 a, b, one, two; "
               "mov.b16 one, 0x3C00; mov.b16 two, 0x4000; "
               f"setp.{name}.f16x2 p|q, $1, $2; selp.b16 a, one, two, p; "
               "selp.b16 b, one, two, q; mov.b32 $0, {a, b}; }", "f16 f16", "f16",
               lambda x, y, t=test: 1.0 if t(x, y) else 2.0, pack=2)  # fmt: skip
    for name, signed in (("lo", "lt"), ("ls", "le"), ("hi", "gt"), ("hs", "ge")):
        _enter(f"setp.{name}.u32", f"{{ .reg .pred p; setp.{name}.u32 p, $1, $2; "
               "selp.b32 $0, 5, -7, p; }", "i32 i32", "i32",
               _unsigned(lambda x, y, t=COMPARISONS[signed]: 5 if t(x, y) else -7))  # fmt: skip
    logic = {"and": lambda a, b: a and b, "or": lambda a, b: a or b, "xor": lambda a, b: a != b}
    for name, combine in logic.items():
        _enter(f"setp.lt.{name}.f32", "{ .reg .pred p, q, c; setp.gt.f32 c, $3, 0f00000000; "
               f"setp.lt.{name}.f32 p|q, $1, $2, !c; selp.b32 $0, 1, 0, p; "
               "@q add.s32 $0, $0, 2; }", "f32 f32 f32", "i32",
               lambda x, y, z, c=combine: int(c(x < y, not z > 0))
               + 2 * int(c(not x < y, not z > 0)))  # fmt: skip
        _enter(f"{name}.pred", "{ .reg .pred p, q; setp.lt.f32 p, $1, 0f00000000; "
               f"setp.lt.f32 q, $2, 0f00000000; {name}.pred p, p, !q; "
               "selp.f32 $0, $1, $2, p; }", pair, "f32",
               lambda x, y, c=combine: x if c(x < 0, not y < 0) else y)  # fmt: skip
    kinds = {
        "finite": math.isfinite,
        "infinite": math.isinf,
        "number": lambda x: not math.isnan(x),
        "notanumber": math.isnan,
        "normal": lambda x: math.isfinite(x) and abs(x) >= 2.0**-126,
        "subnormal": lambda x: 0 < abs(x) < 2.0**-126,
    }
    for name, test in kinds.items():
        _enter(f"testp.{name}.f32", f"{{ .reg .pred p; testp.{name}.f32 p, $1; "
               "selp.b32 $0, 1, 0, p; }", "f32", "i32", lambda x, t=test: int(t(x)))  # fmt: skip
    _enter("set.lt.f32.f32", "set.lt.f32.f32 $0, $1, $2;", pair, "f32",
           lambda x, y: float(x < y))  # fmt: skip
    _enter("slct.f32.s32", "{ .reg .s32 c; cvt.rzi.s32.f32 c, $3; slct.f32.s32 $0, $1, $2, c; }",
           "f32 f32 f32", "f32", lambda x, y, z: x if not z <= -1 else y)  # fmt: skip
    _enter("slct.f32.f32", "slct.f32.f32 $0, $1, $2, $3;", "f32 f32 f32", "f32",
           lambda x, y, z: x if z >= 0 else y)  # fmt: skip
    _enter("slct.ftz.f32.f32", "slct.ftz.f32.f32 $0, $1, $2, $3;", "f32 f32 f32", "f32",
           lambda x, y, z: x if flushed(z, F32) >= 0 else y)  # fmt: skip


_enter_arithmetic()
_enter_approximations()
_enter_conversions()
_enter_integers()
_enter_comparisons()


# --------------------------------------------------------------------------- operands


def _special_floats(kind: str) -> torch.Tensor:
    """Return zeros, subnormal numbers, ties, limits, infinities and NaN."""
    form = FORMATS[kind]
    tiny, unit = 2.0 ** (form.smallest - form.digits + 1), 2.0 ** (1 - form.digits)
    normal = 2.0**form.smallest
    sizes = [0.0, tiny, normal - tiny, normal, 1.0, 1 + unit, 2.0, 3.0, 0.5, 0.25, 1.5, 2.5]
    sizes += [0.75, 1 - unit / 2, 1 / 3, 6.0, 100.7, form.largest / 2, form.largest, math.inf]
    sizes += [math.nan, 8.5, 448.0, 464.0, 480.0, 57344.0, 61440.0, 65504.0, 65519.0, 65520.0]
    if kind in ("f32", "f64"):
        sizes += [2.0**126 * 1.5, 2.0**31, 2.0**63, 2.0**-149, 2.0**-26, 1 + 2.0**-11, 1 + 2.0**-8]
        sizes += [2.0**31 - 128, 1 + 2.0**-11 + 2.0**-23, 2147483520.0, 4294967040.0, 0.03125]
    both = [sign * size for size in sizes for sign in (1.0, -1.0)]
    return torch.tensor(both, dtype=torch.float64).to(DTYPES[kind])


def _random(kind: str, count: int) -> torch.Tensor:
    """Return numbers of all sizes, and ordinary ones."""
    dtype = DTYPES[kind]
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    info = torch.iinfo(bits)
    wild = torch.randint(info.min, info.max, (count,), dtype=bits)
    if not dtype.is_floating_point:
        return torch.where(torch.rand(count) < 0.5, wild, torch.randint(-40, 70, (count,))).to(bits)
    return torch.where(
        torch.rand(count) < 0.4, wild.view(dtype).double(), torch.randn(count, dtype=torch.float64)
    ).to(dtype)


def operands(instruction: Instruction, count: int = 1024) -> list[torch.Tensor]:
    """Return special values against each other, and random ones."""
    columns = []
    for number, kind in enumerate(instruction.operands):
        if DTYPES[kind].is_floating_point:
            special = _special_floats(kind)
        else:
            low = -(2 ** (8 * DTYPES[kind].itemsize - 1))
            special = torch.tensor(
                [0, 1, -1, 2, 7, 31, 32, 33, 64, 255, low, low + 1, -low - 1, 0x5555, 0x7F00],
                dtype=torch.int64,
            ).to(DTYPES[kind])
        # The first operand goes through all of them for each of the second one's.
        order = torch.arange(count // 2) // len(special) ** number
        if len(instruction.operands) > 2 or number:
            order = torch.where(order < len(special), order, torch.randint(0, 997, order.shape))
        column = torch.cat([special[order % len(special)], _random(kind, count - len(order))])
        if instruction.limit is not None:
            keeps = (column.double().abs() <= instruction.limit) | ~column.isfinite()
            column = torch.where(keeps, column, torch.ones((), dtype=column.dtype))
        columns.append(column)
    return columns


def expected(instruction: Instruction, inputs: list[torch.Tensor]) -> torch.Tensor:
    """Return the results, one element at a time."""
    rows = zip(*(x.tolist() for x in inputs), strict=True)
    dtype = DTYPES[instruction.result]
    values = [instruction.function(*row) for row in rows]
    if dtype.is_floating_point:
        return torch.tensor(values, dtype=torch.float64)
    bits = 8 * dtype.itemsize
    return torch.tensor([_signed(int(v), bits) for v in values], dtype=dtype)


def mistakes(instruction: Instruction, inputs, got: torch.Tensor) -> list[str]:
    """Return the elements that are wrong, NaN, infinities and signs of zeros included."""
    wanted, wrong = expected(instruction, inputs), []
    rows = list(zip(*(x.tolist() for x in inputs), strict=True))
    for row, want, have in zip(rows, wanted.tolist(), got.tolist(), strict=True):
        if isinstance(want, int):
            good = want == have
        elif math.isnan(want) or math.isnan(have):
            good = math.isnan(want) and math.isnan(have)
        elif instruction.tolerance and math.isfinite(want) and math.isfinite(have):
            good = instruction.tolerance(want, have, *row)
        else:
            good = struct.pack("d", want) == struct.pack("d", have)
        if not good:
            wrong.append(f"{instruction.text} of {row}: expected {want!r}, got {have!r}")
    return wrong
