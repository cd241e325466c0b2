"""Kernels that overwrite what they load: its gradient is that of another tensor."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated
from kernels import in_place
from kernels.rotary import angles
from schedules import assert_atomic, assert_no_atomics, assert_sums

pytestmark = pytest.mark.schedules


@pytest.mark.parametrize("columns", [32, 45])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_residual_stream(random, ran, dtype, columns):
    op = differentiated(in_place.add_rms_norm_kernel, in_place.add_rms_norm)
    inputs = (random(11, columns, dtype=dtype), random(11, columns, dtype=dtype))
    weights = random(columns, shift=1.0, dtype=dtype)
    assert_gradients_close(op, in_place.add_rms_norm_reference, (*inputs, weights), roundings=16)
    assert_no_atomics(ran)


@pytest.mark.parametrize("unused", [0, 1])
def test_unused_result(random, unused):
    op = differentiated(in_place.add_rms_norm_kernel, in_place.add_rms_norm)
    inputs = (random(11, 24), random(11, 24), random(24, shift=1.0))
    upstreams = [torch.randn_like(inputs[0]), torch.randn_like(inputs[0])]
    upstreams[unused] = None
    reference = in_place.add_rms_norm_reference
    if unused == 0:
        # The weights are then not used at all.
        weights = inputs[2].detach()
        inputs = (*inputs[:2], weights)
    assert_gradients_close(op, reference, inputs, upstreams, roundings=16)


def test_rows_left_as_they_are(random, ran):
    """Their gradients pass through."""
    op = differentiated(in_place.add_rms_norm_kernel, in_place.add_rms_norm)
    inputs = (random(11, 24), random(11, 24), random(24, shift=1.0), 7)
    assert_gradients_close(op, in_place.add_rms_norm_reference, inputs, roundings=16)
    assert_atomic(ran, 0, 1)


@pytest.mark.parametrize("columns", [16, 40])
def test_rows_of_several_tiles(random, ran, columns):
    op = differentiated(in_place.long_rms_norm_kernel, in_place.long_rms_norm)
    inputs = (random(5, columns), random(columns, shift=1.0))
    assert_gradients_close(op, in_place.long_rms_norm_reference, inputs, roundings=16)
    assert_sums(ran, "store", 0)


@pytest.mark.parametrize("packed", [False, True])
def test_rotary(random, ran, packed):
    """Heads of a tensor of their own, or between others."""
    op = differentiated(in_place.turn_kernel, in_place.turn)
    x = random(7, 3, 16)
    cos, sin = angles(7, 16, x)

    def middle(kernel, x, cos, sin):
        heads = torch.cat([x, x, 2 * x], 1)
        tile = {"HEADS": 4, "HALF": 8}
        view = heads[:, 3:6]
        kernel[(7,)](view, cos, sin, *view.stride()[:2], 3, **tile)
        return heads

    def middle_reference(x, cos, sin):
        return torch.cat([x, in_place.turn_reference(x, cos, sin), 2 * x], 1)

    if packed:
        op = differentiated(in_place.turn_kernel, middle)
    reference = middle_reference if packed else in_place.turn_reference
    assert_gradients_close(op, reference, (x, cos, sin))
    assert_no_atomics(ran)


def test_part_of_each_head(random, ran):
    op = differentiated(in_place.turn_kernel, in_place.turn)
    x = random(7, 3, 20)
    assert_gradients_close(op, in_place.turn_reference, (x, *angles(7, 16, x), 16))
    assert_no_atomics(ran)


@pytest.mark.parametrize(("m", "n", "k"), [(48, 32, 32), (37, 50, 21), (16, 16, 0)])
def test_added_product(random, ran, m, n, k):
    op = differentiated(in_place.addmm_kernel, in_place.addmm)
    inputs = (random(m, n), random(m, k), random(k, n), 0.5, -1.5)
    assert_gradients_close(op, in_place.addmm_reference, inputs, roundings=16)
    if k:
        assert_no_atomics(ran)


def test_loaded_once_more(random, ran):
    """What is loaded after the store is what was stored, not what was there before."""
    op = differentiated(in_place.twice_kernel, in_place.twice)
    assert_gradients_close(op, in_place.twice_reference, (random(40),), roundings=16)
    assert_sums(ran, "store", 0)


@pytest.mark.parametrize("stored", [0, 9, 20])
def test_some_are_stored(random, stored):
    op = differentiated(in_place.some_kernel, in_place.some)
    assert_gradients_close(op, in_place.some_reference, (random(20), stored))


def _check_overwritten(ran, inputs, *options, sums="store", upstreams=None):
    op = differentiated(in_place.overwrite_kernel, in_place.overwrite)
    assert_gradients_close(
        op, in_place.overwrite_reference, (*inputs, *options), upstreams, roundings=16
    )
    assert_sums(ran, sums, 2)


@pytest.mark.parametrize("extra", [(0, 0), (3, 0), (0, 5), (2, 3)], ids=str)
@pytest.mark.parametrize("launches", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_what_is_never_loaded(random, ran, dtype, launches, extra):
    """Nothing is left of what was there, but in rows and columns that the kernel leaves out."""
    x, w = random(6, 21, dtype=dtype), random(21, dtype=dtype)
    y = random(6 + extra[0], 21 + extra[1], dtype=dtype)
    _check_overwritten(ran, (x, w, y), "", launches)


@pytest.mark.parametrize("form, sums", [("chosen", "store"), ("meeting", "atomic")])
def test_what_may_stay(random, ran, form, sums):
    _check_overwritten(ran, (random(6, 21), random(21), random(6, 21)), form, sums=sums)


def test_overwritten_alone(random, ran):
    """Only the gradient of what was there is asked for; the rest is constant."""
    x, w = (value.detach() for value in (random(6, 21), random(21)))
    _check_overwritten(ran, (x, w, random(8, 21)))


def test_workspace(random, ran):
    op = differentiated(in_place.overwrite_kernel, in_place.layers)
    inputs = (random(5, 19), random(19), random(5, 19))
    assert_gradients_close(op, in_place.layers_reference, inputs, roundings=32)
    assert_sums(ran, "store", 2)


def test_overwritten_in_order(random, ran):
    """Nothing meets in atomics: a deterministic backward exists."""
    op = differentiated(in_place.overwrite_kernel, in_place.overwrite, deterministic=True)
    inputs = (random(6, 21), random(21).detach(), random(9, 21))
    assert_gradients_close(op, in_place.overwrite_reference, inputs, roundings=16)


@pytest.mark.parametrize("first", [0, 3, 9])
def test_cleared_without_a_gradient(random, first):
    """What is stored has no gradient, so that its cotangent is not even read."""
    op = differentiated(in_place.clear_kernel, in_place.clear)
    assert_gradients_close(op, in_place.clear_reference, (random(9), random(9), first))
