"""What is saved for a backward, and when it runs: checkpoints, hooks, functional calls, graphs.

Each with a launch, an operation and a registered one, compiled and not.
"""

import functools

import pytest
import torch
import torch.utils._triton
import triton
import triton.language as tl
from torch._dynamo import compiled_autograd
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)
from triton_autodiff import autodiff, differentiable
from triton_autodiff.errors import ArgumentError

Tensor = torch.Tensor
pytestmark = pytest.mark.usefixtures("needs_gradients")


@pytest.fixture(autouse=True)
def knows_triton(monkeypatch):
    """Dynamo as it is where there is a GPU, and nothing traced yet."""
    monkeypatch.setattr("torch.utils._triton.has_triton", lambda: True)
    torch._dynamo.reset()


@triton.jit
def norm_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    place = tl.program_id(0) * n + i
    x = tl.load(x_ptr + place, mask=i < n, other=0.0)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0)
    r = 1 / tl.sqrt(tl.sum(x * x, axis=0) / n + 1e-5)
    tl.store(y_ptr + place, x * r * w, mask=i < n)


def norm(kernel, x: Tensor, w: Tensor) -> Tensor:
    y = torch.empty_like(x)
    kernel[(x.shape[0],)](x, w, y, x.shape[1], BLOCK=32)
    return y


def reference(x, w):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * w


OPERATIONS = {
    "launch": functools.partial(norm, differentiable(norm_kernel)),
    "operation": autodiff(norm_kernel, norm),
    "registered": autodiff(norm_kernel, norm).register("autodiff_test::saved_norm"),
}
each = pytest.mark.parametrize("operation", OPERATIONS)


class Layer(torch.nn.Module):
    def __init__(self, normalize):
        super().__init__()
        self.linear = torch.nn.Linear(24, 24)
        self.weight = torch.nn.Parameter(torch.rand(24) + 0.5)
        self.normalize = normalize

    def forward(self, x):
        return self.normalize(self.linear(x).tanh(), self.weight).sin()


def compare(operation, call, device, backward=torch.Tensor.backward, rows=6):
    """Gradients of a layer that is called as `call(layer, x)`, against float64."""
    layer = Layer(OPERATIONS[operation]).to(device)
    exact = Layer(reference).to(device).double()
    exact.load_state_dict(layer.state_dict())
    x = torch.randn(rows, 24, device=device, requires_grad=True)
    truth = x.detach().double().requires_grad_()
    exact(truth).square().sum().backward()
    backward(call(layer, x).square().sum())
    for ours, theirs in zip((x, *layer.parameters()), (truth, *exact.parameters()), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad.float(), rtol=1e-4, atol=1e-5)


def compiled(function):
    return torch.compile(function, backend="aot_eager", fullgraph=True)


RUNS = {"eager": lambda function: function, "compiled": compiled}


# ----------------------------------------------------------------------------------- checkpoints


class Policy:
    """Saves what kernels make, and computes all else again; knows whether it was asked."""

    def __init__(self):
        self.saved = 0

    def __call__(self, context, operator, *args, **kwargs):
        # In a graph, the launch is what any kernel of Triton is there.
        if operator is not torch.ops.higher_order.triton_kernel_wrapper_mutation:
            if getattr(operator, "namespace", "") not in ("autodiff_test", "triton_autodiff"):
                return CheckpointPolicy.PREFER_RECOMPUTE
        self.saved += not context.is_recompute
        return CheckpointPolicy.MUST_SAVE


@each
@pytest.mark.parametrize("run", RUNS)
def test_checkpoint_by_policy(device, operation, run):
    policy = Policy()
    contexts = functools.partial(create_selective_checkpoint_contexts, policy)

    def call(layer, x):
        return checkpoint(layer, x, use_reentrant=False, context_fn=contexts)

    compare(operation, RUNS[run](call), device)
    # An eager launch is no operator, and runs again.
    assert policy.saved > 0 or (operation != "registered" and run == "eager")


# ----------------------------------------------------------------------------------------- hooks


@each
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("kind", ["on the CPU", "copied", "laid out otherwise"])
def test_hooks(device, operation, run, kind):
    """Dynamo does not read hooks: they are around what is compiled."""
    if (kind, run) == ("laid out otherwise", "compiled"):
        pytest.skip("graphs of PyTorch want saved tensors as they were laid out")
    hooks = {
        "on the CPU": save_on_cpu,
        "copied": lambda: saved_tensors_hooks(torch.clone, torch.clone),
        "laid out otherwise": lambda: saved_tensors_hooks(
            lambda t: t.t().contiguous() if t.dim() == 2 else t,
            lambda t: t.t() if t.dim() == 2 else t,
        ),
    }

    def call(layer, x):
        module = RUNS[run](layer)
        with hooks[kind]():
            return module(x)

    compare(operation, call, device)


# ---------------------------------------------------------------------------------- other callers


@each
@pytest.mark.parametrize("run", RUNS)
def test_functional_call(device, operation, run):
    def call(layer, x):
        return torch.func.functional_call(layer, dict(layer.named_parameters()), (x,))

    compare(operation, RUNS[run](call), device)


class Counting:
    """A backend that counts graphs."""

    def __init__(self):
        self.graphs = 0

    def __call__(self, graph, inputs):
        from torch._dynamo.backends.debugging import aot_eager

        self.graphs += 1
        return aot_eager(graph, inputs)


@each
def test_compiled_autograd(device, operation):
    """The backward of eager launches is one graph; sizes of any number make two of them."""
    backend = Counting()
    compiler = torch.compile(backend=backend, fullgraph=True)

    def backward(loss):
        with compiled_autograd._enable(compiler):
            loss.backward()

    for rows in (6, 7, 8, 9):
        compare(operation, lambda layer, x: layer(x), device, backward, rows)
    assert backend.graphs == 2


@triton.jit
def two_kernel(x_ptr, y_ptr, z_ptr, n, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i * stride, mask=i < n)
    tl.store(z_ptr + i, x * tl.load(y_ptr + i, mask=i < n), mask=i < n)
    tl.store(y_ptr + i, x * x, mask=i < n)


def _over_a_view(kernel, x, y):
    buffer, z = torch.cat([y, y]), torch.empty_like(y)
    kernel[(1,)](x, buffer[20:], z, 20, x.stride(0), BLOCK=32)
    return buffer, z


def _its_reference(x, y):
    return torch.cat([y, x * x]), x * y


@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("layout", [lambda x: x[:20], lambda x: x[0].expand(20), lambda x: x[::2]])
def test_compiled_autograd_of_views(device, used, layout):
    """In place, of several outputs, or some of them; with gaps, and elements that share memory."""
    kernel = differentiable(two_kernel)
    leaves = [torch.randn(n, device=device, requires_grad=True) for n in (40, 20)]
    exact = [t.detach().double().requires_grad_() for t in leaves]
    found = _over_a_view(kernel, layout(leaves[0]), leaves[1] * 2)
    truth = _its_reference(layout(exact[0]), exact[1] * 2)
    sum(truth[n].sin().sum() for n in used).backward()
    with compiled_autograd._enable(torch.compile(backend="aot_eager", fullgraph=True)):
        sum(found[n].sin().sum() for n in used).backward()
    for ours, theirs in zip(leaves, exact, strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad.float(), rtol=1e-4, atol=1e-5)


@each
def test_compiled_autograd_of_what_is_compiled(device, operation):
    """Dynamo breaks the graph of the backward at Triton kernels, ours or others."""

    def backward(loss):
        with compiled_autograd._enable(torch.compile(backend="aot_eager")):
            loss.backward()

    for rows in (6, 7):
        compare(operation, compiled(lambda layer, x: layer(x)), device, backward, rows)


@each
@pytest.mark.parametrize("run", RUNS)
def test_cuda_graph(recorded, cuda, operation, run):
    """Recorded with its backward, and replayed for other numbers."""
    layer = Layer(OPERATIONS[operation]).to(cuda)
    exact = Layer(reference).to(cuda).double()
    exact.load_state_dict(layer.state_dict())
    module = RUNS[run](layer)
    x = torch.randn(6, 24, device=cuda, requires_grad=True)
    graph, gradients = recorded(
        lambda: torch.autograd.grad(module(x).square().sum(), (x, *layer.parameters()))
    )
    for _ in range(2):
        with torch.no_grad():
            x.normal_()
        graph.replay()
        truth = x.detach().double().requires_grad_()
        truths = torch.autograd.grad(exact(truth).square().sum(), (truth, *exact.parameters()))
        for ours, theirs in zip(gradients, truths, strict=True):
            torch.testing.assert_close(ours, theirs.float(), rtol=1e-4, atol=1e-5)


@each
@pytest.mark.parametrize("run", RUNS)
def test_graphed_callable(cuda, operation, run):
    def call(layer, x):
        sample = (torch.randn_like(x, requires_grad=True),)
        return torch.cuda.make_graphed_callables(RUNS[run](layer), sample)(x)

    compare(operation, call, cuda)


@triton.jit
def weighted_kernel(x_ptr, w_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    w = tl.load(w_ptr + i, mask=i < n)
    tl.store(y_ptr + i, w * tl.sin(x), mask=i < n)
    tl.store(z_ptr + i, w * w * x, mask=i < n)


def weighted(x, w):
    y, z = torch.empty_like(x), torch.empty_like(x)
    differentiable(weighted_kernel)[(1,)](x, w, y, z, len(x), BLOCK=32)
    return y, z


def _inputs(device):
    return (torch.randn(20, device=device, requires_grad=True) for _ in range(2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_hooks_that_return_another_type(device, dtype):
    """Numbers are what counts, as for PyTorch's operations."""
    x, w = _inputs(device)
    with saved_tensors_hooks(lambda t: t.to(dtype), lambda t: t):
        y, _ = weighted(x, w)
    found = torch.autograd.grad(y.sum(), w)[0]
    torch.testing.assert_close(found, x.to(dtype).float().sin())


@pytest.mark.parametrize("unpack", [lambda t: t[:5].clone(), lambda t: t.view(4, 5).clone()])
def test_hooks_that_return_another_shape(device, unpack):
    """A kernel would read beside it."""
    x, w = _inputs(device)
    with saved_tensors_hooks(lambda t: t, unpack):
        y, _ = weighted(x, w)
    with pytest.raises(ArgumentError, match="was saved with shape"):
        y.sum().backward()


@triton.jit
def square_of_matrix_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, x * x)


def test_hooks_that_return_another_layout(device):
    """The same memory in another order: what counts are the numbers that PyTorch sees in it."""
    x = torch.randn(4, 4, device=device, requires_grad=True)
    y = torch.empty_like(x)
    with saved_tensors_hooks(lambda t: t, lambda t: t.t()):
        differentiable(square_of_matrix_kernel)[(1,)](x, y, SIZE=16)
    (found,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(found, 2 * x.detach().t())


@pytest.mark.parametrize("data", [lambda t: t[:5], lambda t: t[:5].clone(), lambda t: t[:0]])
def test_data_that_is_set(device, data):
    x, w = _inputs(device)
    y, _ = weighted(x, w)
    x.data = data(x.data)
    with pytest.raises(ArgumentError, match="was saved with shape"):
        torch.autograd.grad(y.sum(), w)


def test_memory_that_only_another_gradient_needs(device):
    """It was not foreseen, and its inputs are gone."""
    for _ in range(3):
        x, w = _inputs(device)
        weighted(x, w)[0].sum().backward()
    x, w = _inputs(device)
    z = weighted(x, w)[1]
    w.untyped_storage().resize_(0)
    with pytest.raises(ArgumentError, match="has lost its memory"):
        torch.autograd.grad(z.sum(), x)


def test_gradients_without_memory(device):
    """PyTorch has zeros without memory."""
    x, w = _inputs(device)
    upstream = torch._efficientzerotensor(20, device=device)
    assert not torch.autograd.grad(weighted(x, w)[0], x, upstream)[0].any()


@triton.jit
def looped_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """What a loop adds up is saved by the forward."""
    i = tl.arange(0, BLOCK)
    a = tl.zeros([BLOCK], tl.float32)
    for k in range(n):
        a += tl.sin(tl.load(x_ptr + k * BLOCK + i))
    tl.store(y_ptr + i, tl.exp(a) * a)


@pytest.mark.parametrize("how", ["double", "shorter", "column"])
def test_hooks_on_what_a_forward_saves(device, how):
    """It has a type and a size, as arguments have."""
    unpack = {
        "double": lambda t: t.double(),
        "shorter": lambda t: t[:8].clone(),
        "column": lambda t: t[:, None].clone(),
    }[how]

    def launch(x):
        y = torch.empty(16, device=device)
        differentiable(looped_kernel)[(1,)](x, y, 5, BLOCK=16)
        return torch.autograd.grad(y.sum(), x)[0]

    x = torch.randn(80, device=device, requires_grad=True)
    right = launch(x)
    seen = []

    def only_buffers(t):
        seen.append(t.numel())
        return t if t.numel() == 80 else unpack(t)

    with saved_tensors_hooks(lambda t: t, only_buffers):
        if how == "double":
            torch.testing.assert_close(launch(x), right, rtol=0, atol=0)
        else:
            with pytest.raises(ArgumentError, match="what the forward saved of kernel"):
                launch(x)
    assert {80} < set(seen)
