"""Rows that are never stored may hold anything: 0 · NaN must not reach sums over rows."""

import pytest
import torch
from gradients import assert_close, assert_gradients_close, differentiated, random_tensor
from kernels import dead_results
from kernels.dead_rows import (
    biased,
    biased_kernel,
    biased_reference,
    cosine,
    cosine_kernel,
    cosine_reference,
    counted,
    counted_kernel,
    counted_reference,
    deciding,
    deciding_kernel,
    deciding_reference,
    prefixes,
    prefixes_kernel,
    prefixes_reference,
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


USES = [
    "argmax", "argmin", "place of the maximum", "comparison", "integer", "floor", "stopped",
    "address",
]  # fmt: skip
PLACES = ["a branch", "a branch on it", "a selection", "a loop", "a while", "iterations"]


@pytest.mark.parametrize(
    "use, where, product, dtype",
    [
        *((use, "a branch", "dot", torch.float32) for use in USES),
        *((use, "a branch", "product", torch.float64) for use in USES),
        *(("argmax", where, "dot", torch.float32) for where in PLACES[1:]),
        *(("comparison", where, "product", torch.float32) for where in PLACES[1:]),
        ("argmin", "a branch", "cumprod", torch.float32),
        ("argmax", "a branch", "dot", torch.float16),
        ("comparison", "iterations", "product", torch.bfloat16),
    ],
)
def test_values_that_only_decide(device, use, where, product, dtype):
    """A value that a branch does not use has no derivative, whatever integers come of it."""
    op = differentiated(deciding_kernel, deciding)
    x, w = (random_tensor(16, 16, device=device, dtype=dtype) for _ in range(2))
    table = torch.arange(16, device=device).to(dtype)

    def gradients(n):
        y = op(x, w, table, n, use, where, product)
        return torch.autograd.grad(y, (x, w), upstream)

    upstream = torch.randn(16, device=device, dtype=dtype)
    exact, rough = (
        [t.detach().to(d).requires_grad_() for t in (x, w)] for d in (torch.float64, dtype)
    )
    truths, baselines = (
        torch.autograd.grad(deciding_reference(*given, 1, where, product), given, upstream.to(d))
        for given, d in ((exact, torch.float64), (rough, dtype))
    )
    for name, *numbers in zip("xw", gradients(1), baselines, truths, strict=True):
        assert_close(name, *numbers, roundings=32)
    with torch.no_grad():
        x[3:5], w[:, 2] = float("nan"), float("inf")
    for gradient in gradients(0):
        assert not gradient.any()


@pytest.mark.parametrize("scan", [False, True])
def test_counts_beside_values(device, scan):
    """Of a pair, the count is used, and the other member in a branch only."""
    op = differentiated(counted_kernel, counted)
    x = random_tensor(16, 16, device=device)
    assert_gradients_close(op, counted_reference, (x, 1, scan), roundings=32)
    with torch.no_grad():
        x[3:5] = float("nan")
    y = op(x, 0, scan)
    (gradient,) = torch.autograd.grad(y, x, torch.ones_like(y))
    assert not gradient.any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_loops_that_kept_rows_do_not_enter(device, dtype):
    """What only the others read may be anything."""
    op = differentiated(prefixes_kernel, prefixes)
    x = random_tensor(5, 16, device=device, dtype=dtype)
    assert_gradients_close(op, prefixes_reference, (x, 4), roundings=32)
    for kept in (3, 1):
        with torch.no_grad():
            x[kept - 1 :, 3:5] = torch.tensor([float("nan"), float("inf")])
        y = op(x, kept)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        factors = torch.arange(kept - 1, 0, -1, dtype=dtype, device=device)
        right = torch.zeros_like(x)
        right[: kept - 1] = 2 * factors[:, None] * x[: kept - 1]
        torch.testing.assert_close(gradient, right)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("how", ["reduce", "scan", "reversed", "map"])
@pytest.mark.parametrize("n, again", [(0, False), (0, True), (5, False), (5, True), (16, False)])
def test_results_that_are_not_stored(device, how, n, again, dtype):
    """What only they are computed from may be anything, and reaches no other one's gradient.

    So it is where nobody knows which store is the last.
    """
    op = differentiated(dead_results.pairs_kernel, dead_results.pairs)
    a = (1 + random_tensor(16, 16, device=device, dtype=dtype).detach() / 8).requires_grad_()
    b = (2 + torch.rand(16, 16, device=device, dtype=dtype)).requires_grad_()
    assert_gradients_close(op, dead_results.pairs_reference, (a, b, n, how, again), roundings=64)
    upstream = [torch.randn_like(y) for y in op(a, b, n, how, again)]
    right = torch.autograd.grad(op(a, b, n, how, again), (a, b), upstream)
    with torch.no_grad():
        b[n:] = torch.tensor([float("nan"), float("inf")] * 8, dtype=dtype, device=device)
    found = torch.autograd.grad(op(a, b, n, how, again), (a, b), upstream)
    for one, other in zip(found, right, strict=True):
        torch.testing.assert_close(one, other)
