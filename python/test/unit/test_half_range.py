"""Gradients in half precision of what leaves its range: beyond 65504, or below 6e-8.

Products have their operands in half precision, and their cotangents as they come.
"""

import re

import hopper
import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import half_range as hr
from kernels import matmul


def halves(*shape, device, scale):
    return random_tensor(*shape, device=device, dtype=torch.float16, scale=scale)


@pytest.mark.parametrize("size, scale", [(1e-8, 300.0), (3e5, 0.01)], ids=["tiny", "huge"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_upstream_gradients_of_another_type(device, dtype, size, scale):
    a, b = (halves(hr.SIZE, hr.SIZE, device=device, scale=scale) for _ in range(2))
    upstream = (size * torch.randn(hr.SIZE, hr.SIZE, device=device)).to(dtype)
    operation = differentiated(hr.product_kernel, hr.product)
    assert_gradients_close(operation, hr.product_reference, (a, b, dtype), [upstream])


@pytest.mark.parametrize("form", ["quotient", "rsqrt", "reciprocal", "logarithm"])
def test_norms_of_small_numbers(device, form):
    a, b = (halves(hr.SIZE, hr.SIZE, device=device, scale=1e-3) for _ in range(2))
    operation = differentiated(hr.norm_kernel, hr.norm)
    assert_gradients_close(operation, hr.norm_reference, (a, b, 1e-12, form))


def test_norm_of_zeros(device):
    """What the infinite cotangent would be multiplied by is zero, and the gradient NaN."""
    a = halves(hr.SIZE, hr.SIZE, device=device, scale=1e-3)
    b = torch.zeros_like(a).requires_grad_()
    operation = differentiated(hr.norm_kernel, hr.norm)
    assert_gradients_close(operation, hr.norm_reference, (a, b, 1e-12, "quotient"))


def test_norms_of_later_steps(device):
    a, b = (halves(hr.STEPS, hr.SIZE, hr.SIZE, device=device, scale=1e-3) for _ in range(2))
    operation = differentiated(hr.steps_kernel, hr.steps)
    assert_gradients_close(operation, hr.steps_reference, (a, b, 1e-12))


@pytest.mark.parametrize("tile", [(128, 128, 32), (128, 256, 64)], ids=str)
def test_large_tiles_fit_in_shared_memory(tile):
    """Operands of float32 take twice as much of it."""
    types = ["*fp16", "*fp16", "*fp32", *["i32"] * 9]
    sizes = dict(zip(["BLOCK_M", "BLOCK_N", "BLOCK_K"], tile, strict=True))
    text = hopper.ttir(matmul.matmul_kernel, types, {**sizes, "PRECISION": "tf32"}, True)
    for kernel in hopper.plan_of(text)["backward"]:
        assert re.search(r"tt.dot .*inputPrecision = tf32", kernel["ttir"])
        assert hopper.shared_memory(kernel) <= hopper.SHARED_MEMORY
