"""Rows of which nothing is seen: what is stored of them, and no atomics for the other ones."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import first_terms, started_sums
from kernels import guarded_softmax as guarded
from schedules import assert_no_atomics

DIM = 16
# Guards that the sums' frames are proved to allow, from zeros and from memory.
MOVES = ("equal", "more", "carried", "scores")
# A maximum that is no less than a number need not have a term of its own in the sum, which a guard
# of the sum asks for.
CLIPPED_MOVES = ("quotient", "fallback")
MOVES_FROM_MEMORY = ("equal", "more", "carried")


def _inputs(device, rows, columns, from_memory, end):
    tensors = [random_tensor(n, DIM, device=device) for n in (rows, columns, columns, rows, rows)]
    tensors[3].requires_grad_(from_memory)
    tensors[4].requires_grad_(end == "fallback")
    seen = (torch.rand(rows, columns, device=device) < 0.8).to(torch.int8)
    seen *= 1 + (torch.rand(rows, columns, device=device) < 0.7)
    seen[::3] = 0  # nothing at all
    seen[1::3, : columns // 2] = 0  # nothing at first
    seen[4::4] = seen[4::4].clamp(max=1)  # nothing that is chosen
    return *tensors, seen


def _check(device, guard, end, rows=21, columns=45, split=0, last=None, from_memory=False):
    op = differentiated(guarded.guarded_kernel, guarded.guarded)
    last = columns if last is None else last
    if guard in ("uniform", "chosen") and end == "log":  # a row's logarithm would be −∞
        end = "sum"
    if guard == "clipped" and end == "maximum":  # a row's would be the number
        end = "sum"
    inputs = _inputs(device, rows, columns, from_memory, end)
    inputs = (*inputs, split, last, guard, end, from_memory)
    assert_gradients_close(op, guarded.guarded_reference, inputs, roundings=64)


@pytest.mark.parametrize("end", guarded.ENDS)
@pytest.mark.parametrize("guard", guarded.GUARDS)
def test_guards(device, ran, guard, end):
    _check(device, guard, end)
    if guard in MOVES or (guard == "clipped" and end in CLIPPED_MOVES):
        assert_no_atomics(ran)


@pytest.mark.parametrize("end", ["sum", "fallback"])
@pytest.mark.parametrize("guard", guarded.GUARDS)
def test_sums_that_start_from_memory(device, ran, guard, end):
    """The first key makes forget what was there, or the first block, or nothing does."""
    _check(device, guard, end, from_memory=True)
    if guard in MOVES_FROM_MEMORY:
        assert_no_atomics(ran)


@pytest.mark.parametrize("from_memory", [False, True])
@pytest.mark.parametrize("guard", guarded.GUARDS)
def test_loops_that_do_not_run(device, guard, from_memory):
    _check(device, guard, "sum", last=0, from_memory=from_memory)


@pytest.mark.parametrize("split, last", [(16, 45), (32, 45), (45, 45), (16, 16)])
@pytest.mark.parametrize("from_memory", [False, True])
@pytest.mark.parametrize("guard", guarded.GUARDS)
def test_two_loops(device, guard, from_memory, split, last):
    """The second one goes on in the frame of the first, each of which may not run."""
    _check(device, guard, "fallback", split=split, last=last, from_memory=from_memory)


@pytest.mark.parametrize("guard", [False, True])
def test_rows_in_one_block(device, guard):
    x = random_tensor(9, 11, device=device)
    with torch.no_grad():
        x[::3] = -1.5
    if not guard:
        x = x.detach()[1::3].contiguous().requires_grad_()
    op = differentiated(guarded.guarded_rows_kernel, guarded.guarded_rows)
    assert_gradients_close(op, guarded.guarded_rows_reference, (x, guard), roundings=16)


@pytest.mark.parametrize("guard", [False, True])
@pytest.mark.parametrize("form", first_terms.FORMS)
def test_first_terms(device, form, guard):
    """What only happens where a row sees its first term happens in no frame of a later maximum."""
    x = random_tensor(16, 45, device=device)
    # Positive, as a sum is of which the logarithm is taken.
    w = random_tensor(45, device=device, scale=0.1, shift=1.0)
    w.requires_grad_(form in ("weighed", "squares"))
    with torch.no_grad():
        x[:, 0] = x[:, 0].abs()  # without a guard, all rows begin with the first block
        if guard:
            x[::3] = -1.5
            x[1::3, :20] = -1.5
    op = differentiated(first_terms.first_term_kernel, first_terms.first_term)
    assert_gradients_close(op, first_terms.first_term_reference, (x, w, form, guard), roundings=64)


@pytest.mark.parametrize("first", [0.0, 0.5])
@pytest.mark.parametrize("start", [1.0, 2.0])
def test_started_sums(device, start, first):
    """Rows without keys keep what the sums start from; others have nothing left of it."""
    q = random_tensor(3, 16, 16, device=device)
    k, v = (random_tensor(3, 40, 16, device=device) for _ in range(2))
    lengths = torch.tensor([40, 0, 17], device=device, dtype=torch.int32)
    op = differentiated(started_sums.started_kernel, started_sums.started)
    inputs = (q, k, v, lengths, start, first)
    assert_gradients_close(op, started_sums.started_reference, inputs, roundings=64)
