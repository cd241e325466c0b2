"""The instruction cvt."""

from __future__ import annotations

import math

from rounding import E4M3, E5M2, F16, F32, TF32, flushed, rounded, whole

from .table import FORMATS, enter, rectifying, saturating, signed


def _to_integer(mode, bits, has_sign, wide):
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if has_sign else (0, 2**bits - 1)

    def convert(x):
        if math.isnan(x):
            return 2 ** (bits - 1) if wide else 0
        if math.isinf(x):
            return high if x > 0 else low
        return min(max(int(whole(x, mode)), low), high)

    return convert


def _enter_conversions():
    for narrow, modes in (("f16", ("rn", "rz", "rm", "rp")), ("bf16", ("rn", "rz"))):
        form = FORMATS[narrow]
        for mode in modes:
            enter(f"cvt.{mode}.{narrow}.f32", f"cvt.{mode}.{narrow}.f32 $0, $1;", "f32", narrow,
                   lambda x, how=(form, mode): rounded(x, *how))  # fmt: skip
        enter(f"cvt.f32.{narrow}", f"cvt.f32.{narrow} $0, $1;", narrow, "f32", lambda x: x,
               capability=90 if narrow == "bf16" else 80)  # fmt: skip
        # One element and a zero are packed; the zero is thrown away again.
        enter(f"cvt.rn.{narrow}x2.f32",
               f"{{ .reg .b32 t; .reg .b16 u; cvt.rn.{narrow}x2.f32 t, 0f00000000, $1; "
               "mov.b32 {$0, u}, t; }", "f32", narrow,
               lambda x, form=form: rounded(x, form))  # fmt: skip
        enter(f"cvt.rz.relu.{narrow}x2.f32",
               f"{{ .reg .b32 t; .reg .b16 u; cvt.rz.relu.{narrow}x2.f32 t, $1, 0f3F800000; "
               "mov.b32 {u, $0}, t; }", "f32", narrow,
               rectifying(lambda x, form=form: rounded(x, form, "rz")))  # fmt: skip
    for mode in ("rn", "rz", "rm", "rp"):
        enter(f"cvt.{mode}.f32.f64", f"cvt.{mode}.f32.f64 $0, $1;", "f64", "f32",
               lambda x, mode=mode: rounded(x, F32, mode))  # fmt: skip
        enter(f"cvt.{mode}.f32.s32", f"cvt.{mode}.f32.s32 $0, $1;", "i32", "f32",
               lambda x, mode=mode: rounded(float(x), F32, mode))  # fmt: skip
        enter(f"cvt.{mode}.f32.u32", f"cvt.{mode}.f32.u32 $0, $1;", "i32", "f32",
               lambda x, mode=mode: rounded(float(x % 2**32), F32, mode))  # fmt: skip
    enter("cvt.f64.f32", "cvt.f64.f32 $0, $1;", "f32", "f64", lambda x: x)
    enter("cvt.ftz.f64.f32", "cvt.ftz.f64.f32 $0, $1;", "f32", "f64", lambda x: flushed(x, F32))
    enter("cvt.rn.f64.s64", "cvt.rn.f64.s64 $0, $1;", "i64", "f64", float)
    enter("cvt.rn.f16.s32", "cvt.rn.f16.s32 $0, $1;", "i32", "f16",
           lambda x: rounded(float(x), F16))  # fmt: skip
    enter("cvt.rn.f32.u8", "cvt.rn.f32.u8 $0, $1;", "i32", "f32", lambda x: float(x % 256))
    enter("cvt.sat.f32.f32", "cvt.sat.f32.f32 $0, $1;", "f32", "f32", saturating(lambda x: x))
    for mode in ("rni", "rzi", "rmi", "rpi"):
        enter(f"cvt.{mode}.f32.f32", f"cvt.{mode}.f32.f32 $0, $1;", "f32", "f32",
               lambda x, mode=mode: whole(x, mode))  # fmt: skip
        enter(f"cvt.{mode}.f64.f64", f"cvt.{mode}.f64.f64 $0, $1;", "f64", "f64",
               lambda x, mode=mode: whole(x, mode))  # fmt: skip
        for kind, bits, has_sign in (("s32", 32, True), ("u32", 32, False)):
            enter(f"cvt.{mode}.{kind}.f32", f"cvt.{mode}.{kind}.f32 $0, $1;", "f32", "i32",
                   _to_integer(mode, bits, has_sign, wide=False))  # fmt: skip
    for kind, bits, has_sign in (("s64", 64, True), ("u64", 64, False)):
        for source in ("f32", "f64"):
            enter(f"cvt.rzi.{kind}.{source}", f"cvt.rzi.{kind}.{source} $0, $1;", source, "i64",
                   _to_integer("rzi", bits, has_sign, wide=True))  # fmt: skip
    enter("cvt.rzi.s32.f64", "cvt.rzi.s32.f64 $0, $1;", "f64", "i32",
           _to_integer("rzi", 32, True, wide=True))  # fmt: skip
    for kind, bits, has_sign in (("s8", 8, True), ("u8", 8, False), ("s16", 16, True)):
        narrow = _to_integer("rni", bits, has_sign, wide=False)
        enter(f"cvt.rni.{kind}.f32", f"cvt.rni.{kind}.f32 $0, $1;" if bits == 8 else
               f"{{ .reg .s16 t; cvt.rni.{kind}.f32 t, $1; cvt.s32.s16 $0, t; }}", "f32", "i32",
               narrow)  # fmt: skip
        enter(f"cvt.sat.{kind}.s32", f"{{ .reg .{kind} t; cvt.sat.{kind}.s32 t, $1; "
               f"cvt.s32.{kind} $0, t; }}", "i32", "i32",
               lambda x, b=bits, s=has_sign: min(max(x, -(2 ** (b - 1)) if s else 0),
                                               2 ** (b - s) - 1))  # fmt: skip
    enter("cvt.s32.s8", "cvt.s32.s8 $0, $1;", "i32", "i32", lambda x: signed(x, 8))
    enter("cvt.u32.u16", "cvt.u32.u16 $0, $1;", "i32", "i32", lambda x: x % 2**16)
    enter("cvt.s64.s32", "cvt.s64.s32 $0, $1;", "i32", "i64", lambda x: x)
    enter("cvt.u64.u32", "cvt.u64.u32 $0, $1;", "i32", "i64", lambda x: x % 2**32)
    enter("cvt.rna.tf32.f32", "cvt.rna.tf32.f32 $0, $1;", "f32", "f32",
           lambda x: rounded(x, TF32, "rna"))  # fmt: skip
    for mode in ("rn", "rz"):
        enter(f"cvt.{mode}.tf32.f32", f"cvt.{mode}.tf32.f32 $0, $1;", "f32", "f32",
               lambda x, mode=mode: rounded(x, TF32, mode), capability=90)  # fmt: skip
    for kind, form in (("e4m3", E4M3), ("e5m2", E5M2)):
        there = f".reg .b16 t; .reg .b32 u; cvt.rn.satfinite.{kind}x2.f32 t, $1, 0f3F800000;"
        back = f"cvt.rn.f16x2.{kind}x2 u, t; .reg .b16 v, w; mov.b32 {{v, w}}, u;"
        enter(f"cvt.{kind}x2.f32", f"{{ {there} {back} cvt.f32.f16 $0, w; }}", "f32", "f32",
               lambda x, form=form: rounded(x, form), capability=89)  # fmt: skip
        pair = f"{{ .reg .b16 t; cvt.rn.satfinite.{kind}x2.f16x2 t, $1; cvt.rn.f16x2.{kind}x2 $0, t; }}"  # noqa: E501
        enter(f"cvt.{kind}x2.f16x2", pair, "f16", "f16", lambda x, form=form: rounded(x, form),
               pack=2, capability=89)  # fmt: skip


_enter_conversions()
