"""Group norm: statistics of some channels of a sample, a weight and a bias for each channel."""

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
