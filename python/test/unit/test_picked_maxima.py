"""A running maximum with a derivative is the sum of what is picked: its iterations stand alone."""

import pytest
import torch
import triton.language as tl
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import picked_maxima
from schedules import assert_sums

HEADS, DIM = 2, 16
BOTH = pytest.mark.parametrize(
    "nan", [tl.PropagateNan.NONE, tl.PropagateNan.ALL], ids=["NONE", "ALL"]
)


def _attend(device, ran, n, keys, *how, dtype=torch.float32):
    lengths = n, keys, keys
    q, k, v = (random_tensor(HEADS, m, DIM, device=device, dtype=dtype) for m in lengths)
    op = differentiated(picked_maxima.attention_kernel, picked_maxima.attention)
    inputs = q, k, v, *how
    assert_gradients_close(op, picked_maxima.attention_reference, inputs, roundings=64)
    assert_sums(ran, "store", 1, 2)  # queries are shared by programs of several parts
    if ran is not None:
        assert "taped" not in op.explain()


@pytest.mark.parametrize("form", picked_maxima.FORMS)
@pytest.mark.parametrize("n, keys, parts", [(16, 16, 1), (37, 53, 1), (21, 75, 2), (40, 100, 3)])
def test_attention(device, ran, n, keys, parts, form):
    """Keys take what is for the maximum in their iteration, in programs of their own."""
    _attend(device, ran, n, keys, form, parts)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("form", picked_maxima.FORMS)
def test_attention_in_half_precision(device, ran, form, dtype):
    _attend(device, ran, 37, 40, form, 2, dtype=dtype)


@pytest.mark.parametrize("form", picked_maxima.FORMS)
def test_maxima_that_nothing_asks_for(device, form):
    """Their upstream gradient is none, not zero."""
    q, k, v = (random_tensor(HEADS, m, DIM, device=device) for m in (21, 40, 40))
    op = differentiated(
        picked_maxima.attention_kernel,
        lambda kernel, *inputs: picked_maxima.attention(kernel, *inputs, form)[0],
    )

    def reference(*inputs):
        return picked_maxima.attention_reference(*inputs, form)[0]

    assert_gradients_close(op, reference, (q, k, v), roundings=64)


def _find(*inputs):
    op = differentiated(picked_maxima.extremum_kernel, picked_maxima.extremum)
    assert_gradients_close(op, picked_maxima.extremum_reference, inputs)
    return op


@BOTH
@pytest.mark.parametrize("least", [False, True])
@pytest.mark.parametrize("n, lanes", [(64, 16), (150, 16), (1, 8), (7, 64)])
def test_extrema_of_lanes(device, ran, n, lanes, least, nan):
    """Some are what the loop began with, which then has the derivative."""
    x = random_tensor(5, n, device=device)
    start = random_tensor(5, lanes, device=device, shift=-3.0 if least else 3.0)
    op = _find(x, start, least, (0, None, 1), nan)
    if ran is not None:
        assert "taped" not in op.explain()


@pytest.mark.parametrize("blocks", [(0, 0, 1), (3, 2, 1), (1, 4, 1), (1, 9, 3)])
def test_loops_from_elsewhere(device, blocks):
    """Of no iterations, of some of the blocks, and of every third one."""
    x, start = random_tensor(4, 150, device=device), random_tensor(4, 16, device=device)
    _find(x, start, False, blocks)


@pytest.mark.parametrize("least", [False, True])
def test_numbers_beside_nan(device, least):
    """An extremum that does not propagate NaN is that of the numbers."""
    x, start = random_tensor(4, 64, device=device, grad=False), random_tensor(4, 16, device=device)
    x[torch.rand_like(x) < 0.3] = float("nan")
    _find(x.requires_grad_(), start, least)


@BOTH
def test_the_first_of_equal_ones(device, nan):
    """It has all of the derivative: also of what the loop began with, if nothing is larger."""
    op = differentiated(picked_maxima.extremum_kernel, picked_maxima.extremum)
    x = torch.ones(2, 64, device=device, requires_grad=True)
    start = torch.tensor([[2.0], [3.0]], device=device).repeat(1, 16).requires_grad_()
    op(x, start, False, (0, None, 1), nan).sum().backward()
    expected = torch.zeros_like(x)
    expected[0, :16] = 18.0
    torch.testing.assert_close(x.grad, expected)
    torch.testing.assert_close(
        start.grad, torch.tensor([[0.0], [6.0]], device=device).expand(2, 16)
    )
