"""Loops that end, or start, where each program says: which programs have an iteration."""

import pytest
from gradients import assert_gradients_close, differentiated
from kernels.bounded_sums import FORMS, bounded_sums, bounded_sums_kernel, bounded_sums_reference
from schedules import assert_atomic, assert_no_atomics

pytestmark = pytest.mark.schedules


def _check(random, form, rows, columns, n, prefix, tiles=(8, 4)):
    op = differentiated(bounded_sums_kernel, bounded_sums)
    inputs = (random(2, columns), random(2, rows, shift=1.0), n, form, prefix, *tiles)
    assert_gradients_close(op, bounded_sums_reference, inputs, roundings=64)


@pytest.mark.parametrize("tiles", [(8, 4), (4, 8), (4, 4)])
@pytest.mark.parametrize(("rows", "n"), [(32, 32), (29, 30), (20, 40)])
@pytest.mark.parametrize("form", FORMS)
def test_bounds(random, ran, form, rows, n, tiles):
    """Programs own what they store: each iteration sums over those that have it."""
    if form == "two stages" and tiles[0] < tiles[1]:
        pytest.skip("the first stage would end within a block")
    _check(random, form, rows, n, n, prefix=13, tiles=tiles)
    # Sums in parts are only stored where all of the tensor is.
    if form in ("rounded", "beyond") or (rows > n - 8 and form != "blocks before"):
        assert_no_atomics(ran)


def test_beyond_the_mask(random, ran):
    """A loop without the mask that another one has may read what that one leaves out."""
    _check(random, "beyond", rows=24, columns=20, n=18, prefix=20)
    assert_atomic(ran, 0)
