"""Loops over a row, whose iterations become an axis of tiles where that is the same."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import long_rows

pytestmark = pytest.mark.schedules
BLOCK = 16


def _inputs(device, columns, dtype=torch.float32, how="", shift=0.0):
    return (
        random_tensor(5, columns, device=device, dtype=dtype, shift=shift),
        random_tensor(columns, device=device, dtype=dtype, shift=shift),
        random_tensor(columns // BLOCK + 1, device=device, dtype=dtype).requires_grad_(
            how == "each scaled"
        ),
    )


def _check(device, ran, columns, *how, batch, dtype=torch.float32):
    """The gradients are right, and the axis is as long as `batch` (0: the loops stay)."""
    op = differentiated(long_rows.twice_kernel, long_rows.twice)
    # The gradient of a scale may be one number, which must not be a sum that cancels.
    shift = 4.0 if how[:1] == ("each scaled",) else 0.0
    inputs = (*_inputs(device, columns, dtype, *how[:1], shift=shift), *how)
    upstreams = [random_tensor(5, columns, device=device, shift=shift).detach()] if shift else None
    assert_gradients_close(op, long_rows.twice_reference, inputs, upstreams, roundings=32)
    if ran is not None:
        assert ran.batch == batch


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("columns, batch", [(1, 1), (15, 1), (16, 1), (17, 2), (40, 4), (64, 4)])
def test_rows(device, ran, columns, batch, dtype):
    """Any number of iterations, on an axis that is at least as long."""
    _check(device, ran, columns, batch=batch, dtype=dtype)


@pytest.mark.parametrize("how", [
    "scalar", "ones", "filled", "pairs", "wide", "pointers", "number", "each halved", "added",
    "last positive",
])  # fmt: skip
@pytest.mark.parametrize("first", [0, 3])
def test_iterations_behind_the_last(device, ran, how, first):
    """There are three iterations, and nothing comes of a fourth."""
    _check(device, ran, 40 + first, how, first, batch=4)


@pytest.mark.parametrize("how", ["unmasked", "each scaled", "each divided"])
@pytest.mark.parametrize("trips", [1, 3, 4])
def test_as_many_iterations(device, ran, how, trips):
    """What no mask leaves out must not be there, be it only a division by zero."""
    _check(device, ran, BLOCK * trips, how, batch=0 if trips == 3 else trips)


@pytest.mark.parametrize("how", [
    "decay", "largest", "smallest", "in place", "shared", "meeting", "shorter",
])  # fmt: skip
def test_what_needs_the_loops(device, ran, how):
    """An iteration needs another one, or decides with it; the last one does; lengths differ."""
    _check(device, ran, 50, how, batch=0)


@pytest.mark.parametrize("how", ["online", "online by lanes", "passes"])
@pytest.mark.parametrize("columns, batch", [(15, 1), (16, 1), (40, 4), (64, 4)])
def test_softmax(device, ran, how, columns, batch):
    """Maxima of iterations, and sums relative to the maximum so far."""
    op = differentiated(long_rows.softmax_kernel, long_rows.softmax)
    x = random_tensor(5, columns, device=device, scale=4.0)
    assert_gradients_close(op, long_rows.softmax_reference, (x, how), roundings=32)
    if ran is not None:
        assert ran.batch == batch


@pytest.mark.parametrize("how", ["online", "online by lanes", "passes"])
def test_softmax_of_rows_too_long_for_a_tile(device, ran, how):
    op = differentiated(long_rows.softmax_kernel, long_rows.softmax)
    x = random_tensor(2, 40000, device=device, scale=4.0)
    assert_gradients_close(op, long_rows.softmax_reference, (x, how, 1024), roundings=64)
    if ran is not None:
        assert ran.batch == 0


def test_rows_too_long_for_a_tile(device, ran):
    columns = 2 * 16384
    # Sums that do not cancel.
    x, upstream = (random_tensor(2, columns, device=device, shift=4.0) for _ in range(2))
    w = random_tensor(columns, device=device, shift=4.0)
    op = differentiated(long_rows.twice_kernel, long_rows.twice)
    inputs = (x, w, None, "", 0, 2048)
    reference, upstreams = long_rows.twice_reference, [upstream.detach()]
    assert_gradients_close(op, reference, inputs, upstreams, roundings=64)
    if ran is not None:
        assert ran.batch == 0


def test_no_columns(device):
    op = differentiated(long_rows.twice_kernel, long_rows.twice)
    x, w, s = _inputs(device, 0)
    gradients = torch.autograd.grad(op(x, w, s).sum(), (x, w), allow_unused=True)
    assert gradients[0].shape == (5, 0)


def test_one_operation_for_rows_of_all_lengths(device, ran):
    """Each length has its own plan, or the one of another with as long an axis."""
    op = differentiated(long_rows.twice_kernel, long_rows.twice)
    for columns, batch in ((20, 2), (40, 4), (24, 2), (50, 4), (16, 1)):
        inputs = _inputs(device, columns)
        assert_gradients_close(op, long_rows.twice_reference, inputs, roundings=32)
        if ran is not None:
            assert ran.batch == batch


@pytest.mark.parametrize("rows", ["expanded", "overlapping"])
def test_rows_that_share_elements(device, ran, rows):
    """Gradients of rows that meet are added up, with loops or without."""
    op = differentiated(long_rows.twice_kernel, long_rows.twice)
    base = random_tensor(1, 40 + 4 * 8, device=device)
    _, w, s = _inputs(device, 40)
    stride = 0 if rows == "expanded" else 8

    def on_view(function):
        return lambda base, w, s: function(base.as_strided((5, 40), (stride, 1)), w, s)

    assert_gradients_close(
        on_view(op), on_view(long_rows.twice_reference), (base, w, s), roundings=64, updates=5
    )


def _check_stored(device, ran, columns, how="", batch=0, dtype=torch.float32):
    op = differentiated(long_rows.stored_kernel, long_rows.stored)
    # Sums that do not cancel: what is read was rounded.
    x = random_tensor(5, columns, device=device, dtype=dtype, shift=2.0)
    r = random_tensor(5, columns, device=device, dtype=dtype)
    w = random_tensor(columns, device=device, dtype=dtype)
    inputs = x, r, w, how
    assert_gradients_close(op, long_rows.stored_reference, inputs, roundings=64)
    if ran is not None:
        assert ran.batch == batch


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("columns, batch", [(15, 1), (17, 2), (40, 4), (64, 4)])
def test_what_a_loop_stored(device, ran, columns, batch, dtype):
    """The next one reads it: no element of it comes from another program."""
    _check_stored(device, ran, columns, "", batch, dtype)


@pytest.mark.parametrize("how, batch", [
    ("filled", 4), ("fewer", 0), ("reversed", 0), ("twice", 0), ("in place", 0), ("in its place", 0)
])  # fmt: skip
def test_what_is_read_of_what_was_stored(device, ran, how, batch):
    """Other values where nothing was stored, other lanes, the last of two; over what was read."""
    _check_stored(device, ran, 40, how, batch)
