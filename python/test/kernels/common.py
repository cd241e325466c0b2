"""What the kernels share: device functions, and how a stub makes its output."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def widen(x):
    """Half precision computes in float32, float32 and float64 in themselves."""
    if x.dtype.primitive_bitwidth < 32:
        wide = x.to(tl.float32)
    else:
        wide = x
    return wide


@triton.jit
def tanh(x):
    """tanh of any float type, by an exponential that cannot overflow."""
    e = tl.exp(-2.0 * tl.abs(x))
    y = (1.0 - e) / (1.0 + e)
    return tl.where(x < 0, -y, y)


@triton.jit
def softmax_step(scores, v, maximum, total, acc, PRECISION: tl.constexpr):
    """A block of keys more: maximum and sums of rows, in the frame of the maximum so far."""
    following = tl.maximum(maximum, tl.max(scores, 1))
    p = tl.exp(scores - following[:, None])
    factor = tl.exp(maximum - following)
    total = total * factor + tl.sum(p, 1)
    added = tl.dot(p.to(v.dtype), v, input_precision=PRECISION)
    return following, total, acc * factor[:, None] + added


def with_output(x: torch.Tensor, how: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the input of a kernel, and an output like it.

    That is a poisoned one, a cleared one that is "added" to, or ("in place", or "shared" by two
    arguments) a copy of `x` that is the input, too.
    """
    if how in ("in place", "shared"):
        x = x.clone()
        return x, x
    return x, torch.zeros_like(x) if how == "added" else poisoned(x.shape, x)


def poisoned(shape, like: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A fresh output full of NaN: an element that the kernel doesn't write is seen."""
    return torch.full(shape, float("nan"), dtype=dtype or like.dtype, device=like.device)


def precision_of(x: torch.Tensor) -> str:
    """float32 tiles multiply in float32 here; half precision has no choice to make."""
    return "ieee" if x.dtype == torch.float32 else "tf32"
