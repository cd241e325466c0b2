"""Padding of −∞ has no weight, and no part in the gradient of a scale: 0 · ∞ is nothing there."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import infinite_padding as padding


def _check(op, reference, inputs, upstream):
    """Upstream gradients are chosen such that what the scale gets are terms of one sign."""
    assert_gradients_close(op, reference, inputs, [upstream.detach()], roundings=64)


def _positive(device, *shape):
    return (0.5 + torch.rand(*shape, device=device)).requires_grad_()


def _scale(device, *shape, dtype=torch.float32):
    scale = 0.5 + torch.rand(*shape, dtype=torch.float64, device=device)
    return scale.to(dtype).requires_grad_()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("how", padding.SCALES)
@pytest.mark.parametrize("n", [27, 32, 1])
def test_softmax(device, n, how, dtype):
    x = random_tensor(5, n, device=device, dtype=dtype)
    scale = _scale(device, n if how == "columns" else 1, dtype=dtype)
    op = differentiated(padding.scaled_softmax_kernel, padding.scaled_softmax)
    # Σ z̄·x is the variance of x then.
    _check(op, padding.scaled_softmax_reference, (x, scale, how), x)


@pytest.mark.parametrize("unscaled", [False, True])
@pytest.mark.parametrize("n", [5, 16, 43])
def test_online(device, n, unscaled):
    x, scale = _positive(device, 7, n), _scale(device, 1)
    op = differentiated(padding.online_kernel, padding.online)
    _check(op, padding.online_reference, (x, scale, unscaled), _positive(device, 7))


@pytest.mark.parametrize("n", [19, 64])
def test_decay(device, n):
    x, rate = _positive(device, 6, n), _scale(device, 1)
    op = differentiated(padding.decayed_kernel, padding.decayed)
    _check(op, padding.decayed_reference, (x, rate), _positive(device, 6))


@pytest.mark.parametrize("how", padding.SUMS)
@pytest.mark.parametrize("n", [19, 32])
def test_powers(device, n, how):
    x, p = _positive(device, 6, n), _scale(device, 1)
    op = differentiated(padding.powers_kernel, padding.powers)
    upstream = _positive(device, 6)
    if how in ("power", "power of two"):
        # Terms of one sign: the logarithms are.
        x = (x.detach() + 0.5).requires_grad_()
    _check(op, padding.powers_reference, (x, p, how), upstream)


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("n", [16, 37])
def test_attention(device, n, added):
    # Scores as wide as one: of saturated rows the variance is only what cancels.
    q, k = (random_tensor(2, n, 16, device=device).div(2).detach() for _ in range(2))
    q, k, v = (x.requires_grad_() for x in (q, k, k.clone()))
    op = differentiated(padding.scaled_attention_kernel, padding.scaled_attention)
    # Of each row, the variance of its scores.
    _check(op, padding.scaled_attention_reference, (q, k, v, _scale(device, 2), added), q)
