"""Few programs that go through many rows or tiles, in steps as long as the grid."""

import torch
import triton
import triton.language as tl

from .common import poisoned, precision_of, widen, with_output
from .matmul import _grouped, _store_halves, _store_tile, _tile_product


@triton.jit
def rows_kernel(
    x_ptr, w_ptr, y_ptr, n, columns, HOW: tl.constexpr, STEP: tl.constexpr, AXIS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """y[row] = exp(x[row] w), or what `HOW` says; `STEP` 0 is the size of the grid."""
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    if AXIS == 1:
        x_ptr += tl.program_id(0) * n * columns
        y_ptr += tl.program_id(0) * n * columns
    w = widen(tl.load(w_ptr + lanes, mask=mask, other=0.0))
    start = tl.program_id(AXIS)
    step = STEP if STEP else tl.num_programs(AXIS)
    if HOW == "wide":
        start, n, step = start.to(tl.int64), n.to(tl.int64), tl.cast(step, tl.int64)
    if HOW == "carried number":
        number = start - step
    elif HOW == "carried pointers":
        x_row = x_ptr + start * columns + lanes
    total = tl.zeros((BLOCK,), w.dtype)
    for row in range(start, n, step):
        place = row
        if HOW == "carried number":
            number += step
            place = number
        elif HOW == "meeting":
            place = row % 2
        if HOW == "carried pointers":
            x = widen(tl.load(x_row, mask=mask, other=0.0))
            x_row += step * columns
        else:
            x = widen(tl.load(x_ptr + row * columns + lanes, mask=mask, other=0.0))
        y = tl.exp(x * w)
        if HOW == "carried sum":
            total += y
            y = total
        elif HOW == "numbered":
            y = y * (1 + tl.program_id(AXIS))
        elif HOW == "counted":
            y = y * (1 + tl.num_programs(AXIS))
        elif HOW == "recurrence":
            before = tl.load(y_ptr + (row - 1) * columns + lanes, mask=mask & (row > 0), other=0.0)
            y += 0.5 * widen(before)
        if HOW == "in place":
            tl.store(x_ptr + row * columns + lanes, y, mask=mask)
        elif HOW == "added":
            tl.atomic_add(y_ptr + (row % 2) * columns + lanes, y, mask=mask)
        else:
            tl.store(y_ptr + place * columns + lanes, y, mask=mask)


def covered(n, programs, step):
    """The rows that each program goes through, in order."""
    return [list(range(program, n, step or programs)) for program in range(programs)]


def rows(kernel, x, w, programs, how="", step=0, axis=0):
    """`x` is a matrix; along axis 1 of the grid, a batch of them. Rows that none reaches are left
    out of what is returned."""
    *batch, n, columns = x.shape
    x, y = with_output(x, how)
    kernel[(*batch, programs)](
        x, w, y, n, columns, HOW=how, STEP=step, AXIS=axis, BLOCK=triton.next_power_of_2(columns)
    )
    if how in ("meeting", "added"):
        return y[: min(2, n)]
    reached = sorted({row for rows in covered(n, programs, step) for row in rows})
    return y[..., reached, :]


def rows_reference(x, w, programs, how="", step=0, axis=0):
    n = x.shape[-2]
    y = torch.exp(x * w)
    programs_of = covered(n, programs, step)
    if how == "carried sum":
        sums = {}
        for rows in programs_of:
            sums |= dict(zip(rows, y[rows].cumsum(0), strict=True))
        return torch.stack([sums[row] for row in sorted(sums)])
    if how == "recurrence":
        done = [y[0]]
        for row in y[1:]:
            done.append(row + 0.5 * done[-1])
        return torch.stack(done)
    if how == "meeting":
        return torch.stack([y[[row for row in range(n) if row % 2 == k][-1]] for k in range(2)])
    if how == "added":
        return torch.stack([y[k::2].sum(0) for k in range(2)])
    if how == "numbered":
        y = y * torch.tensor([1 + row % programs for row in range(n)], device=x.device)[:, None]
    if how == "counted":
        y = y * (1 + programs)
    reached = sorted({row for rows in programs_of for row in rows})
    return y[..., reached, :]


@triton.jit
def row_windows_kernel(x_ptr, w_ptr, y_ptr, n, columns, length, BLOCK: tl.constexpr):
    """y[k, row] = Σ exp(x[i] w) of `length` rows from row + k on.

    The inner loop begins at a number that counts iterations and programs.
    """
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    w = widen(tl.load(w_ptr + lanes, mask=mask, other=0.0))
    k = tl.program_id(1)
    for row in range(tl.program_id(0), n, tl.num_programs(0)):
        total = tl.zeros((BLOCK,), w.dtype)
        for i in range(row + k, row + k + length):
            x = tl.load(x_ptr + i * columns + lanes, mask=mask & (i < n), other=0.0)
            total += tl.where(i < n, tl.exp(widen(x) * w), 0.0)
        tl.store(y_ptr + (k * n + row) * columns + lanes, total, mask=mask)


def row_windows(kernel, x, w, programs, shifts, length):
    n, columns = x.shape
    y = poisoned((shifts, n, columns), x)
    BLOCK = triton.next_power_of_2(columns)
    kernel[(programs, shifts)](x, w, y, n, columns, length, BLOCK=BLOCK)
    return y


def row_windows_reference(x, w, programs, shifts, length):
    y = torch.exp(x * w)
    sums = [y[i : i + length].sum(0) for k in range(shifts) for i in range(k, k + len(x))]
    return torch.stack(sums).view(shifts, *x.shape)


@triton.jit
def blocks_kernel(
    x_ptr, y_ptr, n, step, low, HOW: tl.constexpr, MASKED: tl.constexpr, FIRST: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """y = exp(x) by blocks, or the sum of it that a program sees; `step` 0 is the size of the grid.

    Blocks begin at `FIRST`; elements below `low` are left out. If nothing is masked, `n` is a
    multiple of `BLOCK` from `FIRST` on, and `low` is zero.
    """
    program = tl.program_id(0)
    total = tl.zeros((BLOCK,), x_ptr.dtype.element_ty)
    if step == 0:
        step = tl.num_programs(0)
    for first in range(FIRST + program * BLOCK, n, step * BLOCK):
        place = first + tl.arange(0, BLOCK)
        mask = (place < n) & (place >= low)
        if MASKED:
            y = tl.exp(tl.load(x_ptr + place, mask=mask, other=-float("inf")))
        else:
            y = tl.exp(tl.load(x_ptr + place))
        if HOW == "stored":
            tl.store(y_ptr + place, y, mask=mask)
        total += y
    if HOW == "summed":
        tl.store(y_ptr + program, tl.sum(total))


def blocks(kernel, x, programs, how="stored", step=0, masked=True, first=0, low=0, BLOCK=16):
    """Elements that no program reaches are left out of what is returned."""
    y = poisoned(x.shape if how == "stored" else (programs,), x)
    kernel[(programs,)](x, y, len(x), step, low, HOW=how, MASKED=masked, FIRST=first, BLOCK=BLOCK)
    return y[_seen(len(x), programs, step, first, low, BLOCK).any(0)] if how == "stored" else y


def blocks_reference(x, programs, how="stored", step=0, masked=True, first=0, low=0, BLOCK=16):
    seen = _seen(len(x), programs, step, first, low, BLOCK).to(x.device)
    y = torch.exp(x)
    return y[seen.any(0)] if how == "stored" else torch.where(seen, y, 0.0).sum(1)


def _seen(n, programs, step, first, low, block):
    """Which program (a row each) goes through which elements."""
    seen = torch.zeros(programs, n, dtype=torch.bool)
    for program, numbers in enumerate(covered(triton.cdiv(n - first, block), programs, step)):
        for number in numbers:
            seen[program, first + number * block : first + (number + 1) * block] = True
    seen[:, :low] = False
    return seen


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
    PROGRAMS: tl.constexpr, PRECISION: tl.constexpr, HALVES: tl.constexpr = False,
):  # fmt: skip
    """The persistent product of Triton's tutorial: as many programs as the device runs at a time.

    A second number follows the tile's, so that storing a tile need not wait for the next one.
    """
    start = tl.program_id(0)
    tiles = tl.cdiv(m, BLOCK_M) * tl.cdiv(n, BLOCK_N)
    stored = start - PROGRAMS
    for tile in tl.range(start, tiles, PROGRAMS, flatten=True):
        pid_m, pid_n = _grouped(tile, m, n, BLOCK_M, BLOCK_N, GROUP)
        acc = _tile_product(
            a_ptr, b_ptr, pid_m, pid_n, m, n, k, stride_am, stride_ak, stride_bk, stride_bn,
            BLOCK_M, BLOCK_N, BLOCK_K, PRECISION,
        )  # fmt: skip
        stored += PROGRAMS
        pid_m, pid_n = _grouped(stored, m, n, BLOCK_M, BLOCK_N, GROUP)
        if HALVES:
            _store_halves(c_ptr, acc, pid_m, pid_n, m, n, stride_cm, stride_cn, BLOCK_M, BLOCK_N)
        else:
            _store_tile(c_ptr, acc, pid_m, pid_n, m, n, stride_cm, stride_cn, BLOCK_M, BLOCK_N)


def matmul(kernel, a, b, programs=4, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP=3, **options):
    (m, k), n = a.shape, b.shape[1]
    c = poisoned((m, n), a)
    tiles = triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N)
    kernel[(min(programs, tiles),)](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP=GROUP, PROGRAMS=programs,
        PRECISION=precision_of(a), **options,
    )  # fmt: skip
    return c
