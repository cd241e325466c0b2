"""Decisions that hold exactly by construction hold in the backward, too.

Where a kernel asks which element equals the maximum, the backward has to find one, though it may
round what it computes again otherwise than the forward did. Here inputs change by a bit in between,
unnoticed, which does the same to all that is computed again, on any device.
"""

import pytest
import torch
import triton
import triton.language as tl
from gradients import assert_gradients_close, random_tensor
from triton.backends.autodiff import AutodiffError, autodiff

COLUMNS = 64


@triton.jit
def scores(u, v, row, COLUMNS: tl.constexpr):
    i = row * COLUMNS + tl.arange(0, COLUMNS)
    return tl.load(u + i).to(tl.float32) * 2.5 + tl.load(v + tl.arange(0, COLUMNS))


@triton.jit
def equal(u, v, w, y, z, COLUMNS: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, COLUMNS)
    x = scores(u, v, row, COLUMNS)
    hit = x == tl.max(x, 0)
    tl.store(y + row * COLUMNS + i, tl.where(hit, tl.load(w + row * COLUMNS + i), 0.0))
    tl.store(z + row, 0.0)


@triton.jit
def equal_to_output(u, v, w, y, z, COLUMNS: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, COLUMNS)
    x = scores(u, v, row, COLUMNS)
    smallest = tl.min(x, 0)
    tl.store(z + row, smallest)
    hit = tl.exp(smallest - x) == 1
    tl.store(y + row * COLUMNS + i, tl.where(hit, tl.load(w + row * COLUMNS + i), 0.0))


@triton.jit
def equal_in_branch(u, v, w, y, z, COLUMNS: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, COLUMNS)
    x = scores(u, v, row, COLUMNS)
    if row % 2 == 0:
        extreme = tl.max(x, 0)
    else:
        extreme = tl.min(x, 0)
    tl.store(z + row, extreme)
    hit = x == extreme
    tl.store(y + row * COLUMNS + i, tl.where(hit, tl.load(w + row * COLUMNS + i), 0.0))


@pytest.mark.parametrize(
    "kernel", [equal, equal_to_output, equal_in_branch], ids=lambda k: k.__name__
)
def test_extremum_is_found(device, kernel):
    """One element of each row equals the extremum, and gets the gradient."""

    def stub(kernel, u, v, w):
        y, z = torch.empty_like(w), w.new_empty(len(w))
        kernel[(len(w),)](u, v, w, y, z, COLUMNS)
        return y

    u, v = torch.randn(6, COLUMNS, device=device), torch.randn(COLUMNS, device=device)
    w = torch.randn_like(u).requires_grad_()
    y = autodiff(kernel, stub)(u, v, w)
    u.data.mul_(1 + 2**-22)
    y.sum().backward()
    assert torch.equal(w.grad.sum(1), torch.ones_like(w[:, 0]))
    assert torch.equal(w.grad != 0, y != 0)


@triton.jit
def attain(u, v, y, COLUMNS: tl.constexpr, LOOP: tl.constexpr):
    i = tl.arange(0, COLUMNS)
    if LOOP:
        for row in range(tl.num_programs(0)):
            tl.atomic_max(y + i, scores(u, v, row, COLUMNS))
    else:
        tl.atomic_max(y + i, scores(u, v, tl.program_id(0), COLUMNS))


def _attained(loop):
    def stub(kernel, u, v):
        y = torch.full_like(v, -float("inf"))
        kernel[(len(u),)](u, v, y, COLUMNS, loop)
        return y

    return autodiff(attain, stub)


def test_final_value_of_atomics_is_found(device):
    """The program whose value memory holds in the end gets the gradient."""
    # Computing it again would cost less than saving it.
    # No two programs have the same value.
    order = torch.rand(6, COLUMNS, device=device).argsort(0)
    u = (order + torch.rand_like(order, dtype=torch.float32) / 2).half().requires_grad_()
    v = torch.randn(COLUMNS, device=device)
    y = _attained(False)(u, v)
    expected = 2.5 * torch.nn.functional.one_hot(u.argmax(0), len(u)).T
    v.data.mul_(1 + 2**-22)
    y.sum().backward()
    torch.testing.assert_close(u.grad, expected.to(u.grad))


def test_final_value_computed_in_a_loop_is_refused(device):
    """What cannot be saved, and may be rounded otherwise, is not compared with memory."""
    u = torch.randn(6, COLUMNS, device=device, requires_grad=True)
    with pytest.raises(AutodiffError, match="test_ties.py.*told by its bits"):
        _attained(True)(u, torch.randn(COLUMNS, device=device))


@triton.jit
def weighted(u, v, w, y, rows, COLUMNS: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, COLUMNS)
    x = scores(u, v, row, COLUMNS)
    hit = x == tl.max(x, 0)
    total = tl.zeros([COLUMNS], tl.float32)
    for j in range(rows):
        total += tl.exp(tl.where(hit, tl.load(w + j * COLUMNS + i), 0.0))
    tl.store(y + row * COLUMNS + i, total)


def test_extremum_is_found_in_another_kernel(device):
    """The kernel that gets a loop's work finds the element by itself."""

    def stub(kernel, u, v, w):
        y = torch.empty(u.shape, device=device)
        kernel[(len(u),)](u, v, w, y, len(w), COLUMNS)
        return y

    u = torch.randn(8, COLUMNS, device=device).half()
    v = torch.randn(COLUMNS, device=device)
    w = torch.randn(4, COLUMNS, device=device, requires_grad=True)
    y = autodiff(weighted, stub)(u, v, w)
    v.data.mul_(1 + 2**-22)
    y.sum().backward()
    hits = torch.nn.functional.one_hot((u.float() * 2.5 + v).argmax(1), COLUMNS).sum(0)
    torch.testing.assert_close(w.grad, hits * w.detach().exp())


@triton.jit
def chosen_often(a, b, y, COLUMNS: tl.constexpr, TIMES: tl.constexpr):
    i = tl.arange(0, COLUMNS)
    left, right = tl.load(a + i), tl.load(b + i)
    for n in tl.static_range(TIMES):
        left, right = tl.where(i > n, left, right), tl.where(i > n, right, left)
    s = left + 1.0
    tl.store(y + i, tl.where(s == tl.max(s, 0), left * right, left))


def chosen_often_reference(a, b, times=40):
    swaps = (times - torch.arange(len(a), device=a.device)).clamp(min=0)
    left, right = (torch.where(swaps % 2 == 0, *pair) for pair in ((a, b), (b, a)))
    s = left + 1.0
    return torch.where(s == s.max(), left * right, left)


def test_many_choices(device):
    """What is chosen forty times over, from two, has few origins but many ways to them."""

    def stub(kernel, a, b):
        y = torch.empty_like(a)
        kernel[(1,)](a, b, y, COLUMNS=COLUMNS, TIMES=40)
        return y

    op = autodiff(chosen_often, stub)
    inputs = [random_tensor(COLUMNS, device=device) for _ in range(2)]
    assert_gradients_close(op, chosen_often_reference, inputs)


@triton.jit
def soft_sum(a, s, b, t):
    m = tl.maximum(a, b)
    return m, s * tl.exp(a - m) + t * tl.exp(b - m)


@triton.jit
def largest_of_sums(x, w, y, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr, SOFT: tl.constexpr):
    # What is computed in a branch, the backward computes again.
    if tl.program_id(0) < n:
        place = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
        v = tl.load(x + tl.program_id(0) * ROWS * COLUMNS + place) * tl.load(w + place)
        if SOFT:
            _, s = tl.reduce((v, v * 0.0 + 1.0), 1, soft_sum)
        else:
            s = tl.sum(v, 1)
        tl.store(y + tl.program_id(0), tl.max(s, 0))


def largest_of_sums_reference(x, w, soft):
    v = x * w
    s = (v - v.amax(2, keepdim=True)).exp().sum(2) if soft else v.sum(2)
    return s.amax(1)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("soft", [False, True], ids=["sum", "soft_sum"])
@pytest.mark.parametrize("columns", [4, 16, 32])
def test_largest_sum_is_found_in_all_threads(device, columns, soft, num_warps):
    """Threads that have the same sum have it with other bits: products are contracted with it."""
    programs, rows = 24, 8

    def stub(kernel, x, w):
        y = torch.empty(programs, device=x.device, dtype=x.dtype)
        constants = {"ROWS": rows, "COLUMNS": columns, "SOFT": soft}
        kernel[(programs,)](x, w, y, programs, **constants, num_warps=num_warps)
        return y

    op = autodiff(largest_of_sums, stub)
    inputs = [
        random_tensor(*shape, device=device)
        for shape in ((programs, rows, columns), (rows, columns))
    ]
    assert_gradients_close(op, lambda x, w: largest_of_sums_reference(x, w, soft), inputs)


@triton.jit
def sums_and_maxima(x, place, y, F, n, HOW: tl.constexpr, BLOCK: tl.constexpr, most):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    at = tl.load(place + i // F, mask=i < n) * F + i % F
    if HOW == "columns":
        at += tl.load(place + i // F, mask=i < n) * F
        tl.atomic_add(y + at, v, mask=i < n)
        tl.atomic_max(y + at + F, v, mask=i < n)
    elif HOW == "branch":
        if most:
            tl.atomic_max(y + at, v, mask=i < n)
        else:
            tl.atomic_add(y + at, v, mask=i < n)
    elif HOW == "remainders":
        tl.atomic_max(y + 2 * i + 1, v, mask=i < n)
        tl.atomic_add(y + 2 * i, v, mask=i < n)
    elif HOW == "same":
        tl.atomic_max(y + i, v, mask=i < n)
        tl.atomic_add(y + i, v, mask=i < n)
    else:
        tl.atomic_max(y + i, v, mask=i < n)
        tl.atomic_add(y + i + n, v, mask=i < n)


def _sums_and_maxima(kernel, x, place, how, most):
    rows, columns = x.shape
    y = x.new_zeros(2 * x.numel())
    if how == "columns" or most:
        y.view(-1, 2, columns)[:, 1] = -float("inf")
    if how == "remainders":
        y[1::2] = -float("inf")
    if how == "branch" and most:
        y.fill_(-float("inf"))
    kernel[(2,)](x, place, y, columns, x.numel(), how, 128, most)
    return y


@pytest.mark.parametrize(
    "how, most", [("columns", 0), ("branch", 0), ("branch", 1), ("remainders", 0)]
)
def test_sums_beside_maxima(device, how, most):
    """Sums and maxima of one tensor, in elements of their own or in launches of their own."""
    x = torch.randn(19, 11, device=device, requires_grad=True)
    place = torch.arange(19, device=device) % 6
    y = autodiff(sums_and_maxima, _sums_and_maxima)(x, place, how, most)
    upstream = torch.randn_like(y)
    (gradient,) = torch.autograd.grad(y, x, upstream)
    rows = upstream.view(-1, 11)
    most_of = torch.stack([x[place == p].max(0).values for p in range(6)])[place]
    if how == "columns":
        expected = rows[2 * place] + torch.where(x == most_of, rows[2 * place + 1], 0)
    elif how == "branch":
        expected = torch.where(x == most_of, rows[place], 0) if most else rows[place]
    else:
        expected = upstream[::2].view_as(x) + upstream[1::2].view_as(x)
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("how", ["same", "beyond"])
def test_sums_of_maxima_are_refused(device, how):
    x = torch.randn(19, 11, device=device, requires_grad=True)
    place = torch.arange(19, device=device) % 6
    with pytest.raises(
        AutodiffError, match=r"'tl\.atomic_max'.*another way, too, at .*test_ties\.py"
    ):
        autodiff(sums_and_maxima, _sums_and_maxima)(x, place, how, 0).sum().backward()
