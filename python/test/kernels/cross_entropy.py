"""Cross-entropy over a vocabulary of run-time size: an online log-sum-exp, then the target."""

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


def cross_entropy(kernel, logits, target, BLOCK=128, **options):
    """The loss of every row."""
    rows, classes = logits.shape
    loss, lse = poisoned((rows,), logits), poisoned((rows,), logits)
    kernel[(rows,)](logits, target, loss, lse, logits.stride(0), classes, BLOCK=BLOCK, **options)
    return loss


def cross_entropy_reference(logits, target):
    return F.cross_entropy(logits, target, reduction="none")
