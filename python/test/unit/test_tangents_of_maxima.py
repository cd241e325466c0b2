"""Tangents of what does not depend on a maximum, so that it needs none, and of what does."""

import pytest
import torch
from kernels import online_maxima as kernels
from torch.autograd import forward_ad
from triton.backends.autodiff import autodiff

pytestmark = pytest.mark.usefixtures("needs_gradients")


def tangents(function, x, along):
    with forward_ad.dual_level():
        found = function(forward_ad.make_dual(x, along))
        found = found if isinstance(found, tuple) else (found,)
        return [forward_ad.unpack_dual(y).tangent for y in found]


def exact(function, x, along):
    found = torch.func.jvp(function, (x.double(),), (along.double(),))[1]
    return found if isinstance(found, tuple) else (found,)


def assert_close(found, expected, dtype=torch.float32):
    limits = (
        {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.float16 else {"rtol": 1e-4, "atol": 1e-5}
    )
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a.double(), b, **limits)


@pytest.mark.parametrize("stores", ["", "m", "s", "ms"])
@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_running_maxima(device, dtype, fresh, stores):
    """Second derivatives are those of the same plan; a maximum that is stored has its tangent."""
    x = (3 * torch.randn(11, 16, device=device)).to(dtype).requires_grad_()
    along = torch.randn_like(x, requires_grad=False)
    op = autodiff(kernels.two_loops_kernel, kernels.two_loops)

    def ours(x):
        return op(x, 4, fresh, stores)

    def theirs(x):
        return kernels.reference(x, 4, fresh, stores)

    assert_close(tangents(ours, x, along), exact(theirs, x, along), dtype)
    double = x.detach().double().requires_grad_()
    upstream = [torch.randn(16, device=device) for _ in range(1 + len(stores))]
    (g,) = torch.autograd.grad(ours(x), x, upstream, create_graph=True)
    (truth,) = torch.autograd.grad(
        theirs(double), double, [u.double() for u in upstream], create_graph=True
    )
    found = torch.autograd.grad(g, x, along)
    expected = torch.autograd.grad(truth, double, along.double())
    assert_close(found, expected, dtype)


@pytest.mark.parametrize("stores", ["", "m"])
def test_equal_maxima(device, stores):
    """Of a logarithm of a sum, it does not matter who has the maximum. Equal ones share its
    tangent."""
    x = torch.randn(6, 16, device=device).round()
    along = torch.randn_like(x)
    op = autodiff(kernels.two_loops_kernel, kernels.two_loops)

    def smooth(x):
        return (torch.logsumexp(x, 0),)

    found = tangents(lambda x: op(x, 3, False, stores), x, along)
    assert_close(found[:1], exact(smooth, x, along))


def test_a_maximum_that_a_later_loop_captures(device):
    """What the second loop stores depends on it."""
    x, y = (3 * torch.randn(9, 16, device=device) for _ in range(2))
    along = torch.randn_like(x)
    op = autodiff(kernels.captured_kernel, kernels.captured)
    found = tangents(lambda x: op(x, y), x, along)
    assert_close(found, exact(lambda x: kernels.captured_reference(x, y.double()), x, along))


def test_loops_in_a_loop(device):
    """Parts of a row may be −∞ alone."""
    x = torch.randn(5, 64, device=device)
    x[1, :16], x[3, 16:] = -torch.inf, -torch.inf
    along = torch.where(x.isinf(), 0.0, torch.randn_like(x))
    op = autodiff(kernels.outer_loop_kernel, kernels.outer_loop)
    found = tangents(lambda x: op(x, 16), x, along)
    assert_close(found, ((x.double().softmax(1) * along.double()).sum(1),))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_rows_without_elements(device, dtype):
    """What is not there is −∞; a row of nothing has tangents of zero."""
    x = torch.randn(5, 32, device=device).to(dtype)
    length = torch.tensor([0, 1, 7, 32, 0], device=device)
    x[torch.arange(32, device=device) >= length[:, None]] = torch.nan
    along = torch.where(x.isnan(), torch.nan, torch.randn_like(x))
    op = autodiff(kernels.masked_kernel, kernels.masked)
    found = tangents(lambda x: op(x, length), x, along)
    clean = x.nan_to_num(), along.nan_to_num()
    expected = exact(lambda x: kernels.masked_reference(x, length).nan_to_num(), *clean)
    assert_close(found, expected, dtype)
