"""Neighbours that share an address, as the pixels of a channel do."""

import torch
import triton
import triton.language as tl

from .common import poisoned, widen


@triton.jit
def channels_kernel(
    x_ptr, w_ptr, y_ptr, n, inner, channels, before, HOW: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """y = x · w[channel] for the n elements of a program's sample, in a loop."""
    x_ptr += tl.program_id(0) * n
    y_ptr += tl.program_id(0) * n
    for start in range(-before, n, BLOCK):
        p = start + tl.arange(0, BLOCK)
        mask = (p >= 0) & (p < n)
        channel = p // inner
        if HOW == "turned":
            channel = (channels - 1 - channel) * 2
        elif HOW == "wrapped":
            channel = (channel + 1) % channels
        elif HOW == "two":
            channel = channel + p // (2 * inner) * 0
        x = widen(tl.load(x_ptr + p, mask=mask))
        read = mask & (p % 3 != 0) if HOW == "left out" else mask
        w = widen(tl.load(w_ptr + channel, mask=read, other=2.0))
        tl.store(y_ptr + p, x * w, mask=mask)


def channels(kernel, x, w, how="", before=0, BLOCK=256):
    """x: (samples, channels, inner)"""
    y = poisoned(x.shape, x)
    samples, count, inner = x.shape
    kernel[(samples,)](x, w, y, count * inner, inner, count, before, HOW=how, BLOCK=BLOCK)
    return y


def channels_reference(x, w, how="", before=0, BLOCK=256):
    if how == "turned":
        w = w[::2].flip(0)
    elif how == "wrapped":
        w = w.roll(-1)
    w = w[:, None].expand(x.shape[1:])
    if how == "left out":
        places = torch.arange(w.numel(), device=w.device).view(w.shape)
        w = torch.where(places % 3 != 0, w, 2.0)
    return x * w
