"""Forms of attention that one online softmax computes: biases, caps, windows, dropout."""

import torch
import triton
import triton.language as tl

from .common import poisoned, tanh

FORMS = ("plain", "bias", "alibi", "softcap", "window", "dropout", "scaled maximum", "finite start")
CAP, KEPT, WINDOW = 3.0, 0.75, 20


@triton.jit
def variant_kernel(
    q_ptr, k_ptr, v_ptr, bias_ptr, out_ptr, lse_ptr, n_context, scale, seed, first_key,
    FORM: tl.constexpr, LSE: tl.constexpr, DIM: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    CAP: tl.constexpr, KEPT: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    """One block of queries of one head: (heads, context, dim), contiguous.

    LSE: what is stored of the log-sum-exp: none, base e, or base 2.
    """
    head = tl.program_id(1)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, DIM)
    offsets = head * n_context * DIM + rows[:, None] * DIM + dims[None, :]
    q = tl.load(q_ptr + offsets)
    start: tl.constexpr = -1.0e30 if FORM == "finite start" else -float("inf")
    row_max = tl.full((BLOCK_M,), start, tl.float32)
    row_sum = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, DIM), tl.float32)
    low = 0
    if FORM == "window":
        low = tl.maximum(tl.program_id(0) * BLOCK_M - WINDOW, 0) // BLOCK_N * BLOCK_N
    for block in range(low, n_context, BLOCK_N):
        keys = block + tl.arange(0, BLOCK_N)
        others = head * n_context * DIM + keys[:, None] * DIM + dims[None, :]
        k = tl.load(k_ptr + others)
        v = tl.load(v_ptr + others)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee")
        pairs = rows[:, None] * n_context + keys[None, :]
        if FORM != "scaled maximum":
            scores *= scale
        if FORM == "bias":
            scores += tl.load(bias_ptr + pairs)
        if FORM == "alibi":
            scores -= 0.1 * (head + 1) * tl.abs(rows[:, None] - keys[None, :]).to(tl.float32)
        if FORM == "softcap":
            scores = CAP * tanh(scores / CAP)
        if FORM == "window":
            distance = rows[:, None] - keys[None, :]
            scores = tl.where((distance >= 0) & (distance <= WINDOW), scores, -1.0e30)
        if FORM == "finite start":
            seen = (keys >= first_key)[None, :] & (rows > 2)[:, None]
            scores = tl.where(seen, scores, -float("inf"))
        if FORM == "scaled maximum":  # the shift and the product are one operation
            new_max = tl.maximum(row_max, tl.max(scores, 1) * scale)
            p = tl.exp(scores * scale - new_max[:, None])
        else:
            new_max = tl.maximum(row_max, tl.max(scores, 1))
            p = tl.exp(scores - new_max[:, None])
        alpha = tl.exp(row_max - new_max)
        row_sum = row_sum * alpha + tl.sum(p, 1)
        if FORM == "dropout":
            p = tl.where(tl.rand(seed, pairs) < KEPT, p / KEPT, 0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")
        row_max = new_max
    tl.store(out_ptr + offsets, acc / row_sum[:, None])
    if LSE == "e":
        tl.store(lse_ptr + head * n_context + rows, row_max + tl.log(row_sum))
    if LSE == "2":
        lse = (row_max + tl.log(row_sum)) * 1.44269504
        tl.store(lse_ptr + head * n_context + rows, lse)


@triton.jit
def kept_kernel(kept_ptr, n_context, seed, KEPT: tl.constexpr, BLOCK: tl.constexpr):
    """What the dropout keeps of a row."""
    pairs = tl.program_id(0) * n_context + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < n_context
    tl.store(kept_ptr + pairs, tl.rand(seed, pairs) < KEPT, mask=mask)


def variant(kernel, q, k, v, bias, form, lse="none", seed=7, first_key=0):
    """The output and, if it is stored, the log-sum-exp."""
    heads, context, dim = q.shape
    out, sums = poisoned(q.shape, q), poisoned((heads, context), q, torch.float32)
    kernel[(context // 32, heads)](
        q, k, v, bias, out, sums, context, dim**-0.5, seed, first_key, FORM=form, LSE=lse,
        DIM=dim, BLOCK_M=32, BLOCK_N=16, CAP=CAP, KEPT=KEPT, WINDOW=WINDOW,
    )  # fmt: skip
    if form == "finite start":
        out = out[:, 3:]  # what the kernel masks has no sum
    return out if lse == "none" else (out, sums)


def kept(context, seed, device):
    mask = torch.empty(context, context, dtype=torch.bool, device=device)
    kept_kernel[(context,)](mask, context, seed, KEPT=KEPT, BLOCK=triton.next_power_of_2(context))
    return mask


def variant_reference(q, k, v, bias, form, lse="none", mask=None, first_key=0):
    heads, context, dim = q.shape
    scores = (q @ k.transpose(-1, -2)) * dim**-0.5
    place = torch.arange(context, device=q.device)
    distance = place[:, None] - place[None, :]
    if form == "bias":
        scores = scores + bias
    if form == "alibi":
        slopes = 0.1 * torch.arange(1, heads + 1, device=q.device)
        scores = scores - slopes[:, None, None].to(q.dtype) * distance.abs()
    if form == "softcap":
        scores = CAP * torch.tanh(scores / CAP)
    if form == "window":
        scores = scores.masked_fill((distance < 0) | (distance > WINDOW), -float("inf"))
    if form == "finite start":
        scores = scores[:, 3:].masked_fill(place < first_key, -float("inf"))
    p = scores.softmax(-1)
    if form == "dropout":
        p = p * mask / KEPT
    sums = scores.logsumexp(-1) * {"2": 1.44269504}.get(lse, 1.0)
    return p @ v if lse == "none" else (p @ v, sums)


@triton.jit
def sink_kernel(
    q_ptr, k_ptr, v_ptr, sinks_ptr, out_ptr, rows, columns, scale, DIM: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Attention of heads with a learnt score for nothing, from which the maxima start."""
    head = tl.program_id(1)
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, DIM)
    places = (head * rows + row[:, None]) * DIM + dims[None, :]
    q = tl.load(q_ptr + places, mask=row[:, None] < rows, other=0.0)
    row_max = tl.zeros((BLOCK_M,), tl.float32) + tl.load(sinks_ptr + head)
    row_sum = tl.full((BLOCK_M,), 1.0, tl.float32)
    acc = tl.zeros((BLOCK_M, DIM), tl.float32)
    for start in range(0, columns, BLOCK_N):
        column = start + tl.arange(0, BLOCK_N)
        kv = (head * columns + column[:, None]) * DIM + dims[None, :]
        k = tl.load(k_ptr + kv, mask=column[:, None] < columns, other=0.0)
        v = tl.load(v_ptr + kv, mask=column[:, None] < columns, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(column[None, :] < columns, scores, -float("inf"))
        above = tl.maximum(row_max, tl.max(scores, 1))
        weights = tl.exp(scores - above[:, None])
        rescale = tl.exp(row_max - above)
        row_sum = row_sum * rescale + tl.sum(weights, 1)
        acc = acc * rescale[:, None] + tl.dot(weights, v, input_precision="ieee")
        row_max = above
    tl.store(out_ptr + places, acc / row_sum[:, None], mask=row[:, None] < rows)


def sink(kernel, q, k, v, sinks, BLOCK_M=16, BLOCK_N=16):
    """q: (heads, rows, dim); k, v: (heads, columns, dim); sinks: (heads,)"""
    out = poisoned(q.shape, q)
    heads, rows, dim = q.shape
    kernel[(triton.cdiv(rows, BLOCK_M), heads)](
        q, k, v, sinks, out, rows, k.shape[1], dim**-0.5, DIM=dim, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
    return out


def sink_reference(q, k, v, sinks, BLOCK_M=16, BLOCK_N=16):
    scores = q @ k.transpose(1, 2) * q.shape[2] ** -0.5
    nothing = sinks[:, None, None].expand(*q.shape[:2], 1)
    return torch.cat([scores, nothing], 2).softmax(2)[:, :, :-1] @ v
