"""Gradients of functions that kernels call: `grad`, `value_and_grad`, `vjp`."""

import os
import re
import subprocess
import sys

import device_function
import hopper
import pytest
import torch
import triton
import triton.language as tl
import triton_autodiff as whole
from gradients import assert_close, random_tensor
from kernels import device_functions as kernels
from pulled import assert_all_close, said
from triton_autodiff import AutodiffError, differentiable, grad, register_vjp, value_and_grad, vjp
from triton_autodiff.rules import user_rules

pytestmark = [pytest.mark.usefixtures("needs_gradients"), pytest.mark.every_triton]

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


# ------------------------------------------------------------------------------------------
# What functions do
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", kernels.FUNCTIONS, ids=lambda f: f.__name__)
def test_functions(device, function):
    for _ in range(3):  # the other side of a branch, another number of iterations
        # Larger numbers make loops of them chaotic.
        x, y, dz = (random_tensor(16, device=device, scale=0.7) for _ in range(3))
        found = kernels.pull(vjp(function), x, y, dz)
        reference = kernels.FUNCTIONS[function]
        assert_all_close(found, reference, (x, y), (dz,), roundings=64)


@triton.jit
def polynomial(x, c_ptr, count, scale, DEGREE: tl.constexpr, slope=0.25):
    total = x * 0
    for i in range(count):
        total = total * x + tl.load(c_ptr + i)
    return total * scale * DEGREE + slope * x


one_gradient = grad(polynomial)
three_gradients = grad(polynomial, argnums=(5, 0, 3))


@triton.jit
def polynomial_kernel(x_ptr, c_ptr, count, dx_ptr, ds_ptr, de_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(dx_ptr + i, one_gradient(x, c_ptr, scale=0.5, DEGREE=2, count=count))
    de, dx, ds = three_gradients(x, c_ptr, count, 0.5, 2)
    tl.store(ds_ptr, ds)
    tl.store(de_ptr, de)
    tl.store(dx_ptr + N + i, dx)


def test_arguments(device):
    """Pointers, integers and constants by place, name and default; numbers with a gradient."""
    x, c = random_tensor(8, device=device), random_tensor(5, device=device)
    dx, (ds, de) = torch.empty(2, 8, device=device), torch.empty(2, 1, device=device)
    polynomial_kernel[(1,)](x, c, 5, dx, ds, de, 8)
    scale, slope = (torch.full((), value, device=device) for value in (0.5, 0.25))

    def reference(x, scale, slope):
        total = x * 0
        for coefficient in c.to(x.dtype):
            total = total * x + coefficient
        return (total * scale * 2 + slope * x).sum()

    one = torch.ones((), device=device)
    found = (dx[0], ds[0], de[0])
    assert_all_close(found, reference, (x, scale, slope), (one,))
    assert torch.equal(dx[0], dx[1])


@triton.jit
def weighted(x, y):
    return tl.exp(x.to(tl.float64)).to(x.dtype) * y


both = value_and_grad(weighted, argnums=(0, 1))


@triton.jit
def weighted_kernel(x_ptr, y_ptr, dx_ptr, dy_ptr, z_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    z, gradients = both(tl.load(x_ptr + i), tl.load(y_ptr + i))
    dx, dy = gradients
    tl.store(z_ptr + i, z)
    tl.store(dx_ptr + i, dx)
    tl.store(dy_ptr + i, dy)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_value_and_grad(device, dtype):
    """Gradients come in the types of the arguments."""
    x, y = (random_tensor(32, device=device, dtype=dtype) for _ in range(2))
    z, dx, dy = (torch.empty_like(x) for _ in range(3))
    weighted_kernel[(1,)](x, y, dx, dy, z, 32)

    def reference(x, y):
        return x.exp() * y

    found = (dx, dy)
    assert_all_close(found, reference, (x, y), (torch.ones_like(x),))
    baseline = reference(x, y).detach()
    assert_close("value", z, baseline, reference(x.double(), y.double()).detach())


@triton.jit
def pair_and_count(pair, n):
    a, b = pair
    return a * b, tl.sum(a, 0) * n, n


pull_pair = vjp(pair_and_count)


@triton.jit
def pair_kernel(x_ptr, y_ptr, dx_ptr, dy_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    y = tl.load(y_ptr + i)
    dx, dy = pull_pair((x, y), n, cotangent=(y, 2.0))
    tl.store(dx_ptr + i, dx)
    tl.store(dy_ptr + i, dy)


def test_tuples(device):
    """Results that are no floats have no cotangent; a number is one, too."""
    x, y = (random_tensor(16, device=device) for _ in range(2))
    dx, dy = torch.empty_like(x), torch.empty_like(y)
    pair_kernel[(1,)](x, y, dx, dy, 3, 16)

    def reference(x, y):
        return x * y, x.sum() * 3

    two = torch.full((), 2.0, device=device)
    assert_all_close((dx, dy), reference, (x, y), (y.detach(), two))


@triton.jit
def of_program(x, p):
    return x * tl.program_id(0) + x * x * tl.num_programs(0) + x * tl.load(p + 1)


of_program_gradient = grad(of_program)


@triton.jit
def of_program_kernel(x_ptr, y_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(y_ptr + i, of_program_gradient(tl.load(x_ptr + i), x_ptr + i))


def test_programs_and_tiles_of_pointers(device):
    x, y = random_tensor(65, device=device, grad=False), torch.empty(64, device=device)
    of_program_kernel[(4,)](x, y, 16)
    program = torch.arange(4, device=device).repeat_interleave(16)
    torch.testing.assert_close(y, program + 2 * x[:64] * 4 + x[1:])


@triton.jit
def of_addresses(x, p, q, N: tl.constexpr):
    other = tl.load(p).to(tl.pointer_type(tl.float32))
    rows = tl.make_tensor_descriptor(q, [N, N], [N, 1], [N, N])
    return x * tl.load(other) * tl.sum(rows.load([0, 0]), 0)


of_addresses_gradient = grad(of_addresses)


@triton.jit
def of_addresses_kernel(x_ptr, p_ptr, q_ptr, y_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y_ptr + i, of_addresses_gradient(tl.load(x_ptr + i), p_ptr, q_ptr, N))


def test_whatever_is_in_memory_is_constant(device):
    """Behind an address that was loaded, and behind a descriptor."""
    x, q = (random_tensor(*s, device=device, grad=False) for s in [(16,), (16, 16)])
    p = torch.tensor([x.data_ptr()], device=device)
    y = torch.empty_like(x)
    of_addresses_kernel[(1,)](x, p, q, y, 16)
    torch.testing.assert_close(y, x[0] * q.sum(0))


@triton.jit
def bits_and_floats(x, n, keep):
    return tl.where(keep, x * (n // 3).to(tl.float32), x)


unsigned_gradient = grad(bits_and_floats)


@triton.jit
def unsigned_kernel(x_ptr, n_ptr, y_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, unsigned_gradient(x, tl.load(n_ptr + i), x > 0))


def test_unsigned_integers_and_masks(device):
    x = random_tensor(16, device=device, grad=False)
    n = torch.full((16,), 2**32 - 1, dtype=torch.uint32, device=device)
    y = torch.empty_like(x)
    unsigned_kernel[(1,)](x, n, y, 16)
    torch.testing.assert_close(y, torch.where(x > 0, float((2**32 - 1) // 3), 1.0))


# ------------------------------------------------------------------------------------------
# Where they can be called
# ------------------------------------------------------------------------------------------


@triton.jit
def cube(x):
    return x * x * x


this_module = sys.modules[__name__]
slope_of_cube = grad(cube)


@triton.jit
def in_loops_kernel(x_ptr, y_ptr, count, FUNCTION: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    y = this_module.slope_of_cube(x)
    for k in range(count):
        y += grad(FUNCTION)(x) * k
        if k > 1:
            y += grad(FUNCTION)(y)
    tl.store(y_ptr + i, y)


def test_called_of_a_module_in_loops_and_branches(device):
    """A function that a launch gives is differentiated, too; and all of it is once more."""

    def reference(x):
        y = 3 * x * x
        for k in range(4):
            y = y + 3 * x * x * k
            if k > 1:
                y = y + 3 * y * y
        return y

    x = random_tensor(16, device=device, scale=0.2)
    y = torch.empty_like(x)
    differentiable(in_loops_kernel)[(1,)](x, y, 4, cube, 16)
    dy = torch.randn_like(y)
    assert_all_close(torch.autograd.grad(y, x, dy), reference, (x,), (dy,), roundings=64)


@triton.jit
def called_inside_kernel(x_ptr, y_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    second: tl.constexpr = whole.grad(whole.grad(cube), argnums=0)
    tl.store(y_ptr + i, grad(cube)(x) + second(x))


def test_called_inside_a_kernel(device):
    x = random_tensor(16, device=device, grad=False)
    y = torch.empty_like(x)
    called_inside_kernel[(1,)](x, y, 16)
    torch.testing.assert_close(y, 3 * x * x + 6 * x)


def test_of_closures(device):
    """Functions of one name that another function makes are different ones."""

    def powers(n):
        exponent = tl.constexpr(n)

        @triton.jit
        def power(x):
            y = x
            for _ in tl.static_range(1, exponent):
                y = y * x
            return y

        return power

    x = random_tensor(16, device=device, grad=False)
    third, fourth = grad(grad(powers(3))), grad(grad(powers(4)))

    @triton.jit
    def kernel(x_ptr, y_ptr, N: tl.constexpr):
        i = tl.arange(0, N)
        x = tl.load(x_ptr + i)
        tl.store(y_ptr + i, third(x) + fourth(x))

    y = torch.empty_like(x)
    kernel[(1,)](x, y, 16)
    torch.testing.assert_close(y, 6 * x + 12 * x * x)


def test_different_functions_of_one_name_and_type(device):
    x = random_tensor(16, device=device, grad=False)
    torch.testing.assert_close(kernels.apply(grad(cube), x), 3 * x * x)
    torch.testing.assert_close(kernels.apply(grad(grad(cube)), x), 6 * x)
    torch.testing.assert_close(kernels.apply(grad(grad(grad(cube))), x), torch.full_like(x, 6))


# ------------------------------------------------------------------------------------------
# What they look like
# ------------------------------------------------------------------------------------------


def test_printed(device):
    derived = grad(cube)
    assert repr(derived) == "grad(cube, argnums=0)"
    assert "no kernel" in str(derived) and "test_device_functions.py" in str(derived)
    text = derived.source("fp32[16]")
    assert "def grad_cube(x):" in text and str(derived) == text
    assert "tl.store" not in text and "tl.load" not in text
    for types in [(tl.float32,), (tl.block_type(tl.bfloat16, [4, 4]),)]:
        assert "return" in derived.source(*types)
    text = vjp(polynomial).source("fp32[8]", "*fp16", "i32", "fp32", DEGREE=3)
    assert re.search(r"def vjp_polynomial\(x, c_ptr, count, scale, cotangent\):", text)
    with pytest.raises(AutodiffError, match="'scale', is no type: write 'fp32'"):
        vjp(polynomial).source("fp32[8]", "*fp16", "i32", "f32", DEGREE=3)
    with pytest.raises(AutodiffError, match="missing a required argument: 'count'"):
        vjp(polynomial).source("fp32[8]", "*fp16")


def test_compiles_for_a_gpu():
    ptx = hopper.assembly(device_function.backward_kernel, ["*fp32"] * 5, {})["ptx"]
    assert ".visible .entry backward_kernel" in ptx and "ex2" in ptx


@triton.jit
def narrow_product(x, w):
    return tl.dot(x, w, input_precision="ieee")


pull_narrow_product = vjp(narrow_product)


@triton.jit
def narrow_kernel(x_ptr, w_ptr, dy_ptr, dx_ptr, dw_ptr):
    m = tl.arange(0, 16)[:, None]
    k = tl.arange(0, 16)
    n = tl.arange(0, 8)
    x = tl.load(x_ptr + m * 16 + k[None, :])
    w = tl.load(w_ptr + k[:, None] * 8 + n[None, :])
    dy = tl.load(dy_ptr + m * 8 + n[None, :])
    dx, dw = pull_narrow_product(x, w, dy)
    tl.store(dx_ptr + m * 16 + k[None, :], dx)
    tl.store(dw_ptr + k[:, None] * 8 + n[None, :], dw)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_a_product_shorter_than_a_frontend_takes(device, dtype):
    """`tl.dot` of a GPU sums over 16 elements at least; a gradient sums over an axis of 8."""
    x, w, dy = (random_tensor(16, n, device=device, dtype=dtype) for n in (16, 8, 8))
    dx, dw = torch.empty_like(x), torch.empty_like(w)
    narrow_kernel[(1,)](x, w, dy, dx, dw)
    assert_all_close((dx, dw), torch.matmul, (x, w), (dy,), roundings=16)


def test_a_short_product_compiles_for_a_gpu():
    ptx = hopper.assembly(narrow_kernel, ["*fp16"] * 5, {})["ptx"]
    assert "mma" in ptx


# ------------------------------------------------------------------------------------------
# Mistakes
# ------------------------------------------------------------------------------------------


@triton.jit
def stores(x, p):
    tl.store(p, x)
    return x * x


@triton.jit
def adds(x, p):
    tl.atomic_add(p, x)
    return x


@triton.jit
def calls_adds(x, p):
    return adds(x, p) * x


@triton.jit
def with_a_rule(dy, x, y):
    return dy


@triton.jit
def by_assembly(x):
    return tl.inline_asm_elementwise(
        "tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )


@triton.jit
def returns_a_count(x):
    return 3


@triton.jit
def returns_two(x, y):
    return x * y, x + y


def line_of(function, text):
    """The line of a function that contains some text."""
    (offset,) = (i for i, line in enumerate(function.raw_src) if text in line)
    return function.starting_line_number + offset


@pytest.mark.parametrize(
    "function, text", [(stores, "tl.store"), (calls_adds, None)], ids=["store", "atomic"]
)
def test_writing_to_memory(function, text):
    line = line_of(function, text) if text else line_of(adds, "atomic_add")
    with pytest.raises(AutodiffError, match=rf"test_device_functions.py:{line}:.*writes to memory"):
        grad(function).source("fp32", "*fp32")


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: grad(3), "grad takes a function decorated with @triton.jit, got int"),
        (lambda: grad(polynomial, 6), "argnums=6 should be the number of an argument of 'poly"),
        (lambda: vjp(polynomial, (0, 0)), "should name each argument once"),
        (lambda: grad(polynomial, ()), "should name each argument once"),
        (lambda: grad(polynomial, 4), "argument 'DEGREE' of 'polynomial' .* is a constexpr"),
        (lambda: grad(cube)(1.0), "for use in a kernel that is compiled"),
        (
            lambda: grad(polynomial, 1).source("fp32", "*fp32", "i32", "fp32", 2),
            "argument 'c_ptr' .* is of type pointer<fp32>, and has no gradient",
        ),
        (
            lambda: grad(polynomial, 2).source("fp32", "*fp32", "i32", "fp32", 2),
            "argument 'count' .* is of type int32, and has no gradient",
        ),
        (
            lambda: grad(polynomial, 5).source("fp32", "*fp32", "i32", "fp32", 2, 1),
            "argument 'slope' .* is a constant here, and has no gradient",
        ),
        (
            lambda: vjp(polynomial, 1).source("fp32", "*fp32", "i32", "fp32", 2),
            r"vjp\(polynomial, argnums=1\): argument 'c_ptr'",
        ),
        (lambda: grad(returns_a_count).source("fp32"), "returns no float"),
        (lambda: grad(returns_two).source("fp32", "fp32"), r"returns 2 values.*take vjp\("),
        (lambda: vjp(returns_a_count).source("i32"), "no argument is a float"),
    ],
)
def test_mistakes(make, message):
    with pytest.raises(AutodiffError, match=message):
        make()


def test_registered_rules(own_rules):
    """A rule that gradients of kernels know is not silently left out."""
    register_vjp(with_a_rule, asm="tanh.approx.f32 $0, $1;")
    with pytest.raises(AutodiffError, match="the rule 'with_a_rule' of register_vjp"):
        grad(by_assembly).source("fp32[16]")


@triton.jit
def cotangent_kernel(x_ptr, PULL: tl.constexpr, KIND: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, 16))
    if KIND == "none":
        PULL(x, x)
    elif KIND == "shape":
        PULL(x, x, (x, tl.expand_dims(x, 0)))
    else:
        PULL(x, x, (x, tl.arange(0, 16)))


@pytest.mark.parametrize(
    "kind, message",
    [
        ("none", "takes the cotangent of what 'returns_two' returns .*it is given 0"),
        ("shape", r"the cotangent is <\['1', '16'\], fp32>, and should be <\['16'\], fp32>"),
        ("integer", "the cotangent is .*int32>, and should be"),
    ],
)
def test_mistaken_cotangents(device, kind, message):
    with pytest.raises(Exception) as raised:
        cotangent_kernel[(1,)](torch.zeros(16, device=device), vjp(returns_two), kind)
    assert re.search(message, said(raised.value)), said(raised.value)


# ------------------------------------------------------------------------------------------
# The cache
# ------------------------------------------------------------------------------------------

PROGRAM = """
import torch, triton, triton.language as tl
from triton_autodiff import grad

torch.set_default_device("{device}")
if "{device}" == "cpu":
    from triton_autodiff.driver import CPUDriver

    triton.runtime.driver.set_active(CPUDriver())

@triton.jit
def inner(x):
    return x * {factor}

@triton.jit
def function(x):
    return inner(x) * x + {slope} * x

derived = grad(function)

@triton.jit
def kernel(x_ptr, y_ptr):
    i = tl.arange(0, 4)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, {call}(x))

x = torch.ones(4)
y = torch.empty(4)
kernel[(1,)](x, y)
print(y[0].item())
"""


@pytest.mark.parametrize("call", ["derived", "grad(function)"])
def test_kernels_are_compiled_again(device, call, tmp_path):
    """Where the function changes between two processes, or what it calls."""

    def run(factor, slope):
        file = tmp_path / "program.py"
        file.write_text(PROGRAM.format(device=device, call=call, factor=factor, slope=slope))
        environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(
            [sys.executable, file], env=environment, check=True, capture_output=True, text=True
        )
        return float(done.stdout)

    assert [run(2, 3), run(2, 3), run(5, 3), run(5, 4)] == [7, 7, 13, 14]


def test_text_of_a_function_that_changes():
    """What was derived before is not taken for the new function."""

    @triton.jit
    def function(x):
        return 3.0 * x

    derived = grad(function)
    for factor in ("3.0", "5.0"):
        function._unsafe_update_src(function.src.replace("3.0", factor))
        assert factor in derived.source("fp32")
    assert "3.0" not in derived.source("fp32")


def test_another_version_or_rule_compiles_again(monkeypatch):
    """Triton's key of a kernel covers what derives its gradients."""
    from triton_autodiff.rules import device_functions

    def keys():
        made = grad(cube)
        kernel = triton.jit(called_inside_kernel.fn)
        return made.cache_key, kernel.cache_key

    def assert_changed(before):
        assert all(new != old for new, old in zip(keys(), before, strict=True))

    before = keys()
    assert keys() == before
    with monkeypatch.context() as patch:
        patch.setattr(
            user_rules,
            "_rules",
            {("vjp", "symbol", "__nv_erff"): user_rules.Registered(cube, False)},
        )
        assert_changed(before)
    monkeypatch.setattr(device_functions, "_version", lambda: "another")
    assert_changed(before)
