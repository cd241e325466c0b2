"""Loops and branches with carried values of every kind."""

import pytest
import torch
from gradients import assert_gradcheck, assert_gradients_close, differentiated, random_tensor
from kernels import loops

pytestmark = pytest.mark.schedules

RNN = {
    "last state": (loops.rnn_kernel, loops.rnn, loops.rnn_reference),
    "all states": (loops.rnn_states_kernel, loops.rnn_states, loops.rnn_states_reference),
}


def _rnn_inputs(batch, steps, channels, device, dtype):
    x = random_tensor(batch, steps, channels, device=device, dtype=dtype)
    # Small weights: a chaotic recurrence would amplify tanh's rounding, which isn't ours to judge.
    w = random_tensor(channels, device=device, dtype=dtype, scale=0.4)
    h0 = random_tensor(batch, channels, device=device, dtype=dtype)
    return x, w, h0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", RNN)
def test_recurrence(device, name, dtype):
    kernel, stub, reference = RNN[name]
    op = differentiated(kernel, stub)
    # One of the first state's gradients outweighs all others. Every step rounds x + w·h, tanh, its
    # derivative and the product of the three factors: some eight times.
    for batch, steps, channels in [(2, 12, 32), (3, 7, 20), (1, 2, 5)]:
        inputs = _rnn_inputs(batch, steps, channels, device, dtype)
        assert_gradients_close(op, reference, inputs, roundings=8 * steps)
    x, w, h0 = _rnn_inputs(2, 40, 16, device, dtype)
    assert_gradients_close(op, reference, (x, w, h0.detach()), roundings=8 * 40)


@pytest.mark.parametrize("steps", [0, 1, 7])
def test_running_sum(device, steps):
    """Nothing but sums is carried, and yet the order of iterations matters."""
    x = random_tensor(steps, 32, device=device)
    w = random_tensor(32, device=device)
    op = differentiated(loops.running_sum_kernel, loops.running_sum)
    assert_gradients_close(op, loops.running_sum_reference, (x, w))


def test_recurrence_without_steps(device):
    """No iteration: the state goes through, the weight has no influence."""
    x, w, h0 = _rnn_inputs(2, 0, 20, device, torch.float32)
    op = differentiated(loops.rnn_kernel, loops.rnn)

    def reference(x, w, h0):
        return h0 + 0 * w + 0 * x.sum(1)

    assert_gradients_close(op, reference, (x, w, h0))


@pytest.mark.parametrize("shape", [(4, 5, 32), (1, 3, 16), (3, 1, 16)], ids=str)
def test_nested(device, shape):
    x = random_tensor(*shape, device=device)
    # Away from zero, where the kernel's tanh is as exact as PyTorch's. The gradient of a single
    # weight is one sum, which may cancel to any relative error.
    w = torch.rand(shape[1], device=device).add_(0.5).requires_grad_(shape[1] > 1)
    op = differentiated(loops.nested_kernel, loops.nested)
    assert_gradients_close(op, loops.nested_reference, (x, w))


def test_nested_without_inner_steps(device):
    x = random_tensor(4, 0, 16, device=device)
    w = random_tensor(0, device=device)
    op = differentiated(loops.nested_kernel, loops.nested)
    y = op(x, w)
    assert (y == 0).all()


@pytest.mark.parametrize("steps", [2, 5])
def test_triangular(device, steps):
    """A general value in an inner loop whose length changes."""
    x = random_tensor(steps, 16, device=device)
    op = differentiated(loops.triangular_kernel, loops.triangular)
    assert_gradients_close(op, loops.triangular_reference, (x,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("mode", [0, 2])
def test_branch(device, mode, dtype):
    x = random_tensor(100, device=device, dtype=dtype)
    op = differentiated(loops.branch_kernel, loops.branch)
    assert_gradients_close(op, loops.branch_reference, (x, mode))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_branch_on_data(device, dtype):
    x = random_tensor(9, 70, device=device, dtype=dtype)
    op = differentiated(loops.data_branch_kernel, loops.data_branch)
    assert_gradients_close(op, loops.data_branch_reference, (x,))


@pytest.mark.parametrize("name", ["last state", "all states", "nested", "triangular", "branch"])
def test_gradcheck(device, name):
    def leaf(*shape):
        return random_tensor(*shape, device=device, dtype=torch.float64)

    if name in RNN:
        op = differentiated(*RNN[name][:2])
        inputs = _rnn_inputs(2, 4, 3, device, torch.float64)
    elif name == "nested":
        op, inputs = differentiated(loops.nested_kernel, loops.nested), (leaf(2, 2, 16), leaf(2))
    elif name == "triangular":
        op, inputs = differentiated(loops.triangular_kernel, loops.triangular), (leaf(3, 4),)
    else:
        op = differentiated(loops.branch_kernel, loops.branch)
        inputs = (leaf(40), 2)
    assert_gradcheck(op, inputs)


def test_recurrence_real_sizes(cuda):
    op = differentiated(
        loops.rnn_kernel, lambda kernel, *inputs: loops.rnn(kernel, *inputs, BLOCK=128)
    )
    x, w, h0 = _rnn_inputs(16, 512, 1000, cuda, torch.float32)
    # What reaches the first state from the last has vanished into denormal numbers.
    assert_gradients_close(op, loops.rnn_reference, (x, w, h0.detach()))


@pytest.mark.parametrize("columns", [1, 16, 50])
def test_online_maximum_beside_a_store(device, columns):
    """The loop is rewritten around its maximum; what it stores must count once."""
    x = random_tensor(4, columns, device=device)
    op = differentiated(loops.storing_logsumexp_kernel, loops.storing_logsumexp)
    assert_gradients_close(op, loops.storing_logsumexp_reference, (x,))
