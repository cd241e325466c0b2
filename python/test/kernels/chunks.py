"""Chunks of sequences, the last of which is shorter: masks are bounds by the smaller of two."""

import torch
import triton
import triton.language as tl

from .common import poisoned, precision_of, widen

# How a program tells which lanes are in its chunk and in the sequence.
BOUNDS = ("minimum", "wide", "both", "shifted", "maximum", "chosen")


@triton.jit
def chunk_rows_kernel(
    x_ptr, w_ptr, y_ptr, length, chunk, columns, BOUND: tl.constexpr, BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """y = sin(x) w, a chunk of a sequence at a time."""
    batch = tl.program_id(0)
    number = tl.program_id(1)
    if BOUND == "wide":
        number = number.to(tl.int64)
    rows = tl.arange(0, BLOCK)
    lanes = tl.arange(0, COLUMNS)
    first = batch * length + number * chunk
    if BOUND == "both":
        mask = (rows < chunk) & (number * chunk + rows < length)
    elif BOUND == "shifted":
        mask = rows + 3 < min(chunk, length - number * chunk) + 3
    elif BOUND == "maximum":
        mask = max(number * chunk - length, -chunk) < -rows
    elif BOUND == "chosen":
        left = length - number * chunk
        mask = rows < tl.where(left < chunk, left, chunk)
    else:
        mask = rows < min(chunk, length - number * chunk)
    mask = mask[:, None] & (lanes < columns)[None, :]
    places = (first + rows[:, None]) * columns + lanes[None, :]
    x = widen(tl.load(x_ptr + places, mask=mask, other=0.0))
    w = widen(tl.load(w_ptr + lanes, mask=lanes < columns, other=0.0))
    tl.store(y_ptr + places, tl.sin(x) * w[None, :], mask=mask)


def chunk_rows(kernel, x, w, chunk, bound):
    """x: (batch, length, columns)"""
    batch, length, columns = x.shape
    y = poisoned(x.shape, x)
    kernel[(batch, triton.cdiv(length, chunk))](
        x, w, y, length, chunk, columns, BOUND=bound, BLOCK=triton.next_power_of_2(chunk),
        COLUMNS=triton.next_power_of_2(columns),
    )  # fmt: skip
    return y


def chunk_rows_reference(x, w, chunk, bound):
    return x.sin() * w


@triton.jit
def chunk_products_kernel(
    c_ptr, b_ptr, decay_ptr, out_ptr, length, chunk, dim, groups, CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """out[m, n] = (decay[m] + Σ c[m, k] b[n, k]) of all pairs of rows of a chunk, tile by tile.

    Chunks and groups share an axis of the grid, rows and columns of tiles another one. If it is
    `CAUSAL`, pairs with n > m are left out.
    """
    batch = tl.program_id(1)
    number = tl.program_id(2) // groups
    group = tl.program_id(2) - number * groups
    tiles = tl.cdiv(chunk, BLOCK)
    tile_m, tile_n = tl.program_id(0) // tiles, tl.program_id(0) % tiles
    rows = tile_m * BLOCK + tl.arange(0, BLOCK)
    others = tile_n * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, BLOCK_K)
    start = (batch * length + number * chunk) * groups * dim + group * dim
    limit = min(chunk, length - number * chunk)
    c_ptrs = c_ptr + start + rows[:, None] * groups * dim + inner[None, :]
    b_ptrs = b_ptr + start + inner[:, None] + others[None, :] * groups * dim
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, tl.cdiv(dim, BLOCK_K)):
        left = dim - k * BLOCK_K
        c = tl.load(c_ptrs, mask=(rows[:, None] < limit) & (inner[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(inner[:, None] < left) & (others[None, :] < limit), other=0.0)
        acc = tl.dot(c, b, acc, input_precision=PRECISION)
        c_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    chunks = tl.num_programs(2) // groups
    place = (batch * chunks + number) * groups + group
    decay = tl.load(decay_ptr + place * chunk + rows, mask=rows < chunk, other=0.0)
    acc += widen(decay)[:, None]
    if CAUSAL:
        acc = tl.where(rows[:, None] >= others[None, :], acc, 0.0)
    places = (place * chunk + rows[:, None]) * chunk + others[None, :]
    mask = (rows < chunk)[:, None] & (others < chunk)[None, :]
    tl.store(out_ptr + places, acc.to(out_ptr.dtype.element_ty), mask=mask)


def chunk_products(kernel, c, b, decay, causal, BLOCK=16):
    """c, b: (batch, length, groups, dim); decay: (batch, chunks, groups, chunk)"""
    (batch, length, groups, dim), (_, chunks, _, chunk) = c.shape, decay.shape
    out = poisoned((batch, chunks, groups, chunk, chunk), c)
    tiles = triton.cdiv(chunk, BLOCK)
    kernel[(tiles * tiles, batch, chunks * groups)](
        c, b, decay, out, length, chunk, dim, groups, CAUSAL=causal, PRECISION=precision_of(c),
        BLOCK=BLOCK, BLOCK_K=16,
    )  # fmt: skip
    return out


def chunk_products_reference(c, b, decay, causal, BLOCK=16):
    batch, length, groups, dim = c.shape
    chunks, chunk = decay.shape[1], decay.shape[3]

    def split(x):
        padded = torch.nn.functional.pad(x, (0, 0, 0, 0, 0, chunks * chunk - length))
        return padded.view(batch, chunks, chunk, groups, dim).transpose(2, 3)

    out = split(c) @ split(b).mT + decay[..., None]
    return out.tril() if causal else out
