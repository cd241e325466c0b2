"""Operations that PyTorch's counter counts in registered operators."""

import pytest
import torch
import triton
import triton.language as tl
from torch.utils.flop_counter import FlopCounterMode
from triton_autodiff import AutodiffError, autodiff

Tensor = torch.Tensor


@triton.jit
def matmul_kernel(a, b, c, M, N, K, BLOCK: tl.constexpr):
    k = tl.arange(0, BLOCK)
    i = tl.program_id(0) * BLOCK + k
    j = tl.program_id(1) * BLOCK + k
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        x = tl.load(a + i[:, None] * K + (start + k)[None, :])
        y = tl.load(b + (start + k)[:, None] * N + j[None, :])
        sums += tl.dot(x, y)
    tl.store(c + i[:, None] * N + j[None, :], sums)


@triton.jit
def causal_kernel(a, b, c, N, BLOCK: tl.constexpr):
    # Row block n is a sum over the blocks up to it.
    k = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for block in range(0, row + 1):
        x = tl.load(a + (row * BLOCK + k)[:, None] * N + (block * BLOCK + k)[None, :])
        y = tl.load(b + (block * BLOCK + k)[:, None] * BLOCK + k[None, :])
        sums += tl.dot(x, y)
    tl.store(c + (row * BLOCK + k)[:, None] * BLOCK + k[None, :], sums)


@triton.jit
def as_often_as_memory_says_kernel(a, count, c, BLOCK: tl.constexpr):
    k = tl.arange(0, BLOCK)
    place = k[:, None] * BLOCK + k[None, :]
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in range(tl.load(count)):
        x = tl.load(a + place)
        sums += tl.dot(x, x)
    tl.store(c + place, sums)


def matmul(kernel, a: Tensor, b: Tensor) -> Tensor:
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, device=a.device)
    kernel[(m // 32, n // 32)](a, b, c, m, n, k, BLOCK=32)
    return c


def causal(kernel, a: Tensor, b: Tensor) -> Tensor:
    c = torch.empty_like(b)
    kernel[(a.shape[0] // 32,)](a, b, c, a.shape[0], BLOCK=32)
    return c


def as_often(kernel, a: Tensor, count: Tensor) -> Tensor:
    c = torch.empty_like(a)
    kernel[(1,)](a, count, c, BLOCK=32)
    return c


def counted(function, *inputs):
    """The operations of a function, and of its gradients."""
    with FlopCounterMode(display=False) as forward:
        y = function(*inputs)
    with FlopCounterMode(display=False) as backward:
        y.sum().backward()
    return forward.get_total_flops(), backward.get_total_flops()


@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True)])
def test_products_are_those_of_pytorch(device, wanted):
    op = autodiff(matmul_kernel, matmul).register(
        "autodiff_test::matmul" + "".join(map(str, wanted))
    )
    shapes = (64, 96), (96, 128)
    inputs = [
        torch.randn(s, device=device, requires_grad=w) for s, w in zip(shapes, wanted, strict=True)
    ]
    forward, backward = counted(torch.mm, *inputs)
    # The gradient runs the operation again.
    assert counted(op, *inputs) == (forward, forward + backward)


def test_loops_of_which_each_program_has_its_own_length(device):
    op = autodiff(causal_kernel, causal).register("autodiff_test::causal")
    a = torch.randn(128, 128, device=device, requires_grad=True)
    b = torch.randn(128, 32, device=device)
    blocks = 1 + 2 + 3 + 4
    assert counted(op, a, b)[0] == blocks * 2 * 32**3


def test_what_memory_decides_has_no_count(device):
    op = autodiff(as_often_as_memory_says_kernel, as_often).register("autodiff_test::as_often")
    a = torch.randn(32, 32, device=device)
    with FlopCounterMode(display=False), pytest.raises(AutodiffError, match="cannot be counted"):
        op(a, torch.ones(1, dtype=torch.int32, device=device))
