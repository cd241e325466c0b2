"""Small kernels whose derivatives of every order are formulas."""

import torch
import triton
import triton.language as tl
from triton.backends.autodiff import custom_vjp, stop_gradient

from .common import widen


@triton.jit
def curved_kernel(x_ptr, w_ptr, y_ptr, n, B: tl.constexpr):
    """y = log(1 + x·w)·x, for the first n elements; the others are left."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = widen(tl.load(x_ptr + i, mask=i < n, other=0.0))
    w = widen(tl.load(w_ptr + i, mask=i < n, other=0.0))
    tl.store(y_ptr + i, tl.log(1.0 + x * w) * x, mask=i < n)


def curved(kernel, x, w):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 32),)](x, w, y, x.numel(), 32)
    return y


def curved_reference(x, w):
    return torch.log(1 + x * w) * x


@triton.jit
def exponential_kernel(x_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


@triton.jit
def square_kernel(x_ptr, w_ptr, n, B: tl.constexpr):
    """x ← x²·w, in place."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n)
    w = tl.load(w_ptr + i, mask=i < n)
    tl.store(x_ptr + i, x * x * w, mask=i < n)


@triton.jit
def add_sines_kernel(x_ptr, places_ptr, y_ptr, n, B: tl.constexpr):
    """y[places] += sin(x), atomically."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    places = tl.load(places_ptr + i, mask=i < n, other=0)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.atomic_add(y_ptr + places, tl.sin(x), mask=i < n)


@triton.jit
def halves_kernel(x_ptr, y_ptr, n, B: tl.constexpr):
    """The first half of y is x³, the third quarter is 7, the rest is left."""
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, x * x * x, mask=i < n // 2)
    tl.store(y_ptr + i, 7.0, mask=(i >= n // 2) & (i < n // 4 * 3))


@triton.jit
def stopped_kernel(x_ptr, y_ptr, n, B: tl.constexpr):
    """x²·stop(x³)."""
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, x * x * stop_gradient(x * x * x), mask=i < n)


@custom_vjp
@triton.jit
def through(x):
    return tl.where(x > 0, 1.0, -1.0)


@through.defvjp
@triton.jit
def through_vjp(d_y, x, y):
    return d_y


@triton.jit
def signs_kernel(x_ptr, y_ptr, n, B: tl.constexpr):
    """A straight-through estimator of the sign, times x."""
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, through(x) * x, mask=i < n)


@triton.jit
def chosen_kernel(a_ptr, b_ptr, y_ptr, n, flag, B: tl.constexpr):
    """A pointer that is chosen between tensors of which one has a tangent."""
    i = tl.arange(0, B)
    p = a_ptr if flag > 0 else b_ptr
    x = tl.load(p + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, x * x, mask=i < n)
