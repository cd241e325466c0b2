"""Loops that go through what they load from behind."""

import torch
import triton
import triton.language as tl

from .common import poisoned, precision_of

# n − 1 − i in a loop that counts up, and loops that count down blocks or elements.
WAYS = ("numbers", "blocks", "elements")


@triton.jit
def falling_attention_kernel(
    q_ptr, k_ptr, v_ptr, y_ptr, length, row_stride, WAY: tl.constexpr, BY: tl.constexpr,
    CAUSAL: tl.constexpr, ORDERED: tl.constexpr, DIM: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Attention of one head from the last key that is seen to the first one.

    If it is `ORDERED`, what has been summed so far weighs half in each further block.
    """
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, DIM)
    q = tl.load(
        q_ptr + rows[:, None] * row_stride + dims[None, :], mask=rows[:, None] < length, other=0.0
    )
    end = length
    if CAUSAL:
        end = tl.minimum((tl.program_id(0) + 1) * BLOCK_M, length)
    blocks = tl.cdiv(end, BLOCK_N)
    low, high = 0, blocks
    if WAY == "blocks":
        low, high = blocks - 1, -1
    elif WAY == "elements":
        low, high = (blocks - 1) * BLOCK_N, -1
    row_max = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    row_sum = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, DIM), tl.float32)
    for i in range(low, high, BY):
        first = i
        if WAY == "numbers":
            first = (blocks - 1 - i) * BLOCK_N
        elif WAY == "blocks":
            first = i * BLOCK_N
        keys = first + tl.arange(0, BLOCK_N)
        places = keys[:, None] * row_stride + dims[None, :]
        k = tl.load(k_ptr + places, mask=keys[:, None] < length, other=0.0)
        v = tl.load(v_ptr + places, mask=keys[:, None] < length, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION)
        seen = (keys < length)[None, :]
        if CAUSAL:
            seen &= rows[:, None] >= keys[None, :]
        scores = tl.where(seen, scores, -1.0e30)
        new_max = tl.maximum(row_max, tl.max(scores, 1))
        p = tl.exp(scores - new_max[:, None])
        alpha = tl.exp(row_max - new_max)
        if ORDERED:
            alpha *= 0.5
        row_sum = row_sum * alpha + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision=PRECISION)
        row_max = new_max
    y = acc / row_sum[:, None]
    y_ptrs = y_ptr + rows[:, None] * row_stride + dims[None, :]
    tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=rows[:, None] < length)


def falling_attention(kernel, q, k, v, way, causal, ordered=False, tiles=(16, 16)):
    """q, k, v: (length, dim), with rows as far apart as each other's"""
    (length, dim), (block_m, block_n) = q.shape, tiles
    y = torch.empty_strided(q.shape, q.stride(), dtype=q.dtype, device=q.device)
    y.copy_(poisoned(q.shape, q))
    kernel[(triton.cdiv(length, block_m),)](
        q, k, v, y, length, q.stride(0), WAY=way,
        BY={"numbers": 1, "blocks": -1, "elements": -block_n}[way], CAUSAL=causal,
        ORDERED=ordered, DIM=dim, BLOCK_M=block_m, BLOCK_N=block_n, PRECISION=precision_of(q),
    )  # fmt: skip
    return y


def falling_attention_reference(q, k, v, causal, ordered=False, tiles=(16, 16)):
    length, block_n = len(q), tiles[1]
    rows = torch.arange(length, device=q.device)
    scores = q @ k.T
    if causal:
        scores = scores.where(rows[:, None] >= rows, -torch.inf)
    weights = torch.softmax(scores, 1)
    if ordered:
        # How many blocks come after a key's: all in front of it.
        weights = weights * 0.5 ** (rows // block_n).to(weights.dtype)
        weights = weights / weights.sum(1, keepdim=True)
    return weights @ v
