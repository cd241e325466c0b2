"""Rows of which only the first ones have weights."""

import torch
import triton
import triton.language as tl

from .common import poisoned


@triton.jit
def few_programs_kernel(x_ptr, w_ptr, y_ptr, n, last, HOW: tl.constexpr, BLOCK: tl.constexpr):
    """Rows are multiplied by weights that only the first programs load."""
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < n
    x = tl.load(x_ptr + row * n + lanes, mask=mask, other=0.0)
    if HOW == "equal":
        w = tl.load(w_ptr + lanes, mask=mask & (row == 0), other=1.0)
    elif HOW == "less":
        w = tl.load(w_ptr + lanes, mask=mask & (row < last), other=1.0)
    else:
        w = tl.full((BLOCK,), 1.0, tl.float32)
        if row == 0:
            w = tl.load(w_ptr + lanes, mask=mask, other=0.0)
    tl.store(y_ptr + row * n + lanes, x * w, mask=mask)


def few_programs(kernel, x, w, how, last=1):
    rows, n = x.shape
    y = poisoned(x.shape, x)
    kernel[(rows,)](x, w, y, n, last, HOW=how, BLOCK=triton.next_power_of_2(n))
    return y


def few_programs_reference(x, w, how, last=1):
    return torch.cat([x[:last] * w, x[last:]])


@triton.jit
def first_tiles_kernel(x_ptr, y_ptr, n, last, HOW: tl.constexpr, BLOCK: tl.constexpr):
    """x² of a line, of which only the first programs load their tiles: y is one elsewhere."""
    tile = tl.program_id(0)
    places = tile * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    x = tl.full((BLOCK,), 1.0, tl.float32)
    if HOW == "after":
        x = tl.load(x_ptr + places, mask=mask & (tile < last), other=1.0)
    elif HOW == "before":
        x = tl.load(x_ptr + places, mask=(tile < last) & mask, other=1.0)
    elif HOW == "first":
        x = tl.load(x_ptr + places, mask=mask & (tile == 0), other=1.0)
    else:
        if tile < last:
            x = tl.load(x_ptr + places, mask=mask, other=1.0)
    tl.store(y_ptr + places, x * x, mask=mask)


def first_tiles(kernel, x, how, last=1, BLOCK=16):
    y = poisoned(x.shape, x)
    kernel[(triton.cdiv(len(x), BLOCK),)](x, y, len(x), last, HOW=how, BLOCK=BLOCK)
    return y


def first_tiles_reference(x, how, last=1, BLOCK=16):
    loaded = torch.arange(len(x), device=x.device) < last * BLOCK
    return torch.where(loaded, x * x, 1)


@triton.jit
def history_kernel(x_ptr, y_ptr, before, columns, HOW: tl.constexpr, BLOCK: tl.constexpr):
    """The sum of squares of a row of x and of the `before` rows before it, of those from `before`
    on: in the others, the loop's number is below zero."""
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    mask = lane < columns
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(row - before, row + 1):
        place = (i + before) * columns + lane
        if HOW == "branch":
            if i >= 0:
                x = tl.load(x_ptr + place, mask=mask, other=0.0)
                total += x * x
        else:
            seen = i >= 0 if HOW == "mask" else i > -1
            x = tl.load(x_ptr + place, mask=mask & seen, other=0.0)
            total += x * x
    tl.store(y_ptr + row * columns + lane, total, mask=mask)


def history(kernel, x, before, how):
    """`x` is a matrix of more than `before` rows."""
    n, columns = x.shape[0] - before, x.shape[1]
    y = poisoned((n, columns), x)
    BLOCK = triton.next_power_of_2(columns)
    kernel[(n,)](x, y, before, columns, HOW=how, BLOCK=BLOCK)
    return y


def history_reference(x, before, how):
    squares = torch.cat([torch.zeros_like(x[:before]), x[before:] * x[before:]])
    return torch.stack([squares[i : i + before + 1].sum(0) for i in range(len(x) - before)])
