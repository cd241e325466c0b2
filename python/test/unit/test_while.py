"""While loops, and for loops whose number of iterations only the memory knows."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import whiles

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


@DTYPES
def test_float_state_decides(device, dtype):
    x = random_tensor(24, device=device, dtype=dtype).detach().abs().add(0.5).requires_grad_()
    op = differentiated(whiles.newton_kernel, whiles.newton)
    assert_gradients_close(op, whiles.newton_reference, (x, 0.3))
    # No iteration at all.
    assert_gradients_close(op, whiles.newton_reference, (x, 1e6))


@DTYPES
@pytest.mark.parametrize("lengths", [(3, 0, 5, 1), (0, 0, 0, 0), (5, 5, 5, 5)], ids=str)
def test_bounds_from_memory(device, lengths, dtype):
    x = random_tensor(4, 5, 8, device=device, dtype=dtype)
    w = random_tensor(8, device=device, dtype=dtype, scale=0.4)
    lengths = torch.tensor(lengths, dtype=torch.int32, device=device)
    op = differentiated(whiles.ragged_kernel, whiles.ragged)
    if not lengths.any():
        y = op(x, w, lengths)
        assert (y == 0).all()
        gradients = torch.autograd.grad(y.sum(), (x, w))
        assert all((g == 0).all() for g in gradients)
        return
    assert_gradients_close(op, whiles.ragged_reference, (x, w, lengths))


def test_bounds_that_change_before_the_backward(device):
    """What the counts depend on is saved, so a change in place is PyTorch's error."""
    x = random_tensor(4, 5, 8, device=device)
    w = random_tensor(8, device=device, scale=0.4)
    lengths = torch.tensor([1, 2, 3, 0], dtype=torch.int32, device=device)
    y = differentiated(whiles.ragged_kernel, whiles.ragged)(x, w, lengths)
    lengths.fill_(5)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@DTYPES
@pytest.mark.parametrize("begins", [(0, 3, 3, 10, 12), (2, 2), (5, 4, 3)], ids=str)
def test_nested_bounds_from_memory(device, begins, dtype):
    x = random_tensor(12, 16, device=device, dtype=dtype)
    begins = torch.tensor(begins, dtype=torch.int64, device=device)
    op = differentiated(whiles.ragged_nest_kernel, whiles.ragged_nest)
    if begins.diff().max() <= 0:
        gradient = torch.autograd.grad(op(x, begins).sum(), x)[0]
        assert (gradient == 0).all()
        return
    assert_gradients_close(op, whiles.ragged_nest_reference, (x, begins))


@DTYPES
def test_counting_while(device, dtype):
    x = random_tensor(11, 8, device=device, dtype=dtype, shift=1.0)
    op = differentiated(whiles.stepping_kernel, whiles.stepping)
    assert_gradients_close(op, whiles.stepping_reference, (x, 3, 2))


@DTYPES
@pytest.mark.parametrize("limit", [1, 2, 7])
def test_integer_state_decides(device, limit, dtype):
    x = random_tensor(9, 8, device=device, dtype=dtype)
    successors = torch.tensor([4, 5, -1, 0, 7, 8, 1, 6, -1], dtype=torch.int32, device=device)
    op = differentiated(whiles.chain_kernel, whiles.chain)
    assert_gradients_close(op, whiles.chain_reference, (x, successors, limit))


@DTYPES
def test_while_in_a_branch_in_a_loop(device, dtype):
    x = random_tensor(7, 16, device=device, dtype=dtype, scale=2.0)
    op = differentiated(whiles.nested_while_kernel, whiles.nested_while)
    assert_gradients_close(op, whiles.nested_while_reference, (x, 0.7))
