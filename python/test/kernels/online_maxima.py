"""Sums of exponentials relative to running maxima, in rows of which several maxima may be equal."""

import torch
import triton
import triton.language as tl


@triton.jit
def _add(x, m, s):
    new = tl.maximum(m, x)
    return new, s * tl.exp(m - new) + tl.exp(x - new)


@triton.jit
def two_loops_kernel(x_ptr, log_ptr, m_ptr, s_ptr, n, first, FRESH: tl.constexpr, B: tl.constexpr):
    """log Σ e^x of each column, in two loops; with FRESH, the second one begins with a sum of one,
    relative to the maximum that the first one leaves. Stores the maximum and the sum, too, if there
    is memory for them."""
    i = tl.arange(0, B)
    m = tl.full([B], float("-inf"), tl.float32)
    s = tl.zeros([B], tl.float32)
    for row in range(0, first):
        m, s = _add(tl.load(x_ptr + row * B + i).to(tl.float32), m, s)
    if FRESH:
        s = tl.full([B], 1.0, tl.float32)
    for row in range(first, n):
        m, s = _add(tl.load(x_ptr + row * B + i).to(tl.float32), m, s)
    tl.store(log_ptr + i, m + tl.log(s))
    if m_ptr is not None:
        tl.store(m_ptr + i, m)
    if s_ptr is not None:
        tl.store(s_ptr + i, s)


def two_loops(kernel, x, first, fresh=False, stores=""):
    """Return log Σ e^x, and the maximum or the sum if `stores` says "m" or "s"; x: (n, B)."""
    n, width = x.shape
    outputs = [x.new_empty(width, dtype=torch.float32) for _ in range(1 + len(stores))]
    kept = dict(zip(stores, outputs[1:], strict=True))
    kernel[(1,)](x, outputs[0], kept.get("m"), kept.get("s"), n, first, fresh, B=width)
    return tuple(outputs)


def reference(x, first, fresh=False, stores=""):
    """The same in PyTorch; equal maxima have equal shares of the derivative."""
    m = x.amax(0)
    s = torch.exp(x - m).sum(0)
    if fresh:
        # The first maximum is where the sum of one is.
        start = x[:first].amax(0)
        s = torch.exp(start - m) + torch.exp(x[first:] - m).sum(0)
    found = {"m": m, "s": s}
    return (m + s.log(), *(found[name] for name in stores))


@triton.jit
def captured_kernel(x_ptr, y_ptr, first_ptr, second_ptr, n, B: tl.constexpr):
    """log Σ e^x of each column; then that of y, relative to the maximum of x."""
    i = tl.arange(0, B)
    m = tl.full([B], float("-inf"), tl.float32)
    s = tl.zeros([B], tl.float32)
    for row in range(n):
        m, s = _add(tl.load(x_ptr + row * B + i), m, s)
    tl.store(first_ptr + i, m + tl.log(s))
    most = tl.full([B], float("-inf"), tl.float32)
    total = tl.zeros([B], tl.float32)
    for row in range(n):
        most, total = _add(tl.load(y_ptr + row * B + i) - m, most, total)
    tl.store(second_ptr + i, most + tl.log(total))


def captured(kernel, x, y):
    outputs = [x.new_empty(x.shape[1]) for _ in range(2)]
    kernel[(1,)](x, y, *outputs, len(x), B=x.shape[1])
    return tuple(outputs)


def captured_reference(x, y):
    return x.logsumexp(0), y.logsumexp(0) - x.amax(0)


@triton.jit
def outer_loop_kernel(x_ptr, y_ptr, rows, n, B: tl.constexpr):
    """log Σ e^x of each row of x: (rows, n · B), in two loops; −∞ where all elements are."""
    i = tl.arange(0, B)
    for row in range(rows):
        m = tl.full([1], float("-inf"), tl.float32)
        s = tl.zeros([1], tl.float32)
        for part in range(n):
            x = tl.load(x_ptr + (row * n + part) * B + i)
            new = tl.maximum(m, tl.max(x, 0))
            safe = tl.where(new == float("-inf"), 0.0, new)
            s = s * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), 0)
            m = new
        safe = tl.where(m == float("-inf"), 0.0, m)
        tl.store(y_ptr + row + tl.arange(0, 1), safe + tl.log(s))


def outer_loop(kernel, x, width):
    y = x.new_empty(len(x))
    kernel[(1,)](x, y, len(x), x.shape[1] // width, B=width)
    return y


@triton.jit
def masked_kernel(x_ptr, y_ptr, length_ptr, B: tl.constexpr):
    """The softmax of a row's first elements: of none, zeros."""
    row = tl.program_id(0)
    i = tl.arange(0, B)
    mask = i < tl.load(length_ptr + row)
    x = tl.load(x_ptr + row * B + i, mask=mask, other=float("-inf")).to(tl.float32)
    m = tl.max(x, 0)
    m = tl.where(m == float("-inf"), 0.0, m)
    e = tl.exp(x - m)
    s = tl.sum(e, 0)
    tl.store(y_ptr + row * B + i, tl.where(s > 0, e / s, 0.0).to(y_ptr.dtype.element_ty))


def masked(kernel, x, length):
    y = torch.empty_like(x)
    kernel[(len(x),)](x, y, length, B=x.shape[1])
    return y


def masked_reference(x, length):
    mask = torch.arange(x.shape[1], device=x.device) < length[:, None]
    return torch.where(mask, x, -torch.inf).softmax(1).where(mask, torch.zeros_like(x))
