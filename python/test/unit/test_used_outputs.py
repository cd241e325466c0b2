"""Launches are planned for the gradients that came; others are right, too, should they come."""

import gc
import itertools
import weakref

import pytest
import torch
import torch.utils.checkpoint
from gradients import FORWARD_ONLY, assert_close, differentiated, random_tensor
from kernels import picked_maxima, used_outputs

pytestmark = pytest.mark.skipif(FORWARD_ONLY, reason="about backwards")

HEADS, DIM = 2, 16
NUMBERS = itertools.count()


def _reference(function, inputs, used, upstreams):
    """The true gradients, and those of PyTorch in the same precision."""
    found = []
    for dtype in (torch.float64, torch.float32):
        leaves = [x.detach().to(dtype).requires_grad_() for x in inputs]
        outputs = function(*leaves)
        chosen = [outputs[i] for i in used]
        given = [upstreams[i].to(dtype) for i in used]
        found.append(torch.autograd.grad(chosen, leaves, given, materialize_grads=True))
    return found


def _compare(gradients, function, inputs, used, upstreams):
    truths, baselines = _reference(function, inputs, used, upstreams)
    for i, (ours, truth, theirs) in enumerate(zip(gradients, truths, baselines, strict=True)):
        ours = torch.zeros_like(theirs) if ours is None else ours
        assert_close(f"gradient {i}", ours, theirs, truth, roundings=64)


def _check(op, function, inputs, *sets, between=lambda: None):
    """Run launches of which these sets of outputs have gradients, one after the other."""
    for used in sets:
        outputs = op(*inputs)
        upstreams = [torch.randn_like(y) for y in outputs]
        between()
        gradients = torch.autograd.grad(
            [outputs[i] for i in used], inputs, [upstreams[i] for i in used], allow_unused=True
        )
        _compare(gradients, function, inputs, used, upstreams)


def _planned(op):
    """The outputs that the last launch was planned for, by name; None: all of them."""
    ((state, _, execution),) = op.kernel._plans((), {})
    return execution.planned and [state.spec.names[j] for j in execution.planned]


def _fresh(kernel, stub, tape_limit=None, **options):
    """An operation to which no other test has told what to expect: its options are its own."""
    limit = 2**30 + next(NUMBERS) if tape_limit is None else tape_limit
    return differentiated(kernel, stub, tape_limit=limit, **options)


def _attention(device, **options):
    inputs = [random_tensor(HEADS, n, DIM, device=device) for n in (37, 53, 53)]
    op = _fresh(
        picked_maxima.attention_kernel,
        lambda *args: picked_maxima.attention(*args, "kept"),
        **options,
    )
    return op, inputs, lambda *args: picked_maxima.attention_reference(*args, "kept")


@pytest.mark.parametrize("sets", [
    ((0,), (0,), (0,)),
    ((0,), (0, 1), (0,), (1,), (0, 1, 2)),
    ((0, 2), (0, 2), (1, 2), (0, 2)),
    ((1,), (0,), (2,), (0, 1, 2)),
], ids=str)  # fmt: skip
def test_attention(device, sets):
    """A maximum that is stored, but has no gradient, is anything, as if it were not stored."""
    op, inputs, reference = _attention(device)
    _check(op, reference, inputs, *sets)


def test_a_maximum_without_a_gradient_is_dropped(device):
    op, inputs, reference = _attention(device)
    _check(op, reference, inputs, (0,), (0,))
    assert _planned(op) == ["y_ptr"]
    # One vector for each query: the logarithm of its sum.
    assert op.explain().count("  saved: ") == 1
    assert "planned for upstream gradients of y_ptr alone" in op.explain()


def test_what_is_expected_only_grows(device):
    """Uses that take turns do not have launches planned again and again."""
    op, inputs, reference = _attention(device)
    _check(op, reference, inputs, (0,), (0,))
    ((state, *_),) = op.kernel._plans((), {})
    _check(op, reference, inputs, (1,), (0,), (1,), (0,))
    assert _planned(op) == ["y_ptr", "max_ptr"]
    before = len(state.plans())
    _check(op, reference, inputs, (1,), (0,), (0, 1), (1,))
    assert len(state.plans()) <= before + 1  # that for both


@pytest.mark.parametrize("forbidden", [False, True])
def test_equal_bits_where_they_are_asked_for(device, forbidden):
    op, inputs, _ = _attention(device, deterministic=forbidden)
    runs = []
    for _ in range(3):
        y = op(*inputs)[0]
        runs.append(torch.autograd.grad(y, inputs, torch.ones_like(y)))
    assert _planned(op) == (None if forbidden else ["y_ptr"])
    if forbidden:
        for other in runs[1:]:
            assert all(map(torch.equal, runs[0], other))


def _two(device, rows=5, n=21):
    inputs = [random_tensor(rows, n, device=device), random_tensor(rows, device=device)]
    return _fresh(used_outputs.two_kernel, used_outputs.two), inputs


@pytest.mark.parametrize("sets", [((0,), (1,), (0, 1)), ((1,), (0,), (0,)), ((0,), (0,), (0, 1))])
def test_inputs_that_only_others_need(device, sets):
    """The weights of z are held for it, though y does not depend on them."""
    op, inputs = _two(device)
    _check(op, used_outputs.two_reference, inputs, *sets)


def test_inputs_that_change(device):
    """An input that nothing needs may change; one that is needed after all may not."""
    op, inputs = _two(device)

    def change():
        with torch.no_grad():
            inputs[1].mul_(1.0)

    _check(op, used_outputs.two_reference, inputs, (0,), (0,))
    assert _planned(op) == ["y_ptr"]
    _check(op, used_outputs.two_reference, inputs, (0,), between=change)
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*'w_ptr'"):
        _check(op, used_outputs.two_reference, inputs, (0, 1), between=change)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_taken_before_a_backward(device, reentrant):
    """The second one runs its forward again when the first one has told what to expect."""
    op, inputs, reference = _attention(device)
    for _ in range(2):
        outputs = [
            torch.utils.checkpoint.checkpoint(op, *inputs, use_reentrant=reentrant)[0]
            for _ in range(2)
        ]
        upstream = torch.randn_like(outputs[0])
        sums = [torch.zeros_like(x) for x in inputs]
        for y in outputs:
            for x in inputs:
                x.grad = None
            y.backward(upstream)
            for x, gradient in zip(inputs, sums, strict=True):
                gradient += x.grad
        _compare([g / 2 for g in sums], reference, inputs, (0,), [upstream])


def test_forwards_before_the_first_backward(device):
    """What is planned anew leaves launches alone that have been made."""
    op, inputs, reference = _attention(device)
    outputs = [op(*inputs) for _ in range(3)]
    upstreams = [torch.randn_like(y) for y in outputs[0]]
    for used, found in zip(((0,), (0, 1), (2,)), outputs, strict=True):
        gradients = torch.autograd.grad(
            [found[i] for i in used], inputs, [upstreams[i] for i in used], allow_unused=True
        )
        _compare(gradients, reference, inputs, used, upstreams)


def test_a_graph_that_records_the_second_launch(device):
    """Nothing is planned anew, or compiled, while a CUDA graph records."""
    if device == "cpu":
        pytest.skip("CUDA graphs")
    op, inputs, reference = _attention(device)
    _check(op, reference, inputs, (0,))
    upstream = torch.randn_like(inputs[0])[None]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gradients = torch.autograd.grad(op(*inputs)[0], inputs, upstream)
    graph.replay()
    _compare(gradients, reference, inputs, (0,), [upstream])


def test_outputs_in_views(device):
    """An output may be part of a larger tensor."""
    op, inputs = _two(device)
    for used in ((0,), (0,), (0, 1), (1,)):
        buffer = torch.zeros(2, 5, device=device)
        y, _ = op(*inputs, buffer[1])
        upstreams = [torch.randn_like(y), torch.randn(5, device=device)]
        both = torch.stack([torch.randn(5, device=device), upstreams[1]])
        outputs = [(y, upstreams[0]), (buffer, both)]
        chosen, given = zip(*[outputs[i] for i in used], strict=True)
        gradients = torch.autograd.grad(chosen, inputs, given, allow_unused=True)
        _compare(gradients, used_outputs.two_reference, inputs, used, upstreams)


@pytest.mark.parametrize("limit", [None, 4096])
def test_tapes(device, limit):
    """What is computed again may have tapes, of checkpoints if they are too long."""
    op = _fresh(used_outputs.scan_kernel, used_outputs.scan, limit)
    x = random_tensor(40, 32, device=device)
    _check(op, used_outputs.scan_reference, [x], (0,), (0,), (1,), (0, 1), (1,))


def test_a_graph_goes_with_its_output(device):
    """What is held for other gradients keeps nothing alive that refers to it."""
    op, inputs = _two(device)
    _check(op, used_outputs.two_reference, inputs, (0,), (0,))
    y, z = op(*inputs)
    found = weakref.ref(y.grad_fn), weakref.ref(z)
    gc.disable()
    try:
        del y, z
        assert all(reference() is None for reference in found)
    finally:
        gc.enable()
