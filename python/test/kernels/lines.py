"""Kernels that go along a line of elements, and find rows, columns and channels by dividing."""

import torch
import triton
import triton.language as tl

from .common import poisoned, widen, with_output


@triton.jit
def line_kernel(
    x_ptr, b_ptr, c_ptr, y_ptr, n, channels, inner, volume, stride_row, stride_column,
    HOW: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """y = x · b[…] + c[…], where `HOW` says at which part of a position."""
    program = tl.program_id(0)
    if HOW == "wide":
        program = program.to(tl.int64)
    if HOW == "batches":
        x_ptr += tl.program_id(1) * n
        y_ptr += tl.program_id(1) * n
    lanes = tl.arange(0, BLOCK)
    p = program * BLOCK + lanes
    mask = p < n
    places = p
    other = p // channels
    if HOW == "rows":
        part = p // inner
        other = p % inner
    elif HOW == "channels":
        part = p // inner % channels
        other = p // (inner * channels)
    elif HOW == "nested":
        part = p % volume // inner
        other = p // volume
    elif HOW == "constants":
        part = p // 10 % 3
        other = p // 30
    elif HOW == "count":
        part = p % tl.num_programs(0)
        other = p // tl.num_programs(0)
    elif HOW == "subtracted":
        part = p - other * channels
    elif HOW == "strided":
        part = p % channels
        places = other * stride_row + part * stride_column
    else:
        part = p % channels
    kept = mask & (part != 1) if HOW == "left out" else mask
    if HOW == "unmasked":
        b, c = widen(tl.load(b_ptr + part)), widen(tl.load(c_ptr + other))
        tl.store(y_ptr + p, widen(tl.load(x_ptr + p)) * b + c)
    else:
        x = widen(tl.load(x_ptr + places, mask=mask, other=0.0))
        b = widen(tl.load(b_ptr + part, mask=kept, other=2.0))
        c = widen(tl.load(c_ptr + other, mask=mask, other=0.0))
        if HOW == "summed":
            x *= tl.sum(x)
        elif HOW == "lanes":
            x *= lanes
        elif HOW == "programs":
            x *= program
        if HOW == "in place":
            tl.store(x_ptr + p, x * b + c, mask=mask)
        elif HOW == "added":
            tl.atomic_add(y_ptr + p, x * b + c, mask=mask)
        elif HOW == "at its place":
            tl.store(y_ptr + p, tl.where(p < n - 5, x * b + c, x), mask=mask)
        else:
            tl.store(y_ptr + p, x * b + c, mask=mask)


@triton.jit
def line_loop_kernel(x_ptr, b_ptr, y_ptr, n, channels, BLOCK: tl.constexpr):
    """y = x · b[column], by few programs."""
    for tile in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        p = tile * BLOCK + tl.arange(0, BLOCK)
        b = tl.load(b_ptr + p % channels, mask=p < n)
        tl.store(y_ptr + p, tl.load(x_ptr + p, mask=p < n) * b, mask=p < n)


@triton.jit
def affine_kernel(
    x_ptr, scale_ptr, shift_ptr, y_ptr, n, channels, inner, BLOCK: tl.constexpr
):  # fmt: skip
    """y = x · scale[channel] + shift[channel]"""
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = p < n
    channel = p // inner % channels
    x = widen(tl.load(x_ptr + p, mask=mask))
    scale = widen(tl.load(scale_ptr + channel, mask=mask))
    shift = widen(tl.load(shift_ptr + channel, mask=mask))
    tl.store(y_ptr + p, x * scale + shift, mask=mask)


@triton.jit
def windows_kernel(
    x_ptr, y_ptr, height, width, rows, columns, n,
    STEP: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """y[c, i, j] = sum of (1 + a + 2 b) x[c, STEP i + a, STEP j + b]² for a and b below SIZE."""
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = p < n
    column, row, image = p % columns, p // columns % rows, p // (rows * columns)
    corner = x_ptr + image * height * width + STEP * row * width + STEP * column
    y = widen(tl.zeros((BLOCK,), x_ptr.dtype.element_ty))
    for a in tl.static_range(SIZE):
        for b in tl.static_range(SIZE):
            x = widen(tl.load(corner + a * width + b, mask=mask, other=0.0))
            y += (1 + a + 2 * b) * x * x
    tl.store(y_ptr + p, y, mask=mask)


@triton.jit
def dropped_kernel(x_ptr, b_ptr, y_ptr, n, channels, seed, BLOCK: tl.constexpr):
    """y = 2 (x + b[column]) where a random number keeps it."""
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = p < n
    x = widen(tl.load(x_ptr + p, mask=mask)) + widen(tl.load(b_ptr + p % channels, mask=mask))
    tl.store(y_ptr + p, tl.where(tl.rand(seed, p) < 0.5, 2 * x, 0.0), mask=mask)


def line(kernel, x, b, c, how="", BLOCK=64, most=None):
    """x: (…, channels), or (batch, channels, inner) for rows, channels and nested.

    b is indexed by the column, or by the row (how = "rows") or channel; c by what is left. At most
    `most` elements are processed.
    """
    x, y = with_output(x, how)
    n = x.numel() if most is None else most
    batches = 1
    if how == "batches":
        batches = x.shape[0]
        n //= batches
    channels = x.shape[1] if how in ("channels", "nested") else x.shape[-1]
    inner = x.shape[-1]
    row, column = x.stride()[-2:]
    grid = (triton.cdiv(n, BLOCK), batches)
    kernel[grid](
        x, b, c, y, n, channels, inner, channels * inner, row, column, HOW=how, BLOCK=BLOCK
    )
    return y if most is None else y.reshape(-1)[:most]


def line_loop(kernel, x, b, BLOCK=64):
    y = poisoned(x.shape, x)
    kernel[(3,)](x, b, y, x.numel(), x.shape[-1], BLOCK=BLOCK)
    return y


def _places(length, step, size):
    """How many windows of a size there are in steps."""
    return (length - size) // step + 1


def windows(kernel, x, step, size, BLOCK=64):
    """x: (images, height, width)"""
    images, height, width = x.shape
    rows, columns = _places(height, step, size), _places(width, step, size)
    y = poisoned((images, rows, columns), x)
    n = y.numel()
    kernel[(triton.cdiv(n, BLOCK),)](
        x, y, height, width, rows, columns, n, STEP=step, SIZE=size, BLOCK=BLOCK
    )
    return y


def windows_reference(x, step, size, BLOCK=64):
    rows, columns = (_places(length, step, size) for length in x.shape[1:])
    return sum(
        (1 + a + 2 * b) * x[:, a::step, b::step][:, :rows, :columns].square()
        for a in range(size)
        for b in range(size)
    )


def dropped(kernel, x, b, seed, BLOCK=64):
    y = poisoned(x.shape, x)
    grid = (triton.cdiv(x.numel(), BLOCK),)
    kernel[grid](x, b, y, x.numel(), x.shape[-1], seed, BLOCK=BLOCK)
    return y


def affine(kernel, x, scale, shift, BLOCK=64):
    """x: (batch, channels, …)"""
    y = poisoned(x.shape, x)
    inner = x.stride(1)
    grid = (triton.cdiv(x.numel(), BLOCK),)
    kernel[grid](x, scale, shift, y, x.numel(), x.shape[1], inner, BLOCK=BLOCK)
    return y


def affine_reference(x, scale, shift):
    shape = (-1, *[1] * (x.dim() - 2))
    return x * scale.view(shape) + shift.view(shape)


def line_reference(x, b, c, how="", BLOCK=64, most=None):
    if how in ("channels", "nested", "constants"):
        y = x * b[:, None] + c[:, None, None]
    elif how == "rows":
        y = x * b.view(*x.shape[:-1], 1) + c
    elif how == "left out":
        there = torch.arange(x.shape[-1], device=x.device) != 1
        y = x * torch.where(there, b, 2.0) + c[:, None]
    elif how == "summed":
        length = -(-x.numel() // BLOCK) * BLOCK
        tiles = torch.nn.functional.pad(x.reshape(-1), (0, length - x.numel())).view(-1, BLOCK)
        sums = tiles.sum(1, keepdim=True).expand(-1, BLOCK).reshape(-1)[: x.numel()]
        y = x * sums.view_as(x) * b + c[:, None]
    elif how in ("lanes", "programs"):
        p = torch.arange(x.numel(), device=x.device).view_as(x)
        y = x * (p % BLOCK if how == "lanes" else p // BLOCK) * b + c[:, None]
    else:
        y = x * b + c[:, None]
    if how == "at its place":
        y = torch.where(torch.arange(x.numel(), device=x.device).view_as(x) < x.numel() - 5, y, x)
    return y if most is None else y.reshape(-1)[:most]
