"""Exported modules of kernels that integers in memory decide: how often loops run, and where.

And what is touched, which modules count before they add halves.
"""

import pytest
import torch
from exporting import (
    assert_other_sizes,
    compare,
    exported,
    module_at,
    passes_ruff,
    run,
    tensors,
)
from kernels import packed_sequences, whiles
from poison import poisoned_memory
from test_touched import strided_kernel
from triton.backends.autodiff import autodiff


def roots(dtype, device, n, tolerance):
    x = torch.rand(n, dtype=dtype, device=device) + 0.5
    return [x.requires_grad_(), tolerance]


def steps(dtype, device, m, first, step):
    return [*tensors((m, 8), dtype=dtype, device=device), first, step]


# Where several programs add to one element, in the order of threads.
IN_ANY_ORDER = ("steps", "ragged")
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
    op, (make, dtype), sizes = FORMS[form]
    exact = form not in IN_ANY_ORDER
    assert_other_sizes(op, tmp_path, (make(dtype, device, *size) for size in sizes), exact)


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


def ragged(device, lengths, rows=5, lanes=8):
    x, w = tensors((len(lengths), rows, lanes), (lanes,), device=device)
    return [x, w, torch.tensor(lengths, dtype=torch.int32, device=device)]


def attended(device, lengths, causal=True):
    inputs = tensors(*[(2, sum(lengths), 16)] * 3, device=device)
    starts = torch.tensor((0, *lengths), device=device, dtype=torch.int32).cumsum(0).int()
    return [*inputs, starts, starts[:-1].clone(), starts[1:].clone(), causal]


# Operation, what makes its arguments, what is in memory: first what is exported.
CONTENTS = {
    "ragged": (
        autodiff(whiles.ragged_kernel, whiles.ragged),
        ragged,
        [(3, 0, 5, 1), (5, 4, 3, 2), (1, 0, 5, 3), (2, 2), (3, 0, 5, 1, 2), (0, 0, 5, 0)],
    ),
    "packed": (
        autodiff(packed_sequences.attention_kernel, packed_sequences.attention),
        attended,
        [(37, 0, 63, 29), (38, 0, 62, 29), (37, 63, 29), (64,), (1, 2, 3, 4), (129, 0, 0, 0)],
    ),
}


@pytest.mark.parametrize("form", CONTENTS)
def test_contents(form, device, tmp_path):
    """What memory holds decides which part of a tensor each program has."""
    op, make, contents = CONTENTS[form]
    args = make(device, contents[0])
    run(op, args)
    twin = exported(op, tmp_path, *args)
    for held in contents:
        assert compare(op, twin, make(device, held), exact=form not in IN_ANY_ORDER)


@pytest.mark.parametrize("ends", [([0, 30], [50, 80]), ([0, 40], [40, 70]), ([0, 50], [40, 80])])
def test_parts_that_are_no_partition(ends, device, tmp_path):
    """Sequences that overlap, end early, or leave a gap: gradients would be missing."""
    op, make, (first, *_) = CONTENTS["packed"]
    twin = exported(op, tmp_path, *make(device, first))
    *inputs, _, _, _, causal = make(device, (40, 40))
    first, last = (torch.tensor(places, dtype=torch.int32, device=device) for places in ends)
    with pytest.raises(AssertionError, match=r"the parts of \w+ that programs have"):
        run(twin, [*inputs, torch.cat([first, last[-1:]]), first, last, causal])


def lookup(kernel, table, index):
    out = table.new_empty(index.numel(), 700)
    kernel[(index.numel(),)](index, table, out, *table.stride(), table.shape[1], BLOCK=1024)
    return out[:, : table.shape[1]]


# How many rows a table has, and how many of them are looked up.
LOOKUPS = [(4096, 150), (4096, 1), (9000, 40), (4096, 3000), (7, 20)]
VIEWS = {
    "whole": lambda wide: wide[:, :700].clone(),
    "gaps": lambda wide: wide[:, :700],
    "shifted": lambda wide: wide[:, 33:],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("first", [(4096, 150), (7, 20)])
def test_counted_additions(first, view, device, tmp_path):
    """Whether additions are counted is decided at each launch; a module has kernels for it or not.

    These are the same gradients, for what is counted once need not be added.
    """
    op = autodiff(strided_kernel, lookup)

    def arguments(rows, count):
        wide = torch.randn(rows, 703, device=device, dtype=torch.bfloat16)
        table = VIEWS[view](wide).requires_grad_()
        return table, torch.randint(rows, (count,), device=device)

    path = op.export(tmp_path / "exported.py", *arguments(*first))
    assert ("_tally" in path.read_text()) == (first == LOOKUPS[0])
    twin = module_at(path).lookup
    for size in LOOKUPS:
        args = arguments(*size)
        with poisoned_memory():
            theirs = run(twin, args)
        for mine, other in zip(run(op, args), theirs, strict=True):
            torch.testing.assert_close(other, mine)
