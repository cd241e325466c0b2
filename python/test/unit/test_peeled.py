"""What is loaded in front of a loop is one of its iterations, where it is the one before."""

import pytest
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import peeled
from schedules import assert_atomic, assert_sums


@pytest.mark.parametrize("first", [1, 2])
@pytest.mark.parametrize("steps, width", [(9, 11), (2, 16), (5, 40)])
def test_recurrence(device, ran, steps, width, first):
    """Of no further iterations, too; gradients of all states arrive where they were stored."""
    x = random_tensor(steps, width, device=device)
    op = differentiated(peeled.recurrence_kernel, peeled.recurrence)
    assert_gradients_close(op, peeled.recurrence_reference, (x, first), roundings=32)
    assert_sums(ran, "store", 0)


def test_only_the_first_one(device, ran):
    x = random_tensor(1, 20, device=device)
    op = differentiated(peeled.recurrence_kernel, peeled.recurrence)
    assert_gradients_close(op, peeled.recurrence_reference, (x,))
    assert_sums(ran, "store", 0)


@pytest.mark.parametrize("n", [100, 64, 16, 5])
def test_blocks(device, ran, n):
    """The first block may be the only one, and not whole."""
    x = random_tensor(3, n, device=device)
    op = differentiated(peeled.blocks_kernel, peeled.blocks)
    assert_gradients_close(op, peeled.blocks_reference, (x,), roundings=16)
    assert_sums(ran, "store", 0)


@pytest.mark.parametrize("gap", [3, -16])
def test_blocks_that_are_not_the_next_ones(device, ran, gap):
    """With a gap, elements are left out; the first block once more is not one before it."""
    x = random_tensor(3, 80, device=device)
    op = differentiated(peeled.blocks_kernel, peeled.blocks)
    assert_gradients_close(op, peeled.blocks_reference, (x, gap), roundings=16)
    assert_atomic(ran, 0)
