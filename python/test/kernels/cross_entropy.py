"""Cross-entropy over a vocabulary of run-time size: an online log-sum-exp, then the target."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import poisoned, widen


@triton.jit
def cross_entropy_kernel(
    logits_ptr, target_ptr, loss_ptr, lse_ptr, stride, n_classes, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    logits_ptr += row * stride
    target = tl.load(target_ptr + row)
    picked = widen(tl.load(logits_ptr + target))
    running_max = tl.full((), -float("inf"), picked.dtype)
    running_sum = tl.full((), 0.0, picked.dtype)
    for start in range(0, n_classes, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = widen(tl.load(logits_ptr + columns, mask=columns < n_classes, other=-float("inf")))
        new_max = tl.maximum(running_max, tl.max(x, axis=0))
        running_sum = running_sum * tl.exp(running_max - new_max)
        running_sum += tl.sum(tl.exp(x - new_max), axis=0)
        running_max = new_max
    lse = running_max + tl.log(running_sum)
    tl.store(lse_ptr + row, lse)
    tl.store(loss_ptr + row, lse - picked)


@triton.jit
def _two_sums(x_ptr, y_ptr, begin, end, m, a, n, b, BLOCK: tl.constexpr):
    """Online log-sum-exps of two rows in one loop, where others stopped."""
    for start in range(begin, end, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = widen(tl.load(x_ptr + columns, mask=columns < end, other=-float("inf")))
        y = widen(tl.load(y_ptr + columns, mask=columns < end, other=-float("inf")))
        new_m, new_n = tl.maximum(m, tl.max(x, axis=0)), tl.maximum(n, tl.max(y, axis=0))
        a = a * tl.exp(m - new_m) + tl.sum(tl.exp(x - new_m), axis=0)
        b = b * tl.exp(n - new_n) + tl.sum(tl.exp(y - new_n), axis=0)
        m, n = new_m, new_n
    return m, a, n, b


@triton.jit
def divergence_kernel(
    x_ptr, y_ptr, d_ptr, split, n_classes, TWICE: tl.constexpr, BLOCK: tl.constexpr
):
    """The sum of softmax(x) · (log softmax(x) − log softmax(y)) over a row."""
    row = tl.program_id(0)
    x_ptr += row * n_classes
    y_ptr += row * n_classes
    zero = tl.sum(widen(tl.zeros((1,), x_ptr.dtype.element_ty)), axis=0)
    m, a, n, b = zero - float("inf"), zero, zero - float("inf"), zero
    if TWICE:
        m, a, n, b = _two_sums(x_ptr, y_ptr, 0, split, m, a, n, b, BLOCK)
        m, a, n, b = _two_sums(x_ptr, y_ptr, split, n_classes, m, a, n, b, BLOCK)
    else:
        m, a, n, b = _two_sums(x_ptr, y_ptr, 0, n_classes, m, a, n, b, BLOCK)
    of_x, of_y, total = m + tl.log(a), n + tl.log(b), zero
    for start in range(0, n_classes, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < n_classes
        x = widen(tl.load(x_ptr + columns, mask=mask, other=0.0)) - of_x
        y = widen(tl.load(y_ptr + columns, mask=mask, other=0.0)) - of_y
        total += tl.sum(tl.where(mask, tl.exp(x) * (x - y), 0.0), axis=0)
    tl.store(d_ptr + row, total)


def divergence(kernel, x, y, split=None, BLOCK=16):
    """Of every row; `split` is where a second loop takes over."""
    d = poisoned(x.shape[:1], x)
    kernel[x.shape[:1]](x, y, d, split or 0, x.shape[1], TWICE=split is not None, BLOCK=BLOCK)
    return d


def divergence_reference(x, y, split=None, BLOCK=16):
    of_x, of_y = x.log_softmax(-1), y.log_softmax(-1)
    return (of_x.exp() * (of_x - of_y)).sum(-1)


def cross_entropy(kernel, logits, target, BLOCK=128, **options):
    """The loss of every row."""
    rows, classes = logits.shape
    loss, lse = poisoned((rows,), logits), poisoned((rows,), logits)
    kernel[(rows,)](logits, target, loss, lse, logits.stride(0), classes, BLOCK=BLOCK, **options)
    return loss


def cross_entropy_reference(logits, target):
    return F.cross_entropy(logits, target, reduction="none")


@triton.jit
def counted_kernel(
    logits_ptr, target_ptr, loss_ptr, stride_batch, stride_row, n_classes, ignored,
    COUNTS_FIRST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The first rows of each batch, of which some do not count: their target is not looked at."""
    row = tl.program_id(0)
    batch = tl.program_id(1)
    place = batch * tl.num_programs(0) + row
    logits_ptr += batch * stride_batch + row * stride_row
    target = tl.load(target_ptr + place)
    columns = tl.arange(0, BLOCK)
    x = widen(tl.load(logits_ptr + columns, mask=columns < n_classes, other=-float("inf")))
    largest = tl.max(x, axis=0)
    loss = largest + tl.log(tl.sum(tl.exp(x - largest), axis=0))
    if COUNTS_FIRST:
        if target != ignored:
            loss -= widen(tl.load(logits_ptr + target))
        else:
            loss = 0.0
    else:
        if target == ignored:
            loss = 0.0
        else:
            if ignored < 0:
                loss -= widen(tl.load(logits_ptr + target))
    tl.store(loss_ptr + place, loss)


def counted(kernel, logits, target, ignored, counts_first=True):
    (batches, _, classes), rows = logits.shape, target.shape[1]
    loss = poisoned((batches, rows), logits)
    strides = logits.stride()
    options = {"COUNTS_FIRST": counts_first, "BLOCK": triton.next_power_of_2(classes)}
    kernel[(rows, batches)](logits, target, loss, *strides[:2], classes, ignored, **options)
    return loss


def counted_reference(logits, target, ignored, counts_first=True):
    """A target beyond the classes is one of the next row's."""
    rows = logits[:, : target.shape[1]]
    starts = torch.arange(rows.shape[1], device=rows.device) * logits.shape[2]
    picked = logits.flatten(1).gather(1, starts + target.clamp(min=0))
    return torch.where(target == ignored, 0, rows.logsumexp(-1) - picked)


@triton.jit
def chunked_kernel(
    logits_ptr, target_ptr, picked_ptr, lse_ptr, stride, n_classes, ignored,
    PICKED_BY: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Chunks of a row are as many programs, of which one looks at the target."""
    row, chunk = tl.program_id(0), tl.program_id(1)
    logits_ptr += row * stride
    columns = chunk * BLOCK + tl.arange(0, BLOCK)
    x = widen(tl.load(logits_ptr + columns, mask=columns < n_classes, other=-float("inf")))
    largest = tl.max(x, axis=0)
    lse = largest + tl.log(tl.sum(tl.exp(x - largest), axis=0))
    tl.store(lse_ptr + row * tl.num_programs(1) + chunk, lse)
    if chunk == PICKED_BY:
        target = tl.load(target_ptr + row)
        picked = lse * 0.0
        if target != ignored:
            picked = widen(tl.load(logits_ptr + target))
        tl.store(picked_ptr + row, picked)


def chunked(kernel, logits, target, ignored, picked_by=0, BLOCK=16):
    """The target's logits, and the log-sum-exp of each chunk."""
    rows, classes = logits.shape
    chunks = triton.cdiv(classes, BLOCK)
    picked, lse = poisoned((rows,), logits), poisoned((rows, chunks), logits)
    kernel[(rows, chunks)](
        logits, target, picked, lse, logits.stride(0), classes, ignored, PICKED_BY=picked_by,
        BLOCK=BLOCK,
    )  # fmt: skip
    return picked, lse


def chunked_reference(logits, target, ignored, picked_by=0, BLOCK=16):
    """A target beyond the classes is one of the next row's."""
    starts = torch.arange(logits.shape[0], device=logits.device) * logits.shape[1]
    picked = torch.where(target == ignored, 0, logits.flatten()[starts + target.clamp(min=0)])
    chunks = logits.split(BLOCK, 1)
    return picked, torch.stack([chunk.logsumexp(1) for chunk in chunks], 1)


@triton.jit
def returning_kernel(
    logits_ptr, target_ptr, loss_ptr, lse_ptr, stride, n_classes, ignored, smoothing,
    TARGET_FIRST: tl.constexpr, BY_FLOATS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Programs whose row does not count store zeros and return."""
    row = tl.program_id(0)
    target = tl.load(target_ptr + row)
    logits_ptr += row.to(tl.int64) * stride
    if BY_FLOATS:
        returns = target.to(tl.float32) == ignored
    else:
        returns = target == ignored
    if returns:
        tl.store(lse_ptr + row, 0.0)
        tl.store(loss_ptr + row, 0.0)
        return
    if TARGET_FIRST:
        picked = widen(tl.load(logits_ptr + target))
    zero = tl.sum(widen(tl.zeros((1,), logits_ptr.dtype.element_ty)), axis=0)
    running_max, running_sum, total = zero - float("inf"), zero, zero
    for start in range(0, n_classes, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < n_classes
        x = widen(tl.load(logits_ptr + columns, mask=mask, other=-float("inf")))
        total += tl.sum(tl.where(mask, x, 0.0), axis=0)
        new_max = tl.maximum(running_max, tl.max(x, axis=0))
        running_sum *= tl.exp(running_max - new_max)
        running_sum += tl.sum(tl.exp(x - new_max), axis=0)
        running_max = new_max
    if not TARGET_FIRST:
        picked = widen(tl.load(logits_ptr + target))
    lse = running_max + tl.log(running_sum)
    tl.store(lse_ptr + row, lse)
    tl.store(loss_ptr + row, lse - (1 - smoothing) * picked - smoothing * total / n_classes)


def returning(kernel, logits, target, ignored, target_first=True, by_floats=False, BLOCK=16):
    rows, classes = logits.shape
    loss, lse = poisoned((rows,), logits), poisoned((rows,), logits)
    kernel[(rows,)](
        logits, target, loss, lse, logits.stride(0), classes, ignored, 0.25,
        TARGET_FIRST=target_first, BY_FLOATS=by_floats, BLOCK=BLOCK,
    )  # fmt: skip
    return loss, lse


def returning_reference(logits, target, ignored, target_first=True, by_floats=False, BLOCK=16):
    """A target beyond the classes is one of the next row's."""
    starts = torch.arange(logits.shape[0], device=logits.device) * logits.shape[1]
    picked = logits.flatten()[starts + target.clamp(min=0)]
    lse = logits.logsumexp(1)
    loss = lse - 0.75 * picked - 0.25 * logits.mean(1)
    return torch.where(target == ignored, 0, loss), torch.where(target == ignored, 0, lse)
