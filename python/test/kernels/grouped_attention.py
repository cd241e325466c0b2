"""Attention whose query heads share key and value heads in groups, causal, in two stages."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from flash_attention_v2 import _attend_blocks

from .common import poisoned


@triton.jit
def grouped_attention_kernel(
    q_ptr, k_ptr, v_ptr, sm_scale, m_ptr, out_ptr, n_heads, n_shared_heads, n_context,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    EVEN: tl.constexpr, INTERLEAVED: tl.constexpr = False,
):  # fmt: skip
    """One block of queries of one head; tensors are contiguous.

    Heads that share keys are neighbours, or as far apart as there are groups.
    """
    block = tl.program_id(0)
    batch = tl.program_id(1) // n_heads
    head = tl.program_id(1) % n_heads
    shared = head % n_shared_heads if INTERLEAVED else head // (n_heads // n_shared_heads)
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD_DIM)
    queries = tl.program_id(1).to(tl.int64) * n_context * HEAD_DIM
    keys = (batch * n_shared_heads + shared).to(tl.int64) * n_context * HEAD_DIM
    offsets = queries + rows[:, None] * HEAD_DIM + dims[None, :]
    mask = (rows < n_context)[:, None]
    q = tl.load(q_ptr + offsets) if EVEN else tl.load(q_ptr + offsets, mask=mask, other=0.0)
    row_max = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    row_sum = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    qk_scale = sm_scale * 1.44269504  # 1 / ln 2
    acc, row_sum, row_max = _attend_blocks(
        acc, row_sum, row_max, q, k_ptr + keys, v_ptr + keys, rows, dims, qk_scale,
        0, block * BLOCK_M, n_context, HEAD_DIM, 1, HEAD_DIM, 1, BLOCK_N, False, EVEN,
    )  # fmt: skip
    acc, row_sum, row_max = _attend_blocks(
        acc, row_sum, row_max, q, k_ptr + keys, v_ptr + keys, rows, dims, qk_scale,
        block * BLOCK_M, min((block + 1) * BLOCK_M, n_context), n_context,
        HEAD_DIM, 1, HEAD_DIM, 1, BLOCK_N, True, EVEN,
    )  # fmt: skip
    acc = acc / row_sum[:, None]
    lse = row_max + tl.math.log2(row_sum)
    tl.store(m_ptr + tl.program_id(1) * n_context + rows, lse, mask=rows < n_context)
    tl.store(out_ptr + offsets, acc.to(out_ptr.dtype.element_ty), mask=mask)


def grouped_attention(kernel, q, k, v, sm_scale, BLOCK_M=64, BLOCK_N=32, **options):
    """Of q: (batch, heads, context, head dim), k and v with fewer heads."""
    batch, heads, context, dim = q.shape
    out = poisoned(q.shape, q)
    m = poisoned((batch, heads, context), q, torch.float32)
    kernel[(triton.cdiv(context, BLOCK_M), batch * heads)](
        q, k, v, sm_scale, m, out, heads, k.shape[1], context, HEAD_DIM=dim,
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, EVEN=context % BLOCK_M == 0, **options,
    )  # fmt: skip
    return out


def grouped_attention_reference(q, k, v, sm_scale):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=sm_scale, enable_gqa=True)


def interleaved_reference(q, k, v, sm_scale):
    k, v = (x.repeat(1, q.shape[1] // k.shape[1], 1, 1) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=sm_scale)
