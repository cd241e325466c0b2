"""Attention whose loop goes over all keys, and skips blocks by a branch around an iteration."""

import torch
import triton
import triton.language as tl

from .common import poisoned, precision_of, softmax_step

# Which blocks of keys a block of queries sees.
FORMS = {
    "causal": lambda i, j, limit: j <= i,
    "start": lambda i, j, limit: j <= i,
    "inverted": lambda i, j, limit: j <= i,
    "multiple": lambda i, j, limit: j <= i,
    "pointers": lambda i, j, limit: j <= i,
    "window": lambda i, j, limit: (j <= i) & (j + 2 > i),
    "window of keys": lambda i, j, limit: (j <= i) & (j + 2 > i),
    "ahead": lambda i, j, limit: j > i - 2,
    "limit": lambda i, j, limit: j <= limit,
    "distance": lambda i, j, limit: (j <= i) & (i - j <= limit),
    "ahead of limit": lambda i, j, limit: j - i <= limit,
    "flags": lambda i, j, limit: (j <= i) & ((i + j) % 3 != 1),
}


@triton.jit
def sees(i, j, limit, BLOCK: tl.constexpr, FORM: tl.constexpr):
    """Whether block i of queries sees block j of keys."""
    if FORM == "start":
        return j * BLOCK <= i * BLOCK + BLOCK - 1
    elif FORM == "multiple":
        return 2 * j < 2 * (i + 1)
    elif FORM == "window":
        return (j <= i) & (j + 2 > i)
    elif FORM == "ahead":
        return j > i - 2
    elif FORM == "limit":
        return j <= limit
    elif FORM == "distance":
        return (j <= i) & (i - j <= limit)
    elif FORM == "ahead of limit":
        return j - i <= limit
    elif FORM == "flags":
        return (j <= i) & ((i + j) % 3 != 1)
    return j <= i


@triton.jit
def block(
    q, k_ptr, v_ptr, row, start, n, scale, state,
    D: tl.constexpr, BLOCK: tl.constexpr, EXACT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A block of keys more, from where the pointers are; EXACT: none that is behind its query."""
    maximum, total, acc = state
    key = tl.arange(0, BLOCK)
    places = key[:, None] * D + tl.arange(0, D)[None, :]
    mask = start + key < n
    k = tl.load(k_ptr + places, mask=mask[:, None], other=0.0)
    v = tl.load(v_ptr + places, mask=mask[:, None], other=0.0)
    scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
    scores = tl.where(mask[None, :], scores, -float("inf"))
    if EXACT:
        scores = tl.where(row[:, None] >= start + key[None, :], scores, -float("inf"))
    return softmax_step(scores, v, maximum, total, acc, PRECISION)


@triton.jit
def skipping_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, n, limit, scale,
    D: tl.constexpr, BLOCK: tl.constexpr, FORM: tl.constexpr, EXACT: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    i, head = tl.program_id(0), tl.program_id(1)
    row = i * BLOCK + tl.arange(0, BLOCK)
    places = (head * n + row[:, None]) * D + tl.arange(0, D)[None, :]
    q = tl.load(q_ptr + places, mask=(row < n)[:, None], other=0.0)
    k_ptr += head * n * D
    v_ptr += head * n * D
    maximum = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    acc = tl.zeros([BLOCK, D], tl.float32)
    if FORM == "window of keys":
        for start in range(0, n, BLOCK):
            if (start <= i * BLOCK) & (start + 2 * BLOCK > i * BLOCK):
                maximum, total, acc = block(
                    q, k_ptr + start * D, v_ptr + start * D, row, start, n, scale,
                    (maximum, total, acc), D, BLOCK, EXACT, PRECISION,
                )  # fmt: skip
    elif FORM == "pointers":
        for j in range(0, tl.cdiv(n, BLOCK)):
            if j <= i:
                maximum, total, acc = block(
                    q, k_ptr, v_ptr, row, j * BLOCK, n, scale, (maximum, total, acc),
                    D, BLOCK, EXACT, PRECISION,
                )  # fmt: skip
            k_ptr += BLOCK * D
            v_ptr += BLOCK * D
    elif FORM == "inverted":
        for j in range(0, tl.cdiv(n, BLOCK)):
            if j > i:
                total = total
            else:
                maximum, total, acc = block(
                    q, k_ptr + j * BLOCK * D, v_ptr + j * BLOCK * D, row, j * BLOCK, n, scale,
                    (maximum, total, acc), D, BLOCK, EXACT, PRECISION,
                )  # fmt: skip
    else:
        for j in range(0, tl.cdiv(n, BLOCK)):
            if sees(i, j, limit, BLOCK, FORM):
                maximum, total, acc = block(
                    q, k_ptr + j * BLOCK * D, v_ptr + j * BLOCK * D, row, j * BLOCK, n, scale,
                    (maximum, total, acc), D, BLOCK, EXACT, PRECISION,
                )  # fmt: skip
    tl.store(out_ptr + places, acc / total[:, None], mask=(row < n)[:, None])


def skipping(kernel, q, k, v, FORM, limit=0, EXACT=False, scale=0.25, BLOCK=16, **options):
    heads, n, width = q.shape
    out = poisoned(q.shape, q)
    kernel[(triton.cdiv(n, BLOCK), heads)](
        q, k, v, out, n, limit, scale, D=width, BLOCK=BLOCK, FORM=FORM, EXACT=EXACT,
        PRECISION=precision_of(q), **options,
    )  # fmt: skip
    return out


def skipping_reference(q, k, v, form, limit=0, exact=False, block=16):
    place = torch.arange(q.shape[1], device=q.device)
    number = place // block
    seen = FORMS[form](number[:, None], number[None, :], limit)
    if exact:
        seen = seen & (place[:, None] >= place[None, :])
    scores = (q @ k.transpose(1, 2) * 0.25).masked_fill(~seen, -float("inf"))
    return torch.softmax(scores, dim=-1) @ v


@triton.jit
def sum_kernel(x_ptr, w_ptr, y_ptr, n, first, last, BLOCK: tl.constexpr):
    """y = Σ x·w over the elements from `first` to `last`, which a branch picks."""
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float64)
    for start in range(0, n, BLOCK):
        if (start >= first) & (start <= last):
            column = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * n + column, mask=column < n, other=0.0)
            w = tl.load(w_ptr + column, mask=column < n, other=0.0)
            total += x * w
    tl.store(y_ptr + row, tl.sum(total, 0))


def picked_sum(kernel, x, w, first, last, BLOCK=8, **options):
    y = poisoned(x.shape[:1], x)
    kernel[(x.shape[0],)](x, w, y, x.shape[1], first, last, BLOCK=BLOCK, **options)
    return y


def picked_sum_reference(x, w, first, last, block=8):
    start = torch.arange(x.shape[1], device=x.device) // block * block
    return ((x * w) * ((start >= first) & (start <= last))).sum(-1)
