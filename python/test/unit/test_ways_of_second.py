"""Second derivatives of kernels with loops, by the plan of the first ones and by the other way."""

import itertools

import gradients
import orders
import pytest
import torch
import triton
import triton.language as tl
from gradients import random_tensor
from kernels import derivatives as dv
from kernels import tf32
from triton.backends.autodiff import AutodiffError, autodiff, differentiable
from triton.backends.autodiff.errors import DoesNotFit, Miscompiled, NoTangents
from triton.backends.autodiff.launching.higher import WithoutPlan
from triton.backends.autodiff.launching.pure import PureLaunch
from triton.backends.autodiff.programs import dual


def _attention(device):
    import flash_attention_v2 as flash

    def stub(kernel, q, k, v):
        return flash.attention(kernel, q, k, v, True, 0.25, BLOCK_M=32, BLOCK_N=16)

    inputs = [random_tensor(1, 2, 40, 16, device=device, scale=0.5) for _ in range(3)]
    return flash.attention_kernel, stub, lambda q, k, v: _by_softmax(q, k, v), inputs


def _by_softmax(q, k, v):
    scores = tf32.product(0.25 * q, k.transpose(-1, -2))
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return tf32.product(scores.masked_fill(hidden, float("-inf")).softmax(-1), v)


def _softmax(device):
    from kernels import softmax

    inputs = [random_tensor(5, 70, device=device)]
    return softmax.persistent_softmax_kernel, softmax.persistent, softmax.softmax_reference, inputs


def _norm(device):
    import layer_norm as looped

    inputs = [random_tensor(*shape, device=device) for shape in ((7, 50), (50,), (50,))]
    return looped.layer_norm_kernel, looped.layer_norm, _norm_reference, inputs


def _norm_reference(x, w, b):
    # PyTorch's own is wrong in reverse over forward.
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * w + b


@pytest.fixture
def products_in_tf32():
    """On a GPU, products of float32 are rounded as those of kernels are."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    yield
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("make", [_attention, _softmax, _norm])
@pytest.mark.usefixtures("products_in_tf32")
def test_orders(device, make):
    """Tangents and second derivatives by the plan of the first ones, and by the other way."""
    kernel, stub, reference, inputs = make(device)
    op = autodiff(kernel, stub, order=2)
    upstream = [torch.randn_like(op(*inputs))]
    orders.assert_orders_close(op, reference, inputs, upstream, gradients._copy, gradients.floor)


@pytest.mark.parametrize("make", [_softmax, _norm])
def test_both_ways_are_equal(device, make, monkeypatch):
    kernel, stub, _, inputs = make(device)
    op, found = autodiff(kernel, stub), []
    upstream = torch.randn_like(op(*inputs)).requires_grad_()
    along = [torch.randn_like(x) for x in inputs]
    planned = PureLaunch.by_plan
    for is_planned in (True, False):
        asked = []

        def by_plan(*args, is_planned=is_planned, asked=asked):
            asked.append(is_planned)
            if not is_planned:
                raise WithoutPlan("the other way is tested")
            return planned(*args)

        monkeypatch.setattr(PureLaunch, "by_plan", by_plan)
        gs = torch.autograd.grad(op(*inputs), inputs, upstream, create_graph=True)
        found.append(torch.autograd.grad(gs, (*inputs, upstream), along))
        assert asked == [is_planned]
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "block, kind", [(16, NoTangents), (32, Miscompiled), (64, DoesNotFit), (128, AutodiffError)]
)
def test_only_what_has_no_tangent_goes_the_other_way(device, block, kind, monkeypatch):
    """It says why; a fault of the compiler stays an error. Each block has a plan of its own."""

    def refused(*_):
        raise kind("it cannot be")

    reasons, planned = [], PureLaunch.by_plan

    def by_plan(launch, *args):
        try:
            return planned(launch, *args)
        except WithoutPlan as reason:
            reasons.append(str(reason))
            raise

    def stub(kernel, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), block),)](x, y, x.numel(), block)
        return y

    monkeypatch.setattr(PureLaunch, "by_plan", by_plan)
    monkeypatch.setattr(dual, "kernel_with_tangents", refused)
    x = random_tensor(37, device=device, dtype=torch.float64)
    (g,) = torch.autograd.grad(autodiff(dv.exponential_kernel, stub)(x).sum(), x, create_graph=True)
    if kind is AutodiffError:
        with pytest.raises(AutodiffError, match="it cannot be"):
            torch.autograd.grad(g.sum(), x)
        return
    torch.testing.assert_close(torch.autograd.grad(g.sum(), x)[0], x.exp())
    assert reasons == ["it cannot be"]


@triton.jit
def squash(x):
    return x / (1.0 + tl.abs(x))


@triton.jit
def decays_kernel(x, v, y, n, SUMS_FIRST: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    a = tl.where(mask, tl.load(x + i, mask, 0.0) - 800.0, 0.0)
    # Infinite in rows of padding.
    decays = tl.where(i[:, None] >= i[None, :], tl.exp(a[:, None] - a[None, :]), 0.0)
    values = tl.load(v) + tl.zeros([BLOCK, BLOCK], x.dtype.element_ty)
    product = tl.dot(decays, values, input_precision="ieee")
    rows = squash(tl.sum(product, 1)) if SUMS_FIRST else tl.sum(squash(product), 1)
    tl.store(y, tl.sum(tl.where(mask, rows, 0.0), 0))


@pytest.mark.parametrize("sums_first", [False, True])
def test_infinite_rows(device, sums_first):
    """A cotangent is zero there, so that its tangent does not depend on what moves."""

    def stub(kernel, x, v):
        y = x.new_empty(1)
        kernel[(1,)](x, v, y, x.numel(), SUMS_FIRST=sums_first, BLOCK=16)
        return y

    def reference(x, v):
        product = (x[:, None] - x[None, :]).exp().tril().sum(1, keepdim=True).expand(-1, 16) * v
        if sums_first:
            product = product.sum(1)
        return (product / (1 + product.abs())).sum().reshape(1)

    inputs = [random_tensor(size, device=device, dtype=torch.float64) for size in (11, 1)]
    op = autodiff(decays_kernel, stub, order=2)
    upstream = [torch.randn_like(op(*inputs))]
    orders.assert_orders_close(op, reference, inputs, upstream, gradients._copy, gradients.floor)


@triton.jit
def five_kernel(a, b, c, d, e, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    product = tl.load(a + i, mask) * tl.load(b + i, mask) * tl.load(c + i, mask)
    tl.store(y + i, product * tl.exp(tl.load(d + i, mask) * tl.load(e + i, mask)), mask)


def test_few_kernels_for_many_sets(device):
    """Some sets of moving inputs have a kernel of their own, others take a wider one."""
    kernel = differentiable(five_kernel)

    def op(*inputs):
        y = torch.empty_like(inputs[0])
        kernel[(2,)](*inputs, y, 20, BLOCK=16)
        return y

    def reference(a, b, c, d, e):
        return a * b * c * (d * e).exp()

    inputs = [random_tensor(20, device=device, dtype=torch.float64).detach() for _ in range(5)]
    tangents = [torch.randn_like(x) for x in inputs]
    for size in range(1, 6):
        for moving in itertools.combinations(range(5), size):
            found = []
            for f in (op, reference):

                def part(*moved, f=f, moving=moving):
                    given = list(inputs)
                    for n, x in zip(moving, moved, strict=True):
                        given[n] = x
                    return f(*given)

                at, along = ([t[n] for n in moving] for t in (inputs, tangents))
                jvp = torch.func.jvp(part, (*at,), (*along,))
                squared = torch.func.grad(lambda *x: part(*x).square().sum())
                found.append((jvp, torch.func.jvp(squared, (*at,), (*along,))))
            torch.testing.assert_close(*found)
    given = (*inputs, op(*inputs), 20)
    ((state, *_),) = kernel._plans(given, {"BLOCK": 16, "grid": (2,)})
    assert len(state._with_tangents) < 14
