"""Products whose tiles a backward makes longer and shorter."""

import torch
import triton
import triton.language as tl

from .common import poisoned


@triton.jit
def weighted_matmul_kernel(
    a_ptr, b_ptr, s_ptr, c_ptr, m, n, k, stride_a, stride_b, stride_c,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """a · diag(w) · b, where weights are loaded, and computed from the index in three ways."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a = tl.load(
            a_ptr + rows[:, None] * stride_a + inner[None, :],
            mask=(rows[:, None] < m) & (inner[None, :] < k), other=0.0,
        )  # fmt: skip
        b = tl.load(
            b_ptr + inner[:, None] * stride_b + columns[None, :],
            mask=(inner[:, None] < k) & (columns[None, :] < n), other=0.0,
        )  # fmt: skip
        scale = tl.load(s_ptr + inner, mask=inner < k, other=0.0)
        position = tl.cos(0.1 * inner.to(tl.float32))
        third = tl.where(inner % 3 == 0, 2.0, 1.0)
        weights = (scale * position * third * tl.where(inner < k // 2, 1.0, -1.0)).to(b.dtype)
        acc = tl.dot(a, b * weights[:, None], acc, input_precision="ieee")
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c_ptr + rows[:, None] * stride_c + columns[None, :], acc, mask=mask)


def weighted_matmul(kernel, a, b, s, BLOCK_M=64, BLOCK_N=128, BLOCK_K=32):
    (m, k), n = a.shape, b.shape[1]
    c = poisoned((m, n), a)
    kernel[(triton.cdiv(m, BLOCK_M), triton.cdiv(n, BLOCK_N))](
        a, b, s, c, m, n, k, a.stride(0), b.stride(0), c.stride(0), BLOCK_M, BLOCK_N, BLOCK_K
    )
    return c


def weighted_matmul_reference(a, b, s):
    k = a.shape[1]
    index = torch.arange(k, device=a.device)
    third = torch.where(index % 3 == 0, 2.0, 1.0)
    half = torch.where(index < k // 2, 1.0, -1.0)
    weights = s * torch.cos(0.1 * index).to(s.dtype) * (third * half).to(s.dtype)
    return a @ (b * weights[:, None])
