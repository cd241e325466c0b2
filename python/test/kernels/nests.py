"""Loops in every nest, with carried values of every type."""

import torch
import triton
import triton.language as tl

from .common import poisoned, tanh, widen


@triton.jit
def exits_kernel(x_ptr, y_ptr, n, mode, BLOCK: tl.constexpr):
    """Programs return early, before and after a loop; values pass through branches in it."""
    pid = tl.program_id(0)
    if pid >= n:
        return
    lane = tl.arange(0, BLOCK)
    a = tl.load(x_ptr + lane)
    b = tl.full((BLOCK,), 1.0, x_ptr.dtype.element_ty)
    flipped = False
    for i in range(pid, 7, 2):
        if i > 3:
            a, b = b, a * b + 0.25
            flipped = not flipped
        else:
            for j in range(i, 0, -1):
                a = tanh(a + b * j)
        if flipped:
            b = b * 0.5
    tl.store(y_ptr + pid * BLOCK + lane, a)
    if mode == 0:
        return
    for _ in range(mode):
        b = b * a + tl.sin(b)
    tl.store(y_ptr + (n + pid) * BLOCK + lane, b)


def exits(kernel, x, n, mode):
    y = torch.zeros((2 * n, x.numel()), dtype=x.dtype, device=x.device)
    kernel[(n + 2,)](x, y, n, mode, BLOCK=x.numel())
    return y


def exits_reference(x, n, mode):
    first, second = [], []
    for pid in range(n):
        a, b, flipped = x, torch.ones_like(x), False
        for i in range(pid, 7, 2):
            if i > 3:
                a, b, flipped = b, a * b + 0.25, not flipped
            else:
                for j in range(i, 0, -1):
                    a = torch.tanh(a + b * j)
            if flipped:
                b = b * 0.5
        first.append(a)
        for _ in range(mode):
            b = b * a + torch.sin(b)
        second.append(b if mode else torch.zeros_like(b))
    return torch.stack(first + second)


@triton.jit
def walk_kernel(x_ptr, y_ptr, n, steps, BLOCK: tl.constexpr):
    """A random walk: integer state (64 bits of a generator, an index, a sign) picks the floats."""
    pid = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    seed = pid.to(tl.int64) * 7919 + 12345
    row = pid
    even = pid % 2 == 0
    state = tl.load(x_ptr + row * BLOCK + lane)
    for _ in range(steps):
        seed = (seed * 1103515245 + 12345) % 2147483648
        row = (row + (seed // 65536).to(tl.int32)) % n
        x = tl.load(x_ptr + row * BLOCK + lane)
        if even:
            state = state * x
        else:
            state = tl.sin(state) + x
        even = (seed // 1024) % 3 == 0
    tl.store(y_ptr + pid * BLOCK + lane, state)


def walk(kernel, x, programs, steps):
    y = poisoned((programs, x.shape[1]), x)
    kernel[(programs,)](x, y, x.shape[0], steps, BLOCK=x.shape[1])
    return y


def walk_reference(x, programs, steps):
    results = []
    for pid in range(programs):
        seed, row, even = pid * 7919 + 12345, pid, pid % 2 == 0
        state = x[row]
        for _ in range(steps):
            seed = (seed * 1103515245 + 12345) % 2147483648
            row = (row + seed // 65536) % x.shape[0]
            state = state * x[row] if even else torch.sin(state) + x[row]
            even = (seed // 1024) % 3 == 0
        results.append(state)
    return torch.stack(results)


@triton.jit
def powers_kernel(a_ptr, y_ptr, steps, N: tl.constexpr):
    """A carried tile goes through dots; its transpose and a vector are carried, too."""
    rows = tl.arange(0, N)
    offsets = rows[:, None] * N + rows[None, :]
    a = tl.load(a_ptr + offsets)
    power = a
    trace = tl.zeros((N,), dtype=tl.float32)
    for _ in range(steps):
        power = tl.dot(power, a, input_precision="ieee") * 0.3
        power += tl.trans(power) * 0.1
        trace = trace * 0.5 + tl.sum(power * a, 0)
    tl.store(y_ptr + offsets, power * trace[None, :])


def powers(kernel, a, steps):
    y = poisoned(a.shape, a)
    kernel[(1,)](a, y, steps, N=a.shape[0])
    return y


def powers_reference(a, steps):
    power, trace = a, a.new_zeros(a.shape[0])
    for _ in range(steps):
        power = power @ a * 0.3
        power = power + power.T * 0.1
        trace = trace * 0.5 + (power * a).sum(0)
    return power * trace[None, :]


@triton.jit
def centered_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, SWAPPED: tl.constexpr):
    """y = (x - mean) tanh(x) of a square of blocks, read in one nest and then in another."""
    lanes = tl.program_id(0) * n * n * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), x_ptr.dtype.element_ty)
    for i in range(n):
        for j in range(n):
            total += tl.load(x_ptr + lanes + (i * n + j) * BLOCK)
    mean = tl.sum(total, 0) / (n * n * BLOCK)
    for i in range(n):
        for j in range(n):
            place = j * n + i if SWAPPED else i * n + j
            x = tl.load(x_ptr + lanes + place * BLOCK)
            tl.store(y_ptr + lanes + place * BLOCK, (x - mean) * tanh(x))


def centered(kernel, x, swapped):
    """x: (programs, n, n, BLOCK)"""
    y = poisoned(x.shape, x)
    kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=x.shape[3], SWAPPED=swapped)
    return y


def centered_reference(x, swapped):
    return (x - x.mean((1, 2, 3), keepdim=True)) * x.tanh()


@triton.jit
def affine_planes_kernel(
    x_ptr, s_ptr, t_ptr, y_ptr, planes, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr
):
    """y[k, i, j] = s x[k, i, j] + t[i] of the planes of each program."""
    pid = tl.program_id(0)
    s = widen(tl.load(s_ptr + pid))
    lane = tl.arange(0, COLS)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        t = widen(tl.load(t_ptr + pid * rows + row, mask=row < rows, other=0.0))
        for k in range(planes):
            for begin in range(0, cols, COLS):
                col = begin + lane
                at = ((pid * planes + k) * rows + row[:, None]) * cols + col[None, :]
                mask = (row < rows)[:, None] & (col < cols)[None, :]
                x = widen(tl.load(x_ptr + at, mask=mask, other=0.0))
                tl.store(y_ptr + at, s * x + t[:, None], mask=mask)


def affine_planes(kernel, x, s, t, ROWS=8, COLS=16):
    """x: (programs, planes, rows, columns), s: (programs,), t: (programs, rows)"""
    y = poisoned(x.shape, x)
    kernel[(len(x),)](x, s, t, y, *x.shape[1:], ROWS=ROWS, COLS=COLS)
    return y


def affine_planes_reference(x, s, t):
    return s[:, None, None, None] * x + t[:, None, :, None]
