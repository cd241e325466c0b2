"""Lanes that add to the same element are summed, if there are few such elements in a tile."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import runs

pytestmark = pytest.mark.schedules


def _check(device, shape, how="", before=0, dtype=torch.float32):
    op = differentiated(runs.channels_kernel, runs.channels)
    x = random_tensor(*shape, device=device, dtype=dtype)
    w = random_tensor(shape[1] * (1 + (how == "turned")), device=device, dtype=dtype)
    inputs = x, w, how, before
    assert_gradients_close(op, runs.channels_reference, inputs, roundings=64, updates=64)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("inner", [1, 3, 63, 64, 85, 100, 256, 1000])
def test_channels(device, inner, dtype):
    """From one lane each to several tiles each; where runs are short, lanes add by themselves."""
    _check(device, (3, 5, inner), dtype=dtype)


@pytest.mark.parametrize("how", ["turned", "wrapped", "two", "left out"])
@pytest.mark.parametrize("inner", [7, 200])
def test_addresses(device, how, inner):
    """What is made of the quotient; lanes that read nothing there."""
    _check(device, (3, 4, inner), how)


@pytest.mark.parametrize("before", [1, 100, 255])
def test_positions_before_the_first(device, before):
    """-1 // 100 is 0, too, in Triton."""
    _check(device, (2, 5, 100), before=before)
