"""Kernels that read a whole row, and some of its elements again at indices from memory."""

import torch
import triton
import triton.language as tl

from .common import poisoned, widen


@triton.jit
def _sum_of_row(x_ptr, stride_column, n, acc, BLOCK: tl.constexpr, WHOLE: tl.constexpr):
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        if WHOLE:
            x = widen(tl.load(x_ptr + columns * stride_column))
        else:
            x = widen(tl.load(x_ptr + columns * stride_column, mask=columns < n, other=0.0))
        acc += tl.sum(x * x, 0)
    return acc


@triton.jit
def targets_kernel(
    x_ptr, target_ptr, y_ptr, stride, stride_column, n, HOW: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """y[row] = s or s·p, with s = Σ x[row, j]² and p = Σ x[row, t[row, k]]³ over both targets."""
    row = tl.program_id(0)
    x_ptr += row * stride
    target_ptr += row * 2
    zero = tl.full((), 0.0, widen(tl.load(x_ptr)).dtype)
    first, second = tl.load(target_ptr), tl.load(target_ptr + 1)
    picked = zero
    if HOW == "one" or HOW == "run-time columns":
        picked = widen(tl.load(x_ptr + first * stride_column))
        picked = picked * picked * picked
    elif HOW == "two" or HOW == "one block" or HOW == "whole blocks":
        a = widen(tl.load(x_ptr + first * stride_column))
        b = widen(tl.load(x_ptr + second * stride_column))
        picked = a * a * a + b * b * b
    elif HOW == "ignored":
        picked = widen(tl.load(x_ptr + first * stride_column, mask=first != -1, other=0.0))
        picked = picked * picked * picked
    elif HOW == "in a branch":
        if first != -1:
            picked = widen(tl.load(x_ptr + first * stride_column))
            picked = picked * picked * picked
    elif HOW == "from another start":
        # As in a part of a vocabulary.
        picked = widen(tl.load(x_ptr + (first - n) * stride_column))
        picked = picked * picked * picked
    elif HOW == "computed":
        place = (first + second) * stride_column
        picked = widen(tl.load(x_ptr + place))
        picked = picked * picked * picked
    elif HOW == "tile":
        both = tl.load(target_ptr + tl.arange(0, 2))
        tile = widen(tl.load(x_ptr + both * stride_column))
        picked = tl.sum(tile * tile * tile, 0)
    elif HOW == "every other":
        picked = widen(tl.load(x_ptr + first * 2 * stride_column))
        picked = picked * picked * picked
    if HOW == "one block":
        columns = tl.arange(0, BLOCK)
        x = widen(tl.load(x_ptr + columns * stride_column, mask=columns < n, other=0.0))
        acc = tl.sum(x * x, 0)
    else:
        acc = _sum_of_row(x_ptr, stride_column, n, zero, BLOCK, HOW == "whole blocks")
    if HOW == "after":
        picked = widen(tl.load(x_ptr + first * stride_column))
        picked = picked * picked * picked * acc
    tl.store(y_ptr + row, acc + picked)


def targets(kernel, x, target, how, n=None, BLOCK=16):
    """The targets of a row may lie outside of its first `n` columns, and in another row."""
    n = x.shape[1] if n is None else n
    y = poisoned((x.shape[0],), x)
    kernel[(x.shape[0],)](x, target, y, x.stride(0), x.stride(1), n, HOW=how, BLOCK=BLOCK)
    return y


def targets_reference(x, target, how, n=None, BLOCK=16):
    rows, columns = x.shape
    sums = (x[:, :n] ** 2).sum(1)
    first, second = target.unbind(1)
    if how == "computed":
        first = first + second
    if how == "every other":
        first = first * 2
    if how == "from another start":
        first = first - columns
    offsets = torch.arange(rows, device=x.device) * columns
    flat = x.reshape(-1)

    def cube(index):
        place = (offsets + index).clamp(0, flat.numel() - 1)
        if how in ("ignored", "in a branch"):
            return torch.where(index == -1, 0.0, flat[place] ** 3)
        return flat[place] ** 3

    if how in ("two", "one block", "whole blocks", "tile"):
        return sums + cube(first) + cube(second)
    return sums + (cube(first) * sums if how == "after" else cube(first))


@triton.jit
def rows_kernel(
    x_ptr, target_ptr, y_ptr, rows, n, LIMITED: tl.constexpr, ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """y[row] = Σ x[row, j]² + x[row, t[row]]³ for a tile of rows."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < rows
    target = tl.load(target_ptr + row, mask=inside, other=0)
    if LIMITED:
        picked = widen(tl.load(x_ptr + row * n + target, mask=inside, other=0.0))
    else:
        picked = widen(tl.load(x_ptr + tl.minimum(row, rows - 1) * n + target))
    acc = tl.zeros((ROWS,), picked.dtype)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = inside[:, None] & (columns < n)[None, :]
        x = widen(tl.load(x_ptr + row[:, None] * n + columns[None, :], mask=mask, other=0.0))
        acc += tl.sum(x * x, 1)
    tl.store(y_ptr + row, acc + picked * picked * picked, mask=inside)


def rows_of_targets(kernel, x, target, limited, ROWS=4, BLOCK=16):
    rows, n = x.shape
    y = poisoned((rows,), x)
    grid = (triton.cdiv(rows, ROWS),)
    kernel[grid](x, target, y, rows, n, LIMITED=limited, ROWS=ROWS, BLOCK=BLOCK)
    return y


def rows_reference(x, target, limited):
    return (x**2).sum(1) + x.gather(1, target[:, None])[:, 0] ** 3
