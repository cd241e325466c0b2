"""Sums over what programs share, as far as a bound of each program's own."""

import torch
import triton
import triton.language as tl

from .common import poisoned

FORMS = (
    "rows", "blocks", "blocks before", "either", "descending", "rounded", "two stages", "beyond"
)  # fmt: skip


@triton.jit
def _add_block(total, x_ptr, w, first, n, MASKED: tl.constexpr, BLOCK_N: tl.constexpr):
    """Adds sin(wᵢ xⱼ) for a block of j."""
    j = first + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + j, mask=j < n, other=0.0) if MASKED else tl.load(x_ptr + j)
    return total + tl.sum(tl.sin(w[:, None] * x[None, :]), 1)


@triton.jit
def bounded_sums_kernel(
    x_ptr, w_ptr, y_ptr, n, rows, prefix, columns,
    FORM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """y[h, i] = Σ sin(w[h, i] x[h, j]) over the blocks of j that the block of i has.

    x is (heads, columns), of which n columns are summed; w and y are (heads, rows).
    """
    block, head = tl.program_id(0), tl.program_id(1)
    if FORM == "descending":
        block = tl.num_programs(0) - 1 - block
    i = block * BLOCK_M + tl.arange(0, BLOCK_M)
    w = tl.load(w_ptr + head * rows + i, mask=i < rows, other=0.0)
    total = tl.zeros((BLOCK_M,), tl.float32)
    x_ptr += head * columns
    end = (block + 1) * BLOCK_M
    if FORM == "blocks":
        for number in range(0, tl.cdiv(tl.minimum(end, n), BLOCK_N)):
            total = _add_block(total, x_ptr, w, number * BLOCK_N, n, True, BLOCK_N)
    elif FORM == "blocks before":
        for number in range(0, tl.cdiv(end, BLOCK_N) - 1):
            total = _add_block(total, x_ptr, w, number * BLOCK_N, n, True, BLOCK_N)
    elif FORM == "either":
        for first in range(0, tl.minimum(tl.maximum(prefix, end), n), BLOCK_N):
            total = _add_block(total, x_ptr, w, first, n, True, BLOCK_N)
    elif FORM == "rounded":
        low = block * BLOCK_M // (2 * BLOCK_N) * (2 * BLOCK_N)
        for first in range(low, n, BLOCK_N):
            total = _add_block(total, x_ptr, w, first, n, True, BLOCK_N)
    elif FORM == "two stages":
        for first in range(0, block * BLOCK_M, BLOCK_N):
            total = _add_block(total, x_ptr, w, first, n, False, BLOCK_N)
        for first in range(block * BLOCK_M, tl.minimum(end, n), BLOCK_N):
            total = _add_block(total, x_ptr, w, first, n, True, BLOCK_N)
    elif FORM == "beyond":
        for first in range(0, n, BLOCK_N):
            total = _add_block(total, x_ptr, w, first, n, True, BLOCK_N)
        for first in range(0, prefix, BLOCK_N):
            total = _add_block(total, x_ptr, w, first, n, False, BLOCK_N)
    else:
        for first in range(0, tl.minimum(end, n), BLOCK_N):
            total = _add_block(total, x_ptr, w, first, n, True, BLOCK_N)
    tl.store(y_ptr + head * rows + i, total, mask=i < rows)


def bounded_sums(kernel, x, w, n, form, prefix=0, BLOCK_M=8, BLOCK_N=4):
    """x: (heads, columns), w: (heads, rows)"""
    heads, rows = w.shape
    y = poisoned(w.shape, w)
    kernel[(triton.cdiv(rows, BLOCK_M), heads)](
        x, w, y, n, rows, prefix, x.shape[1], FORM=form, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
    return y


def bounded_sums_reference(x, w, n, form, prefix=0, BLOCK_M=8, BLOCK_N=4):
    """All terms, of which those without the bounds are left out."""
    block = torch.arange(w.shape[1], device=x.device) // BLOCK_M
    start, end = torch.zeros_like(block), (block + 1) * BLOCK_M
    if form == "blocks before":
        end = ((end + BLOCK_N - 1) // BLOCK_N - 1) * BLOCK_N
    if form == "either":
        end = end.clamp(min=prefix)
    if form == "rounded":
        start = block * BLOCK_M // (2 * BLOCK_N) * 2 * BLOCK_N
    if form in ("rounded", "beyond"):
        end = torch.full_like(end, n)
    # The last block is summed to its end.
    end = (end + BLOCK_N - 1) // BLOCK_N * BLOCK_N
    j = torch.arange(x.shape[1], device=x.device)
    inside = (j >= start[:, None]) & (j < end[:, None]) & (j < n)
    terms = torch.sin(w[:, :, None] * x[:, None, :])
    total = (terms * inside).sum(2)
    if form == "beyond":
        total = total + terms[:, :, : (prefix + BLOCK_N - 1) // BLOCK_N * BLOCK_N].sum(2)
    return total
