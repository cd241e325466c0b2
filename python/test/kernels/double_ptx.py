"""PTX of float64 products that ptxas gets wrong (lost_sums.py, uniform_operands.py)."""

# A₂·B + (A₁·B if n > 0 else 0), of 16x8x16 elements, which Triton 3.8 no longer takes.
_HEAD = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n)
.reqntid 32
{
.reg .b64 %p, %a<8>, %b<4>, %c<4>, %d<4>, %zero;
.reg .pred %runs;
.reg .b32 %n;
ld.param.u64 %p, [p];
ld.param.u32 %n, [n];
setp.gt.s32 %runs, %n, 0;
mov.b64 %zero, 0;
"""
_INSTRUCTION = "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64"


def added(chosen: bool) -> str:
    """Return a kernel of two products: one is added to the other, or to zero, if `chosen`."""
    a, b, c, d = (
        ", ".join(f"%{x}{i}" for i in range(n)) for x, n in zip("abcd", (8, 4, 4, 4), strict=True)
    )
    lines = [f"ld.global.b64 %a{i}, [%p + {8 * i}];" for i in range(8)]
    lines += [f"ld.global.b64 %b{i}, [%p + {8 * i + 64}];" for i in range(4)]
    lines.append(
        f"{_INSTRUCTION} {{ {c} }}, {{ {a} }}, {{ {b} }}, {{ %zero, %zero, %zero, %zero }};"
    )
    lines += [f"selp.b64 %c{i}, %c{i}, %zero, %runs;" for i in range(4) if chosen]
    other = ", ".join(f"%a{7 - i}" for i in range(8))
    lines.append(f"{_INSTRUCTION} {{ {d} }}, {{ {other} }}, {{ {b} }}, {{ {c} }};")
    lines += [f"st.global.b64 [%p + {8 * i + 128}], %d{i};" for i in range(4)]
    return "\n".join([_HEAD, *lines, "ret;", "}"])


# What ptxas leaves products out of. It is only assembled: much of it has no value. What else is
# done with %x, the same in all threads, makes it move to a uniform register.
UNIFORM = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n)
.reqntid 128
{{
.reg .pred %q<2>;
.reg .b32 %r<6>;
.reg .b64 %a<8>, %b<4>, %c<4>, %s<9>, %x, %y, %z;
ld.global.b64 {{ %x }}, [ %s0 + 0 ];
{product}
@%q0 cp.async.ca.shared.global [ %r1 + 0 ], [ %s1 + 0 ], 0x8, %r0;
mad.lo.s64 %s2, %s3, %s4, %s5;
shl.b64 %s6, %s2, 5;
add.s64 %s7, %s8, %s6;
@%q0 cp.async.ca.shared.global [ %r2 + 0 ], [ %s7 + 0 ], 0x8, %r3;
@%q0 cp.async.ca.shared.global [ %r4 + 0 ], [ %s1 + 0 ], 0x8, %r3;
selp.b64 %y, %x, 0, %q1;
st.shared.b64 [%r5], %y;
st.global.b64 [%s0], %c0;
st.global.b64 [%s0+8], %c1;
st.global.b64 [%s0+16], %c2;
st.global.b64 [%s0+24], %c3;
ret;
}}
"""
_A, _B, _C = "%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7", "%b0, %b1, %b2, %b3", "%c0, %c1, %c2, %c3"
_ALIKE = "%x, %x, %x, %x"


def product(a=_A, b=_B, c=_C, before="", operation=_INSTRUCTION):
    """Return the text of a product, and of what is done `before`."""
    return f"{before} {operation} {{ {_C} }}, {{ {a} }}, {{ {b} }}, {{ {c} }};"


LEFT_OUT = {
    "b": product(b=_ALIKE),
    "two products": product(b=_ALIKE) * 2,
    "summand": product(c=_ALIKE),
    "moved summand": product(before="".join(f"mov.b64 %c{i}, %x;" for i in range(4))),
    "shorter sums": product("%a0, %a1", "%x", operation=_INSTRUCTION.replace("k16", "k4")),
    "a": product("%x, %x", "%b0", operation=_INSTRUCTION.replace("k16", "k4")),
    "a sum": product(b=_ALIKE, before="add.f64 %x, %x, 0d0000000000000000;"),
}
