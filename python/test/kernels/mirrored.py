"""Symmetric results of which programs store a tile, and the same tile transposed.

These are the kernels of Newton-Schulz iterations. Tiles need not be square: then those that cross
the diagonal overlap, and programs store to one element what each has computed by itself.
"""

import torch
import triton
import triton.language as tl

from .common import poisoned, precision_of


@triton.jit
def _tile_of(p, M, BM: tl.constexpr, BN: tl.constexpr, ORDER: tl.constexpr):
    """Return the batch, and the first row and column of the tile of a program."""
    rows, columns = tl.cdiv(M, BM), tl.cdiv(M, BN)
    batch = p // (rows * columns)
    p %= rows * columns
    if ORDER == "rows":
        row, column = p // columns, p % columns
    elif ORDER == "swizzled":
        row, column = tl.swizzle2d(p // columns, p % columns, rows, columns, 2)
    else:
        first = p // (2 * columns) * 2
        size = min(rows - first, 2)
        row, column = first + (p % (2 * columns)) % size, (p % (2 * columns)) // size
    return batch, row * BM, column * BN


@triton.jit
def xxt_kernel(
    x_ptr,
    y_ptr,
    M,
    K,
    xb,
    xm,
    xk,
    yb,
    ym,
    yn,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    ORDER: tl.constexpr,
    SIDE: tl.constexpr,
    HOW: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """y = x xᵀ, of a batch: tiles that lie on one `SIDE` of the diagonal are skipped.

    `HOW` says how rows past the end are kept out, and what is done to the product.
    """
    batch, m, n = _tile_of(tl.program_id(0), M, BM, BN, ORDER)
    if (SIDE == "below" and n + BN <= m) or (SIDE == "above" and m + BM <= n):
        return
    x_ptr += batch * xb
    y_ptr += batch * yb
    i = m + tl.arange(0, BM)
    j = n + tl.arange(0, BN)
    k = tl.arange(0, BK)
    if HOW != "modulo":
        ri, rj = i, j
    else:
        ri, rj = i % M, j % M
    a_ptr = x_ptr + ri[:, None] * xm + k[None, :] * xk
    b_ptr = x_ptr + (k[:, None] * xk + rj[None, :] * xm)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        if HOW != "modulo":
            a_mask = (k[None, :] < K - start) & (i[:, None] < M)
            b_mask = (j[None, :] < M) & (k[:, None] < K - start)
        else:
            a_mask = k[None, :] < K - start
            b_mask = k[:, None] < K - start
        a = tl.load(a_ptr, mask=a_mask, other=0.0)
        b = tl.load(b_ptr, mask=b_mask, other=0.0)
        if HOW == "widened":
            # Of one factor, the way to a wider type and back is around a transposition.
            b = tl.trans(tl.trans(b).to(tl.float32)).to(a.dtype)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_ptr += BK * xk
        b_ptr += BK * xk
    if HOW == "scaled":
        # The diagonal of x xᵀ is a factor of rows, and of columns.
        di = tl.load(x_ptr + i * xm, mask=i < M, other=0.0)
        dj = tl.load(x_ptr + j * xm, mask=j < M, other=0.0)
        acc = acc * 0.5 + di[:, None].to(tl.float32) * dj[None, :].to(tl.float32)
    if HOW == "chain":
        # Each result has the one before twice: there are many ways through.
        for factor in tl.static_range(1, 10):
            acc = acc * (0.9 + 0.1 * tl.cos(acc * factor))
    if HOW == "input":
        inside = (i[:, None] < M) & (j[None, :] < M)
        acc += tl.load(x_ptr + i[:, None] * xm + j[None, :] * xk, mask=inside, other=0.0)
    y = acc.to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + i[:, None] * ym + j[None, :] * yn, y, (i[:, None] < M) & (j[None, :] < M))
    mirrored = y_ptr + j[:, None] * ym + i[None, :] * yn
    tl.store(mirrored, tl.trans(y), (j[:, None] < M) & (i[None, :] < M))


def xxt(kernel, x, tile, order="rows", side="below", how="masks", transposed=False):
    """x: (batch, M, K)."""
    batch, M, K = x.shape
    BM, BN = tile
    y = poisoned((batch, M, M), x)
    y = y.transpose(1, 2) if transposed else y
    grid = (batch * triton.cdiv(M, BM) * triton.cdiv(M, BN),)
    constants = {"ORDER": order, "SIDE": side, "HOW": how, "PRECISION": precision_of(x)}
    kernel[grid](x, y, M, K, *x.stride(), *y.stride(), BM=BM, BN=BN, BK=16, **constants)
    return y


def xxt_reference(x, tile, order="rows", side="below", how="masks", transposed=False):
    y = x @ x.transpose(1, 2)
    if how == "scaled":
        y = 0.5 * y + x[:, :, None, 0] * x[:, None, :, 0]
    if how == "chain":
        for factor in range(1, 10):
            y = y * (0.9 + 0.1 * torch.cos(y * factor))
    return y


@triton.jit
def pairs_kernel(x_ptr, y_ptr, n, BM: tl.constexpr, BN: tl.constexpr, HOW: tl.constexpr):
    """y(i, j) = f(x(i), x(j)), stored at (i, j) and at (j, i)."""
    m, k = tl.program_id(0) * BM, tl.program_id(1) * BN
    if k + BN <= m:
        return
    i, j = m + tl.arange(0, BM), k + tl.arange(0, BN)
    a = tl.load(x_ptr + i, mask=i < n, other=0.0)[:, None]
    b = tl.load(x_ptr + j, mask=j < n, other=0.0)[None, :]
    if HOW == "sum":
        y = tl.sin(a + b)
    elif HOW == "maximum":
        y = tl.maximum(a, b) * (b * a)
    elif HOW == "squares":
        y = a * a + b * b
    elif HOW == "difference":
        y = a - b
    elif HOW == "factors":
        y = 2.0 * a * b
    else:
        y = a * a * b
    inside = (i[:, None] < n) & (j[None, :] < n)
    tl.store(y_ptr + i[:, None] * n + j[None, :], y, inside)
    tl.store(y_ptr + j[None, :] * n + i[:, None], y, inside)


def pairs(kernel, x, tile, how):
    n = x.shape[0]
    y = poisoned((n, n), x)
    kernel[(triton.cdiv(n, tile[0]), triton.cdiv(n, tile[1]))](x, y, n, *tile, HOW=how)
    return y


def pairs_reference(x, tile, how):
    a, b = x[:, None], x[None, :]
    if how == "sum":
        return torch.sin(a + b)
    if how == "maximum":
        return torch.maximum(a, b) * (b * a)
    return a * a + b * b if how == "squares" else 2 * a * b


@triton.jit
def neighbours_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = 2 * (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.store(y_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)
    tl.store(y_ptr + i + 1, tl.exp(tl.load(x_ptr + i + 1, mask=i + 1 < n)), mask=i + 1 < n)


def neighbours(kernel, x):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), BLOCK=16)
    return y
