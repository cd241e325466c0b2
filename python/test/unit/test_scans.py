"""Scans with any combine function: tuples, axes, directions, tails, ties, zeros."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated
from kernels import combiners as cb

SHAPES = [(4, 8, 2), (3, 5, 7)]


def _shape(name, shape, axis):
    """The shape, with a full axis where the combiner has no neutral element to fill it up."""
    if cb.COMBINERS[name].neutral is None:
        shape = [8 if i == axis else n for i, n in enumerate(shape)]
    return tuple(shape)


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", cb.COMBINERS)
def test_combiner(device, name, axis, reverse):
    op = differentiated(cb.SCAN[name], cb.scan)
    for dtype in (torch.float64, torch.float32):
        for shape in SHAPES:
            x = cb.sample(name, _shape(name, shape, axis), device, dtype)
            assert_gradients_close(op, cb.scan_reference, (x, name, axis, reverse))
