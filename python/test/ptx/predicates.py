"""Comparisons and what they choose."""

from __future__ import annotations

import math

from rounding import F32, flushed

from .table import enter, unsigned

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
        enter(f"setp.{name}.f32", f"{{ .reg .pred p; setp.{name}.f32 p, $1, $2; "
               "selp.b32 $0, 5, -7, p; }", pair, "i32",
               lambda x, y, t=test: 5 if t(x, y) else -7)  # fmt: skip
        enter(f"set.{name}.u32.f32", f"set.{name}.u32.f32 $0, $1, $2;", pair, "i32",
               lambda x, y, t=test: -1 if t(x, y) else 0)  # fmt: skip
    for name, test in COMPARISONS.items():
        enter(f"setp.{name}.ftz.f32", f"{{ .reg .pred p; setp.{name}.ftz.f32 p, $1, $2; "
               "selp.b32 $0, 5, -7, p; }", pair, "i32",
               lambda x, y, t=test: 5 if t(flushed(x, F32), flushed(y, F32)) else -7)  # fmt: skip
        enter(f"setp.{name}.s32", f"{{ .reg .pred p; setp.{name}.s32 p, $1, $2; "
               "selp.b32 $0, 5, -7, p; }", "i32 i32", "i32",
               lambda x, y, t=test: 5 if t(x, y) else -7)  # fmt: skip
        enter(f"setp.{name}.f16x2", f"{{ .reg .pred p, q; .reg .b16 a, b, one, two; "
               "mov.b16 one, 0x3C00; mov.b16 two, 0x4000; "
               f"setp.{name}.f16x2 p|q, $1, $2; selp.b16 a, one, two, p; "
               "selp.b16 b, one, two, q; mov.b32 $0, {a, b}; }", "f16 f16", "f16",
               lambda x, y, t=test: 1.0 if t(x, y) else 2.0, pack=2)  # fmt: skip
    for name, signed in (("lo", "lt"), ("ls", "le"), ("hi", "gt"), ("hs", "ge")):
        enter(f"setp.{name}.u32", f"{{ .reg .pred p; setp.{name}.u32 p, $1, $2; "
               "selp.b32 $0, 5, -7, p; }", "i32 i32", "i32",
               unsigned(lambda x, y, t=COMPARISONS[signed]: 5 if t(x, y) else -7))  # fmt: skip
    logic = {"and": lambda a, b: a and b, "or": lambda a, b: a or b, "xor": lambda a, b: a != b}
    for name, combine in logic.items():
        enter(f"setp.lt.{name}.f32", "{ .reg .pred p, q, c; setp.gt.f32 c, $3, 0f00000000; "
               f"setp.lt.{name}.f32 p|q, $1, $2, !c; selp.b32 $0, 1, 0, p; "
               "@q add.s32 $0, $0, 2; }", "f32 f32 f32", "i32",
               lambda x, y, z, c=combine: int(c(x < y, not z > 0))
               + 2 * int(c(not x < y, not z > 0)))  # fmt: skip
        enter(f"{name}.pred", "{ .reg .pred p, q; setp.lt.f32 p, $1, 0f00000000; "
               f"setp.lt.f32 q, $2, 0f00000000; {name}.pred p, p, !q; "
               "selp.f32 $0, $1, $2, p; }", pair, "f32",
               lambda x, y, c=combine: x if c(x < 0, not y < 0) else y)  # fmt: skip
    kinds = {
        "finite": math.isfinite,
        "infinite": math.isinf,
        "number": lambda x: not math.isnan(x),
        "notanumber": math.isnan,
        "normal": lambda x: x == 0 or math.isfinite(x) and abs(x) >= 2.0**-126,
        "subnormal": lambda x: 0 < abs(x) < 2.0**-126,
    }
    for name, test in kinds.items():
        enter(f"testp.{name}.f32", f"{{ .reg .pred p; testp.{name}.f32 p, $1; "
               "selp.b32 $0, 1, 0, p; }", "f32", "i32", lambda x, t=test: int(t(x)))  # fmt: skip
    enter("set.lt.f32.f32", "set.lt.f32.f32 $0, $1, $2;", pair, "f32",
           lambda x, y: float(x < y))  # fmt: skip
    enter("slct.f32.s32", "{ .reg .s32 c; cvt.rzi.s32.f32 c, $3; slct.f32.s32 $0, $1, $2, c; }",
           "f32 f32 f32", "f32", lambda x, y, z: x if not z <= -1 else y)  # fmt: skip
    enter("slct.f32.f32", "slct.f32.f32 $0, $1, $2, $3;", "f32 f32 f32", "f32",
           lambda x, y, z: x if z >= 0 else y)  # fmt: skip
    enter("slct.ftz.f32.f32", "slct.ftz.f32.f32 $0, $1, $2, $3;", "f32 f32 f32", "f32",
           lambda x, y, z: x if flushed(z, F32) >= 0 else y)  # fmt: skip


_enter_comparisons()
