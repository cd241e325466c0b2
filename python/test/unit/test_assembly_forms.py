"""Inline assembly that Triton and libraries have, compiled for GPUs, and what is refused."""

import math

import hopper
import ptx
import pytest
import torch
import triton
import triton.language as tl
from gradients import differentiated, random_tensor
from kernels import assembly as kernels
from kernels.common import poisoned
from ptx import operation, skip_unless_capable
from ptx.forms import APPROXIMATE, PACKED, REFUSED, SMOOTH, TO_E4B15
from triton.backends.autodiff import differentiable
from triton.language.extra.cuda.utils import convert_fp8e4b15_to_float16

# ------------------------------------------------------------------- what Triton and libraries have


@triton.jit
def from_e4b15_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, convert_fp8e4b15_to_float16(tl.load(x_ptr + offsets)))


def test_from_tritons_own_format(device):
    """Four bytes at a time, permuted: every one of them."""
    x = torch.arange(256, dtype=torch.uint8, device=device).view(torch.int8)
    y = torch.empty(256, dtype=torch.float16, device=device)
    from_e4b15_kernel[(1,)](x, y, BLOCK=256)
    bits = x.int() & 0xFF
    wanted = (bits & 0x7F) << 7 | (bits & 0x80) << 8
    assert (y.view(torch.int16) == wanted.to(torch.int16)).all()


@pytest.mark.parametrize("name", TO_E4B15)
def test_to_tritons_own_format(device, name):
    """All halves but NaN, by a minimum of pairs or by predicates, as Triton does it."""
    bits = torch.arange(-(2**15), 2**15, dtype=torch.int32)
    bits = torch.where((bits & 0x7FFF) > 0x7C00, 0, bits)
    x = bits.to(torch.int16).view(torch.float16).to(device)
    text = TO_E4B15[name]
    y = kernels.run(kernels.assembly_kernel, text, torch.int8, x, pack=4, block=1024)
    size = (bits & 0x7FFF).clamp(max=0x3F00) * 2 + 0x80
    wanted = (size >> 8) & 0x7F | (bits >> 8) & 0x80
    assert (y.cpu() == wanted.to(torch.int8)).all()


@triton.jit
def four_bits_kernel(x_ptr, y_ptr, n, ASM: tl.constexpr, BLOCK: tl.constexpr):
    """Two floats in a byte, of which four are packed in a register."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    low = tl.load(x_ptr + 2 * offsets)
    high = tl.load(x_ptr + 2 * offsets + 1)
    y = tl.inline_asm_elementwise(
        ASM, "=r,r,r,r,r,r,r,r,r", [low, high], tl.uint8, is_pure=True, pack=4
    )
    tl.store(y_ptr + offsets, y)


def test_four_bit_floats(device):
    skip_unless_capable(device, 100)
    steps = [f"cvt.rn.satfinite.e2m1x2.f32 b{i}, ${i + 5}, ${i + 1};" for i in range(4)]
    text = "{ .reg .b8 b<4>; " + " ".join(steps) + " mov.b32 $0, {b0, b1, b2, b3}; }"
    numbers = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
    ties = (numbers[1:] + numbers[:-1]) / 2
    x = torch.cat([numbers, ties, ties * 1.0001, ties * 0.9999, torch.rand(96) * 9])
    x = torch.cat([x, -x, torch.tensor([math.inf, -math.inf, 1e30, -0.0, math.nan, 1e-30])])
    x = torch.cat([x, torch.randn(256 - len(x))])
    y = torch.zeros(128, dtype=torch.uint8, device=device)
    four_bits_kernel[(1,)](x.to(device), y, 128, ASM=text, BLOCK=128)
    got = torch.stack([y & 0xF, y >> 4], 1).flatten().cpu().int()
    size = torch.where(x.isnan(), math.inf, x.abs())
    distance = (size[:, None].clamp(max=6) - numbers).abs()
    nearest = distance == distance.min(1, keepdim=True).values
    # Of two that are as near, the even one.
    even = torch.arange(8) % 2 == 0
    code = torch.where(nearest & even, 2, nearest.int()).argmax(1)
    negative = torch.signbit(x) & ~x.isnan()
    assert (got == code + 8 * negative).all()


@triton.jit
def scaled_kernel(x_ptr, y_ptr, ASM: tl.constexpr, BLOCK: tl.constexpr):
    """By a power of two, of the largest element, whose exponent an instruction takes."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    largest = tl.max(tl.abs(x), axis=0)
    exponent = tl.inline_asm_elementwise(ASM, "=h,r", [largest], tl.uint16, is_pure=True, pack=1)
    tl.store(y_ptr + offsets, x * tl.exp2(127.0 - exponent.to(tl.uint8).to(tl.float32)))


def test_exponent_is_constant_between_jumps():
    """The scale of a block has no derivative, and stays an instruction of newer GPUs."""
    constants = {"ASM": "cvt.rp.satfinite.ue8m0x2.f32 $0, 0.0, $1;", "BLOCK": 128}
    text = hopper.ttir(scaled_kernel, ["*fp32"] * 2, constants)
    (backward,) = hopper.plan_of(text)["backward"]
    assert "ue8m0x2" in backward["ttir"] or "tt.load" in backward["ttir"]


@triton.jit
def arctangent_kernel(x_ptr, y_ptr, n, FMA: tl.constexpr, RCP: tl.constexpr, BLOCK: tl.constexpr):
    """As PyTorch's compiler writes it: a reciprocal and products in assembly, the rest around."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    size = tl.abs(x)
    inverse = tl.inline_asm_elementwise(RCP, "=f,f", [size], tl.float32, is_pure=True, pack=1)
    z = tl.where(size > 1.0, inverse, size)
    square = z * z
    sum = tl.full((BLOCK,), 0.002866, tl.float32)
    for c in tl.static_range(7):
        factor = (
            -0.016166
            if c == 0
            else 0.042910
            if c == 1
            else -0.075290
            if c == 2
            else 0.106563
            if c == 3
            else -0.142089
            if c == 4
            else 0.199936
            if c == 5
            else -0.333331
        )  # noqa: E501
        term = tl.full((BLOCK,), factor, tl.float32)
        sum = tl.inline_asm_elementwise(
            FMA, "=f,f,f,f", [sum, square, term], tl.float32, is_pure=True, pack=1
        )
    angle = tl.inline_asm_elementwise(
        FMA, "=f,f,f,f", [square * sum, z, z], tl.float32, is_pure=True, pack=1
    )
    angle = tl.where(size > 1.0, 1.5707963 - angle, angle)
    tl.store(y_ptr + offsets, tl.where(x < 0, -angle, angle), mask=mask)


def test_arctangent(device):
    def stub(kernel, x):
        y = poisoned(x.shape, x)
        fma, rcp = "fma.rn.f32 $0, $1, $2, $3;", "rcp.approx.ftz.f32 $0, $1;"
        kernel[(3,)](x, y, x.numel(), FMA=fma, RCP=rcp, BLOCK=128)
        return y

    x = random_tensor(300, device=device, scale=2)
    y = differentiated(arctangent_kernel, stub)(x)
    torch.testing.assert_close(y, torch.atan(x), rtol=1e-4, atol=1e-4)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 1 / (1 + x.detach() ** 2), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", ["softplus", "softplus2"])
def test_assembly_of_flash_linear_attention(device, name):
    module = pytest.importorskip("fla.ops.utils.softplus")
    text, registers = getattr(module, f"s_{name}").value, module.s_constraints.value
    x = random_tensor(300, device=device, scale=12)
    y = operation(text, pack=module.NUM_REG.value, constrained=registers)(x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    wide = x.detach().double()
    if name == "softplus":
        truth, slope = torch.nn.functional.softplus(wide), torch.sigmoid(wide)
    else:
        truth, slope = torch.log2(1 + torch.exp2(wide)), torch.sigmoid(wide * math.log(2))
    torch.testing.assert_close(y.double(), truth, rtol=3e-5, atol=3e-5)
    torch.testing.assert_close(gradient.double(), slope, rtol=3e-5, atol=3e-5)


# ----------------------------------------------------------------------------------------- on a GPU
FORMS = {
    **{name: (text, 3, 1, "f32") for name, (text, _) in SMOOTH.items()},
    **{name: (text, 1, 1, "f32") for name, (text, _) in APPROXIMATE.items()},
    **{
        f"{name}, {kind}": (text.format(kind), 2, 2, kind)
        for name, (text, _) in PACKED.items()
        for kind in ("f16", "bf16")
    },
}


@triton.jit
def normalized_kernel(x_ptr, y_ptr, ASM: tl.constexpr, BLOCK: tl.constexpr):
    """A sum over all elements, which a forward saves for its backward."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    y = tl.inline_asm_elementwise(ASM, "=f,f", [x], tl.float32, is_pure=True, pack=1)
    tl.store(y_ptr + offsets, y / tl.sum(y, axis=0))


def test_forward_that_saves_keeps_the_assembly():
    text, _ = APPROXIMATE["softplus"]
    constants = {"ASM": text, "BLOCK": 1024}
    plan = hopper.plan_of(hopper.ttir(normalized_kernel, ["*fp32"] * 2, constants))
    assert text in plan["forward"]["ttir"]
    (backward,) = plan["backward"]
    assert '"ex2.approx.ftz.f32 $0, $1;"' in backward["ttir"] and ".reg" not in backward["ttir"]


def _parameters(text, count, pack, kind):
    """Return the types of the addresses and integers of `assembly_kernel`, and its constants."""
    dtype = ptx.DTYPES[kind]
    pointer = {"f16": "*fp16", "bf16": "*bf16", "f32": "*fp32"}[kind]
    constants = {
        "ASM": text,
        "CONSTRAINTS": kernels.constraints(dtype, [dtype] * count, pack),
        "COUNT": count,
        "PACK": pack,
        "BLOCK": 128,
    }
    return [pointer] * 4 + ["i32"], constants


@pytest.mark.parametrize("name", FORMS)
def test_compiles_for_a_gpu(name):
    """The assembler takes it, and Triton takes what it becomes."""
    if name == "pairs of floats":
        pytest.skip("an instruction of compute capability 100")
    parameters = _parameters(*FORMS[name])
    ttir = hopper.assembly(kernels.assembly_kernel, *parameters, assemble=True)["ttir"]
    plan = hopper.plan_of(ttir)
    for kernel in plan["backward"]:
        assert ".reg" not in kernel["ttir"] and "@p" not in kernel["ttir"]
    hopper.assert_backward_compiles(ttir)


# ------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    """The instruction, the line of the kernel, and the way out are named."""
    text, message = REFUSED[name]
    ttir = hopper.ttir(kernels.assembly_kernel, *_parameters(text, 1, 1, "f32"))
    with pytest.raises(RuntimeError, match=message) as error:
        hopper.plan_of(ttir)
    assert "assembly.py:" in str(error.value) and "register_vjp" in str(error.value)


@pytest.mark.parametrize("name", [name for name in REFUSED if "bits" not in name])
def test_refused_by_the_cpu(device, name):
    if device != "cpu":
        pytest.skip("the assembler of a GPU refuses some of it, with messages of its own")
    text, message = REFUSED[name]
    x = torch.randn(64)
    with pytest.raises(RuntimeError, match=r"assembly.py:\d+.*cannot compile.*" + message):
        kernels.run(kernels.assembly_kernel, text, x.dtype, x)


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
    processor = tl.inline_asm_elementwise(
        "mov.u32 $0, %smid;", "=r,r", [offsets], tl.int32, is_pure=True, pack=1
    )
    tl.store(y_ptr + offsets, x * x, mask=offsets + processor >= 0)
