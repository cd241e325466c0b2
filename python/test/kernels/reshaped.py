"""Tiles that are loaded along one axis, reshaped, and reduced along another one.

On a GPU these have layouts that `tt.reduce` of Triton 3.6 and 3.7 gets wrong.
"""

import torch
import triton
import triton.language as tl

from .common import poisoned

# Rows and columns as loaded, and as reduced.
SHAPES = (
    (8, 4, 4, 8),
    (4, 8, 8, 4),
    (16, 8, 8, 16),
    (16, 16, 8, 32),
    (64, 64, 32, 128),
    (2, 4, 4, 2),
)


@triton.jit
def _places(A: tl.constexpr, B: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, A)[:, None], tl.arange(0, B)[None, :]
    return i + j * A if COLUMNS else i * B + j


@triton.jit
def sum_kernel(
    x_ptr, y_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr,
    AXIS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Sums a tile that is loaded along its rows or its columns, and reshaped."""
    x = tl.reshape(tl.load(x_ptr + _places(A, B, COLUMNS)), (C, D))
    tl.store(y_ptr + tl.arange(0, D if AXIS == 0 else C), tl.sum(x, AXIS))


@triton.jit
def extremum_kernel(
    x_ptr, y_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr,
    AXIS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Maxima of such a tile, and their positions, in a loop and behind it; and its sum."""
    x = tl.reshape(tl.load(x_ptr + _places(A, B, COLUMNS)), (C, D))
    lane = tl.arange(0, D if AXIS == 0 else C)
    y = tl.zeros_like(lane).to(tl.float32)
    for step in range(2):
        highest, position = tl.max(x * (step + 1), AXIS, return_indices=True)
        y += highest + position
    lowest, position = tl.min(x, AXIS, return_indices=True)
    tl.store(y_ptr + lane, y + lowest * position + tl.sum(tl.reshape(x, (C * D,)), 0))


@triton.jit
def scale_kernel(
    x_ptr, w_ptr, y_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr,
    AXIS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Scales the reshaped tile by a vector: its gradient is such a sum, the kernel has none."""
    places = _places(A, B, COLUMNS)
    x = tl.reshape(tl.load(x_ptr + places), (C, D))
    w = tl.load(w_ptr + tl.arange(0, D if AXIS == 0 else C))
    y = x * tl.expand_dims(w, AXIS)
    tl.store(y_ptr + places, tl.reshape(y, (A, B)))


def scale(kernel, x, w, form, axis, columns, **options):
    y = poisoned(x.shape, x)
    meta = dict(zip("ABCD", form, strict=True))
    kernel[(1,)](x, w, y, **meta, AXIS=axis, COLUMNS=columns, **options)
    return y


def _in_rows(x, form, columns):
    """The tile whose elements memory holds along rows or columns."""
    a, b, c, d = form
    return (x.view(b, a).t() if columns else x.view(a, b)).reshape(c, d)


def scale_reference(x, w, form, axis, columns):
    a, b, _, _ = form
    y = (_in_rows(x, form, columns) * w.unsqueeze(axis)).reshape(a, b)
    return (y.t() if columns else y).reshape(-1)


def sum_reference(x, form, axis, columns):
    return _in_rows(x, form, columns).sum(axis)


def extremum_reference(x, form, axis, columns):
    tile = _in_rows(x, form, columns)
    (high, first), (low, last) = tile.max(axis), tile.min(axis)
    return 3 * high + 2 * first + low * last + tile.sum()


def vector(form, axis) -> int:
    """How many elements are left when the reshaped tile is reduced along an axis."""
    return form[3] if axis == 0 else form[2]


def sample(form, device, dtype=torch.float32):
    x = torch.randn(form[0] * form[1], dtype=torch.float64)
    return x.to(device, dtype)
