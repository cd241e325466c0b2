"""Attention with masked tails, of any length, in the plainest form: online softmax, one head."""

import torch
import triton
import triton.language as tl

from kernels.common import poisoned


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, y_ptr, log_ptr, rows, keys, B: tl.constexpr, D: tl.constexpr
):
    """y = softmax(q kᵀ) v for a block of B rows, and the logarithms of the softmax's sums."""
    ACC: tl.constexpr = tl.float64 if y_ptr.dtype.element_ty == tl.float64 else tl.float32
    d, lanes = tl.arange(0, D), tl.arange(0, B)
    row = tl.program_id(0) * B + lanes
    is_row = row < rows
    q = tl.load(q_ptr + row[:, None] * D + d[None, :], is_row[:, None], 0.0)
    m = tl.full([B], float("-inf"), ACC)
    total = tl.zeros([B], ACC)
    acc = tl.zeros([B, D], ACC)
    for start in range(0, keys, B):
        key = start + lanes
        is_key = key < keys
        k = tl.load(k_ptr + key[None, :] * D + d[:, None], is_key[None, :], 0.0)
        v = tl.load(v_ptr + key[:, None] * D + d[None, :], is_key[:, None], 0.0)
        s = tl.where(
            is_key[None, :], tl.dot(q, k, input_precision="ieee", out_dtype=ACC), float("-inf")
        )
        largest = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - largest[:, None])
        scale = tl.exp(m - largest)
        total = total * scale + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * scale[:, None], input_precision="ieee", out_dtype=ACC)
        m = largest
    tl.store(log_ptr + row, m + tl.log(total), is_row)
    y = acc / total[:, None]
    tl.store(y_ptr + row[:, None] * D + d[None, :], y.to(y_ptr.dtype.element_ty), is_row[:, None])


def attention(kernel, q, k, v, B=16, **options):
    """Return softmax(q kᵀ) v, of (rows, D), (keys, D) and (keys, D); D is a power of two."""
    y = poisoned(q.shape, q)
    logs = poisoned(q.shape[:1], q, torch.promote_types(q.dtype, torch.float32))
    grid = (triton.cdiv(len(q), B),)
    kernel[grid](q, k, v, y, logs, len(q), len(k), B=B, D=q.shape[1], **options)
    return y


def reference(q, k, v):
    return torch.softmax(q @ k.T, 1) @ v
