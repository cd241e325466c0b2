"""Rotary position embeddings: halves of each head are turned by angles of the position."""

import torch
import triton
import triton.language as tl

from .common import poisoned, widen


@triton.jit
def rotary_kernel(
    x_ptr, cos_ptr, sin_ptr, y_ptr, n_heads, n_context,
    HEADS: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """All heads of one token a program."""
    token = tl.program_id(0).to(tl.int64)
    position = token % n_context
    heads = tl.arange(0, HEADS)
    dims = tl.arange(0, HALF)
    mask = (heads < n_heads)[:, None]
    offsets = token * n_heads * 2 * HALF + heads[:, None] * 2 * HALF + dims[None, :]
    low = widen(tl.load(x_ptr + offsets, mask=mask, other=0.0))
    high = widen(tl.load(x_ptr + offsets + HALF, mask=mask, other=0.0))
    cos = widen(tl.load(cos_ptr + position * HALF + dims))[None, :]
    sin = widen(tl.load(sin_ptr + position * HALF + dims))[None, :]
    tl.store(y_ptr + offsets, low * cos - high * sin, mask=mask)
    tl.store(y_ptr + offsets + HALF, high * cos + low * sin, mask=mask)


def rotary(kernel, x, cos, sin):
    """Of x: (batch, context, heads, head dim), contiguous; cos and sin: (context, head dim / 2)."""
    batch, context, heads, dim = x.shape
    y = poisoned(x.shape, x)
    tile = {"HEADS": triton.next_power_of_2(heads), "HALF": dim // 2}
    kernel[(batch * context,)](x, cos, sin, y, heads, context, **tile)
    return y


def rotary_reference(x, cos, sin):
    cos, sin = cos[:, None], sin[:, None]
    low, high = x.chunk(2, -1)
    return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)


def angles(context, dim, like):
    """The cosines and sines for a context."""
    frequencies = 10000.0 ** (-torch.arange(0, dim, 2, device=like.device).double() / dim)
    turns = torch.arange(context, device=like.device).double()[:, None] * frequencies
    return turns.cos().to(like.dtype), turns.sin().to(like.dtype)
