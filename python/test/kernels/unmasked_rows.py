"""Products whose operands have no mask for rows past the end: only what is stored has one."""

import triton
import triton.language as tl

from .common import poisoned

ORDERS = ("rows", "columns", "groups", "swizzle2d", "snake")


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, ORDER: tl.constexpr, GROUP: tl.constexpr,
                   BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """c = abᵀ: programs go through its tiles in an order."""
    p = tl.program_id(0)
    height, width = tl.cdiv(M, BM), tl.cdiv(N, BN)
    if ORDER == "groups":
        first = p // (GROUP * width) * GROUP
        size = min(height - first, GROUP)
        i = first + p % (GROUP * width) % size
        j = p % (GROUP * width) // size
    elif ORDER == "columns":
        i, j = p % height, p // height
    else:
        i, j = p // width, p % width
        if ORDER == "swizzle2d":
            i, j = tl.swizzle2d(i, j, height, width, GROUP)
        if ORDER == "snake":
            j = tl.where(i % 2 == 0, j, width - 1 - j)
    m, n = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_ptrs = a_ptr + m[:, None] * K + k[None, :]
    b_ptrs = b_ptr + n[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for s in range(0, tl.cdiv(K, BK)):
        left = K - s * BK
        a = tl.load(a_ptrs, mask=k[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=k[:, None] < left, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += BK
        b_ptrs += BK
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


def product(kernel, a, b, order="groups", block=32, **options):
    (M, K), (N, _) = a.shape, b.shape
    c = poisoned((M, N), a)
    grid = (triton.cdiv(M, block) * triton.cdiv(N, block),)
    kernel[grid](a, b, c, M, N, K, order, 2, BM=block, BN=block, BK=32, **options)
    return c


def product_reference(a, b, order="groups"):
    return a @ b.t()


@triton.jit
def square_kernel(x_ptr, c_ptr, M, K, ORDER: tl.constexpr, GROUP: tl.constexpr,
                  BLOCK: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """c = xxᵀ, from one pointer."""
    product_kernel(x_ptr, x_ptr, c_ptr, M, M, K, ORDER, GROUP, BLOCK, BLOCK, BK)


def square(kernel, x, order="groups", block=32, **options):
    M, K = x.shape
    c = poisoned((M, M), x)
    grid = (triton.cdiv(M, block) ** 2,)
    kernel[grid](x, c, M, K, order, 2, BLOCK=block, BK=32, **options)
    return c


def square_reference(x, order="groups"):
    return x @ x.t()


@triton.jit
def scaled_rows_kernel(x_ptr, y_ptr, M, K, BM: tl.constexpr, BK: tl.constexpr):
    """y = x², backwards: addresses count down, and what is before the first row is not stored."""
    i = M - 1 - (tl.program_id(0) * BM + tl.arange(0, BM))
    k = tl.program_id(1) * BK + tl.arange(0, BK)
    at = i[:, None] * K + k[None, :]
    x = tl.load(x_ptr + at, mask=k[None, :] < K, other=0.0)
    tl.store(y_ptr + at, x * x, mask=(i[:, None] >= 0) & (k[None, :] < K))


def scaled_rows(kernel, x, block=32, **options):
    M, K = x.shape
    y = poisoned((M, K), x)
    kernel[(triton.cdiv(M, block), triton.cdiv(K, 64))](x, y, M, K, BM=block, BK=64, **options)
    return y


def scaled_rows_reference(x):
    return x * x
