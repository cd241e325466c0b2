"""Tiles that are interleaved and taken apart otherwise: what halves meet are other lanes' own."""

import torch
import triton
import triton.language as tl

from .common import poisoned


@triton.jit
def product_kernel(
    s_ptr, w_ptr, y_ptr, columns, N: tl.constexpr,
):  # fmt: skip
    """u and d are of one scalar a program, so that many lanes lead to its gradient."""
    i = tl.arange(0, N)
    w = tl.load(w_ptr + i)
    s = tl.zeros([N, N], w.dtype) + tl.load(s_ptr + tl.program_id(0))
    u = s * w[:, None] + w[None, :]
    d = s / (1.0 + tl.abs(s))
    pairs = tl.reshape(tl.interleave(u, d), (N, 2, N))
    p, q = tl.split(tl.permute(pairs, (0, 2, 1)))
    places = tl.program_id(0) * N * N + i[:, None] * N + i[None, :]
    tl.store(y_ptr + places, p * q, mask=i[None, :] < columns)


def product(kernel, s, w, columns):
    n = w.shape[0]
    y = poisoned((s.shape[0], n, n), s)
    y[:, :, columns:] = 0
    kernel[(s.shape[0],)](s, w, y, columns, N=n)
    return y


def product_reference(s, w, columns):
    n = w.shape[0]
    tile = s[:, None, None].expand(-1, n, n)
    u = tile * w[:, None] + w[None, :]
    d = tile / (1.0 + tile.abs())
    pairs = torch.stack([u, d], -1).reshape(-1, n, 2, n)
    product = pairs[:, :, 0] * pairs[:, :, 1]
    return product * (torch.arange(n, device=s.device) < columns)
