"""Tangents and second derivatives of what atomic maxima, minima and exchanges leave in memory."""

from types import SimpleNamespace

import hopper
import pytest
import torch
import triton
import triton.language as tl
from gradients import random_tensor
from torch.autograd import forward_ad
from triton.backends.autodiff import AutodiffError, differentiable
from triton.backends.autodiff.launching.state import KernelState


@triton.jit
def extremes_kernel(x, w, most, least, n, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    """The largest and the smallest of x·w, by column, over all rows."""
    row, i = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = i < COLUMNS
    v = tl.load(x + row * COLUMNS + i, mask) * tl.load(w + i, mask)
    tl.atomic_max(most + i, v, mask)
    tl.atomic_min(least + i, v, mask)


@triton.jit
def latest_kernel(x, y, N: tl.constexpr):
    """Each program exchanges what the others left: one of them is last."""
    i = tl.arange(0, N)
    v = tl.load(x + tl.program_id(0) * N + i)
    tl.atomic_xchg(y + i, v * v * v)


@triton.jit
def branching_kernel(x, most, seen, N: tl.constexpr):
    """Only even programs take part; another output is stored as usual."""
    row, i = tl.program_id(0), tl.arange(0, N)
    v = tl.load(x + row * N + i)
    tl.store(seen + row * N + i, v * v)
    if row % 2 == 0:
        tl.atomic_max(most, tl.max(tl.exp(v), 0))


@triton.jit
def scaled_kernel(x, w, y, N: tl.constexpr):
    """y is the largest of 3.1·x·w over all rows; constants and factors are rounded in order."""
    i = tl.arange(0, N)
    tl.atomic_max(y + i, tl.load(x + tl.program_id(0) * N + i) * 3.1 * tl.load(w))


def extremes(x, w, most, least):
    most, least = most.clone(), least.clone()
    kernel = differentiable(extremes_kernel, order=2)
    rows, columns = x.shape
    kernel[(rows, triton.cdiv(columns, 16))](x, w, most, least, rows, COLUMNS=columns, BLOCK=16)
    return most, least


def extremes_reference(x, w, most, least):
    v = x * w
    return torch.maximum(v.amax(0), most), torch.minimum(v.amin(0), least)


def latest(x):
    y = x.new_empty(x.shape[1])
    differentiable(latest_kernel)[(x.shape[0],)](x, y, N=x.shape[1])
    return y


def branching(x):
    most, seen = x.new_full((1,), -1.0), torch.empty_like(x)
    differentiable(branching_kernel, order=2)[(x.shape[0],)](x, most, seen, N=x.shape[1])
    return most, seen


def branching_reference(x):
    return x[::2].exp().max()[None], x * x


def _case(name, device, dtype=torch.float64):
    x = random_tensor(6, 20, device=device, dtype=dtype)
    if name == "extremes":
        w = random_tensor(20, device=device, dtype=dtype)
        # Where one of these is the extreme, memory keeps it.
        most = random_tensor(20, device=device, dtype=dtype)
        least = (-random_tensor(20, device=device, dtype=dtype).detach().abs()).requires_grad_()
        return extremes, extremes_reference, (x, w, most, least)
    x = random_tensor(6, 16, device=device, dtype=dtype)
    if name == "latest":
        # Values tell which was the last.
        rows = latest(x.detach())[None] == x.detach() ** 3
        return latest, lambda x: (x**3 * rows).sum(0), (x,)
    return branching, branching_reference, (x,)


CASES = ["extremes", "latest", "branching"]


def _detached(inputs):
    return tuple(x.detach() for x in inputs)


@pytest.mark.parametrize("name", ["extremes", "branching"])
def test_tangents(device, name):
    op, reference, inputs = _case(name, device)
    tangents = tuple(map(torch.randn_like, inputs))
    given = _detached(inputs)
    found = torch.func.jvp(op, given, tangents)
    torch.testing.assert_close(found, torch.func.jvp(reference, given, tangents))
    for n in range(len(inputs)):
        # One input alone.
        def of(f, n=n):
            def alone(x):
                return f(*given[:n], x, *given[n + 1 :])

            return torch.func.jvp(alone, (given[n],), (tangents[n],))

        torch.testing.assert_close(of(op), of(reference))
    torch.testing.assert_close(torch.func.jacfwd(op)(*given), torch.func.jacfwd(reference)(*given))


def test_tangents_of_an_exchange(device):
    """They are of what is in memory in the end, whoever has left it there."""
    x = random_tensor(6, 16, device=device, dtype=torch.float64).detach()
    t = torch.randn_like(x)
    for _ in range(5):
        with forward_ad.dual_level():
            y, dy = forward_ad.unpack_dual(latest(forward_ad.make_dual(x, t)))
        won = y[None] == x * x * x
        assert (won.sum(0) == 1).all()
        torch.testing.assert_close(dy, (won * 3 * x**2 * t).sum(0))


def test_an_exchange_is_not_run_again(device):
    """Another program might be the last one then."""
    x = random_tensor(6, 16, device=device, dtype=torch.float64).detach()
    t = torch.randn_like(x)

    def transformed(x):
        return torch.func.jvp(latest, (x,), (t[: len(x)],))

    with pytest.raises(AutodiffError, match="'latest_kernel' exchanges floats .*py:.*last"):
        transformed(x)
    torch.testing.assert_close(transformed(x[:1]), (x[0] ** 3, 3 * x[0] ** 2 * t[0]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32])
def test_exchanges_of_floats_are_found(dtype):
    """Those of integers, locks say, are others."""
    types = {torch.float32: "*fp32", torch.float64: "*fp64", torch.int32: "*i32"}[dtype]
    spec = SimpleNamespace(
        target=hopper.TARGET,
        function=latest_kernel,
        ttir=hopper.ttir(latest_kernel, [types, types], {"N": 16}),
    )
    of_state = SimpleNamespace(spec=spec)
    of_state._exchanges = KernelState._exchanges.func(of_state)
    KernelState.refuse_another_run(of_state, (1, 1, 1))
    if dtype == torch.int32:
        assert not of_state._exchanges
        return KernelState.refuse_another_run(of_state, (6, 1, 1))
    with pytest.raises(
        AutodiffError, match=r"'latest_kernel' exchanges floats \(.*test_selected_tangents.py:\d+\)"
    ):
        KernelState.refuse_another_run(of_state, (6, 1, 1))


def test_values_are_rounded_alike(device):
    """The kernels of first and second derivatives compare, bit for bit, what they compute again."""
    x = random_tensor(9, 32, device=device)
    w = random_tensor(1, device=device)

    def scaled(x, w):
        y = x.new_full((32,), float("-inf"))
        differentiable(scaled_kernel, order=2)[(len(x),)](x, w, y, N=32)
        return y

    def second(f):
        (g,) = torch.autograd.grad(f(x, w).sin().sum(), x, create_graph=True)
        return torch.autograd.grad(g.square().sum(), (x, w))

    torch.testing.assert_close(second(scaled), second(lambda x, w: (x * 3.1 * w).amax(0)))


def test_in_place(device):
    """`forward_ad` on the caller's own memory."""
    op_kernel = differentiable(extremes_kernel)
    _, reference, inputs = _case("extremes", device)
    x, w, most, least = (t.detach().clone() for t in inputs)
    tangents = [torch.randn_like(t) for t in (x, w, most, least)]
    wanted = torch.func.jvp(
        reference, tuple(t.clone() for t in (x, w, most, least)), tuple(tangents)
    )[1]
    with forward_ad.dual_level():
        dual = [
            forward_ad.make_dual(t, d.clone())
            for t, d in zip((x, w, most, least), tangents, strict=True)
        ]
        op_kernel[(6, 2)](*dual, 6, COLUMNS=20, BLOCK=16)
        for d, tangent in zip(dual[2:], wanted, strict=True):
            torch.testing.assert_close(forward_ad.unpack_dual(d).tangent, tangent)


def test_single_precision(device):
    op, reference, inputs = _case("extremes", device, torch.float32)
    given, tangents = _detached(inputs), tuple(map(torch.randn_like, inputs))
    torch.testing.assert_close(
        torch.func.jvp(op, given, tangents)[1], torch.func.jvp(reference, given, tangents)[1]
    )


@pytest.mark.parametrize("name", ["extremes", "branching"])
def test_second_derivatives(device, name):
    op, reference, inputs = _case(name, device)

    def second(f):
        y = f(*inputs)
        g = torch.autograd.grad(sum(part.square().sum() for part in y), inputs, create_graph=True)
        return torch.autograd.grad(sum(part.sin().sum() for part in g), inputs)

    torch.testing.assert_close(second(op), second(reference))
    given, tangents = _detached(inputs), tuple(map(torch.randn_like, inputs))

    def of_gradient(f):
        return torch.func.jvp(
            torch.func.grad(lambda *x: sum(y.square().sum() for y in f(*x)), tuple(range(len(x)))),
            given,
            tangents,
        )

    x = inputs
    torch.testing.assert_close(of_gradient(op), of_gradient(reference))


def test_adjoint(device):
    # Which exchange is the last differs from launch to launch.
    for name in ("extremes", "branching"):
        op, _, inputs = _case(name, device)
        given, tangents = _detached(inputs), tuple(map(torch.randn_like, inputs))
        y, t = torch.func.jvp(op, given, tangents)
        y, t = (v if isinstance(v, tuple) else (v,) for v in (y, t))
        u = [torch.randn_like(part) for part in y]
        out = op(*inputs)
        out = out if isinstance(out, tuple) else (out,)
        gradients = torch.autograd.grad(out, inputs, u)
        forward = sum((a * b).sum() for a, b in zip(u, t, strict=True))
        backward = sum((a * b).sum() for a, b in zip(gradients, tangents, strict=True))
        torch.testing.assert_close(forward, backward)


# What is refused.


@triton.jit
def rounded_kernel(x, w, most, N: tl.constexpr):
    """A sum may be rounded otherwise when it is computed again."""
    i = tl.arange(0, N)
    v = tl.sum(tl.load(x + tl.program_id(0) * N + i) * tl.load(w + i), 0)
    tl.atomic_max(most, v)


@triton.jit
def changed_kernel(x, w, most, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + i)
    tl.atomic_max(most + tl.arange(0, N), v)
    tl.store(x + i, 2 * v)


@triton.jit
def returned_kernel(x, w, most, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    before = tl.atomic_xchg(most + tl.arange(0, N), tl.load(x + i))
    tl.store(w + i, before)


@triton.jit
def bits_kernel(x, w, most, N: tl.constexpr):
    """What memory holds are bits of an integer."""
    i = tl.arange(0, N)
    bits = (most + i).to(tl.pointer_type(tl.int32), bitcast=True)
    tl.atomic_max(bits, i + tl.program_id(0))
    tl.atomic_add(most + i, tl.load(x + i))


@pytest.mark.parametrize(
    "kernel, message",
    [
        (bits_kernel, "no forward-mode rule for 'tl.atomic_max' on a differentiated tensor"),
        (rounded_kernel, "may be rounded otherwise when it is computed again"),
        (changed_kernel, "also changes what it loads here"),
        (returned_kernel, "result of an atomic operation that an output depends on"),
    ],
)
def test_refused(device, kernel, message):
    x, w = random_tensor(4, 16, device=device), random_tensor(4, 16, device=device)

    def op(x, w):
        x, w, most = x.clone(), w.clone(), x.new_full((16,), -9.0)
        differentiable(kernel)[(4,)](x, w, most, N=16)
        return most

    with pytest.raises(AutodiffError, match=message):
        torch.func.jvp(op, (x.detach(), w.detach()), (torch.ones_like(x), torch.ones_like(w)))


def test_what_was_there_is_needed(device):
    """What memory held before may be the extreme."""
    x = random_tensor(6, 16, device=device, dtype=torch.float64)
    most, seen = x.new_full((1,), -1.0), torch.empty_like(x)
    differentiable(branching_kernel)[(6,)](x, most, seen, N=16)
    (g,) = torch.autograd.grad(most.sum(), x, create_graph=True)
    with pytest.raises(AutodiffError, match="'most'.*held before the launch.*order=2"):
        torch.autograd.grad(g.sum(), x)


def test_orders_that_are_refused(device):
    op, _, (x,) = _case("branching", device)
    one = torch.ones_like(x)
    with pytest.raises(AutodiffError, match="no tangents of tangents"):
        torch.func.jvp(lambda x: torch.func.jvp(op, (x,), (one,))[1], (x.detach(),), (one,))
    with forward_ad.dual_level(), pytest.raises(AutodiffError, match="a gradient is wanted, too"):
        op(forward_ad.make_dual(x, one))
