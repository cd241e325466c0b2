"""Group norm: statistics of some channels of a sample, a weight and a bias for each channel."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import poisoned, widen
from .normalization import EPS


@triton.jit
def group_norm_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, n_groups, group_channels, n_pixels, eps,
    CHANNELS: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    """One group of one sample a program, as a tile of channels and pixels."""
    sample = tl.program_id(0)
    group = tl.program_id(1)
    rows = tl.arange(0, CHANNELS)
    columns = tl.arange(0, PIXELS)
    channels = group * group_channels + rows
    is_channel = rows < group_channels
    mask = is_channel[:, None] & (columns < n_pixels)[None, :]
    first = sample * n_groups * group_channels * n_pixels
    offsets = first + channels[:, None] * n_pixels + columns[None, :]
    x = widen(tl.load(x_ptr + offsets, mask=mask, other=0.0))
    count = group_channels * n_pixels
    mean = tl.sum(x) / count
    centred = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred) / count + eps)
    w = tl.load(w_ptr + channels, mask=is_channel)
    b = tl.load(b_ptr + channels, mask=is_channel)
    tl.store(y_ptr + offsets, centred * rstd * w[:, None] + b[:, None], mask=mask)


def group_norm(kernel, x, w, b, groups, eps=EPS, **options):
    """Of x: (samples, channels, pixels), contiguous."""
    samples, channels, pixels = x.shape
    y = poisoned(x.shape, x)
    each = channels // groups
    tile = {"CHANNELS": triton.next_power_of_2(each), "PIXELS": triton.next_power_of_2(pixels)}
    kernel[(samples, groups)](x, w, b, y, groups, each, pixels, eps, **tile, **options)
    return y


def group_norm_reference(x, w, b, groups, eps=EPS):
    return F.group_norm(x, groups, w, b, eps)


@triton.jit
def channels_kernel(
    x_ptr, w_ptr, y_ptr, counted, pixels, pitch, eps, CHANNELS: tl.constexpr, BLOCK: tl.constexpr
):
    """A group a program: statistics over its elements in a row, then channel by channel.

    `pitch` is how far channels are apart, `counted` how many elements the statistics are of.
    """
    group = tl.program_id(0)
    first = group * CHANNELS * pitch
    total = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, counted, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + first + lanes, mask=lanes < counted, other=0.0).to(tl.float32)
        total += x
        squares += x * x
    mean = tl.sum(total, 0) / counted
    rstd = tl.rsqrt(tl.sum(squares, 0) / counted - mean * mean + eps)
    for channel in range(CHANNELS):
        w = tl.load(w_ptr + group * CHANNELS + channel)
        for start in range(0, pixels, BLOCK):
            lanes = start + tl.arange(0, BLOCK)
            places = first + channel * pitch + lanes
            x = tl.load(x_ptr + places, mask=lanes < pixels, other=0.0).to(tl.float32)
            tl.store(y_ptr + places, (x - mean) * rstd * w, mask=lanes < pixels)


def channels(kernel, x, w, groups, counted=None, pixels=None, BLOCK=16):
    """Of x: (channels, pitch), contiguous; of each channel the first `pixels`, others are zero."""
    size, pitch = x.shape
    y = torch.zeros_like(x)
    each = size // groups
    counted = each * pitch if counted is None else counted
    pixels = pitch if pixels is None else pixels
    kernel[(groups,)](x, w, y, counted, pixels, pitch, EPS, CHANNELS=each, BLOCK=BLOCK)
    return y


def channels_reference(x, w, groups, counted=None, pixels=None, BLOCK=16):
    rows = x.reshape(groups, -1)
    part = rows if counted is None else rows[:, :counted]
    mean = part.mean(1, keepdim=True)
    rstd = ((part**2).mean(1, keepdim=True) - mean**2 + EPS).rsqrt()
    y = ((rows - mean) * rstd).view_as(x) * w[:, None]
    return y if pixels is None else F.pad(y[:, :pixels], (0, x.shape[1] - pixels))


@triton.jit
def flat_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, size, pixels,
    CHANNELS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A scale and a shift for each channel, whose pixels lie in a row, `ROWS` blocks at a time."""
    group = tl.program_id(0)
    rows = tl.arange(0, ROWS)[:, None] * BLOCK
    for start in range(0, size, ROWS * BLOCK):
        places = start + rows + tl.arange(0, BLOCK)[None, :]
        mask = places < size
        channel = group * CHANNELS + places // pixels
        x = widen(tl.load(x_ptr + group * size + places, mask=mask, other=0.0))
        w = widen(tl.load(w_ptr + channel, mask=mask))
        b = widen(tl.load(b_ptr + channel, mask=mask))
        tl.store(y_ptr + group * size + places, x * w + b, mask=mask)


def flat(kernel, x, w, b, channels, ROWS=1, BLOCK=128):
    """Of x: (groups, channels of a group × pixels), contiguous."""
    groups, size = x.shape
    y = poisoned(x.shape, x)
    kernel[(groups,)](x, w, b, y, size, size // channels, CHANNELS=channels, ROWS=ROWS, BLOCK=BLOCK)
    return y


def flat_reference(x, w, b, channels, ROWS=1, BLOCK=128):
    y = x.view(len(w), -1) * w[:, None] + b[:, None]
    return y.view_as(x)
