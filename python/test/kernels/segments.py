"""Rows that belong together; memory says where each group of them begins and ends."""

import torch
import triton
import triton.language as tl

from .common import poisoned, widen


@triton.jit
def softmax_kernel(x_ptr, y_ptr, starts_ptr, ends_ptr, stride, BLOCK: tl.constexpr):
    """Softmax of each column over the rows of a segment, which fit a tile."""
    start = tl.load(starts_ptr + tl.program_id(0))
    end = tl.load(ends_ptr + tl.program_id(0))
    rows = start + tl.arange(0, BLOCK)
    places = rows * stride + tl.program_id(1)
    x = widen(tl.load(x_ptr + places, mask=rows < end, other=-float("inf")))
    weights = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + places, weights / tl.sum(weights, 0), mask=rows < end)


def softmax(kernel, x, starts, ends, BLOCK=32):
    """x: (rows, columns); starts, ends: (segments,)"""
    y = poisoned(x.shape, x)
    kernel[(len(starts), x.shape[1])](x, y, starts, ends, x.stride(0), BLOCK=BLOCK)
    return y


def softmax_reference(x, starts, ends, BLOCK=32):
    spans = zip(starts.tolist(), ends.tolist(), strict=True)
    return torch.cat([torch.softmax(x[start:end], 0) for start, end in spans])


@triton.jit
def squares_kernel(
    x_ptr, y_ptr, starts_ptr, ends_ptr, columns, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """The sum of the squares of each segment's rows."""
    segment = tl.program_id(0)
    lanes = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    end = tl.load(ends_ptr + segment)
    total = tl.zeros((BLOCK_N,), tl.float32)
    for row in range(tl.load(starts_ptr + segment), end, BLOCK_M):
        rows = row + tl.arange(0, BLOCK_M)
        mask = (rows[:, None] < end) & (lanes[None, :] < columns)
        x = tl.load(x_ptr + rows[:, None] * columns + lanes[None, :], mask=mask, other=0.0)
        total += tl.sum(x * x, 0)
    tl.store(y_ptr + segment * columns + lanes, total, mask=lanes < columns)


def squares(kernel, x, starts, ends, BLOCK_M=8, BLOCK_N=16):
    """x: (rows, columns); starts, ends: (segments,)"""
    y = poisoned((len(starts), x.shape[1]), x)
    grid = (len(starts), triton.cdiv(x.shape[1], BLOCK_N))
    kernel[grid](x, y, starts, ends, x.shape[1], BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return y


def squares_reference(x, starts, ends, BLOCK_M=8, BLOCK_N=16):
    spans = zip(starts.tolist(), ends.tolist(), strict=True)
    return torch.stack([(x[start:end] ** 2).sum(0) for start, end in spans])


@triton.jit
def experts_kernel(
    x_ptr, w_ptr, y_ptr, starts_ptr, inner, columns, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):  # fmt: skip
    """y = x w[expert]: the rows of each expert times its own weights."""
    expert = tl.program_id(2)
    start = tl.load(starts_ptr + expert)
    n_rows = tl.load(starts_ptr + expert + 1) - start
    if tl.program_id(0) * BLOCK_M >= n_rows:
        return
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    lanes = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = rows[:, None] < n_rows
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, inner, BLOCK_K):
        ks = k + tl.arange(0, BLOCK_K)
        x = tl.load(
            x_ptr + (start + rows[:, None]) * inner + ks[None, :],
            mask=inside & (ks[None, :] < inner),
            other=0.0,
        )
        w = tl.load(
            w_ptr + expert * inner * columns + ks[:, None] * columns + lanes[None, :],
            mask=(ks[:, None] < inner) & (lanes[None, :] < columns),
            other=0.0,
        )
        total += tl.dot(x, w, input_precision="ieee")
    places = (start + rows[:, None]) * columns + lanes[None, :]
    tl.store(
        y_ptr + places, total.to(y_ptr.dtype.element_ty), mask=inside & (lanes[None, :] < columns)
    )


def experts(kernel, x, w, starts, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16):
    """x: (rows, inner), w: (experts, inner, columns), starts: (experts + 1,)"""
    y = poisoned((x.shape[0], w.shape[2]), x)
    blocks = triton.cdiv(int(starts.diff().max()), BLOCK_M)
    grid = (blocks, triton.cdiv(w.shape[2], BLOCK_N), w.shape[0])
    kernel[grid](x, w, y, starts, *w.shape[1:], BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K)
    return y


def experts_reference(x, w, starts, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16):
    bounds = starts.tolist()
    return torch.cat([x[bounds[e] : bounds[e + 1]] @ w[e] for e in range(len(w))])


@triton.jit
def lengths_kernel(
    x_ptr, w_ptr, y_ptr, lengths_ptr, longest, DIM: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """y[b] = (x[b] w[b]ᵀ)² w[b] over the first `lengths[b]` of `longest` rows of w[b]."""
    batch = tl.program_id(0)
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, DIM)
    places = batch * longest * DIM + rows[:, None] * DIM + dims[None, :]
    x = tl.load(x_ptr + places, mask=rows[:, None] < longest, other=0.0)
    length = tl.load(lengths_ptr + batch)
    total = tl.zeros((BLOCK_M, DIM), tl.float32)
    for start in range(0, length, BLOCK_N):
        others = start + tl.arange(0, BLOCK_N)
        w_ptrs = w_ptr + batch * longest * DIM + others[:, None] * DIM + dims[None, :]
        w = tl.load(w_ptrs, mask=others[:, None] < length, other=0.0)
        products = tl.dot(x, tl.trans(w), input_precision="ieee")
        total += tl.dot(products * products, w, input_precision="ieee")
    tl.store(y_ptr + places, total, mask=rows[:, None] < longest)


def lengths(kernel, x, w, lengths, BLOCK_M=16, BLOCK_N=16):
    """x, w: (batch, longest, dim); lengths: (batch,)"""
    y = poisoned(x.shape, x)
    batch, longest, dim = x.shape
    kernel[(batch, triton.cdiv(longest, BLOCK_M))](
        x, w, y, lengths, longest, DIM=dim, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
    return y


def lengths_reference(x, w, lengths, BLOCK_M=16, BLOCK_N=16):
    seen = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
    w = w * seen[:, :, None]
    return (x @ w.transpose(1, 2)) ** 2 @ w


@triton.jit
def pairs_kernel(
    x_ptr, w_ptr, y_ptr, starts_ptr, longest, DIM: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """y[s] = (x[s] wᵀ)² w with the rows w of segment s, in `WHOLE` tiles or not."""
    segment = tl.program_id(0)
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, DIM)
    places = segment * longest * DIM + rows[:, None] * DIM + dims[None, :]
    x = tl.load(x_ptr + places, mask=rows[:, None] < longest, other=0.0)
    end = tl.load(starts_ptr + segment + 1)
    total = tl.zeros((BLOCK_M, DIM), tl.float32)
    for start in range(tl.load(starts_ptr + segment), end, BLOCK_N):
        others = start + tl.arange(0, BLOCK_N)
        w_ptrs = w_ptr + others[:, None] * DIM + dims[None, :]
        if WHOLE:
            w = tl.load(w_ptrs)
        else:
            w = tl.load(w_ptrs, mask=others[:, None] < end, other=0.0)
        products = tl.dot(x, tl.trans(w), input_precision="ieee")
        total += tl.dot(products * products, w, input_precision="ieee")
    tl.store(y_ptr + places, total, mask=rows[:, None] < longest)


def pairs(kernel, x, w, starts, whole=False, BLOCK_M=16, BLOCK_N=16):
    """x: (segments, longest, dim); w: (rows, dim); starts: (segments + 1,)"""
    y = poisoned(x.shape, x)
    segments, longest, dim = x.shape
    kernel[(segments, triton.cdiv(longest, BLOCK_M))](
        x, w, y, starts, longest, DIM=dim, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, WHOLE=whole
    )
    return y


def pairs_reference(x, w, starts, whole=False, BLOCK_M=16, BLOCK_N=16):
    parts = [w[first:last] for first, last in torch.stack((starts[:-1], starts[1:]), 1).tolist()]
    return torch.stack([(own @ part.T) ** 2 @ part for own, part in zip(x, parts, strict=True)])


@triton.jit
def blocks_kernel(
    x_ptr, w_ptr, y_ptr, blocks_ptr, inner, most, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr
):
    """y = x w for the first `blocks[group]` of `most` blocks of each group; others stay."""
    group = tl.program_id(1)
    if tl.program_id(0) >= tl.load(blocks_ptr + group):
        return
    rows = (group * most + tl.program_id(0)) * BLOCK_M + tl.arange(0, BLOCK_M)
    total = tl.zeros((BLOCK_M,), tl.float32)
    for k in range(0, inner, BLOCK_K):
        ks = k + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + rows[:, None] * inner + ks[None, :])
        w = tl.load(w_ptr + group * inner + ks)
        total += tl.sum(x * w[None, :], 1)
    tl.store(y_ptr + rows, total)


def blocks(kernel, x, w, y, counts, BLOCK_M=8, BLOCK_K=16):
    """x: (groups, rows, inner), w: (groups, inner), y: (groups, rows), counts: (groups,)"""
    y = y.clone()
    groups, rows, inner = x.shape
    most = rows // BLOCK_M
    kernel[(most, groups)](x, w, y, counts, inner, most, BLOCK_M=BLOCK_M, BLOCK_K=BLOCK_K)
    return y


def blocks_reference(x, w, y, counts, BLOCK_M=8, BLOCK_K=16):
    runs = torch.arange(x.shape[1], device=x.device) // BLOCK_M < counts[:, None]
    return torch.where(runs, (x * w[:, None, :]).sum(2), y)
