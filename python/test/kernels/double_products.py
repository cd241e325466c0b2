"""Products in float64: by conditions, of narrow elements in memory, of joined tiles, added to what
is chosen."""

import torch
import triton
import triton.language as tl


@triton.jit
def _dot(a, b):
    return tl.dot(a, b, input_precision="ieee", out_dtype=tl.float64)


@triton.jit
def stored_kernel(x_ptr, w_ptr, y_ptr, N: tl.constexpr):
    """A product is stored where another one exceeds a number."""
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    a = _dot(x, tl.load(w_ptr + at))
    tl.store(y_ptr + at, _dot(tl.sigmoid(a), x), mask=a > -0.5)


def stored(kernel, x, w):
    y = torch.zeros_like(x)
    kernel[(1,)](x, w, y, N=x.shape[0])
    return y


def stored_truth(x, w):
    a = x @ w
    return torch.where(a > -0.5, a.sigmoid() @ x, 0.0)


@triton.jit
def narrow_kernel(x_ptr, kept_ptr, w_ptr, y_ptr, B: tl.constexpr, N: tl.constexpr):
    """Products are scaled by what is narrow in memory."""
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    if B > 1:
        at = tl.arange(0, B)[:, None, None] * (N * N) + at[None, :, :]
    a = _dot(tl.load(x_ptr + at), tl.load(w_ptr + at))
    tl.store(y_ptr + at, a * tl.load(kept_ptr + at).to(tl.float64))


def narrow(kernel, x, kept, w):
    y = torch.empty_like(x)
    kernel[(1,)](x, kept, w, y, B=x.shape[0] if x.dim() == 3 else 1, N=x.shape[-1])
    return y


def narrow_truth(x, kept, w):
    return x @ w * kept.double()


@triton.jit
def joined_kernel(x_ptr, kept_ptr, w_ptr, y_ptr, N: tl.constexpr):
    """Every other column of a product is scaled: the product's cotangent is joined of two tiles."""
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    half = tl.arange(0, N // 2)[None, :]
    a = _dot(tl.load(x_ptr + i * N + j), tl.load(w_ptr + i * N + j))
    even, odd = tl.split(tl.reshape(a, (N, N // 2, 2)))
    kept = tl.load(kept_ptr + i * N + half).to(tl.float64)
    tl.store(y_ptr + i * N + half, even * kept)
    tl.store(y_ptr + i * N + N // 2 + half, tl.sin(odd))


def joined(kernel, x, kept, w):
    y = torch.empty_like(x)
    kernel[(1,)](x, kept, w, y, N=x.shape[-1])
    return y


def joined_truth(x, kept, w):
    a, half = x @ w, x.shape[-1] // 2
    return torch.cat((a[:, ::2] * kept[:, :half].double(), a[:, 1::2].sin()), 1)


@triton.jit
def added_kernel(x_ptr, c_ptr, y_ptr, rows, columns, N: tl.constexpr):
    """The adjoint of x adds a product to another one, unless no row or no column counts."""
    i = tl.program_id(0) * N + tl.arange(0, N)[:, None]
    j = tl.arange(0, N)[None, :]
    mask = (i < rows) & (j < columns)
    x = tl.load(x_ptr + i * columns + j, mask=mask, other=0.5)
    same = tl.zeros([N, N], tl.float64) + tl.exp(tl.load(c_ptr))
    y = _dot(tl.sigmoid(_dot(x, tl.trans(same)) * 0.1), x)
    tl.store(y_ptr + i * columns + j, y, mask=mask)


def added(kernel, x, c):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.shape[0], 16),)](x, c, y, *x.shape, N=16)
    return y


def added_truth(x, c):
    rows, columns = x.shape
    padded = torch.nn.functional.pad(x, (0, 16 - columns, 0, -rows % 16), value=0.5)
    tiles = padded.view(-1, 16, 16)
    weights = (0.1 * (tiles @ c.exp().expand(16, 16))).sigmoid()
    return (weights @ tiles).reshape(-1, 16)[:rows, :columns]


@triton.jit
def chosen_kernel(x_ptr, w_ptr, y_ptr, n):
    """What a product is added to is chosen by a number."""
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    x, w = tl.load(x_ptr + at), tl.load(w_ptr + at)
    start = tl.where(n > 0, _dot(w, x), 0.0)
    tl.store(y_ptr + at, tl.dot(x, w, acc=start, input_precision="ieee", out_dtype=tl.float64))


@triton.jit
def started_again_kernel(x_ptr, w_ptr, y_ptr, n):
    """A sum of products starts again in each third iteration."""
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    total = tl.zeros([16, 16], tl.float64)
    for i in range(n):
        total = tl.where(i % 3 == 0, 0.0, total)
        x, w = tl.load(x_ptr + at + i * 256), tl.load(w_ptr + at + i * 256)
        total = tl.dot(x, w, acc=total, input_precision="ieee", out_dtype=tl.float64)
    tl.store(y_ptr + at, total)


@triton.jit
def summed_kernel(x_ptr, w_ptr, y_ptr, n):
    """A sum of products that starts once."""
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    total = tl.zeros([16, 16], tl.float64)
    for i in range(n):
        x, w = tl.load(x_ptr + at + i * 256), tl.load(w_ptr + at + i * 256)
        total = tl.dot(x, w, acc=total, input_precision="ieee", out_dtype=tl.float64)
    tl.store(y_ptr + at, total)
