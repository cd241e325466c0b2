"""Addresses that are loaded: many rows may be the same row of a table."""

import triton
import triton.language as tl

from .common import poisoned


@triton.jit
def embedding_kernel(index_ptr, table_ptr, out_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < n_columns
    index = tl.load(index_ptr + row)
    values = tl.load(table_ptr + index * n_columns + columns, mask=mask)
    tl.store(out_ptr + row * n_columns + columns, values, mask=mask)


def embedding(kernel, index, table, BLOCK=32):
    columns = table.shape[1]
    out = poisoned((index.numel(), columns), table)
    grid = (index.numel(), triton.cdiv(columns, BLOCK))
    kernel[grid](index, table, out, columns, BLOCK=BLOCK)
    return out


def embedding_reference(index, table):
    return table[index]


@triton.jit
def take_kernel(x_ptr, index_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Indices within one tile may repeat."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    index = tl.load(index_ptr + offsets, mask=mask, other=0)
    x = tl.load(x_ptr + index, mask=mask)
    tl.store(y_ptr + offsets, x * x, mask=mask)


def take(kernel, x, index, BLOCK=64):
    y = poisoned(index.shape, x)
    n = index.numel()
    kernel[(triton.cdiv(n, BLOCK),)](x, index, y, n, BLOCK=BLOCK)
    return y


def take_reference(x, index):
    return x[index] ** 2
