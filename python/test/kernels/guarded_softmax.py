"""Online softmax that tells rows apart of which nothing is seen: their maximum is −∞."""

import torch
import triton
import triton.language as tl

from .common import poisoned

# How −∞ − (−∞) is avoided in the loop; in a row without keys, "scores" keeps what the sums start
# from, and "uniform" has all keys weigh the same. "chosen" sums over few of the keys. "mixed"
# carries on something finite in the second loop alone. "clipped" has maxima that are no less than
# a number.
GUARDS = (
    "equal", "more", "carried", "clipped", "scores", "uniform", "counted", "chosen", "mixed",
)  # fmt: skip
# What is made of a row without a sum; "maximum" is what it has of one.
ENDS = ("sum", "quotient", "clamp", "fallback", "log", "maximum")
CHOSEN = tl.constexpr(2)


@triton.jit
def guarded_step(
    q, row_max, row_sum, acc, count, k_ptr, v_ptr, seen_ptr, row, dims, rows, columns, block, last,
    DIM: tl.constexpr, BLOCK_N: tl.constexpr, GUARD: tl.constexpr,
):  # fmt: skip
    """What a block of keys makes of maximum, sums, and the count of rows with a maximum."""
    column = block + tl.arange(0, BLOCK_N)
    mask = column < last
    places = column[:, None] * DIM + dims[None, :]
    k = tl.load(k_ptr + places, mask=mask[:, None], other=0.0)
    v = tl.load(v_ptr + places, mask=mask[:, None], other=0.0)
    pairs = (row < rows)[:, None] & mask[None, :]
    seen = tl.load(seen_ptr + row[:, None] * columns + column[None, :], mask=pairs, other=0)
    scores = tl.where(seen != 0, tl.dot(q, tl.trans(k), input_precision="ieee"), -float("inf"))
    new_max = tl.maximum(row_max, tl.max(scores, 1))
    if GUARD == "carried":
        new_max = tl.where(new_max > -float("inf"), new_max, 0.0)
    if GUARD == "clipped":
        new_max = tl.maximum(new_max, -1e30)
    frame = new_max
    if GUARD == "equal":
        frame = tl.where(new_max == -float("inf"), 0.0, new_max)
    if GUARD == "more" or GUARD == "counted" or GUARD == "chosen":
        frame = tl.where(new_max > -float("inf"), new_max, 0.0)
    unseen = new_max == -float("inf")
    if GUARD == "scores":
        p = tl.exp(tl.where(unseen[:, None], -float("inf"), scores - frame[:, None]))
        scale = tl.where(unseen, 1.0, tl.exp(row_max - frame))
    elif GUARD == "uniform":
        p = tl.where(unseen[:, None] & mask[None, :], 1.0, tl.exp(scores - frame[:, None]))
        scale = tl.where(unseen, 1.0, tl.exp(row_max - frame))
        p = tl.where(unseen[:, None] & ~mask[None, :], 0.0, p)
    else:
        p = tl.exp(scores - frame[:, None])
        scale = tl.exp(row_max - frame)
    if GUARD == "chosen":
        p = tl.where(seen == CHOSEN, p, 0.0)
    if GUARD == "counted":
        count += tl.sum(tl.where(unseen, 0.0, 1.0))
    row_sum = row_sum * scale + tl.sum(p, 1)
    acc = tl.dot(p.to(v.dtype), v, acc * scale[:, None], input_precision="ieee")
    return new_max, row_sum, acc, count


@triton.jit
def guarded_kernel(
    q_ptr, k_ptr, v_ptr, start_ptr, fallback_ptr, seen_ptr, out_ptr, log_ptr, rows, columns,
    split, last, DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    GUARD: tl.constexpr, END: tl.constexpr, START: tl.constexpr, TWICE: tl.constexpr,
):  # fmt: skip
    """A block of queries against the keys below ``split`` (if there are), then up to ``last``.

    START: whether sums start from numbers in memory, which the first key makes forget.
    """
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, DIM)
    places = row[:, None] * DIM + dims[None, :]
    mask = row < rows
    q = tl.load(q_ptr + places, mask=mask[:, None], other=0.0)
    row_max = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    row_sum = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, DIM), tl.float32)
    count = 0.0
    if START:
        row_sum += 1.0
        acc += tl.load(start_ptr + places, mask=mask[:, None], other=0.0)
    if TWICE:
        for block in range(0, split, BLOCK_N):
            row_max, row_sum, acc, count = guarded_step(
                q, row_max, row_sum, acc, count, k_ptr, v_ptr, seen_ptr, row, dims, rows, columns,
                block, last, DIM, BLOCK_N, "equal" if GUARD == "mixed" else GUARD,
            )  # fmt: skip
    for block in range(split, last, BLOCK_N):
        row_max, row_sum, acc, count = guarded_step(
            q, row_max, row_sum, acc, count, k_ptr, v_ptr, seen_ptr, row, dims, rows, columns,
            block, last, DIM, BLOCK_N, "carried" if GUARD == "mixed" else GUARD,
        )  # fmt: skip
    if END == "quotient":
        out = tl.where(row_sum[:, None] > 0, acc / row_sum[:, None], 0.0)
    elif END == "clamp":
        out = acc / tl.maximum(row_sum, 1.0e-20)[:, None]
    elif END == "fallback":
        other = tl.load(fallback_ptr + places, mask=mask[:, None], other=0.0)
        out = tl.where(row_sum[:, None] == 0.0, other, acc / row_sum[:, None])
    elif END == "maximum":
        highest = tl.where(row_max == -float("inf"), 0.0, row_max)
        out = tl.where(row_sum[:, None] == 0.0, highest[:, None], acc / row_sum[:, None])
    else:
        out = acc / tl.where(row_sum == 0.0, 1.0, row_sum)[:, None]
    tl.store(out_ptr + places, out + 0.1 * count, mask=mask[:, None])
    if END == "log":
        total = tl.where(row_sum == 0.0, -1.0, row_max + tl.log(row_sum))
        tl.store(log_ptr + row, total, mask=mask)


def guarded(kernel, q, k, v, start, fallback, seen, split, last, guard, end, from_memory):
    """q, start, fallback: (rows, dim); k, v: (columns, dim); seen: (rows, columns), 8 bits.

    Seen is 0 for keys that are masked, and 2 for those that are chosen. Keys from ``last`` on are
    not used; ``split`` is a multiple of 16, or ``last``.
    """
    rows, dim = q.shape
    out, log = poisoned(q.shape, q), poisoned((rows,), q)
    kernel[(triton.cdiv(rows, 16),)](
        q, k, v, start, fallback, seen, out, log, rows, k.shape[0], split, last, DIM=dim,
        BLOCK_M=16, BLOCK_N=16, GUARD=guard, END=end, START=from_memory, TWICE=split > 0,
    )  # fmt: skip
    return (out, log) if end == "log" else out


def guarded_reference(q, k, v, start, fallback, seen, split, last, guard, end, from_memory):
    rows = q.shape[0]
    least = CHOSEN.value if guard == "chosen" else 1
    products = q @ k[:last].T
    highest = products.masked_fill(seen[:, :last] == 0, -float("inf"))
    seen = seen[:, :last] >= least
    has_key = seen.any(1)
    scores = products.masked_fill(~seen, -float("inf"))
    p = torch.where(has_key[:, None], scores, torch.zeros_like(scores)).softmax(1)
    nothing = torch.zeros_like(q)
    if guard == "uniform" and last:
        nothing = v[:last].sum(0, keepdim=True).expand_as(q)
        if from_memory:
            nothing = nothing + start
        nothing = nothing / (last + from_memory)
    elif from_memory and (guard == "scores" or last == 0):
        nothing = start
    elif end == "fallback":
        nothing = fallback
    elif end == "maximum" and last:
        highest = highest.amax(1, keepdim=True)
        nothing = torch.where(highest.isfinite(), highest, 0.0).expand_as(q)
    out = torch.where(has_key[:, None], p @ v[:last], nothing)
    out = out + 0.0 * (start + fallback)  # which may be used in no row
    if guard == "counted":  # of each block of rows, those that have a key so far
        firsts = range(0, last, 16)
        known = sum((seen[:, : j + 16].any(1).to(q.dtype) for j in firsts), q.new_zeros(rows))
        counts = torch.stack([block.sum() for block in known.split(16)])
        out = out + 0.1 * counts.repeat_interleave(16)[:rows, None]
    if end != "log":
        return out
    kept = scores.masked_fill(~has_key[:, None], 0.0)
    return out, torch.where(has_key, kept.logsumexp(1), -1.0)


@triton.jit
def guarded_rows_kernel(x_ptr, y_ptr, columns, GUARD: tl.constexpr, BLOCK: tl.constexpr):
    """The softmax of a row in one block; of −∞ throughout, zeros."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=mask, other=-float("inf"))
    x = tl.where(x < -1.0, -float("inf"), x)
    maximum = tl.max(x, 0)
    if GUARD:
        maximum = tl.where(maximum == -float("inf"), 0.0, maximum)
    e = tl.exp(x - maximum)
    total = tl.sum(e, 0)
    y = e / tl.where(total == 0.0, 1.0, total)
    tl.store(y_ptr + row * columns + column, y, mask=mask)


def guarded_rows(kernel, x, guard=True):
    y = poisoned(x.shape, x)
    block = triton.next_power_of_2(x.shape[1])
    kernel[(x.shape[0],)](x, y, x.shape[1], GUARD=guard, BLOCK=block)
    return y


def guarded_rows_reference(x, guard=True):
    seen = x >= -1.0
    kept = torch.where(seen.any(1, keepdim=True), x.masked_fill(~seen, -float("inf")), 0.0)
    return torch.where(seen, kept.softmax(1), 0.0)
