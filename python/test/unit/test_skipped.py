"""Iterations that a branch skips by their number are out of a loop's bounds."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import skipped
from schedules import assert_sums

MOST = 2**31 - 1


def _attend(device, n, form, limit=0, exact=False):
    q, k, v = (random_tensor(2, n, 16, device=device) for _ in range(3))
    op = differentiated(skipped.skipping_kernel, skipped.skipping)
    inputs = q, k, v, form, limit, exact
    assert_gradients_close(op, skipped.skipping_reference, inputs, roundings=64)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("n", [16, 53, 80])
@pytest.mark.parametrize("form", skipped.FORMS)
def test_attention(device, ran, form, n, exact):
    # Of the first keys, all queries see some.
    _attend(device, n, form, 1, exact)
    if form not in ("flags", "distance", "ahead of limit"):
        assert_sums(ran, "store", 0, 1, 2)


@pytest.mark.parametrize("form", ["limit", "distance", "ahead of limit"])
@pytest.mark.parametrize("limit", [0, 2, MOST - 1, MOST])
def test_limits(device, form, limit):
    """The largest number stands for no limit."""
    _attend(device, 53, form, limit)


@pytest.mark.parametrize("first", [-MOST - 1, -3, 0, 1, 8, 13, 40, MOST - 1, MOST])
@pytest.mark.parametrize("last", [-MOST - 1, -1, 0, 7, 16, 30, MOST - 1, MOST])
def test_picked_sum(device, first, last):
    x = random_tensor(3, 37, device=device, dtype=torch.float64)
    w = random_tensor(37, device=device, dtype=torch.float64)
    op = differentiated(skipped.sum_kernel, skipped.picked_sum)
    assert_gradients_close(op, skipped.picked_sum_reference, (x, w, first, last))
