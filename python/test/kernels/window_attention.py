"""Causal attention to the last keys only, in one loop that begins at the window's first block."""

import torch
import triton
import triton.language as tl

from .common import poisoned


@triton.jit
def window_attention_kernel(
    q_ptr, k_ptr, v_ptr, m_ptr, out_ptr, sm_scale, n_context, window,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, EVEN: tl.constexpr,
    NUMBERED: tl.constexpr = False,
):  # fmt: skip
    """One block of queries of one head; stores the output and the log-sum-exp in base two.

    Query i sees the keys j of i - window < j <= i. Tensors are contiguous. The loop goes over keys
    in steps of a block, or over the numbers of blocks.
    """
    first = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1).to(tl.int64) * n_context
    rows = first + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD_DIM)
    queries = head * HEAD_DIM + rows[:, None] * HEAD_DIM + dims[None, :]
    k_ptr += head * HEAD_DIM
    v_ptr += head * HEAD_DIM
    inside = rows < n_context
    q = tl.load(q_ptr + queries) if EVEN else tl.load(q_ptr + queries, inside[:, None], 0.0)
    # Finite, for rows may see no key of the first block: -inf less -inf is no number.
    row_max = tl.full((BLOCK_M,), -1.0e30, tl.float32)
    row_sum = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    qk_scale = sm_scale * 1.44269504  # 1 / ln 2
    low, high = tl.maximum(0, first - window + 1) // BLOCK_N, min(first + BLOCK_M, n_context)
    if NUMBERED:
        high = tl.cdiv(high, BLOCK_N)
        step: tl.constexpr = 1
    else:
        low *= BLOCK_N
        step: tl.constexpr = BLOCK_N
    for place in range(low, high, step):
        keys = place * (BLOCK_N // step) + tl.arange(0, BLOCK_N)
        k_ptrs = k_ptr + keys[None, :] * HEAD_DIM + dims[:, None]
        v_ptrs = v_ptr + keys[:, None] * HEAD_DIM + dims[None, :]
        existing = keys < n_context
        k = tl.load(k_ptrs) if EVEN else tl.load(k_ptrs, existing[None, :], 0.0)
        v = tl.load(v_ptrs) if EVEN else tl.load(v_ptrs, existing[:, None], 0.0)
        scores = tl.dot(q, k, input_precision="ieee") * qk_scale
        # No row that is stored sees a key past the end.
        distance = rows[:, None] - keys[None, :]
        scores = tl.where((distance >= 0) & (distance < window), scores, -float("inf"))
        new_max = tl.maximum(row_max, tl.max(scores, 1))
        p = tl.math.exp2(scores - new_max[:, None])
        alpha = tl.math.exp2(row_max - new_max)
        row_sum = row_sum * alpha + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")
        row_max = new_max
    lse = row_max + tl.math.log2(row_sum)
    out = (acc / row_sum[:, None]).to(out_ptr.dtype.element_ty)
    if EVEN:
        tl.store(m_ptr + head + rows, lse)
        tl.store(out_ptr + queries, out)
    else:
        tl.store(m_ptr + head + rows, lse, mask=inside)
        tl.store(out_ptr + queries, out, mask=inside[:, None])


def window_attention(kernel, q, k, v, window, BLOCK_M=64, BLOCK_N=32, **launch):
    """Attention of q to the last `window` of k and v: (heads, context, dim), contiguous."""
    heads, context, dim = q.shape
    out, m = poisoned(q.shape, q), poisoned((heads, context), q, torch.float32)
    kernel[(triton.cdiv(context, BLOCK_M), heads)](
        q, k, v, m, out, dim**-0.5, context, window, HEAD_DIM=dim, BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N, EVEN=context % BLOCK_M == 0 and context % BLOCK_N == 0, **launch,
    )  # fmt: skip
    return out


def window_attention_reference(q, k, v, window):
    """All scores, of which those outside of the window are masked."""
    context, dim = q.shape[1:]
    scores = q @ k.transpose(1, 2) * dim**-0.5
    place = torch.arange(context, device=q.device)
    distance = place[:, None] - place[None, :]
    unseen = (distance < 0) | (distance >= window)
    return scores.masked_fill(unseen, -float("inf")).softmax(2) @ v
