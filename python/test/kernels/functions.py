"""One operation at a time, by name: elementwise functions, reductions, changes of shape."""

import torch
import triton
import triton.language as tl

from .common import poisoned

# Every function with its domain: samples are drawn from (low, high).
UNARY = {
    "exp": (torch.exp, -2, 2),
    "exp2": (torch.exp2, -2, 2),
    "log": (torch.log, 0.2, 4),
    "log2": (torch.log2, 0.2, 4),
    "sin": (torch.sin, -4, 4),
    "cos": (torch.cos, -4, 4),
    "sqrt": (torch.sqrt, 0.2, 4),
    "rsqrt": (torch.rsqrt, 0.2, 4),
    "abs": (torch.abs, -2, 2),
    "erf": (torch.erf, -2, 2),
    "sigmoid": (torch.sigmoid, -4, 4),
    "negate": (torch.neg, -2, 2),
    "reciprocal": (torch.reciprocal, 0.2, 4),
    "clamp": (lambda x: x.clamp(-0.5, 1.0), -2, 2),
    "floor plus": (lambda x: x + torch.floor(x), -3, 3),
    "ceil times": (lambda x: x * torch.ceil(x), -3, 3),
    "where": (lambda x: torch.where(x > 0.3, x * x, 2 * x), -2, 2),
    "through float32": (lambda x: x.float().to(x.dtype) ** 2, -2, 2),
    "through float64": (lambda x: torch.exp(x.double()).to(x.dtype), -2, 2),
}

BINARY = {
    "add": torch.add,
    "subtract": torch.sub,
    "multiply": torch.mul,
    "divide": torch.div,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "fma": lambda x, y: x * y + x,
    "select": lambda x, y: torch.where(x > y, x, y * y),
}

REDUCTIONS = {
    "sum": lambda x, axis: x.sum(axis),
    "max": lambda x, axis: x.amax(axis),
    "min": lambda x, axis: x.amin(axis),
}


@triton.jit
def unary_kernel(x_ptr, y_ptr, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    # The other value lies in every function's domain.
    x = tl.load(x_ptr + offsets, mask=mask, other=1.0)
    if OP == "exp":
        y = tl.exp(x)
    elif OP == "exp2":
        y = tl.exp2(x)
    elif OP == "log":
        y = tl.log(x)
    elif OP == "log2":
        y = tl.log2(x)
    elif OP == "sin":
        y = tl.sin(x)
    elif OP == "cos":
        y = tl.cos(x)
    elif OP == "sqrt":
        y = tl.sqrt(x)
    elif OP == "rsqrt":
        y = tl.rsqrt(x)
    elif OP == "abs":
        y = tl.abs(x)
    elif OP == "erf":
        y = tl.erf(x)
    elif OP == "sigmoid":
        y = tl.sigmoid(x)
    elif OP == "negate":
        y = -x
    elif OP == "reciprocal":
        y = 1.0 / x
    elif OP == "clamp":
        y = tl.clamp(x, -0.5, 1.0)
    elif OP == "floor plus":
        y = x + tl.floor(x)
    elif OP == "ceil times":
        y = x * tl.ceil(x)
    elif OP == "where":
        y = tl.where(x > 0.3, x * x, 2 * x)
    elif OP == "through float64":
        y = tl.exp(x.to(tl.float64)).to(x.dtype)
    else:
        tl.static_assert(OP == "through float32")
        narrow = x.to(tl.float32).to(x.dtype)
        y = narrow * narrow
    tl.store(y_ptr + offsets, y, mask=mask)


def unary(kernel, x, op, BLOCK=64):
    y = poisoned(x.shape, x)
    n = x.numel()
    kernel[(triton.cdiv(n, BLOCK),)](x, y, n, OP=op, BLOCK=BLOCK)
    return y


@triton.jit
def binary_kernel(x_ptr, y_ptr, z_ptr, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=1.0)
    y = tl.load(y_ptr + offsets, mask=mask, other=1.0)
    if OP == "add":
        z = x + y
    elif OP == "subtract":
        z = x - y
    elif OP == "multiply":
        z = x * y
    elif OP == "divide":
        z = x / y
    elif OP == "maximum":
        z = tl.maximum(x, y)
    elif OP == "minimum":
        z = tl.minimum(x, y)
    elif OP == "fma":
        z = tl.fma(x, y, x)
    else:
        tl.static_assert(OP == "select")
        z = tl.where(x > y, x, y * y)
    tl.store(z_ptr + offsets, z, mask=mask)


def binary(kernel, x, y, op, BLOCK=64):
    z = poisoned(x.shape, x)
    n = x.numel()
    kernel[(triton.cdiv(n, BLOCK),)](x, y, z, n, OP=op, BLOCK=BLOCK)
    return z


@triton.jit
def reduce_kernel(
    x_ptr, y_ptr, m, n, OP: tl.constexpr, AXIS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Reduces one tile along an axis; masked elements are the neutral ones."""
    rows, columns = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    mask = (rows < m)[:, None] & (columns < n)[None, :]
    offsets = rows[:, None] * n + columns[None, :]
    if OP == "sum":
        y = tl.sum(tl.load(x_ptr + offsets, mask=mask, other=0.0), axis=AXIS)
    elif OP == "max":
        y = tl.max(tl.load(x_ptr + offsets, mask=mask, other=-float("inf")), axis=AXIS)
    else:
        tl.static_assert(OP == "min")
        y = tl.min(tl.load(x_ptr + offsets, mask=mask, other=float("inf")), axis=AXIS)
    if AXIS == 0:
        tl.store(y_ptr + columns, y, mask=columns < n)
    else:
        tl.store(y_ptr + rows, y, mask=rows < m)


def reduce(kernel, x, op, axis):
    m, n = x.shape
    y = poisoned((x.shape[1 - axis],), x)
    blocks = {"BLOCK_M": triton.next_power_of_2(m), "BLOCK_N": triton.next_power_of_2(n)}
    kernel[(1,)](x, y, m, n, OP=op, AXIS=axis, **blocks)
    return y


@triton.jit
def shapes_kernel(x_ptr, w_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    """Transposition, reshape, expand_dims and broadcast on one path."""
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + rows[:, None] * N + columns[None, :])
    w = tl.load(w_ptr + rows)
    turned = tl.trans(x) * tl.broadcast_to(w[None, :], (N, M))
    flat = tl.reshape(turned, (N * M,))
    pairs = tl.reshape(flat * flat, (N * M // 2, 2))
    y = tl.sum(pairs, axis=1)
    tl.store(y_ptr + tl.arange(0, N * M // 2), y)


def shapes(kernel, x, w):
    m, n = x.shape
    y = poisoned((m * n // 2,), x)
    kernel[(1,)](x, w, y, M=m, N=n)
    return y


def shapes_reference(x, w):
    turned = x.t() * w[None, :]
    return (turned.reshape(-1) ** 2).view(-1, 2).sum(1)


@triton.jit
def masked_other_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Where the mask is off the loaded value is another tensor's: its gradient goes there."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0)
    x = tl.load(x_ptr + offsets, mask=mask & (offsets % 3 != 0), other=w * w)
    tl.store(y_ptr + offsets, x * 2, mask=mask)


def masked_other(kernel, x, w, BLOCK=32):
    y = poisoned(x.shape, x)
    kernel[(triton.cdiv(x.numel(), BLOCK),)](x, w, y, x.numel(), BLOCK=BLOCK)
    return y


def masked_other_reference(x, w):
    on = torch.arange(x.numel(), device=x.device) % 3 != 0
    return 2 * torch.where(on, x, w * w)


@triton.jit
def running_sum_kernel(x_ptr, y_ptr, n, REVERSE: tl.constexpr, BLOCK: tl.constexpr):
    """x times its running sum, one row a program: two ways lead from y to x."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + columns, mask=columns < n, other=0.0)
    y = x * tl.cumsum(x, axis=0, reverse=REVERSE)
    tl.store(y_ptr + row * n + columns, y, mask=columns < n)


def running_sum(kernel, x, reverse):
    rows, columns = x.shape
    y = poisoned(x.shape, x)
    kernel[(rows,)](x, y, columns, REVERSE=reverse, BLOCK=triton.next_power_of_2(columns))
    return y


def running_sum_reference(x, reverse):
    return x * (x.flip(1).cumsum(1).flip(1) if reverse else x.cumsum(1))
