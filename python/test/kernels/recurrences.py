"""Recurrences along time, for each channel: with a gate, by a loop, and a plain sum, by scans."""

import torch
import triton
import triton.language as tl

from .common import poisoned, widen


@triton.jit
def gated_kernel(x_ptr, g_ptr, y_ptr, n_steps, n_channels, BLOCK: tl.constexpr):
    """h = exp(g) * h + x; every state is an output."""
    batch = tl.program_id(1).to(tl.int64)
    channels = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = channels < n_channels
    offsets = batch * n_steps * n_channels + channels
    h = widen(tl.zeros((BLOCK,), x_ptr.dtype.element_ty))
    for _ in range(n_steps):
        x = widen(tl.load(x_ptr + offsets, mask=mask, other=0.0))
        g = widen(tl.load(g_ptr + offsets, mask=mask, other=0.0))
        h = tl.exp(g) * h + x
        tl.store(y_ptr + offsets, h, mask=mask)
        offsets += n_channels


def gated(kernel, x, g, BLOCK=64, **options):
    """Of x and g: (batch, steps, channels)."""
    batch, steps, channels = x.shape
    y = poisoned(x.shape, x)
    grid = (triton.cdiv(channels, BLOCK), batch)
    kernel[grid](x, g, y, steps, channels, BLOCK=BLOCK, **options)
    return y


def gated_reference(x, g):
    states, h = [], torch.zeros_like(x[:, 0])
    for x_t, g_t in zip(x.unbind(1), g.unbind(1), strict=True):
        h = g_t.exp() * h + x_t
        states.append(h)
    return torch.stack(states, 1)


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, n_steps, n_channels, STEPS: tl.constexpr, CHANNELS: tl.constexpr):
    """A scan within each piece of the time, and the sum of the pieces before."""
    batch = tl.program_id(1).to(tl.int64)
    channels = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    first = batch * n_steps * n_channels
    before = widen(tl.zeros((CHANNELS,), x_ptr.dtype.element_ty))
    for start in range(0, n_steps, STEPS):
        steps = start + tl.arange(0, STEPS)
        mask = (steps < n_steps)[:, None] & (channels < n_channels)[None, :]
        offsets = first + steps[:, None] * n_channels + channels[None, :]
        x = widen(tl.load(x_ptr + offsets, mask=mask, other=0.0))
        tl.store(y_ptr + offsets, tl.cumsum(x, 0) + before[None, :], mask=mask)
        before += tl.sum(x, 0)


def cumsum(kernel, x, STEPS=64, CHANNELS=32, **options):
    batch, steps, channels = x.shape
    y = poisoned(x.shape, x)
    tile = {"STEPS": STEPS, "CHANNELS": CHANNELS}
    kernel[(triton.cdiv(channels, CHANNELS), batch)](x, y, steps, channels, **tile, **options)
    return y


def cumsum_reference(x):
    return x.cumsum(1)
