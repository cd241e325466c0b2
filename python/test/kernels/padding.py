"""Kernels that read more than they need: what padding holds must not matter.

Each launch takes inputs whose padding is filled by `fill`, and returns the part of the output that
counts, the inputs, and for each of these where it is no padding.
"""

import torch
import triton
import triton.language as tl
from gradients import random_tensor


def _random(*shape, device, scale=1.0):
    """Numbers of which some are then overwritten by what fills the padding."""
    return random_tensor(*shape, device=device, scale=scale).detach()


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, queries, keys, blocks,
    FORM: tl.constexpr, D: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Online softmax; rows of q and k behind the end are loaded without a mask."""
    row = tl.program_id(0) * B + tl.arange(0, B)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + row[:, None] * D + d[None, :])
    top = tl.full((B,), -float("inf"), tl.float32)
    total = tl.zeros((B,), tl.float32)
    acc = tl.zeros((B, D), tl.float32)
    for block in range(0, blocks):
        key = block * B + tl.arange(0, B)
        k = tl.load(k_ptr + key[None, :] * D + d[:, None])
        v = tl.load(v_ptr + key[:, None] * D + d[None, :], mask=(key < keys)[:, None], other=0.0)
        s = tl.dot(q, k, input_precision="ieee") * 0.25
        if FORM == "causal":
            s = tl.where(key[None, :] <= row[:, None], s, -float("inf"))
        if FORM == "scaled by alpha":
            s = tl.where((key < keys)[None, :], s, -float("inf"))
        if FORM == "window":
            near = (key[None, :] <= row[:, None]) & (key[None, :] > row[:, None] - 12)
            s = tl.where((key < keys)[None, :] & near, s, -float("inf"))
        if FORM == "finite":
            s = tl.where((key < keys)[None, :] & (row < queries)[:, None], s, -1e30)
        following = tl.maximum(top, tl.max(s, 1))
        alpha = tl.exp(top - following)
        if FORM == "scaled by alpha":
            alpha = total * 0 + alpha
        p = tl.exp(s - following[:, None])
        acc = acc * alpha[:, None] + tl.dot(p, v, input_precision="ieee")
        total = total * alpha + tl.sum(p, 1)
        top = following
    tl.store(o_ptr + row[:, None] * D + d[None, :], acc / total[:, None], (row < queries)[:, None])


def attention(kernel, form, fill, device):
    rows, d, count = 32, 16, 27
    q, k, v = (_random(rows, d, device=device) for _ in range(3))
    for x in (q, k, v):
        x[count:] = fill
    leaves = [x.requires_grad_() for x in (q, k, v)]
    o = torch.zeros(rows, d, device=device)
    kernel[(2,)](*leaves, o, count, count, 2, FORM=form, D=d, B=16)
    return o[:count], leaves, [slice(0, count)] * 3


@triton.jit
def rows_kernel(
    x_ptr, w_ptr, y_ptr, rows, columns, FORM: tl.constexpr, R: tl.constexpr, C: tl.constexpr
):
    """Rows and columns behind the end are loaded, computed with, and not stored."""
    row = tl.program_id(0) * R + tl.arange(0, R)
    column = tl.arange(0, C)
    x = tl.load(x_ptr + row[:, None] * C + column[None, :])
    w = tl.load(w_ptr + column)
    if FORM == "product":
        y = x * w[None, :]
    if FORM == "exponential":
        y = tl.exp(x) * w[None, :]
    if FORM == "norm":
        y = x / tl.sqrt(tl.sum(x * x, 1) / C + 1e-5)[:, None] * w[None, :]
    if FORM == "running sum":
        y = tl.cumsum(x * w[None, :], 0)
    if FORM == "safe logarithm":
        y = tl.where(x > 0, tl.log(tl.where(x > 0, x, 1.0)), 0.0) * w[None, :]
    if FORM == "logarithm":
        y = tl.where(x > 0, tl.log(x), w[None, :] * x)
    if FORM == "root":
        y = tl.where(x > 0, tl.sqrt(x), x * x) * w[None, :]
    if FORM == "reciprocal":
        y = tl.where(tl.abs(x) > 0.5, 1 / x, x) * w[None, :]
    if FORM == "maximum":
        y = tl.exp(x - tl.max(x, 1)[:, None]) * w[None, :]
    if FORM == "sigmoid":
        y = tl.sigmoid(x * w[None, :]) * x
    if FORM == "transposed":
        y = tl.trans(tl.trans(x) * w[:, None])
    if FORM == "scalar":
        y = x * tl.sum(w * w)
    if FORM == "erf":
        y = tl.erf(x) * tl.exp(-x * x) * w[None, :]
    if FORM == "reshaped":
        y = tl.reshape(tl.reshape(x, (R, 2, C // 2)) * 2.0, (R, C)) * w[None, :]
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    tl.store(y_ptr + row[:, None] * C + column[None, :], y, inside)


def rows(kernel, form, fill, device):
    block, width, count = 8, 16, 13
    # These forms sum over whole rows.
    columns = width if form in ("norm", "maximum") else 11
    x, w = _random(16, width, device=device), _random(width, device=device)
    x[count:] = fill
    x[:, columns:] = fill
    if form != "scalar":
        w[columns:] = fill
    leaves = [x.requires_grad_(), w.requires_grad_()]
    y = torch.zeros(16, width, device=device)
    kernel[(2,)](*leaves, y, count, columns, FORM=form, R=block, C=width)
    return y[:count, :columns], leaves, [(slice(0, count), slice(0, columns)), slice(0, columns)]


@triton.jit
def times(a, b):
    return a * b


@triton.jit
def linear(a, b, c, d):
    return a * c, c * b + d


@triton.jit
def scan_kernel(x_ptr, g_ptr, y_ptr, n, FORM: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    x, g = tl.load(x_ptr + i), tl.load(g_ptr + i)
    if FORM == "product":
        y = tl.associative_scan(x, 0, times)
    if FORM == "recurrence":
        _, y = tl.associative_scan((g, x), 0, linear)
    if FORM == "sum":
        y = tl.cumsum(x * g, 0)
    tl.store(y_ptr + i, y, i < n)


def scan(kernel, form, fill, device):
    block, n = 16, 11
    x, g = (torch.rand(block, device=device) + 0.5 for _ in range(2))
    for tensor in (x, g):
        tensor[n:] = fill
    leaves = [x.requires_grad_(), g.requires_grad_()]
    y = torch.zeros(block, device=device)
    kernel[(1,)](*leaves, y, n, FORM=form, B=block)
    return y[:n], leaves, [slice(0, n)] * 2


@triton.jit
def loop_kernel(x_ptr, g_ptr, y_ptr, n, steps, FORM: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    h = tl.zeros((B,), tl.float32)
    for t in range(0, steps):
        g, x = tl.load(g_ptr + t * B + i), tl.load(x_ptr + t * B + i)
        if FORM == "gated":
            h = h * tl.sigmoid(g) + x
        if FORM == "fewer and fewer":
            h = tl.where(i < n - t, h * tl.exp(g) + x, h)
        if FORM == "overwritten":
            h = tl.exp(g) * x
        if FORM == "branch":
            if t < steps - 1:
                h = h * tl.exp(g) + x
        if FORM == "selected step":
            h = tl.where(t < steps - 1, h * g + x, h)
    tl.store(y_ptr + i, h, i < n)


def loop(kernel, form, fill, device):
    block, n, steps = 16, 11, 5
    x, g = (_random(steps, block, device=device) for _ in range(2))
    counts, lanes = slice(0, steps), slice(0, n)
    for tensor in (x, g):
        tensor[:, n:] = fill
        if form == "overwritten":
            counts = slice(steps - 1, steps)
            tensor[:-1] = fill
        if form in ("branch", "selected step"):
            counts = slice(0, steps - 1)
            tensor[-1] = fill
        if form == "fewer and fewer":
            lanes = slice(0, n - steps + 1)
            for t in range(steps):
                tensor[t, n - t :] = fill
    leaves = [x.requires_grad_(), g.requires_grad_()]
    y = torch.zeros(block, device=device)
    kernel[(1,)](*leaves, y, n, steps, FORM=form, B=block)
    return y[:n], leaves, [(counts, lanes)] * 2


@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride,
    FORM: tl.constexpr, B: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    m, n = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for start in range(0, K, B):
        k = start + tl.arange(0, B)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :])
        b = tl.load(b_ptr + k[:, None] * stride + n[None, :])
        if FORM == "exponential":
            a = tl.exp(a)
        acc += tl.dot(a, b, input_precision=PRECISION)
    inside = (m[:, None] < M) & (n[None, :] < N)
    if FORM == "selected":
        acc = tl.where(inside, tl.exp(acc), 0.0)
    tl.store(c_ptr + m[:, None] * stride + n[None, :], acc, inside)


def product(kernel, form, fill, device):
    M, N, K, stride = 27, 37, 32, 48
    a = _random(32, K, device=device, scale=0.3)
    b = _random(K, stride, device=device, scale=0.3)
    a[M:] = fill
    b[:, N:] = fill
    leaves = [a.requires_grad_(), b.requires_grad_()]
    c = torch.zeros(32, stride, device=device)
    kernel[(2, 3)](*leaves, c, M, N, K, stride, FORM=form, B=16, PRECISION="ieee")
    return c[:M, :N], leaves, [slice(0, M), (slice(None), slice(0, N))]


@triton.jit
def parts_kernel(x_ptr, index_ptr, y_ptr, scratch_ptr, n, FORM: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    if FORM == "gather":
        tl.store(y_ptr + i, tl.gather(tl.exp(x), tl.load(index_ptr + i), 0))
    if FORM == "through memory":
        tl.store(scratch_ptr + i, tl.exp(x))
        tl.debug_barrier()
        z = tl.load(scratch_ptr + i, mask=i < n, other=0.0)
        tl.store(y_ptr + i, z * z, i < n)
    if FORM == "atomic":
        tl.atomic_add(y_ptr + i, tl.exp(x) * x, i < n)
    if FORM == "half":
        even, _ = tl.split(tl.reshape(tl.exp(x), (B // 2, 2)))
        tl.store(y_ptr + tl.arange(0, B // 2), even * even)
    if FORM == "sum of selected":
        z = tl.where(i < n, tl.exp(x) / x, 0.0)
        tl.store(y_ptr + i, z * tl.sum(z))
    if FORM == "triangle":
        z = tl.reshape(x, (4, B // 4))
        z = tl.trans(tl.exp(z) * z)
        row, column = tl.arange(0, B // 4)[:, None], tl.arange(0, 4)[None, :]
        tl.store(y_ptr + row * 4 + column, z, row <= column)
    if FORM == "interleaved":
        z, k = tl.interleave(x, tl.exp(x)), tl.arange(0, 2 * B)
        tl.store(y_ptr + k, z * z, k < 2 * n)


def parts(kernel, form, fill, device):
    block, n = 16, 11
    x = _random(block, device=device)
    counts = slice(0, block, 2) if form == "half" else slice(0, n)
    if form == "triangle":
        counts = torch.ones(4, 4, dtype=torch.bool, device=device).tril().reshape(-1)
    padding = torch.ones(block, dtype=torch.bool, device=device)
    padding[counts] = False
    x = torch.where(padding, fill, x).requires_grad_()
    index = torch.randint(0, n, (block,), device=device, dtype=torch.int32)
    y, scratch = torch.zeros(2 * block, device=device), torch.zeros(block, device=device)
    kernel[(1,)](x, index, y, scratch, n, FORM=form, B=block)
    length = {"half": block // 2, "interleaved": 2 * n, "triangle": block}.get(form, n)
    return y[:length], [x], [counts]


CASES = {
    (attention_kernel, attention): ("causal", "scaled by alpha", "window", "finite"),
    (rows_kernel, rows): (
        "product", "exponential", "norm", "running sum", "safe logarithm", "logarithm", "root",
        "reciprocal", "maximum", "sigmoid", "transposed", "scalar", "erf", "reshaped",
    ),
    (scan_kernel, scan): ("product", "recurrence", "sum"),
    (loop_kernel, loop): (
        "gated", "fewer and fewer", "overwritten", "branch", "selected step",
    ),
    (product_kernel, product): ("plain", "exponential", "selected"),
    (parts_kernel, parts): (
        "gather", "through memory", "atomic", "half", "sum of selected", "interleaved",
        "triangle",
    ),
}  # fmt: skip
