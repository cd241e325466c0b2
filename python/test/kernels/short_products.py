"""Products whose adjoint's products sum over few elements: of tiles with few rows or columns."""

import torch
import triton
import triton.language as tl

from .common import precision_of


@triton.jit
def _tile(p, rows, columns, width: tl.constexpr):
    return tl.load(p + rows[:, None] * width + columns[None, :])


@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr
):  # fmt: skip
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    c = tl.dot(_tile(a_ptr, m, k, K), _tile(b_ptr, k, n, N), input_precision=PRECISION)
    tl.store(c_ptr + m[:, None] * N + n[None, :], c.to(c_ptr.dtype.element_ty))


@triton.jit
def narrow_kernel(
    a_ptr, kept_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    TYPE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A product of what is scaled by bytes, in a type that is wider than both in memory."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    kept = _tile(kept_ptr, m, k, K).to(TYPE)
    a, b = _tile(a_ptr, m, k, K).to(TYPE), _tile(b_ptr, k, n, N).to(TYPE)
    c = tl.dot(a * kept, b, input_precision=PRECISION)
    kept = _tile(kept_ptr, m, n, K).to(tl.float32)
    tl.store(c_ptr + m[:, None] * N + n[None, :], c * kept)


def narrow(kernel, a, kept, b, type, precision="tf32"):
    """c[m, n] = kept[m, n] Σₖ a[m, k] kept[m, k] b[k, n], of tl.`type`, in float32; n ≤ k."""
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, device=a.device)
    kernel[(1,)](a, kept, b, c, M=m, N=n, K=k, TYPE=type, PRECISION=precision)
    return c


@triton.jit
def batched_kernel(
    a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr
):  # fmt: skip
    i = tl.arange(0, 2)[:, None, None]
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + i * M * K + m[None, :, None] * K + k[None, None, :])
    b = tl.load(b_ptr + i * K * N + k[None, :, None] * N + n[None, None, :])
    c = tl.dot(a, b, input_precision=PRECISION)
    c = c.to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + i * M * N + m[None, :, None] * N + n[None, None, :], c)


@triton.jit
def powers_kernel(
    a_ptr, b_ptr, c_ptr, steps, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """The powers of two of products, summed: each product's adjoint is another one."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    b = _tile(b_ptr, k, n, N)
    acc = tl.zeros((M, N), dtype=tl.float32)
    for step in range(steps):
        a = _tile(a_ptr + step * M * K, m, k, K)
        acc += tl.exp2(0.1 * tl.dot(a, b, input_precision=PRECISION))
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty))


@triton.jit
def sum_kernel(
    a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, AXIS: tl.constexpr
):
    """A sum of products of elements, in the order of which Triton makes no product of matrices."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a, b = _tile(a_ptr, m, k, K), _tile(b_ptr, k, n, N)
    c = tl.sum(b[None, :, :] * a[:, :, None], AXIS)
    rows: tl.constexpr = c.shape[0]
    columns: tl.constexpr = c.shape[1]
    place = tl.arange(0, rows)[:, None] * columns + tl.arange(0, columns)[None, :]
    tl.store(c_ptr + place, c)


def product(kernel, a, b, precision=None):
    """A matrix product, or a batch of two of them, in one program."""
    (*batch, m, k), n = a.shape, b.shape[-1]
    c = torch.full((*batch, m, n), float("nan"), device=a.device, dtype=a.dtype)
    kernel[(1,)](a, b, c, m, n, k, precision or precision_of(a))
    return c


def powers(kernel, a, b):
    """Σ exp2(0.1 aᵢ b) of some aᵢ."""
    steps, m, k = a.shape
    c = torch.full((m, b.shape[1]), float("nan"), device=a.device, dtype=a.dtype)
    kernel[(1,)](a, b, c, steps, m, b.shape[1], k, precision_of(a))
    return c


def powers_reference(a, b):
    """The same with PyTorch."""
    return torch.exp2(0.1 * (a @ b)).sum(0)


def sums(kernel, a, b, axis):
    """The sum of a[:, :, None] * b[None, :, :] over an axis."""
    (m, k), n = a.shape, b.shape[1]
    shape = [size for i, size in enumerate((m, k, n)) if i != axis]
    c = torch.full(shape, float("nan"), device=a.device, dtype=a.dtype)
    kernel[(1,)](a, b, c, m, n, k, axis)
    return c


def sums_reference(a, b, axis):
    """The same with PyTorch."""
    return (a[:, :, None] * b[None]).sum(axis)


@triton.jit
def exponentials_kernel(
    x, w, o, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, COUNT: tl.constexpr
):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    b = tl.load(w + k[:, None] * N + n[None, :])
    total = tl.zeros((M, N), tl.float32)
    for i in range(COUNT):
        a = tl.load(x + i * M * K + m[:, None] * K + k[None, :])
        total += tl.exp2(tl.dot(a, b) * 0.05)
    tl.store(o + m[:, None] * N + n[None, :], total)


@triton.jit
def unread_kernel(
    x, w, o, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, COUNT: tl.constexpr
):
    """As above; and products of which every element is replaced by what LLVM knows to be zero."""
    rows, columns, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    unread = tl.zeros((M, N), tl.float32)
    if n > 0:
        for i in range(n):
            c = tl.load(x + i * M * K + rows[:, None] * K + k[None, :])
            d = tl.load(w + i * K * N + k[:, None] * N + columns[None, :])
            unread += tl.dot(c, d)
    total = tl.where(n > 0, 0.0, unread)
    b = tl.load(w + k[:, None] * N + columns[None, :])
    for i in range(COUNT):
        a = tl.load(x + i * M * K + rows[:, None] * K + k[None, :])
        total += tl.exp2(tl.dot(a, b) * 0.05)
    tl.store(o + rows[:, None] * N + columns[None, :], total)
