"""Loops over the grid, whose iterations become programs where that is the same, and only there."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import grid_stride as gs
from schedules import assert_sums
from triton.backends.autodiff.errors import ArgumentError

pytestmark = pytest.mark.schedules


def _inputs(device, *shape, dtype=torch.float32):
    """Weights are small: sums of large exponentials that cancel lose more than is allowed."""
    return (
        random_tensor(*shape, device=device, dtype=dtype),
        random_tensor(shape[-1], device=device, dtype=dtype, scale=0.25),
    )


def _check(device, ran, *inputs, spread, sums="store"):
    op = differentiated(gs.rows_kernel, gs.rows)
    assert_gradients_close(op, gs.rows_reference, inputs, roundings=16)
    # Rows from a program's number on are its own, also where it runs the loop.
    assert_sums(ran, sums, 0)
    assert ran is None or ran.spread == spread


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("rows", [1, 2, 3, 7, 12])
def test_rows(device, ran, rows, dtype):
    _check(device, ran, *_inputs(device, rows, 21, dtype=dtype), 3, spread=True)


@pytest.mark.parametrize("how", ["wide", "carried number", "carried pointers"])
@pytest.mark.parametrize("step", [0, 4])
def test_counters(device, ran, how, step):
    """Numbers of 64 bits, and what is counted beside the loop's."""
    spread = how != "carried number" or step != 0
    _check(device, ran, *_inputs(device, 9, 21), 4, how, step, spread=spread)


@pytest.mark.parametrize("rows, programs, step, spread, sums", [
    (9, 4, 4, True, "store"),
    (3, 4, 4, True, "store"),
    (3, 3, 4, True, "store"),  # the grid is as short as there is work
    (3, 4, 3, True, "store"),
    (9, 3, 4, False, "store"),  # rows that no program reaches
    (9, 4, 3, False, "atomic"),  # rows that two of them reach
])  # fmt: skip
def test_steps(device, ran, rows, programs, step, spread, sums):
    """A step that the kernel is compiled with need not be the number of programs."""
    _check(device, ran, *_inputs(device, rows, 21), programs, "", step, spread=spread, sums=sums)


@pytest.mark.parametrize("programs, shifts, length", [(3, 2, 2), (9, 1, 3), (2, 3, 0)])
def test_windows_of_rows(device, programs, shifts, length):
    """An inner loop begins at the number of the outer one, which begins at the program's."""
    op = differentiated(gs.row_windows_kernel, gs.row_windows)
    inputs = (*_inputs(device, 9, 21), programs, shifts, length)
    assert_gradients_close(op, gs.row_windows_reference, inputs, roundings=16)


@pytest.mark.parametrize("how", ["stored", "summed"])
@pytest.mark.parametrize("n, programs, step, sums", [
    (100, 3, 0, "store"),
    (100, 3, 3, "store"),
    (37, 5, 0, "store"),  # more programs than blocks
    (5, 1, 0, "store"),
    (100, 2, 3, "store"),  # blocks that no program reaches
    (100, 3, 2, "atomic"),  # blocks that two of them reach
])  # fmt: skip
def test_blocks(device, ran, n, programs, step, sums, how):
    """Each program starts at a block of its own."""
    op = differentiated(gs.blocks_kernel, gs.blocks)
    x = random_tensor(n, device=device)
    assert_gradients_close(op, gs.blocks_reference, (x, programs, how, step), roundings=16)
    assert_sums(ran, sums, 0)


@pytest.mark.parametrize("how", ["stored", "summed"])
def test_whole_blocks(device, ran, how):
    """Without a mask, it is the loop that ends."""
    op = differentiated(gs.blocks_kernel, gs.blocks)
    x = random_tensor(7 * 16, device=device)
    assert_gradients_close(op, gs.blocks_reference, (x, 3, how, 0, False), roundings=16)
    assert_sums(ran, "store", 0)


@pytest.mark.parametrize("how", ["stored", "summed"])
@pytest.mark.parametrize("first, low", [(3, 0), (0, 21), (3, 21), (16, 16)])
def test_blocks_behind_a_start(device, ran, first, low, how):
    """What is in front of the first block, and of the mask, has a gradient of zero."""
    op = differentiated(gs.blocks_kernel, gs.blocks)
    x = random_tensor(100, device=device)
    inputs = (x, 3, how, 0, True, first, low)
    assert_gradients_close(op, gs.blocks_reference, inputs, roundings=16)
    assert_sums(ran, "store", 0)


def test_second_axis(device, ran):
    """Programs along the first one stay what they are."""
    _check(device, ran, *_inputs(device, 2, 7, 21), 3, "", 0, 1, spread=True)


def test_no_rows(device):
    x, w = _inputs(device, 0, 21)
    op = differentiated(gs.rows_kernel, gs.rows)
    gradients = torch.autograd.grad(op(x, w, 3).sum(), (x, w))
    assert gradients[0].shape == (0, 21) and not gradients[1].any()


@pytest.mark.parametrize("how, programs", [
    ("carried sum", 3),
    ("numbered", 3),
    ("counted", 3),
    ("recurrence", 1),
    ("in place", 3),
    ("meeting", 1),
])  # fmt: skip
def test_what_needs_the_loop(device, ran, how, programs):
    """An iteration knows of others, or what the last one stores decides."""
    # What was in the place of an output may be read by others, too.
    sums = "atomic" if how == "in place" else "store"
    _check(device, ran, *_inputs(device, 7, 21), programs, how, spread=False, sums=sums)


def test_shared_memory(device):
    """Rows are overwritten through another argument, and an iteration may read those of another."""
    op = differentiated(gs.rows_kernel, gs.rows)
    with pytest.raises(ArgumentError, match="'y_ptr' and 'x_ptr' .* share memory"):
        op(*_inputs(device, 7, 21), 3, "shared")


def test_sums(device, ran):
    """What is added may meet."""
    _check(device, ran, *_inputs(device, 7, 21), 3, "added", spread=True)


def test_explanation(device, schedule):
    if schedule == "checks fail":
        pytest.skip("no iteration becomes a program then")
    op = differentiated(gs.rows_kernel, gs.rows)
    text = op.explain(*_inputs(device, 7, 21), 3)
    assert "each iteration of the loop at grid_stride.py:" in text
    assert "in a grid of (max(n, 0), num_programs(1), num_programs(2))" in text
