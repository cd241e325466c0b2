"""Derivatives of every order of what memory holds: sums onto what was there, kernels in place."""

import pytest
import torch
import triton
import triton.language as tl
from gradients import random_tensor
from torch.testing import assert_close
from triton.backends.autodiff import AutodiffError, autodiff, differentiable


@triton.jit
def add_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n)
    tl.atomic_add(y + i % 3, v * v, i < n)


def _sums(x, start=None):
    y = x.new_zeros(3) if start is None else start.clone()
    differentiable(add_kernel, order=2)[(1,)](x, y, x.numel(), BLOCK=16)
    return y * y


def _sums_reference(x, start=0):
    return (torch.stack([(x[n::3] ** 2).sum() for n in range(3)]) + start) ** 2


def test_a_linear_map_is_the_same_each_time(device):
    """What a launch changes is none of the graph's constants."""
    x = random_tensor(10, device=device, dtype=torch.float64).detach()
    _, ours = torch.func.linearize(_sums, x)
    _, theirs = torch.func.linearize(_sums_reference, x)
    for _ in range(3):
        along = torch.randn_like(x)
        assert_close(ours(along), theirs(along))
    basis = torch.eye(10, device=device, dtype=torch.float64)
    assert_close(torch.func.vmap(ours)(basis), torch.func.vmap(theirs)(basis))


def test_only_what_was_there_moves(device):
    """Then the gradient is the upstream one."""
    x = random_tensor(10, device=device, dtype=torch.float64).detach()
    start = random_tensor(3, device=device, dtype=torch.float64)
    assert_close(
        *(
            torch.func.hessian(lambda s, f=f: f(x, s).sum())(start.detach())
            for f in (_sums, _sums_reference)
        )
    )
    for f in (_sums, _sums_reference):
        (g,) = torch.autograd.grad(f(x, start).sum(), start, create_graph=True)
        assert_close(torch.autograd.grad(g.sum(), start)[0], torch.full_like(start, 2.0).detach())


@triton.jit
def scale_kernel(x, w, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, i < n) * tl.load(w + i, i < n), i < n)


def test_a_product_with_a_hessian_by_its_vector(device):
    """What memory held before has no gradient there."""
    w = random_tensor(10, device=device, dtype=torch.float64).detach()
    kernel = differentiable(scale_kernel, order=2)

    def op(x):
        y = x.clone()
        kernel[(1,)](y, w, 10, BLOCK=16)
        return y

    x, u = (random_tensor(10, device=device, dtype=torch.float64) for _ in range(2))
    (g,) = torch.autograd.grad(op(x).square().sum(), x, create_graph=True)
    (product,) = torch.autograd.grad(g, x, u, create_graph=True)
    assert_close(product.detach(), 2 * w * w * u.detach())
    assert_close(torch.autograd.grad(product.sum(), u)[0], 2 * w * w)


def test_batches_of_the_older_vmap(device):
    x = random_tensor(10, device=device, dtype=torch.float64).detach()
    functional = torch.autograd.functional
    found = functional.hessian(lambda x: _sums(x).sum(), x, vectorize=True)
    assert_close(found, functional.hessian(lambda x: _sums_reference(x).sum(), x))
    with pytest.raises(AutodiffError, match=r"argument 'x'.*take torch\.func\.jacfwd"):
        functional.jacobian(_sums, x, vectorize=True, strategy="forward-mode")


def test_an_operation_with_a_variable_of_an_outer_transform(device):
    op = autodiff(scale_kernel, _scaled)
    x, w = (random_tensor(10, device=device, dtype=torch.float64).detach() for _ in range(2))

    def slope(f):
        def inner(x):
            return torch.func.jvp(lambda w: f(x, w) ** 2, (w,), (torch.ones_like(w),))[1].sum()

        return torch.func.grad(inner)(x)

    assert_close(slope(op), slope(lambda x, w: x * w))


def _scaled(kernel, x, w):
    y = x.clone()
    kernel[(1,)](y, w, x.numel(), BLOCK=16)
    return y


@triton.jit
def parts_kernel(
    x, y, n, stored, FIRST: tl.constexpr, TWICE: tl.constexpr, RETURNS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n, 0.0)
    if RETURNS:
        if tl.program_id(0) >= FIRST:
            return
    if TWICE:
        tl.store(y + 2 * i, v * v, i < n)
        tl.store(y + 2 * i + 1, tl.exp(v), i < n)
    elif FIRST < 0 or RETURNS:
        tl.store(y + i, v * v, i < stored)
    elif tl.program_id(0) < FIRST:
        tl.store(y + i, v * v, i < stored)


FILLED = {
    # Elements stored, first programs that store (-1: all), two stores, whether the others return,
    # whether all is stored.
    "all": (37, -1, False, False, True),
    "fewer": (30, -1, False, False, False),
    "some programs": (37, 2, False, False, False),
    "others return": (37, 2, False, True, False),
    "halves": (37, -1, True, False, True),
    "fewer halves": (30, -1, True, False, False),
    "halves of some": (37, 2, True, True, False),
}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("case", FILLED)
def test_tangents_are_cleared_unless_all_are_stored(device, case, order, monkeypatch):
    stored, first, twice, returns, is_filled = FILLED[case]
    from triton.backends.autodiff.launching import forward_mode, pure

    asked, new_tangent = [], pure.new_tangent

    def noting(primal, around, fills):
        asked.append(fills)
        return new_tangent(primal, around, fills)

    monkeypatch.setattr(pure, "new_tangent", noting)
    monkeypatch.setattr(forward_mode, "new_tangent", noting)
    kernel = differentiable(parts_kernel)

    def op(x):
        y = x.new_zeros(2 * x.numel() if twice else x.numel())
        n = stored if twice else x.numel()
        kernel[(3,)](x, y, n, stored, first, twice, returns, BLOCK=16)
        return y

    def reference(x):
        count = min(stored, 16 * first) if first >= 0 else stored
        x = torch.where(torch.arange(x.numel(), device=x.device) < count, x, 0)
        if not twice:
            return x * x
        return torch.stack([x * x, x.exp() * (x != 0)], -1).flatten()

    x = random_tensor(37, device=device, dtype=torch.float64).detach()
    along = torch.randn_like(x)
    if order == 1:
        with torch.autograd.forward_ad.dual_level():
            y = op(torch.autograd.forward_ad.make_dual(x, along))
            found = torch.autograd.forward_ad.unpack_dual(y).tangent
        assert_close(found, torch.func.jvp(reference, (x,), (along,))[1])
    else:
        results = []
        for f in (op, reference):
            given, u = x.clone().requires_grad_(), torch.ones_like(reference(x)).requires_grad_()
            (g,) = torch.autograd.grad(f(given), given, u, create_graph=True)
            results.append(torch.autograd.grad(g, (given, u), along))
        assert_close(*results)
    assert asked == [is_filled]
