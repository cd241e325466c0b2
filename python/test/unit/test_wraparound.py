"""Tiles that go around the end of a tensor: what they add there is dropped, or counts."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import matmul as mm
from kernels import wraparound as wa
from schedules import assert_sums

pytestmark = pytest.mark.schedules


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("shape", [(64, 96, 32), (50, 70, 33), (20, 7, 1)], ids=str)
def test_matmul(device, ran, shape, dtype):
    m, n, k = shape
    a = random_tensor(m, k, device=device, dtype=dtype)
    b = random_tensor(k, n, device=device, dtype=dtype)
    op = differentiated(wa.matmul_kernel, mm.grouped_matmul)
    assert_gradients_close(op, torch.matmul, (a, b))
    assert ran is None or "atomic" not in ran.sums.values()


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
