"""Outputs of which only some may have a gradient."""

import torch
import triton
import triton.language as tl

from .common import poisoned


@triton.jit
def two_kernel(x_ptr, w_ptr, y_ptr, z_ptr, count_ptr, n, BLOCK: tl.constexpr):
    """y = softmax(x) of a row per program; z is its maximum times w, and an integer counts."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + column, mask=column < n, other=-float("inf"))
    w = tl.load(w_ptr + row)
    largest = tl.max(3.0 * x, 0)
    e = tl.exp(3.0 * x - largest)
    tl.store(y_ptr + row * n + column, e / tl.sum(e, 0), mask=column < n)
    tl.store(z_ptr + row, largest * w)
    tl.store(count_ptr + row, tl.sum((3.0 * x == largest).to(tl.int32), 0))


def two(kernel, x, w, into=None):
    """x: (rows, n); w: (rows,). Returns y like x, and z like w, which may be a view `into` one."""
    rows, n = x.shape
    y = poisoned(x.shape, x)
    z = poisoned(w.shape, w) if into is None else into
    count = w.new_empty(w.shape, dtype=torch.int32)
    kernel[(rows,)](x, w, y, z, count, n, BLOCK=triton.next_power_of_2(n))
    return y, z


def two_reference(x, w):
    return (3 * x).softmax(1), (3 * x).amax(1) * w


@triton.jit
def scan_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    """y is the last of h' = sin(h) + x, taped; z sums all of their squares."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    width = tl.num_programs(0) * BLOCK
    h = tl.zeros((BLOCK,), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(n):
        h = tl.sin(h) + tl.load(x_ptr + i * width + lane)
        total += h * h
    tl.store(y_ptr + lane, h)
    tl.store(z_ptr + lane, total)


def scan(kernel, x, BLOCK=16):
    """x: (steps, width)."""
    n, width = x.shape
    y, z = poisoned((width,), x), poisoned((width,), x)
    kernel[(width // BLOCK,)](x, y, z, n, BLOCK=BLOCK)
    return y, z


def scan_reference(x):
    h = total = x.new_zeros(x.shape[1])
    for row in x:
        h = h.sin() + row
        total = total + h * h
    return h, total
