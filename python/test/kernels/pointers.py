"""Pointers that selects, branches and loops choose among arguments, and odd address arithmetic."""

import triton
import triton.language as tl

from .common import poisoned


@triton.jit
def branch_kernel(x, z, y, n, which, BLOCK: tl.constexpr):
    """A branch with an effect of its own chooses the tensor and an offset into it."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    p = x
    if which > 0:
        tl.store(y + n + tl.program_id(0), 1.0)
        p = z + 1
    v = tl.load(p + i, mask=i < n)
    tl.store(y + i, v * v, mask=i < n)


def branch(kernel, x, z, which):
    n = x.numel() - 1
    blocks = triton.cdiv(n, 16)
    y = x.new_full((n + blocks,), float("nan"))
    kernel[(blocks,)](x, z, y, n, which, BLOCK=16)
    return y[:n]


def branch_reference(x, z, which):
    return z[1:] ** 2 + 0 * x.sum() if which > 0 else x[:-1] ** 2 + 0 * z.sum()


@triton.jit
def select_kernel(x, z, w, y, n, BLOCK: tl.constexpr):
    """Each lane has its own tensor; every third lane reads w."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    p = tl.where(i % 3 == 0, x + i, z + i)
    p = tl.where(i % 3 == 1, w + i % 7, p)
    v = tl.load(p, mask=i < n)
    tl.store(y + i, v * v * v, mask=i < n)


def select(kernel, x, z, w):
    n = x.numel()
    y = poisoned((n,), x)
    kernel[(triton.cdiv(n, 32),)](x, z, w, y, n, BLOCK=32)
    return y


def select_reference(x, z, w):
    i = range_like(x)
    return (x * (i % 3 == 0) + z * (i % 3 == 2) + w[i % 7] * (i % 3 == 1)) ** 3


def range_like(x):
    """0, 1, … for the elements of `x`."""
    return x.new_ones(x.numel()).cumsum(0).long() - 1


@triton.jit
def swap_kernel(x, z, y, rows, n, BLOCK: tl.constexpr):
    """Rows of x and z in turn, through pointers that a loop swaps."""
    i = tl.arange(0, BLOCK)
    p, q = x, z
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for _ in range(rows):
        v = tl.load(p + i, mask=i < n, other=0.0)
        total += v * v
        p, q = q + n, p
    tl.store(y + i, total, mask=i < n)


def swap(kernel, x, z):
    rows, n = x.shape
    y = poisoned((n,), x)
    kernel[(1,)](x, z, y, rows, n, BLOCK=triton.next_power_of_2(n))
    return y


def swap_reference(x, z):
    rows, n = x.shape
    total = x.new_zeros(n)
    p, q = (x, 0), (z, 0)
    for _ in range(rows):
        total = total + p[0][p[1]] ** 2
        p, q = (q[0], q[1] + 1), p
    return total


@triton.jit
def output_kernel(x, y, z, n, BLOCK: tl.constexpr):
    """Lanes are stored to one of two outputs, which a branch turns around in odd programs."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    first, second = y, z
    if tl.program_id(0) % 2 == 1:
        first, second = z, y
    tl.store(tl.where(i % 2 == 0, first + i, second + i), v * v, mask=i < n)


def output(kernel, x):
    n = x.numel()
    y, z = x.new_zeros(n), x.new_zeros(n)
    kernel[(triton.cdiv(n, 8),)](x, y, z, n, BLOCK=8)
    return y, z


def output_reference(x):
    i = range_like(x)
    first = (i % 2 == 0) == (i // 8 % 2 == 0)
    return x * x * first, x * x * ~first


@triton.jit
def jump_kernel(x, steps, y, n, BLOCK: tl.constexpr):
    """A tile of pointers that jumps by loaded distances in a counted loop."""
    i = tl.arange(0, BLOCK)
    p = x + i
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for k in range(n):
        v = tl.load(p)
        total += tl.sin(v) * v
        p += tl.load(steps + k)
    tl.store(y + i, total)


def jump(kernel, x, steps):
    y = poisoned((8,), x)
    kernel[(1,)](x, steps, y, steps.numel(), BLOCK=8)
    return y


def jump_reference(x, steps):
    places = (steps.long().cumsum(0) - steps.long())[:, None] + range_like(x)[:8]
    return (x[places].sin() * x[places]).sum(0)


@triton.jit
def odd_index_kernel(x, y, n, BLOCK: tl.constexpr):
    """Indices that are no sums: squares, quotients, remainders; many lanes share an element."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i * i % n) * tl.load(x + i // 3) + tl.load(x + (n - 1 - i % n))
    tl.store(y + i, v, mask=i < n)


def odd_index(kernel, x):
    n = x.numel()
    y = poisoned((n,), x)
    kernel[(triton.cdiv(n, 16),)](x, y, n, BLOCK=16)
    return y


def odd_index_reference(x):
    i, n = range_like(x), x.numel()
    return x[i * i % n] * x[i // 3] + x[n - 1 - i]


@triton.jit
def table_kernel(table, x, y, n, BLOCK: tl.constexpr):
    """One of the factors is reached through a pointer in memory."""
    i = tl.arange(0, BLOCK)
    a = tl.load(table).to(tl.pointer_type(tl.float32))
    v = tl.load(a + i, mask=i < n) * tl.load(x + i, mask=i < n)
    tl.store(y + i, v, mask=i < n)


@triton.jit
def index_table_kernel(table, x, y, n, BLOCK: tl.constexpr):
    """Indices are reached through a pointer in memory; floats are not."""
    i = tl.arange(0, BLOCK)
    rows = tl.load(table).to(tl.pointer_type(tl.int32))
    v = tl.load(x + tl.load(rows + i, mask=i < n, other=0), mask=i < n)
    tl.store(y + i, v * v, mask=i < n)


@triton.jit
def block_pointer_kernel(x, y, M, N, s, BM: tl.constexpr, BN: tl.constexpr):
    """y = sin(x)·x by block pointers that advance along the rows."""
    start = tl.program_id(0) * BM
    p = tl.make_block_ptr(x, (M, N), (s, 1), (start, 0), (BM, BN), (1, 0))
    q = tl.make_block_ptr(y, (M, N), (s, 1), (start, 0), (BM, BN), (1, 0))
    for _ in range(0, N, BN):
        v = tl.load(p, boundary_check=(0, 1), padding_option="zero")
        tl.store(q, tl.sin(v) * v, boundary_check=(0, 1))
        p = tl.advance(p, (0, BN))
        q = tl.advance(q, (0, BN))


def block_pointer(kernel, x):
    y = poisoned(x.shape, x)
    M, N = x.shape
    kernel[(triton.cdiv(M, 8),)](x, y, M, N, x.stride(0), BM=8, BN=16)
    return y


@triton.jit
def tail_kernel(x, y, n, s, BLOCK: tl.constexpr):
    """Whole blocks of a row, then one with a mask where the pointers have stopped."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    p, q = x + row * s + i, y + row
    total = tl.zeros((BLOCK,), x.dtype.element_ty)
    whole = n // BLOCK * BLOCK
    for _ in range(0, whole, BLOCK):
        v = tl.load(p)
        total += tl.sin(v) * v
        p += BLOCK
        q += 0
    left = i < n - whole
    v = tl.load(p, mask=left, other=0.0)
    tl.store(q, tl.sum(total) + tl.sum(tl.where(left, v * v * v, 0.0)))


def tail(kernel, x, BLOCK=16):
    y = poisoned((x.shape[0],), x)
    kernel[(x.shape[0],)](x, y, x.shape[1], x.stride(0), BLOCK=BLOCK)
    return y


def tail_reference(x, BLOCK=16):
    whole = x.shape[1] // BLOCK * BLOCK
    head, rest = x[:, :whole], x[:, whole:]
    return (head.sin() * head).sum(1) + (rest**3).sum(1)
