"""Loops that are divided where masks begin or cease to hold: all iterations happen, once."""

import pytest
from gradients import assert_gradients_close, differentiated
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
