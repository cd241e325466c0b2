"""Products of matrices in few bits, with a scale for every 32 elements along K."""

import torch
import triton
import triton.language as tl

from .common import poisoned

GROUP = tl.constexpr(32)
FP4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.float64)


@triton.jit
def scaled_dot_kernel(
    a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr,
    K: tl.constexpr, A: tl.constexpr, B: tl.constexpr, A_SCALED: tl.constexpr,
    B_SCALED: tl.constexpr, A_PACK: tl.constexpr, B_PACK: tl.constexpr, B_ALONG_K: tl.constexpr,
):  # fmt: skip
    """exp(C + A B); A holds A_PACK elements per byte along K, B holds B_PACK along K or N."""
    m, n, g = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // GROUP)
    a = tl.load(a_ptr + m[:, None] * (K // A_PACK) + tl.arange(0, K // A_PACK)[None, :])
    B_ROWS: tl.constexpr = K // B_PACK if B_ALONG_K else K
    B_COLUMNS: tl.constexpr = N if B_ALONG_K else N // B_PACK
    rows, columns = tl.arange(0, B_ROWS)[:, None], tl.arange(0, B_COLUMNS)[None, :]
    b = tl.load(b_ptr + rows * B_COLUMNS + columns)
    a_scale = None
    b_scale = None
    if A_SCALED:
        a_scale = tl.load(a_scale_ptr + m[:, None] * (K // GROUP) + g[None, :])
    if B_SCALED:
        b_scale = tl.load(b_scale_ptr + n[:, None] * (K // GROUP) + g[None, :])
    places = m[:, None] * N + n[None, :]
    c = tl.load(c_ptr + places)
    y = tl.dot_scaled(a, a_scale, A, b, b_scale, B, acc=c, rhs_k_pack=B_ALONG_K)
    tl.store(y_ptr + places, tl.exp(y))


def scaled_dot(kernel, a, a_scale, b, b_scale, c, formats, along_k=True):
    m, n = c.shape
    k = a.shape[1] * _elements_per_byte(formats[0])
    y = poisoned(c.shape, c)
    kernel[(1,)](
        a, c if a_scale is None else a_scale, b, c if b_scale is None else b_scale, c, y, M=m, N=n,
        K=k, A=formats[0], B=formats[1], A_SCALED=a_scale is not None,
        B_SCALED=b_scale is not None, A_PACK=_elements_per_byte(formats[0]),
        B_PACK=_elements_per_byte(formats[1]), B_ALONG_K=along_k,
    )  # fmt: skip
    return y


def _elements_per_byte(name):
    return 2 if name == "e2m1" else 1


def _unpack(packed, axis):
    nibbles = torch.stack([packed & 15, packed >> 4], dim=axis + 1).flatten(axis, axis + 1)
    magnitude = FP4.to(packed.device)[(nibbles & 7).long()]
    return torch.where(nibbles > 7, -magnitude, magnitude)


def _scaled(x, scale):
    factors = torch.exp2(scale.double() - 127).repeat_interleave(GROUP.value, dim=1)
    return x * factors.to(x.dtype)


def scaled_dot_reference(a, a_scale, b, b_scale, c, formats, along_k=True):
    a = _unpack(a, 1) if formats[0] == "e2m1" else a
    b = _unpack(b, 0 if along_k else 1) if formats[1] == "e2m1" else b
    a, b = a.to(c.dtype), b.to(c.dtype)
    if a_scale is not None:
        a = _scaled(a, a_scale)
    if b_scale is not None:
        b = _scaled(b.t(), b_scale).t()
    return torch.exp(c + a @ b)


@triton.jit
def packed_in_kernel(x_ptr, b_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """An operand whose four bits were made of floats in the kernel."""
    m, k, n = tl.arange(0, M)[:, None], tl.arange(0, K // 2)[None, :], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + m * (K // 2) + k)
    bits = (x.to(tl.int32, bitcast=True) >> 20).to(tl.uint8)
    b = tl.load(b_ptr + tl.arange(0, K)[:, None] * N + n)
    y = tl.dot_scaled(bits, None, "e2m1", b, None, "bf16")
    tl.store(y_ptr + m * N + n, y)
