"""Attention to the last keys: the keys of a block are read by the programs behind it alone."""

import gradients
import pytest
import torch
from gradients import assert_gradients_close, differentiated
from kernels.window_attention import (
    window_attention,
    window_attention_kernel,
    window_attention_reference,
)

pytestmark = pytest.mark.schedules

HEADS, DIM = 2, 16


def _check(random, schedule, context, window, tiles, roundings=32):
    inputs = [random(HEADS, context, DIM) for _ in range(3)]
    op = differentiated(
        window_attention_kernel,
        lambda kernel, q, k, v: window_attention(kernel, q, k, v, window, *tiles),
    )

    def reference(q, k, v):
        return window_attention_reference(q, k, v, window)

    assert_gradients_close(op, reference, inputs, roundings=roundings)
    if schedule is None and not gradients.FORWARD_ONLY:
        assert "atomic" not in op.explain()


@pytest.mark.parametrize("tiles", [(16, 16), (32, 16), (16, 32)])
@pytest.mark.parametrize("window", [5, 16, 39, 1000])
@pytest.mark.parametrize("context", [96, 77])
def test_window(random, schedule, context, window, tiles):
    """Shorter than a block, as long as one, of no whole number of them, longer than all keys."""
    _check(random, schedule, context, window, tiles)


@pytest.mark.parametrize("tiles", [(32, 16), (16, 32)])
def test_window_of_one(random, schedule, tiles):
    """The output is v. Gradients of q and k are zero, from which the distance is absolute."""
    _check(random, schedule, 77, 1, tiles, roundings=256)


@pytest.mark.parametrize("context", [1, 10])
def test_context_below_a_block(random, schedule, context):
    _check(random, schedule, context, 4, (32, 16))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("context", [128, 111])
def test_half_precision(random, schedule, dtype, context):
    _check(random, schedule, context, 40, (64, 32))
