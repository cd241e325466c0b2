"""Learned scales of what is padded with −∞ or ∞, or 0 of which a logarithm is taken."""

import torch
import triton
import triton.language as tl

from .common import poisoned, precision_of, softmax_step, widen

SCALES = ("product", "quotient", "sum", "fma", "twice", "lowest", "columns")


@triton.jit
def scaled(x, more, scale, mask, HOW: tl.constexpr):
    """The padded `x`, by a scale (of each column, if it is a tile)."""
    if HOW == "quotient":
        return x / scale
    elif HOW == "sum":
        return (x + more) * scale
    elif HOW == "fma":
        return tl.math.fma(x, scale, more)
    elif HOW == "twice":
        return tl.where(mask, x, -float("inf")) * scale * scale
    elif HOW == "lowest":
        # Finite, but not divided by a number below one.
        return tl.where(mask, x, -3.0e38) / scale
    return x * scale


@triton.jit
def scaled_softmax_kernel(
    x_ptr, scale_ptr, out_ptr, n, BLOCK: tl.constexpr, HOW: tl.constexpr
):  # fmt: skip
    """softmax(x · scale) of a row per program, padded with −∞."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < n
    x = widen(tl.load(x_ptr + row * n + column, mask=mask, other=-float("inf")))
    more = widen(tl.load(x_ptr + row * n + column, mask=mask, other=0.0))
    if HOW == "columns":
        # In padded columns the scale is a number, too.
        scale = widen(tl.load(scale_ptr + column % n))
    else:
        scale = widen(tl.load(scale_ptr)) + tl.zeros((BLOCK,), more.dtype)
    z = scaled(x, more, scale, mask, HOW)
    e = tl.exp(z - tl.max(z, 0))
    tl.store(out_ptr + row * n + column, e / tl.sum(e, 0), mask=mask)


def scaled_softmax(kernel, x, scale, HOW, **options):
    rows, n = x.shape
    out = poisoned(x.shape, x)
    kernel[(rows,)](x, scale, out, n, BLOCK=triton.next_power_of_2(n), HOW=HOW, **options)
    return out


def scaled_softmax_reference(x, scale, how):
    z = {
        "quotient": lambda: x / scale,
        "sum": lambda: 2 * x * scale,
        "fma": lambda: x * scale + x,
        "twice": lambda: x * scale * scale,
        "lowest": lambda: x / scale,
    }.get(how, lambda: x * scale)()
    return torch.softmax(z, dim=-1)


@triton.jit
def online_kernel(x_ptr, scale_ptr, out_ptr, n, BLOCK: tl.constexpr, UNSCALED: tl.constexpr):
    """log Σ e^(x/t) of a row per program, in blocks of which the last one is padded.

    UNSCALED: log Σ e^(x·t), with a maximum so far that is one of x.
    """
    row = tl.program_id(0)
    t = widen(tl.load(scale_ptr))
    maximum = tl.full((), -float("inf"), tl.float32).to(t.dtype)
    total = tl.zeros((), t.dtype)
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = widen(tl.load(x_ptr + row * n + column, mask=column < n, other=-float("inf")))
        z = x if UNSCALED else x / t
        following = tl.maximum(maximum, tl.max(z, 0))
        if UNSCALED:
            factor = tl.exp((maximum - following) * t)
            p = tl.exp(z * t - following * t)
        else:
            factor = tl.exp(maximum - following)
            p = tl.exp(z - following)
        total = total * factor + tl.sum(p, 0)
        maximum = following
    if UNSCALED:
        maximum = maximum * t
    tl.store(out_ptr + row, maximum + tl.log(total))


def online(kernel, x, scale, UNSCALED, BLOCK=16, **options):
    out = poisoned(x.shape[:1], x)
    n = x.shape[1]
    kernel[(x.shape[0],)](x, scale, out, n, BLOCK=BLOCK, UNSCALED=UNSCALED, **options)
    return out


def online_reference(x, scale, unscaled):
    return torch.logsumexp(x * scale if unscaled else x / scale, dim=-1)


@triton.jit
def decayed_kernel(x_ptr, rate_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Σ e^(−rate·x) of a row per program, padded with ∞."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    x = widen(tl.load(x_ptr + row * n + column, mask=column < n, other=float("inf")))
    rate = widen(tl.load(rate_ptr))
    tl.store(out_ptr + row, tl.sum(tl.exp(-rate * x), 0))


def decayed(kernel, x, rate, **options):
    out = poisoned(x.shape[:1], x)
    block = triton.next_power_of_2(x.shape[1])
    kernel[(x.shape[0],)](x, rate, out, x.shape[1], BLOCK=block, **options)
    return out


def decayed_reference(x, rate):
    return torch.exp(-rate * x).sum(dim=-1)


SUMS = {
    "power": lambda x, p: x**p,
    "power of two": lambda x, p: x**p,
    "quotient": lambda x, p: torch.exp(-p / x),
    "sigmoid": lambda x, p: torch.sigmoid(x * p),
    "mask": lambda x, p: torch.exp((x + 1) * p),
}


@triton.jit
def powers_kernel(x_ptr, p_ptr, out_ptr, n, BLOCK: tl.constexpr, HOW: tl.constexpr):
    """Sums of rows in which padding adds nothing, though its logarithm is infinite."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < n
    p = widen(tl.load(p_ptr))
    x = widen(tl.load(x_ptr + row * n + column, mask=mask, other=0.0))
    if HOW == "power":
        terms = tl.exp(p * tl.log(x))
    elif HOW == "power of two":
        terms = tl.exp2(p * tl.log2(x))
    elif HOW == "quotient":
        terms = tl.exp(-p / x)
    elif HOW == "sigmoid":
        terms = tl.sigmoid(tl.where(mask, x, -float("inf")) * p)
    else:
        terms = tl.exp((x + 1.0 + tl.log(mask.to(x.dtype))) * p)
    tl.store(out_ptr + row, tl.sum(terms, 0))


def powers(kernel, x, p, HOW, **options):
    out = poisoned(x.shape[:1], x)
    block = triton.next_power_of_2(x.shape[1])
    kernel[(x.shape[0],)](x, p, out, x.shape[1], BLOCK=block, HOW=HOW, **options)
    return out


def powers_reference(x, p, how):
    return SUMS[how](x, p).sum(dim=-1)


@triton.jit
def scaled_attention_kernel(
    q_ptr, k_ptr, v_ptr, scale_ptr, out_ptr, n,
    D: tl.constexpr, BLOCK: tl.constexpr, ADDED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Causal attention of a head per program_id(1), with its scale learned, behind the mask."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    head = tl.program_id(1)
    d = tl.arange(0, D)
    scale = tl.load(scale_ptr + head)
    places = (head * n + row[:, None]) * D + d[None, :]
    q = tl.load(q_ptr + places, mask=(row < n)[:, None], other=0.0)
    maximum = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    acc = tl.zeros([BLOCK, D], tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BLOCK, BLOCK):
        key = start + tl.arange(0, BLOCK)
        those = (head * n + key[:, None]) * D + d[None, :]
        k = tl.load(k_ptr + those, mask=(key < n)[:, None], other=0.0)
        v = tl.load(v_ptr + those, mask=(key < n)[:, None], other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION)
        seen = key[None, :] <= row[:, None]
        if ADDED:
            scores = (scores + tl.where(seen, 0.0, -float("inf"))) * scale
        else:
            scores = tl.where(seen, scores, -float("inf")) * scale
        maximum, total, acc = softmax_step(scores, v, maximum, total, acc, PRECISION)
    tl.store(out_ptr + places, acc / total[:, None], mask=(row < n)[:, None])


def scaled_attention(kernel, q, k, v, scale, ADDED=False, BLOCK=16, **options):
    heads, n, width = q.shape
    out = poisoned(q.shape, q)
    kernel[(triton.cdiv(n, BLOCK), heads)](
        q, k, v, scale, out, n, D=width, BLOCK=BLOCK, ADDED=ADDED,
        PRECISION=precision_of(q), **options,
    )  # fmt: skip
    return out


def scaled_attention_reference(q, k, v, scale, added=False):
    scores = q @ k.transpose(1, 2) * scale[:, None, None]
    n = q.shape[1]
    later = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1)
    return torch.softmax(scores.masked_fill(later, -float("inf")), dim=-1) @ v
