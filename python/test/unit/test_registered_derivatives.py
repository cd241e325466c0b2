"""Derivatives of registered operations: tangents, higher orders, and transforms of torch.func."""

import gc
import weakref

import pytest
import torch
import triton
from kernels import derivatives as dv
from torch.autograd import forward_ad
from torch.autograd import functional as af
from triton_autodiff import AutodiffError, autodiff

Tensor = torch.Tensor


pytestmark = pytest.mark.usefixtures("needs_gradients")


def mixed(kernel, x: Tensor, w: Tensor) -> Tensor:
    """PyTorch's code in a stub counts, before and after a launch."""
    return dv.curved(kernel, x * w.sin(), w) * x.cos() + w


def mixed_reference(x, w):
    return dv.curved_reference(x * w.sin(), w) * x.cos() + w


def plain(kernel, x: Tensor, w: Tensor) -> Tensor:
    return dv.curved(kernel, x, w)


def exponential(kernel, x: Tensor, w: Tensor) -> Tensor:
    """The launch saves what it writes, and not what it reads."""
    y = torch.empty_like(x)
    kernel[(1,)](x, y, x.numel(), triton.next_power_of_2(x.numel()))
    return y * w + w


def exponential_reference(x, w):
    return x.exp() * w + w


def inside(kernel, x: Tensor, w: Tensor) -> Tensor:
    """Nobody keeps what the kernel reads."""
    return exponential(kernel, x * w, w)


def listed(
    kernel, xs: list[Tensor], w: Tensor | None, twice: bool = False
) -> tuple[Tensor, Tensor]:
    y = dv.curved(kernel, xs[0], xs[1] if w is None else w)
    return y * 2 if twice else y * 1, (y > 0).sum()


OPERATIONS = {
    "plain": (autodiff(dv.curved_kernel, plain), dv.curved_reference),
    "mixed": (autodiff(dv.curved_kernel, mixed, order=2), mixed_reference),
    "exponential": (autodiff(dv.exponential_kernel, exponential), exponential_reference),
    "inside": (
        autodiff(dv.exponential_kernel, inside, order=2),
        lambda x, w: exponential_reference(x * w, w),
    ),
}
REGISTERED = {
    name: (op.register(f"autodiff_test::derivatives_{name}"), reference)
    for name, (op, reference) in OPERATIONS.items()
}
several = autodiff(dv.curved_kernel, listed).register("autodiff_test::derivatives_listed")
curved, curved_reference = REGISTERED["plain"]
each_operation = pytest.mark.parametrize("name", REGISTERED)


def pair(device, n=7, grad=True):
    x, w = (torch.rand(n, dtype=torch.float64, device=device) + 0.3 for _ in range(2))
    return x.requires_grad_(grad), w.requires_grad_(grad)


def close(found, truth, tolerance=1e-9):
    torch.testing.assert_close(found, truth, rtol=tolerance, atol=tolerance)


def all_close(found, truth, tolerance=1e-9):
    assert len(found) == len(truth)
    for a, b in zip(found, truth, strict=True):
        close(a, b, tolerance)


# ---- of autograd


@each_operation
def test_finite_differences(device, name):
    op, _ = REGISTERED[name]
    assert torch.autograd.gradgradcheck(op, pair(device))
    assert torch.autograd.gradcheck(
        op, pair(device), check_forward_ad=True, check_batched_grad=True, check_undefined_grad=True
    )


@each_operation
def test_third_order(device, name):
    inputs = pair(device)

    def third(f):
        y = f(*inputs).sum()
        for _ in range(3):
            (y,) = torch.autograd.grad(y, inputs[0], create_graph=True)
            y = (y * y.detach().cos()).sum()
        return torch.autograd.grad(y, inputs)

    all_close(*map(third, REGISTERED[name]), 1e-7)


def test_functional(device):
    x, w = pair(device, grad=False)
    v = torch.randn_like(x)

    def losses(by):
        return tuple(lambda x, f=f: by(f(x, w).sin()) for f in (curved, curved_reference))

    scalars, tensors = losses(torch.sum), losses(lambda y: y)
    for vectorize in (False, True):
        close(*(af.hessian(f, x, vectorize=vectorize) for f in scalars))
        close(*(af.jacobian(f, x, vectorize=vectorize) for f in tensors))
    for name in ("hvp", "vhp"):
        all_close(*(getattr(af, name)(f, x, v) for f in scalars))
    all_close(*(af.jvp(f, x, v) for f in tensors))


def test_a_graph_that_is_kept(device):
    """Twice the same, and after the graph is freed an error."""
    x, w = pair(device)
    found = []
    for f in (curved, curved_reference):
        y = f(x, w).sum()
        for _ in range(2):
            (g,) = torch.autograd.grad(y, x, create_graph=True)
            for _ in range(2):
                found.append(torch.autograd.grad(g.square().sum(), (x, w), retain_graph=True))
    for one in found[1:]:
        all_close(one, found[0])
    torch.autograd.grad(g.sum(), x)
    y = curved(x, w).sum()
    torch.autograd.grad(y, x)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(y, x)


def test_several_results_and_lists(device):
    """A count has no gradient; an argument may be None; a result may get no gradient."""
    x, w = pair(device)
    for given in (([x, w], None, True), ([x, x.detach()], w)):
        factor = 2.0 if len(given) == 3 else 1.0
        y, count = several(*given)
        assert not count.requires_grad
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (G,) = torch.autograd.grad(factor * curved_reference(x, w).sum(), x, create_graph=True)
        all_close(torch.autograd.grad(g.sin().sum(), (x, w)),
                  torch.autograd.grad(G.sin().sum(), (x, w)))  # fmt: skip
    x, w = pair(device, grad=False)
    all_close(
        torch.func.jvp(lambda x: several([x, w], None, True)[0], (x,), (w,)),
        torch.func.jvp(lambda x: 2 * curved_reference(x, w), (x,), (w,)),
    )


def test_an_argument_that_is_gone(device):
    """Without order=2, nothing keeps it; first derivatives need it not."""
    op, _ = REGISTERED["exponential"]
    x, w = pair(device)
    h = x * x
    seen = weakref.ref(h)
    y = op(h, w)
    del h
    gc.collect()
    assert seen() is None
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    close(g, 2 * x * (x * x).exp() * w)
    with pytest.raises(AutodiffError, match="gone.*order=2"):
        torch.autograd.grad(g.sum(), x)
    y = REGISTERED["inside"][0](x * x, w)
    gc.collect()
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    truth = exponential_reference(x * x * w, w).sum()
    (G,) = torch.autograd.grad(truth, x, create_graph=True)
    all_close(torch.autograd.grad(g.sum(), (x, w)), torch.autograd.grad(G.sum(), (x, w)))


def test_an_argument_that_has_changed(device):
    op, _ = REGISTERED["exponential"]
    x, w = pair(device)
    h = x * x
    y = op(h, w)
    with torch.no_grad():
        h.zero_()
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    with pytest.raises(AutodiffError, match="gone or has changed"):
        torch.autograd.grad(g.sum(), x)
    h = x * x
    (g,) = torch.autograd.grad(op(h, w).sum(), h, create_graph=True)
    with torch.no_grad():
        h.zero_()
    with pytest.raises(RuntimeError, match="inplace operation"):
        torch.autograd.grad(g.sum(), x)


def test_what_nothing_depends_on_may_be_gone(device):
    """The derivative by w is linear in u alone."""

    def added(kernel, x: Tensor, w: Tensor) -> Tensor:
        return dv.curved(kernel, x, x) + w

    op = autodiff(dv.curved_kernel, added).register(f"autodiff_test::added_{device}")
    x, w = pair(device)
    y = op(x, w * 2)
    gc.collect()
    gs = torch.autograd.grad(y.square().sum(), (x, w), create_graph=True)
    Y = curved_reference(x, x) + w * 2
    Gs = torch.autograd.grad(Y.square().sum(), (x, w), create_graph=True)
    for g, G in zip(gs, Gs, strict=True):
        all_close(torch.autograd.grad(g.sum(), (x, w), retain_graph=True),
                  torch.autograd.grad(G.sum(), (x, w), retain_graph=True))  # fmt: skip


def test_nothing_stays(device):
    """Neither arguments nor histories, once nobody has the gradients."""
    from triton_autodiff.operators import histories

    x, w = pair(device)
    curved(x, w)  # The latest history is kept.
    gc.collect()
    before = len(histories._histories)
    h = x * 1
    seen = weakref.ref(h)
    (g,) = torch.autograd.grad(curved(h, w).sum(), x, create_graph=True)
    torch.autograd.grad(g.sum(), x, create_graph=True)[0].sum().backward()
    del h, g
    x.grad = w.grad = None
    curved(x.detach().requires_grad_(), w)
    gc.collect()
    assert seen() is None and len(histories._histories) <= before


calls: list = []


def drawn(kernel, x: Tensor, w: Tensor) -> Tensor:
    calls.append(1)
    return dv.curved(kernel, x, w * torch.rand_like(w))


random_op = autodiff(dv.curved_kernel, drawn, order=2).register("autodiff_test::derivatives_drawn")


def test_second_derivatives_are_those_of_the_run(device):
    """The stub is not run again: it would draw other numbers."""
    x, w = pair(device)
    torch.manual_seed(4)
    calls.clear()
    (g,) = torch.autograd.grad(random_op(x, w).sum(), x, create_graph=True)
    found = torch.autograd.grad(g.sum(), (x, w))
    assert len(calls) == 1
    torch.manual_seed(4)
    (G,) = torch.autograd.grad(
        curved_reference(x, w * torch.rand_like(w)).sum(), x, create_graph=True
    )
    all_close(found, torch.autograd.grad(G.sum(), (x, w)))


def test_checkpoints(device):
    from torch.utils.checkpoint import checkpoint

    x, w = pair(device)
    y = checkpoint(lambda x: curved(x * 2, w), x, use_reentrant=False)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (G,) = torch.autograd.grad(curved_reference(x * 2, w).sum(), x, create_graph=True)
    all_close(torch.autograd.grad(g.sin().sum(), (x, w)),
              torch.autograd.grad(G.sin().sum(), (x, w)))  # fmt: skip


def test_hooks_on_saved_tensors(device):
    x, w = pair(device)
    with torch.autograd.graph.save_on_cpu():
        y = curved(x, w)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (G,) = torch.autograd.grad(curved_reference(x, w).sum(), x, create_graph=True)
    all_close(torch.autograd.grad(g.sum(), (x, w)), torch.autograd.grad(G.sum(), (x, w)))


def test_without_memory(device):
    """Of meta tensors, a gradient has no derivative, and says so."""
    x = torch.empty(7, device="meta", requires_grad=True)
    (g,) = torch.autograd.grad(curved(x, x).sum(), x, create_graph=True)
    with pytest.raises(AutodiffError, match="cannot be differentiated again.*torch.func"):
        g.sum().backward()


# ---- forward mode


@each_operation
def test_duals(device, name):
    x, w = pair(device, grad=False)
    v = torch.randn_like(x)
    found = []
    for f in REGISTERED[name]:
        with forward_ad.dual_level():
            found.append(forward_ad.unpack_dual(f(forward_ad.make_dual(x, v), w)))
    all_close(*found)


@each_operation
def test_forward_is_the_transpose_of_reverse(device, name):
    """⟨u, J v⟩ = ⟨Jᵀ u, v⟩."""
    op, _ = REGISTERED[name]
    inputs = pair(device)
    along = [torch.randn_like(x) for x in inputs]
    y = op(*inputs)
    u = torch.randn_like(y)
    back = torch.autograd.grad(y, inputs, u)
    _, forth = torch.func.jvp(op, tuple(x.detach() for x in inputs), tuple(along))
    close(u.mul(forth).sum(), sum((g * v).sum() for g, v in zip(back, along, strict=True)))


def test_tangents_of_upstream_gradients(device):
    """A result without a tangent may be multiplied by what has one."""
    x, w = pair(device)
    factor, v = torch.rand_like(x), torch.randn_like(x)

    def tangent(f):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(factor, v)
            (g,) = torch.autograd.grad((f(x, w) * dual).sum(), x)
            return forward_ad.unpack_dual(g).tangent

    close(tangent(curved), tangent(curved_reference))


# ---- torch.func


def transforms(x, w, v):
    func = torch.func

    def scalar(f):
        return lambda x, w: f(x, w).sin().sum()

    return (
        lambda f: func.grad(scalar(f), (0, 1))(x, w),
        lambda f: func.vjp(f, x, w)[1](v),
        lambda f: func.jvp(f, (x, w), (v, v)),
        lambda f: [func.jacrev(f)(x, w), func.jacfwd(f)(x, w)],
        lambda f: [func.hessian(scalar(f))(x, w)],
        lambda f: [func.jacrev(func.jacfwd(f, 1), 0)(x, w)],
        lambda f: func.jvp(func.grad(scalar(f)), (x, w), (v, v)),
        lambda f: [func.grad(lambda x: func.jvp(f, (x, w), (v, v))[1].sum())(x)],
        lambda f: [func.linearize(f, x, w)[1](v, v)],
        lambda f: [func.vmap(f, (0, None))(torch.stack([x, v.exp()]), w)],
        lambda f: [func.vmap(func.grad(scalar(f), 1), (0, None))(torch.stack([x, v.exp()]), w)],
        lambda f: [func.grad(lambda w: func.vmap(f, (0, None))(torch.stack([x, w]), w).sum())(w)],
        lambda f: [func.vmap(func.vmap(f, (0, None)), (0, None))(x.expand(2, 3, 7), w)],
    )


@each_operation
def test_func(device, name):
    for transform in transforms(*pair(device, grad=False), torch.randn(7, device=device).double()):
        all_close(*map(transform, REGISTERED[name]), 1e-8)


def test_func_beside_autograd(device):
    """What is not transformed may require a gradient, and autograd differentiates a transform."""
    x, w = pair(device)

    def outer(f):
        g = torch.func.grad(lambda x: f(x, w).sin().sum())(x)
        return torch.autograd.grad(g.square().sum(), (x, w))

    all_close(*map(outer, (curved, curved_reference)))
    with torch.no_grad():
        close(
            *(torch.func.grad(lambda x, f=f: f(x, w).sum())(x) for f in (curved, curved_reference))
        )


def written(kernel, x: Tensor, w: Tensor) -> Tensor:
    kernel[(1,)](x, w, x.numel(), 16)
    return x + 0


def part(kernel, x: Tensor, w: Tensor) -> Tensor:
    dv.curved(kernel, x, w)
    return x[1:]


@pytest.mark.parametrize("transform", ["grad", "jvp", "vmap", "duals"])
@pytest.mark.parametrize(
    ("kernel", "stub", "message"),
    [
        (dv.square_kernel, written, "changes its argument 'x'|'x_ptr' .* is written by the kernel"),
        (dv.curved_kernel, part, "memory of its argument 'x'"),
    ],
)
def test_it_is_functional_under_transforms(device, kernel, stub, message, transform, operator_name):
    op = autodiff(kernel, stub).register(operator_name(f"{stub.__name__}_{transform}"))
    x, w = pair(device, grad=False)

    def duals():
        with forward_ad.dual_level():
            op(forward_ad.make_dual(x * 1, w), w)

    calls = {
        "grad": lambda: torch.func.grad(lambda x: op(x, w).sum())(x),
        "jvp": lambda: torch.func.jvp(lambda x: op(x, w), (x,), (w,)),
        "vmap": lambda: torch.func.vmap(op)(x[None], w[None]),
        "duals": duals,
    }
    with pytest.raises(AutodiffError, match=message):
        calls[transform]()


def test_randomness_under_vmap(device):
    x, w = torch.ones(3, 8, device=device), torch.ones(8, device=device)
    for given, dims in (((x, x), 0), ((x, w), (0, None))):
        same = torch.func.vmap(random_op, dims, randomness="same")(*given)
        assert torch.equal(same[0], same[1])
        different = torch.func.vmap(random_op, dims, randomness="different")(*given)
        assert not torch.equal(different[0], different[1])
        with pytest.raises(RuntimeError, match="randomness"):
            torch.func.vmap(random_op, dims)(*given)
    # Of no batch, too.
    drawn = torch.func.vmap(lambda _: random_op(w, w), randomness="different")(x)
    assert not torch.equal(drawn[0], drawn[1])
    with pytest.raises(RuntimeError, match="randomness"):
        torch.func.vmap(lambda x: x * random_op(w, w))(x)


def test_a_pullback_has_no_hessian(device, operator_name):
    def stub(kernel, x: Tensor) -> Tensor:
        y = torch.empty_like(x)
        kernel[(1,)](x, y, x.numel(), 16)
        return y

    op = autodiff(dv.signs_kernel, stub).register(operator_name("derivatives_signs"))
    x = torch.randn(9, dtype=torch.float64, device=device, requires_grad=True)
    (g,) = torch.autograd.grad(op(x).sum(), x, create_graph=True)
    with pytest.raises(AutodiffError, match="only a pullback"):
        torch.autograd.grad(g.sum(), x)
    for transform in (torch.func.hessian, torch.func.jacfwd):
        with pytest.raises(AutodiffError, match="only a pullback"):
            transform(lambda x: op(x).sum())(x.detach())
