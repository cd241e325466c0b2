"""Layer norm with the row in one block, and RMS norm.

Layer norm that loops over the columns is the example ``layer_norm.py``.
"""

import torch.nn.functional as F
import triton
import triton.language as tl

from .common import poisoned, widen

# Exact in float32, the type of a kernel's float arguments, so that float64 kernels are exact too.
EPS = 2.0**-17


@triton.jit
def layer_norm_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, stride_x, stride_y, n_columns, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    x = widen(tl.load(x_ptr + row * stride_x + columns, mask=mask, other=0.0))
    mean = tl.sum(x, axis=0) / n_columns
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / n_columns
    rstd = 1 / tl.sqrt(variance + eps)
    w = tl.load(w_ptr + columns, mask=mask)
    b = tl.load(b_ptr + columns, mask=mask)
    tl.store(y_ptr + row * stride_y + columns, centred * rstd * w + b, mask=mask)


def layer_norm(kernel, x, w, b, eps=EPS):
    rows, columns = x.shape
    y = poisoned(x.shape, x)
    block = triton.next_power_of_2(columns)
    kernel[(rows,)](x, w, b, y, x.stride(0), y.stride(0), columns, eps, BLOCK=block)
    return y


def layer_norm_reference(x, w, b, eps=EPS):
    return F.layer_norm(x, (x.shape[-1],), w, b, eps)


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, y_ptr, stride_x, stride_y, n_columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    x = widen(tl.load(x_ptr + row * stride_x + columns, mask=mask, other=0.0))
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n_columns + eps)
    w = tl.load(w_ptr + columns, mask=mask)
    tl.store(y_ptr + row * stride_y + columns, x * rstd * w, mask=mask)


def rms_norm(kernel, x, w, eps=EPS):
    rows, columns = x.shape
    y = poisoned(x.shape, x)
    block = triton.next_power_of_2(columns)
    kernel[(rows,)](x, w, y, x.stride(0), y.stride(0), columns, eps, BLOCK=block)
    return y


def rms_norm_reference(x, w, eps=EPS):
    return F.rms_norm(x, (x.shape[-1],), w, eps)
