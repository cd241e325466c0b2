"""Sums that a loop carries divided, or as logarithms, are plain sums to the backward."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import carried_sums
from schedules import assert_no_atomics

HEADS, DIM = 2, 16


def _inputs(device, n, keys, dtype=torch.float32, heads=(HEADS,)):
    lengths = n, keys, keys, n, n
    return [random_tensor(*heads, m, DIM, device=device, dtype=dtype) for m in lengths]


def _check(inputs, ran, form, log):
    op = differentiated(carried_sums.attention_kernel, carried_sums.attention)
    inputs = (*inputs, form, log)
    assert_gradients_close(op, carried_sums.attention_reference, inputs, roundings=64)
    assert_no_atomics(ran)
    return op


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("form", carried_sums.FORMS)
@pytest.mark.parametrize("n, keys", [(16, 16), (37, 53), (21, 5)])
def test_attention(device, ran, n, keys, form, log):
    """Keys and values are summed by programs of their own, in the second loop as in the first."""
    _check(_inputs(device, n, keys), ran, form, log)


@pytest.mark.parametrize("form", carried_sums.FORMS)
def test_a_loop_that_does_not_run(device, ran, form):
    _check(_inputs(device, 37, 0), ran, form, True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("form", carried_sums.FORMS)
def test_half_precision(device, ran, form, dtype):
    op = _check(_inputs(device, 37, 40, dtype), ran, form, False)
    if ran is not None:
        lines = op.explain().splitlines()
        # What is stored is the quotient. bfloat16 has the range of float32, so that it is read
        # again. float16 has not, and in these forms the quotient is not recognized as a mean: it is
        # saved as it was computed.
        is_read = dtype == torch.bfloat16
        assert any("reads back: y_ptr" in line for line in lines) == is_read, lines
        # Apart from that, a number for each row is all that is kept, or handed over.
        kept = [line for line in lines if "taped" in line or "saved" in line or "handed" in line]
        assert not any("taped" in line for line in kept), kept
        tiles = [line for line in kept if "16×16" in line]
        assert len(tiles) == (not is_read) and all("of 'acc'" in line for line in tiles), kept


@pytest.mark.parametrize("n", [0, 1, 16, 53])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_means_that_go_on(device, n, dtype):
    """From those given, with their weights, which they keep if there is nothing more."""
    x, g = (random_tensor(7, n, device=device, dtype=dtype) for _ in range(2))
    mean = random_tensor(7, device=device, dtype=dtype, shift=2.0)
    weight = random_tensor(7, device=device, dtype=dtype).detach().abs() + 0.5
    op = differentiated(carried_sums.weighted_mean_kernel, carried_sums.weighted_mean)
    inputs = x, g, mean, weight.requires_grad_()
    assert_gradients_close(op, carried_sums.weighted_mean_reference, inputs, roundings=64)


@pytest.mark.parametrize("n", [5, 40])
def test_weights_that_are_compared(device, n):
    """A weight of zero is no multiple of one: what an iteration makes of it is its own."""
    x, g = (random_tensor(6, n, device=device) for _ in range(2))
    mean = random_tensor(6, device=device, shift=2.0)
    weight = torch.tensor([0.0, 1.0], device=device).repeat(3).requires_grad_()
    op = differentiated(carried_sums.weighted_mean_kernel, carried_sums.weighted_mean)
    inputs = x, g, mean, weight, True
    assert_gradients_close(op, carried_sums.weighted_mean_reference, inputs, roundings=64)


@pytest.mark.parametrize("keys", [0, 40])
@pytest.mark.parametrize("how", ["sums", "quotients"])
def test_sums_that_are_merged(device, how, keys):
    """Where one of them is empty, its maximum is −∞, and its weight zero."""
    op = differentiated(carried_sums.merged_kernel, carried_sums.merged)
    inputs = (*_inputs(device, 37, keys, heads=()), how)
    assert_gradients_close(op, carried_sums.merged_reference, inputs, roundings=64)
