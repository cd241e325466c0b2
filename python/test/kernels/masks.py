"""Kernels whose masked lanes hold infinities and NaN, which the forward never stores."""

import torch
import triton
import triton.language as tl

from .common import poisoned


@triton.jit
def divergence_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """e^x · (x − y) of a row, through its maximum: −∞ − −∞ beyond the row."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + row * n + offsets, mask=mask, other=float("-inf"))
    y = tl.load(y_ptr + row * n + offsets, mask=mask, other=float("-inf"))
    top = tl.max(x, axis=0)
    weight = tl.exp(x - top) * tl.exp(top)
    tl.store(out_ptr + row * n + offsets, weight * (x - y), mask=mask)


def divergence(kernel, x, y, BLOCK=64):
    out = poisoned(x.shape, x)
    kernel[(x.shape[0],)](x, y, out, x.shape[1], BLOCK=BLOCK)
    return out


def divergence_reference(x, y):
    return x.exp() * (x - y)


@triton.jit
def decay_kernel(x_ptr, g_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Σ_{j ≤ i} e^(g_i − g_j) x_j: the exponential overflows for j > i, and is selected away."""
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    g = tl.load(g_ptr + offsets, mask=mask, other=0.0)
    factor = tl.exp(g[:, None] - g[None, :])
    past = offsets[:, None] >= offsets[None, :]
    terms = tl.where(past, factor * x[None, :], 0.0)
    tl.store(out_ptr + offsets, tl.sum(terms, axis=1), mask=mask)


def decay(kernel, x, g, BLOCK=32):
    out = poisoned(x.shape, x)
    kernel[(1,)](x, g, out, x.numel(), BLOCK=BLOCK)
    return out


def decay_reference(x, g):
    difference = (g[:, None] - g).tril()
    return (difference.exp().tril() * x).sum(1)


def falling(n, **options):
    """A leaf that falls so far that e^(g_0 − g_n) overflows, but not with every step.

    Of steps that are all long, a decay's gradient would only be what is left of terms that cancel.
    """
    steps = torch.rand(n, dtype=torch.float64)
    steps[::2] *= 4000 / n
    return (-steps.cumsum(0)).to(**options).requires_grad_()
