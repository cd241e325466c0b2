"""A load of what was just stored gives that: nothing goes through memory, and nothing is taped."""

import pytest
import torch
from gradients import FORWARD_ONLY, assert_gradients_close, differentiated, random_tensor
from kernels import scratch_attention as scratch
from schedules import assert_no_atomics, assert_sums

HEADS, DIM = 2, 16
SHAPES = pytest.mark.parametrize(
    "n, keys, causal", [(16, 16, False), (37, 53, False), (40, 40, True), (16, 75, False)]
)


def _inputs(device, n, keys, dtype=torch.float32):
    return [random_tensor(HEADS, m, DIM, device=device, dtype=dtype) for m in (n, keys, keys)]


def _attend(*how, outputs=3):
    def stub(*args):
        return scratch.attention(*args, *how)[:outputs]

    def reference(*args):
        return scratch.attention_reference(*args, *how)[:outputs]

    return differentiated(scratch.attention_kernel, stub), reference


def _check_launches(device, n, keys, causal, outputs):
    """The first launch shows for which outputs the second one is to be planned."""
    op, reference = _attend(causal, outputs=outputs)
    inputs = _inputs(device, n, keys)
    for _ in range(2):
        assert_gradients_close(op, reference, inputs, roundings=64)
    return op


@SHAPES
def test_attention(device, ran, n, keys, causal):
    """Like attention without a scratch tensor, once it is known that this has no gradient."""
    op = _check_launches(device, n, keys, causal, outputs=1)
    assert_sums(ran, "store", 0, 1, 2)
    if ran is not None:
        assert "taped" not in op.explain()


@SHAPES
def test_attention_and_log_sums(device, ran, n, keys, causal):
    _check_launches(device, n, keys, causal, outputs=2)
    assert_no_atomics(ran)


@SHAPES
def test_attention_whose_scratch_has_a_gradient(device, n, keys, causal):
    op, reference = _attend(causal)
    assert_gradients_close(op, reference, _inputs(device, n, keys), roundings=64)


@pytest.mark.parametrize("blocks", [(32, 16), (16, 32)], ids=str)
def test_tiles_of_other_lengths(device, blocks):
    op, reference = _attend(False, *blocks)
    assert_gradients_close(op, reference, _inputs(device, 50, 70), roundings=64)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_attention_in_half_precision(device, dtype):
    op, reference = _attend(True, outputs=1)
    assert_gradients_close(op, reference, _inputs(device, 40, 40, dtype), roundings=64)


USED = pytest.mark.parametrize("used", [(True, True), (True, False), (False, True)], ids=str)


@pytest.mark.schedules
@USED
@pytest.mark.parametrize("form", scratch.FORMS)
@pytest.mark.parametrize("n", [64, 41])
def test_elementwise(device, form, used, n):
    """Also with a gradient for the scratch tensor, and for what it held before, if that matters."""
    x, start = (random_tensor(m, device=device, dtype=torch.float64) for m in (n, 64))
    start.requires_grad_(used[1] or form == "more lanes")
    op = differentiated(scratch.elementwise_kernel, scratch.elementwise)
    outputs = scratch.elementwise_reference(x, start, form)
    upstreams = [torch.randn_like(y) if use else None for y, use in zip(outputs, used, strict=True)]
    assert_gradients_close(op, scratch.elementwise_reference, (x, start, form), upstreams)


@pytest.mark.parametrize("form", scratch.FORMS)
def test_elementwise_in_half_precision(device, form):
    """What is loaded was rounded to the scratch tensor's type."""
    x, start = (random_tensor(m, device=device, dtype=torch.bfloat16) for m in (41, 64))
    op = differentiated(scratch.elementwise_kernel, scratch.elementwise)
    assert_gradients_close(op, scratch.elementwise_reference, (x, start, form))


def test_nothing_is_saved(device, ran):
    x, start = random_tensor(41, device=device), random_tensor(64, device=device, grad=False)
    op = differentiated(scratch.elementwise_kernel, scratch.elementwise)
    assert_gradients_close(op, scratch.elementwise_reference, (x, start, "same lanes"))
    assert_sums(ran, "store", 0)
    if ran is not None:
        assert "saved" not in op.explain()


def test_a_scratch_tensor_of_several_launches(device):
    """The second launch overwrites what the first one has left, and has a gradient of."""
    x, z = (random_tensor(41, device=device, dtype=torch.float64) for _ in range(2))
    start = random_tensor(64, device=device, dtype=torch.float64)

    def stub(kernel, x, z, start):
        tmp, y = start.clone(), torch.zeros_like(start)
        w = torch.zeros_like(start)
        for source, target in ((x, y), (z, w)):
            kernel[(4,)](source, tmp, target, 41, FORM="same lanes", BLOCK=16)
        return y[:41], w[:41], tmp

    def reference(x, z, start):
        tmp = torch.cat([z.sin(), start[41:]])
        return x.sin() * x, z.sin() * z, tmp

    op = differentiated(scratch.elementwise_kernel, stub)
    assert_gradients_close(op, reference, (x, z, start))


@pytest.mark.skipif(FORWARD_ONLY, reason="about the derivative")
def test_outputs_that_share_memory(device):
    """A tensor for both is refused as before: which store comes last cannot be told."""
    x = random_tensor(64, device=device)

    def stub(kernel, x):
        y = torch.zeros_like(x)
        kernel[(4,)](x, y, y, 64, FORM="same lanes", BLOCK=16)
        return y

    with pytest.raises(ValueError, match="share memory"):
        differentiated(scratch.elementwise_kernel, stub)(x)
