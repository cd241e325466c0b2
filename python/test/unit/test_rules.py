"""The rule of one operation at a time, by finite differences and against PyTorch."""

import pytest
import torch
from gradients import assert_gradcheck, assert_gradients_close, differentiated, random_tensor
from kernels import functions as fn


def _sample(op, n, device, dtype):
    _, low, high = fn.UNARY[op]
    x = torch.rand(n, device=device, dtype=torch.float64) * (high - low) + low
    if op == "floor plus" or op == "ceil times":
        # Finite differences must not step over an integer.
        x = torch.where((x - x.round()).abs() < 0.01, x + 0.1, x)
    return x.to(dtype).requires_grad_()


@pytest.mark.parametrize("op", fn.UNARY)
def test_unary(device, op):
    operation = differentiated(fn.unary_kernel, fn.unary)
    for dtype in (torch.float32, torch.float64):
        x = _sample(op, 150, device, dtype)
        if not (op == "through float32" and dtype == torch.float64):
            assert_gradients_close(operation, lambda x, op: fn.UNARY[op][0](x), (x, op))
    if op != "through float32":
        assert_gradcheck(lambda x: operation(x, op), (_sample(op, 20, device, torch.float64),))


@pytest.mark.parametrize("op", fn.BINARY)
def test_binary(device, op):
    operation = differentiated(fn.binary_kernel, fn.binary)
    for dtype in (torch.float32, torch.float64):
        x = random_tensor(150, device=device, dtype=dtype)
        y = random_tensor(150, device=device, dtype=dtype, grad=False)
        y = (y.abs() + 0.2).requires_grad_()
        assert_gradients_close(operation, lambda x, y, op: fn.BINARY[op](x, y), (x, y, op))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op", fn.REDUCTIONS)
def test_reduction(device, op, axis):
    operation = differentiated(fn.reduce_kernel, fn.reduce)
    for dtype in (torch.float32, torch.float64):
        for shape in [(16, 32), (7, 19)]:
            x = random_tensor(*shape, device=device, dtype=dtype)
            assert_gradients_close(
                operation, lambda x, op, axis: fn.REDUCTIONS[op](x, axis), (x, op, axis)
            )


@pytest.mark.parametrize("reverse", [False, True])
def test_running_sum(device, reverse):
    op = differentiated(fn.running_sum_kernel, fn.running_sum)
    for dtype in (torch.float32, torch.float64):
        x = random_tensor(5, 50, device=device, dtype=dtype)
        assert_gradients_close(op, fn.running_sum_reference, (x, reverse))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_changes_of_shape(device, dtype):
    x = random_tensor(8, 16, device=device, dtype=dtype)
    w = random_tensor(8, device=device, dtype=dtype)
    op = differentiated(fn.shapes_kernel, fn.shapes)
    assert_gradients_close(op, fn.shapes_reference, (x, w))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_other_value_of_a_masked_load(device, dtype):
    x, w = (random_tensor(100, device=device, dtype=dtype) for _ in range(2))
    op = differentiated(fn.masked_other_kernel, fn.masked_other)
    assert_gradients_close(op, fn.masked_other_reference, (x, w))
