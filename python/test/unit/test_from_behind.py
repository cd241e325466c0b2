"""Loops from the last block to the first are interchanged like others, if order does not matter."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import from_behind
from schedules import assert_no_atomics, assert_sums

pytestmark = pytest.mark.schedules


def _check(inputs, way, causal, ordered=False, tiles=(16, 16)):
    op = differentiated(
        from_behind.falling_attention_kernel,
        lambda kernel, q, k, v: from_behind.falling_attention(
            kernel, q, k, v, way, causal, ordered, tiles
        ),
    )

    def reference(q, k, v):
        return from_behind.falling_attention_reference(q, k, v, causal, ordered, tiles)

    assert_gradients_close(op, reference, inputs, roundings=32)


@pytest.mark.parametrize("tiles", [(16, 16), (32, 16), (16, 32)])
@pytest.mark.parametrize("length", [16, 75])
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("way", from_behind.WAYS)
def test_attention(random, ran, way, causal, length, tiles):
    _check([random(length, 16) for _ in range(3)], way, causal, tiles=tiles)
    assert_no_atomics(ran)


@pytest.mark.parametrize("way", from_behind.WAYS)
def test_padded_rows(device, ran, way):
    """Strides that are no multiples of anything; what lies between rows gets no gradient."""
    whole = [random_tensor(45, 19, device=device) for _ in range(3)]
    _check([x[:, :16].detach().requires_grad_() for x in whole], way, True)
    assert_no_atomics(ran)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(random, ran, dtype):
    _check([random(80, 32, dtype=dtype) for _ in range(3)], "blocks", True, tiles=(32, 16))
    assert_no_atomics(ran)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("way", from_behind.WAYS)
def test_order_matters(random, ran, way, causal):
    """What is summed decays from block to block: iterations stay in their order."""
    _check([random(56, 16) for _ in range(3)], way, causal, ordered=True)
    assert_sums(ran, "atomic", 1, 2)
