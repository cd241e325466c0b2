"""Running maxima that outputs depend on: stored, or of sums that something is added to."""

import torch
import triton
import triton.language as tl

from .carried_sums import attend_sums
from .common import poisoned, widen

# "sums" stores maximum, sum and values as they are (flash decoding), "kept" a maximum beside the
# log-sum-exp; "guarded" adds something to the sum before it divides.
FORMS = ("sums", "kept", "guarded")


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, y_ptr, max_ptr, sum_ptr, n, keys, length, scale,
    DIM: tl.constexpr, BLOCK: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """A block of queries of a head sees one of several parts of the keys, each so long."""
    part, head = tl.program_id(1), tl.program_id(2)
    place = part * tl.num_programs(2) + head
    q_ptr += head * n * DIM
    k_ptr += head * keys * DIM
    v_ptr += head * keys * DIM
    y_ptr += place * n * DIM
    max_ptr += place * n
    sum_ptr += place * n
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    places = rows[:, None] * DIM + tl.arange(0, DIM)[None, :]
    q = tl.load(q_ptr + places, mask=(rows < n)[:, None], other=0.0)
    m = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    acc = tl.zeros((BLOCK, DIM), tl.float32)
    for start in range(part * length, tl.minimum((part + 1) * length, keys), BLOCK):
        m, total, acc = attend_sums(
            q, m, total, acc, k_ptr, v_ptr, start, rows, keys, scale, DIM, BLOCK, False
        )
    if FORM == "kept":
        acc /= total[:, None]
        total = m + tl.log(total)
    elif FORM == "guarded":
        acc /= (total + 0.5)[:, None]
    tl.store(max_ptr + rows, m, mask=rows < n)
    tl.store(sum_ptr + rows, total, mask=rows < n)
    tl.store(y_ptr + places, acc, mask=(rows < n)[:, None])


def attention(kernel, q, k, v, form, parts=1, block=16, **options):
    """q: (heads, n, dim); k, v: (heads, keys, dim).

    Returns values (parts, heads, n, dim), maxima (parts, heads, n) and sums, or their logarithms.
    """
    (heads, n, dim), keys = q.shape, k.shape[1]
    y = poisoned((parts, heads, n, dim), q)
    m, total = (poisoned((parts, heads, n), q) for _ in range(2))
    length = triton.cdiv(triton.cdiv(keys, parts), block) * block
    kernel[(triton.cdiv(n, block), parts, heads)](
        q, k, v, y, m, total, n, keys, length, dim**-0.5,
        DIM=dim, BLOCK=block, FORM=form, **options,
    )  # fmt: skip
    return y, m, total


def attention_reference(q, k, v, form, parts=1, block=16):
    length = triton.cdiv(triton.cdiv(k.shape[1], parts), block) * block
    found = []
    for keys, values in zip(k.split(length, 1), v.split(length, 1), strict=True):
        scores = q @ keys.mT * q.shape[2] ** -0.5
        m = scores.amax(2)
        p = torch.exp(scores - m[:, :, None])
        total = p.sum(2)
        y = p @ values
        if form == "kept":
            y, total = y / total[:, :, None], m + total.log()
        elif form == "guarded":
            y = y / (total + 0.5)[:, :, None]
        found.append((y, m, total))
    return tuple(torch.stack(outputs) for outputs in zip(*found, strict=True))


@triton.jit
def extremum_kernel(
    x_ptr, start_ptr, y_ptr, first, count, step, n,
    BLOCK: tl.constexpr, LEAST: tl.constexpr, NAN: tl.constexpr,
):  # fmt: skip
    """The largest (or least) of each lane of some blocks of a row, and a number to begin with."""
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    m = widen(tl.load(start_ptr + row * BLOCK + lane))
    none = float("inf") if LEAST else -float("inf")
    for block in range(first, count, step):
        place = block * BLOCK + lane
        x = widen(tl.load(x_ptr + row * n + place, mask=place < n, other=none))
        if LEAST:
            m = tl.minimum(m, 3.0 * x, propagate_nan=NAN)
        else:
            m = tl.maximum(m, 3.0 * x, propagate_nan=NAN)
    tl.store(y_ptr + row * BLOCK + lane, m * m)


def extremum(kernel, x, start, least=False, blocks=(0, None, 1), nan=tl.PropagateNan.NONE):
    """x: (rows, n); start: (rows, lanes). Returns squares (rows, lanes)."""
    (rows, n), lanes = x.shape, start.shape[1]
    y = poisoned(start.shape, start)
    first, count, step = blocks
    count = triton.cdiv(n, lanes) if count is None else count
    kernel[(rows,)](x, start, y, first, count, step, n, BLOCK=lanes, LEAST=least, NAN=nan)
    return y


def extremum_reference(x, start, least=False, blocks=(0, None, 1), nan=None):
    lanes = start.shape[1]
    none = float("inf") if least else -float("inf")
    padded = torch.nn.functional.pad(x, (0, -x.shape[1] % lanes), value=none)
    seen = padded.unflatten(1, (-1, lanes))[:, slice(*blocks)]
    seen = torch.where(seen.isnan(), none, seen)
    every = torch.cat([start[:, None], 3 * seen], 1)
    return (every.amin(1) if least else every.amax(1)).square()
