"""Causal attention in two stages whose loops carry the place of their keys.

A block pointer is advanced, or a row of one descriptor over all heads is counted up.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from .common import poisoned

FORMS = ("block pointers", "descriptors", "host descriptors")


@triton.jit
def _attend(
    acc, row_sum, row_max, q, k_place, v_place, keys_from, low, high, rows, qk_scale,
    FORM: tl.constexpr, ON_DIAGONAL: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Online softmax over the keys [low, high), of which the first is row `keys_from + low`."""
    if FORM == "block pointers":
        k_place = tl.advance(k_place, (0, low))
        v_place = tl.advance(v_place, (low, 0))
    row = keys_from + low
    for start in range(low, high, BLOCK_N):
        start = tl.multiple_of(start, BLOCK_N)
        if FORM == "block pointers":
            k = tl.load(k_place)
        else:
            k = k_place.load([row, 0]).T
        scores = tl.dot(q, k, input_precision="ieee") * qk_scale
        if ON_DIAGONAL:
            seen = rows[:, None] >= (start + tl.arange(0, BLOCK_N))[None, :]
            scores = tl.where(seen, scores, -1.0e6)
        new_max = tl.maximum(row_max, tl.max(scores, 1))
        p = tl.math.exp2(scores - new_max[:, None])
        alpha = tl.math.exp2(row_max - new_max)
        acc = acc * alpha[:, None]
        if FORM == "block pointers":
            v = tl.load(v_place)
        else:
            v = v_place.load([row, 0])
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
        row_sum = row_sum * alpha + tl.sum(p, 1)
        row_max = new_max
        if FORM == "block pointers":
            k_place = tl.advance(k_place, (0, BLOCK_N))
            v_place = tl.advance(v_place, (BLOCK_N, 0))
        row += BLOCK_N
    return acc, row_sum, row_max


@triton.jit
def carried_attention_kernel(
    q, k, v, out, m_ptr, sm_scale, batch, heads, n_context, FORM: tl.constexpr,
    CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """One block of queries of one head; stores the output and the log-sum-exp in base two."""
    first = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1)
    keys_from = (head // heads) * (heads * n_context) + (head % heads) * n_context
    shape = (n_context, HEAD_DIM)
    if FORM == "block pointers":
        base = head.to(tl.int64) * n_context * HEAD_DIM
        q_place = tl.make_block_ptr(
            q + base, shape, (HEAD_DIM, 1), (first, 0), (BLOCK_M, HEAD_DIM), (1, 0)
        )
        k_place = tl.make_block_ptr(
            k + base, (HEAD_DIM, n_context), (1, HEAD_DIM), (0, 0), (HEAD_DIM, BLOCK_N), (0, 1)
        )
        v_place = tl.make_block_ptr(
            v + base, shape, (HEAD_DIM, 1), (0, 0), (BLOCK_N, HEAD_DIM), (1, 0)
        )
        out_place = tl.make_block_ptr(
            out + base, shape, (HEAD_DIM, 1), (first, 0), (BLOCK_M, HEAD_DIM), (1, 0)
        )
        queries = tl.load(q_place)
    else:
        if FORM == "descriptors":
            total = [batch * heads * n_context, HEAD_DIM]
            q_place = tl.make_tensor_descriptor(q, total, [HEAD_DIM, 1], [BLOCK_M, HEAD_DIM])
            k_place = tl.make_tensor_descriptor(k, total, [HEAD_DIM, 1], [BLOCK_N, HEAD_DIM])
            v_place = tl.make_tensor_descriptor(v, total, [HEAD_DIM, 1], [BLOCK_N, HEAD_DIM])
            out_place = tl.make_tensor_descriptor(out, total, [HEAD_DIM, 1], [BLOCK_M, HEAD_DIM])
        else:
            q_place, k_place, v_place, out_place = q, k, v, out
        queries = q_place.load([keys_from + first, 0])
    rows = first + tl.arange(0, BLOCK_M)
    row_max = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    row_sum = tl.full((BLOCK_M,), 1.0, tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    qk_scale = sm_scale * 1.44269504  # 1 / ln 2
    if CAUSAL:
        acc, row_sum, row_max = _attend(
            acc, row_sum, row_max, queries, k_place, v_place, keys_from, 0, first, rows,
            qk_scale, FORM, False, BLOCK_N,
        )  # fmt: skip
        low = tl.multiple_of(first, BLOCK_M)
        acc, row_sum, row_max = _attend(
            acc, row_sum, row_max, queries, k_place, v_place, keys_from, low, low + BLOCK_M, rows,
            qk_scale, FORM, True, BLOCK_N,
        )  # fmt: skip
    else:
        acc, row_sum, row_max = _attend(
            acc, row_sum, row_max, queries, k_place, v_place, keys_from, 0, n_context, rows,
            qk_scale, FORM, False, BLOCK_N,
        )  # fmt: skip
    tl.store(m_ptr + head * n_context + rows, row_max + tl.math.log2(row_sum))
    result = acc / row_sum[:, None]
    if FORM == "block pointers":
        tl.store(out_place, result.to(out.dtype.element_ty))
    else:
        out_place.store([keys_from + first, 0], result.to(out_place.dtype))


def carried_attention(kernel, q, k, v, causal, form, BLOCK_M=64, BLOCK_N=32, **launch):
    """Attention over q, k, v: (batch, heads, context, dim), contiguous, of whole blocks."""
    batch, heads, context, dim = q.shape
    out, m = poisoned(q.shape, q), poisoned((batch, heads, context), q, torch.float32)
    places = (q, k, v, out)
    if form == "host descriptors":
        places = [
            TensorDescriptor.from_tensor(x.view(-1, dim), [block, dim])
            for x, block in zip(places, (BLOCK_M, BLOCK_N, BLOCK_N, BLOCK_M), strict=True)
        ]
    kernel[(context // BLOCK_M, batch * heads)](
        *places, m, dim**-0.5, batch, heads, context, FORM=form, CAUSAL=causal, HEAD_DIM=dim,
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, **launch,
    )  # fmt: skip
    return out


def carried_attention_reference(q, k, v, causal, form, BLOCK_M=64, BLOCK_N=32):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
