"""Tiles whose last rows are not numbers, and are not stored."""

import torch
import triton
import triton.language as tl
from triton.backends.autodiff import stop_gradient

from .common import poisoned, precision_of, softmax_step


@triton.jit
def cosine_kernel(
    x_ptr, w_ptr, y_ptr, m, n, scale,
    D: tl.constexpr, BLOCK: tl.constexpr, MIXED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """y = scale · x̂ ŵᵀ of normalized rows: a row of zeros, behind the end, is 0/0."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, D)
    x = tl.load(x_ptr + rows[:, None] * D + d[None, :], mask=(rows < m)[:, None], other=0.0)
    w = tl.load(w_ptr + columns[:, None] * D + d[None, :], mask=(columns < n)[:, None], other=0.0)
    x = x * tl.rsqrt(tl.sum(x * x, 1))[:, None]
    w = w / tl.sqrt(tl.sum(w * w, 1))[:, None]
    y = scale * tl.dot(x, tl.trans(w), input_precision=PRECISION)
    places = rows[:, None] * n + columns[None, :]
    stored = (rows < m)[:, None] & (columns < n)[None, :]
    if MIXED:
        # Part of the condition is of both axes at once.
        stored = stored & (rows[:, None] + columns[None, :] < m + n)
    tl.store(y_ptr + places, y, mask=stored)


def cosine(kernel, x, w, MIXED=False, scale=2.0, BLOCK=16, **options):
    m, n = x.shape[0], w.shape[0]
    y = poisoned((m, n), x)
    grid = (triton.cdiv(m, BLOCK), triton.cdiv(n, BLOCK))
    kernel[grid](
        x, w, y, m, n, scale, D=x.shape[1], BLOCK=BLOCK, MIXED=MIXED,
        PRECISION=precision_of(x), **options,
    )  # fmt: skip
    return y


def cosine_reference(x, w, mixed, scale=2.0):
    x = x / x.norm(dim=1, keepdim=True)
    w = w / w.norm(dim=1, keepdim=True)
    return scale * x @ w.T


@triton.jit
def unguarded_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, m, n, scale,
    D: tl.constexpr, BLOCK: tl.constexpr, HOW: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Attention in which rows behind the end see no key: their softmax is 0/0."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :], mask=(rows < m)[:, None], other=0.0)
    maximum = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    acc = tl.zeros([BLOCK, D], tl.float32)
    for start in range(0, n, BLOCK):
        keys = start + tl.arange(0, BLOCK)
        places = keys[:, None] * D + d[None, :]
        k = tl.load(k_ptr + places, mask=(keys < n)[:, None], other=0.0)
        v = tl.load(v_ptr + places, mask=(keys < n)[:, None], other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION)
        seen = (keys < n)[None, :] & (rows < m)[:, None]
        if HOW == "finite":
            # Rows in which all weights are the same, and are stored.
            scores = tl.where((rows % 3 != 1)[:, None], scores * scale, -1e9)
        elif HOW == "finite, scaled":
            scores = tl.where((rows % 3 != 1)[:, None], scores, -1e9) * scale
        elif HOW == "zeroed":
            # Causal, with five queries more than keys: the first ones see none.
            seen = (keys < n)[None, :] & (rows[:, None] >= keys[None, :] + 5)
            scores = tl.where(seen, scores * scale, -float("inf"))
        elif HOW == "selected":
            scores = tl.where(seen, scores * scale, -float("inf"))
        elif HOW == "added":
            scores = scores * scale + tl.where(seen, 0.0, -float("inf"))
        else:
            scores = (scores + tl.where(seen, 0.0, -float("inf"))) * scale
        if HOW == "unscaled":
            # The maximum is that of half of the scores.
            following = tl.maximum(maximum, tl.max(scores, 1))
            p = tl.exp(2.0 * scale * scores - (2.0 * scale * following)[:, None])
            factor = tl.exp(2.0 * scale * (maximum - following))
            total = total * factor + tl.sum(p, 1)
            acc = tl.dot(p, v, acc * factor[:, None], input_precision=PRECISION)
            maximum = following
        else:
            maximum, total, acc = softmax_step(scores, v, maximum, total, acc, PRECISION)
    places = rows[:, None] * D + d[None, :]
    acc = acc / total[:, None]
    if HOW == "zeroed" and tl.program_id(0) * BLOCK < 5:
        acc = tl.where((rows >= 5)[:, None], acc, 0.0)
    tl.store(out_ptr + places, acc, mask=(rows < m)[:, None])


def unguarded(kernel, q, k, v, HOW="selected", scale=0.5, BLOCK=16, **options):
    out = poisoned(q.shape, q)
    kernel[(triton.cdiv(q.shape[0], BLOCK),)](
        q, k, v, out, q.shape[0], k.shape[0], scale, D=q.shape[1], BLOCK=BLOCK, HOW=HOW,
        PRECISION=precision_of(q), **options,
    )  # fmt: skip
    return out


def unguarded_reference(q, k, v, how="selected", scale=0.5):
    # "unscaled" has the scale twice, and 2.
    scores = q @ k.T * (2 * scale**2 if how == "unscaled" else scale)
    if how.startswith("finite"):
        is_masked = torch.arange(len(q), device=q.device) % 3 == 1
        scores = scores.masked_fill(is_masked[:, None], -1e9)
    if how == "zeroed":
        row, key = (torch.arange(len(x), device=q.device) for x in (q, k))
        scores = scores.masked_fill(row[:, None] < key + 5, -float("inf"))
        return torch.cat([torch.zeros_like(q[:5]), torch.softmax(scores[5:], dim=-1) @ v])
    return torch.softmax(scores, dim=-1) @ v


@triton.jit
def biased_kernel(
    x_ptr, w_ptr, y_ptr, m, n, BLOCK: tl.constexpr, ROWS: tl.constexpr, HOW: tl.constexpr
):  # fmt: skip
    """softmax of some rows a program, those behind the end 0/0, of x + w or x · eʷ."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    mask = (rows < m)[:, None] & (columns < n)[None, :]
    places = rows[:, None] * n + columns[None, :]
    w = tl.load(w_ptr + columns, mask=columns < n, other=0.0)[None, :]
    x = tl.load(x_ptr + places, mask=mask, other=-float("inf"))
    z = x + w if HOW == "sum" else x * tl.exp(w)
    z = z - tl.max(z, 1)[:, None]
    e = tl.exp(z)
    tl.store(y_ptr + places, e / tl.sum(e, 1)[:, None], mask=mask)


def biased(kernel, x, w, HOW, ROWS=8, **options):
    m, n = x.shape
    y = poisoned(x.shape, x)
    block = triton.next_power_of_2(n)
    kernel[(triton.cdiv(m, ROWS),)](x, w, y, m, n, BLOCK=block, ROWS=ROWS, HOW=HOW, **options)
    return y


def biased_reference(x, w, how):
    return torch.softmax(x + w if how == "sum" else x * w.exp(), dim=-1)


@triton.jit
def _decided(s, table_ptr, USE: tl.constexpr):
    """A number for each row of s, with derivative zero."""
    if USE == "argmax":
        number = tl.argmax(s, 1).to(s.dtype)
    elif USE == "argmin":
        number = tl.argmin(s, 1).to(s.dtype)
    elif USE == "place of the maximum":
        _, place = tl.max(s, 1, return_indices=True)
        number = place.to(s.dtype)
    elif USE == "comparison":
        number = tl.sum((s > 0).to(s.dtype), 1)
    elif USE == "integer":
        number = tl.sum((s * 4).to(tl.int32), 1).to(s.dtype)
    elif USE == "floor":
        number = tl.sum(tl.floor(s.to(tl.float32)), 1).to(s.dtype)
    elif USE == "stopped":
        number = tl.sum(stop_gradient(s), 1)
    else:
        number = tl.load(table_ptr + tl.argmax(s, 1))
    return number


@triton.jit
def deciding_kernel(
    x_ptr, w_ptr, table_ptr, y_ptr, n,
    D: tl.constexpr, USE: tl.constexpr, WHERE: tl.constexpr, PRODUCT: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """y = numbers that s decides, plus n times the sums of its rows; n is 0 or 1."""
    rows, columns = tl.arange(0, D), tl.arange(0, D)
    places = rows[:, None] * D + columns[None, :]
    x, w = tl.load(x_ptr + places), tl.load(w_ptr + places)
    if PRODUCT == "dot":
        s = tl.dot(x, w, input_precision=PRECISION).to(x.dtype)
    elif PRODUCT == "cumprod":
        s = tl.cumprod(x * w, 1)
    else:
        s = x * w
    y = _decided(s, table_ptr, USE)
    if WHERE == "a branch":
        if n > 0:
            y += tl.sum(s, 1)
    elif WHERE == "a branch on it":
        if (n > 0) & (tl.max(tl.max(s, 1), 0) > -1e4):
            y += tl.sum(s, 1)
    elif WHERE == "a selection":
        y += tl.sum(tl.where(n > 0, s, 0.0), 1)
    elif WHERE == "a loop":
        for _ in range(n):
            y += tl.sum(s, 1)
    elif WHERE == "a while":
        i = 0
        while i < n:
            y += tl.sum(s, 1)
            i += 1
    else:
        for i in range(2):
            inner = s * w
            y += _decided(inner, table_ptr, USE)
            if i < n:
                y += tl.sum(inner, 1)
    tl.store(y_ptr + rows, y)


def deciding(kernel, x, w, table, n, USE, WHERE, PRODUCT, **options):
    y = poisoned(x.shape[:1], x)
    kernel[(1,)](
        x, w, table, y, n, D=len(x), USE=USE, WHERE=WHERE, PRODUCT=PRODUCT,
        PRECISION=precision_of(x), **options,
    )  # fmt: skip
    return y


def deciding_reference(x, w, n, where, product):
    """The part of it that has a derivative."""
    if product == "dot":
        s = x @ w
    else:
        s = x * w if product == "product" else (x * w).cumprod(1)
    return n * (s * w if where == "iterations" else s).sum(1)


@triton.jit
def _count_and_add(n, a, m, b):
    top = tl.maximum(a, b)
    return n + m, top + tl.log(tl.exp(a - top) + tl.exp(b - top))


@triton.jit
def counted_kernel(x_ptr, y_ptr, n, D: tl.constexpr, SCAN: tl.constexpr):
    """y = D, plus n times the logarithms of sums of exponentials of x; n is 0 or 1."""
    rows = tl.arange(0, D)
    x = tl.load(x_ptr + rows[:, None] * D + rows[None, :])
    pairs = tl.full([D, D], 1, tl.int32), x
    if SCAN:
        count, total = tl.associative_scan(pairs, 1, _count_and_add)
        y = tl.max(count, 1).to(x.dtype)
        if n > 0:
            y += tl.sum(total, 1)
    else:
        count, total = tl.reduce(pairs, 1, _count_and_add)
        y = count.to(x.dtype)
        if n > 0:
            y += total
    tl.store(y_ptr + rows, y)


def counted(kernel, x, n, SCAN, **options):
    y = poisoned(x.shape[:1], x)
    kernel[(1,)](x, y, n, D=len(x), SCAN=SCAN, **options)
    return y


def counted_reference(x, n, scan):
    y = x.logcumsumexp(1).sum(1) if scan else x.logsumexp(1)
    return len(x) + n * y


@triton.jit
def prefixes_kernel(x_ptr, y_ptr, rows, kept, D: tl.constexpr):
    """Row r of y is the sum of x² over the rows before r; those before `kept` are stored."""
    lanes = tl.arange(0, D)
    for row in range(tl.program_id(0), rows, 1):
        total = tl.zeros([D], y_ptr.dtype.element_ty)
        tl.debug_barrier()  # which keeps the rows in one program
        for i in range(0, row):
            x = tl.load(x_ptr + i * D + lanes)
            total += x * x
        tl.store(y_ptr + row * D + lanes, total, mask=row < kept)


def prefixes(kernel, x, kept, **options):
    y = poisoned((len(x) + 1, x.shape[1]), x)
    kernel[(1,)](x, y, len(y), kept, D=x.shape[1], **options)
    return y[:kept]


def prefixes_reference(x, kept):
    return torch.cat([torch.zeros_like(x[:1]), x.square().cumsum(0)])[:kept]
