"""Exported modules of kernels whose loops run as often as only the memory knows."""

import pytest
import torch
from exporting import compare, exported, passes_ruff, run, tensors
from kernels import whiles
from triton.backends.autodiff import autodiff


def roots(dtype, device, n, tolerance):
    x = torch.rand(n, dtype=dtype, device=device) + 0.5
    return [x.requires_grad_(), tolerance]


def steps(dtype, device, m, first, step):
    return [*tensors((m, 8), dtype=dtype, device=device), first, step]


single = torch.float32
# As in test_export.py.
FORMS = {
    "until it is close": (
        autodiff(whiles.newton_kernel, whiles.newton),
        (roots, single),
        [(24, 0.3), (8, 0.1), (40, 0.01), (33, 1e6), (64, 0.003), (56, 0.3)],
    ),
    "steps": (
        autodiff(whiles.stepping_kernel, whiles.stepping),
        (steps, single),
        [(11, 3, 2), (5, 4, 3), (3, 2, 2), (20, 5, 2), (1, 3, 5), (9, 2, 3)],
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_other_sizes(form, device, tmp_path):
    op, (make, dtype), (first, *others) = FORMS[form]
    args = make(dtype, device, *first)
    run(op, args)
    twin = exported(op, tmp_path, *args)
    assert compare(op, twin, args)
    taken = [compare(op, twin, make(dtype, device, *size)) for size in others]
    assert sum(taken) >= 3, taken


@pytest.mark.parametrize("form", FORMS)
def test_other_types(form, device, tmp_path):
    op, (make, dtype), (first, *_) = FORMS[form]
    twin = exported(op, tmp_path, *make(dtype, device, *first))
    with pytest.raises(AssertionError, match=f"was of {dtype}, it is of torch.float64"):
        run(twin, make(torch.float64, device, *first))


@pytest.mark.parametrize("form", FORMS)
def test_ruff(form, device, tmp_path):
    pytest.importorskip("ruff")
    op, (make, dtype), (first, *_) = FORMS[form]
    passes_ruff(op.export(tmp_path / "exported.py", *make(dtype, device, *first)))
