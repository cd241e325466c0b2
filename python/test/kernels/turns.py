"""Tensors that are loaded in several places, each of which reaches every element once."""

import torch
import triton
import triton.language as tl

from .common import poisoned, tanh


@triton.jit
def gram_kernel(x_ptr, y_ptr, M, K, sm, sk, BK: tl.constexpr, BM: tl.constexpr):
    """y = xᵀx: a program loads columns of x as rows of one factor and columns of the other."""
    i = tl.program_id(0) * BK + tl.arange(0, BK)
    j = tl.program_id(1) * BK + tl.arange(0, BK)
    acc = tl.zeros((BK, BK), tl.float32)
    for s in range(0, tl.cdiv(M, BM)):
        m = s * BM + tl.arange(0, BM)
        rows = (i[:, None] < K) & (m[None, :] < M)
        a = tl.load(x_ptr + m[None, :] * sm + i[:, None] * sk, mask=rows, other=0.0)
        columns = (j[None, :] < K) & (m[:, None] < M)
        b = tl.load(x_ptr + m[:, None] * sm + j[None, :] * sk, mask=columns, other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    inside = (i[:, None] < K) & (j[None, :] < K)
    tl.store(y_ptr + i[:, None] * K + j[None, :], acc, mask=inside)


def gram(kernel, x, block=16, **options):
    M, K = x.shape
    y = poisoned((K, K), x)
    grid = (triton.cdiv(K, block), triton.cdiv(K, block))
    kernel[grid](x, y, M, K, *x.stride(), BK=block, BM=block, **options)
    return y


def gram_reference(x):
    return x.t() @ x


@triton.jit
def running_norm_kernel(x_ptr, y_ptr, rows, n, BLOCK: tl.constexpr):
    """Normalizes rows: a loop whose order matters for their moments, and one for the results."""
    row = tl.program_id(0)
    mean = 0.0
    squares = 0.0
    count = 0.0
    for start in range(0, n, BLOCK):
        lane = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + lane, mask=lane < n, other=0.0).to(tl.float32)
        more = tl.minimum(BLOCK, n - start).to(tl.float32)
        count += more
        before = mean
        mean += (tl.sum(x) - more * mean) / count
        squares += tl.sum(tl.where(lane < n, (x - mean) * (x - before), 0.0))
    scale = tl.rsqrt(squares / n + 1e-3)
    for start in range(0, n, BLOCK):
        lane = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + lane, mask=lane < n, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * n + lane, (x - mean) * scale, mask=lane < n)


def running_norm(kernel, x, block=16):
    y = poisoned(x.shape, x)
    kernel[(x.shape[0],)](x, y, *x.shape, BLOCK=block)
    return y


def running_norm_reference(x, block=16):
    mean = squares = x.new_zeros(x.shape[0])
    count = 0
    for part in x.split(block, dim=1) if x.shape[1] else ():
        count += part.shape[1]
        before = mean
        mean = mean + (part - mean[:, None]).sum(1) / count
        squares = squares + ((part - mean[:, None]) * (part - before[:, None])).sum(1)
    return (x - mean[:, None]) * torch.rsqrt(squares / x.shape[1] + 1e-3)[:, None]


@triton.jit
def decayed_scores_kernel(
    s_ptr, g_ptr, at_ptr, v_ptr, y_ptr, n, width, B: tl.constexpr, V: tl.constexpr
):  # fmt: skip
    """y = (s · exp(gₐ − gⱼ)) v: row i decays from a place a(i), which memory knows."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * V + tl.arange(0, V)
    at = tl.load(at_ptr + i, mask=i < n, other=0)
    gi = tl.load(g_ptr + at, mask=i < n, other=0.0)
    acc = tl.zeros((B, V), tl.float32)
    for start in range(0, n, B):
        j = start + tl.arange(0, B)
        gj = tl.load(g_ptr + j, mask=j < n, other=0.0)
        inside = (i[:, None] < n) & (j[None, :] < n)
        s = tl.load(s_ptr + i[:, None] * n + j[None, :], mask=inside, other=0.0)
        p = s * tl.exp(gi[:, None] - gj[None, :])
        inside = (j[:, None] < n) & (c[None, :] < width)
        v = tl.load(v_ptr + j[:, None] * width + c[None, :], mask=inside, other=0.0)
        acc += tl.dot(p, v, input_precision="ieee")
    inside = (i[:, None] < n) & (c[None, :] < width)
    tl.store(y_ptr + i[:, None] * width + c[None, :], acc, mask=inside)


def decayed_scores(kernel, s, g, at, v, block=16):
    y = poisoned(v.shape, v)
    n, width = v.shape
    grid = (triton.cdiv(n, block), triton.cdiv(width, 16))
    kernel[grid](s, g, at, v, y, n, width, B=block, V=16)
    return y


def decayed_scores_reference(s, g, at, v):
    return (s * torch.exp(g[at.long()][:, None] - g[None, :])) @ v


@triton.jit
def mirrored_kernel(x_ptr, y_ptr, n, C: tl.constexpr, P: tl.constexpr):
    """y = x · tanh(its neighbour in a pair), the neighbour being another load, from behind."""
    row = tl.program_id(0)
    a = tl.arange(0, C)
    b = tl.arange(0, P)
    own = tl.load(x_ptr + row * C * P + a[:, None] * P + b[None, :])
    other = tl.load(x_ptr + row * C * P + a[:, None] * P + (P - 1 - b)[None, :])
    e = tl.exp(-2 * other.to(tl.float32))
    y = own * ((1 - e) / (1 + e))
    tl.store(y_ptr + row * C * P + a[:, None] * P + b[None, :], y)


def mirrored(kernel, x):
    y = poisoned(x.shape, x)
    rows, C, P = x.shape
    kernel[(rows,)](x, y, rows, C=C, P=P)
    return y


def mirrored_reference(x):
    return x * torch.tanh(x.flip(2))


@triton.jit
def shared_rows_kernel(x_ptr, y_ptr, n, D: tl.constexpr, BLOCK: tl.constexpr):
    """y = (1 + s) tanh(x xᵀ) x: a block of rows, which programs of all s share, meets all rows."""
    row, scale = tl.program_id(0), tl.program_id(1) + 1.0
    lanes, columns = tl.arange(0, BLOCK), tl.arange(0, D)
    rows = row * BLOCK + lanes
    q = tl.load(x_ptr + rows[:, None] * D + columns[None, :], mask=rows[:, None] < n, other=0.0)
    acc = tl.zeros((BLOCK, D), tl.float32)
    for i in range(tl.cdiv(n, BLOCK)):
        at = i * BLOCK + lanes
        inside = at[:, None] < n
        x = tl.load(x_ptr + at[:, None] * D + columns[None, :], mask=inside, other=0.0)
        scores = tl.dot(q, tl.trans(x), input_precision="ieee") * 0.1
        acc += tl.dot(tanh(scores), x, input_precision="ieee")
    place = (tl.program_id(1) * n + rows)[:, None] * D + columns[None, :]
    tl.store(y_ptr + place, acc * scale, mask=rows[:, None] < n)


def shared_rows(kernel, x, scales, BLOCK=16):
    """x: (n, D)."""
    n, dim = x.shape
    y = poisoned((scales, n, dim), x)
    kernel[(triton.cdiv(n, BLOCK), scales)](x, y, n, D=dim, BLOCK=BLOCK)
    return y


def shared_rows_reference(x, scales):
    weights = torch.arange(1, scales + 1, dtype=x.dtype, device=x.device)
    return weights[:, None, None] * ((0.1 * x @ x.t()).tanh() @ x)
