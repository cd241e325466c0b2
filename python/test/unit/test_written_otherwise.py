"""What a kernel computes decides how its gradients are summed, not how it is written.

An order of arguments, a loop that is split in two or goes the other way: gradients are right, and
meet in the same way.
"""

import pytest
import torch
from gradients import FORWARD_ONLY, assert_gradients_close, differentiated, random_tensor
from kernels import otherwise as ow
from schedules import assert_no_atomics

pytestmark = pytest.mark.schedules


def _how(ran, order, of):
    return {name: ran.sums[order.index(name)] for name in of}


@pytest.mark.parametrize("order", ow.PRODUCTS)
def test_orders_of_arguments(device, ran, order):
    x, w, u = (random_tensor(*shape, device=device) for shape in ((30, 130), (130,), (30,)))
    op = differentiated(ow.PRODUCTS[order], ow.product_in(order))
    # Of 130 or 30 contributions to an element, the programs' are added up in any order.
    assert_gradients_close(op, ow.product_reference, (x, w, u), roundings=16)
    if ran is not None:
        assert _how(ran, order, "xwu") == {"x": "store", "w": "partial", "u": "partial"}
        assert any("persistent" in name for name in ran.names)


LOOPS = (
    "one", "split", "split twice", "exchanged", "down", "shared by rows",
    "shared by rows, exchanged", "triangle",
)  # fmt: skip


@pytest.mark.parametrize("shape", [(5, 4, 40), (3, 2, 16), (7, 6, 3)], ids=str)
@pytest.mark.parametrize("how", LOOPS)
def test_loops(device, ran, how, shape):
    x = random_tensor(*shape, device=device)
    w = random_tensor(*(shape[2:] if "shared" in how else shape[1:]), device=device)
    op = differentiated(ow.weighted_kernel, ow.weighted)
    assert_gradients_close(op, ow.weighted_reference, (x, w, how), roundings=16)
    assert_no_atomics(ran)


def test_no_iterations(device, ran):
    """Nobody adds anything: gradients are zero."""
    x, w = random_tensor(3, 0, 20, device=device), random_tensor(0, 20, device=device)
    op = differentiated(ow.weighted_kernel, ow.weighted)
    assert_gradients_close(op, ow.weighted_reference, (x, w, "split"))


@pytest.mark.parametrize("length", [77, 32, 5])
@pytest.mark.parametrize("second", ["up", "down", "negative step", "by number"])
@pytest.mark.parametrize("first", ["up", "down"])
def test_directions(device, ran, first, second, length):
    x = random_tensor(4, length, device=device)
    op = differentiated(ow.softmax_kernel, ow.softmax)
    assert_gradients_close(op, ow.softmax_reference, (x, first, second), roundings=16)
    if ran is not None:
        assert ran.sums == {0: "store"}


@pytest.mark.parametrize("length, taps, step", [(37, 3, 1), (50, 20, 1), (37, 3, 5), (16, 1, 1)])
@pytest.mark.parametrize("how", ["behind", "channels first", "ahead", "around", "blocks"])
def test_taps(device, ran, how, length, taps, step):
    x = random_tensor(2, length, 32, device=device)
    w = random_tensor(taps, 32, 32, device=device, scale=0.2)
    op = differentiated(ow.taps_kernel, ow.taps)
    assert_gradients_close(op, ow.taps_reference, (x, w, step, how), roundings=32)
    assert_no_atomics(ran)


@pytest.mark.parametrize("taps", [(3, 2), (1, 5), (9, 1)], ids=str)
def test_taps_along_two_axes(device, ran, taps):
    x, w = random_tensor(21, 19, device=device), random_tensor(*taps, device=device)
    op = differentiated(ow.image_kernel, ow.image)
    assert_gradients_close(op, ow.image_reference, (x, w), roundings=32)
    assert_no_atomics(ran)


@pytest.mark.parametrize("shared", [False, True], ids=["row of its own", "shared"])
def test_the_same_in_all_iterations(device, ran, shared):
    x = random_tensor(6, 5, 16, device=device)
    w = random_tensor(*(() if shared else (6,)), 16, device=device)
    op = differentiated(ow.repeated_kernel, ow.repeated)
    assert_gradients_close(op, ow.repeated_reference, (x, w, shared), roundings=16)
    assert_no_atomics(ran)


@pytest.mark.parametrize("programs", [30, 10_000])
def test_partial_sums_of_every_program(device, ran, programs):
    """Few elements beside many: no program does the work of others for them. Of every fifth
    program, there are few enough.
    """
    x = random_tensor(programs, 40, device=device, dtype=torch.float64)
    a, b = (random_tensor(n, device=device, dtype=torch.float64) for n in (1, 5))
    op = differentiated(ow.scalars_kernel, ow.scalars)
    assert_gradients_close(op, ow.scalars_reference, (x, a, b), roundings=64, updates=programs)
    if ran is not None:
        how = "partial" if programs == 30 else "atomic"
        assert ran.sums == {0: "store", 1: how, 2: "partial"}


@pytest.mark.parametrize("programs", [300, 10_000])
def test_partial_sums_are_deterministic(device, programs):
    """Of many sums, PyTorch adds up."""
    if FORWARD_ONLY:
        pytest.skip("nothing is derived in the forward pass")
    x = random_tensor(programs, 40, device=device)
    a, b = random_tensor(1, device=device), random_tensor(5, device=device)
    op = differentiated(ow.scalars_kernel, ow.scalars, deterministic=True)
    upstream = torch.randn_like(x)
    found = [torch.autograd.grad(op(x, a, b), (a, b), upstream) for _ in range(3)]
    for other in found[1:]:
        assert all(torch.equal(x, y) for x, y in zip(found[0], other, strict=True))


@pytest.mark.parametrize("ahead, size, length", [(True, 40, 20), (True, 20, 20), (False, 30, 32)])
def test_taps_that_nobody_sums(device, ahead, size, length):
    """What cannot be summed by its element is added where it was: elements may be more than
    positions, or end without a mask.
    """
    x, w = random_tensor(2, size, device=device), random_tensor(5, device=device)
    op = differentiated(ow.nested_taps_kernel, ow.nested_taps)
    assert_gradients_close(op, ow.nested_taps_reference, (x, w, length, ahead), roundings=32)


@pytest.mark.parametrize("schedules", [("merge",), ("merge", "persist"), ("merge", "interchange")])
def test_taps_by_some_schedules(device, schedules):
    if FORWARD_ONLY:
        pytest.skip("nothing is derived in the forward pass")
    x, w = random_tensor(2, 37, 32, device=device), random_tensor(4, 32, 16, device=device)
    op = differentiated(ow.taps_kernel, ow.taps, backward={"schedules": list(schedules)})
    assert_gradients_close(op, ow.taps_reference, (x, w, 1, "ahead"), roundings=32)
