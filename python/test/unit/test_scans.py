"""Scans with any combine function: tuples, axes, directions, tails, zeros."""

import pytest
import torch
from gradients import assert_compiles, assert_gradients_close, differentiated
from kernels import combiners as cb

pytestmark = pytest.mark.schedules

DIRECTIONS = pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])


def _scan(name):
    return differentiated(cb.SCAN[name], cb.scan)


@DIRECTIONS
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", cb.COMBINERS)
def test_combiner(device, name, axis, reverse):
    if device == "cuda" and name not in cb.FOR_GPUS:
        pytest.skip("Triton does not compile it for GPUs")
    x = cb.sample(name, cb.full_axis(name, (3, 5, 7), axis), device, torch.float64)
    assert_gradients_close(_scan(name), cb.scan_reference, (x, name, axis, reverse))


@DIRECTIONS
@pytest.mark.parametrize("name", ["product", "log_add_exp", "affine"])
def test_single_precision(device, name, reverse):
    x = cb.sample(name, (2, 16, 3), device, torch.float32)
    assert_gradients_close(_scan(name), cb.scan_reference, (x, name, 1, reverse))


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 1, 16), (1, 64, 4)], ids=str)
def test_sizes(device, shape):
    """One element to scan, and many."""
    for name in ("either", "affine"):
        x = cb.sample(name, shape, device, torch.float64)
        assert_gradients_close(_scan(name), cb.scan_reference, (x, name, 1))


@DIRECTIONS
def test_product_with_zeros(device, reverse):
    x = cb.sample("product", (3, 8, 2), device, torch.float64)
    with torch.no_grad():
        x[:, 2:4] = 0
    assert_gradients_close(_scan("product"), cb.scan_reference, (x, "product", 1, reverse))


@pytest.mark.parametrize("used", [0, 1, 2])
def test_one_member_of_the_results(device, used):
    """Without the upstream gradients of the others; the weights do not depend on the values."""
    x = cb.sample("welford", (2, 8, 3), device, torch.float64)
    expected, y = (function(x, "welford", 1) for function in (cb.scan_reference, _scan("welford")))
    upstream = torch.zeros_like(y)
    upstream[used] = torch.randn_like(y[used])
    (truth,) = torch.autograd.grad(expected, x, upstream)
    (gradient,) = torch.autograd.grad(y, x, upstream)
    torch.testing.assert_close(gradient, truth)


@DIRECTIONS
@pytest.mark.parametrize("name", cb.FOR_GPUS)
def test_triton_compiles(name, reverse):
    for shape, axis in (((1, 1, 256), 2), ((4, 16, 8), 1)):
        x = cb.sample(name, shape, cb.HOME, torch.float32)
        assert_compiles(_scan(name), (x, name, axis, reverse))
