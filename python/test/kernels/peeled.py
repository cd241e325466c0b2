"""Loops whose first iterations stand in front of them."""

import torch
import triton
import triton.language as tl

from .common import poisoned


@triton.jit
def recurrence_kernel(x_ptr, y_ptr, steps, width, BLOCK: tl.constexpr, FIRST: tl.constexpr):
    """h' = sin(h) + x over rows, of which FIRST come before the loop; all h are stored."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    seen = lane < width
    h = tl.load(x_ptr + lane, mask=seen, other=0.0)
    tl.store(y_ptr + lane, h, mask=seen)
    if FIRST == 2:
        h = tl.sin(h) + tl.load(x_ptr + width + lane, mask=seen, other=0.0)
        tl.store(y_ptr + width + lane, h, mask=seen)
    for t in range(FIRST, steps):
        h = tl.sin(h) + tl.load(x_ptr + t * width + lane, mask=seen, other=0.0)
        tl.store(y_ptr + t * width + lane, h, mask=seen)


def recurrence(kernel, x, first=1, BLOCK=16):
    """x: (steps, width), with at least `first` steps."""
    steps, width = x.shape
    y = poisoned(x.shape, x)
    kernel[(triton.cdiv(width, BLOCK),)](x, y, steps, width, BLOCK=BLOCK, FIRST=first)
    return y


def recurrence_reference(x, first=1):
    rows = [x[0]]
    for row in x[1:]:
        rows.append(rows[-1].sin() + row)
    return torch.stack(rows)


@triton.jit
def blocks_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, GAP: tl.constexpr):
    """A row's first block alone, then the others, GAP elements further on."""
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    total = tl.sin(tl.load(x_ptr + row * n + lane, mask=lane < n, other=0.0))
    for first in range(BLOCK, n, BLOCK):
        place = first + GAP + lane
        total += tl.load(x_ptr + row * n + place, mask=place < n, other=0.0) * first
    tl.store(y_ptr + row * BLOCK + lane, total)


def blocks(kernel, x, gap=0, BLOCK=16):
    """x: (rows, n)."""
    rows, n = x.shape
    y = poisoned((rows, BLOCK), x)
    kernel[(rows,)](x, y, n, BLOCK=BLOCK, GAP=gap)
    return y


def blocks_reference(x, gap=0, BLOCK=16):
    n = x.shape[1]
    padded = torch.nn.functional.pad(x, (0, 2 * BLOCK + gap))
    total = padded[:, :BLOCK].sin()
    for first in range(BLOCK, n, BLOCK):
        total = total + padded[:, first + gap : first + gap + BLOCK] * first
    return total
