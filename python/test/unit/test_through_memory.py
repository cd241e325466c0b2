"""What a kernel stores and loads again, updates in place, or decides with atomics."""

import gradients
import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import through_memory
from triton.backends.autodiff import AutodiffError

pytestmark = pytest.mark.schedules

FLOATS = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


@FLOATS
@pytest.mark.parametrize("steps", [0, 1, 6])
def test_recurrence(device, dtype, steps):
    x = random_tensor(3, steps, 16, device=device, dtype=dtype)
    a = random_tensor(16, device=device, dtype=dtype)
    op = differentiated(through_memory.recurrence_kernel, through_memory.recurrence)
    # Each step rounds three times, in the forward and on the way back.
    roundings = max(8, 6 * steps)
    assert_gradients_close(op, through_memory.recurrence_reference, (x, a), roundings=roundings)


@FLOATS
def test_scratch(device, dtype):
    x = random_tensor(4, 27, device=device, dtype=dtype)
    op = differentiated(through_memory.scratch_kernel, through_memory.scratch)
    assert_gradients_close(op, through_memory.scratch_reference, (x,))


@pytest.mark.parametrize("used", [(True, True), (True, False), (False, True)], ids=str)
def test_scratch_that_is_an_output_too(device, used):
    x = random_tensor(4, 27, device=device, dtype=torch.float64)
    upstreams = [torch.randn_like(x) if use else None for use in used]
    op = differentiated(through_memory.scratch_kernel, through_memory.scratch_with_workspace)
    reference = through_memory.scratch_with_workspace_reference
    assert_gradients_close(op, reference, (x,), upstreams)


def test_backward_twice(device):
    x = random_tensor(4, 27, device=device, dtype=torch.float64)
    y = differentiated(through_memory.scratch_kernel, through_memory.scratch)(x)
    if not y.requires_grad:
        return
    first = torch.autograd.grad(y.sum(), x, retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(y.sum(), x)[0])


@FLOATS
@pytest.mark.parametrize("n", [1, 2, 7])
def test_substitution(device, dtype, n):
    lower = torch.randn(3, n, n, dtype=dtype, device=device) * 0.3
    lower = (lower + 2 * torch.eye(n, dtype=dtype, device=device)).requires_grad_()
    b = random_tensor(3, n, device=device, dtype=dtype)
    op = differentiated(through_memory.substitution_kernel, through_memory.substitution)
    assert_gradients_close(op, through_memory.substitution_reference, (lower, b))


@FLOATS
@pytest.mark.parametrize("sweeps", [0, 1, 2, 5])
def test_sweep(device, dtype, sweeps):
    x = random_tensor(3, 20, device=device, dtype=dtype)
    op = differentiated(through_memory.sweep_kernel, through_memory.sweep)
    assert_gradients_close(op, through_memory.sweep_reference, (x, sweeps))


def test_last_store(device):
    x = random_tensor(3, 5, 16, device=device, dtype=torch.float64)
    op = differentiated(through_memory.last_store_kernel, through_memory.last_store)
    assert_gradients_close(op, through_memory.last_store_reference, (x,))


def test_ticket(device):
    x = random_tensor(37, 16, device=device, dtype=torch.float64)
    op = differentiated(through_memory.ticket_kernel, through_memory.ticket)
    assert_gradients_close(op, through_memory.ticket_reference, (x,))


@FLOATS
@pytest.mark.parametrize("minimum", [False, True])
@pytest.mark.parametrize("shift", [0, -50, 50], ids=["mixed", "negative", "positive"])
def test_extremum(device, dtype, minimum, shift):
    """In some places what was there before is the extremum.

    Triton has one atomic operation on the bits for each sign.
    """
    x = random_tensor(53, device=device, dtype=dtype, scale=2, shift=shift)
    start = random_tensor(9, device=device, dtype=dtype, scale=10, shift=shift)
    op = differentiated(through_memory.extremum_kernel, through_memory.extremum)
    assert_gradients_close(op, through_memory.extremum_reference, (x, start, minimum))


def test_extremum_shares_no_gradient_twice(device):
    """Of equal candidates one takes the gradient: the sum is that of one."""
    x = torch.full((40,), 2.0, dtype=torch.float64, device=device, requires_grad=True)
    start = torch.full((4,), -1.0, dtype=torch.float64, device=device)
    y = differentiated(through_memory.extremum_kernel, through_memory.extremum)(x, start, False)
    if not y.requires_grad:
        return
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(gradient.view(-1, 4).sum(0), torch.full((4,), 3.0).to(gradient))


def test_update_in_place(device):
    """Both arguments are one tensor, and the loop stores only where it has loaded."""
    x = random_tensor(3, 40, device=device, dtype=torch.float64)
    op = differentiated(through_memory.row_update_kernel, through_memory.row_update)
    assert_gradients_close(op, through_memory.row_update_reference, (x,))


def _one_after_the_other(kernel, shift):
    def stub(k, x):
        both = x.clone()
        k[(1,)](both[: 8 - shift], both[shift:], 8 - shift)
        return both

    return differentiated(kernel, stub)


@pytest.mark.parametrize("summed", [0, 23, 50])
def test_atomic_sum_of_a_part(device, summed):
    x = random_tensor(50, device=device, dtype=torch.float64)
    start = random_tensor(7, device=device, dtype=torch.float64)
    op = differentiated(through_memory.partial_sum_kernel, through_memory.partial_sum)
    assert_gradients_close(op, through_memory.partial_sum_reference, (x, start, summed))


def test_atomic_sum_stays_inside(device, monkeypatch):
    """Lanes that add nothing may be beyond the end."""
    monkeypatch.setenv("TRITON_AUTODIFF_CHECK", "1")
    x = random_tensor(50, device=device, dtype=torch.float64)
    start = random_tensor(23, device=device, dtype=torch.float64)
    op = differentiated(through_memory.partial_sum_kernel, through_memory.partial_sum)
    reference = lambda x, start, summed, columns: start + x[:summed] ** 2  # noqa: E731
    assert_gradients_close(op, reference, (x, start, 23, 50))


@pytest.mark.parametrize("shift", [0, 2])
def test_arguments_that_share_memory(device, shift):
    """A value that travels from one argument to another is refused."""
    x = random_tensor(8, device=device, dtype=torch.float64)
    op = _one_after_the_other(through_memory.running_kernel, shift)
    if gradients.FORWARD_ONLY:
        return
    with pytest.raises(ValueError, match="'y_ptr' and 'x_ptr' .* share memory"):
        op(x)


def test_shifted_update_in_place(device):
    """Where the same lanes are safe, other lanes are not."""
    x = random_tensor(40, device=device, dtype=torch.float64)

    def stub(kernel, x):
        both = x.clone()
        kernel[(1,)](both[:24], both[16:], 24, BLOCK=16)
        return both

    if gradients.FORWARD_ONLY:
        return
    with pytest.raises(ValueError, match="share memory"):
        differentiated(through_memory.row_update_kernel, stub)(x)


def test_what_other_programs_have_stored(device):
    """Derivatives do not go from program to program, so the last one may not add up all parts."""
    x = random_tensor(50, device=device)
    op = differentiated(through_memory.last_kernel, through_memory.last)
    if gradients.FORWARD_ONLY:
        torch.testing.assert_close(op(x), x.norm()[None])
        return
    with pytest.raises(AutodiffError, match="through_memory.py.*other programs of the launch"):
        op(x)
