"""Positions that are taken apart: tiles get an axis for each digit where that is the same."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import lines
from schedules import assert_atomic, assert_sums

pytestmark = pytest.mark.schedules


def _inputs(device, shape, how="", dtype=torch.float32):
    """x, b and c for a shape: (rows, columns) or (batch, channels, inner)."""
    # All of it may add up to one number, and so may the upstream gradient: both shifted, such
    # that it does not cancel.
    x = random_tensor(*shape, device=device, dtype=dtype, shift=1.0)
    if how == "rows":
        sizes = shape[0] * shape[1], shape[2]
    elif how == "batches":
        sizes = shape[2], shape[1]
    else:
        sizes = shape[1], shape[0]
    return x, *(random_tensor(size, device=device, dtype=dtype) for size in sizes)


def _check(device, ran, shape, how="", unraveled=(), dtype=torch.float32):
    op = differentiated(lines.line_kernel, lines.line)
    inputs = (*_inputs(device, shape, how, dtype), how)
    upstream = random_tensor(*shape, device=device, dtype=dtype, shift=0.5, grad=False)
    assert_gradients_close(op, lines.line_reference, inputs, [upstream], roundings=32)
    if ran is not None:
        assert ran.unraveled == unraveled
        if unraveled:
            assert_sums(ran, "store", 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape, unraveled", [
    ((200, 1), ()), ((70, 3), (4, 16)), ((33, 16), (16, 4)), ((20, 50), (64, 1)),
    ((9, 64), (64, 1)), ((5, 100), (64, 1)), ((3, 768), (64, 1)), ((1, 40), (64, 1)),
])  # fmt: skip
def test_columns(device, ran, shape, unraveled, dtype):
    """Rows of any length, in tiles of 64 lanes. Triton sees to it that p % 1 is no division."""
    _check(device, ran, shape, "", unraveled, dtype)


@pytest.mark.parametrize("how", ["channels", "nested"])
@pytest.mark.parametrize("shape, unraveled", [
    ((3, 5, 7), (8, 8, 1)), ((9, 2, 10), (16, 2, 2)), ((2, 3, 100), (64, 1, 1)),
    ((4, 3, 1), (4, 4)), ((1, 70, 3), (4, 16, 1)),
])  # fmt: skip
def test_channels(device, ran, how, shape, unraveled):
    _check(device, ran, shape, how, unraveled)


@pytest.mark.parametrize("how, shape, unraveled", [
    ("constants", (9, 3, 10), (16, 4, 1)),
    ("rows", (4, 5, 9), (16, 4)),
    ("subtracted", (9, 20), (32, 2)),
    ("wide", (9, 20), (32, 2)),
    ("left out", (9, 20), (32, 2)),
    ("added", (9, 20), (32, 2)),
    ("at its place", (9, 20), (32, 2)),
    ("batches", (3, 9, 20), (32, 2)),
    ("unmasked", (16, 20), (32, 2)),
    ("unmasked", (32, 64), (64, 1)),
])  # fmt: skip
def test_kinds(device, ran, how, shape, unraveled):
    _check(device, ran, shape, how, unraveled)


@pytest.mark.parametrize("how", ["in place", "shared", "summed", "lanes", "programs"])
def test_what_needs_the_line(device, ran, how):
    """What is read is written to, lanes meet, or it matters which tile they are in."""
    _check(device, ran, (9, 20), how)


def test_as_many_columns_as_programs(device, ran):
    """There would be others in a grid of rows and columns."""
    _check(device, ran, (64, 20), "count")


def test_no_whole_rows(device, ran):
    """Of the last row, only a part is on the line."""
    op = differentiated(lines.line_kernel, lines.line)
    inputs = (*_inputs(device, (9, 20)), "", 64, 150)
    assert_gradients_close(op, lines.line_reference, inputs, roundings=32)
    if ran is not None:
        assert ran.unraveled == ()
        assert_atomic(ran, 1)


def test_transposed(device, ran):
    """Elements of x are not on the line in the order of memory."""
    op = differentiated(lines.line_kernel, lines.line)
    base, b, c = _inputs(device, (20, 9))
    inputs = base.detach().t().requires_grad_(), c, b, "strided"
    assert_gradients_close(op, lines.line_reference, inputs, roundings=32)
    if ran is not None:
        assert ran.unraveled == (32, 2)
        assert_sums(ran, "store", 0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("shape, unraveled", [
    ((40, 12), (16, 4)), ((5, 12, 11), (16, 4, 1)), ((3, 2, 30, 10), (64, 1, 1)),
])  # fmt: skip
def test_affine(device, ran, shape, unraveled, dtype):
    """Two gradients that are sums over the same axes."""
    op = differentiated(lines.affine_kernel, lines.affine)
    x = random_tensor(*shape, device=device, dtype=dtype)
    scale, shift = (random_tensor(shape[1], device=device, dtype=dtype) for _ in range(2))
    assert_gradients_close(op, lines.affine_reference, (x, scale, shift), roundings=32)
    if ran is not None:
        assert ran.unraveled == unraveled


def test_no_elements(device):
    op = differentiated(lines.line_kernel, lines.line)
    x, b, c = _inputs(device, (0, 20))
    gradients = torch.autograd.grad(op(x, b, c).sum(), (x, b), allow_unused=True)
    assert gradients[0].shape == (0, 20)


def test_few_programs(device, ran):
    """Iterations become programs, and then positions axes."""
    op = differentiated(lines.line_loop_kernel, lines.line_loop)
    x, b, _ = _inputs(device, (40, 30))
    assert_gradients_close(op, lambda x, b: x * b, (x, b), roundings=32)
    if ran is not None:
        assert ran.unraveled == (32, 2)


def test_one_operation_for_all_shapes(device, ran):
    op = differentiated(lines.line_kernel, lines.line)
    for shape, unraveled in (((9, 20), (32, 2)), ((30, 3), (4, 16)), ((7, 30), (32, 2))):
        inputs = _inputs(device, shape)
        assert_gradients_close(op, lines.line_reference, inputs, roundings=32)
        if ran is not None:
            assert ran.unraveled == unraveled


@pytest.mark.parametrize("how, shape", [("", (9, 20)), ("channels", (5, 6, 30))])
def test_without_atomics(device, ran, how, shape):
    """The bits are the same in every run: sums are over axes of tiles, and of few programs."""
    op = differentiated(lines.line_kernel, lines.line, deterministic=True)
    x, b, _ = _inputs(device, shape, how)
    c = torch.zeros(shape[0], device=device)
    assert_gradients_close(op, lines.line_reference, (x, b, c, how), roundings=32)
    if ran is not None:
        assert_sums(ran, "partial", 1)


@pytest.mark.parametrize("shape, unraveled", [((33, 16), (16, 4)), ((5, 100), (64, 1))])
def test_random_numbers(device, ran, shape, unraveled):
    """What they have dropped is saved, by programs of rows and columns."""
    x, b, _ = _inputs(device, shape)
    op = differentiated(lines.dropped_kernel, lines.dropped)
    kept = op(x, b, 7).detach() != 0
    assert 0 < kept.sum() < kept.numel()
    assert_gradients_close(op, lambda x, b, seed: 2 * (x + b) * kept, (x, b, 7), roundings=32)
    if ran is not None:
        assert ran.unraveled == unraveled
        assert "saved: " in op.explain()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("shape, step, size, how", [
    *((shape, step, size, "store")
      for shape in ((3, 12, 18), (2, 13, 7))
      for step, size in ((1, 1), (2, 2), (2, 1), (3, 2), (3, 3), (1, 2))),
    ((3, 12, 18), 1, 3, "atomic"), ((2, 13, 7), 1, 3, "store"),
    ((2, 13, 7), 2, 3, "atomic"), ((2, 12, 16), 2, 3, "store"),
])  # fmt: skip
def test_windows(device, ran, shape, step, size, how, dtype):
    """Pixels of windows are stored to once; those of overlapping ones, too, if places reach all."""
    op = differentiated(lines.windows_kernel, lines.windows)
    x = random_tensor(*shape, device=device, dtype=dtype)
    assert_gradients_close(op, lines.windows_reference, (x, step, size), roundings=32, updates=9)
    assert_sums(ran, how, 0)
