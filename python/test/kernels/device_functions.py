"""Functions that kernels call, what PyTorch says they are, and kernels for their gradients."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def counted(x, y):
    for _ in range(5):
        x = tl.sin(x) * y + 0.3 * x
    return x


@triton.jit
def unrolled(x, y):
    for _ in tl.static_range(3):
        x = tl.sin(x) * y + 0.3 * x
    return x


@triton.jit
def nested_loops(x, y):
    for i in range(3):
        for j in range(2):
            x = tl.sin(x) * y + 0.1 * x * (i + 0.5 * j)
            y = tl.cos(x + y)
    return x * y


@triton.jit
def many_steps(x, y):
    for _ in range(11):
        x = tl.sin(x) * y + 0.3 * x
    return x


@triton.jit
def nested_long_loops(x, y):
    for i in range(2):
        for _ in range(10):
            x = 0.5 * tl.sin(x) * y + 0.1 * x * i
        y = tl.cos(x + y)
    return x * y


@triton.jit
def until_small(x, y):
    size = tl.sum(tl.abs(x))
    while size > 0.5:
        size = size * 0.7
        x = x * tl.sin(y) + size
    return x * y


@triton.jit
def branch(x, y):
    if tl.sum(x) > 0:
        z = x * y
    else:
        z = tl.exp(x) + y
    return z


@triton.jit
def early_return(x, y):
    if tl.sum(x) > 0:
        return x * y * y
    return tl.exp(x) + y


@triton.jit
def branch_in_loop(x, y):
    for i in range(4):
        if tl.sum(x) > i:
            x = x * tl.cos(y)
        else:
            x = x + y * y
    return x


@triton.jit
def softmax(x, y):
    e = tl.exp(x - tl.max(x, 0))
    return e / tl.sum(e, 0) * y


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def scans(x, y):
    return tl.associative_scan(x * y, 0, add) * tl.cumprod(0.5 * y + 1, 0)


@triton.jit
def scaled_square(x, SCALE: tl.constexpr):
    return x * x * SCALE


@triton.jit
def nested_calls(x, y):
    return scaled_square(x, 3) + tl.where(x > y, scaled_square(y, SCALE=2), x * y)


@triton.jit
def products(x, y):
    a = x[:, None] * tl.exp(y)[None, :]
    return tl.sum(tl.dot(a, a, input_precision="ieee"), 1)


@triton.jit
def running_maximum(x, y):
    most = x
    for i in range(4):
        most = tl.maximum(most, x * i - y)
    return most


@triton.jit
def sum_of_products(x, y):
    total = 0.0
    for i in range(3):
        total += tl.sum(x * y) * (i + 1)
        x = x * y
    return total * x


def _steps(x, y, count):
    for _ in range(count):
        x = torch.sin(x) * y + 0.3 * x
    return x


def _nested_loops(x, y):
    for i in range(3):
        for j in range(2):
            x = torch.sin(x) * y + 0.1 * x * (i + 0.5 * j)
            y = torch.cos(x + y)
    return x * y


def _nested_long_loops(x, y):
    for i in range(2):
        for _ in range(10):
            x = 0.5 * torch.sin(x) * y + 0.1 * x * i
        y = torch.cos(x + y)
    return x * y


def _until_small(x, y):
    size = x.abs().sum()
    while size > 0.5:
        size = size * 0.7
        x = x * y.sin() + size
    return x * y


def _branch_in_loop(x, y):
    for i in range(4):
        x = x * y.cos() if x.sum() > i else x + y * y
    return x


def _products(x, y):
    a = x[:, None] * y.exp()[None, :]
    return (a @ a).sum(1)


def _running_maximum(x, y):
    most = x
    for i in range(4):
        most = torch.maximum(most, x * i - y)
    return most


def _sum_of_products(x, y):
    total = 0
    for i in range(3):
        total = total + (x * y).sum() * (i + 1)
        x = x * y
    return total * x


# Functions of two tiles that return one.
FUNCTIONS = {
    counted: lambda x, y: _steps(x, y, 5),
    unrolled: lambda x, y: _steps(x, y, 3),
    nested_loops: _nested_loops,
    many_steps: lambda x, y: _steps(x, y, 11),
    nested_long_loops: _nested_long_loops,
    until_small: _until_small,
    branch: lambda x, y: x * y if x.sum() > 0 else x.exp() + y,
    early_return: lambda x, y: x * y * y if x.sum() > 0 else x.exp() + y,
    branch_in_loop: _branch_in_loop,
    softmax: lambda x, y: torch.softmax(x, 0) * y,
    scans: lambda x, y: torch.cumsum(x * y, 0) * torch.cumprod(0.5 * y + 1, 0),
    nested_calls: lambda x, y: 3 * x * x + torch.where(x > y, 2 * y * y, x * y),
    products: _products,
    running_maximum: _running_maximum,
    sum_of_products: _sum_of_products,
}


@triton.jit
def waves(x):
    return tl.sin(x) * tl.cos(x * x) + tl.exp2(-x)


@triton.jit
def powers(x):
    return tl.sqrt(x) + tl.rsqrt(x) + libdevice.pow(x, 3.5)


@triton.jit
def logarithms(x):
    return tl.log(x) * tl.log2(x) + libdevice.log1p(x)


@triton.jit
def quotient(x):
    return (x * x + 1) / (x + 3)


@triton.jit
def gelu(x):
    return 0.5 * x * (1 + libdevice.tanh(0.79788 * (x + 0.044715 * x * x * x)))


@triton.jit
def probability(x):
    return tl.erf(x) * tl.sigmoid(x)


@triton.jit
def angles(x):
    return libdevice.acos(0.4 * x) + libdevice.atan2(x, 1 + x * x) + libdevice.hypot(x, 2.0)


@triton.jit
def clamped(x):
    return tl.minimum(tl.maximum(x, 0.7), 1.2) * x * x


@triton.jit
def log_sum_exp(x):
    most = tl.max(x, 0)
    return (tl.log(tl.sum(tl.exp(x - most), 0)) + most) * x * x


@triton.jit
def largest_square(x):
    most = tl.max(x * x, 0)
    return most * most * x


@triton.jit
def products_so_far(x):
    return tl.cumprod(x, 0) * x


def _gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.79788 * (x + 0.044715 * x * x * x)))


def _angles(x):
    two = torch.full_like(x, 2.0)
    return torch.acos(0.4 * x) + torch.atan2(x, 1 + x * x) + torch.hypot(x, two)


# Functions of one positive tile.
CURVES = {
    waves: lambda x: x.sin() * (x * x).cos() + torch.exp2(-x),
    powers: lambda x: x.sqrt() + x.rsqrt() + x**3.5,
    logarithms: lambda x: x.log() * x.log2() + x.log1p(),
    quotient: lambda x: (x * x + 1) / (x + 3),
    gelu: _gelu,
    probability: lambda x: x.erf() * x.sigmoid(),
    angles: _angles,
    clamped: lambda x: x.clamp(0.7, 1.2) * x * x,
    log_sum_exp: lambda x: x.logsumexp(0) * x * x,
    largest_square: lambda x: (x * x).amax() ** 2 * x,
    products_so_far: lambda x: x.cumprod(0) * x,
}


@triton.jit
def pulling_kernel(x_ptr, y_ptr, dz_ptr, dx_ptr, dy_ptr, PULL: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    dx, dy = PULL(tl.load(x_ptr + i), tl.load(y_ptr + i), tl.load(dz_ptr + i))
    tl.store(dx_ptr + i, dx)
    tl.store(dy_ptr + i, dy)


def pull(function, x, y, dz):
    """The gradients of both arguments, as a kernel computes them with `vjp(function)`."""
    dx, dy = torch.empty_like(x), torch.empty_like(y)
    pulling_kernel[(1,)](x, y, dz, dx, dy, function, x.numel())
    return dx, dy


@triton.jit
def mapping_kernel(x_ptr, y_ptr, FUNCTION: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(y_ptr + i, FUNCTION(tl.load(x_ptr + i)))


def apply(function, x, block=16):
    """A function of one tile, for each block of a tensor."""
    y = torch.empty_like(x)
    mapping_kernel[(x.numel() // block,)](x, y, function, block)
    return y
