"""Small kernels that together use every Triton operation that reaches TTIR.

`python kernels.py DIR` compiles them with the installed Triton for one target
and writes each one's TTIR to DIR; the samples beside this file were made so,
with `--lit`. No GPU is needed.
"""

import argparse
import pathlib
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.language.extra import libdevice

KERNELS = {}


def kernel(signature, **constants):
    """Register a kernel under the signature and constants that it is compiled with."""

    def register(function):
        types = dict(signature, **{name: "constexpr" for name in constants})
        KERNELS[function.__name__] = (triton.jit(function), types, constants)
        return function

    return register


XY = {"x": "*fp32", "y": "*fp32"}
XYN = {**XY, "n": "i32"}
HAS_BLOCK_POINTERS = tuple(int(part) for part in triton.__version__.split(".")[:2]) < (3, 9)


@kernel(XYN, B=128)
def loads_and_stores(x, y, n, B: tl.constexpr):
    o = tl.arange(0, B)
    m = o < n
    a = tl.load(x + o, mask=m, other=0.0, eviction_policy="evict_last")
    b = tl.load(x + o, mask=m, other=1.0, eviction_policy="evict_first")
    c = tl.load(x + o, mask=m, cache_modifier=".cg")
    d = tl.load(x + o, cache_modifier=".ca")
    e = tl.load(x + o, cache_modifier=".cv")
    f = tl.load(x + o, volatile=True)
    g = tl.load(x + n)
    tl.store(y + o, a + b + c, mask=m, eviction_policy="evict_first")
    tl.store(y + o, d + e, mask=m, cache_modifier=".cs")
    tl.store(y + o, f, cache_modifier=".wb")
    tl.store(y + o, f + g, cache_modifier=".wt")
    tl.store(y + n, g, eviction_policy="evict_last")


@kernel({**XY, "i": "*i32", "u": "*u32", "h": "*fp16", "n": "i32"}, B=128)
def atomics(x, y, i, u, h, n, B: tl.constexpr):
    o = tl.arange(0, B)
    m = o < n
    v = tl.load(x + o)
    old = tl.atomic_add(y + o, v, mask=m, sem="relaxed", scope="cta")
    tl.atomic_add(h + o, v.to(tl.float16), mask=m, sem="release", scope="sys")
    tl.atomic_add(i, 1)
    tl.atomic_max(y + o, old)
    tl.atomic_min(y + o, v, mask=m)
    tl.atomic_max(i + o, 3)
    tl.atomic_min(u + o, 3)
    tl.atomic_max(u + o, 3)
    tl.atomic_and(i + o, 3)
    tl.atomic_or(i + o, 3, sem="acquire")
    tl.atomic_xor(i + o, 3)
    tl.atomic_xchg(y + o, v)
    tl.atomic_cas(i + o, tl.full((B,), 1, tl.int32), tl.full((B,), 2, tl.int32), sem="acquire")
    tl.atomic_cas(i, 1, 2, scope="sys")


@kernel({"p": "*fp16", "q": "*fp16", "M": "i32", "N": "i32"}, B=64)
def descriptors(p, q, M, N, B: tl.constexpr):
    d = tl.make_tensor_descriptor(p, [M, N], [N, 1], [B, B])
    e = tl.make_tensor_descriptor(q, [M, N], [N, 1], [B, B])
    f = tl.make_tensor_descriptor(p, [M, N], [N, 1], [B, B], padding_option="nan")
    a = d.load([0, B]) + f.load([B, 0])
    e.store([B, 0], a)
    e.atomic_add([0, 0], a)


@kernel({"p": "*i32", "M": "i32", "N": "i32"}, B=64)
def descriptor_bits(p, M, N, B: tl.constexpr):
    d = tl.make_tensor_descriptor(p, [M, N], [N, 1], [1, B])
    a = d.load([0, B])
    d.atomic_and([0, 0], a)
    d.atomic_or([0, 0], a)
    d.atomic_xor([0, 0], a)


@kernel(
    {
        "d": "tensordesc<fp16[64,64]>",
        "i": "tensordesc<i8[64,64]>",
        "e": "tensordesc<fp32[64,64]>",
    }
)
def host_descriptors(d, i, e):
    a = d.load([0, 64])
    b = i.load([0, 0])
    e.store([0, 0], a + b)


@kernel(XY, B=64)
def shapes(x, y, B: tl.constexpr):
    o = tl.arange(0, B)
    a = tl.load(x + o)
    b = tl.reshape(a, (B // 4, 4))
    c = tl.permute(tl.reshape(tl.trans(b), (2, 2, B // 4)), (2, 0, 1))
    d = tl.join(a, a * 2)
    f, g = tl.split(d)
    h = tl.cat(f, g, can_reorder=True)
    tl.store(y + tl.arange(0, 2 * B), h)
    tl.store(y + o, tl.ravel(c) + tl.gather(a, (o + 1) % B, 0))
    tl.store(y + tl.arange(0, 16), tl.histogram(o, 16))
    tl.store(y + tl.arange(0, 8), tl.histogram(o, 8, mask=a > 0))
    square = o[:, None] * 0 + o[None, :]
    tl.store(y + square, tl.broadcast_to(tl.reshape(a, (1, B)), (B, B)))
    tl.store(y + square, tl.expand_dims(a, 1) + tl.zeros((B, B), tl.float32))
    tl.store(y, tl.load(x + tl.arange(0, 1)).item())


@triton.jit
def add_and_max(a, b, c, d):
    return a + c, tl.maximum(b, d)


@triton.jit
def linear(a, b, c, d):
    return a * c, b * c + d


@kernel(XY, B=64)
def reductions(x, y, B: tl.constexpr):
    o = tl.arange(0, B)
    a = tl.load(x + o)
    tile = tl.load(x + o[:, None] * B + o[None, :])
    tl.store(y + o, tl.sum(tile, 0) + tl.max(tile, 1) + tl.min(tile, 0))
    value, index = tl.max(a, 0, return_indices=True)
    tl.store(y, value + index + tl.argmin(a, 0) + tl.sum(tile) + tl.xor_sum(o, 0))
    tl.store(y + o, tl.cumsum(a, 0, reverse=True) + tl.cumprod(a, 0))
    total, largest = tl.reduce((a, a), 0, add_and_max)
    decay, state = tl.associative_scan((a, a), 0, linear)
    tl.store(y + o, decay + state + total + largest)
    tl.store(y + o[:, None] * B + o[None, :], tl.softmax(tile) + tl.cumsum(tile, 1))


@kernel(XY, B=16)
def sorting(x, y, B: tl.constexpr):
    o = tl.arange(0, B)
    a = tl.load(x + o)
    tl.store(y + o, tl.sort(a) + tl.flip(a))
    tl.store(y + tl.arange(0, 4), tl.topk(a, 4))


@kernel({**XY, "s": "*u8"}, B=64)
def dots(x, y, s, B: tl.constexpr):
    o = tl.arange(0, B)
    p = o[:, None] * B + o[None, :]
    a = tl.load(x + p)
    acc = tl.dot(a, a)
    acc = tl.dot(a, a, acc, input_precision="ieee")
    acc = tl.dot(a, a, acc, input_precision="tf32x3")
    half = a.to(tl.float8e5)
    acc = tl.dot(half, half, acc, max_num_imprecise_acc=32)
    scale = tl.load(s + o[:, None] * (B // 32) + tl.arange(0, B // 32)[None, :])
    acc = tl.dot_scaled(half, scale, "e5m2", half, scale, "e5m2", acc)
    acc = tl.dot_scaled(a.to(tl.bfloat16), None, "bf16", half, scale, "e5m2", acc)
    batch = tl.reshape(a, (1, B, B))
    acc += tl.reshape(tl.dot(batch, batch), (B, B))
    i = a.to(tl.int8)
    acc += tl.dot(i, i, out_dtype=tl.int32)
    f = a.to(tl.float16)
    acc += tl.dot(f, f, out_dtype=tl.float16)
    tl.store(y + p, acc)


@kernel(XY, B=128)
def mathematics(x, y, B: tl.constexpr):
    o = tl.arange(0, B)
    a = tl.load(x + o)
    r = tl.exp(a) + tl.exp2(a) + tl.log(a) + tl.log2(a) + tl.sin(a) + tl.cos(a)
    r += tl.sqrt(a) + tl.rsqrt(a) + tl.erf(a) + tl.floor(a) + tl.ceil(a) + tl.abs(a)
    r += tl.fma(a, a, a) + tl.sqrt_rn(a) + tl.div_rn(a, a) + tl.fdiv(a, a) + a / (a + 1) + a % 3.0
    r += tl.clamp(a, 0.0, 1.0) + tl.clamp(a, 0.0, 1.0, propagate_nan=tl.PropagateNan.ALL)
    r += tl.maximum(a, r) + tl.maximum(a, r, propagate_nan=tl.PropagateNan.ALL)
    r += tl.minimum(a, r) + tl.minimum(a, r, propagate_nan=tl.PropagateNan.ALL)
    r += tl.where(a > 0, a, -a) + tl.sigmoid(a) + tl.umulhi(o, o) + tl.cdiv(o, 7)
    tl.store(y + o, r)


@kernel(XY, B=128)
def integers(x, y, B: tl.constexpr):
    o = tl.arange(0, B)
    s = o - 5
    r = s // 3 + s % 5 + (s >> 1) + (s << 2) + (s & 3) + (s ^ 5) + (s | 9) + ~s + tl.abs(s)
    u = o.to(tl.uint32)
    v = u // 3 + u % 3 + (u >> 2) + tl.minimum(u, 7) + tl.maximum(u, 3)
    w = tl.minimum(s, 7) + tl.maximum(s, 3) + tl.where((s > 3) & (s < 9) | (s == 0), s, 0)
    tl.store(y + o, r + v + w + tl.rand(3, o) + tl.randn(4, o) + tl.randint(3, o))


@kernel(XY, B=128)
def casts(x, y, B: tl.constexpr):
    o = tl.arange(0, B)
    a = tl.load(x + o)
    r = a.to(tl.float16).to(tl.float32) + a.to(tl.bfloat16) + a.to(tl.float64).to(tl.float32)
    r += a.to(tl.float8e4nv).to(tl.float32) + a.to(tl.float8e5).to(tl.float32)
    r += a.to(tl.float16, fp_downcast_rounding="rtz").to(tl.float32) + a.to(tl.int32, bitcast=True)
    r += a.to(tl.int8) + a.to(tl.uint16) + a.to(tl.int1) + o.to(tl.int64) + (o > 3)
    tl.store(y + o, r)
    address = (x + o).to(tl.int64)
    tl.store((address + 8).to(tl.pointer_type(tl.float32)), r)
    tl.store((x + o).to(tl.pointer_type(tl.int32)), o)


@kernel(XYN, B=128)
def debugging(x, y, n, B: tl.constexpr):
    o = tl.arange(0, B)
    a = tl.load(x + o)
    tl.device_print("both", a, o, hex=True)
    tl.device_print("bye")
    tl.device_assert(o < n, "bound")
    tl.assume(n > 3)
    tl.debug_barrier()
    tl.store(y + o, a)


@kernel(XY, B=128)
def foreign(x, y, B: tl.constexpr):
    o = tl.arange(0, B)
    a = tl.load(x + o)
    b = tl.inline_asm_elementwise(
        "mov.b32 $0, $1;", "=r,r", [a], dtype=tl.float32, is_pure=True, pack=1
    )
    c, d = tl.inline_asm_elementwise(
        "mov.b32 $0, $2; mov.b32 $1, $2;",
        "=r,=r,r",
        [b],
        dtype=(tl.float32, tl.int32),
        is_pure=False,
        pack=1,
    )
    tl.store(y + o, c + d)
    tl.inline_asm_elementwise("mov.b32 $0, 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
    tl.store(y + o, libdevice.tanh(a) + libdevice.pow(a, a) + libdevice.rsqrt(tl.sum(a)))


@triton.jit(noinline=True)
def sum_and_product(a, b):
    return a + b, a * b


@triton.jit(noinline=True)
def put(p, a):
    tl.store(p, a)


@kernel(XYN)
def calls(x, y, n):
    a, b = sum_and_product(tl.load(x), 2.0)
    put(y, a + b)
    put(y + n, a)


@kernel(XYN, B=128)
def control_flow(x, y, n, B: tl.constexpr):
    o = tl.arange(0, B)
    a = tl.zeros((B,), tl.float32)
    for i in tl.range(
        0, n, 2, num_stages=3, loop_unroll_factor=2, disallow_acc_multi_buffer=True, flatten=True
    ):
        a += tl.load(x + o + i)
        for j in range(i):
            a += tl.load(x + o + j)
    for i in tl.static_range(2):
        a *= i + 2
    while n > 3:
        n = n // 2
        a *= 2
        if n == 17:
            a += 1
    if n > 2:
        if n > 7:
            return
        a -= 1
    tl.store(y + tl.max_contiguous(tl.multiple_of(o * n, [8]), [16]), a)
    tl.store(y + tl.max_constancy(o // 8, [8]), a)
    tl.store(y, tl.num_programs(1) + tl.program_id(2))


@triton.jit
def ordered(a, b):
    if a > b:
        return a, a * b
    else:
        return b, b + a


@kernel(XY, B=128)
def mapped(x, y, B: tl.constexpr):
    o = tl.arange(0, B)
    a = tl.load(x + o)
    larger, mixed = tl.map_elementwise(ordered, a, a * 2)
    tl.store(y + o, larger + mixed)


if HAS_BLOCK_POINTERS:

    @kernel(XYN, B=32)
    def block_pointers(x, y, n, B: tl.constexpr):
        p = tl.make_block_ptr(x, (n, n), (n, 1), (0, 0), (B, B), (1, 0))
        a = tl.load(p, boundary_check=(0, 1), padding_option="nan")
        p = tl.advance(p, (0, B))
        a += tl.load(p, boundary_check=(0,), padding_option="zero")
        q = tl.make_block_ptr(y, (n, n), (n, 1), (0, 0), (B, B), (1, 0))
        tl.store(q, a, boundary_check=(0, 1))

else:

    @kernel({"x": "*i32", "y": "*i32", "n": "i32"})
    def atomic_accesses(x, y, n):
        o = tl.arange(0, 128)
        a = tl.atomic_load(x + o, mask=o < n)
        b = tl.atomic_load(x, sem="relaxed", scope="sys")
        tl.atomic_store(y + o, a + b, mask=o < n)
        tl.atomic_store(y, b, sem="relaxed", scope="cta")
        tl.atomic_poll(x, 3)
        tl.atomic_poll(x, 3, sem="relaxed", timeout_ns=100)


HEADER = """\
// Printed by Triton {version} from kernels.py.
// RUN: triton-autodiff-opt --mlir-print-debuginfo %s | grep . > %t
// RUN: sed -n '/^#loc = /,$p' %s | diff - %t
"""


def ttir(name, target):
    """The TTIR of one kernel for a target."""
    function, signature, constants = KERNELS[name]
    return triton.compile(ASTSource(function, signature, constants), target=target).asm["ttir"]


def main():
    """Write every kernel's TTIR to a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--capability", type=int, default=90)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--lit", action="store_true", help="write lit tests of the round trip")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    target = GPUTarget("cuda", arguments.capability, 32)
    for name in arguments.only or KERNELS:
        try:
            text = ttir(name, target)
        except Exception as error:
            print(f"{name}: {str(error)[-800:]}")
            continue
        if arguments.lit:
            # The same on every machine: no folders in the locations.
            text = re.sub(r'loc\("[^"]*/', 'loc("', text)
            text = HEADER.format(version=triton.__version__) + text
        (arguments.folder / f"{name}.ttir").write_text(text)


if __name__ == "__main__":
    main()
