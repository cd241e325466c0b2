"""What is asked of the compiler, one request after the other, as plans say."""

import dataclasses
import itertools

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.autodiff import differentiable
from triton.backends.autodiff.errors import AutodiffError, PlanError
from triton.backends.autodiff.launching import state
from triton.backends.autodiff.launching.asking import PlanRequest
from triton.backends.autodiff.plans.plan import Next


@triton.jit
def strided_kernel(x_ptr, y_ptr, n, stride, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + places * stride, mask=places < n, other=0.0)
    tl.store(y_ptr + places, tl.sin(x), mask=places < n)


@triton.jit
def norm_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * n
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        places = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + places, mask=places < n, other=0.0)
        total += x * x
    scale = tl.rsqrt(tl.sum(total, axis=0) + 1.0)
    for start in range(0, n, BLOCK):
        places = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + places, mask=places < n, other=0.0)
        tl.store(y_ptr + row + places, x * scale, mask=places < n)


@pytest.fixture
def asked(monkeypatch):
    """The requests since the beginning of the test, as far as they are no default."""
    requests, derive = [], state.plan_for
    default = PlanRequest(None).to_json()

    def noted(ttir, request, name):
        found = {k: v for k, v in request.items() if k in default and v != default[k]}
        requests.append({k: v for k, v in found.items() if k != "wanted"})
        return derive(ttir, request, name)

    monkeypatch.setattr(state, "plan_for", noted)
    return requests


def answered(monkeypatch, answers):
    """Let plans say that this is to be asked for."""
    derive = state.plan_for

    def changed(*given):
        return dataclasses.replace(derive(*given), next=answers)

    monkeypatch.setattr(state, "plan_for", changed)


# What is known of a kernel is known for its options: others, so that nothing is.
limits = itertools.count(1 << 40)


def run(kernel, x, y, *more, block=16, grid=(3,), **options):
    options["tape_limit"] = next(limits)
    differentiable(kernel, **options)[grid](x, y, *more, BLOCK=block)
    y.sum().backward()
    return x.grad


def strided(device, n=40, **options):
    x = torch.rand(n, device=device, requires_grad=True)
    return run(strided_kernel, x, torch.empty(n, device=device), n, 1, **options), x.detach().cos()


def repeated(device, **options):
    """All programs load the same element."""
    x = torch.rand(1, device=device, requires_grad=True)
    return run(strided_kernel, x, torch.empty(40, device=device), 40, 0, **options), (
        40 * x.detach().cos()
    )


def normed(device, *, rows=3, n=40, out=None, **options):
    x = torch.rand(rows, n, device=device, requires_grad=True)
    y = torch.empty(rows, n, device=device) if out is None else out
    found = run(norm_kernel, x, y, n, **options)
    again = x.detach().double().requires_grad_()
    (again * torch.rsqrt((again * again).sum(1, keepdim=True) + 1)).sum().backward()
    return found, again.grad.float()


def test_a_plan_that_does(device, asked):
    torch.testing.assert_close(*strided(device))
    assert asked == [{}]


def test_a_check_that_fails(device, asked):
    torch.testing.assert_close(*repeated(device))
    assert asked == [{}, {"atomic": [0]}]


def test_checks_that_fail_where_atomics_are_refused(device, asked):
    torch.testing.assert_close(*strided(device, deterministic=True))
    assert asked == [{}, {"deterministic": True}]
    with pytest.raises(AutodiffError, match=r"'x_ptr'.* at this launch it repeats addresses"):
        repeated(device, deterministic=True)
    assert asked == [{}, {"deterministic": True}] * 2


@pytest.mark.parametrize("deterministic", [False, True])
def test_no_program_runs(device, asked, deterministic):
    x = torch.rand(40, device=device, requires_grad=True)
    y = torch.zeros(40, device=device)
    found = run(strided_kernel, x, y, 0, 1, grid=(0,), deterministic=deterministic)
    assert not found.any()
    assert asked == [{}]


@pytest.mark.parametrize("deterministic", [{}, {"deterministic": True}])
def test_axes_that_are_taken(device, asked, deterministic):
    torch.testing.assert_close(*normed(device, **deterministic))
    assert asked == [{}, {"axes": [4], **deterministic}]


def test_axes_through_shared_memory(device, asked):
    """Iterations may depend on one another there: the axis is not taken."""
    x = torch.rand(3, 40, device=device)
    leaf = x.clone().requires_grad_()
    whole = leaf.clone()
    differentiable(norm_kernel, tape_limit=next(limits))[(3,)](whole, whole, 40, BLOCK=16)
    whole.sum().backward()
    again = x.double().requires_grad_()
    (again * torch.rsqrt((again * again).sum(1, keepdim=True) + 1)).sum().backward()
    torch.testing.assert_close(leaf.grad, again.grad.float())
    assert not any("axes" in request for request in asked)


def test_a_plan_that_answers_nothing(device, asked, monkeypatch):
    answered(monkeypatch, ())
    torch.testing.assert_close(*strided(device))
    with pytest.raises(PlanError, match="says nothing of what to ask for"):
        repeated(device)


def test_plans_that_ask_for_one_another(device, asked, monkeypatch):
    flip = [Next((), None, None, "save", value) for value in (False, True)]
    answered(monkeypatch, ((flip[0],),))
    with pytest.raises(PlanError, match="asked before"):
        strided(device)
    assert len(asked) == 2


def test_all_that_holds_in_the_first_step(device, asked, monkeypatch):
    """Other steps wait; what has no value does not hold."""
    answers = (
        (Next((["div", 1, 0],), None, None, "assume", False),),
        (
            Next((["sub", ["arg", 2], 41],), None, None, "assume", False),
            Next((["sub", ["arg", 2], 40],), None, None, "checkpoint", True),
            Next((), "launch", None, "assume", False),
            Next((), None, None, "confine", (0,)),
        ),
        (Next((), None, None, "assume", False),),
    )
    answered(monkeypatch, answers)
    with pytest.raises(PlanError, match="asked before"):
        strided(device)
    assert asked == [{}, {"checkpoint": True, "confine": [0]}]
