"""Derivatives given by the user: `register_vjp`, `custom_vjp`, `stop_gradient`, assembly."""

import os
import subprocess
import sys

import pytest
import torch
import triton
import triton.language as tl
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import user_rules as kernels
from triton.backends.autodiff import (
    AutodiffError,
    custom_vjp,
    differentiable,
    register_vjp,
    stop_gradient,
)
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

pytestmark = [pytest.mark.every_triton, pytest.mark.usefixtures("own_rules")]

DTYPES = [torch.float32, torch.float64]
HALF = [torch.float16, torch.bfloat16]

INSTRUCTIONS = {
    "tanh.approx.f32 $0, $1;": lambda x, w: torch.tanh(x) + 0 * w,
    "ex2.approx.ftz.f32 $0, $1;": lambda x, w: torch.exp2(x) + 0 * w,
    "{ lg2.approx.f32 $0, $2; }": lambda x, w: torch.log2(w) + 0 * x,
    "sin.approx.f32 $0, $1;": lambda x, w: torch.sin(x) + 0 * w,
    "cos.approx.f32 $0, $1;": lambda x, w: torch.cos(x) + 0 * w,
    "rsqrt.approx.f32 $0, $2; // of w": lambda x, w: torch.rsqrt(w) + 0 * x,
    "sqrt.rn.f32 $0, $2;": lambda x, w: torch.sqrt(w) + 0 * x,
    "rcp.approx.f32 $0, $2;": lambda x, w: 1 / w + 0 * x,
    "mul.rn.f32 $0, $1, $2;": lambda x, w: x * w,
    "mul.f32 $0, $1, $1;": lambda x, w: x * x + 0 * w,
    "sub.f32 $0, $2, $1;": lambda x, w: w - x,
    "div.full.f32 $0, $1, $2;": lambda x, w: x / w,
    "fma.rn.f32 $0, $1, $2, $1;": lambda x, w: x * w + x,
    "max.f32 $0, $1, $2;": torch.maximum,
    "copysign.f32 $0, $2, $1;": torch.copysign,
    "mov.b32 $0, $1;": lambda x, w: x + 0 * w,
}


@pytest.mark.parametrize("assembly", INSTRUCTIONS)
def test_one_instruction(device, assembly):
    if device == "cuda" and "approx" in assembly:
        pytest.skip("approximations are not accurate enough to compare")
    x = random_tensor(150, device=device)
    w = (random_tensor(150, device=device, grad=False).abs() + 0.2).requires_grad_()
    op = differentiated(
        kernels.assembly_kernel, lambda kernel, x, w: kernels.apply(kernel, x, w, ASM=assembly)
    )
    if "$1" not in assembly or "$2" not in assembly:
        # What the instruction does not read has no gradient.
        x.requires_grad_("$1" in assembly)
        w.requires_grad_("$2" in assembly)
    assert_gradients_close(op, INSTRUCTIONS[assembly], (x, w))


@pytest.mark.parametrize("assembly", ["max.f32 $0, $1, $2;", "copysign.f32 $0, $2, $1;"])
def test_instruction_whose_result_is_stored_rounded(device, assembly):
    """What memory holds decides neither whose gradient it is nor its sign."""

    def stub(kernel, x, w):
        y = torch.empty_like(x, dtype=torch.float16)
        kernel[(1,)](x, w, y, x.numel(), ASM=assembly, BLOCK=64)
        return y

    # Small enough for many results to become zero in float16.
    x, w = (random_tensor(60, device=device, scale=1e-7) for _ in range(2))
    op = differentiated(kernels.assembly_kernel, stub)
    assert_gradients_close(op, lambda x, w: INSTRUCTIONS[assembly](x, w).half(), (x, w))


@triton.jit
def softplus_vjp(dy, x, y):
    return dy * (1.0 - tl.exp2(-y))


def compile_for_gpu(kernel, constants, pointers):
    """What Triton compiles for a GPU that is not there: the TTIR of a float32 kernel."""
    names = kernel.arg_names
    signature = {
        name: "constexpr" if name in constants else "*fp32" if name in pointers else "i32"
        for name in names
    }
    source = ASTSource(kernel, signature, constants)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32))


def differentiate_for_gpu(tmp_path, kernel, constants, pointers):
    """Differentiate a kernel that the CPU cannot run; the plan's kernels compile for a GPU."""
    from triton.backends.autodiff.launching.state import KernelState

    compiled = compile_for_gpu(kernel, constants, pointers)
    plan = KernelState.of(compiled, kernel).plan_of_everything()
    for index, derived in enumerate(plan.kernels):
        path = tmp_path / f"derived{index}.ttir"
        path.write_text(derived.ttir)
        triton.compile(str(path), target=GPUTarget("cuda", 90, 32))
    return plan


SOFTPLUS = {"ASM": kernels.SOFTPLUS, "BLOCK": 64}


def test_assembly_without_a_rule_names_the_way_out(tmp_path):
    assembly = "shfl.sync.bfly.b32 $0, $1, 1, 31, -1;"
    constants = {"ASM": assembly, "BLOCK": 64}
    with pytest.raises(AutodiffError, match="register_vjp") as error:
        differentiate_for_gpu(tmp_path, kernels.softplus_kernel, constants, ("x_ptr", "y_ptr"))
    assert "user_rules.py" in str(error.value) and "'shfl.sync.bfly.b32'" in str(error.value)


def test_registered_assembly(tmp_path):
    """The rule wins over what the compiler makes of it; white space does not matter."""
    register_vjp(softplus_vjp, asm=" ".join(kernels.SOFTPLUS.split()))
    plan = differentiate_for_gpu(tmp_path, kernels.softplus_kernel, SOFTPLUS, ("x_ptr", "y_ptr"))
    (backward,) = plan.backward
    assert "math.exp2" in backward.ttir and "autodiff." not in backward.ttir


@triton.jit
def sine_and_cosine_vjp(d_sine, d_cosine, x, sine, cosine):
    return d_sine * cosine - d_cosine * sine


def test_several_results(tmp_path):
    register_vjp(sine_and_cosine_vjp, asm=kernels.SINE_AND_COSINE)
    constants = {"ASM": kernels.SINE_AND_COSINE, "BLOCK": 64}
    pointers = ("x_ptr", "y_ptr")
    plan = differentiate_for_gpu(tmp_path, kernels.sine_and_cosine_kernel, constants, pointers)
    (backward,) = plan.backward
    assert backward.ttir.count("elementwise_inline_asm") == 1 and "arith.subf" in backward.ttir


@triton.jit
def doubled_vjp(dy, x, y):
    return tl.where(y < 1.0, 2 * dy, 0.0)


def test_packed_elements(tmp_path):
    """The rule sees elements, not the registers that they are packed into."""
    assembly = "add.sat.f16x2 $0, $1, $1;"
    register_vjp(doubled_vjp, asm=assembly)
    constants = {"ASM": assembly, "BLOCK": 256}
    pointers = ("x_ptr", "y_ptr")
    plan = differentiate_for_gpu(tmp_path, kernels.packed_kernel, constants, pointers)
    (backward,) = plan.backward
    assert "arith.select" in backward.ttir


def test_registered_assembly_on_a_gpu(cuda):
    register_vjp(softplus_vjp, asm=kernels.SOFTPLUS)
    x = random_tensor(150, device=cuda)
    op = differentiated(
        kernels.softplus_kernel, lambda k, x: kernels.apply(k, x, ASM=kernels.SOFTPLUS)
    )
    y = op(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 1 - torch.exp2(-y.detach()), rtol=1e-5, atol=1e-6)


@triton.jit
def nextafter_vjp(dy, x, w, y):
    return dy, 0.0


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_registered_symbol(device, dtype):
    register_vjp(nextafter_vjp, symbol="__nv_nextafterf")
    register_vjp(symbol="__nv_nextafter")(nextafter_vjp)
    x, w = (random_tensor(150, device=device, dtype=dtype) for _ in range(2))
    op = differentiated(kernels.nextafter_kernel, kernels.apply)
    assert_gradients_close(op, lambda x, w: x * (x * w), (x, w))


@triton.jit
def doubled_sine_vjp(dy, x, w, y):
    return 2 * dy, dy * 0


def test_a_registered_rule_wins_and_changes_later_launches(device):
    assembly = "sin.approx.f32 $0, $1;"
    op = differentiated(
        kernels.assembly_kernel, lambda kernel, x, w: kernels.apply(kernel, x, w, ASM=assembly)
    )
    x = random_tensor(70, device=device)
    w = torch.ones_like(x)
    (before,) = torch.autograd.grad(op(x, w).sum(), x)
    torch.testing.assert_close(before, x.cos(), rtol=1e-4, atol=1e-4)
    register_vjp(doubled_sine_vjp, asm=assembly)
    (after,) = torch.autograd.grad(op(x, w).sum(), x)
    assert (after == 2).all()


TIMES = tl.constexpr(2.0)


@triton.jit
def times_vjp(dy, x, w, y):
    return TIMES * dy, dy * 0


def test_globals_of_rules(device, monkeypatch):
    """As for kernels: a global variable that a rule uses stays as it is."""
    assembly = "sin.approx.f32 $0, $1;"
    register_vjp(times_vjp, asm=assembly)
    op = differentiated(
        kernels.assembly_kernel, lambda kernel, x, w: kernels.apply(kernel, x, w, ASM=assembly)
    )
    x, w = (random_tensor(70, device=device) for _ in range(2))
    assert (torch.autograd.grad(op(x, w).sum(), x)[0] == 2).all()
    with monkeypatch.context() as changed:
        changed.setattr(sys.modules[__name__], "TIMES", tl.constexpr(3.0))
        with pytest.raises(RuntimeError, match="TIMES has changed since the rule 'times_vjp'"):
            op(x, w)
    assert (torch.autograd.grad(op(x, w).sum(), x)[0] == 2).all()


@triton.jit
def one_gradient_vjp(dy, x, w, y):
    return dy


@triton.jit
def two_operands_vjp(dy, x, y):
    return dy, dy


@triton.jit
def wrong_shape_vjp(dy, x, w, y):
    return dy[:, None], dy


@triton.jit
def integer_vjp(dy, x, w, y):
    return dy.to(tl.int32), dy


@pytest.mark.parametrize(
    "rule, message",
    [
        (one_gradient_vjp, "'one_gradient_vjp' should return 2 gradients"),
        (two_operands_vjp, "'two_operands_vjp' cannot be compiled"),
        (wrong_shape_vjp, "'wrong_shape_vjp': gradient 0 should have the operand's shape"),
        (integer_vjp, "'integer_vjp': gradient 0 should be a float"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_wrong_rules_are_named(device, rule, message):
    assembly = "mul.f32 $0, $1, $2;"
    register_vjp(rule, asm=assembly)
    op = differentiated(
        kernels.assembly_kernel, lambda kernel, x, w: kernels.apply(kernel, x, w, ASM=assembly)
    )
    x, w = (random_tensor(70, device=device) for _ in range(2))
    with pytest.raises(AutodiffError, match=message):
        op(x, w)


def test_register_vjp_refuses_what_is_no_rule():
    with pytest.raises(TypeError, match="either asm= or symbol="):
        register_vjp(softplus_vjp)
    with pytest.raises(TypeError, match="triton.jit"):
        register_vjp(lambda dy, x, y: dy, symbol="f")


@triton.jit
def cubed(x):
    return x * x * x


@triton.jit
def of_two_arguments(dy, x):
    return 3 * x * x * dy


cubed_wrongly = custom_vjp(cubed, of_two_arguments)


@triton.jit
def cubed_kernel(x_ptr, y_ptr):
    tl.store(y_ptr, cubed_wrongly(tl.load(x_ptr)))


def test_derivative_of_other_arguments(device):
    """It is named, with its place, and what it is given."""
    x = torch.ones(1, device=device, requires_grad=True)
    place = r"'of_two_arguments' of 'cubed' \(.*test_user_rules.py:\d+\)"
    with pytest.raises(AutodiffError, match=place + r" takes 2 .*given 3: \(d_y0, x, y0\)"):
        differentiable(cubed_kernel)[(1,)](x, torch.empty_like(x))


def test_stop_gradient_outside_of_kernels():
    with pytest.raises(TypeError, match="x.detach"):
        stop_gradient(torch.ones(3))


@pytest.mark.parametrize("dtype", DTYPES + HALF, ids=str)
@pytest.mark.parametrize("n", [9, 200])
def test_stop_gradient(device, dtype, n):
    x = random_tensor(n, device=device, dtype=dtype, scale=0.5)
    op = differentiated(kernels.stopped_kernel, kernels.apply)
    if dtype in HALF:
        y = op(x)
        y.backward(torch.ones_like(y))
        assert x.grad.isfinite().all()
        return
    assert_gradients_close(op, kernels.stopped_reference, (x,))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [9, 200])
def test_custom_vjp(device, dtype, n):
    x = random_tensor(n, device=device, dtype=dtype)
    w = (random_tensor(n, device=device, dtype=dtype, grad=False).abs() + 0.3).requires_grad_()
    op = differentiated(kernels.custom_kernel, kernels.apply)
    assert_gradients_close(op, kernels.custom_reference, (x, w))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_functions_that_return_what_they_are_given(device, dtype):
    """Each has a cotangent of its own, though their results are one value."""
    op = differentiated(kernels.identities_kernel, kernels.identities)
    x = random_tensor(100, device=device, dtype=dtype)
    g = torch.randn_like(x)
    (found,) = torch.autograd.grad(op(x), x, g)
    # Of reversed(x) · x, of scaled(x) · reversed(x), and of 3x.
    x = x.detach()
    right = g * ((x - x) + (x * x.sin() - x) + 3)
    torch.testing.assert_close(found, right)


CLIPS = {"beside": 0, "nested": 2, "unrolled": 3, "branch": 2, "loaded again": 2, "helper": 0}


@pytest.mark.parametrize("how, k", [*((how, 3) for how in CLIPS), ("loop", 0), ("loop", 3)])
def test_rules_that_are_not_linear(device, how, k):
    """Each call clips what arrives there, not the sum of what arrives at all calls on a value."""
    op = differentiated(kernels.clips_kernel, kernels.clips)
    x = random_tensor(32, device=device)
    (found,) = torch.autograd.grad(op(x, k, how).sum(), x)
    assert (found == CLIPS.get(how, 1 + k)).all(), found


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_custom_vjp_of_a_reduction(device, dtype):
    x = random_tensor(8, 16, device=device, dtype=dtype)
    op = differentiated(kernels.row_norm_kernel, kernels.norms)
    assert_gradients_close(op, lambda x, eps: (x.square().sum(1) + eps).sqrt(), (x, 0.25))


def test_a_plain_launch_just_runs(device):
    x, w = torch.randn(100, device=device), torch.rand(100, device=device) + 0.3
    y = kernels.apply(kernels.custom_kernel, x, w)
    torch.testing.assert_close(y, kernels.custom_reference(x, w))


def test_custom_vjp_must_not_read_what_is_differentiated(device):
    x = random_tensor(70, device=device)
    op = differentiated(kernels.reading_kernel, kernels.apply)
    with pytest.raises(AutodiffError, match="'reading' has a derivative of its own"):
        op(x)


@pytest.mark.parametrize(
    "wrong, message",
    [(True, "'wrong_count_vjp' of 'wrong_count' should return 1"), (False, "no derivative")],
)
def test_wrong_custom_rules_are_named(device, wrong, message):
    x = random_tensor(70, device=device)
    op = differentiated(kernels.broken_kernel, lambda k, x: kernels.apply(k, x, RULE=wrong))
    with pytest.raises(Exception, match=message):
        op(x)


INTERPRETED = """
import torch
import triton
import triton.language as tl
from triton.backends.autodiff import custom_vjp, differentiable, stop_gradient

@custom_vjp
@triton.jit
def double(x, function: tl.constexpr = 2):
    return x * function

@double.defvjp
@triton.jit
def double_vjp(dy, x, function: tl.constexpr, y):
    return 5 * dy

@triton.jit
def kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(y_ptr + offsets, double(x) + stop_gradient(x) * 3)

x = torch.ones(8, requires_grad=True)
y = torch.empty(8)
kernel[(1,)](x.detach(), y, BLOCK=8)
assert (y == 5).all(), y
differentiable(kernel)[(1,)](x, y, BLOCK=8)
assert (y == 5).all(), y
y.sum().backward()
assert (x.grad == 5).all(), x.grad
"""


@pytest.mark.parametrize("interpret", ["0", "1"])
def test_decorated_for_the_interpreter(tmp_path, interpret):
    if torch.cuda.is_available():
        pytest.skip("needs the CPU backend to be active")
    program = tmp_path / "interpreted.py"
    program.write_text(INTERPRETED)
    environment = {**os.environ, "TRITON_INTERPRET": interpret}
    subprocess.run([sys.executable, program], check=True, env=environment)


@pytest.mark.parametrize("name", ["stopped_kernel", "custom_kernel"])
def test_markers_cost_nothing_on_a_gpu(tmp_path, name):
    """The forward has no instruction for a marker; the derived kernels have no marker."""
    pointers = ("x_ptr", "w_ptr", "y_ptr")
    kernel = getattr(kernels, name)
    compiled = compile_for_gpu(kernel, {"BLOCK": 64}, pointers)
    lines = [line.strip() for line in compiled.asm["ptx"].splitlines() if line.strip()]
    marked = [i for i, line in enumerate(lines) if "autodiff." in line]
    assert marked
    assert all(
        lines[i - 1 : i + 2 : 2] == ["// begin inline asm", "// end inline asm"] for i in marked
    )
    plan = differentiate_for_gpu(tmp_path, kernel, {"BLOCK": 64}, pointers)
    assert all("autodiff." not in derived.ttir for derived in plan.kernels)
