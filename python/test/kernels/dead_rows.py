"""Tiles whose last rows are not numbers, and are not stored."""

import torch
import triton
import triton.language as tl

from .common import poisoned, precision_of, softmax_step


@triton.jit
def cosine_kernel(
    x_ptr, w_ptr, y_ptr, m, n, scale,
    D: tl.constexpr, BLOCK: tl.constexpr, MIXED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """y = scale · x̂ ŵᵀ of normalized rows: a row of zeros, behind the end, is 0/0."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, D)
    x = tl.load(x_ptr + rows[:, None] * D + d[None, :], mask=(rows < m)[:, None], other=0.0)
    w = tl.load(w_ptr + columns[:, None] * D + d[None, :], mask=(columns < n)[:, None], other=0.0)
    x = x * tl.rsqrt(tl.sum(x * x, 1))[:, None]
    w = w / tl.sqrt(tl.sum(w * w, 1))[:, None]
    y = scale * tl.dot(x, tl.trans(w), input_precision=PRECISION)
    places = rows[:, None] * n + columns[None, :]
    stored = (rows < m)[:, None] & (columns < n)[None, :]
    if MIXED:
        # Part of the condition is of both axes at once.
        stored = stored & (rows[:, None] + columns[None, :] < m + n)
    tl.store(y_ptr + places, y, mask=stored)


def cosine(kernel, x, w, MIXED=False, scale=2.0, BLOCK=16, **options):
    m, n = x.shape[0], w.shape[0]
    y = poisoned((m, n), x)
    grid = (triton.cdiv(m, BLOCK), triton.cdiv(n, BLOCK))
    kernel[grid](
        x, w, y, m, n, scale, D=x.shape[1], BLOCK=BLOCK, MIXED=MIXED,
        PRECISION=precision_of(x), **options,
    )  # fmt: skip
    return y


def cosine_reference(x, w, mixed, scale=2.0):
    x = x / x.norm(dim=1, keepdim=True)
    w = w / w.norm(dim=1, keepdim=True)
    return scale * x @ w.T


@triton.jit
def unguarded_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, m, n,
    D: tl.constexpr, BLOCK: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Attention in which rows behind the end see no key: their softmax is 0/0."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :], mask=(rows < m)[:, None], other=0.0)
    maximum = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    acc = tl.zeros([BLOCK, D], tl.float32)
    for start in range(0, n, BLOCK):
        keys = start + tl.arange(0, BLOCK)
        places = keys[:, None] * D + d[None, :]
        k = tl.load(k_ptr + places, mask=(keys < n)[:, None], other=0.0)
        v = tl.load(v_ptr + places, mask=(keys < n)[:, None], other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION)
        seen = (keys < n)[None, :] & (rows < m)[:, None]
        scores = tl.where(seen, scores, -float("inf"))
        maximum, total, acc = softmax_step(scores, v, maximum, total, acc, PRECISION)
    places = rows[:, None] * D + d[None, :]
    tl.store(out_ptr + places, acc / total[:, None], mask=(rows < m)[:, None])


def unguarded(kernel, q, k, v, BLOCK=16, **options):
    out = poisoned(q.shape, q)
    kernel[(triton.cdiv(q.shape[0], BLOCK),)](
        q, k, v, out, q.shape[0], k.shape[0], D=q.shape[1], BLOCK=BLOCK,
        PRECISION=precision_of(q), **options,
    )  # fmt: skip
    return out


def unguarded_reference(q, k, v):
    return torch.softmax(q @ k.T, dim=-1) @ v
