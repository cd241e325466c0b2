"""The comparison itself: wrong gradients must not pass."""

import gradients
import orders
import pytest
import torch
from gradients import assert_gradcheck, assert_gradients_close, random_tensor
from triton.backends.autodiff import AutodiffError

WRONG = {
    "scaled by 1.001": lambda g: g * 1.001,
    "one element zero": lambda g: g.index_fill(0, torch.tensor([7], device=g.device), 0),
    "sign": lambda g: -g,
    "zero": torch.zeros_like,
    "last element not written": lambda g: torch.cat([g[:-1], g[-1:] * float("nan")]),
    "doubled": lambda g: g + g,
}


def _operation(change):
    """exp whose gradient goes through ``change``."""

    class Exponential(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.exp(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            (y,) = ctx.saved_tensors
            return change(grad * y)

    return Exponential.apply


@pytest.fixture(autouse=True)
def gradients_too(monkeypatch):
    monkeypatch.setattr(gradients, "FORWARD_ONLY", False)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_right_gradient_passes(dtype):
    x = random_tensor(100, device="cpu", dtype=dtype)
    assert_gradients_close(_operation(lambda g: g), torch.exp, (x,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", WRONG)
def test_wrong_gradient_fails(name, dtype):
    x = random_tensor(100, device="cpu", dtype=dtype)
    with pytest.raises(AssertionError):
        assert_gradients_close(_operation(WRONG[name]), torch.exp, (x,))
    if dtype == torch.float64:
        with pytest.raises((AssertionError, RuntimeError)):
            assert_gradcheck(_operation(WRONG[name]), (x,))


def test_lost_precision_fails():
    """A float32 gradient that went through half precision is not a float32 gradient."""
    x = random_tensor(100, device="cpu")
    with pytest.raises(AssertionError):
        assert_gradients_close(_operation(lambda g: g.half().float()), torch.exp, (x,))


def test_wrong_output_fails():
    x = random_tensor(100, device="cpu")
    with pytest.raises(AssertionError):
        assert_gradients_close(torch.exp, torch.expm1, (x,))


def test_new_memory_is_poisoned():
    assert torch.empty(10).isnan().all()


@pytest.mark.parametrize(
    "message, passes",
    [
        ("no forward-mode rule for 'tl.atomic_max' on a differentiated tensor", True),
        ("no forward-mode rule for 'tl.exp', which lies between", False),
        ("the plan is malformed", False),
    ],
)
def test_refused_second_derivatives(device, message, passes):
    """Some may be refused; whatever else is refused is a failure."""

    def refused(x):
        if torch.is_grad_enabled() and x.requires_grad:
            raise AutodiffError(message)
        return x.exp()

    x = random_tensor(9, device=device)
    given = (refused, torch.exp, [x], [torch.ones_like(x)], gradients._copy, gradients.floor)
    if passes:
        orders.assert_orders_close(*given)
        return
    with pytest.raises(AutodiffError, match=message):
        orders.assert_orders_close(*given)


def test_a_reference_that_fails(device):
    """PyTorch lacks some derivatives; any other error of a reference is one of the test."""

    def broken(x):
        raise RuntimeError("shapes do not match")

    x = random_tensor(9, device=device)
    with pytest.raises(RuntimeError, match="shapes"):
        orders.assert_orders_close(
            torch.exp, broken, [x], [torch.ones_like(x)], gradients._copy, gradients.floor
        )
