"""Lanes that are stored in part, all of which decide something else.

What nobody stores need not be read, unless a selection, an address, a branch or a loop asks for it.
"""

import pytest
import torch
import triton
import triton.language as tl
from gradients import random_tensor
from triton.backends.autodiff import autodiff, stop_gradient

WIDTH = 32


@triton.jit
def selected(x, p, q, a, i, WIDTH: tl.constexpr):
    return tl.where(x > 0, p, q)


@triton.jit
def converted(x, p, q, a, i, WIDTH: tl.constexpr):
    return p * x.to(tl.int32).to(x.dtype)


@triton.jit
def rounded(x, p, q, a, i, WIDTH: tl.constexpr):
    return p * tl.floor(x)


@triton.jit
def stopped(x, p, q, a, i, WIDTH: tl.constexpr):
    return p * stop_gradient(x)


@triton.jit
def gathered(x, p, q, a, i, WIDTH: tl.constexpr):
    return tl.gather(p, (x > 0).to(tl.int32), 0)


@triton.jit
def found(x, p, q, a, i, WIDTH: tl.constexpr):
    return tl.where(i == tl.argmax(x, 0), p, q)


@triton.jit
def addressed(x, p, q, a, i, WIDTH: tl.constexpr):
    return tl.load(a + tl.abs(x * 8).to(tl.int32) % WIDTH)


@triton.jit
def branched(x, p, q, a, i, WIDTH: tl.constexpr):
    y = q
    if tl.max(x, 0) > 0.5:
        y = p
    return y


@triton.jit
def counted(x, p, q, a, i, WIDTH: tl.constexpr):
    y = p
    for _ in range(0, tl.sum((x > 0).to(tl.int32), 0)):
        y = y * 0.5 + q
    return y


@triton.jit
def part(x, p, q, y, z, n, BODY: tl.constexpr, WIDTH: tl.constexpr):
    i = tl.arange(0, WIDTH)
    value = tl.load(x + i)
    tl.store(y + i, value * 2, mask=i < n)
    tl.store(z + i, BODY(value, tl.load(p + i), tl.load(q + i), p, i, WIDTH))


BODIES = [
    selected, converted, rounded, stopped, gathered, found, addressed, branched, counted,
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=lambda k: k.__name__)
def test_all_lanes_decide(device, body):
    """What decides is the same however much of it is stored."""

    def gradients(n):
        def stub(kernel, x, p, q):
            y, z = torch.zeros_like(x), torch.empty_like(x)
            kernel[(1,)](x, p, q, y, z, n, body, WIDTH)
            return y, z

        leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        outputs = autodiff(part, stub)(*leaves)
        upstreams = [torch.zeros_like(upstream), upstream]
        return torch.autograd.grad(outputs, leaves, upstreams, materialize_grads=True)

    inputs = [random_tensor((WIDTH,), device=device).detach() for _ in range(3)]
    inputs[0][-1] = 5.0  # the largest one is not stored
    upstream = torch.randn_like(inputs[0])
    for some, right in zip(gradients(7), gradients(WIDTH), strict=True):
        assert torch.equal(some, right)
