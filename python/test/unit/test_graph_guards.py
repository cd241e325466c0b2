"""A graph of Dynamo is for the kernel that it was traced with: others that run the same code, with
all else alike, have graphs of their own.
"""

import functools
import itertools

import gradients
import pytest
import torch
import triton
import triton.language as tl
from torch._dynamo.testing import CompileCounterWithBackend
from triton.backends.autodiff import autodiff, differentiable, register_vjp, user_rules
from triton.language.extra import libdevice

BLOCK = 128
_numbers = itertools.count()


@pytest.fixture(autouse=True)
def fresh():
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")
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


def results(function, x, upstream):
    y = function(x)
    return [y, *torch.autograd.grad(y, x, upstream)]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", PAIRS)
def test_others_are_not_mistaken(device, name, backend):
    pair = PAIRS[name]()
    compiled = [torch.compile(each, backend=backend, fullgraph=True) for each in pair]
    # In this order, the first one's graph is there for the second one.
    for each, graph in [*zip(pair, compiled, strict=True)] * 2:
        x, upstream = (torch.randn(BLOCK, device=device) for _ in range(2))
        x.requires_grad_()
        expected = results(each, x, upstream)
        torch.testing.assert_close(results(graph, x, upstream), expected)


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


def test_rules(device, monkeypatch):
    """A rule that is registered later counts from then on."""
    monkeypatch.setattr(user_rules, "_rules", dict(user_rules._rules))
    launch = launch_of(differentiable(exponential_kernel))
    compiled = torch.compile(launch, backend="aot_eager", fullgraph=True)
    x = torch.randn(BLOCK, device=device).requires_grad_()
    gradient = functools.partial(torch.autograd.grad, inputs=x, grad_outputs=torch.ones_like(x))
    torch.testing.assert_close(gradient(compiled(x)), (3 * x.exp(),))
    register_vjp(_times_seven, symbol="__nv_expf")
    torch.testing.assert_close(gradient(compiled(x)), (torch.full_like(x, 21.0),))
    user_rules._change()
