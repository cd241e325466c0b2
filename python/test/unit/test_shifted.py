"""Masks with a lower end, and what is read from its end: stores, where no element is left out."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import shifted
from schedules import assert_interchanged, assert_sums

SIDES = [(3, 2, 0, 0), (0, 5, 2, 1), (16, 16, 1, 0), (1, 0, 0, 3), (0, 0, 0, 0)]


@pytest.mark.parametrize("sides", SIDES, ids=str)
@pytest.mark.parametrize("columns", [37, 16, 1])
@pytest.mark.parametrize("how", ["shifted", "behind", "mirrored"])
def test_padding(device, ran, how, columns, sides):
    x = random_tensor(6, columns, device=device)
    op = differentiated(shifted.pad_kernel, shifted.pad)
    assert_gradients_close(op, shifted.pad_reference, (x, how, sides))
    assert_sums(ran, "store", 0)


@pytest.mark.parametrize("how", ["shifted", "behind", "mirrored"])
def test_parts_that_are_left_out(device, ran, how):
    """Sides below zero cut rows and columns off: these have gradient zero."""
    x = random_tensor(7, 40, device=device)
    op = differentiated(shifted.pad_kernel, shifted.pad)
    for sides in ((-3, 2, 0, 0), (0, -17, 1, -2), (2, -1, -1, 0)):
        assert_gradients_close(op, shifted.pad_reference, (x, how, sides))


@pytest.mark.parametrize("n, k, m", [(21, 30, 10), (1, 1, 1), (16, 16, 32), (5, 40, 3)])
def test_concatenation(device, ran, n, k, m):
    a, b, c = (random_tensor(*s, device=device) for s in ((9, n), (9, k), (m,)))
    op = differentiated(shifted.cat_kernel, shifted.cat)
    # Of one sign: sums over rows of a few elements might cancel.
    upstream = 0.5 + torch.rand(9, n + k + m, device=device)
    assert_gradients_close(op, shifted.cat_reference, (a, b, c), [upstream])
    assert_sums(ran, "store", 0, 1)


@pytest.mark.parametrize("first", [0, 1, 16, 23])
@pytest.mark.parametrize("n", [100, 64, 9])
def test_loops_from_a_place_on(device, ran, n, first):
    """Iterations become programs that see a mask's lower end."""
    x = random_tensor(n, device=device)
    op = differentiated(shifted.late_kernel, shifted.late)
    assert_gradients_close(op, shifted.late_reference, (x, 3, first), roundings=32)
    assert_interchanged(ran, [0], -(-(n + first) // 16))


@pytest.mark.parametrize("n", [100, 64, 9])
def test_loops_from_the_end(device, ran, n):
    x = random_tensor(n, device=device)
    op = differentiated(shifted.late_kernel, shifted.late)
    assert_gradients_close(op, shifted.late_reference, (x, 3, 0, True), roundings=32)
    assert_interchanged(ran, [0], -(-n // 16))


@pytest.mark.parametrize("columns", [3, 100])
def test_rows_that_overlap(device, columns):
    """Shifted rows of an expanded tensor meet; a wrong stride must not look like a right one."""
    x = random_tensor(1, columns, device=device)
    op = differentiated(shifted.pad_kernel, shifted.pad)
    assert_gradients_close(
        lambda x: op(x.expand(4, -1).contiguous(), "behind", (2, 1, 0, 0)),
        lambda x: shifted.pad_reference(x.expand(4, -1), "behind", (2, 1, 0, 0)),
        (x,),
    )


def test_views_of_a_larger_tensor(device):
    """The tensor is part of a storage; nothing outside of it gets a gradient."""
    whole = random_tensor(300, device=device)
    op = differentiated(shifted.pad_kernel, shifted.pad)

    def run(function):
        return lambda whole: function(whole[21:277].view(8, 32), "behind", (3, 2, 1, 1))

    assert_gradients_close(run(op), run(shifted.pad_reference), (whole,))
    (gradient,) = torch.autograd.grad(run(op)(whole).sum(), whole)
    assert not gradient[:21].any() and not gradient[277:].any()
