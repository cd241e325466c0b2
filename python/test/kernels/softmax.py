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


@triton.jit
def two_maxima_kernel(x_ptr, a_ptr, y_ptr, BLOCK: tl.constexpr):
    """x / (1 + |log softmax(b)|) for rows b full of the maximum of a, which is theirs, too."""
    columns = tl.arange(0, BLOCK)
    places = tl.program_id(0) * BLOCK + columns
    b = tl.max(tl.load(a_ptr + places) * 1.5, 0) + tl.zeros((BLOCK,), tl.float32)
    maximum = tl.max(b, 0)
    logs = b - tl.log(tl.sum(tl.exp(b - maximum), 0)) - maximum
    tl.store(y_ptr + places, tl.load(x_ptr + places) / (1.0 + tl.abs(logs)))


def two_maxima(kernel, x, a):
    """x, a: (rows, columns), a power of two"""
    y = poisoned(x.shape, x)
    kernel[(x.shape[0],)](x, a, y, BLOCK=x.shape[1])
    return y


def two_maxima_reference(x, a):
    b = 1.5 * a.amax(1, keepdim=True).expand_as(a)
    return x / (1.0 + b.log_softmax(1).abs())
