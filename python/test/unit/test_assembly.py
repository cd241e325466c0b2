"""Inline assembly: what its instructions compute, and the derivatives of what is made of them."""

import itertools
import math
import random

import ptx
import pytest
import torch
import triton
import triton.language as tl
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import assembly as kernels
from kernels.common import poisoned
from ptx import operation, skip_unless_capable
from ptx.forms import APPROXIMATE, PACKED, SMOOTH, UNTAKEN
from ptx.programs import Program
from triton.backends.autodiff import check

pytestmark = pytest.mark.every_triton

# ------------------------------------------------------------------------ what instructions compute


@pytest.mark.parametrize("name", ptx.TABLE)
def test_instruction(device, name):
    """On a GPU the instruction itself, on the CPU what takes its place: bit by bit."""
    instruction = ptx.TABLE[name]
    skip_unless_capable(device, instruction.capability)
    assert_right(instruction, ptx.operands(instruction), device)


def assert_right(instruction, inputs, device):
    """What an instruction makes of inputs is what it ought to."""
    result = kernels.run(
        kernels.assembly_kernel,
        instruction.text,
        ptx.DTYPES[instruction.result],
        *(x.to(device) for x in inputs),
        pack=instruction.pack,
    )
    wrong = ptx.mistakes(instruction, inputs, result.cpu())
    assert not wrong, f"{len(wrong)} of {len(inputs[0])} are wrong:\n" + "\n".join(wrong[:12])


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("opcode", ["mul", "fma"])
def test_flushing_around_the_smallest_normal_number(device, opcode, mode):
    """Of what is rounded up to it, some is flushed: what is smaller with all digits."""
    smallest, half, unit = 2.0**-126, 2.0**-63, 2.0**-23
    exact, inexact = (1 - unit / 2, smallest), ((1 + unit) * half, (1 - unit) * half)
    rows = [(*pair, 0.0) for pair in (exact, inexact)]
    # What is added is so large that the product is nearly lost in it.
    rows += [(2.0**-75, -(2.0**-75), smallest), (2.0**-75, 2.0**-75, smallest)]
    rows += [(-(2.0**-51), 2.0**-51, 2.0**-102 + smallest), (0.5, smallest, 0.0)]
    all_signs = list(itertools.product((1.0, -1.0), repeat=3))
    rows = [[s * x for s, x in zip(signs, row, strict=True)] for signs in all_signs for row in rows]
    rows += [[0.0] * 3] * (64 - len(rows))
    instruction = ptx.TABLE[f"{opcode}.{mode}.f32 flushing"]
    columns = torch.tensor(rows).t().contiguous()
    assert_right(instruction, list(columns[: len(instruction.operands)]), device)


@triton.jit
def program_kernel(x_ptr, i_ptr, y_ptr, ASM: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x, i = tl.load(x_ptr + offsets), tl.load(i_ptr + offsets)
    y = tl.inline_asm_elementwise(ASM, "=f,f,r", [x, i], tl.float32, is_pure=True, pack=1)
    tl.store(y_ptr + offsets, y)


@pytest.mark.parametrize("length", [2, 4, 8, 16])
def test_random_programs(device, seed, length):
    """Guards, predicates and registers of several instructions, against one element at a time."""
    rng = random.Random(seed)
    for _ in range(6):
        program = Program(rng, length)
        x = torch.cat([torch.randn(96) * 3, torch.tensor([0.0, -0.0, 1.5, 1e30] * 8)])
        n = torch.randint(-100, 100, (128,), dtype=torch.int32)
        y = poisoned(x.shape, x).to(device)
        program_kernel[(1,)](x.to(device), n.to(device), y, ASM=program.text, BLOCK=128)
        for a, b, got in zip(x.tolist(), n.tolist(), y.tolist(), strict=True):
            want = program.evaluate(a, b)
            assert math.isnan(want) or want == got, f"{program.text} of {a}, {b}: {want}, got {got}"


def test_guarded_set(device):
    """A register keeps its value where a guard is false; ptxas, at its word, makes bits a float."""
    text = "{ .reg .pred p; mov.f32 $0, $1; setp.lt.s32 p, $2, 0;"
    text += " @p set.gt.f32.f32 $0, $1, 0f40000000; }"
    x, n = torch.tensor([1.5, 3.0] * 64), torch.tensor([-1, -1, 1, 1] * 32, dtype=torch.int32)
    y = poisoned(x.shape, x).to(device)
    program_kernel[(1,)](x.to(device), n.to(device), y, ASM=text, BLOCK=128)
    expected, got = torch.where(n < 0, (x > 2).float(), x), y.cpu()
    if device == "cuda" and torch.equal(
        got, torch.where(n < 0, expected, x.view(torch.int32).float())
    ):
        pytest.xfail("ptxas converts what a guard has left as it was")
    torch.testing.assert_close(got, expected, rtol=0, atol=0)


# -------------------------------------------------------------------------------------- derivatives


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


# ---------------------------------------------------------------------- packed, and several results


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
def loop_kernel(
    x_ptr, y_ptr, rows, ASM: tl.constexpr, CONSTRAINTS: tl.constexpr, BLOCK: tl.constexpr
):
    """Assembly in a loop and a branch, of what the loop carries."""
    columns = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        x = tl.load(x_ptr + row * BLOCK + columns)
        total = tl.inline_asm_elementwise(ASM, CONSTRAINTS, [total, x], tl.float32, True, 1)
        if row % 2 == 0:
            total = tl.inline_asm_elementwise(
                "neg.f32 $0, $1; add.f32 $0, $0, 0f3F000000;", "=f,f", [total], tl.float32, True, 1
            )
    tl.store(y_ptr + columns, total)


def _loop(text, constraints):
    def stub(kernel, x):
        y = poisoned(x.shape[1:], x)
        kernel[(1,)](x, y, x.shape[0], ASM=text, CONSTRAINTS=constraints, BLOCK=x.shape[1])
        return y

    return differentiated(loop_kernel, stub)


# Its first operand is read after its result is written; and where it is read first.
OVERWRITING = (
    "{ .reg .pred p; setp.gt.f32 p, $2, 0f00000000; fma.rn.f32 $0, $1, $2, $2; "
    "@!p mov.f32 $0, $1; }"
)
KEEPING = (
    "{ .reg .pred p; setp.gt.f32 p, $2, 0f00000000; @p fma.rn.f32 $0, $1, $2, $2; "
    "@!p mov.f32 $0, $1; }"
)


@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize(
    "text, constraints",
    [(OVERWRITING, "=&f,f,f"), (KEEPING, "=f,f,f"), (KEEPING.replace("$1", "$0"), "=f,0,f")],
    ids=["a register of its own", "under opposite guards", "tied"],
)
def test_in_a_loop(device, rows, text, constraints):

    def reference(x):
        total = (x * 0).sum(0)
        for row, values in enumerate(x):
            total = torch.where(values > 0, total * values + values, total)
            if row % 2 == 0:
                total = 0.5 - total
        return total

    x = random_tensor(rows, 64, device=device)
    assert_gradients_close(_loop(text, constraints), reference, (x,))


def test_result_in_the_register_of_an_operand(device):
    """A GPU puts what a loop carries into one register, whose operand is lost too early."""
    x = random_tensor(3, 64, device=device)
    message = (
        r"test_assembly.py:\d+.*'mov.f32': '\$1' is read after '\$0' is written, and both may be "
        'in one register.*"=&"'
    )
    with pytest.raises(RuntimeError, match=message):
        _loop(OVERWRITING, "=f,f,f")(x)


def test_tied_operand_is_overwritten(device):
    """What is read of it after the result is written is the result."""

    def stub(kernel, x):
        y = poisoned(x.shape, x)
        kernel[(1,)](x, y, ASM="mul.f32 $0, $1, $1; add.f32 $0, $0, $1;", BLOCK=64)
        return y

    op = differentiated(tied_kernel, stub)
    assert_gradients_close(op, lambda x: 2 * x * x, (random_tensor(64, device=device),))


def test_finite_differences(device):
    """In float64 an approximation is what it approximates, and rounding is none."""
    softplus, _ = APPROXIMATE["softplus"]
    assert check(operation(softplus), (random_tensor(40, device=device),))
    text = (
        "{ .reg .f16 h; cvt.rn.f16.f32 h, $1; cvt.f32.f16 $0, h; fma.rz.ftz.f32 $0, $0, $2, $2; }"
    )
    inputs = [random_tensor(40, device=device) for _ in range(2)]
    assert check(operation(text), inputs, rtol=2e-3)
