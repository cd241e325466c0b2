"""Pieces of assembly with their functions, and some that have none."""

import torch

SMOOTH = {
    "chain": (
        "{ .reg .f32 t; mul.f32 t, $1, $2; fma.rn.f32 t, t, t, $1; sub.f32 $0, t, $3; }",
        lambda x, y, z: (x * y) ** 2 + x - z,
    ),
    "result as a register": (
        "mul.f32 $0, $1, $2; add.f32 $0, $0, $3; mul.f32 $0, $0, $0;",
        lambda x, y, z: (x * y + z) ** 2,
    ),
    "bit patterns and decimals": (
        "fma.rn.f32 $0, $1, 0f3FC00000, $2; fma.rn.f32 $0, $0, -2.0, 0d3FF0000000000000; "
        "mul.f32 $0, $0, $3;",
        lambda x, y, z: ((x * 1.5 + y) * -2 + 1) * z,
    ),
    "registers by number, with a percent sign": (
        "{ .reg .f32 %f<3>; mov.f32 %f0, $1; mov.f32 %f1, $2; { .reg .f32 %f<1>; "
        "mul.f32 %f0, $3, $3; add.f32 %f1, %f1, %f0; } mul.f32 %f2, %f0, %f1; mov.b32 $0, %f2; }",
        lambda x, y, z: x * (y + z * z),
    ),
    "comments": (
        "/* x */ mul.f32 $0, $1, $2; // and\n add.f32 $0, $0 /* the\n rest */ , $3;",
        lambda x, y, z: x * y + z,
    ),
    "guards": (
        "{ .reg .pred p; setp.gt.f32 p, $1, $2; @p mul.f32 $0, $1, $3; @!p add.f32 $0, $2, $3; }",
        lambda x, y, z: torch.where(x > y, x * z, y + z),
    ),
    "a guard over a value": (
        "{ .reg .pred p; mul.f32 $0, $1, $2; setp.le.f32 p, $3, 0f00000000; @p neg.f32 $0, $0; }",
        lambda x, y, z: torch.where(z <= 0, -x * y, x * y),
    ),
    "two predicates": (
        "{ .reg .pred p, q; setp.lt.f32 q, $3, 0f00000000; setp.gt.and.f32 p|q, $1, $2, q; "
        "selp.f32 $0, $1, $2, p; @q mul.f32 $0, $0, $3; }",
        lambda x, y, z: (
            torch.where((x > y) & (z < 0), x, y)
            * torch.where((x <= y) & (z < 0), z, torch.ones_like(z))
        ),
    ),
    "an inverted predicate": (
        "{ .reg .pred p, q; setp.lt.f32 p, $1, $2; not.pred q, p; @p mov.f32 $0, $3; "
        "@q mul.f32 $0, $1, $3; }",
        lambda x, y, z: torch.where(x < y, z, x * z),
    ),
    "minima and maxima": (
        "max.f32 $0, $1, $2; min.f32 $0, $0, $3; abs.f32 $0, $0; max.NaN.f32 $0, $0, $1;",
        lambda x, y, z: torch.maximum(torch.minimum(torch.maximum(x, y), z).abs(), x),
    ),
    "saturation": (
        "fma.rn.sat.f32 $0, $1, $2, $3;",
        lambda x, y, z: (x * y + z).clamp(0, 1),
    ),
    "packed and taken apart": (
        "{ .reg .b64 d; .reg .b32 a, b; mov.b64 d, {$1, $2}; mov.b64 {a, b}, d; "
        "mul.f32 $0, a, b; mov.b64 d, {$0, $3}; mov.b64 {_, a}, d; add.f32 $0, $0, a; }",
        lambda x, y, z: x * y + z,
    ),
    "pairs of floats": (
        "{ .reg .b64 d, e; .reg .b32 t; mov.b64 d, {$1, $2}; mov.b64 e, {$3, $1}; "
        "fma.rn.f32x2 d, d, e, d; mov.b64 {$0, t}, d; sub.f32 $0, $0, t; }",
        lambda x, y, z: (x * z + x) - (y * x + y),
    ),
    "copied signs": (
        "copysign.f32 $0, $1, $2; mul.f32 $0, $0, $3;",
        lambda x, y, z: torch.copysign(y, x) * z,
    ),
    "slct": (
        "slct.f32.f32 $0, $1, $2, $3; mul.f32 $0, $0, $3;",
        lambda x, y, z: torch.where(z >= 0, x, y) * z,
    ),
    "through f64": (
        "{ .reg .f64 d, e; cvt.f64.f32 d, $1; cvt.f64.f32 e, $2; mul.f64 d, d, e; "
        "cvt.rn.f32.f64 $0, d; add.f32 $0, $0, $3; }",
        lambda x, y, z: x * y + z,
    ),
    "whole numbers": (
        "{ .reg .f32 t; cvt.rni.f32.f32 t, $1; sub.f32 $0, $1, t; mul.f32 $0, $0, $2; "
        "cvt.rmi.f32.f32 t, $3; add.f32 $0, $0, t; }",
        lambda x, y, z: (x - x.detach().round()) * y + z.detach().floor(),
    ),
    "through an integer": (
        "{ .reg .s32 i; cvt.rzi.s32.f32 i, $1; cvt.rn.f32.s32 $0, i; fma.rn.f32 $0, $0, $2, $3; }",
        lambda x, y, z: x.detach().trunc() * y + z,
    ),
    "its exponent": (
        "{ .reg .b32 e; and.b32 e, $1, 0x7f800000; shr.u32 e, e, 23; cvt.rn.f32.u32 $0, e; "
        "fma.rn.f32 $0, $0, $2, $3; }",
        lambda x, y, z: (torch.floor(torch.log2(x.detach().abs())) + 127) * y + z,
    ),
    "by the sign of an integer": (
        "{ .reg .pred p; setp.lt.s32 p, $1, 0; selp.f32 $0, $2, $3, p; }",
        lambda x, y, z: torch.where(x < 0, y, z),
    ),
}


# Exponentials and logarithms are approximations on a GPU: a derivative of them is no nearer.
APPROXIMATE = {
    "softplus": (
        "{ .reg .pred big; setp.gt.f32 big, $1, 20.; @big mov.f32 $0, $1; "
        "@!big mul.f32 $0, $1, 1.4426950408889634; @!big ex2.approx.ftz.f32 $0, $0; "
        "@!big add.f32 $0, $0, 1.0; @!big lg2.approx.ftz.f32 $0, $0; "
        "@!big mul.f32 $0, $0, 0.6931471805599453; }",
        torch.nn.functional.softplus,
    ),
    "softplus in base 2": (
        "{ .reg .pred big; setp.gt.f32 big, $1, 15.; @big mov.f32 $0, $1; "
        "@!big ex2.approx.ftz.f32 $0, $1; @!big add.f32 $0, $0, 1.0; "
        "@!big lg2.approx.ftz.f32 $0, $0; }",
        lambda x: torch.where(x > 15, x, torch.log2(1 + torch.exp2(x.clamp(max=15)))),
    ),
    "sigmoid": (
        "{ .reg .f32 e; mul.f32 e, $1, 0fBFB8AA3B; ex2.approx.f32 e, e; add.f32 e, e, 0f3F800000; "
        "rcp.approx.ftz.f32 $0, e; }",
        torch.sigmoid,
    ),
    "sigmoid by a tangent": (
        "mul.f32 $0, $1, 0.5; tanh.approx.f32 $0, $0; fma.rn.f32 $0, $0, 0.5, 0.5;",
        torch.sigmoid,
    ),
    "norm": (
        "{ .reg .f32 s; fma.rn.f32 s, $1, $1, 0f3F800000; rsqrt.approx.ftz.f32 s, s; "
        "mul.f32 $0, $1, s; }",
        lambda x: x / torch.sqrt(x * x + 1),
    ),
    "quotient": (
        "{ .reg .f32 s; fma.rn.f32 s, $1, $1, 2.0; div.full.f32 $0, $1, s; }",
        lambda x: x / (x * x + 2),
    ),
    "angles": (
        "{ .reg .f32 s; sin.approx.f32 s, $1; cos.approx.f32 $0, $1; mul.f32 $0, $0, s; }",
        lambda x: torch.sin(x) * torch.cos(x),
    ),
    "roots": (
        "abs.f32 $0, $1; add.f32 $0, $0, 1.0; sqrt.rn.f32 $0, $0; rcp.rn.f32 $0, $0;",
        lambda x: 1 / torch.sqrt(x.abs() + 1),
    ),
    "roundings": (
        "fma.rz.f32 $0, $1, $1, $1; mul.rm.ftz.f32 $0, $0, $1; add.rp.f32 $0, $0, 1.0;",
        lambda x: (x * x + x) * x + 1,
    ),
}


UNTAKEN = {
    "selp": "{ .reg .pred p; .reg .f32 t; lg2.approx.f32 t, $1; mul.f32 t, t, $1; "
    "setp.gt.f32 p, $1, 0f00000000; selp.f32 $0, t, 0f00000000, p; }",
    "guard": "{ .reg .pred p; setp.gt.f32 p, $1, 0f00000000; mov.f32 $0, 0f00000000; "
    "@p lg2.approx.f32 $0, $1; @p mul.f32 $0, $0, $1; }",
    "quotient": "{ .reg .pred p; .reg .f32 t; rcp.rn.f32 t, $1; lg2.approx.f32 t, t; "
    "mul.f32 t, t, $1; neg.f32 t, t; setp.gt.f32 p, $1, 0f00000000; @!p mov.f32 t, 0f00000000; "
    "mov.f32 $0, t; }",
}


PACKED = {
    "fma": ("fma.rn.{0}x2 $0, $1, $2, $1;", lambda x, y: x * y + x),
    "one by one": (
        "{{ .reg .b16 a, b, c, d; mov.b32 {{a, b}}, $1; mov.b32 {{c, d}}, $2; "
        "fma.rn.{0} a, a, c, a; fma.rn.{0} b, b, d, b; mov.b32 $0, {{a, b}}; }}",
        lambda x, y: x * y + x,
    ),
    "in float32": (
        "{{ .reg .b16 a, b, c, d; .reg .f32 f<4>; mov.b32 {{a, b}}, $1; mov.b32 {{c, d}}, $2; "
        "cvt.f32.{0} f0, a; cvt.f32.{0} f1, b; cvt.f32.{0} f2, c; cvt.f32.{0} f3, d; "
        "mul.f32 f0, f0, f2; mul.f32 f1, f1, f3; cvt.rn.{0}x2.f32 $0, f1, f0; }}",
        lambda x, y: x * y,
    ),
    "minimum": ("min.{0}x2 $0, $1, $2;", torch.minimum),
    "selected": (
        "{{ .reg .pred p, q; .reg .b16 a, b, c, d; setp.lt.{0}x2 p|q, $1, $2; "
        "mov.b32 {{a, b}}, $1; mov.b32 {{c, d}}, $2; selp.b16 a, a, c, p; selp.b16 b, b, d, q; "
        "mov.b32 $0, {{a, b}}; fma.rn.{0}x2 $0, $0, $1, $2; }}",
        lambda x, y: torch.where(x < y, x, y) * x + y,
    ),
}


REFUSED = {
    "a label": ("{ again: add.f32 $0, $1, $1; }", "label 'again'"),
    "a branch": ("{ .reg .pred p; setp.eq.f32 p, $1, $1; @p bra done; mov.f32 $0, $1; }", "'bra'"),
    "memory": ("ld.global.f32 $0, [$1];", "'ld.global.f32'.*memory"),
    "a special register": ("{ .reg .u32 t; mov.u32 t, %smid; mov.f32 $0, $1; }", "'%smid'"),
    "the timer": ("{ .reg .u64 t; mov.u64 t, %globaltimer; mov.f32 $0, $1; }", "'%globaltimer'"),
    "a thread": ("{ .reg .u32 t; mov.u32 t, %tid.x; mov.f32 $0, $1; }", "'%tid.x'"),
    "other threads": ("shfl.sync.bfly.b32 $0, $1, 1, 31, -1;", "'shfl.sync.bfly.b32'"),
    "a barrier": ("bar.sync 0; mov.f32 $0, $1;", "'bar.sync'"),
    "matrices": ("mma.sync.aligned.m8n8k4.f32 $0, $1, $1, $1;", "'mma.sync.aligned"),
    "a directive": (".pragma nounroll; mov.f32 $0, $1;", "'.pragma'"),
    "an unset register": ("{ .reg .f32 t; add.f32 $0, t, $1; }", "'t' is read, which nothing"),
    "a register that may not be set": (
        "{ .reg .pred p; .reg .f32 t; setp.gt.f32 p, $1, 1.0; @p mov.f32 t, $1; "
        "add.f32 $0, t, t; }",
        "'t' is read, which may not be set",
    ),
    "an unknown modifier": ("add.xorsign.f32 $0, $1, $1;", "modifier '.xorsign'"),
    "too few operands": ("add.f32 $0, $1;", "another number of operands"),
    "no such operand": ("add.f32 $0, $1, $7;", "'\\$7' is no operand"),
    "a bit field that begins outside": (
        "{ .reg .b32 t; bfe.s32 t, $1, 40, 5; cvt.rn.f32.s32 $0, t; }",
        "'bfe.s32': it takes bits from place 40 on",
    ),
    "a bit field that is too long": ("bfi.b32 $0, $1, $1, 4, 33;", "'bfi.b32'.*33 of them"),
    "a bit field anywhere": (
        "{ .reg .b32 t; cvt.rzi.u32.f32 t, $1; bfe.u32 $0, $1, t, 5; }",
        "'bfe.u32': the place of the bits is not written out",
    ),
    "an operand that is written": ("mul.f32 $1, $1, $1; mov.f32 $0, $1;", "it writes '\\$1'"),
    "another GPU": ("v_exp_f32 $0, $1", "'v_exp_f32'"),
    "bits": ("xor.b32 $0, $1, 0x80000000;", "computes with the bits of a float"),
    "bits turned around": ("brev.b32 $0, $1;", "computes with the bits of a float"),
}

# Four halves in two registers become four bytes of a format of Triton's in one.
_LARGEST = (
    "{ .reg .b16 top; .reg .b32 tops, x<2>, s<2>; mov.b16 top, 0x3F00; mov.b32 tops, 0x3F003F00;"
)
_SIZES = "and.b32 x0, $1, 0x7fff7fff; and.b32 x1, $2, 0x7fff7fff;"
_ROUNDED = (
    "mad.lo.u32 x0, x0, 2, 0x00800080; mad.lo.u32 x1, x1, 2, 0x00800080; "
    "lop3.b32 s0, $1, 0x80008000, x0, 0xea; lop3.b32 s1, $2, 0x80008000, x1, 0xea; "
    "prmt.b32 $0, s0, s1, 0x7531; }"
)
TO_E4B15 = {
    "by a minimum": f"{_LARGEST} {_SIZES} min.f16x2 x0, x0, tops; "
    f"min.f16x2 x1, x1, tops; {_ROUNDED}",
    "by predicates": f"{_LARGEST} .reg .pred p<4>; .reg .b16 h<4>; {_SIZES} "
    "setp.lt.f16x2 p0|p1, x0, tops; setp.lt.f16x2 p2|p3, x1, tops; "
    "mov.b32 {h0, h1}, x0; mov.b32 {h2, h3}, x1; selp.b16 h0, h0, top, p0; "
    "selp.b16 h1, h1, top, p1; selp.b16 h2, h2, top, p2; selp.b16 h3, h3, top, p3; "
    f"mov.b32 x0, {{h0, h1}}; mov.b32 x1, {{h2, h3}}; {_ROUNDED}",
}
