"""Derivatives in graphs: transforms of torch.func inside of torch.compile and make_fx."""

import functools
import gc

import pytest
import torch
from kernels import derivatives as dv
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from triton_autodiff import AutodiffError, autodiff, differentiable
from triton_autodiff.launching.pure import PureLaunch

Tensor = torch.Tensor
func = torch.func


pytestmark = pytest.mark.usefixtures("needs_gradients")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def stub(kernel, x: Tensor, w: Tensor) -> Tensor:
    return dv.curved(kernel, x, w)


kernel = differentiable(dv.curved_kernel)
KINDS = {
    "launch": lambda x, w: dv.curved(kernel, x, w),
    "operation": autodiff(dv.curved_kernel, stub),
    "registered": autodiff(dv.curved_kernel, stub).register("autodiff_test::graph_derivatives"),
}


def loss(f):
    return lambda x, w: f(x, w).sin().sum()


TRANSFORMS = {
    "grad": lambda f, x, w: func.grad(loss(f), 1)(x, w),
    "vjp": lambda f, x, w: func.vjp(f, x, w)[1](w)[0],
    "jvp": lambda f, x, w: func.jvp(f, (x, w), (w, x))[1],
    "vmap": lambda f, x, w: func.vmap(f, (0, None))(torch.stack([x, w]), w),
    "grad of vmap": lambda f, x, w: func.grad(
        lambda x: func.vmap(f, (0, None))(torch.stack([x, x * w]), w).sum()
    )(x),
    "vmap of grad": lambda f, x, w: func.vmap(func.grad(loss(f)))(
        torch.stack([x, w]), torch.stack([w, x])
    ),
    "jacrev": lambda f, x, w: func.jacrev(f)(x, w),
    "jacfwd": lambda f, x, w: func.jacfwd(f)(x, w),
    "hessian": lambda f, x, w: func.hessian(loss(f))(x, w),
    "mixed": lambda f, x, w: func.jacrev(func.jacfwd(f, 1), 0)(x, w),
    "grad of grad": lambda f, x, w: func.grad(lambda x: func.grad(loss(f))(x, w).sum())(x),
    "grad of jvp": lambda f, x, w: func.grad(
        lambda x: func.jvp(lambda x: f(x, w), (x,), (w,))[1].sum()
    )(x),
    "third": lambda f, x, w: func.grad(
        lambda x: func.grad(lambda w: func.grad(loss(f))(x, w).cos().sum())(w).sum()
    )(x),
}
RECORDERS = {
    "compiled": lambda f, *args: torch.compile(f, backend="aot_eager", fullgraph=True),
    "dynamic": lambda f, *args: torch.compile(f, backend="aot_eager", dynamic=True),
    "read by Dynamo": lambda f, *args: torch.compile(f, backend="eager"),
    "make_fx": lambda f, *args: make_fx(f)(*args),
    "symbolic": lambda f, *args: make_fx(f, tracing_mode="symbolic")(*args),
}


def pair(device, n=7):
    return [torch.rand(n, dtype=torch.float64, device=device) + 0.3 for _ in range(2)]


def close(found, truth, tolerance=1e-9):
    torch.testing.assert_close(found, truth, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("recorder", RECORDERS)
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_transforms(device, kind, transform, recorder):
    """A graph is for other numbers than those that it was made with."""

    def of(f):
        return lambda x, w: TRANSFORMS[transform](f, x, w)

    graph = RECORDERS[recorder](of(KINDS[kind]), *pair(device))
    for _ in range(2):
        x, w = pair(device)
        close(graph(x, w), of(dv.curved_reference)(x, w), 1e-7)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kind", ["operation", "registered"])
def test_gradients_of_transforms(device, kind, transform):
    """Autograd differentiates the compiled function once more."""
    compiled = torch.compile(
        lambda x, w: TRANSFORMS[transform](KINDS[kind], x, w), backend="aot_eager", fullgraph=True
    )
    leaves, found = [x.requires_grad_() for x in pair(device)], []
    for f in (compiled, lambda x, w: TRANSFORMS[transform](dv.curved_reference, x, w)):
        found.append(torch.autograd.grad(f(*leaves).square().sum(), leaves))
    for a, b in zip(*found, strict=True):
        close(a, b, 1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("transform", ["grad", "jvp", "vmap of grad", "hessian"])
def test_inductor(device, transform):
    compiled = torch.compile(lambda x, w: TRANSFORMS[transform](KINDS["registered"], x, w))
    leaves = [x.requires_grad_() for x in pair(device)]
    found = compiled(*leaves)
    expected = TRANSFORMS[transform](dv.curved_reference, *leaves)
    close(found, expected)
    for a, b in zip(
        torch.autograd.grad(found.sum(), leaves),
        torch.autograd.grad(expected.sum(), leaves),
        strict=True,
    ):
        close(a, b)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("kind", KINDS)
def test_duals(device, kind, backend):
    """A graph enters forward mode without PyTorch's Python, and tangents are there all the same."""
    x, w = pair(device)

    def tangent(f, x, v):
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(f(forward_ad.make_dual(x, v), w)).tangent

    compiled = torch.compile(lambda x, v: tangent(KINDS[kind], x, v), backend=backend)
    for _ in range(2):
        x, v = pair(device)
        close(compiled(x, v), tangent(dv.curved_reference, x, v))


def test_a_registered_operation_without_transforms_is_one_node(device):
    """Beside a transform, too; under one, its launches are."""
    op, graphs = KINDS["registered"], []

    def keep(graph, _):
        graphs.append(graph)
        return graph

    x, w = pair(device)
    compiled = torch.compile(
        lambda x, w: op(x, w) + func.vmap(op, (0, None))(x[None], w)[0], backend=keep
    )
    close(compiled(x, w), 2 * dv.curved_reference(x, w))
    targets = [str(node.target) for node in graphs[0].graph.nodes]
    assert targets.count("autodiff_test.graph_derivatives.default") >= 1
    traced = make_fx(lambda x: func.vmap(op, (0, None))(torch.stack([x, x]), w))(x)
    targets = [str(node.target) for node in traced.graph.nodes]
    assert targets.count("autodiff_test.graph_derivatives.default") == 2
    traced = make_fx(lambda x: func.grad(lambda x: op(x, w).sum())(x))(x)
    assert any("_derivative" in str(node.target) for node in traced.graph.nodes)


square = differentiable(dv.square_kernel)
halve = differentiable(dv.halves_kernel)


def squared(x, w):
    y = x * 1
    square[(2,)](y, w, y.numel(), 32)
    return y


def test_in_place(device):
    def transformed(f):
        return lambda x, w: func.grad(lambda x: f(x, w).sin().sum())(x)

    x, w = pair(device)
    for recorder in RECORDERS:
        found = RECORDERS[recorder](transformed(squared), x, w)(x, w)
        close(found, transformed(lambda x, w: x**2 * w)(x, w))


def test_a_derivative_by_what_is_left(device):
    """What the kernel does not store keeps its value, and its tangent."""

    def halves(x, y):
        y = y * 1
        halve[(1,)](x, y, 32, 32)
        return y

    def reference(x, y):
        return torch.cat([x[:16] ** 3, x.new_full((8,), 7), y[24:]])

    x, y = pair(device, 32)
    for transform in ("grad", "jvp", "grad of grad"):
        graph = make_fx(functools.partial(TRANSFORMS[transform], halves))(x, y)
        close(graph(y, x), TRANSFORMS[transform](reference, y, x))


def drawn(kernel, x: Tensor) -> Tensor:
    return dv.curved(kernel, x, torch.rand_like(x))


def test_randomness_under_vmap(device):
    """Numbers that a graph draws are not drawn again: they differ, or there is an error."""
    op, x = autodiff(dv.curved_kernel, drawn), torch.ones(3, 8, device=device)

    def mapped(randomness):
        return lambda x: func.vmap(op, randomness=randomness)(x)

    found = torch.compile(mapped("different"), backend="aot_eager")(x)
    assert not torch.equal(found[0], found[1])
    for randomness in ("same", "error"):
        with pytest.raises(RuntimeError, match="randomness"):
            make_fx(mapped(randomness))(x)


def signs(kernel, x):
    y = torch.empty_like(x)
    kernel[(1,)](x, y, x.numel(), 16)
    return y


def test_a_pullback_has_no_tangent(device):
    op, x = autodiff(dv.signs_kernel, signs), torch.randn(9, device=device)
    with pytest.raises(AutodiffError, match="only a pullback"):
        make_fx(lambda x: func.jacfwd(op)(x))(x)
    found = make_fx(lambda x: func.grad(lambda x: op(x).sum())(x))(x)(x)
    close(found, func.grad(lambda x: op(x).sum())(x), 1e-6)


def test_graphs_are_all_that_keeps_launches(device):
    """There is no table of launches: what a graph is made of goes away with it."""
    x, w = pair(device)

    def use():
        graph = make_fx(lambda x: func.jvp(lambda x: KINDS["launch"](x, w), (x,), (w,))[1])(x)
        _, push = func.linearize(lambda x: KINDS["operation"](x, w), x)
        return graph(x) + push(w)

    def count():
        gc.collect()
        return sum(type(thing) is PureLaunch for thing in gc.get_objects())

    use()
    before = count()
    for _ in range(3):
        use()
    assert count() <= before


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_operator_is_as_it_says(device, order):
    """PyTorch's checks of operators, for a launch, its gradients and those of its tangents."""
    transform = TRANSFORMS[("jvp", "grad", "grad of grad")[order]]
    traced = make_fx(lambda x, w: transform(KINDS["launch"], x, w))(*pair(device))
    values: dict = {}

    class Run(torch.fx.Interpreter):
        def call_function(self, target, args, kwargs):
            if "_derivative" in str(target):
                values[target] = args, kwargs
            return super().call_function(target, args, kwargs)

    Run(traced).run(*pair(device))
    assert values
    for target, (args, kwargs) in values.items():
        found = torch.library.opcheck(
            target, args, kwargs, test_utils=("test_schema", "test_faketensor")
        )
        assert set(found.values()) == {"SUCCESS"}
