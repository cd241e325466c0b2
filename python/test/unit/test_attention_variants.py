"""Attention with biases, caps, windows and dropout: what is saved, and the gradients."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import attention_variants as variants
from schedules import assert_no_atomics

HEADS, CONTEXT, DIM = 2, 64, 16


def _inputs(device, scale=1.0):
    q, k, v = (random_tensor(HEADS, CONTEXT, DIM, device=device, scale=scale) for _ in range(3))
    return q, k, v, random_tensor(CONTEXT, CONTEXT, device=device)


def _check(device, form, lse="none", scale=1.0, first_key=0):
    seed = int(torch.randint(1000, ()))
    inputs = _inputs(device, scale)
    wanted = 4 if form == "bias" else 3
    mask = variants.kept(CONTEXT, seed, device) if form == "dropout" else None

    def stub(kernel, q, k, v, *bias):
        bias = bias[0] if bias else inputs[3].detach()
        return variants.variant(kernel, q, k, v, bias, form, lse, seed, first_key)

    def reference(q, k, v, *bias):
        bias = bias[0] if bias else None
        return variants.variant_reference(q, k, v, bias, form, lse, mask, first_key)

    op = differentiated(variants.variant_kernel, stub)
    assert_gradients_close(op, reference, inputs[:wanted], roundings=32)


@pytest.mark.parametrize("lse", ["none", "e", "2"])
@pytest.mark.parametrize("form", variants.FORMS[:-1])
def test_variant(device, form, lse):
    _check(device, form, lse)


def test_window_is_interchanged(device, ran):
    """Keys are read by the programs whose windows they are in, which takes no atomics to add up."""
    _check(device, "window")
    assert_no_atomics(ran)


def test_large_scores(device):
    """Row sums are far from one, and scores from zero: their rounding is all that is lost."""
    _check(device, "plain", scale=4.0)


def test_rows_without_keys(device):
    """Of rows that are masked altogether nothing is used; their gradients are zero, not NaN."""
    _check(device, "finite start", first_key=5)


@pytest.mark.parametrize("shift", [-6.0, 0.0, 6.0])
def test_sinks(device, shift):
    """Scores from which maxima start, and which they may still be at the end."""
    q, k, v = (random_tensor(HEADS, n, DIM, device=device) for n in (20, 37, 37))
    sinks = random_tensor(HEADS, device=device, shift=shift)
    op = differentiated(variants.sink_kernel, variants.sink)
    assert_gradients_close(op, variants.sink_reference, (q, k, v, sinks), roundings=64)
