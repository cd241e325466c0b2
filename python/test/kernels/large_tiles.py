"""Kernels of one large tile, whose backward would need more registers than there are."""

import torch
import triton
import triton.language as tl

from .common import poisoned, precision_of, widen


@triton.jit
def standardize_kernel(
    x_ptr, w_ptr, y_ptr, rows, columns,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, AXIS: tl.constexpr,
):  # fmt: skip
    """Standardize a matrix along an axis (as a whole if 2), weight rows, scale the whole."""
    i = tl.arange(0, ROWS)
    j = tl.arange(0, COLUMNS)
    mask = (i < rows)[:, None] & (j < columns)[None, :]
    offsets = i[:, None] * columns + j[None, :]
    x = widen(tl.load(x_ptr + offsets, mask=mask, other=0.0))
    w = widen(tl.load(w_ptr + i, mask=i < rows, other=0.0))
    if AXIS == 2:
        count = rows * columns
        mean = tl.sum(x) / count
        centred = tl.where(mask, x - mean, 0.0)
        scale = tl.rsqrt(tl.sum(centred * centred) / count + 1.0)
        y = centred * scale * w[:, None]
    else:
        count = rows if AXIS == 0 else columns
        mean = tl.sum(x, axis=AXIS, keep_dims=True) / count
        centred = tl.where(mask, x - mean, 0.0)
        scale = tl.rsqrt(tl.sum(centred * centred, axis=AXIS, keep_dims=True) / count + 1.0)
        y = centred * scale * w[:, None]
    y = tl.where(mask, y / (1.0 + tl.sum(y * y) / (rows * columns)), 0.0)
    tl.store(y_ptr + offsets, y, mask=mask)


def standardize(kernel, x, w, axis):
    """Of x: (rows, columns), w: (rows,)."""
    y = poisoned(x.shape, x)
    rows, columns = (triton.next_power_of_2(size) for size in x.shape)
    kernel[(1,)](x, w, y, *x.shape, ROWS=rows, COLUMNS=columns, AXIS=axis)
    return y


def standardize_reference(x, w, axis):
    dims = (0, 1) if axis == 2 else (axis,)
    centred = x - x.mean(dims, keepdim=True)
    y = centred * (centred.square().mean(dims, keepdim=True) + 1).rsqrt() * w[:, None]
    return y / (1 + y.square().mean())


@triton.jit
def gather_rows_kernel(
    x_ptr, at_ptr, s_ptr, y_ptr, z_ptr, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """y = erf(s · x[at]) · exp(-x[at]²) for rows that may repeat; z the products along columns."""
    i = tl.arange(0, ROWS)
    j = tl.arange(0, COLUMNS)
    mask = (j < columns)[None, :]
    at = tl.load(at_ptr + i)
    x = widen(tl.load(x_ptr + at[:, None] * columns + j[None, :], mask=mask, other=0.0))
    s = widen(tl.load(s_ptr + j, mask=j < columns, other=0.0))
    y = tl.erf(s[None, :] * x) * tl.exp(-x * x)
    tl.store(y_ptr + i[:, None] * columns + j[None, :], y, mask=mask)
    tl.store(z_ptr + i, tl.sum(tl.where(mask, x * y, 0.0), axis=1))


def gather_rows(kernel, x, at, s):
    """Of x: (any, columns), at: (rows,) indices of rows, a power of two of them, s: (columns,)."""
    columns = x.shape[1]
    y, z = poisoned((len(at), columns), x), poisoned((len(at),), x)
    tile = {"ROWS": len(at), "COLUMNS": triton.next_power_of_2(columns)}
    kernel[(1,)](x, at, s, y, z, columns, **tile)
    return y, z


def gather_rows_reference(x, at, s):
    x = x[at]
    y = torch.erf(s * x) * torch.exp(-x * x)
    return y, (x * y).sum(1)


@triton.jit
def chunk_kernel(
    q_ptr, k_ptr, v_ptr, h_ptr, w_ptr, y_ptr, keys, values,
    ROWS: tl.constexpr, KEYS: tl.constexpr, VALUES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """y = s / (1 + s²) · v + w · (q · h) for s = q · kᵀ, in blocks of columns."""
    i = tl.arange(0, ROWS)
    key = tl.arange(0, KEYS)
    value = tl.program_id(0) * VALUES + tl.arange(0, VALUES)
    with_key, with_value = (key < keys)[None, :], (value < values)[None, :]
    by_key = i[:, None] * keys + key[None, :]
    by_value = i[:, None] * values + value[None, :]
    state = key[:, None] * values + value[None, :]
    q = tl.load(q_ptr + by_key, mask=with_key, other=0.0)
    k = tl.load(k_ptr + by_key, mask=with_key, other=0.0)
    v = tl.load(v_ptr + by_value, mask=with_value, other=0.0)
    h = tl.load(h_ptr + state, mask=(key < keys)[:, None] & with_value, other=0.0)
    w = widen(tl.load(w_ptr + i))
    s = tl.dot(q, tl.trans(k), input_precision=PRECISION)
    a = (s / (1.0 + s * s)).to(v.dtype)
    y = tl.dot(
        a, v, tl.dot(q, h, input_precision=PRECISION) * w[:, None], input_precision=PRECISION
    )
    tl.store(y_ptr + by_value, y, mask=with_value)


def chunk(kernel, q, k, v, h, w, block=None):
    """Of q, k: (rows, keys), v: (rows, values), h: (keys, values), w: (rows,)."""
    (rows, keys), values = q.shape, v.shape[1]
    y = poisoned((rows, values), q)
    block = block or triton.next_power_of_2(values)
    kernel[(triton.cdiv(values, block),)](
        q, k, v, h, w, y, keys, values,
        ROWS=rows, KEYS=triton.next_power_of_2(keys), VALUES=block,
        PRECISION=precision_of(q),
    )  # fmt: skip
    return y


def chunk_reference(q, k, v, h, w):
    s = q @ k.T
    return s / (1 + s.square()) @ v + w[:, None] * (q @ h)


@triton.jit
def exchanged_product_kernel(q_ptr, h_ptr, o_ptr, ROWS: tl.constexpr, SIZE: tl.constexpr):
    """A product that is exchanged for what was there: the order of its memory counts."""
    pid = tl.program_id(0)
    i, j = pid * ROWS + tl.arange(0, ROWS), tl.arange(0, SIZE)
    rows = i[:, None] * SIZE + j[None, :]
    square = (pid * SIZE + j)[:, None] * SIZE + j[None, :]
    q, h = tl.load(q_ptr + rows), tl.load(h_ptr + square)
    tl.atomic_xchg(o_ptr + rows, tl.dot(q, h))
