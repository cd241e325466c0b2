"""What a kernel decides by floats that it computes, the backward does not decide again.

An index, a branch or a mask may come out otherwise where the floats are rounded otherwise. Here
inputs change in between, unnoticed, so that every decision would be another one, on any device.
"""

import pytest
import torch
import triton
import triton.language as tl
from gradients import random_tensor
from triton.backends.autodiff import autodiff

ROWS, COLUMNS = 4, 8


@triton.jit
def sums(p, u, v, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    return tl.sum(tl.load(u + p * COLUMNS + i) * tl.load(v + i), 1)


@triton.jit
def loaded_there(p, u, v, w, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    k = tl.argmax(sums(p, u, v, ROWS, COLUMNS), 0)
    tl.store(y + p, tl.load(w + p + k))


@triton.jit
def stored_there(p, u, v, w, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    k = tl.argmax(sums(p, u, v, ROWS, COLUMNS), 0)
    tl.store(y + p + k, tl.load(w + p))


@triton.jit
def selected(p, u, v, w, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.arange(0, ROWS)
    k = tl.argmin(sums(p, u, v, ROWS, COLUMNS), 0)
    tl.store(y + p + i, tl.where(i == k, tl.load(w + p + i), 0.0))


@triton.jit
def codes(p, u, v, w, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.arange(0, ROWS)
    x = tl.load(u + p + i) * 0.5 + tl.load(v + i)
    k = tl.minimum(tl.maximum((x * 8).to(tl.int32) % ROWS, 0), ROWS - 1)
    tl.store(y + p + i, tl.load(w + p + k))


@triton.jit
def branches(p, u, v, w, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.arange(0, ROWS)
    x = tl.load(w + p + i)
    if tl.sum(sums(p, u, v, ROWS, COLUMNS), 0) > 0:
        y_ = x * x
    else:
        y_ = x * 3
    tl.store(y + p + i, y_)


@triton.jit
def numbers(p, u, v, w, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.arange(0, ROWS)
    k = tl.argmax(sums(p, u, v, ROWS, COLUMNS), 0)
    tl.store(y + p + i, tl.load(w + p + i) * (k + 0.5))


@triton.jit
def masked(p, u, v, w, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.arange(0, ROWS)
    tl.store(y + p + i, tl.load(w + p + i), mask=sums(p, u, v, ROWS, COLUMNS) > 0)


@triton.jit
def one_after_another(p, u, v, w, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The indices of the two largest sums, the second one by the first."""
    i = tl.arange(0, ROWS)
    x = sums(p, u, v, ROWS, COLUMNS)
    for rank in range(2):
        k = tl.argmax(x, 0)
        tl.store(y + p + rank, tl.load(w + p + k) * (rank + 1.0))
        x = tl.where(i == k, -float("inf"), x)


@triton.jit
def in_branch(p, u, v, w, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    y_ = tl.load(w + p)
    if p > 0:
        y_ *= tl.load(w + p + tl.argmax(sums(p, u, v, ROWS, COLUMNS), 0))
    tl.store(y + p, y_)


BODIES = [
    loaded_there,
    stored_there,
    selected,
    codes,
    branches,
    numbers,
    masked,
    one_after_another,
    in_branch,
]


@triton.jit
def decide(u, v, w, y, n, BODY: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """What is decided for a row is done by a program of its own, or in a loop."""
    for row in range(tl.program_id(0), n, tl.num_programs(0)):
        BODY(row * ROWS, u, v, w, y, ROWS, COLUMNS)


@triton.jit
def decide_once(u, v, w, y, n, BODY: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    BODY(tl.program_id(0) * ROWS, u, v, w, y, ROWS, COLUMNS)


def _operation(kernel, body):
    def stub(kernel, u, v, w):
        y = torch.zeros_like(w)
        grid = (len(u),) if kernel.fn is decide_once.fn else (2,)
        kernel[grid](u, v, w, y, len(u), body, ROWS, COLUMNS)
        return y

    # A loop over rows stays one.
    return autodiff(kernel, stub, backward={"schedules": ["interchange"]})


@pytest.mark.parametrize("body", BODIES, ids=lambda k: k.__name__)
@pytest.mark.parametrize("kernel", [decide_once, decide], ids=["once", "in a loop"])
def test_decisions_are_those_of_the_forward(device, kernel, body):
    """The gradient is that of what the forward did, whatever the sums are by now."""
    u = random_tensor((24, ROWS, COLUMNS), device=device)
    v = random_tensor((ROWS, COLUMNS), device=device)
    w = random_tensor((24, ROWS), device=device).requires_grad_()
    upstream = torch.randn_like(w)
    op = _operation(kernel, body)
    (right,) = torch.autograd.grad(op(u, v, w), w, upstream)
    y = op(u, v, w)
    u.data.neg_()
    (found,) = torch.autograd.grad(y, w, upstream)
    assert torch.equal(found, right)
    (other,) = torch.autograd.grad(op(u, v, w), w, upstream)
    assert not torch.equal(other, right)
