"""Inline assembly: what its instructions compute, and the derivatives of what is made of them."""

import math

import instructions as ptx
import pytest
import torch
import triton
import triton.language as tl
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import assembly as kernels
from kernels.common import poisoned
from triton.backends.autodiff import AutodiffError, check, differentiable

FLOATS = [torch.float32, torch.float64]


def skip_unless_capable(device, capability):
    if device == "cuda":
        major, minor = torch.cuda.get_device_capability()
        if 10 * major + minor < capability:
            pytest.skip(f"an instruction of compute capability {capability}")


# ------------------------------------------------------------------- what instructions compute


@pytest.mark.parametrize("name", ptx.TABLE)
def test_instruction(device, name):
    """On a GPU the instruction itself, on the CPU what takes its place: bit by bit."""
    instruction = ptx.TABLE[name]
    skip_unless_capable(device, instruction.capability)
    inputs = ptx.operands(instruction)
    result = kernels.run(
        kernels.assembly_kernel,
        instruction.text,
        ptx.DTYPES[instruction.result],
        *(x.to(device) for x in inputs),
        pack=instruction.pack,
    )
    wrong = ptx.mistakes(instruction, inputs, result.cpu())
    assert not wrong, f"{len(wrong)} of {len(inputs[0])} are wrong:\n" + "\n".join(wrong[:12])


# ------------------------------------------------------------------------------- derivatives


def operation(text, *, pack=1, dtype=None, constrained=None):
    """Return the operation that assembly is, of one to three tensors of a type."""

    def stub(kernel, *operands):
        result = dtype or operands[0].dtype
        return kernels.run(
            kernel, text, result, *operands, pack=pack, constrained=constrained
        )

    return differentiated(kernels.assembly_kernel, stub)


def relu(x):
    return torch.where(x > 0, x, torch.zeros_like(x))


# A register of a predicate, of an outer register read as a result, of another block, twice.
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
        "/* x */ mul.f32 $0, $1, $2; // and\n add.f32 $0, $0 /* the\n rest */ , $3",
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
        lambda x, y, z: torch.where((x > y) & (z < 0), x, y)
        * torch.where((x <= y) & (z < 0), z, torch.ones_like(z)),
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


@pytest.mark.parametrize("name", SMOOTH)
def test_gradient(device, name):
    text, reference = SMOOTH[name]
    if name == "pairs of floats":
        skip_unless_capable(device, 100)
    inputs = [random_tensor(150, device=device) for _ in range(3)]
    # What has no derivative by an operand needs none.
    wanted = torch.autograd.grad(
        reference(*inputs).sum(), inputs, allow_unused=True, retain_graph=True
    )
    for x, gradient in zip(inputs, wanted, strict=True):
        x.requires_grad_(gradient is not None)
    assert_gradients_close(operation(text), reference, inputs)


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


@pytest.mark.parametrize("name", APPROXIMATE)
def test_gradient_of_approximations(device, name):
    text, reference = APPROXIMATE[name]
    x = random_tensor(300, device=device, scale=3)
    y = operation(text)(x)
    upstream = torch.randn_like(y)
    (gradient,) = torch.autograd.grad(y, x, upstream)
    exact = x.detach().double().requires_grad_()
    z = reference(exact)
    (truth,) = torch.autograd.grad(z, exact, upstream.double())
    bound = 2e-3 if device == "cuda" and "tanh" in text else 2e-5
    torch.testing.assert_close(y.double(), z, rtol=bound, atol=bound)
    torch.testing.assert_close(gradient.double(), truth, rtol=bound, atol=bound)


@pytest.mark.parametrize("name", ["softplus", "softplus in base 2"])
@pytest.mark.parametrize("constrained", ["=r,r", "=f,f"])
def test_side_that_is_not_taken(device, name, constrained):
    """Its exponential overflows; infinities and NaN of it reach neither value nor gradient."""
    text, reference = APPROXIMATE[name]
    x = torch.tensor([-200.0, -1.0, 0.0, 14.0, 21.0, 90.0, 128.0, 300.0, 3e38], device=device)
    x.requires_grad_()
    y = operation(text, constrained=constrained)(x)
    y.sum().backward()
    exact = x.detach().double().requires_grad_()
    reference(exact).sum().backward()
    torch.testing.assert_close(y.double(), reference(exact), rtol=2e-5, atol=2e-5)
    torch.testing.assert_close(x.grad.double(), exact.grad, rtol=2e-5, atol=2e-5)


UNTAKEN = {
    "selp": "{ .reg .pred p; .reg .f32 t; lg2.approx.f32 t, $1; mul.f32 t, t, $1; "
    "setp.gt.f32 p, $1, 0f00000000; selp.f32 $0, t, 0f00000000, p; }",
    "guard": "{ .reg .pred p; setp.gt.f32 p, $1, 0f00000000; mov.f32 $0, 0f00000000; "
    "@p lg2.approx.f32 $0, $1; @p mul.f32 $0, $0, $1; }",
    "quotient": "{ .reg .pred p; .reg .f32 t; rcp.rn.f32 t, $1; lg2.approx.f32 t, t; "
    "mul.f32 t, t, $1; neg.f32 t, t; setp.gt.f32 p, $1, 0f00000000; @!p mov.f32 t, 0f00000000; "
    "mov.f32 $0, t; }",
}


@pytest.mark.parametrize("name", UNTAKEN)
def test_poles_of_the_side_that_is_not_taken(device, name):
    x = torch.tensor([-1.0, 0.0, -0.0, 0.5, 2.0, -math.inf, math.nan, -3e-39], device=device)
    x.requires_grad_()
    y = operation(UNTAKEN[name])(x)
    y.sum().backward()
    inside = x.detach().double() > 0
    safe = torch.where(inside, x.detach().double(), 1.0)
    zero = torch.zeros_like(safe)
    truth = torch.where(inside, safe.log2() * safe, zero)
    slope = torch.where(inside, safe.log2() + 1 / math.log(2), zero)
    torch.testing.assert_close(y.double(), truth, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(x.grad.double(), slope, rtol=1e-5, atol=1e-5)


# ---------------------------------------------------------------- packed, and several results

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


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("name", PACKED)
def test_packed(device, name, kind):
    text, reference = PACKED[name]
    if kind == "bf16":
        skip_unless_capable(device, 90)
    dtype = ptx.DTYPES[kind]
    inputs = [random_tensor(300, device=device, dtype=dtype) for _ in range(2)]
    assert_gradients_close(operation(text.format(kind), pack=2), reference, inputs)


def test_eight_bit_floats(device):
    """Rounding to a format passes the gradient on, as a cast does."""
    skip_unless_capable(device, 89)
    text = (
        "{ .reg .b16 t; cvt.rn.satfinite.e4m3x2.f16x2 t, $1; cvt.rn.f16x2.e4m3x2 $0, t; "
        "mul.f16x2 $0, $0, $2; }"
    )

    def reference(x, y):
        near = x.detach().to(torch.float8_e4m3fn).to(x.dtype) if x.dtype == torch.float16 else x
        return (x + (near - x).detach()) * y

    x, y = (random_tensor(200, device=device, dtype=torch.float16) for _ in range(2))
    z = operation(text, pack=2)(x, y)
    torch.testing.assert_close(z, reference(x, y))
    z.sum().backward()
    torch.testing.assert_close(x.grad, y.detach())
    torch.testing.assert_close(y.grad, x.detach().to(torch.float8_e4m3fn).half())


@triton.jit
def bytes_and_floats_kernel(a_ptr, b_ptr, c_ptr, d_ptr, n, ASM: tl.constexpr, BLOCK: tl.constexpr):
    """Four bytes in one register beside four floats in four; integers and floats come back."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    a = tl.load(a_ptr + offsets, mask=mask, other=0)
    b = tl.load(b_ptr + offsets, mask=mask, other=0.0)
    c, d = tl.inline_asm_elementwise(
        ASM,
        "=r,=r,=r,=r,=r,=r,=r,=r,r,r,r,r,r",
        [a, b],
        dtype=(tl.int32, tl.float32),
        is_pure=True,
        pack=4,
    )
    tl.store(c_ptr + offsets, c, mask=mask)
    tl.store(d_ptr + offsets, d * d, mask=mask)


def _bytes_and_floats():
    """The larger of each byte and each float, and the bytes as integers."""
    lines = ["{ .reg .b8 t<4>; mov.b32 {t0, t1, t2, t3}, $8;"]
    lines += [f"cvt.u32.u8 ${i}, t{i};" for i in range(4)]
    lines += ["}"]
    for i in range(4):
        lines += [f"cvt.rn.f32.s32 ${i + 4}, ${i};", f"max.f32 ${i + 4}, ${i + 4}, ${i + 9};"]
    return " ".join(lines)


def test_several_results_of_packed_operands(device):
    def stub(kernel, a, b):
        c = torch.full_like(a, -1, dtype=torch.int32)
        d = poisoned(b.shape, b)
        kernel[(3,)](a, b, c, d, b.numel(), ASM=_bytes_and_floats(), BLOCK=128)
        return c, d

    a = torch.randint(0, 3, (300,), dtype=torch.uint8, device=device)
    b = random_tensor(300, device=device, scale=2)
    c, d = differentiated(bytes_and_floats_kernel, stub)(a, b)
    assert (c == a).all()
    (gradient,) = torch.autograd.grad(d.sum(), b)
    exact = b.detach().double().requires_grad_()
    truth = torch.maximum(exact, a.double()) ** 2
    torch.testing.assert_close(d.double(), truth)
    torch.testing.assert_close(gradient.double(), torch.autograd.grad(truth.sum(), exact)[0])


@triton.jit
def two_results_kernel(x_ptr, y_ptr, n, ASM: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=1.0)
    a, b = tl.inline_asm_elementwise(
        ASM, "=f,=f,f", [x], (tl.float32, tl.float32), is_pure=True, pack=1
    )
    tl.store(y_ptr + offsets, a * b, mask=mask)


def test_several_results(device):
    def stub(kernel, x):
        y = poisoned(x.shape, x)
        text = "{ .reg .f32 t; mul.f32 t, $2, $2; add.f32 $0, t, $2; mul.f32 $1, t, $0; }"
        kernel[(2,)](x, y, x.numel(), ASM=text, BLOCK=128)
        return y

    op = differentiated(two_results_kernel, stub)
    x = random_tensor(200, device=device)
    assert_gradients_close(op, lambda x: (x * x + x) ** 2 * x * x, (x,))


@triton.jit
def tied_kernel(x_ptr, y_ptr, ASM: tl.constexpr, BLOCK: tl.constexpr):
    """A result in the register that an operand comes in."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    y = tl.inline_asm_elementwise(ASM, "=f,0", [x], tl.float32, is_pure=True, pack=1)
    tl.store(y_ptr + offsets, y)


def test_tied_registers(device):
    def stub(kernel, x):
        y = poisoned(x.shape, x)
        kernel[(1,)](x, y, ASM="mul.f32 $0, $0, $0; add.f32 $0, $0, 1.0;", BLOCK=64)
        return y

    op = differentiated(tied_kernel, stub)
    assert_gradients_close(op, lambda x: x * x + 1, (random_tensor(64, device=device),))


@triton.jit
def loop_kernel(x_ptr, y_ptr, rows, ASM: tl.constexpr, BLOCK: tl.constexpr):
    """Assembly in a loop and a branch, of what the loop carries."""
    columns = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        x = tl.load(x_ptr + row * BLOCK + columns)
        total = tl.inline_asm_elementwise(ASM, "=f,f,f", [total, x], tl.float32, True, 1)
        if row % 2 == 0:
            total = tl.inline_asm_elementwise(
                "neg.f32 $0, $1; add.f32 $0, $0, 0f3F000000;", "=f,f", [total], tl.float32, True, 1
            )
    tl.store(y_ptr + columns, total)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_in_a_loop(device, rows):
    text = (
        "{ .reg .pred p; setp.gt.f32 p, $2, 0f00000000; fma.rn.f32 $0, $1, $2, $2; "
        "@!p mov.f32 $0, $1; }"
    )

    def stub(kernel, x):
        y = poisoned(x.shape[1:], x)
        kernel[(1,)](x, y, x.shape[0], ASM=text, BLOCK=x.shape[1])
        return y

    def reference(x):
        total = torch.zeros_like(x).sum(0)
        for row, values in enumerate(x):
            total = torch.where(values > 0, total * values + values, total)
            if row % 2 == 0:
                total = 0.5 - total
        return total

    x = random_tensor(rows, 64, device=device)
    assert_gradients_close(differentiated(loop_kernel, stub), reference, (x,))


def test_finite_differences(device):
    """In float64 an approximation is what it approximates, and rounding is none."""
    softplus, _ = APPROXIMATE["softplus"]
    assert check(operation(softplus), (random_tensor(40, device=device),))
    text = "{ .reg .f16 h; cvt.rn.f16.f32 h, $1; cvt.f32.f16 $0, h; fma.rz.ftz.f32 $0, $0, $2, $2; }"
    inputs = [random_tensor(40, device=device) for _ in range(2)]
    assert check(operation(text), inputs, atol=2e-3, rtol=2e-3)


# ------------------------------------------------------------------------------------- errors

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
        "{ .reg .pred p; .reg .f32 t; setp.gt.f32 p, $1, 1.0; @p mov.f32 t, $1; add.f32 $0, t, t; }",
        "'t' is read, which may not be set",
    ),
    "an unknown modifier": ("add.xorsign.f32 $0, $1, $1;", "modifier '.xorsign'"),
    "too few operands": ("add.f32 $0, $1;", "another number of operands"),
    "no such operand": ("add.f32 $0, $1, $7;", "'\\$7' is no operand"),
    "another GPU": ("v_exp_f32 $0, $1", "'v_exp_f32'"),
    "bits": ("xor.b32 $0, $1, 0x80000000;", "computes with the bits of a float"),
    "bits turned around": ("brev.b32 $0, $1;", "computes with the bits of a float"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(device, name):
    """The instruction, the line of the kernel, and the way out are named."""
    text, message = REFUSED[name]
    x = random_tensor(64, device=device)
    op = operation(text)
    if device == "cpu" and "bits" not in name:
        with pytest.raises(RuntimeError, match=r"assembly.py:\d+.*cannot compile.*" + message):
            kernels.run(kernels.assembly_kernel, text, x.dtype, x.detach())
        return
    with pytest.raises(AutodiffError, match=message) as error:
        op(x)
    assert "assembly.py:" in str(error.value) and "register_vjp" in str(error.value)


def test_elements_that_meet(device):
    """Which elements are packed together is Triton's choice, so that nothing may depend on it."""
    x = random_tensor(64, device=device, dtype=torch.float16)
    for text in (
        "{ .reg .b16 a, b; mov.b32 {a, b}, $1; mov.b32 $0, {b, a}; }",
        "{ .reg .b16 a, b; mov.b32 {a, b}, $1; add.f16 a, a, b; mov.b32 $0, {a, a}; }",
        "{ .reg .b16 a, b; mov.b32 {a, b}, $1; add.f16 a, a, a; mov.b32 $0, {a, b}; }",
    ):
        with pytest.raises(RuntimeError, match="packed side by side"):
            operation(text, pack=2)(x)


@triton.jit
def scaled_kernel(x_ptr, y_ptr, ASM: tl.constexpr, BLOCK: tl.constexpr):
    """A power of two of the largest element, whose exponent an instruction takes."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    largest = tl.max(tl.abs(x), axis=0)
    exponent = tl.inline_asm_elementwise(ASM, "=h,r", [largest], tl.uint16, is_pure=True, pack=1)
    scale = tl.exp2(127.0 - exponent.to(tl.uint8).to(tl.float32))
    tl.store(y_ptr + offsets, x * scale)


def test_what_takes_no_part_is_left_alone(device):
    """Integers that come of nothing differentiated may be made in any way."""
    x = random_tensor(64, device=device)
    y = torch.empty_like(x, requires_grad=False)
    if device == "cpu":
        pytest.skip("the CPU has no such registers")
    differentiable(processor_kernel)[(1,)](x, y, BLOCK=64)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())


@triton.jit
def processor_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    processor = tl.inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], tl.int32, True, 1)
    tl.store(y_ptr + offsets, x * x, mask=offsets + processor >= 0)
