"""Sums relative to a running maximum that treat their first term, or rows without one, apart."""

import torch
import triton
import triton.language as tl

from .common import poisoned

# "weighed", "doubled": the first block of a row weighs something else. "positive": so does what
# comes while a sum, which starts from one, is positive. "squares": rows count blocks. "other row":
# what is stored of a row depends on whether another one has seen anything. "difference": of two
# sums that are at least one.
FORMS = ("weighed", "doubled", "positive", "squares", "other row", "difference")


@triton.jit
def first_term_kernel(
    x_ptr, w_ptr, y_ptr, columns, FORM: tl.constexpr, GUARD: tl.constexpr, BLOCK: tl.constexpr
):
    """BLOCK rows of x, −∞ where it is below −1, BLOCK columns at a time; y: (BLOCK, BLOCK)"""
    row = tl.arange(0, BLOCK)
    lowest = -float("inf")
    top = tl.full((BLOCK,), lowest, tl.float32)
    total = tl.full((BLOCK,), 1.0 if FORM == "positive" else 0.0, tl.float32)
    if FORM == "difference":
        top = tl.zeros((BLOCK,), tl.float32)
        total += 1.0
    other = tl.zeros((BLOCK,), tl.float32)
    for block in range(0, columns, BLOCK):
        column = block + tl.arange(0, BLOCK)
        mask = column < columns
        w = tl.load(w_ptr + column, mask=mask, other=0.0)
        places = row[:, None] * columns + column[None, :]
        x = tl.load(x_ptr + places, mask=mask[None, :], other=lowest)
        x = tl.where(x < -1.0, lowest, x)
        new_top = tl.maximum(top, tl.max(x, 1))
        frame = tl.where(new_top == lowest, 0.0, new_top) if GUARD else new_top
        scale = tl.exp(top - frame)
        p = tl.exp(x - frame[:, None])
        if FORM == "weighed":
            p = tl.where((top == lowest)[:, None], p * w[None, :], p)
        if FORM == "doubled":
            p = tl.where((top == lowest)[:, None], 2.0 * p, p)
        if FORM == "positive":
            p = tl.where(total[:, None] > 0.0, p, 0.0)
        if FORM == "squares":
            other += tl.where(new_top == lowest, 0.0, tl.sum(w * w))
        if FORM == "difference":
            other = other * scale + tl.sum(p, 1)
        total = total * scale + tl.sum(p, 1)
        top = new_top
    sums = top + tl.log(tl.where(total == 0.0, 1.0, total))
    y = tl.where(top == lowest, 0.0, sums)[:, None] + tl.zeros((BLOCK, BLOCK), tl.float32)
    if FORM == "squares":
        y += other[:, None]
    if FORM == "other row":
        y = tl.where((top == lowest)[None, :], tl.where(top == lowest, 0.0, top)[:, None], y)
    if FORM == "difference":
        y = (other / tl.maximum(total - other, 0.5))[:, None] + tl.zeros((BLOCK, BLOCK), tl.float32)
    tl.store(y_ptr + row[:, None] * BLOCK + row[None, :], y)


def first_term(kernel, x, w, form, guard, BLOCK=16):
    """x: (BLOCK, columns), w: (columns,)"""
    y = poisoned((BLOCK, BLOCK), x)
    kernel[(1,)](x, w, y, x.shape[1], FORM=form, GUARD=guard, BLOCK=BLOCK)
    return y


def first_term_reference(x, w, form, guard, BLOCK=16):
    columns = x.shape[1]
    seen = x >= -1.0
    blocks = torch.arange(columns, device=x.device) // BLOCK
    any_seen = seen.any(1)
    ends = [(seen & (blocks <= b)).any(1) for b in range(-1, int(blocks[-1]) + 1)]
    starts = torch.stack(ends)[blocks + 1] & ~torch.stack(ends)[blocks]  # (columns, rows)
    first = starts.T
    weights = torch.ones_like(x)
    if form == "weighed":
        weights = torch.where(first, w[None, :], 1.0)
    if form == "doubled":
        weights = torch.where(first, 2.0, 1.0)
    if form == "positive":  # in a row that is not seen in the first block the sum gets zero
        weights = weights * ends[1][:, None]
    masked = torch.where(seen, x, torch.zeros_like(x))
    highest = x.masked_fill(~seen, -float("inf")).amax(1)
    top = torch.where(any_seen, highest, 0.0)
    terms = torch.where(seen, (masked - top[:, None]).exp() * weights, 0.0).sum(1)
    sums = top + torch.where(terms == 0.0, 1.0, terms).log()
    y = torch.where(any_seen, sums, 0.0)[:, None].expand(BLOCK, BLOCK)
    if form == "squares":
        squares = [(w[blocks == b] ** 2).sum() for b in range(int(blocks[-1]) + 1)]
        y = (
            y
            + sum(known * square for known, square in zip(ends[1:], squares, strict=True))[:, None]
        )
    if form == "other row":
        y = torch.where(any_seen[None, :], y, top[:, None])
    if form == "difference":
        start = torch.where(any_seen, top, 0.0).clamp(min=0.0)
        total = torch.where(seen, (masked - start[:, None]).exp(), 0.0).sum(1)
        y = (total / (-start).exp().clamp(min=0.5))[:, None].expand(BLOCK, BLOCK)
    return y
