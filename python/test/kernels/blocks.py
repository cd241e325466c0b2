"""Blocks of rows that share weights."""

import triton
import triton.language as tl

from .common import poisoned, widen


@triton.jit
def scaled_blocks_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """y = w x + b for blocks of rows, which share a scale and a shift of each column."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    w = widen(tl.load(w_ptr + j, mask=j < columns, other=0.0))
    b = widen(tl.load(b_ptr + j, mask=j < columns, other=0.0))
    mask = (i < rows) & (j < columns)[None, :]
    x = widen(tl.load(x_ptr + i * columns + j[None, :], mask=mask, other=0.0))
    tl.store(y_ptr + i * columns + j[None, :], w[None, :] * x + b[None, :], mask=mask)


def scaled_blocks(kernel, x, w, b, ROWS=4, COLUMNS=16):
    """x: (rows, columns), w and b: (columns,)"""
    rows, columns = x.shape
    y = poisoned(x.shape, x)
    grid = triton.cdiv(rows, ROWS), triton.cdiv(columns, COLUMNS)
    kernel[grid](x, w, b, y, rows, columns, ROWS=ROWS, COLUMNS=COLUMNS)
    return y


def scaled_blocks_reference(x, w, b, ROWS=4, COLUMNS=16):
    return x * w + b
