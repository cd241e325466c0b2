"""Reductions with any combine function: tuples, axes, tails, ties, zeros."""

import contextlib

import gradients
import pytest
import torch
from gradients import assert_compiles, assert_gradients_close, differentiated, random_tensor
from kernels import combiners as cb
from kernels import functions as fn

pytestmark = pytest.mark.schedules


def _reduction(name):
    return differentiated(cb.REDUCE[name], cb.reduce)


def _skip_unless_supported(name, device):
    """Skip where Triton's own forward is wrong or does not compile."""
    if device == "cuda" and name not in cb.FOR_GPUS:
        pytest.skip("Triton does not compile it for GPUs")
    if device == "cuda" and name in cb.ORDERED:
        pytest.skip("on GPUs Triton's reductions take operands in any order")


def _refused_on_gpus(name):
    """Expects the error where the order decides; the way out, a scan, is in test_scans.py."""
    if name not in cb.ORDERED or gradients.FORWARD_ONLY:
        return contextlib.nullcontext()
    from triton.backends.autodiff import AutodiffError

    return pytest.raises(
        AutodiffError, match="not commutative: on GPUs.* tl.associative_scan keeps"
    )


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", cb.COMBINERS)
def test_combiner(device, name, axis):
    _skip_unless_supported(name, device)
    for shape, dtype in (((4, 8, 2), torch.float32), ((3, 5, 7), torch.float64)):
        x = cb.sample(name, cb.full_axis(name, shape, axis), device, dtype)
        assert_gradients_close(_reduction(name), cb.reduce_reference, (x, name, axis))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["product", "affine", "arg_larger"])
def test_half_precision(device, name, dtype):
    _skip_unless_supported(name, device)
    x = cb.sample(name, (4, 4, 4), device, dtype)
    assert_gradients_close(_reduction(name), cb.reduce_reference, (x, name, 1))


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 1, 16), (1, 64, 128)], ids=str)
def test_sizes(device, shape):
    """One element to combine, and a whole tile of them."""
    for name in ("product", "welford"):
        if device == "cuda" and name == "welford":
            # Scans of triples of float64 take more shared memory than there is.
            shape = tuple(min(extent, 32) for extent in shape)
        x = cb.sample(name, shape, device, torch.float64)
        assert_gradients_close(_reduction(name), cb.reduce_reference, (x, name, 1))


@pytest.mark.parametrize("zeros", [1, 2])
def test_product_with_zeros(device, zeros):
    """Nothing is divided: one zero leaves its own gradient, two leave none."""
    x = cb.sample("product", (3, 8, 2), device, torch.float64)
    with torch.no_grad():
        x[:, :, 2 : 2 + zeros] = 0
    assert_gradients_close(_reduction("product"), cb.reduce_reference, (x, "product", 1))


def test_infinities(device):
    """What an infinite element leaves of the others' gradients is finite or infinite, not lost."""
    x = cb.sample("larger", (2, 8, 4), device, torch.float64)
    with torch.no_grad():
        x[:, 0, 3] = float("inf")
        x[:, 1] = -float("inf")
        x[:, 1, 5] = 0
    y = _reduction("larger")(x, "larger", 1)
    y.backward(torch.ones_like(y))
    expected = torch.zeros_like(x).scatter_(2, x.detach().argmax(2, keepdim=True), 1)
    assert torch.equal(x.grad[:, 0, 3], torch.ones_like(x.grad[:, 0, 3]))
    assert torch.equal(x.grad, expected)


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("axis", [0, 1])
def test_ties(device, op, axis):
    """Equal extrema share the gradient evenly, as in PyTorch's amax."""
    x = torch.randint(-2, 3, (6, 16), device=device).double().requires_grad_()
    reduction = differentiated(fn.reduce_kernel, fn.reduce)
    assert_gradients_close(reduction, lambda x, op, axis: fn.REDUCTIONS[op](x, axis), (x, op, axis))


def test_ties_in_a_tuple(device):
    """Elements that are equal because they are the same get all of its gradient together."""
    op = _reduction("online_softmax")

    def repeated(reduced):
        return lambda m, s: reduced(torch.stack([m.expand(3, 16, 2), s]), "online_softmax", 1)

    m = random_tensor(3, 1, 2, device=device, dtype=torch.float64)
    s = random_tensor(3, 16, 2, device=device, dtype=torch.float64, shift=2.0)
    assert_gradients_close(repeated(op), repeated(cb.reduce_reference), (m, s))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op", ["max", "min"])
def test_position_of_the_extremum(device, op, axis, dtype):
    x = random_tensor(7, 16, device=device, dtype=dtype)
    extremum = differentiated(cb.extremum_kernel, cb.extremum_values)
    assert_gradients_close(extremum, cb.extremum_reference, (x, op, axis))


def test_position_decides_ties(device):
    """The whole gradient goes to the element whose position is returned."""
    x = torch.randint(0, 2, (8, 16), device=device).double().requires_grad_()
    y, index = differentiated(cb.extremum_kernel, cb.extremum)(x, "max", 1)
    y.sum().backward()
    expected = torch.zeros_like(x).scatter_(1, index.long()[:, None], 2.0)
    assert torch.equal(x.grad, expected)


@pytest.mark.parametrize("name", cb.FOR_GPUS)
def test_triton_compiles(name):
    for shape, axis in (((1, 1, 256), 2), ((4, 16, 8), 1)):
        x = cb.sample(name, shape, cb.HOME, torch.float32)
        with _refused_on_gpus(name):
            assert_compiles(_reduction(name), (x, name, axis))
