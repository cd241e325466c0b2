"""Combine functions whose result depends on an order that Triton does not keep are refused."""

import inspect
from pathlib import Path

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import ordered
from triton.backends.autodiff import AutodiffError, differentiable


def _place(function):
    """Where a device function's first line of code is, as errors spell it."""
    lines, start = inspect.getsourcelines(function.fn)
    code = next(i for i, line in enumerate(lines) if line.strip().startswith("return"))
    return rf"{Path(ordered.__file__).name}:{start + code}:"


@pytest.mark.parametrize("extent", [4, 64])
@pytest.mark.parametrize("scans", [False, True], ids=["reduction", "scan"])
@pytest.mark.parametrize("name", ordered.UNORDERLY)
def test_refused(device, name, scans, extent):
    combine = ordered.UNORDERLY[name]
    kernel = differentiable(ordered.make_plain(combine)[scans])
    x = torch.randn(2, extent, device=device, requires_grad=True)
    y = torch.empty(x.shape if scans else 2, device=device)
    with pytest.raises(
        AutodiffError, match=_place(combine) + r".*not associative: (\S+, ){2,3}\S+ are combined to"
    ):
        kernel[(1,)](x, y, M=2, N=extent)
    # Where no gradient is wanted, Triton's result is the user's affair.
    kernel[(1,)](x.detach(), y, M=2, N=extent)


def test_two_elements(device):
    """There is one order for two; for one, none is needed."""

    def launch(kernel, x):
        y = torch.empty(x.shape[0], dtype=x.dtype, device=device)
        kernel[(1,)](x, y, M=x.shape[0], N=x.shape[1])
        return y

    x = random_tensor(4, 2, device=device, dtype=torch.float64)
    operation = differentiated(ordered.make_plain(ordered.mean)[0], launch)
    assert_gradients_close(operation, lambda x: x.mean(1), (x,))
    x = random_tensor(4, 1, device=device, dtype=torch.float64)
    operation = differentiated(ordered.make_plain(ordered.from_zero)[0], launch)
    assert_gradients_close(operation, lambda x: x[:, 0], (x,))


@pytest.mark.parametrize("extent", [2, 4, 8, 64])
@pytest.mark.parametrize("scans", [False, True], ids=["reduction", "scan"])
def test_equal_elements(device, scans, extent):
    """The mean of copies is a copy, in any order."""

    def launch(kernel, x):
        shape = (x.shape[0], extent) if scans else x.shape
        y = torch.empty(shape, dtype=x.dtype, device=device)
        kernel[(1,)](x, y, M=x.shape[0], N=extent)
        return y

    def reference(x):
        return (x * x)[:, None].expand(-1, extent) if scans else x * x

    x = random_tensor(16, device=device, dtype=torch.float64)
    operation = differentiated(ordered.make_plain(ordered.mean)[2 + scans], launch)
    assert_gradients_close(operation, reference, (x,))


def test_copies_that_change(device):
    """Differences of copies are no copies."""
    kernel = differentiable(ordered.make_plain(ordered.difference)[2])
    x = torch.randn(4, device=device, requires_grad=True)
    with pytest.raises(AutodiffError, match="not associative"):
        kernel[(1,)](x, torch.empty(4, device=device), M=4, N=8)


def test_order_of_a_reduction(device):
    """Scans keep the order on all devices, reductions on the CPU alone."""
    reduced, scanned, *_ = (differentiable(kernel) for kernel in ordered.make_plain(ordered.last))
    x = torch.randn(4, 8, device=device, requires_grad=True)
    y = torch.empty(4, 8, device=device)
    scanned[(1,)](x, y, M=4, N=8)
    assert torch.equal(torch.autograd.grad(y[:, -1].sum(), x)[0][:, -1], torch.ones_like(x[:, 0]))
    y = torch.empty(4, device=device)
    if device == "cuda":
        with pytest.raises(AutodiffError, match=_place(ordered.last) + ".*not commutative"):
            reduced[(1,)](x, y, M=4, N=8)
        return
    reduced[(1,)](x, y, M=4, N=8)
    expected = torch.zeros_like(x)
    expected[:, -1] = 1
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], expected)


@pytest.mark.schedules
@pytest.mark.parametrize("scans", [False, True], ids=["reduction", "scan"])
@pytest.mark.parametrize("name", ordered.PAIRS)
def test_pairs(device, name, scans):
    """What goes with the numbers need not be any number: counts, sorted keys, constants."""
    if device == "cuda" and not scans and name not in ordered.SYMMETRIC:
        pytest.skip("on GPUs Triton's reductions take operands in any order")
    if scans and name == "two_largest":
        pytest.skip("the first element has no second largest")
    kernel = ordered.KERNELS[name][scans]
    operation = differentiated(kernel, ordered.scanned if scans else ordered.reduced)
    reference = ordered.scan_reference if scans else ordered.reduce_reference
    x = random_tensor(4, 16, device=device)
    w = ordered.others(name, x.shape, device)
    assert_gradients_close(operation, reference, (x, w, name))
