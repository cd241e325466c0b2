"""Attention to the last keys: the keys of a block are read by the programs behind it alone."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated
from kernels.window_attention import (
    window_attention,
    window_attention_kernel,
    window_attention_reference,
)
from schedules import assert_no_atomics

pytestmark = pytest.mark.schedules

HEADS, DIM = 2, 16


def _check(random, ran, context, window, tiles, roundings=32, numbered=False):
    inputs = [random(HEADS, context, DIM) for _ in range(3)]
    op = differentiated(
        window_attention_kernel,
        lambda kernel, q, k, v: window_attention(
            kernel, q, k, v, window, *tiles, NUMBERED=numbered
        ),
    )

    def reference(q, k, v):
        return window_attention_reference(q, k, v, window)

    assert_gradients_close(op, reference, inputs, roundings=roundings)
    assert_no_atomics(ran)


@pytest.mark.parametrize("tiles", [(16, 16), (32, 16), (16, 32)])
@pytest.mark.parametrize("window", [5, 16, 39, 1000])
@pytest.mark.parametrize("context", [96, 77])
def test_window(random, ran, context, window, tiles):
    """Shorter than a block, as long as one, of no whole number of them, longer than all keys."""
    _check(random, ran, context, window, tiles)


@pytest.mark.parametrize("tiles", [(32, 16), (16, 32)])
@pytest.mark.parametrize("window", [5, 39, 1000])
@pytest.mark.parametrize("context", [96, 77])
def test_numbered_blocks(random, ran, context, window, tiles):
    """The loop counts blocks: its bounds are quotients."""
    _check(random, ran, context, window, tiles, numbered=True)


@pytest.mark.parametrize("tiles", [(32, 16), (16, 32)])
def test_window_of_one(random, ran, tiles):
    """The output is v. Gradients of q and k are zero, from which the distance is absolute."""
    _check(random, ran, 77, 1, tiles, roundings=256)


@pytest.mark.parametrize("context", [1, 10])
def test_context_below_a_block(random, ran, context):
    _check(random, ran, context, 4, (32, 16))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("context", [128, 111])
def test_half_precision(random, ran, dtype, context):
    _check(random, ran, context, 40, (64, 32))
