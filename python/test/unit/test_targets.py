"""Rows that are read whole, and at indices from memory: which contributions meet in registers."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import cross_entropy as ce
from kernels import targets as tg
from schedules import assert_sums

pytestmark = pytest.mark.every_triton

# Whether the gradient of x is stored, and a remainder added.
MERGED = {
    "one": True,
    "two": True,
    "ignored": True,
    "after": True,
    "computed": True,
    "one block": True,
    "whole blocks": True,
    "tile": False,
    "every other": False,
    "in a branch": True,
    "from another start": True,
}


def _targets(rows, columns, device, dtype=torch.int64):
    target = torch.randint(columns, (rows, 2), device=device, dtype=dtype)
    target[0, 1] = target[0, 0]  # two contributions to one element
    return target


def _assert_merged(ran, merged=True):
    assert_sums(ran, "store" if merged else "atomic", 0)
    if ran is not None:
        assert any("remainder" in name for name in ran.names) == merged


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("how", MERGED)
def test_targets(device, ran, how, dtype):
    columns = 64 if how == "whole blocks" else 45
    x = random_tensor(7, columns, device=device, dtype=dtype)
    target = _targets(7, columns, device)
    if how in ("ignored", "in a branch"):
        target[::2] = -1
    if how in ("every other", "computed"):
        target = target // 2
    if how == "from another start":
        target += columns
    op = differentiated(tg.targets_kernel, tg.targets)
    block = 64 if how == "one block" else 16
    assert_gradients_close(op, tg.targets_reference, (x, target, how, None, block))
    _assert_merged(ran, MERGED[how])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("how", ["one", "two", "ignored", "after"])
def test_targets_elsewhere(device, ran, how, dtype):
    """An index outside of the row is an element of another one, to whose gradient is added.

    Nothing is negative, so no sum is smaller than what was rounded on the way to it.
    """
    x = random_tensor(6, 45, device=device, grad=False).abs().to(dtype).requires_grad_()
    upstream = torch.rand(6, device=device, dtype=dtype)
    target = torch.randint(-45, 90, (6, 2), device=device)
    target[0], target[-1] = target[0].abs() + 45, -target[-1].abs()
    target[1] = torch.tensor([-1, 45], device=device)
    op = differentiated(tg.targets_kernel, tg.targets)
    places = (target + torch.arange(6, device=device)[:, None] * 45).clamp(0, x.numel() - 1)
    meeting = places.unique(return_counts=True)[1].max().item()
    inputs = (x, target, how)
    assert_gradients_close(op, tg.targets_reference, inputs, [upstream], updates=meeting)
    _assert_merged(ran)


def test_rows_of_one_element(device):
    """There is one position, which no lane has to compute."""
    x = random_tensor(7, 1, device=device)
    target = torch.zeros(7, 2, device=device, dtype=torch.int64)
    op = differentiated(tg.targets_kernel, tg.targets)
    assert_gradients_close(op, tg.targets_reference, (x, target, "one block", None, 1))


def test_many_targets_of_one_element(device, ran):
    """All rows but one read the same element of that."""
    x = random_tensor(9, 45, device=device)
    target = (4 - torch.arange(9, device=device))[:, None] * 45 + 7
    op = differentiated(tg.targets_kernel, tg.targets)
    assert_gradients_close(op, tg.targets_reference, (x, target.repeat(1, 2), "two"))
    _assert_merged(ran)


def test_narrow_targets(device, ran):
    x = random_tensor(7, 45, device=device)
    target = _targets(7, 45, device, torch.int32)
    op = differentiated(tg.targets_kernel, tg.targets)
    assert_gradients_close(op, tg.targets_reference, (x, target, "two"))
    _assert_merged(ran)


def test_columns_apart(device, ran):
    """A tensor that is stored by columns."""
    x = random_tensor(45, 7, device=device)
    op = differentiated(
        tg.targets_kernel, lambda kernel, x, *rest: tg.targets(kernel, x.t(), *rest)
    )

    def reference(x, target, how):
        return tg.targets_reference(x.t(), target, how)

    assert_gradients_close(op, reference, (x, _targets(7, 45, device), "two"))
    _assert_merged(ran)


@pytest.mark.parametrize("n", [0, 16, 40])
def test_part_of_a_row(device, ran, n):
    """Elements beyond the first columns are read only by targets: zero, and what they add."""
    x = random_tensor(7, 45, device=device)
    op = differentiated(tg.targets_kernel, tg.targets)
    assert_gradients_close(op, tg.targets_reference, (x, _targets(7, 45, device), "two", n))
    _assert_merged(ran)


def test_rows_of_a_view(device, ran):
    """Columns beyond the view are in memory, and have no gradient."""
    x = random_tensor(7, 60, device=device)
    op = differentiated(
        tg.targets_kernel, lambda kernel, x, *rest: tg.targets(kernel, x[:, 3:48], *rest)
    )

    def reference(x, target, how):
        return tg.targets_reference(x[:, 3:48], target, how)

    assert_gradients_close(op, reference, (x, _targets(7, 45, device), "two"))
    _assert_merged(ran)


@pytest.mark.parametrize("limited", [True, False])
@pytest.mark.parametrize("rows", [8, 11])
def test_tiles_of_rows(device, ran, rows, limited):
    """Each row of a tile has a target of its own."""
    x = random_tensor(rows, 45, device=device)
    target = torch.randint(45, (rows,), device=device)
    op = differentiated(tg.rows_kernel, tg.rows_of_targets)
    assert_gradients_close(op, tg.rows_reference, (x, target, limited))
    _assert_merged(ran, limited)


def test_checked_accesses(device, ran, monkeypatch):
    monkeypatch.setenv("TRITON_AUTODIFF_CHECK", "1")
    x = random_tensor(7, 45, device=device)
    op = differentiated(tg.targets_kernel, tg.targets)
    assert_gradients_close(op, tg.targets_reference, (x, _targets(7, 45, device), "two"))
    _assert_merged(ran)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_cross_entropy(device, ran, dtype):
    logits = random_tensor(9, 300, device=device, dtype=dtype, scale=2.0)
    target = torch.randint(300, (9,), device=device)
    op = differentiated(ce.cross_entropy_kernel, ce.cross_entropy)
    assert_gradients_close(op, ce.cross_entropy_reference, (logits, target))
    _assert_merged(ran)
