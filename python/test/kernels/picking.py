"""Elements picked by index, sorted, put side by side, and changed one by one."""

import torch
import triton
import triton.language as tl

from .common import poisoned


@triton.jit
def gather_kernel(
    x_ptr, index_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, AXIS: tl.constexpr
):
    """The square of what a gather along an axis of one M*N tile picks K times."""
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + rows * N + columns)
    if AXIS == 0:
        offsets = tl.arange(0, K)[:, None] * N + columns
    else:
        offsets = rows * K + tl.arange(0, K)[None, :]
    y = tl.gather(x, tl.load(index_ptr + offsets), AXIS)
    tl.store(y_ptr + offsets, y * y)


def gather(kernel, x, index, axis):
    y = poisoned(index.shape, x)
    kernel[(1,)](x, index, y, M=x.shape[0], N=x.shape[1], K=index.shape[axis], AXIS=axis)
    return y


def gather_reference(x, index, axis):
    return x.gather(axis, index.long()) ** 2


@triton.jit
def order_kernel(
    x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, HOW: tl.constexpr
):
    """The square of the rows of a tile sorted, reversed, or of their K largest elements."""
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, K)[None, :]
    x = tl.load(x_ptr + rows * N + tl.arange(0, N)[None, :])
    if HOW == "sort":
        y = tl.sort(x)
    elif HOW == "descending":
        y = tl.sort(x, descending=True)
    elif HOW == "topk":
        y = tl.topk(x, K)
    elif HOW == "flip":
        y = tl.flip(x, 1)
    elif HOW == "flip equal":
        y = tl.flip(tl.broadcast_to(tl.max(x, 1)[:, None], x.shape), 1)
    else:
        y = tl.flip(x, 0)
    tl.store(y_ptr + rows * K + columns, y * y)


def order(kernel, x, how, k):
    m, n = x.shape
    y = poisoned((m, k), x)
    kernel[(1,)](x, y, M=m, N=n, K=k, HOW=how)
    return y


def order_reference(x, how, k):
    y = {
        "sort": lambda: x.sort(dim=1).values,
        "descending": lambda: x.sort(dim=1, descending=True).values,
        "topk": lambda: x.topk(k, dim=1).values,
        "flip": lambda: x.flip(1),
        "flip equal": lambda: x.amax(dim=1, keepdim=True).expand_as(x),
        "flip rows": lambda: x.flip(0),
    }[how]()
    return y**2


@triton.jit
def cat_kernel(x_ptr, w_ptr, y_ptr, N: tl.constexpr):
    """In no defined order: what follows must not depend on it."""
    offsets = tl.arange(0, N)
    both = tl.cat(tl.load(x_ptr + offsets), tl.load(w_ptr + offsets), can_reorder=True)
    tl.store(y_ptr, tl.sum(tl.exp(both), axis=0))


def cat(kernel, x, w):
    y = poisoned((1,), x)
    kernel[(1,)](x, w, y, N=x.numel())
    return y


def cat_reference(x, w):
    return torch.cat([x, w]).exp().sum(0, keepdim=True)


@triton.jit
def _ordered(a, b):
    if a > b:
        return a, tl.log(a) * b
    return b, a + b


@triton.jit
def map_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Scalar code with an early return, applied to every element."""
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0)
    larger, mixed = tl.map_elementwise(_ordered, x, w)
    tl.store(y_ptr + offsets, larger * mixed, mask=mask)


def map_elementwise(kernel, x, w):
    y = poisoned(x.shape, x)
    kernel[(1,)](x, w, y, x.numel(), BLOCK=triton.next_power_of_2(x.numel()))
    return y


def map_reference(x, w):
    wins = x > w
    safe = torch.where(wins, x, torch.ones_like(x))
    return torch.where(wins, x * safe.log() * w, w * (x + w))


@triton.jit
def router_kernel(x_ptr, y_ptr, n, N: tl.constexpr, K: tl.constexpr):
    """The softmax of the K largest elements of a row, as experts are weighted."""
    row = tl.program_id(0)
    columns = tl.arange(0, N)
    x = tl.load(x_ptr + row * n + columns, mask=columns < n, other=-float("inf"))
    top = tl.topk(x, K)
    e = tl.exp(top - tl.max(top, axis=0))
    tl.store(y_ptr + row * K + tl.arange(0, K), e / tl.sum(e, axis=0))


def router(kernel, x, k):
    y = poisoned((x.shape[0], k), x)
    kernel[(x.shape[0],)](x, y, x.shape[1], N=triton.next_power_of_2(x.shape[1]), K=k)
    return y


def router_reference(x, k):
    return x.topk(k, dim=1).values.softmax(1)
