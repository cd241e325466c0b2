"""A gate and weights that are packed in one tensor each."""

import torch
import triton
import triton.language as tl

from .common import poisoned, tanh, widen


@triton.jit
def packed_kernel(x_ptr, w_ptr, y_ptr, n, distance, BLOCK: tl.constexpr):
    """y = x w tanh(x' w'): what is packed in w lies `distance` apart."""
    row = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < n
    x = widen(tl.load(x_ptr + row * 2 * n + columns, mask=mask, other=0.0))
    z = widen(tl.load(x_ptr + row * 2 * n + n + columns, mask=mask, other=0.0))
    x *= widen(tl.load(w_ptr + columns, mask=mask, other=0.0))
    z *= widen(tl.load(w_ptr + distance + columns, mask=mask, other=0.0))
    tl.store(y_ptr + row * n + columns, x * tanh(z), mask=mask)


def packed(kernel, x, w, distance, BLOCK=16):
    """x: (rows, 2 n), w: (distance + n,)"""
    rows, n = x.shape[0], x.shape[1] // 2
    y = poisoned((rows, n), x)
    kernel[(rows, triton.cdiv(n, BLOCK))](x, w, y, n, distance, BLOCK=BLOCK)
    return y


def packed_reference(x, w, distance, BLOCK=16):
    x, z = x.chunk(2, dim=1)
    n = x.shape[1]
    return x * w[:n] * torch.tanh(z * w[distance : distance + n])
