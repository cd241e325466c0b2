"""Loops that are divided where masks begin or cease to hold: all iterations happen, once."""

import pytest
import torch
import triton
import triton.language as tl
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels.masked_products import (
    FORMS,
    masked_product,
    masked_product_kernel,
    masked_product_reference,
)

pytestmark = pytest.mark.schedules

DIM = 16


def _check(random, rows, columns, width, low, form, *options):
    inputs = (random(rows, DIM), random(columns, DIM), random(columns, DIM))
    op = differentiated(masked_product_kernel, masked_product)
    assert_gradients_close(
        op, masked_product_reference, (*inputs, width, low, form, *options), roundings=32
    )


@pytest.mark.parametrize("tiles", [(16, 16), (32, 16), (16, 32)])
@pytest.mark.parametrize("form", FORMS)
def test_masks(random, schedule, form, tiles):
    _check(random, 75, 85, 21, 0, form, False, tiles)


@pytest.mark.parametrize("width", [1, 16, 40, 1000])
@pytest.mark.parametrize("form", ["shifted", "scaled", "window", "difference", "wide", "between"])
def test_widths(random, schedule, form, width):
    _check(random, 70, 64, width, 0, form)


@pytest.mark.parametrize("low", [5, 84, 90])
@pytest.mark.parametrize("form", ["causal", "window", "reversed"])
def test_loops_that_start_anywhere(random, schedule, form, low):
    """Within a block, in the last one, and behind it."""
    _check(random, 96, 85, 21, low, form)


@pytest.mark.parametrize("form", ["causal", "window"])
def test_steps_known_when_it_runs(random, schedule, form):
    _check(random, 48, 50, 21, 0, form, True)


@triton.jit
def chosen_rows_kernel(x_ptr, y_ptr, out_ptr, n, high, low, M: tl.constexpr):
    rows = tl.arange(0, M)[:, None]
    tile = rows * M + tl.arange(0, M)[None, :]
    product = tl.dot(tl.load(x_ptr + tile), tl.load(y_ptr + tile), input_precision="ieee")
    if n > 5:
        kept = rows < high
    else:
        kept = rows >= low
    tl.store(out_ptr + tile, product, mask=tl.broadcast_to(kept, (M, M)))


@pytest.mark.parametrize("n", [3, 9])
def test_rows_that_one_condition_chooses(device, n):
    """A selection whose condition is one number has a first column, too."""

    def chosen(kernel, x, y):
        out = torch.zeros(DIM, DIM, device=device)
        kernel[(1,)](x, y, out, n, 7, 4, M=DIM)
        return out

    def reference(x, y):
        rows = torch.arange(DIM, device=x.device)[:, None]
        return torch.where(rows < 7 if n > 5 else rows >= 4, x @ y, 0)

    op = differentiated(chosen_rows_kernel, chosen)
    inputs = (random_tensor(DIM, DIM, device=device), random_tensor(DIM, DIM, device=device))
    assert_gradients_close(op, reference, inputs, roundings=32)
