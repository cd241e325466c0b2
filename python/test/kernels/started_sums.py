"""Attention whose sums start from a number, as in Triton's tutorial, and some rows have no keys."""

import torch
import triton
import triton.language as tl

from .common import poisoned


@triton.jit
def started_kernel(
    q_ptr, k_ptr, v_ptr, lengths_ptr, out_ptr, n, scale, first,
    START: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """softmax(scale · q kᵀ) v of a batch a program, over its first keys.

    Where there are any, nothing is left of `START`, nor of `first`; else they are what is divided.
    """
    batch = tl.program_id(0)
    rows, dims, lanes = tl.arange(0, ROWS), tl.arange(0, DIM), tl.arange(0, BLOCK)
    places = batch * ROWS * DIM + rows[:, None] * DIM + dims[None, :]
    q = tl.load(q_ptr + places)
    row_max = tl.full((ROWS,), -float("inf"), tl.float32)
    row_sum = tl.full((ROWS,), START, tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32) + first
    length = tl.load(lengths_ptr + batch)
    for start in range(0, length, BLOCK):
        keys = start + lanes
        mask = keys[:, None] < length
        at = batch * n * DIM + keys[:, None] * DIM + dims[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0)
        v = tl.load(v_ptr + at, mask=mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(keys[None, :] < length, scores, -1e30)
        new_max = tl.maximum(row_max, tl.max(scores, 1))
        p = tl.exp(scores - new_max[:, None])
        old = tl.exp(row_max - new_max)
        row_sum = row_sum * old + tl.sum(p, 1)
        acc = acc * old[:, None] + tl.dot(p, v, input_precision="ieee")
        row_max = new_max
    tl.store(out_ptr + places, acc / row_sum[:, None])


def started(kernel, q, k, v, lengths, start, first=0.0, scale=0.3):
    """Of q: (batches, 16, 16), and k and v: (batches, n, 16)."""
    out = poisoned(q.shape, q)
    tiles = {"ROWS": q.shape[1], "BLOCK": 16, "DIM": q.shape[2]}
    kernel[(q.shape[0],)](
        q, k, v, lengths, out, k.shape[1], scale, first, START=start, **tiles
    )  # fmt: skip
    return out


def started_reference(q, k, v, lengths, start, first=0.0, scale=0.3):
    outs = []
    for batch, length in enumerate(lengths.tolist()):
        scores = scale * q[batch] @ k[batch, :length].T
        seen = scores.softmax(-1) @ v[batch, :length]
        outs.append(seen if length else torch.full_like(q[batch], first / start) + 0 * q[batch])
    return torch.stack(outs)
