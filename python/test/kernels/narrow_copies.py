"""Kernels that compute in float32 and store what they compute in fewer bits, too."""

import torch
import triton
import triton.language as tl

from .common import poisoned, tanh, widen


@triton.jit
def statistic_kernel(
    x_ptr, y_ptr, s_ptr, n, gain, BLOCK: tl.constexpr, HOW: tl.constexpr,
):  # fmt: skip
    """y = x times a number of the row, which is stored, or something before it."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = widen(tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)) * gain
    v = tl.sum(x * x, 0) / n
    if HOW == "variance":
        s = v
        y = x / tl.sqrt(v)
    elif HOW == "root":
        s = tl.sqrt(v)
        y = x / s
    elif HOW == "inverse":
        s = tl.rsqrt(v + 1e-12)
        y = x * s
    elif HOW == "mean":
        s = tl.sum(x, 0) / n
        y = (x - s) * (x - s)
    else:
        x = tl.where(i < n, x, -float("inf"))
        s = tl.log(tl.sum(tl.exp(x - tl.max(x, 0)), 0)) + tl.max(x, 0)
        y = tl.exp(x - s)
    tl.store(s_ptr + row, s.to(s_ptr.dtype.element_ty))
    tl.store(y_ptr + row * n + i, y.to(y_ptr.dtype.element_ty), mask=i < n)


def statistic(kernel, x, how, stored, gain=1.0, BLOCK=64):
    """x: (rows, n). The number of each row is in memory as `stored`."""
    y, s = poisoned(x.shape, x), torch.full((len(x),), 7.0, device=x.device).to(stored)
    kernel[(len(x),)](x, y, s, x.shape[1], gain, BLOCK=BLOCK, HOW=how)
    return y


def statistic_reference(x, how, stored, gain=1.0):
    wide = (x if x.dtype == torch.float64 else x.float()) * gain
    v = wide.square().mean(1, keepdim=True)
    if how == "mean":
        y = (wide - wide.mean(1, keepdim=True)).square()
    elif how == "logarithm":
        y = wide.softmax(1)
    elif how == "inverse":
        y = wide * torch.rsqrt(v + 1e-12)
    else:
        y = wide / v.sqrt()
    return y.to(x.dtype)


@triton.jit
def rows_kernel(
    x_ptr, w_ptr, y_ptr, s_ptr, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Several rows in a program: a column of numbers is stored, under a mask."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    i = tl.arange(0, BLOCK)
    mask = (r < rows)[:, None] & (i < n)[None, :]
    x = widen(tl.load(x_ptr + r[:, None] * n + i[None, :], mask=mask, other=0.0))
    w = widen(tl.load(w_ptr + i, mask=i < n, other=0.0))
    s = tl.rsqrt(tl.sum(x * x, 1) / n + 1e-6)
    tl.store(s_ptr + r, s.to(s_ptr.dtype.element_ty), mask=r < rows)
    y = x * s[:, None] * w[None, :]
    tl.store(y_ptr + r[:, None] * n + i[None, :], y.to(y_ptr.dtype.element_ty), mask=mask)


def rows(kernel, x, w, stored, ROWS=4, BLOCK=64):
    y, s = poisoned(x.shape, x), torch.full((len(x),), 7.0, device=x.device).to(stored)
    grid = (triton.cdiv(len(x), ROWS),)
    kernel[grid](x, w, y, s, *x.shape, ROWS=ROWS, BLOCK=BLOCK)
    return y


def rows_reference(x, w, stored):
    wide = x if x.dtype == torch.float64 else x.float()
    y = wide * torch.rsqrt(wide.square().mean(1, keepdim=True) + 1e-6) * w
    return y.to(x.dtype)


@triton.jit
def activation_kernel(
    x_ptr, w_ptr, y_ptr, z_ptr, n, DIM: tl.constexpr, BLOCK: tl.constexpr, HOW: tl.constexpr,
    MASKED: tl.constexpr,
):  # fmt: skip
    """y = f(z) behind a product z = x·w; z is stored, or only y is."""
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = tl.arange(0, DIM)
    at = r[:, None] * DIM + i[None, :]
    mask = (r < n)[:, None] & (i >= 0)[None, :]
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    w = tl.load(w_ptr + i[:, None] * DIM + i[None, :])
    z = tl.dot(x, w, input_precision="ieee")
    if MASKED:
        tl.store(z_ptr + at, z.to(z_ptr.dtype.element_ty), mask=mask)
    else:
        tl.store(z_ptr + at, z.to(z_ptr.dtype.element_ty))
    if HOW == "silu":
        y = z * tl.sigmoid(z)
    elif HOW == "square":
        y = z * z
    elif HOW == "difference":
        y = (z - 1.0) * (z - 1.0)
    elif HOW == "exp":
        y = tl.exp(0.1 * z)
    else:
        y = tanh(z)
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=mask)


def activation(kernel, x, w, how, stored, masked=True, BLOCK=16):
    """x: (n, 16), w: (16, 16)."""
    n, dim = x.shape
    padded = triton.cdiv(n, BLOCK) * BLOCK
    y = poisoned(x.shape, x)
    z = torch.full((padded, dim), 7.0, device=x.device).to(stored)
    kernel[(padded // BLOCK,)](x, w, y, z, n, DIM=dim, BLOCK=BLOCK, HOW=how, MASKED=masked)
    return y


def activation_reference(x, w, how, stored, masked=True):
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    z = x.to(wide) @ w.to(wide)
    y = {
        "silu": lambda: torch.nn.functional.silu(z),
        "square": lambda: z.square(),
        "difference": lambda: (z - 1).square(),
        "exp": lambda: (0.1 * z).exp(),
        "tanh": lambda: z.tanh(),
    }[how]()
    return y.to(x.dtype)


@triton.jit
def function_kernel(
    x_ptr, w_ptr, y_ptr, DIM: tl.constexpr, BLOCK: tl.constexpr, HOW: tl.constexpr,
):  # fmt: skip
    """y = f(x·w): all that the kernel stores is the result of a function."""
    i = tl.arange(0, DIM)
    at = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))[:, None] * DIM + i[None, :]
    w = tl.load(w_ptr + i[:, None] * DIM + i[None, :])
    z = tl.dot(tl.load(x_ptr + at), w, input_precision="ieee")
    if HOW == "exp":
        y = tl.exp(0.5 * z)
    else:
        y = tl.sqrt(z * z + 1.0)
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty))


def function(kernel, x, w, how, stored, BLOCK=16):
    """x: (n, 16), w: (16, 16)."""
    y = poisoned(x.shape, x, stored)
    kernel[(len(x) // BLOCK,)](x, w, y, DIM=x.shape[1], BLOCK=BLOCK, HOW=how)
    return y


def function_reference(x, w, how, stored):
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    z = x.to(wide) @ w.to(wide)
    y = (0.5 * z).exp() if how == "exp" else (z.square() + 1).sqrt()
    return y if wide == torch.float64 else y.to(stored)


@triton.jit
def recurrence_kernel(
    a_ptr, x_ptr, h_ptr, y_ptr, n, steps, scale, BLOCK: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """h = a·h + x, in chunks of steps; states are stored before or after their update."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    h = tl.zeros([BLOCK], tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for part in range(PARTS):
        for t in range(steps):
            at = (part * steps + t) * n + i
            a = widen(tl.load(a_ptr + at, mask=mask, other=0.0))
            h = a * h + scale * widen(tl.load(x_ptr + at, mask=mask, other=0.0))
            tl.store(h_ptr + at, h.to(h_ptr.dtype.element_ty), mask=mask)
        total += h
    tl.store(y_ptr + i, total / scale, mask=mask)


def recurrence(kernel, a, x, stored, scale=1.0, parts=1, BLOCK=16, both=False):
    """a, x: (steps, n). States are in memory as `stored`; with `both` they are returned, too."""
    steps, n = x.shape
    y, h = poisoned((n,), x), torch.full(x.shape, 7.0, device=x.device).to(stored)
    grid = (triton.cdiv(n, BLOCK),)
    kernel[grid](a, x, h, y, n, steps // parts, scale, BLOCK=BLOCK, PARTS=parts)
    return (y, h) if both else y


def recurrence_reference(a, x, stored, scale=1.0, parts=1):
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    h = total = torch.zeros_like(x[0], dtype=wide)
    for t in range(len(x)):
        h = a[t].to(wide) * h + scale * x[t].to(wide)
        if (t + 1) % (len(x) // parts) == 0:
            total = total + h
    return (total / scale).to(x.dtype)


@triton.jit
def mean_kernel(
    q_ptr, k_ptr, v_ptr, y_ptr, z_ptr, keys, gain,
    DIM: tl.constexpr, BLOCK: tl.constexpr, HOW: tl.constexpr,
):  # fmt: skip
    """Attention: y is a mean of rows of v, or something that is none; z follows from y."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    dims = tl.arange(0, DIM)
    at = rows[:, None] * DIM + dims[None, :]
    q = tl.load(q_ptr + at)
    m = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    acc = tl.zeros((BLOCK, DIM), tl.float32)
    for start in range(0, keys, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        seen = columns < keys
        there = columns[:, None] * DIM + dims[None, :]
        k = tl.load(k_ptr + there, mask=seen[:, None], other=0.0)
        v = tl.load(v_ptr + there, mask=seen[:, None], other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * 0.3
        scores = tl.where(seen[None, :], scores, -float("inf"))
        new = tl.maximum(m, tl.max(scores, 1))
        p, old = tl.exp(scores - new[:, None]), tl.exp(m - new)
        m = new
        if HOW == "signed":
            p = tl.where((columns % 4 == 0)[None, :], -0.25 * p, p)
        total *= old
        if HOW == "other weights":
            total += 0.01 * tl.sum(p, 1)
        else:
            total += tl.sum(p, 1)
        if HOW == "scaled values":
            added = tl.dot(p, v.to(tl.float32) * gain, input_precision="ieee")
        else:
            added = tl.dot(p.to(v.dtype), v, input_precision="ieee")
        acc = acc * old[:, None] + added
    if HOW == "scaled sum":
        y = acc * gain / total[:, None]
    elif HOW == "scaled":
        y = gain * (acc / total[:, None])
    elif HOW == "reciprocal":
        y = acc * (1.0 / total)[:, None]
    elif HOW == "guarded":
        y = acc / tl.where(total == 0.0, 1.0, total)[:, None]
    elif HOW == "sink":
        y = acc / (total + tl.exp(-m))[:, None]
    else:
        y = acc / total[:, None]
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty))
    if HOW == "used":
        tl.store(z_ptr + at, (y * y).to(z_ptr.dtype.element_ty))


def mean(kernel, q, k, v, how, stored, gain=1.0, BLOCK=16):
    """q: (n, 16), k, v: (keys, 16); y is in memory as `stored`."""
    n, dim = q.shape
    y, z = poisoned(q.shape, q, stored), poisoned(q.shape, q, stored)
    kernel[(n // BLOCK,)](q, k, v, y, z, len(k), gain, DIM=dim, BLOCK=BLOCK, HOW=how)
    return (y, z) if how == "used" else y


def mean_reference(q, k, v, how, stored, gain=1.0):
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    scores = 0.3 * (q.to(wide) @ k.to(wide).mT)
    p, v = scores.exp(), v.to(wide)
    if how == "signed":
        p = torch.where(torch.arange(len(k), device=k.device) % 4 == 0, -0.25 * p, p)
    total = p.sum(1, keepdim=True)
    if how == "sink":
        total = total + 1
    elif how == "other weights":
        total = 0.01 * total
    y = p @ v / total
    if how.startswith("scaled"):
        y = gain * y
    outputs = (y, y.square()) if how == "used" else (y,)
    if wide != torch.float64:
        outputs = tuple(each.to(stored) for each in outputs)
    return outputs if how == "used" else outputs[0]


@triton.jit
def numbers_kernel(
    x_ptr, y_ptr, z_ptr, turns, M: tl.constexpr, N: tl.constexpr, VIEWED: tl.constexpr
):
    """A number for each row, stored as a tile in each turn, and once more by itself."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.sin(tl.load(x_ptr + i))
    narrow = x.to(y_ptr.dtype.element_ty)
    for turn in range(turns):
        places = turn * M * N + i[:, None] * N + j[None, :]
        tile = tl.broadcast_to(narrow[:, None], (M, N))
        if VIEWED:
            places = tl.reshape(tl.trans(places), (M * N,))
            tile = tl.reshape(tl.trans(tile), (M * N,))
        tl.store(y_ptr + places, tile)
    tl.store(z_ptr + i, narrow)


def numbers(kernel, x, turns, columns, dtype, viewed):
    """x: (M,); returns y: (turns, M, columns) and z: (M,) of a type."""
    y, z = poisoned((turns, len(x), columns), x, dtype), poisoned(x.shape, x, dtype)
    kernel[(1,)](x, y, z, turns, M=len(x), N=columns, VIEWED=viewed)
    return y, z
