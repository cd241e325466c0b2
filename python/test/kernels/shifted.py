"""Tensors at another place of the launch than its first: padded, one behind another, mirrored."""

import torch
import triton
import triton.language as tl

from .common import poisoned, widen


@triton.jit
def pad_kernel(
    x_ptr, y_ptr, rows, columns, above, left, height, width, BLOCK: tl.constexpr, HOW: tl.constexpr
):  # fmt: skip
    """A row of x, `above` and `left` of it padding, in blocks of an output's row."""
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at_row, at_column = row - above, column - left
    if HOW == "shifted":
        # Bounds of the position in the input; of that in the output otherwise.
        seen = (at_column >= 0) & (at_column < columns) & (at_row >= 0) & (at_row < rows)
    elif HOW == "mirrored":
        at_column = columns - 1 - at_column
        seen = (column >= left) & (column < columns + left) & (row >= above) & (row < rows + above)
    else:
        seen = (column >= left) & (column < columns + left) & (row >= above) & (row < rows + above)
    x = tl.load(x_ptr + at_row * columns + at_column, mask=seen, other=0.5)
    tl.store(y_ptr + row * width + column, tl.exp(widen(x)), mask=column < width)


def pad(kernel, x, how, sides, BLOCK=16):
    """x: (rows, columns); sides: how much is left, right, above and below."""
    left, right, above, below = sides
    height, width = x.shape[0] + above + below, x.shape[1] + left + right
    y = poisoned((height, width), x)
    kernel[(height, triton.cdiv(width, BLOCK))](
        x, y, *x.shape, above, left, height, width, BLOCK=BLOCK, HOW=how
    )
    return y


def pad_reference(x, how, sides):
    x = x.flip(1) if how == "mirrored" else x
    return torch.nn.functional.pad(x, sides, value=0.5).exp()


@triton.jit
def cat_kernel(a_ptr, b_ptr, c_ptr, y_ptr, n, k, m, BLOCK: tl.constexpr):
    """Rows of three tensors behind one another, the last one with weights that rows share."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    second = (column >= n) & (column < n + k)
    third = (column >= n + k) & (column < n + k + m)
    a = tl.load(a_ptr + row * n + column, mask=column < n, other=0.0)
    b = tl.load(b_ptr + row * k + column - n, mask=second, other=0.0)
    c = tl.load(c_ptr + column - n - k, mask=third, other=0.0)
    y = tl.where(column < n, a, tl.where(second, tl.sin(b), c * c))
    tl.store(y_ptr + row * (n + k + m) + column, y, mask=column < n + k + m)


def cat(kernel, a, b, c):
    """a: (rows, n); b: (rows, k); c: (m,)."""
    (rows, n), k, m = a.shape, b.shape[1], c.shape[0]
    y = poisoned((rows, n + k + m), a)
    kernel[(rows,)](a, b, c, y, n, k, m, BLOCK=triton.next_power_of_2(n + k + m))
    return y


def cat_reference(a, b, c):
    return torch.cat([a, b.sin(), (c * c).expand(len(a), -1)], 1)


@triton.jit
def late_kernel(x_ptr, y_ptr, n, first, BLOCK: tl.constexpr, FROM_END: tl.constexpr):
    """Each program sums what is behind `first`, by blocks, weighted by its own number."""
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        place = start + tl.arange(0, BLOCK)
        at = n - 1 - place if FROM_END else place - first
        x = tl.load(x_ptr + at, mask=(place >= (0 if FROM_END else first)) & (place < n), other=0.0)
        total += tl.sin(x * (tl.program_id(0) + 1))
    tl.store(y_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), total)


def late(kernel, x, programs, first, from_end=False, BLOCK=16):
    """x: (n - first,), or (n,) from its end."""
    n = x.shape[0] + (0 if from_end else first)
    y = poisoned((programs, BLOCK), x)
    kernel[(programs,)](x, y, n, first, BLOCK=BLOCK, FROM_END=from_end)
    return y


def late_reference(x, programs, first, from_end=False, BLOCK=16):
    x = x.flip(0) if from_end else torch.nn.functional.pad(x, (first, 0))
    x = torch.nn.functional.pad(x, (0, -len(x) % BLOCK)).view(-1, BLOCK)
    weights = torch.arange(1, programs + 1, device=x.device)[:, None, None]
    return (x * weights).sin().sum(1)
