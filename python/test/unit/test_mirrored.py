"""Tiles of symmetric results that are stored twice, the second time transposed."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import mirrored
from triton.backends.autodiff.errors import RaceError

TILES = pytest.mark.parametrize("tile", [(32, 16), (16, 32), (16, 64), (32, 32)], ids=str)


@TILES
@pytest.mark.parametrize("side", ["below", "above"])
@pytest.mark.parametrize("order", ["rows", "grouped", "swizzled"])
def test_products(device, tile, side, order):
    """Programs that overlap have the same product there, of the same rows."""
    op = differentiated(mirrored.xxt_kernel, mirrored.xxt)
    x = random_tensor(2, 75, 40, device=device)
    assert_gradients_close(op, mirrored.xxt_reference, (x, tile, order, side))


@pytest.mark.parametrize("how", ["masks", "modulo", "scaled", "widened"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("shape", [(1, 64, 32), (3, 33, 20), (1, 5, 7)], ids=str)
def test_tails(device, shape, dtype, how):
    op = differentiated(mirrored.xxt_kernel, mirrored.xxt)
    x = random_tensor(*shape, device=device, dtype=dtype)
    inputs = (x, (32, 16), "grouped", "below", how)
    assert_gradients_close(op, mirrored.xxt_reference, inputs, roundings=16)


def test_functions_that_use_a_product_often(device):
    """Equal parts are found in a long chain, in which products may be in any order."""
    op = differentiated(mirrored.xxt_kernel, mirrored.xxt)
    x = random_tensor(1, 40, 20, device=device) * 0.3
    assert_gradients_close(op, mirrored.xxt_reference, (x, (32, 16), "rows", "below", "chain"))


@pytest.mark.parametrize("transposed", [False, True])
def test_strides(device, transposed):
    """Rows of x and of the result are not contiguous."""

    def stub(kernel, x):
        return mirrored.xxt(kernel, x.transpose(1, 2)[:, ::2], (16, 32), transposed=transposed)

    op = differentiated(mirrored.xxt_kernel, stub)
    x = random_tensor(2, 20, 100, device=device)
    assert_gradients_close(
        op, lambda x: mirrored.xxt_reference(x.transpose(1, 2)[:, ::2], (16, 32)), (x,)
    )


@pytest.mark.usefixtures("needs_gradients")
def test_all_gradients_of_one_side(device):
    """Upstream gradients on either side of the diagonal, and on it, reach x once."""
    op = differentiated(mirrored.xxt_kernel, mirrored.xxt)
    x = random_tensor(1, 48, 16, device=device)
    rows, columns = torch.ones(48, 48, device=device).nonzero().T
    for side in (rows < columns, rows == columns, rows > columns):
        upstream = torch.randn(1, 48, 48, device=device) * side.view(1, 48, 48)
        assert_gradients_close(op, mirrored.xxt_reference, (x, (32, 16)), (upstream,))


@TILES
@pytest.mark.parametrize("how", ["sum", "maximum", "squares", "factors"])
def test_pairs(device, tile, how):
    """What is the same for (i, j) and (j, i) by the laws of arithmetic."""
    op = differentiated(mirrored.pairs_kernel, mirrored.pairs)
    x = random_tensor(53, device=device)
    assert_gradients_close(op, mirrored.pairs_reference, (x, tile, how), roundings=64)


@pytest.mark.usefixtures("needs_gradients")
@pytest.mark.parametrize("how", ["difference", "square of one"])
def test_pairs_that_are_not_symmetric(device, how):
    """The diagonal alone agrees, but tiles overlap beside it."""
    op = differentiated(mirrored.pairs_kernel, mirrored.pairs)
    x = random_tensor(53, device=device)
    with pytest.raises(RaceError, match="symmetric"):
        op(x, (32, 16), how).sum().backward()


@pytest.mark.usefixtures("needs_gradients")
def test_symmetric_only_if_an_input_is(device):
    """Nobody knows whether x(i, j), which is added, is x(j, i): square tiles do not overlap."""
    op = differentiated(mirrored.xxt_kernel, mirrored.xxt)
    x = random_tensor(1, 48, 48, device=device)
    with pytest.raises(RaceError, match="take square blocks"):
        op(x, (32, 16), "rows", "below", "input").sum().backward()


def test_one_function_of_neighbours(device):
    """Two stores are one function of places that are a constant apart."""
    op = differentiated(mirrored.neighbours_kernel, mirrored.neighbours)
    assert_gradients_close(op, torch.exp, (random_tensor(99, device=device),))
