"""The CPU backend gives a value the same bits wherever it is computed.

A backward kernel computes values of the forward again. Where two of them are equal, or the largest
of several is sought, one that is off in the last bit takes another branch than the forward did.
"""

import pytest
import torch
import triton
import triton.language as tl
from cpu_backend import on_cpu  # noqa: F401
from triton.backends.autodiff import autodiff


@triton.jit
def function(x, NAME: tl.constexpr):
    y = tl.sin(x)
    if NAME == "cos":
        y = tl.cos(x)
    elif NAME == "exp":
        y = tl.exp(x)
    elif NAME == "exp2":
        y = tl.exp2(x)
    elif NAME == "log":
        y = tl.log(x)
    elif NAME == "log2":
        y = tl.log2(x)
    elif NAME == "erf":
        y = tl.erf(x)
    elif NAME == "power":
        y = tl.exp(1.3 * tl.log(x) + 0.1)
    elif NAME == "contracted":
        square = x * x
        y = square * 3.1 + x
    return y


@triton.jit
def blocks(x_ptr, y_ptr, n, NAME: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=1.0)
    tl.store(y_ptr + at, function(x, NAME), mask=at < n)


@triton.jit
def scalars(x_ptr, y_ptr, z_ptr, NAME: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0))
    tl.store(y_ptr + tl.program_id(0), function(x, NAME))
    # Another use of a product keeps it from being contracted.
    tl.store(z_ptr + tl.program_id(0), x * x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "name", ["sin", "cos", "exp", "exp2", "log", "log2", "erf", "power", "contracted"]
)
def test_functions(name, dtype):
    """One element at a time, few or many: the results are the same."""
    x = torch.rand(203).to(dtype) * 30 + 0.01
    expected = torch.empty_like(x)
    scalars[(203,)](x, expected, torch.empty_like(x), NAME=name)
    for block in (1, 2, 4, 8, 256):
        y = torch.empty_like(x)
        blocks[(triton.cdiv(203, block),)](x, y, 203, NAME=name, BLOCK=block)
        assert torch.equal(y, expected), block


@triton.jit
def sums(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    alone = tl.sum(x, 1)
    of_products = tl.sum(tl.load(x_ptr + at) * 1.0, 1)
    m = tl.arange(0, M)
    tl.store(y_ptr + m, alone)
    tl.store(y_ptr + M + m, of_products)
    for i in range(M):
        line = tl.load(x_ptr + i * N + tl.arange(0, N))
        tl.store(y_ptr + 2 * M + i, tl.sum(line))
        tl.store(y_ptr + 3 * M + i, tl.sum(tl.exp(tl.where(line == line, 0.0, line)) * line))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [2, 8, 16, 32, 64, 512])
def test_sums(n, dtype):
    """What is summed, and how it came about, does not change the order of a sum."""
    x = torch.randn(8, n, dtype=dtype)
    y = torch.empty(4, 8, dtype=dtype)
    sums[(1,)](x, y, M=8, N=n)
    torch.testing.assert_close(y[0], x.sum(1), rtol=1e-5, atol=1e-5)
    assert (y == y[0]).all()


@triton.jit
def unchanged(x_ptr, y_ptr, trips, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    first = tl.cos(x * 0.5)
    last = first
    for _ in range(trips):
        last = last * last
    tl.store(y_ptr + at, tl.where(last > first, x * x, 0.0) + last)


def test_gradient_of_equals():
    """What a loop of no iterations leaves is not larger than it was."""
    x = torch.randn(8, 16, dtype=torch.float64)

    def stub(kernel, x):
        y = torch.empty_like(x)
        kernel[(1,)](x, y, 0, M=8, N=16)
        return y

    leaf = x.clone().requires_grad_()
    autodiff(unchanged, stub)(leaf).sum().backward()
    torch.testing.assert_close(leaf.grad, -0.5 * torch.sin(x * 0.5))
