"""Launches of kernels that are not differentiated: in stubs, and what PyTorch's versions know."""

import warnings

import gradients
import pytest
import torch
import triton
import triton.language as tl
from triton_autodiff import AutodiffError, autodiff, differentiable
from triton_autodiff.launching import plain_launches

Tensor = torch.Tensor
N = 20
GRID = (1, 1, 1)


@pytest.fixture(autouse=True)
def needs_gradients(monkeypatch):
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")
    torch._dynamo.reset()
    # Dynamo as it is where there is a GPU.
    monkeypatch.setattr("torch.utils._triton.has_triton", lambda: True)


@triton.jit
def square(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, v * v, mask=i < n)


@triton.jit
def double(y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, 2 * tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def copy(a, b, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(b + i, tl.load(a + i, mask=i < n), mask=i < n)


@triton.jit
def signs(a, b, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(b + i, (tl.load(a + i, mask=i < n) > 0).to(tl.int32), mask=i < n)


@triton.jit
def fill(b, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(b + i, 1.0, mask=i < n)


@triton.jit
def add_up(a, b, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(b, tl.sum(tl.load(a + i, mask=i < n, other=0.0)))


@triton.jit
def either(a, b, c, n, first, B: tl.constexpr):
    """Stores to one of two tensors, through a pointer that a number chooses."""
    i = tl.arange(0, B)
    p = c
    if first > 0:
        p = b
    tl.store(p + i, tl.load(a + i, mask=i < n), mask=i < n)


tuned = triton.autotune([triton.Config({"B": 32}), triton.Config({"B": 64})], key=["n"])(double)


class Copied(torch.autograd.Function):
    """A kernel under a derivative of one's own."""

    @staticmethod
    def forward(ctx, y):
        z = torch.empty_like(y)
        copy[GRID](y, z, N, 32)
        return z

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def stub_with(more):
    """A stub that launches the square, and more."""

    def stub(kernel, x: Tensor) -> Tensor:
        y = torch.empty_like(x)
        kernel[GRID](x, y, N, 32)
        found = more(x, y)
        return found if isinstance(found, Tensor) else y

    return stub


def copied(y, source):
    z = torch.empty_like(y)
    copy[GRID](source, z, N, 32)
    return y + z


def summed(x, y):
    z = torch.zeros(1, device=y.device)
    add_up[GRID](y, z, N, 32)
    return y + z


def chosen(x, y):
    b, c = torch.empty_like(y), torch.zeros_like(y)
    either[GRID](y, b, c, N, 0, 32)
    return y + c


def warmed_up(x, y):
    double.warmup(y, N, 32, grid=GRID)[GRID](y, N, 32)


def before(kernel, x: Tensor) -> Tensor:
    h, y = torch.empty_like(x), torch.empty_like(x)
    copy[GRID](x, h, N, 32)
    kernel[GRID](x, y, N, 32)
    return y + h


REFUSED = {
    "in place": (stub_with(lambda x, y: double[GRID](y, N, 32)), "'double'.*writes argument 'y'"),
    "tuned": (stub_with(lambda x, y: tuned[GRID](y, N)), "'double'.*writes argument 'y'"),
    "a view": (stub_with(lambda x, y: double[GRID](y[:9], 9, 32)), "'double'.*writes argument 'y'"),
    "warmed up": (stub_with(warmed_up), "'double'.*writes argument 'y'"),
    "before": (before, "'copy'.*reads argument 'a'.*to 'b'"),
    "copied": (stub_with(lambda x, y: copied(y, y)), "'copy'.*reads argument 'a'.*to 'b'"),
    "summed": (stub_with(summed), "'add_up'.*reads argument 'a'.*to 'b'"),
    "chosen": (stub_with(chosen), "'either'.*reads argument 'a'"),
    "read again": (
        stub_with(lambda x, y: fill[GRID](x.detach(), N, 32)),
        "'fill'.*argument 'b', which.*the backward of kernel 'square' .argument 'x'. reads again",
    ),
}


@pytest.mark.parametrize("kind", ["operation", "registered"])
@pytest.mark.parametrize("name", REFUSED)
def test_refused(device, name, kind, operator_name):
    stub, message = REFUSED[name]
    op = autodiff(square, stub)
    if kind == "registered":
        op = op.register(operator_name("plain"))
    x = torch.randn(N, device=device, requires_grad=True)
    if name != "read again":
        with torch.no_grad():
            op(x)
    if (name, kind) == ("read again", "registered"):
        message = "reads again|changes its argument"
    with pytest.raises(AutodiffError, match=f"(?s){message}"):
        op(x * 1)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", [n for n in REFUSED if n != "warmed up"])
def test_refused_in_compiled_code(device, name, backend):
    op = autodiff(square, REFUSED[name][0])
    x = torch.randn(N, device=device, requires_grad=True)
    with pytest.raises(AutodiffError, match="not differentiated"):
        torch.compile(lambda x: op(x * 1), backend=backend)(x)
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="not differentiated"):
        torch.compile(lambda x: op(x * 1), backend=backend, fullgraph=True)(x)


def with_signs(x, y):
    z = torch.empty(N, dtype=torch.int32, device=y.device)
    signs[GRID](y, z, N, 32)
    return y * (1 + 0 * z)


def filled(x, y):
    z = torch.empty_like(y)
    fill[GRID](z, N, 32)
    return y * z


def without_gradients(x, y):
    with torch.no_grad():
        double[GRID](y, N, 32)


doubled = differentiable(double)
ALLOWED = {
    "detached": (stub_with(lambda x, y: double[GRID](y.detach(), N, 32)), 2),
    "no_grad": (stub_with(without_gradients), 2),
    "copied detached": (stub_with(lambda x, y: copied(y, y.detach())), 2),
    "integers": (stub_with(with_signs), 2),
    "what is new": (stub_with(filled), 2),
    "a derivative of one's own": (stub_with(lambda x, y: Copied.apply(y)), 2),
    "differentiable": (stub_with(lambda x, y: doubled[GRID](y, N, 32)), 4),
}


@pytest.mark.parametrize("run", ["plain", "registered", "compiled"])
@pytest.mark.parametrize("name", ALLOWED)
def test_allowed(device, name, run, operator_name):
    stub, factor = ALLOWED[name]
    op = autodiff(square, stub)
    if run == "registered":
        op = op.register(operator_name("plain"))
    elif run == "compiled":
        op = torch.compile(op, backend="aot_eager", fullgraph=True)
    x = torch.randn(N, device=device, requires_grad=True)
    (g,) = torch.autograd.grad(op(x).sum(), x)
    torch.testing.assert_close(g, factor * x.detach())


@pytest.mark.parametrize("ours", [True, False])
def test_writes_count_for_versions(device, ours):
    """Outside of stubs: a backward notices that what it reads has changed."""
    plain_launches.watch()
    kernel = differentiable(square)
    x = torch.randn(N, device=device, requires_grad=True)
    h = x * 1
    y = stub_with(lambda x, y: None)(kernel, h) if ours else h.square()
    fill[GRID](h.detach(), N, 32)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("kernel", [fill, double, tuned])
def test_versions_of_what_is_written(device, kernel):
    plain_launches.watch()
    a, b = torch.zeros(N, device=device), torch.zeros(N, device=device)
    more = () if kernel is tuned else (32,)
    kernel[GRID](b, N, *more)
    b_before = b._version
    copy[GRID](a, b, N, 32)
    assert (a._version, b._version) == (0, b_before + 1)
    fill[(0, 1, 1)](a, N, 32) if device == "cpu" else None
    assert a._version == 0
    with torch.inference_mode():
        c = torch.zeros(N, device=device)
        fill[GRID](c, N, 32)
    fill[GRID](c, N, 32)
    assert (c == 1).all()


@triton.jit
def both(a, b, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(a + i, 1.0, mask=i < n)
    tl.store(b + i, 2.0, mask=i < n)


@triton.jit
def in_a_tuple(pair, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(pair[1] + i, 2.0, mask=i < n)


class Wrapper:
    def __init__(self, fn):
        self.fn = fn

    def __getitem__(self, grid):
        return self.fn[grid]


RUNS = {
    "plain": lambda b: fill[GRID](b, N, 32),
    "tuned": lambda b: tuned[GRID](b, N),
    "differentiable": lambda b: differentiable(fill)[GRID](b, N, 32),
    "wrapped": lambda b: differentiable(Wrapper(fill))[GRID](b, N, 32),
    "with a constant": lambda b: differentiable(copy)[GRID](torch.ones_like(b), b, N, 32),
    "of two": lambda b: both[GRID](torch.empty_like(b), b, N, 32),
    "of two, first": lambda b: both[GRID](b, torch.empty_like(b), N, 32),
    "in a tuple": lambda b: in_a_tuple[GRID]((b, b), N, 32),
    "reinterpreted": lambda b: fill[GRID](triton.reinterpret(b, tl.float32), N, 32),
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("has_gradients", [True, False])
def test_once(device, name, has_gradients):
    plain_launches.watch()
    b = torch.zeros(N, device=device)
    RUNS[name](b)
    before = b._version
    with torch.set_grad_enabled(has_gradients):
        RUNS[name](b)
    assert b._version == before + 1


@pytest.mark.parametrize("reverse", [True, False])
def test_one_output_of_inference_mode(device, reverse):
    """It has no version; the other one's counts once."""
    plain_launches.watch()
    b = torch.zeros(N, device=device)
    with torch.inference_mode():
        c = torch.zeros(N, device=device)
    both[GRID](*((b, c) if reverse else (c, b)), N, 32)
    assert b._version == 1


@pytest.mark.parametrize("name", RUNS)
def test_who_overwrote_a_tensor_is_said(device, name):
    x = torch.randn(N, device=device, requires_grad=True)
    h, y = x * 1, torch.empty(N, device=device)
    differentiable(square)[GRID](h, y, N, 32)
    RUNS[name](h.detach())
    kernel = {"tuned": "double", "with a constant": "copy", "in a tuple": "in_a_tuple"}.get(name)
    kernel = kernel or ("both" if "two" in name else "fill")
    argument = {"tuned": "y", "in a tuple": "pair", "of two, first": "a"}.get(name, "b")
    said = f"kernel '{kernel}'.* wrote to its argument '{argument}'.*clone"
    with pytest.raises(AutodiffError, match=f"argument 'x' of kernel 'square' .*{said}"):
        y.sum().backward()


def test_optimizers_may_write_parameters(device):
    plain_launches.watch()
    parameter = torch.nn.Parameter(torch.ones(N, device=device))
    with torch.no_grad():
        double[GRID](parameter, N, 32)
    assert parameter._version == 1 and (parameter == 2).all()


def test_custom_operators_in_a_stub(device, operator_name):
    """Below autograd, the operator's own derivative counts."""

    @torch.library.custom_op(operator_name("copy"), mutates_args=())
    def copied_by_operator(y: Tensor) -> Tensor:
        z = torch.empty_like(y)
        copy[GRID](y, z, N, 32)
        return z

    copied_by_operator.register_autograd(lambda ctx, g: g)
    op = autodiff(square, stub_with(lambda x, y: copied_by_operator(y)))
    x = torch.randn(N, device=device, requires_grad=True)
    (g,) = torch.autograd.grad(op(x).sum(), x)
    torch.testing.assert_close(g, 2 * x.detach())


def test_kernels_without_a_derivative(device):
    """What they write is known all the same."""

    @triton.jit
    def looked_up(a, b, n, B: tl.constexpr):
        i = tl.arange(0, B)
        x = tl.load(a + i, mask=i < n, other=0.0)
        y = tl.inline_asm_elementwise("", "=r,0", [x], tl.float32, True, 1) if n < 0 else x
        tl.store(b + i, y, mask=i < n)

    op = autodiff(square, stub_with(lambda x, y: looked_up[GRID](x, y, N, 32)))
    with warnings.catch_warnings(), pytest.raises(AutodiffError, match="writes argument 'b'"):
        op(torch.randn(N, device=device, requires_grad=True))
