"""Rows that are never stored may hold anything: 0 · NaN must not reach sums over rows."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels.dead_rows import (
    biased,
    biased_kernel,
    biased_reference,
    cosine,
    cosine_kernel,
    cosine_reference,
    unguarded,
    unguarded_kernel,
    unguarded_reference,
)


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("m, n", [(20, 24), (16, 9), (5, 32)])
def test_cosine_product(device, m, n, mixed):
    x, w = (random_tensor(rows, 16, device=device) for rows in (m, n))
    op = differentiated(cosine_kernel, cosine)
    assert_gradients_close(op, cosine_reference, (x, w, mixed), roundings=16)


@pytest.mark.parametrize("how", ["selected", "added", "scaled", "unscaled"])
@pytest.mark.parametrize("m, n", [(20, 24), (33, 16), (3, 40)])
def test_softmax_of_nothing(device, m, n, how):
    q, k, v = (random_tensor(rows, 16, device=device) for rows in (m, n, n))
    op = differentiated(unguarded_kernel, unguarded)
    assert_gradients_close(op, unguarded_reference, (q, k, v, how), roundings=64)


@pytest.mark.parametrize("how", ["finite", "finite, scaled"])
@pytest.mark.parametrize("m, n", [(20, 32), (3, 16)])
def test_rows_masked_by_a_number(device, m, n, how):
    """The largest score of such a row is −1e9, which has nothing left of a logarithm of the sum."""
    q, k, v = (random_tensor(rows, 16, device=device) for rows in (m, n, n))
    op = differentiated(unguarded_kernel, unguarded)
    assert_gradients_close(op, unguarded_reference, (q, k, v, how), roundings=64)


@pytest.mark.parametrize("m, n", [(20, 15), (33, 28)])
def test_rows_that_a_branch_zeroes(device, m, n):
    """Only the block that has them selects: elsewhere all rows count."""
    q = random_tensor(m, 16, device=device)
    k, v = (random_tensor(n, 16, device=device) for _ in range(2))
    op = differentiated(unguarded_kernel, unguarded)
    assert_gradients_close(op, unguarded_reference, (q, k, v, "zeroed"), roundings=64)


@pytest.mark.parametrize("how", ["sum", "product"])
@pytest.mark.parametrize("m, n", [(11, 21), (16, 32), (3, 5)])
def test_biased_rows(device, m, n, how):
    # Not saturated: what cancels is less than what is left.
    x, w = (random_tensor(*shape, device=device).detach() / 4 for shape in ((m, n), (n,)))
    x, w = x.requires_grad_(), w.requires_grad_()
    op = differentiated(biased_kernel, biased)
    assert_gradients_close(op, biased_reference, (x, w, how), roundings=64)


def test_a_stored_nan_is_handed_on(device):
    """The rows that count keep their NaN: only those that nobody stores are left out."""
    q, k, v = (random_tensor(20, 16, device=device) for _ in range(3))
    with torch.no_grad():
        q[3] = float("nan")
    out = differentiated(unguarded_kernel, unguarded)(q, k, v)
    for gradient in torch.autograd.grad(out, (k, v), torch.ones_like(out)):
        assert gradient.isnan().all()
