"""Tiles that go around the end of a tensor: what they add there is dropped, or counts."""

import pytest
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import wraparound as wa
from schedules import assert_sums

pytestmark = pytest.mark.schedules


@pytest.mark.parametrize("rows", [3, 16, 21])
@pytest.mark.parametrize("form", ["dropped", "selected", "branch"])
def test_what_is_dropped(device, ran, form, rows):
    """Elements are then reached once."""
    op = differentiated(wa.rows_kernel, wa.rows)
    x = random_tensor(rows, 16, device=device)
    assert_gradients_close(op, wa.rows_reference, (x, form))
    assert_sums(ran, "store", 0)


@pytest.mark.parametrize("rows", [3, 16, 21])
@pytest.mark.parametrize("form", ["kept", "longer", "summed", "divided"])
def test_what_counts(device, form, rows):
    """Elements count as often as they are reached."""
    op = differentiated(wa.rows_kernel, wa.rows)
    assert_gradients_close(op, wa.rows_reference, (random_tensor(rows, 16, device=device), form))


@pytest.mark.parametrize("rows", [8, 16])
def test_positions_before_the_start(device, rows):
    """What is left over of negative numbers is negative, not the number itself."""
    op = differentiated(wa.rows_kernel, wa.rows)
    x = random_tensor(3 * rows, 16, device=device)
    assert_gradients_close(op, wa.rows_reference, (x, "before"))
