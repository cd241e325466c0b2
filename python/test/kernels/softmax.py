"""Softmax and its logarithm, one row a program."""

import torch
import triton
import triton.language as tl

from .common import poisoned, widen


@triton.jit
def softmax_kernel(y_ptr, x_ptr, stride_x, stride_y, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    x = widen(tl.load(x_ptr + row * stride_x + columns, mask=mask, other=-float("inf")))
    numerator = tl.exp(x - tl.max(x, axis=0))
    y = numerator / tl.sum(numerator, axis=0)
    tl.store(y_ptr + row * stride_y + columns, y, mask=mask)


@triton.jit
def log_softmax_kernel(y_ptr, x_ptr, stride_x, stride_y, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    x = widen(tl.load(x_ptr + row * stride_x + columns, mask=mask, other=-float("inf")))
    shifted = x - tl.max(x, axis=0)
    y = shifted - tl.log(tl.sum(tl.exp(shifted), axis=0))
    tl.store(y_ptr + row * stride_y + columns, y, mask=mask)


@triton.jit
def persistent_softmax_kernel(
    y_ptr, x_ptr, stride_x, stride_y, n_rows, n_columns, BLOCK: tl.constexpr
):
    """Few programs that walk over the rows."""
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0)):
        columns = tl.arange(0, BLOCK)
        mask = columns < n_columns
        x = widen(tl.load(x_ptr + row * stride_x + columns, mask=mask, other=-float("inf")))
        numerator = tl.exp(x - tl.max(x, axis=0))
        y = numerator / tl.sum(numerator, axis=0)
        tl.store(y_ptr + row * stride_y + columns, y, mask=mask)


def rowwise(kernel, x):
    rows, columns = x.shape
    y = poisoned(x.shape, x)
    kernel[(rows,)](y, x, x.stride(0), y.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y


def persistent(kernel, x, programs=3):
    rows, columns = x.shape
    y = poisoned(x.shape, x)
    kernel[(min(programs, rows),)](
        y, x, x.stride(0), y.stride(0), rows, columns, BLOCK=triton.next_power_of_2(columns)
    )
    return y


def softmax_reference(x):
    return torch.softmax(x, dim=-1)


def log_softmax_reference(x):
    return torch.log_softmax(x, dim=-1)
