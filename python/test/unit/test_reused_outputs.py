"""Second derivatives read outputs that are still there, and never one that was changed since."""

import flash_attention_v2 as flash
import pytest
import torch
from gradients import random_tensor
from kernels import weighted_means
from poison import poisoned_memory
from triton.backends.autodiff import autodiff
from triton.backends.autodiff.launching.pure import PureLaunch

# The argument that is the output of each kernel.
Y, FLASH_Y = 3, 5


@pytest.fixture
def held(monkeypatch):
    """The arguments that hold what the forward would store, of each second derivative."""
    found, dual = [], PureLaunch.dual

    def noting(*args):
        made = dual(*args)
        found.append(set(made.holding))
        return made

    monkeypatch.setattr(PureLaunch, "dual", noting)
    return found


def _inputs(device, dtype, rows=37, keys=45):
    return [random_tensor(n, 16, device=device, dtype=dtype) for n in (rows, keys, keys)]


def _second(op, inputs, upstream, along, between=lambda y: None):
    """Return the derivatives along `along` of the gradients, by inputs and by upstream."""
    y = op(*inputs)
    gradients = torch.autograd.grad(y, inputs, upstream, create_graph=True)
    between(y)
    return torch.autograd.grad(gradients, (*inputs, upstream), along)


def _compare(op, reference, inputs, between=lambda y: None):
    """Compare with float64, and as precisely as PyTorch's own in the inputs' type."""
    upstream = random_tensor(*inputs[0].shape, device=inputs[0].device, dtype=inputs[0].dtype)
    along = [torch.randn_like(x) for x in inputs]
    with poisoned_memory():
        found = _second(op, inputs, upstream, along, between)

    def by_pytorch(kind):
        given = [x.detach().to(kind).requires_grad_() for x in (*inputs, upstream)]
        return _second(reference, given[:-1], given[-1], [t.to(kind) for t in along])

    truth, baseline = by_pytorch(torch.float64), by_pytorch(inputs[0].dtype)
    for ours, theirs, right in zip(found, baseline, truth, strict=True):
        off = (ours.double() - right).norm()
        assert off <= 4 * (theirs.double() - right).norm() + 1e-5 * right.norm()


def _compare_means(device, between=lambda y: None):
    op = autodiff(weighted_means.attention_kernel, weighted_means.attention)
    _compare(op, weighted_means.reference, _inputs(device, torch.float32), between)


def test_outputs_that_are_there(device, held):
    _compare_means(device)
    assert held == [{Y}]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("context", [128, 90])
@pytest.mark.parametrize("causal", [False, True])
def test_outputs_in_half_precision(device, dtype, context, causal, held):
    op = autodiff(
        flash.attention_kernel, lambda k, *given: flash.attention(k, *given, causal, 0.125, 64, 64)
    )
    inputs = [random_tensor(1, 1, context, 64, device=device, dtype=dtype) for _ in range(3)]

    def reference(q, k, v):
        scores = q @ k.mT * 0.125
        if causal:
            rows = torch.arange(context, device=device)
            scores = scores.masked_fill(rows[:, None] < rows, float("-inf"))
        return torch.softmax(scores, -1) @ v

    _compare(op, reference, inputs)
    # On a CPU, first derivatives have no use for it.
    assert device == "cpu" or FLASH_Y in held[0]


def test_an_output_that_was_changed(device, held):
    """It has another version then; the forward computes it again."""

    def change(y):
        with torch.no_grad():
            y.fill_(float("nan"))

    _compare_means(device, change)
    assert held == [set()]


def test_tensors_that_hooks_replace(device, held):
    """What is given back is a copy, of the output as of the inputs."""
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        _compare_means(device)


def test_other_tensors_of_one_launch(device):
    """Examples of a batch have outputs of their own."""
    q, k, v = _inputs(device, torch.float64, rows=16)
    op = autodiff(weighted_means.attention_kernel, weighted_means.attention)
    along = torch.randn(3, *q.shape, device=device, dtype=torch.float64)

    def second(op):
        (gradient,) = torch.autograd.grad(op(q, k, v).sin().sum(), q, create_graph=True)
        return torch.autograd.grad(gradient, (q, k), along, is_grads_batched=True)

    for ours, theirs in zip(second(op), second(weighted_means.reference), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_third_derivatives(device):
    q, k, v = _inputs(device, torch.float64, rows=5, keys=19)
    op = autodiff(weighted_means.attention_kernel, weighted_means.attention)

    def third(op):
        (g,) = torch.autograd.grad(op(q, k, v).sin().sum(), q, create_graph=True)
        (h,) = torch.autograd.grad(g.cos().sum(), k, create_graph=True)
        return torch.autograd.grad(h.sin().sum(), (q, k, v))

    for ours, theirs in zip(third(op), third(weighted_means.reference), strict=True):
        torch.testing.assert_close(ours, theirs)
