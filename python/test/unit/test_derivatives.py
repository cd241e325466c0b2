"""Tangents, second and higher derivatives, and transforms of torch.func: formulas are the truth."""

import gc

import pytest
import torch
import triton
from kernels import derivatives as dv
from torch.autograd import forward_ad
from torch.autograd import functional as af
from triton.backends.autodiff import AutodiffError, autodiff, differentiable
from triton.backends.autodiff.errors import ArgumentError

curved = autodiff(dv.curved_kernel, dv.curved)


def pair(device, n=37, dtype=torch.float64, grad=True):
    x = (torch.rand(n, dtype=torch.float64, device=device) + 0.3).to(dtype)
    w = (torch.rand(n, dtype=torch.float64, device=device) + 0.3).to(dtype)
    return x.requires_grad_(grad), w.requires_grad_(grad)


def close(found, truth, tolerance=1e-9):
    found, truth = found.detach().double(), truth.detach().double()
    torch.testing.assert_close(found, truth, rtol=tolerance, atol=tolerance)


# ---- forward mode


@pytest.mark.parametrize("which", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_tangents(device, which, dtype):
    inputs = pair(device, dtype=dtype, grad=False)
    along = [torch.randn_like(x) for x in inputs]
    with forward_ad.dual_level():
        given = [
            forward_ad.make_dual(x, v) if n in which else x
            for n, (x, v) in enumerate(zip(inputs, along, strict=True))
        ]
        value, tangent = forward_ad.unpack_dual(curved(*given))
    X = [x.double() for x in inputs]
    V = [v.double() if n in which else torch.zeros_like(v).double() for n, v in enumerate(along)]
    truth, expected = torch.func.jvp(dv.curved_reference, tuple(X), tuple(V))
    tolerance = {torch.float64: 1e-9, torch.float32: 1e-5}.get(dtype, 0.03)
    close(value, truth, tolerance)
    close(tangent, expected, tolerance)
    assert tangent.dtype == dtype


def test_known_launches_have_tangents(device):
    """A launch that is found without Triton has no tangents; one with tangents is not found so."""
    x, w = pair(device, grad=False)
    for _ in range(4):
        curved(x, w)
    test_tangents(device, (0,), torch.float64)
    close(curved(x, w), dv.curved_reference(x, w))


def test_tangents_in_place(device):
    """The given tangent changes with the value, once."""
    x, w = pair(device, grad=False)
    v, old = torch.randn_like(x), x.clone()
    with forward_ad.dual_level():
        y = forward_ad.make_dual(x, v.clone())
        given = forward_ad.unpack_dual(y).tangent
        differentiable(dv.square_kernel)[(2,)](y, w, 37, 32)
        value, tangent = forward_ad.unpack_dual(y)
        assert tangent is given or tangent.data_ptr() == given.data_ptr()
        close(value, old**2 * w)
        close(tangent, 2 * old * v * w)


def test_tangents_of_a_strided_tensor_in_place(device):
    base = torch.rand(37, 3, dtype=torch.float64, device=device)
    w = torch.rand(37, dtype=torch.float64, device=device)
    x, v = base[:, 1].clone(), torch.randn(37, 3, dtype=torch.float64, device=device)[:, 2]
    with forward_ad.dual_level():
        y = forward_ad.make_dual(x, v)
        differentiable(dv.square_kernel)[(2,)](y, w, 37, 32)
        close(forward_ad.unpack_dual(y).tangent, 2 * base[:, 1] * v * w)


@pytest.mark.parametrize("moves", [False, True])
def test_tangents_through_atomics(device, moves):
    """Onto an output with a tangent; what is added is added once."""
    x = torch.randn(50, dtype=torch.float64, device=device)
    places = torch.randint(0, 9, (50,), device=device)
    y, vx, vy = torch.ones(9, dtype=x.dtype, device=device), torch.randn_like(x), torch.randn(9)
    vy = vy.to(y)
    with forward_ad.dual_level():
        out = forward_ad.make_dual(y, vy.clone()) if moves else y
        kernel = differentiable(dv.add_sines_kernel)
        kernel[(2,)](forward_ad.make_dual(x, vx), places, out, 50, 32)
        value, tangent = forward_ad.unpack_dual(out)
    zeros = torch.zeros_like(y)
    close(value, 1 + zeros.index_add(0, places, x.sin()))
    close(tangent, (vy if moves else 0) + zeros.index_add(0, places, x.cos() * vx))


@pytest.mark.parametrize("moves", [False, True])
def test_tangents_of_what_is_not_stored(device, moves):
    """Constants have none; what the kernel leaves keeps its own."""
    x, vx = (torch.randn(32, dtype=torch.float64, device=device) for _ in range(2))
    y, vy = (torch.randn(32, dtype=torch.float64, device=device) for _ in range(2))
    before = y.clone()
    with forward_ad.dual_level():
        out = forward_ad.make_dual(y, vy.clone()) if moves else y
        differentiable(dv.halves_kernel)[(1,)](forward_ad.make_dual(x, vx), out, 32, 32)
        value, tangent = forward_ad.unpack_dual(out)
    close(value, torch.cat([x[:16] ** 3, x.new_full((8,), 7), before[24:]]))
    kept = vy[24:] if moves else torch.zeros_like(vy[24:])
    close(tangent, torch.cat([3 * x[:16] ** 2 * vx[:16], x.new_zeros(8), kept]))


@pytest.mark.parametrize("flag", [0, 1])
def test_tangents_of_chosen_pointers(device, flag):
    a, b, v = (torch.randn(20, dtype=torch.float64, device=device) for _ in range(3))
    y = torch.empty_like(a)
    with forward_ad.dual_level():
        differentiable(dv.chosen_kernel)[(1,)](forward_ad.make_dual(a, v), b, y, 20, flag, 32)
        tangent = forward_ad.unpack_dual(y).tangent
    close(tangent, 2 * a * v if flag > 0 else torch.zeros_like(a))


def test_tangents_of_views(device):
    x, w = pair(device, grad=False)
    v = torch.randn_like(x)
    buffer = torch.zeros(3, 37, dtype=x.dtype, device=device)
    with forward_ad.dual_level():
        kernel = differentiable(dv.curved_kernel)
        kernel[(2,)](forward_ad.make_dual(x, v), w, buffer[1], 37, 32)
        tangent = forward_ad.unpack_dual(buffer).tangent
    expected = torch.func.jvp(lambda x: dv.curved_reference(x, w), (x,), (v,))[1]
    close(tangent, torch.stack([torch.zeros_like(x), expected, torch.zeros_like(x)]))


def test_reverse_over_forward(device):
    """A loss on values and tangents."""
    x, w = pair(device)
    v = torch.randn_like(x).requires_grad_()

    def loss(f, x, w, v):
        with forward_ad.dual_level():
            value, tangent = forward_ad.unpack_dual(f(forward_ad.make_dual(x, v), w))
            return (value.sin() * tangent**2).sum()

    found = torch.autograd.grad(loss(curved, x, w, v), (x, w, v))
    expected = torch.autograd.grad(loss(dv.curved_reference, x, w, v), (x, w, v))
    for a, b in zip(found, expected, strict=True):
        close(a, b)


def test_forward_over_reverse(device):
    x, w = pair(device)
    v = torch.randn_like(x)

    def tangent_of_gradient(f):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, v)
            (g,) = torch.autograd.grad(f(dual, w).sin().sum(), w)
            return forward_ad.unpack_dual(g).tangent

    close(tangent_of_gradient(curved), tangent_of_gradient(dv.curved_reference))


def test_tangents_that_do_not_fit(device):
    x, w = pair(device, grad=False)
    with pytest.raises((ArgumentError, RuntimeError)):
        with forward_ad.dual_level():
            curved(forward_ad.make_dual(x, torch.randn(36, dtype=x.dtype, device=device)), w)


# ---- second derivatives


def test_gradgradcheck(device):
    assert torch.autograd.gradgradcheck(curved, pair(device, 7))
    assert torch.autograd.gradcheck(curved, pair(device, 7), check_forward_ad=True)


def test_by_an_input_that_nobody_wanted(device):
    """Training on forces: the first gradient is by positions, the second by parameters."""
    x, w = pair(device)
    w.requires_grad_(False)
    y = curved(x, w)
    (force,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(force.sum(), w)
    w.requires_grad_()
    found = torch.autograd.grad(
        torch.autograd.grad(curved(x, w).sum(), x, create_graph=True)[0].square().sum(), w
    )[0]
    expected = torch.autograd.grad(
        torch.autograd.grad(dv.curved_reference(x, w).sum(), x, create_graph=True)[0]
        .square()
        .sum(),
        w,
    )[0]
    close(found, expected)


def test_third_order(device):
    x, w = pair(device)

    def third(f):
        y = f(x, w).sum()
        for _ in range(3):
            (y,) = torch.autograd.grad(y, x, create_graph=True)
            y = (y * y.detach().cos()).sum()
        return torch.autograd.grad(y, (x, w))

    for a, b in zip(third(curved), third(dv.curved_reference), strict=True):
        close(a, b, 1e-7)


def test_zeros_are_no_constants(device):
    """At b = 0, log(1 + ab) has derivatives through what is multiplied by zero."""
    a = torch.tensor([0.7], dtype=torch.float64, device=device)
    b = torch.zeros_like(a)
    f = torch.func.jacfwd(torch.func.jacfwd(curved, 1), 1)
    g = torch.func.jacfwd(torch.func.jacfwd(dv.curved_reference, 1), 1)
    close(f(a, b), g(a, b))
    mixed = torch.func.jacfwd(torch.func.jacfwd(curved, 0), 1)
    close(mixed(a, b), torch.func.jacfwd(torch.func.jacfwd(dv.curved_reference, 0), 1)(a, b))

    def third(f):
        y = f(a.clone().requires_grad_(), by := b.clone().requires_grad_())
        (y,) = torch.autograd.grad(y, by, create_graph=True)
        (y,) = torch.autograd.grad(y, by, create_graph=True)
        return torch.autograd.grad(y, by)[0]

    close(third(curved), third(dv.curved_reference))


def test_stopped_at_every_order(device):
    x = torch.rand(9, dtype=torch.float64, device=device).add(0.5).requires_grad_()
    op = autodiff(dv.stopped_kernel, lambda k, x: _filled(k, x))
    (g,) = torch.autograd.grad(op(x).sum(), x, create_graph=True)
    close(g, 2 * x**4)
    close(torch.autograd.grad(g.sum(), x)[0], 2 * x**3)


def _filled(kernel, x):
    y = torch.empty_like(x)
    kernel[(1,)](x, y, x.numel(), triton.next_power_of_2(x.numel()))
    return y


def test_a_pullback_has_no_hessian(device):
    """A straight-through gradient is no derivative: nobody knows its tangent."""
    x = torch.randn(9, dtype=torch.float64, device=device, requires_grad=True)
    op = autodiff(dv.signs_kernel, _filled)
    (g,) = torch.autograd.grad(op(x).sum(), x, create_graph=True)
    with pytest.raises(AutodiffError, match="only a pullback"):
        torch.autograd.grad(g.sum(), x)
    with forward_ad.dual_level(), pytest.raises(AutodiffError, match="only a pullback"):
        op(forward_ad.make_dual(x.detach(), torch.ones_like(x)))


@pytest.mark.parametrize("order", [1, 2])
def test_inputs_that_are_gone(device, order):
    """y = exp(h) keeps y for its first derivative, and h is freed."""
    kernel = differentiable(dv.exponential_kernel, order=order)

    def f(x):
        h = x * x
        y = torch.empty_like(x)
        kernel[(1,)](h, y, x.numel(), 16)
        return y

    x = torch.rand(9, dtype=torch.float64, device=device, requires_grad=True)
    y = f(x)
    gc.collect()
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    close(g, 2 * x * (x * x).exp())
    if order == 2:
        close(torch.autograd.grad(g.sum(), x)[0], (2 + 4 * x * x) * (x * x).exp())
    else:
        with pytest.raises(AutodiffError, match="'x_ptr'.*gone.*order=2"):
            torch.autograd.grad(g.sum(), x)


@pytest.mark.parametrize("order", [1, 2])
def test_inputs_that_have_changed(device, order):
    kernel = differentiable(dv.exponential_kernel, order=order)
    x = torch.rand(9, dtype=torch.float64, device=device, requires_grad=True)
    h, y = x * x, torch.empty_like(x)
    kernel[(1,)](h, y, 9, 16)
    with torch.no_grad():
        h.zero_()
    if order == 2:
        with pytest.raises((AutodiffError, RuntimeError), match="in-?place"):
            torch.autograd.grad(y.sum(), x, create_graph=True)
        return
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    close(g, 2 * x * (x * x).exp())
    with pytest.raises(AutodiffError, match="'x_ptr'.*changed.*order=2"):
        torch.autograd.grad(g.sum(), x)


@pytest.mark.parametrize("order", [1, 2])
def test_in_place_twice(device, order):
    kernel = differentiable(dv.square_kernel, order=order)

    def f(x, w):
        y = x.sin()
        for _ in range(2):
            kernel[(1,)](y, w, 7, 16)
        return y

    inputs = pair(device, 7)
    if order == 2:
        assert torch.autograd.gradgradcheck(f, inputs)
        return
    (g,) = torch.autograd.grad(f(*inputs).sum(), inputs[0], create_graph=True)
    with pytest.raises(AutodiffError, match="held before the launch.*order=2"):
        torch.autograd.grad(g.sum(), inputs[0])


def test_checkpoints(device):
    """Those that are not reentrant: of the others, PyTorch has no double backward."""
    from torch.utils.checkpoint import checkpoint

    x, w = pair(device)
    y = checkpoint(curved, x, w, use_reentrant=False)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (G,) = torch.autograd.grad(dv.curved_reference(x, w).sum(), x, create_graph=True)
    for a, b in zip(torch.autograd.grad(g.sin().sum(), (x, w)),
                    torch.autograd.grad(G.sin().sum(), (x, w)), strict=True):  # fmt: skip
        close(a, b)


def test_upstream_gradients_without_memory(device):
    """Where nothing moves, PyTorch's tangents are zeros without memory, and views of these."""
    x, w = pair(device, 8)
    y = curved(x, w)
    zeros = torch._efficientzerotensor((3, 8), dtype=x.dtype, device=device)
    for upstream in (torch.ones_like(y), zeros[0], zeros[2], torch.ones_like(y)):
        found = torch.autograd.grad(y, (x, w), upstream, retain_graph=True)
        expected = torch.autograd.grad(dv.curved_reference(x, w), (x, w), upstream + 0)
        for a, b in zip(found, expected, strict=True):
            close(a, b)


def test_views_and_expanded_inputs(device):
    base = torch.rand(40, 3, dtype=torch.float64, device=device).add(0.3).requires_grad_()
    w = torch.rand(1, dtype=torch.float64, device=device).add(0.3).requires_grad_()

    def f(base, w, launch):
        x = base.t().contiguous()[1]
        return launch(x, w.expand(40).contiguous())

    assert torch.autograd.gradgradcheck(lambda b, w: f(b, w, curved), (base, w))


def test_functional(device):
    x, w = pair(device, 6, grad=False)
    v, u = torch.randn_like(x), torch.randn_like(x)

    def f(x):
        return curved(x, w).sin().sum()

    def g(x):
        return dv.curved_reference(x, w).sin().sum()

    close(af.hessian(f, x), af.hessian(g, x))
    for name in ("hvp", "vhp"):
        for a, b in zip(getattr(af, name)(f, x, v), getattr(af, name)(g, x, v), strict=True):
            close(a, b)
    close(af.jvp(lambda x: curved(x, w), x, v)[1],
          af.jvp(lambda x: dv.curved_reference(x, w), x, v)[1])  # fmt: skip
    for vectorize in (False, True):
        close(af.jacobian(lambda x: curved(x, w), x, vectorize=vectorize),
              af.jacobian(lambda x: dv.curved_reference(x, w), x))  # fmt: skip
    leaf = x.clone().requires_grad_()
    (h,) = torch.autograd.grad(f(leaf), leaf, create_graph=True)
    (H,) = torch.autograd.grad(g(leaf), leaf, create_graph=True)
    close(u @ torch.autograd.grad(h @ v, leaf)[0], u @ torch.autograd.grad(H @ v, leaf)[0])


# ---- torch.func


def test_func(device):
    x, w = pair(device, 6, grad=False)
    v, leaf = torch.randn_like(x), w.clone().requires_grad_()

    def scalar(f):
        return lambda x, w: f(x, w).sin().sum()

    for transform in (
        lambda f: torch.func.grad(scalar(f), (0, 1))(x, w),
        lambda f: torch.func.vjp(f, x, w)[1](v),
        lambda f: torch.func.jvp(f, (x, w), (v, v)),
        lambda f: [torch.func.jacrev(f)(x, w), torch.func.jacfwd(f)(x, w)],
        lambda f: [torch.func.hessian(scalar(f))(x, w)],
        lambda f: [torch.func.jacrev(torch.func.jacfwd(f, 1), 0)(x, w)],
        lambda f: torch.func.jvp(torch.func.grad(scalar(f)), (x, w), (v, v)),
        lambda f: [torch.func.grad(lambda x: torch.func.jvp(f, (x, w), (v, v))[1].sum())(x)],
        lambda f: [torch.func.linearize(f, x, w)[1](v, v)],
        lambda f: torch.func.jvp(lambda x: f(x, leaf), (x,), (v,)),
    ):
        for a, b in zip(transform(curved), transform(dv.curved_reference), strict=True):
            close(a, b, 1e-8)


@pytest.mark.parametrize("n", [12, 101])
def test_vmap(device, n):
    """Rows of 101 numbers are not aligned as the first one is."""
    x = torch.rand(5, n, dtype=torch.float32, device=device) + 0.3
    w = torch.rand(n, device=device) + 0.3
    from torch.func import grad, vmap

    def loss(f):
        return lambda w, x: f(x, w).sin().sum()

    def truth(x, w):
        return dv.curved_reference(x.double(), w.double())

    for transform in (
        lambda f: vmap(f, (0, None))(x, w),
        lambda f: vmap(f, (1, None), 1)(x.t(), w).t(),
        lambda f: vmap(lambda row: f(w, row))(x),
        lambda f: grad(lambda w: vmap(f, (0, None))(x, w).sin().sum())(w),
        lambda f: vmap(grad(loss(f)), (None, 0))(w, x),
        lambda f: vmap(vmap(f, (0, None)), (0, None))(x.expand(2, 5, n), w),
    ):
        close(transform(curved), transform(truth), 1e-4)


def test_a_bare_kernel_under_vmap(device):
    """It may write to what is made of an example, and to nothing that all share."""
    x, w = torch.rand(5, 12, device=device) + 0.3, torch.rand(12, device=device) + 0.3
    kernel, kept = differentiable(dv.curved_kernel), torch.zeros(12, device=device)

    def own(row):
        y = torch.empty_like(row)
        kernel[(1,)](row, w, y, 12, 32)
        return y

    def shared(row):
        kernel[(1,)](row, w, kept, 12, 32)
        return row

    close(torch.func.vmap(own)(x), dv.curved_reference(x.double(), w.double()), 1e-4)
    with pytest.raises(ArgumentError, match="'y_ptr'.*same tensor for all examples.*new_empty"):
        torch.func.vmap(shared)(x)
    for part in (kept, kept.view(12)):
        op = autodiff(
            dv.curved_kernel, lambda k, row, part=part: k[(1,)](row, w, part[:], 12, 32) and row
        )
        with pytest.raises(ArgumentError, match="'y_ptr'.*same tensor for all examples"):
            torch.func.vmap(op)(x)
    assert not kept.any()


def test_randomness_under_vmap(device):
    def stub(kernel, x):
        return dv.curved(kernel, x, torch.rand_like(x))

    op, x = autodiff(dv.curved_kernel, stub), torch.ones(3, 8, device=device)
    same = torch.func.vmap(op, randomness="same")(x)
    assert torch.equal(same[0], same[1])
    different = torch.func.vmap(op, randomness="different")(x)
    assert not torch.equal(different[0], different[1])
    with pytest.raises(RuntimeError, match="randomness"):
        torch.func.vmap(op)(x)


@pytest.mark.cpu
def test_the_first_to_start_a_gpu_may_be_a_stub(monkeypatch):
    """Its generators are there from then on, and begin at offset 0."""

    class Started:
        offset = 0

        def get_offset(self):
            return self.offset

        def set_offset(self, offset):
            self.offset = offset

    def stub(kernel, x, draws=True):
        if not torch.cuda.default_generators:
            monkeypatch.setattr(torch.cuda, "default_generators", (Started(),))
        offsets.append(torch.cuda.default_generators[0].offset)
        torch.cuda.default_generators[0].offset += 4 * draws
        return dv.curved(kernel, x, x)

    op, x = autodiff(dv.curved_kernel, stub), torch.ones(3, 8)
    for randomness, expected in (("same", [0, 0, 0]), ("different", [0, 4, 8])):
        offsets = []
        monkeypatch.setattr(torch.cuda, "default_generators", ())
        torch.func.vmap(op, randomness=randomness)(x)
        assert offsets == expected
    monkeypatch.setattr(torch.cuda, "default_generators", ())
    torch.func.vmap(lambda x: op(x, False))(x)
    monkeypatch.setattr(torch.cuda, "default_generators", ())
    with pytest.raises(RuntimeError, match="randomness"):
        torch.func.vmap(op)(x)


def test_ensembles(device):
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.rand(8, device=device) + 0.3)

        def forward(self, x):
            return curved(x, self.w)

    models, x = [Layer() for _ in range(3)], torch.rand(8, device=device)
    parameters, buffers = torch.func.stack_module_state(models)

    def call(parameters, buffers, x):
        return torch.func.functional_call(models[0], (parameters, buffers), (x,))

    found = torch.func.vmap(call, (0, 0, None))(parameters, buffers, x)
    close(found, torch.stack([model(x) for model in models]), 1e-5)


def test_batched_gradients(device):
    x, w = pair(device, 6)
    y = curved(x, w)
    batch = torch.randn(3, 6, dtype=torch.float64, device=device)
    found = torch.autograd.grad(y, (x, w), batch, is_grads_batched=True, retain_graph=True)
    for n in range(3):
        for a, b in zip(found, torch.autograd.grad(y, (x, w), batch[n], retain_graph=True),
                        strict=True):  # fmt: skip
            close(a[n], b)
    rows = torch.func.vmap(lambda u: torch.autograd.grad(y, x, u, retain_graph=True)[0])(batch)
    close(rows, found[0])


def test_check(device):
    from triton.backends.autodiff import GradientCheckError, check

    for dtype in (torch.float64, torch.float32, torch.float16):
        assert check(curved, pair(device, 9, dtype), order=2, mode="forward")
    with pytest.raises(ArgumentError, match="mode"):
        check(curved, pair(device, 9), mode="backward")
    with pytest.raises(ArgumentError, match="order"):
        check(curved, pair(device, 9), order=3)

    class Wrong(torch.autograd.Function):
        """Right at first order: its tangent and its second derivative are off."""

        @staticmethod
        def forward(ctx, y):
            return y.clone()

        @staticmethod
        def backward(ctx, upstream):
            return upstream + 0.1 * (upstream - upstream.detach())

        @staticmethod
        def jvp(ctx, tangent):
            return 1.1 * tangent

    for options in ({"mode": "forward"}, {"order": 2}):
        with pytest.raises(GradientCheckError, match="tangent|second derivative"):
            check(
                lambda x, w: Wrong.apply(Wrong.apply(curved(x, w)).sin()),
                pair(device, 9),
                **options,
            )
