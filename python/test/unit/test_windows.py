"""Windows that overlap: each element takes what the positions around it contribute."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import windows
from schedules import assert_sums

pytestmark = pytest.mark.schedules

FLOATS = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str)


def _taps(device, ran, shape, taps, first, stored, how="", dtype=torch.float32, **options):
    x = random_tensor(*shape, device=device, dtype=dtype)
    w = random_tensor(shape[2], taps, device=device, dtype=dtype, scale=0.5)
    op = differentiated(windows.taps_kernel, windows.taps, **options)
    assert_gradients_close(op, windows.taps_reference, (x, w, first, how), roundings=64)
    assert_sums(ran, "store" if stored else "atomic", 0)


@pytest.mark.parametrize("taps, first, shape, dtype", [
    (3, -2, (2, 37, 20), torch.bfloat16), (3, -1, (1, 16, 8), torch.float32),
    (3, -1, (2, 37, 20), torch.float64), (3, -1, (3, 1, 5), torch.float32),
    (2, 0, (2, 48, 3), torch.float32), (3, 0, (2, 37, 20), torch.float64),
], ids=str)  # fmt: skip
def test_taps(device, ran, taps, first, shape, dtype):
    """From before, around or after a position."""
    _taps(device, ran, shape, taps, first, True, dtype=dtype)


def test_linear(device, ran):
    """Many neighbours, but one load of each."""
    _taps(device, ran, (2, 37, 20), 7, -6, True, "linear")


@pytest.mark.parametrize("taps, first", [(3, 1), (3, -4)])
def test_elements_elsewhere(device, ran, taps, first):
    """No window begins or ends at its position: elements have none of their own."""
    _taps(device, ran, (2, 37, 20), taps, first, False)


@FLOATS
@pytest.mark.parametrize("taps", [4, 19])
def test_many_loads(device, ran, taps, dtype):
    """What takes too many loads to be computed again is stored for the neighbours."""
    _taps(device, ran, (2, 43, 12), taps, 1 - taps, True, dtype=dtype)


@pytest.mark.parametrize("n", [1, 5, 37])
def test_scalars(device, ran, n):
    """A program for each element."""
    x = random_tensor(n, device=device)
    op = differentiated(windows.scalar_kernel, windows.scalar)
    assert_gradients_close(op, windows.scalar_reference, (x,), roundings=32)
    assert_sums(ran, "store", 0)


@pytest.mark.parametrize("how", ["lane", "program", "sum"])
def test_what_is_not_of_positions(device, ran, how):
    """What neighbours compute in lanes or programs of their own is not computed by others."""
    _taps(device, ran, (2, 37, 20), 3, -1, False, how)


def test_alignment(device, ran):
    """What is true of the alignment of a program's tile is not of its neighbours'."""
    _taps(device, ran, (2, 64, 32), 3, -2, True, "hint")


@FLOATS
@pytest.mark.parametrize("shape, reach, step", [
    ((9, 48), 1, 1), ((5, 37), 3, 2), ((3, 37), 17, 1), ((3, 16), 0, 1),
])  # fmt: skip
def test_stencil(device, ran, shape, reach, step, dtype):
    """Neighbours in other rows are in other programs, those in a row may be."""
    x = random_tensor(*shape, device=device, dtype=dtype)
    op = differentiated(windows.stencil_kernel, windows.stencil)
    assert_gradients_close(op, windows.stencil_reference, (x, reach, step), roundings=32)
    assert_sums(ran, "store", 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape, step", [((3, 12, 18), 2), ((3, 12, 18), 1), ((2, 9, 7), 1)])
def test_maxima(device, ran, shape, step, dtype):
    """Windows in steps leave one store for each place within a step."""
    x = torch.randperm(shape[0] * shape[1] * shape[2], device=device).reshape(shape)
    x = (x.to(dtype) / 256 - 1).requires_grad_()
    op = differentiated(windows.maxima_kernel, windows.maxima)
    assert_gradients_close(op, windows.maxima_reference, (x, step), roundings=32, updates=9)
    assert_sums(ran, "store", 0)


@pytest.mark.parametrize("third", [12, 16, 1])
def test_thirds(device, ran, third):
    """Parts of a row that end before they meet are stored as they are."""
    x = random_tensor(5, 3 * third, device=device)
    op = differentiated(windows.thirds_kernel, windows.thirds)
    assert_gradients_close(op, windows.thirds_reference, (x,))
    assert_sums(ran, "store", 0)


def test_part_of_a_tensor(device, ran):
    """A window beyond the elements in question: nothing may be stored there."""
    whole = random_tensor(2, 40, 8, device=device)
    w = random_tensor(8, 3, device=device)

    def stub(kernel, x, w):
        return windows.taps(kernel, x[:1, :37], w, -2)

    op = differentiated(windows.taps_kernel, stub)
    assert_gradients_close(op, lambda x, w: windows.taps_reference(x[:1, :37], w, -2), (whole, w))
