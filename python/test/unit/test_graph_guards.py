"""A graph of Dynamo is for the kernel that it was traced with: others that run the same code, with
all else alike, have graphs of their own.
"""

import enum
import functools
import itertools

import pytest
import torch
import triton
import triton.language as tl
from torch._dynamo.testing import CompileCounterWithBackend
from triton.backends.autodiff import autodiff, differentiable, register_vjp
from triton.backends.autodiff.graphs import launch as graph_launch
from triton.backends.autodiff.graphs.launch import KEEPS_FUNCTIONS
from triton.language.extra import libdevice

BLOCK = 128
_numbers = itertools.count()


@pytest.fixture(autouse=True)
def fresh(needs_gradients):
    torch._dynamo.reset()


@triton.jit
def double(x):
    return 2 * x


@triton.jit
def square(x):
    return x * x


@triton.jit
def double_kernel(x_ptr, y_ptr, F: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(y_ptr + i, F * double(tl.load(x_ptr + i)))


@triton.jit
def square_kernel(x_ptr, y_ptr, F: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(y_ptr + i, F * square(tl.load(x_ptr + i)))


@triton.jit
def applied_kernel(x_ptr, y_ptr, APPLIED: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(y_ptr + i, APPLIED(tl.load(x_ptr + i)))


@triton.jit
def exponential_kernel(x_ptr, y_ptr, F: tl.constexpr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(y_ptr + i, F * libdevice.exp(tl.load(x_ptr + i)))


def launch_of(kernel, third=3.0):
    def launch(x):
        y = torch.empty_like(x)
        kernel[(1,)](x, y, third, BLOCK)
        return y

    return launch


def tuned_launch_of(kernel):
    """A launch whose factor the kernel's wrappers choose."""

    def launch(x):
        y = torch.empty_like(x)
        kernel[(1,)](x, y, SIZE=BLOCK)
        return y

    return launch


def stub_times(factor):
    def stub(kernel, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        kernel[(1,)](x, y, factor, BLOCK)
        return y * factor

    return stub


def other_stub(kernel, x):
    y = torch.empty_like(x)
    kernel[(1,)](x, y, 5.0, BLOCK)
    return y.cos()


class Layer(torch.nn.Module):
    def __init__(self, op):
        super().__init__()
        self.op = op

    def forward(self, x):
        return self.op(x)


def heuristics(factor, kernel=double_kernel):
    return triton.heuristics({"F": lambda args: factor})(kernel)


def tuned(factor):
    configs = [triton.Config({"F": factor})]
    return triton.autotune(configs, key=[])(double_kernel)


def registered(kernel):
    return autodiff(kernel, stub_times(2.0)).register(f"autodiff_test::guards_{next(_numbers)}")


# Pairs that run the same code.
PAIRS = {
    "kernel": lambda: [launch_of(differentiable(k)) for k in (double_kernel, square_kernel)],
    "operation": lambda: [
        Layer(autodiff(k, stub_times(2.0))) for k in (double_kernel, square_kernel)
    ],
    "stub": lambda: [
        Layer(autodiff(double_kernel, stub)) for stub in (stub_times(2.0), other_stub)
    ],
    "variable of a stub": lambda: [
        Layer(autodiff(double_kernel, stub_times(f))) for f in (2.0, 3.0)
    ],
    "registered": lambda: [Layer(registered(k)) for k in (double_kernel, square_kernel)],
    "function": lambda: [
        launch_of(differentiable(applied_kernel), third) for third in (double, square)
    ],
    "heuristics": lambda: [
        tuned_launch_of(differentiable(heuristics(factor))) for factor in (2.0, 3.0)
    ],
    "kernel under heuristics": lambda: [
        tuned_launch_of(differentiable(heuristics(2.0, k))) for k in (double_kernel, square_kernel)
    ],
    "configuration": lambda: [
        tuned_launch_of(differentiable(tuned(factor))) for factor in (2.0, 3.0)
    ],
}


def last(configs, named_args, **kwargs):
    """What a tuner might find to be best."""
    return configs[-1:]


def tuned_over(blocks, kernel, **options):
    configs = [triton.Config({"SIZE": block}, **options) for block in blocks]
    return triton.autotune(configs, key=["n"], prune_configs_by={"early_config_prune": last})(
        kernel
    )


@triton.jit
def squares_kernel(x_ptr, y_ptr, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x * x, mask=i < n)


@triton.jit
def sum_kernel(x_ptr, w_ptr, y_ptr, n, SIZE: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    if EVEN:
        x = tl.load(x_ptr + i)
    else:
        x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.atomic_add(y_ptr, tl.load(w_ptr) * tl.sum(x))


def results(function, x, upstream):
    y = function(x)
    return [y, *torch.autograd.grad(y, x, upstream)]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", PAIRS)
def test_others_are_not_mistaken(device, name, backend):
    pair = PAIRS[name]()
    whole = KEEPS_FUNCTIONS or name != "function"
    compiled = [torch.compile(each, backend=backend, fullgraph=whole) for each in pair]
    # In this order, the first one's graph is there for the second one.
    for each, graph in [*zip(pair, compiled, strict=True)] * 2:
        x, upstream = (torch.randn(BLOCK, device=device) for _ in range(2))
        x.requires_grad_()
        expected = results(each, x, upstream)
        torch.testing.assert_close(results(graph, x, upstream), expected)


@pytest.mark.parametrize("name", ["kernel", "function"])
def test_functions_that_graphs_cannot_hold(device, name, monkeypatch):
    """With an older PyTorch, a function as a constexpr breaks the graph, and a number does not."""
    monkeypatch.setattr(graph_launch, "KEEPS_FUNCTIONS", False)
    launch, _ = PAIRS[name]()
    x = torch.randn(BLOCK, device=device, requires_grad=True)
    upstream = torch.randn_like(x)
    whole = torch.compile(launch, backend="aot_eager", fullgraph=True)
    expected = results(launch, x, upstream)
    if name == "function":
        # Where there is a GPU, Dynamo knows Triton's functions, and refuses to call `callable`.
        native = torch.cuda.is_available()
        why = "builtin operator `callable`" if native else "function is a constexpr of this"
        with pytest.raises(torch._dynamo.exc.Unsupported, match=why):
            whole(x)
        whole = torch.compile(launch, backend="aot_eager")
    torch.testing.assert_close(results(whole, x, upstream), expected)


@pytest.mark.parametrize(
    "alike, graphs",
    [
        (({}, {}), 1),
        (({}, {"deterministic": True}), 2),
        (({"backward": {"num_warps": 2}}, {"backward": {"num_warps": 8}}), 2),
    ],
)
def test_options(device, alike, graphs):
    """Kernels with the same options share a graph: a model may have many of them."""
    counter = CompileCounterWithBackend("aot_eager")
    x = torch.randn(BLOCK, device=device).requires_grad_()
    for options in alike:
        launch = launch_of(differentiable(square_kernel, **options))
        y = torch.compile(launch, backend=counter, fullgraph=True)(x)
        torch.testing.assert_close(torch.autograd.grad(y.sum(), x), (6 * x,))
    assert counter.frame_count == graphs


@triton.jit
def _times_seven(cotangent, x, y):
    return 7.0 * cotangent


def test_rules(device, own_rules):
    """A rule that is registered later counts from then on."""
    launch = launch_of(differentiable(exponential_kernel))
    compiled = torch.compile(launch, backend="aot_eager", fullgraph=True)
    x = torch.randn(BLOCK, device=device).requires_grad_()
    gradient = functools.partial(torch.autograd.grad, inputs=x, grad_outputs=torch.ones_like(x))
    torch.testing.assert_close(gradient(compiled(x)), (3 * x.exp(),))
    register_vjp(_times_seven, symbol="__nv_expf")
    torch.testing.assert_close(gradient(compiled(x)), (torch.full_like(x, 21.0),))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_configurations(device, backend):
    """Tuners whose first configuration is the same choose among their own."""

    def launch_of_all(kernel):
        def launch(x):
            y, n = torch.zeros_like(x), x.numel()
            kernel[lambda meta: (triton.cdiv(n, meta["SIZE"]),)](x, y, n)
            return y

        return launch

    for blocks in ((32, 64), (32, 256)):
        launch = launch_of_all(differentiable(tuned_over(blocks, squares_kernel)))
        compiled = torch.compile(launch, backend=backend, fullgraph=True)
        x, upstream = (torch.randn(1000, device=device) for _ in range(2))
        x.requires_grad_()
        expected = [x * x, 2 * x * upstream]
        torch.testing.assert_close(results(compiled, x, upstream), expected)


@pytest.mark.parametrize("dynamic", [True, None])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_heuristics_of_each_configuration(device, backend, dynamic):
    """What a heuristic says for the configuration that is chosen is for these sizes."""
    even = triton.heuristics({"EVEN": lambda args: args["n"] % args["SIZE"] == 0})(sum_kernel)
    kernel = differentiable(tuned_over((32, 64), even))

    def launch(x, w):
        n = x.numel()
        y = torch.zeros(1, device=device)
        kernel[lambda meta: (triton.cdiv(n, meta["SIZE"]),)](x, w, y, n)
        return y

    compiled = torch.compile(launch, backend=backend, dynamic=dynamic, fullgraph=True)
    for n in (256, 128, 96, 1056):
        x = torch.full((n + 256,), 1e6, device=device)[128 : n + 128].copy_(torch.randn(n))
        w = torch.randn(1, device=device, requires_grad=True)
        expected = [w * x.sum(), x.sum()[None]]
        found = results(lambda w, x=x: compiled(x, w), w, torch.ones(1, device=device))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_hooks(device, backend, count):
    """What is done before each launch is done in graphs, too."""

    def zero(arguments):
        arguments["y_ptr"].zero_()

    even = triton.heuristics({"EVEN": lambda args: False})(sum_kernel)
    kernel = differentiable(tuned_over((32, 64)[:count], even, pre_hook=zero))

    def launch(x, w):
        y = torch.full((1,), 1000.0, device=device)
        kernel[lambda meta: (triton.cdiv(x.numel(), meta["SIZE"]),)](x, w, y, x.numel())
        return y

    compiled = torch.compile(launch, backend=backend, fullgraph=True)
    x, w = torch.randn(300, device=device), torch.randn(1, device=device, requires_grad=True)
    found = results(lambda w: compiled(x, w), w, torch.ones(1, device=device))
    torch.testing.assert_close(found, [w * x.sum(), x.sum()[None]], rtol=1e-4, atol=1e-4)


@triton.jit
def remainder_kernel(x_ptr, y_ptr, n, c, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    x = tl.load(x_ptr + i, mask=i < n)
    factor = ((tl.full((1,), 0, tl.int64) + c) % 1000).to(tl.float32)
    tl.store(y_ptr + i, x * x * factor, mask=i < n)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [True, None])
def test_long_integers(device, dynamic, backend):
    """Those of 64 bits are not taken for the last 32 of these."""
    kernel = differentiable(remainder_kernel)

    def launch(x, c):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), c, 64)
        return y

    compiled = torch.compile(launch, backend=backend, dynamic=dynamic, fullgraph=True)
    for c in (5, 7, -7, -(2**31) - 9, -(2**40) - 7, 2**40 + 7):
        x = torch.randn(100, device=device, requires_grad=True)
        # As in C: the sign is the dividend's.
        factor = abs(c) % 1000 * (1 if c > 0 else -1)
        found = results(lambda x, c=c: compiled(x, c), x, torch.ones_like(x))
        torch.testing.assert_close(found, [factor * x * x, 2 * factor * x])


@triton.jit
def scaled_kernel(x_ptr, y_ptr, n, factor, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("by", ["heuristics", "tuner"])
def test_chosen_numbers(device, by, backend):
    """What is chosen need not be a constexpr."""
    if by == "tuner":
        chosen = triton.autotune([triton.Config({"factor": 3.0})], key=[])(scaled_kernel)
    else:
        chosen = triton.heuristics({"factor": lambda args: 3.0})(scaled_kernel)
    kernel = differentiable(chosen)

    def launch(x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), SIZE=32)
        return y

    x = torch.randn(100, device=device, requires_grad=True)
    compiled = torch.compile(launch, backend=backend, fullgraph=True)
    found = results(compiled, x, torch.ones_like(x))
    torch.testing.assert_close(found, [3 * x, torch.full_like(x, 3.0)])


class Mode(enum.IntEnum):
    DOUBLE = 2
    TRIPLE = 3


@pytest.mark.parametrize("kernel", [double_kernel, scaled_kernel])
def test_named_numbers(device, kernel):
    """A member of an enumeration is a number, and a constant of the graph."""
    launched = differentiable(kernel)
    size = () if kernel is double_kernel else (64,)

    def launch(x, mode):
        y = torch.empty_like(x)
        launched[(1,)](x, y, *size, mode, 64)
        return y

    compiled = torch.compile(launch, backend="aot_eager", fullgraph=True)
    for mode in Mode:
        x = torch.randn(64, device=device, requires_grad=True)
        torch.testing.assert_close(compiled(x, mode), launch(x, mode))


@triton.jit
def strided_kernel(x_ptr, y_ptr, n, step, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    x = tl.load(x_ptr + i * step, mask=i < n)
    tl.store(y_ptr + i, x * x, mask=i < n)


def test_no_elements(device):
    """A plan for nothing holds for its numbers alone."""
    kernel = differentiable(strided_kernel)

    def launch(x, step):
        y = torch.empty(x.numel(), device=device)
        kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), step, 64)
        return y

    compiled = torch.compile(launch, backend="aot_eager", dynamic=True, fullgraph=True)
    for n in (100, 0, 50):
        x = torch.randn(2 * n, device=device)[::2].requires_grad_()
        found = results(lambda x: compiled(x, 2), x, torch.ones(n, device=device))
        torch.testing.assert_close(found, [x * x, 2 * x])


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("wants", [True, False])
def test_functions_of_libraries(device, backend, wants):
    launch = launch_of(differentiable(exponential_kernel))
    compiled = torch.compile(launch, backend=backend, fullgraph=True)
    x = torch.randn(BLOCK, device=device, requires_grad=wants)
    y = compiled(x)
    torch.testing.assert_close(y, 3 * x.exp())
    if wants:
        torch.testing.assert_close(torch.autograd.grad(y.sum(), x), (3 * x.exp(),))


@triton.jit
def two_outputs_kernel(x_ptr, y_ptr, z_ptr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, x * x)
    tl.store(z_ptr + i, tl.exp(x))


def test_gradients_that_came_before(device):
    """Eager launches say which outputs have gradients; a graph is for all of them."""
    kernel = differentiable(two_outputs_kernel)

    def launch(x):
        y, z = torch.empty_like(x), torch.empty_like(x)
        kernel[(1,)](x, y, z, BLOCK)
        return y, z

    x = torch.randn(BLOCK, device=device, requires_grad=True)
    for _ in range(2):
        torch.autograd.grad(launch(x)[1].sum(), x)
    y, z = torch.compile(launch, backend="aot_eager", fullgraph=True)(x)
    torch.testing.assert_close(torch.autograd.grad(y.sum() + z.sum(), x), (2 * x + x.exp(),))
