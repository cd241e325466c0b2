"""Sums that loops carry in another form: divided at all times, or as their logarithms."""

import torch
import triton
import triton.language as tl

from .common import poisoned, widen

# "mean" divides what it has after each block, relative to the block's own maximum first, "once"
# to the running one; "log" keeps the log-sum-exp as a bound of the maximum; "log2" does so in
# powers of two; "normalized" has nothing but a mean and a log-sum-exp.
FORMS = ("mean", "once", "log", "log2", "normalized")


@triton.jit
def score(
    q, k_ptr, v_ptr, start, rows, keys, scale,
    DIM: tl.constexpr, BLOCK: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """The scores of a block of keys, and its values."""
    dims = tl.arange(0, DIM)
    columns = start + tl.arange(0, BLOCK)
    inside = (columns < keys)[:, None]
    k = tl.load(k_ptr + columns[:, None] * DIM + dims[None, :], mask=inside, other=0.0)
    v = tl.load(v_ptr + columns[:, None] * DIM + dims[None, :], mask=inside, other=0.0)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    seen = (columns < keys)[None, :]
    if CAUSAL:
        seen &= rows[:, None] >= columns[None, :]
    return tl.where(seen, scores, -1e4), v


@triton.jit
def attend(
    q, m, total, lse, acc, k_ptr, v_ptr, start, rows, keys, scale,
    DIM: tl.constexpr, BLOCK: tl.constexpr, CAUSAL: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """What a block of keys makes of a row's maximum, weight, log-sum-exp, and output."""
    scores, v = score(q, k_ptr, v_ptr, start, rows, keys, scale, DIM, BLOCK, CAUSAL)
    if FORM == "mean":
        own = tl.max(scores, 1)
        p = tl.exp(scores - own[:, None])
        new = tl.maximum(m, own)
        old_part, own_part = tl.exp(m - new), tl.exp(own - new)
        weight = old_part * total + own_part * tl.sum(p, 1)
        p *= (own_part / weight)[:, None]
        acc = acc * (total / weight * old_part)[:, None]
        total = weight
    elif FORM == "once":
        new = tl.maximum(m, tl.max(scores, 1))
        p = tl.exp(scores - new[:, None])
        old = tl.exp(m - new) * total
        total = old + tl.sum(p, 1)
        p /= total[:, None]
        acc *= (old / total)[:, None]
    elif FORM == "log":
        new = tl.maximum(lse, tl.max(scores, 1))
        p = tl.exp(scores - new[:, None])
        lse = new + tl.log(tl.exp(lse - new) + tl.sum(p, 1))
        acc = acc * tl.exp(m - new)[:, None]
    elif FORM == "log2":
        new = tl.maximum(lse, tl.max(scores, 1) * 1.44269504)
        p = tl.exp2(scores * 1.44269504 - new[:, None])
        lse = new + tl.log2(tl.exp2(lse - new) + tl.sum(p, 1))
        acc = acc * tl.exp2(m - new)[:, None]
    else:
        top = tl.maximum(lse, tl.max(scores, 1))
        new = top + tl.log(tl.exp(lse - top) + tl.sum(tl.exp(scores - top[:, None]), 1))
        p = tl.exp(scores - new[:, None])
        acc = acc * tl.exp(lse - new)[:, None]
        lse = new
    acc += tl.dot(p.to(v.dtype), v, input_precision="ieee")
    return new, total, lse, acc


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, own_k_ptr, own_v_ptr, y_ptr, lse_ptr, n, keys, scale,
    DIM: tl.constexpr, BLOCK: tl.constexpr, FORM: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    """A block of queries of a head sees all of some keys, then its own ones up to itself."""
    head = tl.program_id(1)
    q_ptr += head * n * DIM
    k_ptr += head * keys * DIM
    v_ptr += head * keys * DIM
    own_k_ptr += head * n * DIM
    own_v_ptr += head * n * DIM
    y_ptr += head * n * DIM
    lse_ptr += head * n
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    dims = tl.arange(0, DIM)
    inside = (rows < n)[:, None]
    places = rows[:, None] * DIM + dims[None, :]
    q = tl.load(q_ptr + places, mask=inside, other=0.0)
    m = tl.full((BLOCK,), -float("inf"), tl.float32)
    lse = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    acc = tl.zeros((BLOCK, DIM), tl.float32)
    for start in range(0, keys, BLOCK):
        m, total, lse, acc = attend(
            q, m, total, lse, acc, k_ptr, v_ptr, start, rows, keys, scale, DIM, BLOCK, False, FORM
        )
    for start in range(0, tl.minimum((tl.program_id(0) + 1) * BLOCK, n), BLOCK):
        m, total, lse, acc = attend(
            q, m, total, lse, acc, own_k_ptr, own_v_ptr, start, rows, n, scale,
            DIM, BLOCK, True, FORM,
        )  # fmt: skip
    if FORM == "log":
        acc *= tl.exp(m - lse)[:, None]
    elif FORM == "log2":
        acc *= tl.exp2(m - lse)[:, None]
        lse *= 0.69314718
    elif FORM != "normalized":
        lse = m + tl.log(total)
    if LOG:
        tl.store(lse_ptr + rows, lse, mask=rows < n)
    tl.store(y_ptr + places, acc, mask=inside)


def attention(kernel, q, k, v, own_k, own_v, form, log=True, block=16, **options):
    """q, own_k, own_v: (heads, n, dim); k, v: (heads, keys, dim).

    Returns the output and, with `log`, log-sum-exps (heads, n).
    """
    heads, n, dim = q.shape
    y, lse = poisoned(q.shape, q), poisoned((heads, n), q, torch.float32)
    kernel[(triton.cdiv(n, block), heads)](
        q, k, v, own_k, own_v, y, lse, n, k.shape[1], dim**-0.5,
        DIM=dim, BLOCK=block, FORM=form, LOG=log, **options,
    )  # fmt: skip
    return (y, lse) if log else y


def attention_reference(q, k, v, own_k, own_v, form, log=True, block=16):
    n, dim = q.shape[1:]
    seen = torch.ones(n, n, device=q.device).tril().bool()
    own = (q @ own_k.mT).masked_fill(~seen, -1e4)
    scores = torch.cat([q @ k.mT, own], 2) * dim**-0.5
    y = torch.softmax(scores, 2) @ torch.cat([v, own_v], 1)
    return (y, torch.logsumexp(scores, 2)) if log else y


@triton.jit
def weighted_mean_kernel(
    x_ptr, g_ptr, mean_ptr, weight_ptr, y_ptr, total_ptr, n,
    BLOCK: tl.constexpr, TWICE: tl.constexpr,
):  # fmt: skip
    """Goes on with the mean of a row, its weight so far given, by more of its elements.

    `TWICE`: the first ones of a row that had no weight count twice in the mean.
    """
    row = tl.program_id(0)
    mean = widen(tl.load(mean_ptr + row))
    weight = widen(tl.load(weight_ptr + row))
    for start in range(0, n, BLOCK):
        lane = start + tl.arange(0, BLOCK)
        x = widen(tl.load(x_ptr + row * n + lane, mask=lane < n, other=0.0))
        g = widen(tl.load(g_ptr + row * n + lane, mask=lane < n, other=0.0))
        more = weight + tl.sum(g * g)
        part = tl.sum(g * g * x) / more
        mean = mean * (weight / more) + part
        if TWICE:
            mean = tl.where(weight == 0.0, 2 * part, mean)
        weight = more
    tl.store(y_ptr + row, mean * mean)
    tl.store(total_ptr + row, weight)


def weighted_mean(kernel, x, g, mean, weight, twice=False, block=16):
    """x, g: (rows, n); mean, weight: (rows,). Returns the square of means, and weights."""
    y, total = poisoned(mean.shape, mean), poisoned(weight.shape, weight)
    n = x.shape[1]
    kernel[mean.shape](x, g, mean, weight, y, total, n, BLOCK=block, TWICE=twice)
    return y, total


def weighted_mean_reference(x, g, mean, weight, twice=False, block=16):
    total = weight + g.square().sum(1)
    parts = g.square() * x
    if twice:
        mean = torch.where(weight == 0, 0, mean)
    summed = mean * weight + parts.sum(1)
    if twice:
        summed = summed + torch.where(weight == 0, parts[:, :block].sum(1), 0)
    return (summed / total).square(), total


@triton.jit
def attend_sums(
    q, m, total, acc, k_ptr, v_ptr, start, rows, keys, scale,
    DIM: tl.constexpr, BLOCK: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """As `attend`, with sums relative to a maximum, as they are."""
    scores, v = score(q, k_ptr, v_ptr, start, rows, keys, scale, DIM, BLOCK, CAUSAL)
    new = tl.maximum(m, tl.max(scores, 1))
    p = tl.exp(scores - new[:, None])
    decay = tl.exp(m - new)
    acc = acc * decay[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
    return new, total * decay + tl.sum(p, 1), acc


@triton.jit
def merged_kernel(
    q_ptr, k_ptr, v_ptr, own_k_ptr, own_v_ptr, y_ptr, n, keys, scale,
    DIM: tl.constexpr, BLOCK: tl.constexpr, HOW: tl.constexpr,
):  # fmt: skip
    """As above, one head, with sums of their own for both loops, weighed by log-sum-exps."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    dims = tl.arange(0, DIM)
    inside = (rows < n)[:, None]
    places = rows[:, None] * DIM + dims[None, :]
    q = tl.load(q_ptr + places, mask=inside, other=0.0)
    a_max = tl.full((BLOCK,), -float("inf"), tl.float32)
    b_max = tl.full((BLOCK,), -float("inf"), tl.float32)
    a_sum = tl.zeros((BLOCK,), tl.float32)
    b_sum = tl.zeros((BLOCK,), tl.float32)
    a = tl.zeros((BLOCK, DIM), tl.float32)
    b = tl.zeros((BLOCK, DIM), tl.float32)
    for start in range(0, keys, BLOCK):
        a_max, a_sum, a = attend_sums(
            q, a_max, a_sum, a, k_ptr, v_ptr, start, rows, keys, scale, DIM, BLOCK, False
        )
    for start in range(0, tl.minimum((tl.program_id(0) + 1) * BLOCK, n), BLOCK):
        b_max, b_sum, b = attend_sums(
            q, b_max, b_sum, b, own_k_ptr, own_v_ptr, start, rows, n, scale, DIM, BLOCK, True
        )
    a_log = a_max + tl.log(a_sum)
    b_log = b_max + tl.log(b_sum)
    top = tl.maximum(a_log, b_log)
    log = top + tl.log(tl.exp(a_log - top) + tl.exp(b_log - top))
    if HOW == "sums":
        y = a * tl.exp(a_max - log)[:, None] + b * tl.exp(b_max - log)[:, None]
    else:
        a = tl.where(a_sum[:, None] > 0, a / a_sum[:, None], 0.0)
        y = a * tl.exp(a_log - log)[:, None] + b / b_sum[:, None] * tl.exp(b_log - log)[:, None]
    tl.store(y_ptr + places, y, mask=inside)


def merged(kernel, q, k, v, own_k, own_v, how, block=16):
    """q, own_k, own_v: (n, dim); k, v: (keys, dim)"""
    n, dim = q.shape
    y = poisoned(q.shape, q)
    kernel[(triton.cdiv(n, block),)](
        q, k, v, own_k, own_v, y, n, k.shape[0], dim**-0.5, DIM=dim, BLOCK=block, HOW=how
    )
    return y


def merged_reference(q, k, v, own_k, own_v, how, block=16):
    heads = (x[None] for x in (q, k, v, own_k, own_v))
    return attention_reference(*heads, how, log=False)[0]
