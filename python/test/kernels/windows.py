"""Lanes that load at several distances from their position: convolutions, stencils, pooling."""

import torch
import triton
import triton.language as tl

from .common import poisoned, tanh, widen


@triton.jit
def taps_kernel(
    x_ptr, w_ptr, y_ptr, times, channels, FIRST: tl.constexpr, HOW: tl.constexpr,
    TAPS: tl.constexpr, TIMES: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """y[b, t, c] = tanh(sum over k of w[c, k] x[b, t + FIRST + k, c]), of the times that exist.

    HOW "linear" leaves out the tanh, "lane" weighs what each program's lanes compute, "program"
    what each program does, "sum" subtracts the mean over a program's times, and "hint" says that
    tiles of times are aligned.
    """
    t = tl.program_id(0) * TIMES + tl.arange(0, TIMES)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    start = tl.program_id(2) * times * channels
    if HOW == "hint":
        t = tl.multiple_of(t, TIMES)
    inside = (t < times)[:, None] & (c < channels)[None, :]
    z = widen(tl.zeros((TIMES, CHANNELS), x_ptr.dtype.element_ty))
    for k in tl.static_range(TAPS):
        s = t + (k + FIRST)
        mask = ((s >= 0) & (s < times))[:, None] & (c < channels)[None, :]
        x = tl.load(x_ptr + start + s[:, None] * channels + c[None, :], mask=mask, other=0.0)
        w = tl.load(w_ptr + c * TAPS + k, mask=c < channels, other=0.0)
        z += widen(x) * widen(w)[None, :]
    y = z if HOW == "linear" else tanh(z)
    if HOW == "lane":
        y *= (tl.arange(0, TIMES) % 3)[:, None] + 0.5
    if HOW == "program":
        y *= tl.program_id(0) % 3 + 0.5
    if HOW == "sum":
        y -= (tl.sum(tl.where(inside, y, 0.0), 0) / TIMES)[None, :]
    tl.store(y_ptr + start + t[:, None] * channels + c[None, :], y, mask=inside)


def taps(kernel, x, w, first, how="", TIMES=16, CHANNELS=8):
    """x: (batch, times, channels), w: (channels, taps)"""
    batch, times, channels = x.shape
    y = poisoned(x.shape, x)
    grid = triton.cdiv(times, TIMES), triton.cdiv(channels, CHANNELS), batch
    kernel[grid](
        x,
        w,
        y,
        times,
        channels,
        FIRST=first,
        HOW=how,
        TAPS=w.shape[1],
        TIMES=TIMES,
        CHANNELS=CHANNELS,
    )
    return y


def taps_reference(x, w, first, how="", TIMES=16, CHANNELS=8):
    times, count = x.shape[1], w.shape[1]
    before, after = max(0, -first), max(0, first + count - 1)
    padded = torch.nn.functional.pad(x, (0, 0, before, after))[:, max(0, first) :]
    z = sum(padded[:, k : k + times] * w[:, k] for k in range(count))
    y = z if how == "linear" else torch.tanh(z)
    place = torch.arange(times, device=x.device)
    if how == "lane":
        y = y * (place % TIMES % 3 + 0.5)[:, None]
    if how == "program":
        y = y * (place // TIMES % 3 + 0.5)[:, None]
    if how == "sum":
        parts = [part - part.sum(1, keepdim=True) / TIMES for part in y.split(TIMES, 1)]
        y = torch.cat(parts, 1)
    return y


@triton.jit
def stencil_kernel(
    x_ptr, y_ptr, rows, columns, REACH: tl.constexpr, STEP: tl.constexpr, BLOCK: tl.constexpr
):
    """One row for each program: products and sines of pixels and their neighbours.

    y[i, j] = x[i, j] x[i + STEP, j] + sin(x[i, j - REACH]) x[i - STEP, j + REACH], where all exist.
    """
    i = tl.program_id(0)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    here = x_ptr + i * columns + j
    mask = (i >= STEP) & (i < rows - STEP) & (j >= REACH) & (j < columns - REACH)
    middle = widen(tl.load(here, mask=mask, other=0.0))
    below = widen(tl.load(here + STEP * columns, mask=mask, other=0.0))
    left = widen(tl.load(here - REACH, mask=mask, other=0.0))
    above = widen(tl.load(here - STEP * columns + REACH, mask=mask, other=0.0))
    y = middle * below + tl.sin(left) * above
    tl.store(y_ptr + i * columns + j, y, mask=j < columns)


def stencil(kernel, x, reach=1, step=1, BLOCK=16):
    rows, columns = x.shape
    y = poisoned(x.shape, x)
    kernel[(rows, triton.cdiv(columns, BLOCK))](
        x, y, rows, columns, REACH=reach, STEP=step, BLOCK=BLOCK
    )
    return y


def stencil_reference(x, reach=1, step=1, BLOCK=16):
    rows, columns = x.shape

    def moved(down, right):
        return x[step + down : rows - step + down, reach + right : columns - reach + right]

    y = moved(0, 0) * moved(step, 0) + moved(0, -reach).sin() * moved(-step, reach)
    return torch.nn.functional.pad(y, (reach, reach, step, step))


@triton.jit
def scalar_kernel(x_ptr, y_ptr):
    """One element for each program: y[i] = tanh(sum over k of x[i - k] / (k + 1)), of five."""
    i = tl.program_id(0)
    z = widen(tl.load(x_ptr + i))
    for k in tl.static_range(1, 5):
        z += widen(tl.load(x_ptr + i - k, mask=i >= k, other=0.0)) / (k + 1)
    tl.store(y_ptr + i, tanh(z))


def scalar(kernel, x):
    y = poisoned(x.shape, x)
    kernel[x.shape](x, y)
    return y


def scalar_reference(x):
    padded = torch.nn.functional.pad(x, (4, 0))
    return torch.tanh(sum(padded[4 - k : 4 - k + len(x)] / (k + 1) for k in range(5)))


@triton.jit
def thirds_kernel(x_ptr, y_ptr, THIRD: tl.constexpr, BLOCK: tl.constexpr):
    """y[i, j] = x[i, j] x[i, THIRD + j]: no element is in both, and a third in none."""
    i = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    y = tl.full((BLOCK,), 1.0, x_ptr.dtype.element_ty)
    for part in tl.static_range(2):
        y *= tl.load(x_ptr + (3 * i + part) * THIRD + j, mask=j < THIRD, other=0.0)
    tl.store(y_ptr + i * THIRD + j, y, mask=j < THIRD)


def thirds(kernel, x):
    """x: (rows, 3 thirds)"""
    third = x.shape[1] // 3
    y = poisoned((x.shape[0], third), x)
    kernel[(x.shape[0],)](x, y, THIRD=third, BLOCK=triton.next_power_of_2(third))
    return y


def thirds_reference(x):
    a, b, _ = x.chunk(3, 1)
    return a * b


@triton.jit
def maxima_kernel(
    x_ptr, y_ptr, height, width, rows, columns, n, STEP: tl.constexpr, BLOCK: tl.constexpr
):
    """The maxima of windows of 3 by 3 pixels in steps; the first ones begin before the image."""
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column, row, image = p % columns, p // columns % rows, p // (rows * columns)
    y = widen(tl.full((BLOCK,), float("-inf"), x_ptr.dtype.element_ty))
    for a in tl.static_range(3):
        for b in tl.static_range(3):
            i, j = STEP * row + a - 1, STEP * column + b - 1
            mask = (p < n) & (i >= 0) & (i < height) & (j >= 0) & (j < width)
            at = x_ptr + image * height * width + i * width + j
            y = tl.maximum(y, widen(tl.load(at, mask=mask, other=float("-inf"))))
    tl.store(y_ptr + p, y, mask=p < n)


def maxima(kernel, x, step, BLOCK=64):
    """x: (images, height, width)"""
    images, height, width = x.shape
    rows, columns = (height - 1) // step + 1, (width - 1) // step + 1
    y = poisoned((images, rows, columns), x)
    n = y.numel()
    kernel[(triton.cdiv(n, BLOCK),)](x, y, height, width, rows, columns, n, STEP=step, BLOCK=BLOCK)
    return y


def maxima_reference(x, step, BLOCK=64):
    return torch.nn.functional.max_pool2d(x[None], 3, step, 1)[0]
