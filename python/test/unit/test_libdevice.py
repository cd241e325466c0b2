"""Derivatives of the device library's functions, against PyTorch in float64.

The CPU backend computes what the C library or its own runtime can; the same kernels run on a GPU.
"""

import importlib.util
import math

import mpmath
import pytest
import torch
from gradients import assert_gradcheck, assert_gradients_close, differentiated
from triton.backends.autodiff.inspecting import corpus

pytestmark = pytest.mark.every_triton

SINGLE, DOUBLE = torch.float32, torch.float64
BOTH = (SINGLE, DOUBLE)

# The reference and the interval that samples are drawn from, by function.
UNARY = {
    "acos": (torch.acos, -0.99, 0.99),
    "acosh": (torch.acosh, 1.01, 9),
    "asin": (torch.asin, -0.99, 0.99),
    "asinh": (torch.asinh, -5, 5),
    "atan": (torch.atan, -5, 5),
    "atanh": (torch.atanh, -0.99, 0.99),
    "cbrt": (lambda x: x.sign() * x.abs() ** (1 / 3), 0.1, 9),
    "cos": (torch.cos, -9, 9),
    "cosh": (torch.cosh, -4, 4),
    "cospi": (lambda x: torch.cos(math.pi * x), -3, 3),
    "cyl_bessel_i0": (torch.special.i0, -9, 9),
    "cyl_bessel_i1": (torch.special.i1, -9, 9),
    "erf": (torch.erf, -3, 3),
    "erfc": (torch.erfc, -3, 3),
    "erfcinv": (lambda x: torch.erfinv(1 - x), 0.05, 1.95),
    "erfcx": (torch.special.erfcx, -2, 7),
    "erfinv": (torch.erfinv, -0.99, 0.99),
    "exp": (torch.exp, -3, 3),
    "exp10": (lambda x: 10**x, -2, 2),
    "exp2": (torch.exp2, -3, 3),
    "expm1": (torch.expm1, -3, 3),
    "abs": (torch.abs, -2, 2),
    "lgamma": (torch.lgamma, -4.9, 30),
    "log": (torch.log, 0.1, 9),
    "log10": (torch.log10, 0.1, 9),
    "log1p": (torch.log1p, -0.9, 9),
    "log2": (torch.log2, 0.1, 9),
    "normcdf": (torch.special.ndtr, -4, 4),
    "normcdfinv": (torch.special.ndtri, 0.01, 0.99),
    "rcbrt": (lambda x: x ** (-1 / 3), 0.1, 9),
    "rcp_rn": (torch.reciprocal, 0.2, 4),
    "rsqrt": (torch.rsqrt, 0.2, 4),
    "sin": (torch.sin, -9, 9),
    "sinh": (torch.sinh, -4, 4),
    "sinpi": (lambda x: torch.sin(math.pi * x), -3, 3),
    "sqrt": (torch.sqrt, 0.2, 4),
    "sqrt_rn": (torch.sqrt, 0.2, 4),
    "tan": (torch.tan, -1.4, 1.4),
    "tanh": (torch.tanh, -4, 4),
    "tgamma": (lambda x: x.lgamma().exp(), 0.2, 8),
}

UNARY_SINGLE = {
    "fast_cosf": (torch.cos, -3, 3),
    "fast_exp10f": (lambda x: 10**x, -2, 2),
    "fast_expf": (torch.exp, -3, 3),
    "fast_log10f": (torch.log10, 0.1, 9),
    "fast_log2f": (torch.log2, 0.1, 9),
    "fast_logf": (torch.log, 0.1, 9),
    "fast_sinf": (torch.sin, -3, 3),
    "fast_tanf": (torch.tan, -1.4, 1.4),
    "rsqrt_rn": (torch.rsqrt, 0.2, 4),
    "saturatef": (lambda x: x.clamp(0, 1), -1, 2),
}

PIECEWISE_CONSTANT = {
    "ceil": torch.ceil,
    "floor": torch.floor,
    "nearbyint": torch.round,
    "rint": torch.round,
    "round": torch.round,
    "trunc": torch.trunc,
}

SEVERAL = {
    "add_rn": (torch.add, 2, -2, 2),
    "atan2": (torch.atan2, 2, 0.1, 2),
    "copysign": (torch.copysign, 2, -2, 2),
    "div_rn": (torch.div, 2, 0.2, 2),
    "fdim": (lambda x, y: torch.relu(x - y), 2, -2, 2),
    "fma": (lambda x, y, z: x * y + z, 3, -2, 2),
    "fma_rn": (lambda x, y, z: x * y + z, 3, -2, 2),
    "fmod": (torch.fmod, 2, 0.3, 4),
    "hypot": (torch.hypot, 2, -2, 2),
    "mul_rn": (torch.mul, 2, -2, 2),
    "norm3d": (lambda *x: torch.stack(x).norm(dim=0), 3, -2, 2),
    "norm4d": (lambda *x: torch.stack(x).norm(dim=0), 4, -2, 2),
    "pow": (torch.pow, 2, 0.2, 3),
    "remainder": (lambda x, y: x - y * (x / y).detach().round(), 2, 0.3, 4),
    "rhypot": (lambda x, y: 1 / torch.hypot(x, y), 2, 0.2, 2),
    "rnorm3d": (lambda *x: 1 / torch.stack(x).norm(dim=0), 3, 0.2, 2),
    "rnorm4d": (lambda *x: 1 / torch.stack(x).norm(dim=0), 4, 0.2, 2),
    "sub_rn": (torch.sub, 2, -2, 2),
}

# PyTorch has no derivative of these: finite differences are the reference.
BESSEL = {"j0": (-9, 9), "j1": (-9, 9), "y0": (0.3, 9), "y1": (0.3, 9)}

MODULE = """
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice


@triton.jit
def kernel({pointers}, y_ptr, n, order, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
{loads}
    tl.store(y_ptr + offsets, {expression}, mask=mask)
"""


@pytest.fixture
def make_op(tmp_path):
    """A differentiable operation of an expression in x0, x1, … and the integer `order`."""

    def make(expression, count=1):
        text = MODULE.format(
            pointers=", ".join(f"x{i}_ptr" for i in range(count)),
            # Masked lanes get 0, where some derivatives have a pole.
            loads="\n".join(
                f"    x{i} = tl.load(x{i}_ptr + offsets, mask=mask, other=0.0)"
                for i in range(count)
            ),
            expression=expression,
        )
        path = tmp_path / "generated.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("generated", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)

        def stub(kernel, *xs, order=2):
            y = torch.full_like(xs[0], float("nan"))
            n = xs[0].numel()
            kernel[(-(-n // 64),)](*xs, y, n, order, BLOCK=64)
            return y

        return differentiated(module.kernel, stub)

    return make


def sample(low, high, device, dtype, n=150):
    x = torch.rand(n, device=device, dtype=DOUBLE) * (high - low) + low
    # Not next to a pole of the gamma function, nor to a jump.
    x = torch.where((x - x.round()).abs() < 0.02, x + 0.05, x)
    return x.clamp(max=high).to(dtype).requires_grad_()


@pytest.mark.parametrize("name", UNARY)
def test_unary(device, make_op, name):
    reference, low, high = UNARY[name]
    op = make_op(f"libdevice.{name}(x0)")
    for dtype in BOTH:
        assert_gradients_close(op, reference, (sample(low, high, device, dtype),))


@pytest.mark.parametrize("name", UNARY_SINGLE)
def test_unary_single(device, make_op, name):
    if device == "cuda" and name.startswith("fast_"):
        pytest.skip("fast functions are not accurate enough to compare")
    reference, low, high = UNARY_SINGLE[name]
    op = make_op(f"libdevice.{name}(x0)")
    assert_gradients_close(op, reference, (sample(low, high, device, SINGLE),))


@pytest.mark.parametrize("name", PIECEWISE_CONSTANT)
def test_piecewise_constant(device, make_op, name):
    reference = PIECEWISE_CONSTANT[name]
    op = make_op(f"x0 * libdevice.{name}(x0)")
    for dtype in BOTH:
        x = sample(-3, 3, device, dtype)
        assert_gradients_close(op, lambda x: x * reference(x).detach(), (x,))


@pytest.mark.parametrize("name", SEVERAL)
def test_several_operands(device, make_op, name):
    reference, count, low, high = SEVERAL[name]
    op = make_op(f"libdevice.{name}({', '.join(f'x{i}' for i in range(count))})", count)
    for dtype in BOTH:
        xs = [sample(low, high, device, dtype) for _ in range(count)]
        assert_gradients_close(op, reference, xs)


@pytest.mark.parametrize("name", BESSEL)
def test_bessel(device, make_op, name):
    low, high = BESSEL[name]
    op = make_op(f"libdevice.{name}(x0)")
    assert_gradcheck(op, (sample(low, high, device, DOUBLE, 40),))
    x = sample(low, high, device, DOUBLE).detach()
    # PyTorch's own values are good to seven digits only.
    function = {"j": mpmath.besselj, "y": mpmath.bessely}[name[0]]
    truth = [float(function(int(name[1]), value)) for value in x.tolist()]
    torch.testing.assert_close(
        op(x).cpu(), torch.tensor(truth, dtype=DOUBLE), rtol=1e-12, atol=1e-14
    )
    # CUDA documents 9 units in the last place up to 8, and an error of 2.2e-6 beyond. A derivative
    # is one function, or f₀ − f₁/x; of these the terms add up to 1.24 times the difference at most
    # where they are large (y at 0.3), and are below 0.7 where they cancel.
    single = sample(low, high, device, SINGLE)
    upstream = torch.rand_like(single) * 2 - 1
    gradients = [
        torch.autograd.grad(op(leaf), leaf, upstream.to(leaf.dtype))[0].double()
        for leaf in (single, single.detach().double().requires_grad_())
    ]
    torch.testing.assert_close(*gradients, rtol=2e-6, atol=2.2e-6 * (1 + 1 / 8))


@pytest.mark.parametrize("order", [-3, 0, 1, 2, 5])
def test_integer_power(device, make_op, order):
    op = make_op("libdevice.pow(x0, order)")
    for dtype in BOTH:
        x = sample(-2, 2, device, dtype)
        assert_gradients_close(lambda x: op(x, order=order), lambda x: x**order, (x,))


@pytest.mark.parametrize("name", ["ldexp", "scalbn"])
def test_scaling(device, make_op, name):
    op = make_op(f"libdevice.{name}(x0, order)")
    for dtype in BOTH:
        x = sample(-2, 2, device, dtype)
        for order in (-3, 4):
            assert_gradients_close(
                lambda x, k=order: op(x, order=k), lambda x, k=order: x * 2.0**k, (x,)
            )


@pytest.mark.parametrize("name", ["jn", "yn"])
def test_bessel_of_integer_order(device, make_op, name):
    op = make_op(f"libdevice.{name}(order, x0)")
    for order in (2, 3):
        x = sample(0.5, 9, device, DOUBLE, 40)
        assert_gradcheck(lambda x, k=order: op(x, order=k), (x,))


@pytest.mark.parametrize("name", ["isnan", "isinf", "signbit"])
def test_classification(device, make_op, name):
    """A condition on a float carries no derivative."""
    op = make_op(f"tl.where(libdevice.{name}(x0), x0 * 3, x0 * 5)")
    reference = getattr(torch, name)
    x = sample(-2, 2, device, SINGLE)
    assert_gradients_close(op, lambda x: torch.where(reference(x), x * 3, x * 5), (x,))


EDGES = {
    "pow at zero": (
        "libdevice.pow(x0, x1)",
        torch.pow,
        [0.0, 0.0, 0.0, 0.0, -2.0],
        [1, 2, 0.5, 0, 3],
    ),
    "sqrt at zero": ("libdevice.sqrt(x0)", torch.sqrt, [0.0, 1.0]),
    "asin at one": ("libdevice.asin(x0)", torch.asin, [-1.0, 1.0, 0.0]),
    "lgamma at poles": ("libdevice.lgamma(x0)", torch.lgamma, [0.0, -0.0, -1.0, -2.0, 1e30]),
    "log1p at its pole": ("libdevice.log1p(x0)", torch.log1p, [-1.0, 0.0]),
    "norm at the origin": (
        "libdevice.norm3d(x0, x1, x1)",
        lambda x, y: torch.stack([x, y, y]).norm(dim=0),
        [0.0, 3.0],
        [0.0, 4.0],
    ),
    "far sinh": ("libdevice.sinh(x0)", torch.sinh, [60.0, -60.0, 0.0]),
    "bessel at zero": ("libdevice.cyl_bessel_i1(x0)", torch.special.i1, [0.0]),
}


@pytest.mark.parametrize("dtype", BOTH, ids=str)
@pytest.mark.parametrize("name", EDGES)
def test_edges(device, make_op, name, dtype):
    """At zeros and poles the derivative is PyTorch's, infinities and NaN included."""
    expression, reference, *values = EDGES[name]
    op = make_op(expression, len(values))
    xs = [torch.tensor(v, device=device, dtype=dtype, requires_grad=True) for v in values]
    if "pow" in name:
        # ln of a negative number: PyTorch's NaN is ours, but belongs to x1 alone.
        xs[1].requires_grad_(False)
    wanted = [x for x in xs if x.requires_grad]
    ours = torch.autograd.grad(op(*xs).nansum(), wanted)
    theirs = torch.autograd.grad(reference(*xs).nansum(), wanted)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, equal_nan=True, rtol=1e-5, atol=1e-6)


POLES = ["log(x0)", "log1p(x0 - 1)", "rsqrt(x0)", "cbrt(x0)", "rcbrt(x0)", "asin(x0 + 1)"]
POLES += ["atanh(x0 + 1)", "acosh(x0 + 1)", "erfinv(x0 + 1)", "lgamma(x0)", "tgamma(x0)", "y0(x0)"]
POLES += ["y1(x0)", "normcdfinv(x0)", "rhypot(x0, x0)", "div_rn(x0, x0)", "pow(x0, x0 - 1)"]


@pytest.mark.parametrize("expression", POLES)
def test_a_zero_cotangent_stays_zero_at_a_pole(device, make_op, expression):
    """Lanes that nobody reads must not turn a sum over lanes into NaN."""
    op = make_op(f"tl.where(x0 > 0, libdevice.{expression}, 1.0)")
    x = torch.zeros(7, device=device, requires_grad=True)
    (gradient,) = torch.autograd.grad(op(x).sum(), x)
    assert (gradient == 0).all()


SYMBOLS = ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "cospi"]
SYMBOLS += ["cyl_bessel_i0", "cyl_bessel_i1", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "exp"]
SYMBOLS += ["exp10", "exp2", "expm1", "fabs", "j0", "j1", "lgamma", "log", "log10", "log1p", "log2"]
SYMBOLS += [
    "normcdf",
    "normcdfinv",
    "rcbrt",
    "rsqrt",
    "sin",
    "sinh",
    "sinpi",
    "sqrt",
    "tan",
    "tanh",
]
SYMBOLS += ["tgamma", "y0", "y1"]


@pytest.mark.parametrize("suffix, element", [("f", "f32"), ("", "f64")])
def test_derived_kernels_compile_for_a_gpu(tmp_path, suffix, element):
    """What the rules emit exists in Triton and in CUDA's library, in both precisions."""
    tile, pointers = f"tensor<64x{element}>", f"tensor<64x!tt.ptr<{element}>>"
    lines = ["%v0 = tt.load %p : " + pointers]
    for i, name in enumerate(SYMBOLS):
        attributes = f'libname = "", libpath = "", pure = true, symbol = "__nv_{name}{suffix}"'
        lines.append(f"%f{i} = tt.extern_elementwise %v{i} {{{attributes}}} : ({tile}) -> {tile}")
        lines.append(f"%v{i + 1} = arith.addf %v{i}, %f{i} : {tile}")
    body = "\n    ".join(lines)
    (tmp_path / "functions.ttir").write_text(f"""
module {{
  tt.func public @functions(%x: !tt.ptr<{element}>, %y: !tt.ptr<{element}>) {{
    %r = tt.make_range {{start = 0 : i32, end = 64 : i32}} : tensor<64xi32>
    %xs = tt.splat %x : !tt.ptr<{element}> -> {pointers}
    %ys = tt.splat %y : !tt.ptr<{element}> -> {pointers}
    %p = tt.addptr %xs, %r : {pointers}, tensor<64xi32>
    %q = tt.addptr %ys, %r : {pointers}, tensor<64xi32>
    {body}
    tt.store %q, %v{len(SYMBOLS)} : {pointers}
    tt.return
  }}
}}
""")
    (row,) = corpus.run_corpus(tmp_path)
    assert row.results == dict.fromkeys(corpus.STEPS, "")
