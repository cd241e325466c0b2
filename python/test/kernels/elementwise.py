"""Elementwise kernels over a flat range, with a masked tail."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import poisoned, tanh, widen


def _grid(n):
    return lambda meta: (triton.cdiv(n, meta["BLOCK"]),)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(kernel, x, y, BLOCK=256):
    out = poisoned(x.shape, x)
    kernel[_grid(x.numel())](x, y, out, x.numel(), BLOCK=BLOCK)
    return out


@triton.jit
def axpb_kernel(x_ptr, y_ptr, a, b, n, BLOCK: tl.constexpr):
    """Scalars as run-time arguments."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, a * x + b, mask=mask)


def axpb(kernel, x, a, b, BLOCK=128):
    out = poisoned(x.shape, x)
    kernel[_grid(x.numel())](x, out, a, b, x.numel(), BLOCK=BLOCK)
    return out


@triton.jit
def gelu_tanh_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = widen(tl.load(x_ptr + offsets, mask=mask))
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    y = 0.5 * x * (1.0 + tanh(inner))
    tl.store(y_ptr + offsets, y, mask=mask)


@triton.jit
def gelu_erf_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = widen(tl.load(x_ptr + offsets, mask=mask))
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(y_ptr + offsets, y, mask=mask)


def unary(kernel, x, BLOCK=256):
    """Launches a kernel ``(x_ptr, y_ptr, n)`` over all elements of a dense tensor."""
    y = poisoned(x.shape, x)
    kernel[_grid(x.numel())](x, y, x.numel(), BLOCK=BLOCK)
    return y


def gelu_tanh_reference(x):
    return F.gelu(x, approximate="tanh")


gelu_erf_reference = F.gelu


@triton.jit
def swiglu_kernel(gate_ptr, up_ptr, out_ptr, n_columns, BLOCK: tl.constexpr):
    """One row a program: silu(gate) * up."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    gate = widen(tl.load(gate_ptr + row * n_columns + columns, mask=mask, other=0))
    up = tl.load(up_ptr + row * n_columns + columns, mask=mask, other=0)
    silu = gate * tl.sigmoid(gate)
    tl.store(out_ptr + row * n_columns + columns, silu.to(up.dtype) * up, mask=mask)


def swiglu(kernel, gate, up):
    """Launches a gated kernel, this one or ``geglu_kernel``."""
    rows, columns = gate.shape
    out = poisoned(gate.shape, gate)
    kernel[(rows,)](gate, up, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out


def swiglu_reference(gate, up):
    return F.silu(gate) * up


@triton.jit
def geglu_kernel(gate_ptr, up_ptr, out_ptr, n_columns, BLOCK: tl.constexpr):
    """One row a program: gelu(gate) * up, with the approximation by tanh."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    gate = widen(tl.load(gate_ptr + row * n_columns + columns, mask=mask, other=0))
    up = tl.load(up_ptr + row * n_columns + columns, mask=mask, other=0)
    inner = 0.7978845608028654 * (gate + 0.044715 * gate * gate * gate)
    gelu = 0.5 * gate * (1.0 + tanh(inner))
    tl.store(out_ptr + row * n_columns + columns, gelu.to(up.dtype) * up, mask=mask)


def geglu_reference(gate, up):
    return F.gelu(gate, approximate="tanh") * up


@triton.jit
def dropout_kernel(x_ptr, y_ptr, n, p, seed, BLOCK: tl.constexpr):
    """The mask is drawn anew from the seed wherever it is needed; nobody stores it."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def dropout(kernel, x, p, seed, BLOCK=256):
    y = poisoned(x.shape, x)
    kernel[_grid(x.numel())](x, y, x.numel(), p, seed, BLOCK=BLOCK)
    return y


@triton.jit
def product_and_exponential_kernel(x_ptr, y_ptr, product_ptr, exp_ptr, n, BLOCK: tl.constexpr):
    """Two outputs that share an input."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(product_ptr + offsets, x * y, mask=mask)
    tl.store(exp_ptr + offsets, tl.exp(x), mask=mask)


def product_and_exponential(kernel, x, y, BLOCK=128):
    product, exponential = poisoned(x.shape, x), poisoned(x.shape, x)
    kernel[_grid(x.numel())](x, y, product, exponential, x.numel(), BLOCK=BLOCK)
    return product, exponential


def product_and_exponential_reference(x, y):
    return x * y, torch.exp(x)


@triton.jit
def relu_inplace_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(x_ptr + offsets, tl.where(x > 0, x, 0.0), mask=mask)


@triton.jit
def square_inplace_kernel(x_ptr, n, BLOCK: tl.constexpr):
    """In place, and the gradient needs the value that is overwritten."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(x_ptr + offsets, x * x, mask=mask)


def inplace(kernel, x, BLOCK=128):
    """Updates a copy, for a leaf that requires gradients can't be written in place."""
    x = x.clone()
    kernel[_grid(x.numel())](x, x.numel(), BLOCK=BLOCK)
    return x


@triton.jit
def affine_columns_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, m, n, stride_xm, stride_xn, stride_w, stride_ym, stride_yn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """y[i, j] = x[i, j] * w[j] + b[j] on tiles, any strides: broadcasts in both operands."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows < m)[:, None] & (columns < n)[None, :]
    x = tl.load(
        x_ptr + rows[:, None] * stride_xm + columns[None, :] * stride_xn, mask=mask, other=0
    )
    w = tl.load(w_ptr + columns * stride_w, mask=columns < n, other=0)
    b = tl.load(b_ptr + columns, mask=columns < n, other=0)
    y = x * w[None, :] + b[None, :]
    tl.store(y_ptr + rows[:, None] * stride_ym + columns[None, :] * stride_yn, y, mask=mask)


def affine_columns(kernel, x, w, b, BLOCK_M=16, BLOCK_N=32):
    m, n = x.shape
    y = poisoned(x.shape, x)
    grid = (triton.cdiv(m, BLOCK_M), triton.cdiv(n, BLOCK_N))
    kernel[grid](
        x, w, b, y, m, n, *x.stride(), w.stride(0), *y.stride(), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
    return y


def affine_columns_reference(x, w, b):
    return x * w + b
