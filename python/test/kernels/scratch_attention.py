"""Vectors that are stored to a scratch tensor and loaded at once, as in flash_attn_triton.py."""

import torch
import triton
import triton.language as tl

from .common import poisoned, precision_of, widen


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, tmp_ptr, n, keys, rounded, scale,
    CAUSAL: tl.constexpr, DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Scales of a row's sum go through a scratch vector; log-sum-exp and maximum are carried."""
    head = tl.program_id(1)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, DIM)
    q_ptrs = q_ptr + head * n * DIM + rows[:, None] * DIM + dims[None, :]
    k_ptrs = k_ptr + head * keys * DIM + columns[:, None] * DIM + dims[None, :]
    v_ptrs = v_ptr + head * keys * DIM + columns[:, None] * DIM + dims[None, :]
    tmp_ptrs = tmp_ptr + head * rounded + rows
    lse_i = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    m_i = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    acc = tl.zeros((BLOCK_M, DIM), tl.float32)
    q = tl.load(q_ptrs, mask=rows[:, None] < n, other=0.0)
    end = keys
    if CAUSAL:
        end = tl.minimum((tl.program_id(0) + 1) * BLOCK_M, keys)
    for start in range(0, end, BLOCK_N):
        start = tl.multiple_of(start, BLOCK_N)
        inside = (start + columns)[:, None] < keys
        k = tl.load(k_ptrs + start * DIM, mask=inside, other=0.0)
        scores = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        scores += tl.dot(q, tl.trans(k), input_precision=PRECISION)
        scores += tl.where((start + columns)[None, :] < keys, 0, float("-inf"))
        if CAUSAL:
            seen = rows[:, None] >= (start + columns)[None, :]
            scores += tl.where(seen, 0, float("-inf"))
        m_ij = tl.maximum(tl.max(scores, 1) * scale, lse_i)
        p = tl.exp(scores * scale - m_ij[:, None])
        l_ij = tl.sum(p, 1)
        acc_scale = tl.exp(m_i - m_ij)
        tl.store(tmp_ptrs, acc_scale)
        tl.debug_barrier()  # other threads load them
        acc_scale = tl.load(tmp_ptrs)
        acc = acc * acc_scale[:, None]
        v = tl.load(v_ptrs + start * DIM, mask=inside, other=0.0)
        acc += tl.dot(p.to(v.dtype), v, input_precision=PRECISION)
        m_i = m_ij
        lse_i = m_ij + tl.log(tl.exp(lse_i - m_ij) + l_ij)
    out_scale = tl.exp(m_i - lse_i)
    tl.store(tmp_ptrs, out_scale)
    tl.debug_barrier()
    out_scale = tl.load(tmp_ptrs)
    acc = acc * out_scale[:, None]
    tl.store(lse_ptr + head * rounded + rows, lse_i)
    out_ptrs = out_ptr + head * n * DIM + rows[:, None] * DIM + dims[None, :]
    tl.store(out_ptrs, acc, mask=rows[:, None] < n)


def attention(kernel, q, k, v, causal=False, block_m=16, block_n=16):
    """q: (heads, n, dim); k, v: (heads, keys, dim).

    Returns values like q, and for each query the log-sum-exp and what the scratch tensor holds.
    """
    (heads, n, dim), keys = q.shape, k.shape[1]
    rounded = triton.cdiv(n, block_m) * block_m
    out = poisoned(q.shape, q)
    lse, tmp = (poisoned((heads, rounded), q, torch.float32) for _ in range(2))
    kernel[(rounded // block_m, heads)](
        q, k, v, out, lse, tmp, n, keys, rounded, dim**-0.5, CAUSAL=causal, DIM=dim,
        BLOCK_M=block_m, BLOCK_N=block_n, PRECISION=precision_of(q),
    )  # fmt: skip
    return out, lse[:, :n], tmp[:, :n]


def attention_reference(q, k, v, causal=False, block_m=16, block_n=16):
    """What the scratch tensor holds depends on how keys are divided."""
    n, keys = q.shape[1], k.shape[1]
    scores = q @ k.mT * q.shape[2] ** -0.5
    row = torch.arange(n, device=q.device)
    if causal:
        seen = row[:, None] >= torch.arange(keys, device=q.device)
        scores = scores.masked_fill(~seen, -float("inf"))
    wide = scores.to(torch.promote_types(scores.dtype, torch.float32))
    end = (row // block_m + 1) * block_m if causal else torch.full_like(row, keys)
    m = lse = None
    for start in range(0, keys, block_n):
        largest = wide[:, :, start : start + block_n].amax(2)
        m = largest if m is None else torch.where(start < end, torch.maximum(largest, lse), m)
        lse = wide[:, :, : start + block_n].logsumexp(2)
    return scores.softmax(2) @ v, lse, torch.exp(m - lse)


# What is stored, and loaded again: under the same mask, in more lanes, in fewer ones than are
# stored; after another store; through addresses that two lanes share.
FORMS = ("same lanes", "more lanes", "fewer lanes", "in between", "shared")


@triton.jit
def elementwise_kernel(x_ptr, tmp_ptr, y_ptr, n, FORM: tl.constexpr, BLOCK: tl.constexpr):
    """y = sin(x) * x, with the sine in a scratch tensor."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = lane // 2 if FORM == "shared" else lane
    mask = place < n
    x = widen(tl.load(x_ptr + place, mask=mask, other=0.5))
    ptrs = tmp_ptr + place
    if FORM == "same lanes":
        tl.store(ptrs, tl.sin(x), mask=mask)
        tl.debug_barrier()
        s = tl.load(ptrs, mask=mask)
    elif FORM == "more lanes":
        tl.store(ptrs, tl.sin(x), mask=mask)
        tl.debug_barrier()
        s = tl.load(ptrs)
    elif FORM == "fewer lanes":
        tl.store(ptrs, tl.sin(x))
        tl.debug_barrier()
        s = tl.load(ptrs, mask=mask, other=2.0)
    elif FORM == "in between":
        tl.store(ptrs, tl.sin(x))
        tl.store(ptrs, tl.cos(x), mask=lane % 2 == 0)
        tl.debug_barrier()
        s = tl.load(ptrs)
    else:
        tl.store(ptrs, tl.sin(x))
        tl.debug_barrier()
        s = tl.load(ptrs)
    tl.store(y_ptr + lane, widen(s) * x, mask=mask if FORM == "same lanes" else lane >= 0)


def elementwise(kernel, x, start, form, block=16):
    """x: (n,); start: (m,), what the scratch tensor holds before, of whole tiles.

    Returns y, (n,) or (m,), and the scratch tensor.
    """
    tmp, y = start.clone(), poisoned(start.shape, x)
    kernel[(triton.cdiv(start.numel(), block),)](x, tmp, y, x.numel(), FORM=form, BLOCK=block)
    return y[: x.numel()] if form == "same lanes" else y, tmp


def elementwise_reference(x, start, form, block=16):
    n, m = x.numel(), start.numel()
    lane = torch.arange(m, device=x.device)
    x = torch.cat([x, x.new_full((m - n,), 0.5)])
    x = x.repeat_interleave(2)[:m] if form == "shared" else x
    s = x.sin()
    if form == "in between":
        s = torch.where(lane % 2 == 0, x.cos(), s)
    tmp = s
    if form == "shared":
        tmp = torch.cat([s[::2], start[m // 2 :]])
    elif form in ("same lanes", "more lanes"):
        tmp = torch.where(lane < n, s, start)
    if form == "more lanes":
        s = tmp
    elif form == "fewer lanes":
        s = torch.where(lane < n, s, 2.0)
    y = s * x
    unused = 0 * start.sum()
    return (y[:n] if form == "same lanes" else y) + unused, tmp + unused
