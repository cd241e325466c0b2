"""Launches in graphs of `torch.compile`: what they hold, how many are made, what comes out."""

import functools

import flash_attention_v2
import gradients
import layer_norm
import pytest
import quickstart
import torch
import triton
import triton.language as tl
from gradients import assert_gradients_close, random_tensor
from kernels import matmul, segments
from torch._dynamo.utils import counters
from torch._functorch import config as functorch_config
from torch._inductor import config as inductor_config
from torch._inductor.utils import run_and_get_code
from triton.backends.autodiff import autodiff, differentiable
from triton.backends.autodiff.graphs import operator as graph_operator


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Dynamo as it is where there is a GPU, and nothing traced yet."""
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")
    monkeypatch.setattr("torch.utils._triton.has_triton", lambda: True)
    torch._dynamo.reset()
    counters.clear()
    on_disk = {"enable_autograd_cache": False}, {"fx_graph_cache": False}
    with functorch_config.patch(on_disk[0]), inductor_config.patch(on_disk[1]):
        yield


@pytest.fixture
def looked_into(monkeypatch):
    """Whether each launch of which gradients were wanted is one that PyTorch looks into."""
    found, plain = [], graph_operator.LaunchOperator.inlined

    def inlined(self, wanted, *args):
        result = plain(self, wanted, *args)
        if wanted and graph_operator._is_functionalized():
            found.append(result is not None)
        return result

    monkeypatch.setattr(graph_operator.LaunchOperator, "inlined", inlined)
    return found


def in_one_graph(function, backend="aot_eager", **options):
    return torch.compile(function, backend=backend, fullgraph=True, **options)


@triton.jit
def scaled(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, tl.load(w_ptr) * tl.exp(x), mask=i < n)


def scale(kernel, x, w):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 32),)](x, w, y, x.numel(), BLOCK=32)
    return y


def scaled_reference(x, w):
    return w * torch.exp(x)


def _layer_norm_reference(x, w, b):
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), w, b)


def _first(stub):
    """The stub's first result alone."""

    @functools.wraps(stub)
    def call(kernel, *args):
        found = stub(kernel, *args)
        return found[0] if isinstance(found, tuple) else found

    return call


# An operation, its reference, and the sizes of its tensors for one more, or less, of some.
FAMILIES = {
    "elementwise": (scaled, scale, scaled_reference, lambda k: ((70 + k,), (1,))),
    "gated": (
        quickstart.gated_layer_kernel,
        quickstart.gated_layer,
        quickstart.reference,
        lambda k: ((50 + k, 33), (33,), (33,)),
    ),
    "layer norm": (
        layer_norm.layer_norm_kernel,
        _first(layer_norm.layer_norm),
        _layer_norm_reference,
        lambda k: ((9 + k, 300), (300,), (300,)),
    ),
    "long rows": (
        layer_norm.layer_norm_kernel,
        _first(layer_norm.layer_norm),
        _layer_norm_reference,
        lambda k: ((9, 300 + k), (300 + k,), (300 + k,)),
    ),
    "attention": (
        flash_attention_v2.attention_kernel,
        lambda kernel, q, k, v: flash_attention_v2.attention(kernel, q, k, v, True, 0.3),
        lambda q, k, v: flash_attention_v2.reference(q, k, v, True, 0.3),
        lambda k: ((3, 2 + k, 64, 32),) * 3,
    ),
}


# Gradients of weights are sums of about a hundred numbers, in the order of programs.
SUMS = 32


def assert_sums_close(function, reference, inputs, like):
    """Compare gradients for positive ones of an output `like` a tensor: sums that don't cancel."""
    upstreams = [torch.rand_like(like) + 0.5]
    assert_gradients_close(function, reference, inputs, upstreams, roundings=SUMS)


def _inputs(device, family, sizes):
    # On a GPU, products of float32 are tf32.
    halves = device == "cuda" and family == "attention"
    dtype = torch.float16 if halves else torch.float32
    return [random_tensor(*size, device=device, dtype=dtype) for size in sizes]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("family", FAMILIES)
def test_gradients(device, looked_into, family, backend):
    kernel, stub, reference, sizes = FAMILIES[family]
    op = autodiff(kernel, stub)
    inputs = _inputs(device, family, sizes(0))
    compiled = in_one_graph(lambda *args: op(*args), backend)
    assert_sums_close(compiled, reference, inputs, inputs[0])
    assert all(looked_into) and (backend == "eager" or looked_into)


@pytest.mark.parametrize("family", FAMILIES)
def test_sizes(device, family):
    """New data needs no graph, a new size one for all sizes."""
    kernel, stub, reference, sizes = FAMILIES[family]
    op = autodiff(kernel, stub)
    for dynamic, most in ((None, 2), (True, 1)):
        torch._dynamo.reset()
        counters.clear()
        compiled = in_one_graph(lambda *args: op(*args), dynamic=dynamic)
        for more in (0, 0, 3, 8, 29):
            inputs = _inputs(device, family, sizes(more))
            assert_sums_close(compiled, reference, inputs, inputs[0])
        assert counters["stats"]["unique_graphs"] <= most


def test_schedules_that_sizes_choose(device):
    """One graph more for each schedule that a size leads to."""
    op = autodiff(matmul.bias_activation_kernel, matmul.bias_activation)
    compiled = in_one_graph(lambda *args: op(*args, "gelu"), dynamic=True)

    def reference(a, b, c):
        return torch.nn.functional.gelu(a @ b + c, approximate="tanh")

    for rows in (50, 53, 76, 114):
        inputs = [random_tensor(*size, device=device) for size in ((rows, 33), (33, 70), (70,))]
        want, got = (
            torch.autograd.grad(f(*inputs).sum(), inputs)
            for f in (lambda *a: op(*a, "gelu"), compiled)
        )
        for ours, theirs in zip(got, want, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    assert counters["stats"]["unique_graphs"] <= 3


def _kernels(code):
    """The lines of Inductor's code that launch something."""
    body = code[code.index("def call(") :]
    marks = (".run(", "cpp_fused", "extern_kernels", "torch.ops.", "copy_(")
    return [line.strip() for line in body.splitlines() if any(mark in line for mark in marks)]


def test_what_inductor_launches(device):
    """No clone, no fill and no copy of what is fresh and written: the kernels, and what sums up."""
    op = autodiff(scaled, scale)
    x, w = random_tensor(70, device=device), random_tensor(1, device=device)

    def gradients():
        y = in_one_graph(lambda x, w: op(x, w), "inductor")(x, w)
        return torch.autograd.grad(y, (x, w), torch.ones_like(y))

    _, (forward, backward) = run_and_get_code(gradients)
    (launched,) = _kernels(forward)
    assert launched.startswith("scaled_fwd")
    launched, *after = _kernels(backward)
    assert launched.startswith("scaled_bwd")
    # The gradient of w is the sum of what each program adds.
    assert len(after) <= 1


def test_inference(device):
    op = autodiff(scaled, scale)
    x, w = (random_tensor(n, device=device, grad=False) for n in (70, 1))

    def run():
        with torch.no_grad():
            return in_one_graph(lambda x, w: op(x * 2, w), "inductor")(x, w)

    found, (code,) = run_and_get_code(run)
    torch.testing.assert_close(found, scaled_reference(2 * x, w))
    first, launched = _kernels(code)
    assert "mul" in first and launched.startswith("scaled")


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_what_is_not_written_stays(device, backend):
    """And its gradient passes, of a part of a tensor, too."""
    kernel = differentiable(scaled)

    def program(x, w, y):
        y = y.clone()
        kernel[(1,)](x, w, y[2], 20, BLOCK=32)
        return y * 2

    def reference(x, w, y):
        rows = [y[0], y[1], torch.cat([w * x[:20].exp(), y[2, 20:]]), y[3]]
        return torch.stack(rows) * 2

    inputs = [random_tensor(*size, device=device) for size in ((33,), (1,), (4, 33))]
    assert_sums_close(in_one_graph(program, backend), reference, inputs, inputs[2])


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_other_layouts(device, backend):
    """Inputs that are transposed, expanded or sliced are read where they are."""

    @differentiable
    @triton.jit
    def rows(x_ptr, y_ptr, x_row, x_column, y_row, y_column, n, BLOCK: tl.constexpr):
        row, i = tl.program_id(0), tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_row + i * x_column, mask=i < n)
        tl.store(y_ptr + row * y_row + i * y_column, x * tl.exp(x), mask=i < n)

    def program(x, shape):
        x = {"t": x.t(), "slice": x[::2, 1:], "expand": x[:, :1].expand(6, 5)}[shape]
        y = torch.empty_like(x.t().contiguous()).t()
        rows[(x.shape[0],)](x, y, *x.stride(), *y.stride(), x.shape[1], BLOCK=16)
        return y * 2

    def reference(x, shape):
        x = {"t": x.t(), "slice": x[::2, 1:], "expand": x[:, :1].expand(6, 5)}[shape]
        return x * x.exp() * 2

    for shape in ("t", "slice", "expand"):
        inputs = (random_tensor(6, 9, device=device), shape)
        assert_gradients_close(in_one_graph(program, backend), reference, inputs)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_parts_of_one_buffer(device, backend):
    """Columns of a buffer are written, others read and written; the rest stays."""

    @differentiable
    @triton.jit
    def both(x_ptr, y_ptr, z_ptr, stride, n, BLOCK: tl.constexpr):
        row, i = tl.program_id(0), tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + i, mask=i < n)
        tl.store(y_ptr + row * stride + i, x * x, mask=i < n)
        tl.store(z_ptr + row * stride + i, tl.exp(x), mask=i < n)

    def program(x):
        buffer = torch.cat([x, x * 2, x * 3, x[:, :1]], dim=1)
        n = x.shape[1]
        parts = (buffer[:, k * n : k * n + n] for k in range(3))
        both[(x.shape[0],)](*parts, buffer.stride(0), n, BLOCK=8)
        return buffer * 1.5

    def reference(x):
        return torch.cat([x, x * x, x.exp(), x[:, :1]], dim=1) * 1.5

    assert_gradients_close(
        in_one_graph(program, backend), reference, [random_tensor(6, 5, device=device)]
    )


def test_plans_that_data_decides(device, looked_into):
    """They are chosen when they run, by an operator that nobody looks into."""
    starts = torch.tensor([0, 3, 3, 20], dtype=torch.int32, device=device)
    ends = torch.tensor([3, 3, 20, 41], dtype=torch.int32, device=device)
    op = autodiff(segments.softmax_kernel, segments.softmax)
    x = random_tensor(41, 17, device=device)
    (want,) = torch.autograd.grad(op(x, starts, ends).sin().sum(), x)
    compiled = in_one_graph(lambda *args: op(*args).sin())
    (got,) = torch.autograd.grad(compiled(x, starts, ends).sum(), x)
    torch.testing.assert_close(got, want)
    assert looked_into and not any(looked_into)


def test_shared_memory_is_refused(device):
    """What a graph's operator returns is memory of its own, so nothing can come back through it."""

    @differentiable
    @triton.jit
    def shifted(x_ptr, y_ptr, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(y_ptr + i, tl.load(x_ptr + i) * 2)
        tl.debug_barrier()
        tl.store(y_ptr + BLOCK + i, tl.load(x_ptr + i) * 3)

    def program(x):
        x = x * 1
        shifted[(1,)](x, x, BLOCK=16)
        return x

    with pytest.raises(Exception, match="(?s)'shifted'.*clone"):
        in_one_graph(program)(random_tensor(32, device=device))


def test_kernels_without_a_derivative(device):
    """They run between two graphs."""

    @differentiable
    @triton.jit
    def indices(y_ptr, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(y_ptr + i, i * 2, mask=i < n)

    def program(x):
        places = torch.zeros(8, dtype=torch.int32, device=x.device)
        indices[(1,)](places, 8, BLOCK=8)
        return x.sin()[places.long()]

    x = random_tensor(20, device=device)
    found = torch.compile(program, backend="aot_eager")(x)
    torch.testing.assert_close(found, x.sin()[::2][:8])


def test_operator(device):
    """PyTorch's own checks of an operator: schema, fake tensors, autograd, traces."""
    differentiated = autodiff(scaled, scale)
    x, w = random_tensor(70, device=device), random_tensor(1, device=device)
    in_one_graph(lambda x, w: differentiated(x, w))(x, w)
    (operator,) = differentiated.kernel._operators.values()
    arguments = ([x, w, torch.zeros_like(x)], [70], [], [3, 1, 1])
    torch.library.opcheck(operator.operator, arguments)


def test_functional_call(device):
    op = autodiff(scaled, scale)

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.tensor([0.5]))

        def forward(self, x):
            return op(x.sin(), self.w) * 2

    layer = Layer().to(device)

    def program(x, w):
        return torch.func.functional_call(layer, {"w": w}, (x,))

    inputs = [random_tensor(70, device=device), random_tensor(1, device=device)]
    for function in (program, in_one_graph(program)):
        assert_sums_close(
            function, lambda x, w: scaled_reference(x.sin(), w) * 2, inputs, inputs[0]
        )


def test_bad_arguments(device):
    """An error of the kernel names it, in a graph, too."""
    op = autodiff(scaled, lambda kernel, x: kernel[(1,)](x, None, x, 3, BLOCK=32))
    with pytest.raises(Exception, match="scaled|w_ptr|NoneType"):
        in_one_graph(lambda x: op(x * 2))(random_tensor(32, device=device))
