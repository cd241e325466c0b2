"""Kernels that overwrite what they have loaded."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import widen
from .normalization import EPS


@triton.jit
def add_rms_norm_kernel(x_ptr, residual_ptr, w_ptr, stride, columns, eps, BLOCK: tl.constexpr):
    """Adds a row to the residual stream; leaves the normalized sum in place of the row."""
    row = tl.program_id(0) * stride
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = widen(tl.load(x_ptr + row + lanes, mask=mask, other=0.0))
    x += widen(tl.load(residual_ptr + row + lanes, mask=mask, other=0.0))
    tl.store(residual_ptr + row + lanes, x, mask=mask)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / columns + eps)
    w = tl.load(w_ptr + lanes, mask=mask)
    tl.store(x_ptr + row + lanes, x * rstd * w, mask=mask)


def add_rms_norm(kernel, x, residual, w, rows=None):
    """Of the first `rows`; the others stay as they are."""
    x, residual = x.clone(), residual.clone()
    block = triton.next_power_of_2(x.shape[1])
    grid = (x.shape[0] if rows is None else rows,)
    kernel[grid](x, residual, w, x.stride(0), x.shape[1], EPS, BLOCK=block)
    return x, residual


def add_rms_norm_reference(x, residual, w, rows=None):
    total = x[:rows] + residual[:rows]
    y = F.rms_norm(total, (x.shape[-1],), w, EPS)
    if rows is None:
        return y, total
    return torch.cat([y, x[rows:]]), torch.cat([total, residual[rows:]])


@triton.jit
def long_rms_norm_kernel(x_ptr, w_ptr, stride, columns, eps, BLOCK: tl.constexpr):
    """The same without a residual, for rows of several tiles."""
    x_ptr += tl.program_id(0) * stride
    lanes = tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), w_ptr.dtype.element_ty)
    for start in range(0, columns, BLOCK):
        x = tl.load(x_ptr + start + lanes, mask=start + lanes < columns, other=0.0)
        squares += x * x
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / columns + eps)
    for start in range(0, columns, BLOCK):
        mask = start + lanes < columns
        x = tl.load(x_ptr + start + lanes, mask=mask, other=0.0)
        w = tl.load(w_ptr + start + lanes, mask=mask)
        tl.store(x_ptr + start + lanes, x * rstd * w, mask=mask)


def long_rms_norm(kernel, x, w, block=16):
    x = x.clone()
    kernel[(x.shape[0],)](x, w, x.stride(0), x.shape[1], EPS, BLOCK=block)
    return x


def long_rms_norm_reference(x, w, block=None):
    return F.rms_norm(x, (x.shape[-1],), w, EPS)


@triton.jit
def turn_kernel(
    x_ptr, cos_ptr, sin_ptr, stride_token, stride_head, n_heads,
    HEADS: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Rotary embedding of one token's heads."""
    token = tl.program_id(0)
    heads = tl.arange(0, HEADS)[:, None]
    dims = tl.arange(0, HALF)
    places = x_ptr + token * stride_token + heads * stride_head + dims[None, :]
    low = tl.load(places, mask=heads < n_heads, other=0.0)
    high = tl.load(places + HALF, mask=heads < n_heads, other=0.0)
    cos = tl.load(cos_ptr + token * HALF + dims)[None, :]
    sin = tl.load(sin_ptr + token * HALF + dims)[None, :]
    tl.store(places, low * cos - high * sin, mask=heads < n_heads)
    tl.store(places + HALF, high * cos + low * sin, mask=heads < n_heads)


def turn(kernel, x, cos, sin, turned=None):
    """Of x: (context, heads, head dim), a view or not; the first `turned` of each head."""
    whole = x.clone()
    part = whole if turned is None else whole[..., :turned]
    context, heads, dim = part.shape
    tile = {"HEADS": triton.next_power_of_2(heads), "HALF": dim // 2}
    kernel[(context,)](part, cos, sin, *part.stride()[:2], heads, **tile)
    return whole


def turn_reference(x, cos, sin, turned=None):
    part = x if turned is None else x[..., :turned]
    low, high = part.chunk(2, -1)
    cos, sin = cos[:, None], sin[:, None]
    turned_part = torch.cat([low * cos - high * sin, high * cos + low * sin], -1)
    return torch.cat([turned_part, x[..., part.shape[-1] :]], -1)


@triton.jit
def addmm_kernel(
    c_ptr, a_ptr, b_ptr, m, n, k, alpha, beta,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """c = alpha·a·b + beta·c for contiguous matrices, in groups of rows of tiles."""
    pid = tl.program_id(0)
    across = GROUP * tl.cdiv(n, BN)
    first = pid // across * GROUP
    group = min(tl.cdiv(m, BM) - first, GROUP)
    rows = (first + pid % across % group) * BM + tl.arange(0, BM)
    columns = pid % across // group * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        inner = start + tl.arange(0, BK)
        a_mask = (rows < m)[:, None] & (inner < k)[None, :]
        b_mask = (inner < k)[:, None] & (columns < n)[None, :]
        a = tl.load(a_ptr + rows[:, None] * k + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + inner[:, None] * n + columns[None, :], mask=b_mask, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    places = c_ptr + rows[:, None] * n + columns[None, :]
    mask = (rows < m)[:, None] & (columns < n)[None, :]
    c = tl.load(places, mask=mask, other=0.0)
    tl.store(places, alpha * total + beta * c, mask=mask)


def addmm(kernel, c, a, b, alpha, beta):
    c = c.clone()
    (m, k), n = a.shape, b.shape[1]
    grid = (triton.cdiv(m, 16) * triton.cdiv(n, 16),)
    kernel[grid](c, a, b, m, n, k, alpha, beta, BM=16, BN=16, BK=16, GROUP=2)
    return c


def addmm_reference(c, a, b, alpha, beta):
    return torch.addmm(c, a, b, alpha=alpha, beta=beta)


@triton.jit
def twice_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Loads once more what it has stored: x becomes x², y its cube."""
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes, mask=lanes < n, other=0.0)
    tl.store(x_ptr + lanes, x * x, mask=lanes < n)
    square = tl.load(x_ptr + lanes, mask=lanes < n, other=0.0)
    tl.store(y_ptr + lanes, square * square * square, mask=lanes < n)


def twice(kernel, x):
    x, y = x.clone(), torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
    return x, y


def twice_reference(x):
    return x**2, x**6


@triton.jit
def some_kernel(x_ptr, n, stored, BLOCK: tl.constexpr):
    """Doubles some of what it loads, and adds what it does not store to what it does."""
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes, mask=lanes < n, other=0.0)
    rest = tl.sum(tl.where(lanes < stored, 0.0, x), axis=0)
    tl.store(x_ptr + lanes, 2 * x + rest, mask=lanes < stored)


def some(kernel, x, stored):
    x = x.clone()
    kernel[(1,)](x, x.numel(), stored, BLOCK=triton.next_power_of_2(x.numel()))
    return x


def some_reference(x, stored):
    return torch.cat([2 * x[:stored] + x[stored:].sum(), x[stored:]])


@triton.jit
def overwrite_kernel(
    x_ptr, w_ptr, y_ptr, columns, y_stride, FORM: tl.constexpr, BLOCK: tl.constexpr
):
    """y = exp(x) w, over what was there; a row has one place, or all rows share one ("meeting"),
    or columns say by their values which ones are stored ("chosen")."""
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = widen(tl.load(x_ptr + row * columns + lanes, mask=mask, other=0.0))
    w = widen(tl.load(w_ptr + lanes, mask=mask, other=0.0))
    place = row
    if FORM == "meeting":
        place = row * 0
        mask &= row == tl.num_programs(0) - 1
    elif FORM == "chosen":
        mask &= x > 0
    y = (tl.exp(x) * w).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + place * y_stride + lanes, y, mask=mask)


def overwrite(kernel, x, w, y, form="", launches=1):
    """`launches` take turns with the rows of `x`; the last ones of `y` stay, and so do columns."""
    y = y.clone()
    rows, columns = x.shape
    step = rows // launches
    for first in range(0, rows, step):
        kernel[(step,)](
            x[first : first + step], w, y[first : first + step], columns, y.stride(0), FORM=form,
            BLOCK=triton.next_power_of_2(columns),
        )  # fmt: skip
    return y


def overwrite_reference(x, w, y, form="", launches=1):
    y = y.clone()
    rows, columns = x.shape
    new = x.exp() * w
    if form == "meeting":
        y[0, :columns] = new[-1]
    elif form == "chosen":
        y[:rows, :columns] = torch.where(x > 0, new, y[:rows, :columns])
    else:
        y[:rows, :columns] = new
    return y


def layers(kernel, x, w, work):
    """One workspace for the results of three layers, each of which starts from the one before."""
    work = work.clone()
    for _ in range(3):
        kernel[(len(x),)](
            x,
            w,
            work,
            x.shape[1],
            work.stride(0),
            FORM="",
            BLOCK=triton.next_power_of_2(x.shape[1]),
        )
        x = (work * 0.25).sin()
    return x, work


def layers_reference(x, w, work):
    for _ in range(3):
        work = x.exp() * w + 0 * work
        x = (work * 0.25).sin()
    return x, work


@triton.jit
def clear_kernel(z_ptr, y_ptr, first):
    """Elements from `first` on are cleared, the others are handed on."""
    i = tl.program_id(0)
    if i >= first:
        tl.store(z_ptr + i, 0.0)
    else:
        tl.store(y_ptr + i, 2 * tl.load(z_ptr + i))


def clear(kernel, z, y, first):
    z, y = z.clone(), y.clone()
    kernel[(len(z),)](z, y, first)
    return z, y


def clear_reference(z, y, first):
    left = torch.arange(len(z), device=z.device) < first
    return torch.where(left, z, 0.0), torch.where(left, 2 * z, y)
