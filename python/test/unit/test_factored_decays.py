"""Decays that are written as products of two factors, relative to a reference.

e^(gᵢ - gⱼ) = e^(gᵢ - r) · e^(r - gⱼ) for any r: r has no gradient, and what g gets is a difference.
"""

import pytest
import torch
import triton
import triton.language as tl
from gradients import assert_gradients_close, random_tensor
from triton.backends.autodiff import autodiff

ROWS, WIDTH = 32, 16


@triton.jit
def attend(q, k, g, r, y, ROWS: tl.constexpr, WIDTH: tl.constexpr, FORM: tl.constexpr):
    rows, dims = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    i = tl.program_id(0) * ROWS * WIDTH + rows[:, None] * WIDTH + dims[None, :]
    decay = tl.load(g + i)
    if FORM == "first row":
        near = tl.load(g + tl.program_id(0) * ROWS * WIDTH + dims)[None, :]
    elif FORM == "gathered":
        near = tl.gather(decay, tl.zeros([1, WIDTH], tl.int32), 0)
    elif FORM == "picked":
        near = tl.sum(tl.where(rows[:, None] == ROWS // 2, decay, 0.0), 0)[None, :]
    else:
        near = tl.load(r + dims)[None, :]
    left = tl.load(q + i) * tl.exp2(decay - near)
    right = tl.load(k + i) * tl.exp2(near - decay)
    a = tl.dot(left, right.T)
    a = tl.where(rows[:, None] >= rows[None, :], a, 0.0)
    tl.store(y + tl.program_id(0) * ROWS * ROWS + rows[:, None] * ROWS + rows[None, :], a)


def _inputs(device, dtype):
    q, k = (random_tensor((3, ROWS, WIDTH), dtype=dtype, device=device) for _ in range(2))
    g = -random_tensor((3, ROWS, WIDTH), dtype=dtype, device=device).abs().cumsum(1) * 0.2
    r = random_tensor((WIDTH,), dtype=dtype, device=device)
    return [x.detach().requires_grad_() for x in (q, k, g, r)]


def _decayed(q, k, g, r):
    seen = torch.ones(ROWS, ROWS, device=q.device, dtype=torch.bool).tril()[..., None]
    difference = (g[:, :, None] - g[:, None]).masked_fill(~seen, -float("inf"))
    return (q[:, :, None] * k[:, None] * torch.exp2(difference)).sum(-1) + 0 * r.sum()


def _operation(form):
    def stub(kernel, q, k, g, r):
        y = q.new_empty(len(q), ROWS, ROWS)
        kernel[(len(q),)](q, k, g, r, y, ROWS, WIDTH, form)
        return y

    return autodiff(attend, stub)


@pytest.mark.parametrize("form", ["first row", "gathered", "picked", "loaded"])
def test_any_reference(device, form):
    """The gradient is that of the decay, and the reference has none."""
    inputs = _inputs(device, torch.float64 if device == "cpu" else torch.float32)
    op = _operation(form)
    y = op(*inputs)
    upstream = torch.randn_like(y)
    found = torch.autograd.grad(y, inputs, upstream, allow_unused=True)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    right = torch.autograd.grad(_decayed(*exact), exact, upstream.double())
    assert found[3] is None or not found[3].any()
    for one, other in zip(found[:3], right[:3], strict=True):
        # Of products in TF32.
        bound = 1e-9 if device == "cpu" else 2e-3
        assert (one.double() - other).norm() <= bound * other.norm()


@triton.jit
def mean(x, v, y, n, WIDTH: tl.constexpr):
    """Each iteration has a reference of its own, which is not free."""
    i = tl.arange(0, WIDTH)
    total = tl.zeros([], tl.float32).to(y.dtype.element_ty)
    weight = total
    for j in range(n):
        s = tl.load(x + j * WIDTH + i)
        near = tl.load(x + j * WIDTH)
        p = tl.exp(s - near)
        total += tl.sum(p * tl.load(v + j * WIDTH + i), 0)
        weight += tl.sum(p, 0)
    tl.store(y, total / weight)


def test_a_reference_for_each_iteration(device):
    dtype = torch.float64 if device == "cpu" else torch.float32
    x, v = (
        random_tensor((5, WIDTH), dtype=dtype, device=device).requires_grad_() for _ in range(2)
    )

    def stub(kernel, x, v):
        y = x.new_empty(1)
        kernel[(1,)](x, v, y, len(x), WIDTH)
        return y

    def reference(x, v):
        p = torch.exp(x - x[:, :1])
        return ((p * v).sum() / p.sum())[None]

    assert_gradients_close(autodiff(mean, stub), reference, [x, v])


@triton.jit
def sums(x, y, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    rows, dims = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    i = rows[:, None] * WIDTH + dims[None, :]
    below = tl.where(rows[:, None] >= rows[None, :], 1.0, 0.0)
    tl.store(y + i, tl.dot(below, tl.load(x + i)))


def test_sums_as_products(device):
    """The adjoint of a cumulative sum that is written as a product is as exact as a sum."""

    def stub(kernel, x):
        y = torch.empty_like(x)
        kernel[(1,)](x, y, 64, WIDTH)
        return y

    x = random_tensor((64, WIDTH), dtype=torch.float32, device=device).requires_grad_()
    # It cancels: what is left is small beside what is added.
    upstream = torch.randn_like(x) * 100
    upstream[1::2] = -upstream[::2] + torch.randn_like(upstream[::2])
    (found,) = torch.autograd.grad(autodiff(sums, stub)(x), x, upstream)
    right = upstream.double().flip(0).cumsum(0).flip(0)
    assert (found.double() - right).norm() <= 1e-5 * right.norm()
