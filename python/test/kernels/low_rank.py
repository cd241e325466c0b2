"""A product with a correction of low rank."""

import triton
import triton.language as tl

from .common import poisoned, precision_of


@triton.jit
def low_rank_kernel(
    x_ptr, w_ptr, a_ptr, b_ptr, y_ptr, m, n, k, scale,
    R: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """y = x w + scale · (x a) b, a: (k, R), b: (R, n)."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ranks = tl.arange(0, R)
    full = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    low = tl.zeros((BLOCK_M, R), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        summed = start + tl.arange(0, BLOCK_K)
        here = (rows < m)[:, None] & (summed < k)[None, :]
        x = tl.load(x_ptr + rows[:, None] * k + summed[None, :], mask=here, other=0.0)
        there = (summed < k)[:, None] & (columns < n)[None, :]
        w = tl.load(w_ptr + summed[:, None] * n + columns[None, :], mask=there, other=0.0)
        inside = (summed < k)[:, None]
        a = tl.load(a_ptr + summed[:, None] * R + ranks[None, :], mask=inside, other=0.0)
        full = tl.dot(x, w, full, input_precision=PRECISION)
        low = tl.dot(x, a, low, input_precision=PRECISION)
    inside = (columns < n)[None, :]
    b = tl.load(b_ptr + ranks[:, None] * n + columns[None, :], mask=inside, other=0.0)
    full += scale * tl.dot(low.to(b.dtype), b, input_precision=PRECISION)
    place = rows[:, None] * n + columns[None, :]
    tl.store(y_ptr + place, full, mask=(rows < m)[:, None] & inside)


def low_rank(kernel, x, w, a, b, scale=2.0, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, **options):
    (m, k), n = x.shape, w.shape[1]
    y = poisoned((m, n), x)
    grid = (triton.cdiv(m, BLOCK_M), triton.cdiv(n, BLOCK_N))
    kernel[grid](
        x, w, a, b, y, m, n, k, scale, R=a.shape[1],
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K,
        PRECISION=precision_of(x), **options,
    )  # fmt: skip
    return y


def low_rank_reference(x, w, a, b, scale=2.0):
    return x @ w + scale * (x @ a @ b)
