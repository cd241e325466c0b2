"""Attention of sequences of any lengths that lie one after the other."""

import torch
import triton
import triton.language as tl

from .common import poisoned


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, q_starts_ptr, k_starts_ptr, k_ends_ptr, scale,
    stride_q_head, stride_q_row, stride_k_head, stride_k_row, shared, CAUSAL: tl.constexpr,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """One block of queries of one sequence and head; memory says where sequences begin and end.

    So many heads of queries, one after the other, have `shared` keys and values.
    """
    block = tl.program_id(0)
    head = tl.program_id(1)
    sequence = tl.program_id(2)
    q_start = tl.load(q_starts_ptr + sequence)
    n_queries = tl.load(q_starts_ptr + sequence + 1) - q_start
    if block * BLOCK_M >= n_queries:
        return
    k_start = tl.load(k_starts_ptr + sequence)
    n_keys = tl.load(k_ends_ptr + sequence) - k_start
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD_DIM)
    queries = head * stride_q_head + q_start * stride_q_row
    queries += rows[:, None] * stride_q_row + dims[None, :]
    keys = head // shared * stride_k_head + k_start * stride_k_row
    inside = rows[:, None] < n_queries
    q = tl.load(q_ptr + queries, mask=inside, other=0.0)
    row_max = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    row_sum = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    end = tl.minimum(n_keys, (block + 1) * BLOCK_M) if CAUSAL else n_keys
    for start in range(0, end, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        kv = keys + columns[:, None] * stride_k_row + dims[None, :]
        k = tl.load(k_ptr + kv, mask=columns[:, None] < n_keys, other=0.0)
        v = tl.load(v_ptr + kv, mask=columns[:, None] < n_keys, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        seen = columns[None, :] < n_keys
        if CAUSAL:
            seen &= columns[None, :] <= rows[:, None]
        scores = tl.where(seen, scores, -float("inf"))
        above = tl.maximum(row_max, tl.max(scores, 1))
        weights = tl.exp(scores - above[:, None])
        rescale = tl.exp(row_max - above)
        row_sum = row_sum * rescale + tl.sum(weights, 1)
        acc = acc * rescale[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
        row_max = above
    tl.store(out_ptr + queries, acc / row_sum[:, None], mask=inside)


def attention(kernel, q, k, v, q_starts, k_starts, k_ends, causal, BLOCK_M=32, BLOCK_N=16):
    """q: (heads, queries, dim), k, v: (heads that some share, keys, dim)"""
    out = poisoned(q.shape, q)
    longest = int(q_starts.diff().max())
    grid = (triton.cdiv(longest, BLOCK_M), q.shape[0], len(k_starts))
    kernel[grid](
        q, k, v, out, q_starts, k_starts, k_ends, q.shape[2] ** -0.5, q.stride(0), q.stride(1),
        k.stride(0), k.stride(1), q.shape[0] // k.shape[0], CAUSAL=causal, HEAD_DIM=q.shape[2],
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N,
    )  # fmt: skip
    return out


def attention_reference(q, k, v, q_starts, k_starts, k_ends, causal):
    outputs = []
    k, v = (t.repeat_interleave(len(q) // len(k), 0) for t in (k, v))
    for first, last, k_first, k_last in zip(
        q_starts[:-1].tolist(), q_starts[1:].tolist(), k_starts.tolist(), k_ends.tolist(),
        strict=True,
    ):  # fmt: skip
        scores = q[:, first:last] @ k[:, k_first:k_last].transpose(1, 2) * q.shape[2] ** -0.5
        if causal:
            unseen = torch.ones_like(scores, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(unseen, -float("inf"))
        outputs.append(torch.softmax(scores, 2) @ v[:, k_first:k_last])
    return torch.cat(outputs, 1)
