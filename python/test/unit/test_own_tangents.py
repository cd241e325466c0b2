"""Tangents and second derivatives through rules of the user's: `custom_jvp`, `register_jvp`,
`exact=True`."""

import itertools

import pytest
import torch
import triton
import triton.language as tl
from gradients import random_tensor
from triton.backends.autodiff import (
    AutodiffError,
    GradientCheckError,
    check,
    custom_jvp,
    custom_vjp,
    differentiable,
    register_jvp,
    register_vjp,
    stop_gradient,
)

pytestmark = [pytest.mark.usefixtures("own_rules")]
F64 = torch.float64


# Lane by lane: log(1 + eˣ), whose own derivative is no number for large x.


@triton.jit
def softplus(x):
    return tl.log(1 + tl.exp(x))


@triton.jit
def softplus_vjp(dy, x, y):
    return dy * (1 / (1 + tl.exp(-x)))


@triton.jit
def softplus_jvp(t, x, y):
    return t * (1 / (1 + tl.exp(-x)))


# Across lanes, with several results, which the rules read: x / √s, s = Σ w x².


@triton.jit
def scaled(x, w):
    s = tl.sum(x * x * w, 0)
    return x / tl.sqrt(s), s


@triton.jit
def scaled_vjp(dy, ds, x, w, y, s):
    d = ds - 0.5 * tl.sum(dy * y, 0) / s
    return dy / tl.sqrt(s) + d * 2 * x * w, d * x * x


@triton.jit
def scaled_jvp(tx, tw, x, w, y, s):
    ts = tl.sum(2 * x * w * tx + x * x * tw, 0)
    return tx / tl.sqrt(s) - 0.5 * y / s * ts, ts


def _both(exact):
    function = custom_vjp(softplus, softplus_vjp, exact=exact)
    assert function.defjvp(exact=exact)(softplus_jvp) is softplus_jvp
    return function


ELEMENTWISE = {
    "vjp": lambda exact: custom_vjp(softplus, softplus_vjp, exact=exact),
    "jvp": lambda exact: custom_jvp(softplus, softplus_jvp, exact=exact),
    "both": _both,
}


def _exact(way, function, vjp, jvp):
    """A function with one exact rule."""
    if way == "vjp":
        return custom_vjp(function, vjp, exact=True)
    return custom_jvp(function, jvp, exact=True)


def elementwise(function):
    f: tl.constexpr = function

    @differentiable
    @triton.jit
    def kernel(x, y, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(x + i, i < n)
        tl.store(y + i, f(v * v), i < n)

    def op(x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), BLOCK=32)
        return y

    return op


def rows(function):
    f: tl.constexpr = function

    @differentiable
    @triton.jit
    def kernel(x, w, y, s, BLOCK: tl.constexpr):
        row, i = tl.program_id(0), tl.arange(0, BLOCK)
        v, scale = f(tl.load(x + row * BLOCK + i), tl.load(w + i))
        tl.store(y + row * BLOCK + i, v)
        tl.store(s + row, scale)

    def op(x, w):
        y, s = torch.empty_like(x), x.new_empty(x.shape[0])
        kernel[(x.shape[0],)](x, w, y, s, BLOCK=x.shape[1])
        return y, s

    return op


def softplus_reference(x):
    return torch.nn.functional.softplus(x * x)


def _third(f, x):
    """A third derivative: all orders of reverse mode over one another."""
    (g,) = torch.autograd.grad(f(x).sin().sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.square().sum(), x, create_graph=True)
    return torch.autograd.grad(h.sin().sum(), x)[0]


@pytest.mark.parametrize("rules", ELEMENTWISE)
def test_elementwise(device, rules):
    op, reference = elementwise(ELEMENTWISE[rules](True)), softplus_reference
    x = random_tensor(50, device=device, dtype=F64)
    u = torch.randn_like(x)
    for f in (
        lambda f: torch.autograd.grad(f(x), x, u)[0],
        lambda f: torch.func.jvp(f, (x.detach(),), (u,))[1],
        lambda f: torch.func.jacfwd(torch.func.jacfwd(f))(x.detach()),
        lambda f: torch.autograd.functional.hessian(lambda x: f(x).square().sum(), x.detach()),
        lambda f: torch.func.hessian(lambda x: f(x).square().sum())(x.detach()),
        lambda f: torch.func.jvp(torch.func.grad(lambda x: (u * f(x)).sum()), (x.detach(),), (u,)),
        lambda f: _third(f, x),
    ):
        torch.testing.assert_close(f(op), f(reference), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rules", ELEMENTWISE)
def test_the_rule_counts_and_not_the_body(device, rules):
    """The body's derivative is no number here, at every order."""
    op = elementwise(ELEMENTWISE[rules](True))
    x = torch.tensor([27.0, 30.0, 1.0], dtype=F64, device=device, requires_grad=True)
    y, t = torch.func.jvp(op, (x.detach(),), (torch.ones_like(x),))
    assert y[:2].isinf().all()
    torch.testing.assert_close(t, 2 * x.detach() * torch.sigmoid(x.detach() ** 2))
    (g,) = torch.autograd.grad(op(x).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    s = torch.sigmoid(x.detach() ** 2)
    torch.testing.assert_close(h, 2 * s + 4 * x.detach() ** 2 * s * (1 - s))


@pytest.mark.parametrize("rules", ["vjp", "jvp"])
def test_across_lanes(device, rules):
    function = _exact(rules, scaled, scaled_vjp, scaled_jvp)
    op = rows(function)
    x = random_tensor(3, 16, device=device, dtype=F64)
    w = torch.rand(16, dtype=F64, device=device).add(0.5).requires_grad_()
    assert torch.autograd.gradcheck(op, (x, w), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(op, (x, w), check_fwd_over_rev=True)


@triton.jit
def cubed(x):
    return x * x * x


@triton.jit
def cubed_jvp(t, x, y):
    return t * 3 * x * x


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_other_types(device, dtype):
    op = elementwise(custom_jvp(cubed, cubed_jvp, exact=True))
    x = torch.rand(50, device=device).to(dtype).requires_grad_()
    wide = x.detach().double().requires_grad_()
    (g,) = torch.autograd.grad(op(x).float().square().sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.float().square().sum(), x)
    (g,) = torch.autograd.grad(wide.pow(12).sum(), wide, create_graph=True)
    (wanted,) = torch.autograd.grad(g.square().sum(), wide)
    tolerance = 20 * torch.finfo(dtype).eps
    torch.testing.assert_close(h.double(), wanted, rtol=tolerance, atol=tolerance)


@triton.jit
def doubled(x, k, w, C: tl.constexpr):
    return x[0] * w * k * C, x[1] + k, k


@triton.jit
def doubled_jvp(t0, t1, tw, x, k, w, C: tl.constexpr, y0, y1, y2):
    return (t0 * w + x[0] * tw) * k * C, t1, 0


@triton.jit
def doubled_vjp(d0, d1, x, k, w, C: tl.constexpr, y0, y1, y2):
    return d0 * w * k * C, d1, 7, tl.sum(d0 * x[0] * k * C, 0)


@pytest.mark.parametrize("rules", ["vjp", "jvp"])
def test_tuples_numbers_and_constants(device, rules):
    """What is no float has no derivative, in whatever place."""
    function = _exact(rules, doubled, doubled_vjp, doubled_jvp)
    f: tl.constexpr = function

    @differentiable
    @triton.jit
    def kernel(x, w, y, k, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        for step in range(n):
            v = tl.load(x + i) * (step + 1)
            p, q, r = f((v, v * v), k, tl.load(w), 3)
            if step % 2 == 0:
                p = q * p
            tl.store(y + step * BLOCK + i, p + q + r)

    def op(x, w):
        y = x.new_empty(3, x.numel())
        kernel[(1,)](x, w, y, 5, 3, BLOCK=x.numel())
        return y

    x, w = random_tensor(8, device=device, dtype=F64), random_tensor(1, device=device, dtype=F64)
    assert torch.autograd.gradcheck(op, (x, w), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(op, (x, w))


# Rules that are not the derivative.


@triton.jit
def clipped_vjp(dy, x, y):
    return tl.minimum(dy, 0.5)


@triton.jit
def clipped_jvp(t, x, y):
    return tl.minimum(t, 0.5)


@triton.jit
def rounded(x):
    return tl.floor(x + 0.5)


@triton.jit
def straight_jvp(t, x, y):
    return t


def test_a_jvp_serves_forward_and_reverse_mode(device):
    op = elementwise(custom_jvp(rounded, straight_jvp))
    x = random_tensor(20, device=device, dtype=F64)
    u = torch.randn_like(x)
    y, t = torch.func.jvp(op, (x.detach(),), (u,))
    torch.testing.assert_close(y, torch.floor(x.detach() ** 2 + 0.5))
    torch.testing.assert_close(t, 2 * x.detach() * u)
    torch.testing.assert_close(torch.autograd.grad(op(x), x, u)[0], 2 * x.detach() * u)


SECOND = {
    "reverse over reverse": lambda op, x: torch.autograd.grad(
        torch.autograd.grad(op(x).sum(), x, create_graph=True)[0].sum(), x
    ),
    "a constant gradient": lambda op, x: torch.func.jvp(
        torch.func.grad(lambda x: op(x).sum()), (x.detach(),), (torch.ones_like(x),)
    ),
    "forward over forward": lambda op, x: torch.func.jacfwd(torch.func.jacfwd(op))(x.detach()),
    "reverse over forward": lambda op, x: torch.func.grad(
        lambda x: torch.func.jvp(op, (x,), (torch.ones_like(x),))[1].sum()
    )(x.detach()),
}


@pytest.mark.parametrize("how", SECOND)
@pytest.mark.parametrize("rules", ELEMENTWISE)
def test_rules_that_nobody_calls_exact_have_no_second_derivatives(device, rules, how):
    op = elementwise(ELEMENTWISE[rules](False))
    x = random_tensor(20, device=device, dtype=F64)
    with pytest.raises(AutodiffError, match="exact=True"):
        SECOND[how](op, x)


@pytest.mark.parametrize("how", SECOND)
def test_one_rule_that_is_not_exact(device, how):
    function = custom_vjp(softplus, softplus_vjp, exact=True)
    function.defjvp(softplus_jvp)
    with pytest.raises(AutodiffError, match="exact=True"):
        SECOND[how](elementwise(function), random_tensor(20, device=device, dtype=F64))


@triton.jit
def straight_vjp(dy, x, y):
    return dy


def _straight(how):
    """Rounding, whose body has the derivative zero, and a rule that is no derivative."""
    if how.startswith("vjp"):
        function = custom_vjp(rounded, straight_vjp, exact=how == "vjp, exact, and jvp")
        if how != "vjp":
            function.defjvp(straight_jvp)
        return function
    return custom_jvp(rounded, straight_jvp)


def times(function):
    f: tl.constexpr = function

    @differentiable
    @triton.jit
    def kernel(x, w, y, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(y + i, f(tl.load(x + i)) * tl.load(w + i))

    def op(x, w):
        y = torch.empty_like(x)
        kernel[(1,)](x, w, y, BLOCK=16)
        return y

    return op


MIXED = {
    "dx dx": lambda op, x, w: _second(op, x, w, x, x),
    "dx dw": lambda op, x, w: _second(op, x, w, x, w),
    "dw dx": lambda op, x, w: _second(op, x, w, w, x),
    "forward over reverse": lambda op, x, w: torch.func.jvp(
        torch.func.grad(lambda x, w: op(x, w).sum(), (0, 1)), (x, w), (x, w)
    ),
    "forward over forward": lambda op, x, w: torch.func.jvp(
        lambda x: torch.func.jvp(op, (x, w), (x, w))[1], (x,), (x,)
    ),
    "reverse over forward": lambda op, x, w: torch.func.grad(
        lambda x: torch.func.jvp(op, (x, w), (w, x))[1].sum()
    )(x),
}


def _second(op, x, w, first, second):
    places = [t is first for t in (x, w)], [t is second for t in (x, w)]
    x, w = (t.detach().clone().requires_grad_() for t in (x, w))
    by = [next(t for t, is_it in zip((x, w), place, strict=True) if is_it) for place in places]
    (g,) = torch.autograd.grad(op(x, w).sum(), by[0], create_graph=True)
    return torch.autograd.grad(g.sum(), by[1])


@pytest.mark.parametrize("how", MIXED)
@pytest.mark.parametrize("rules", ["vjp", "jvp", "vjp and jvp", "vjp, exact, and jvp"])
def test_bodies_whose_derivative_is_zero(device, rules, how):
    """What a rule adds to zero is missing at second order, and nobody sees that it is."""
    x, w = (random_tensor(16, device=device, dtype=F64).detach() for _ in range(2))
    with pytest.raises(AutodiffError, match="exact=True"):
        MIXED[how](times(_straight(rules)), x, w)


@triton.jit
def hidden_sigmoid(x):
    return 1 / (1 + tl.exp(-stop_gradient(x)))


@triton.jit
def sigmoid_rule(t, x, y):
    return t * (y * (1 - y))


def _hidden(rules):
    """The body has the derivative zero, and nobody asks it for one."""
    kind = custom_jvp if rules == "jvp" else custom_vjp
    function = kind(hidden_sigmoid, sigmoid_rule, exact=True)
    if rules == "vjp and jvp":
        function.defjvp(sigmoid_rule, exact=True)
    return function


HIDDEN = pytest.mark.parametrize("rules", ["vjp", "jvp", "vjp and jvp"])


@pytest.mark.parametrize("how", SECOND)
@HIDDEN
def test_values_that_rules_read_move_by_the_rules(device, rules, how):
    x = random_tensor(16, device=device, dtype=F64)
    found = SECOND[how](elementwise(_hidden(rules)), x)
    torch.testing.assert_close(found, SECOND[how](lambda x: (x * x).sigmoid(), x))


@pytest.mark.parametrize("how", MIXED)
@HIDDEN
def test_values_that_rules_read_beside_another(device, rules, how):
    x, w = (random_tensor(16, device=device, dtype=F64).detach() for _ in range(2))
    found = MIXED[how](times(_hidden(rules)), x, w)
    torch.testing.assert_close(found, MIXED[how](lambda x, w: x.sigmoid() * w, x, w))


@triton.jit
def by_rounding(x, w):
    return x * w


ROUNDED: tl.constexpr = custom_jvp(rounded, straight_jvp)


@triton.jit
def by_rounding_jvp(tx, tw, x, w, y):
    return tx * ROUNDED(w) + ROUNDED(x) * tw


def test_exact_rules_that_call_others(device):
    """The rule of the rule is not exact."""
    f: tl.constexpr = custom_jvp(by_rounding, by_rounding_jvp, exact=True)

    @differentiable
    @triton.jit
    def kernel(x, w, y, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        v = tl.load(x + i)
        tl.store(y + i, f(v, tl.load(w + i)) * v)

    def op(x, w):
        y = torch.empty_like(x)
        kernel[(1,)](x, w, y, BLOCK=16)
        return y

    x, w = (random_tensor(16, device=device, dtype=F64).detach() for _ in range(2))
    for how, second in MIXED.items():
        if how != "dx dx":  # which does not depend on what is rounded
            with pytest.raises(AutodiffError, match="exact=True"):
                second(op, x, w)


def test_where_nothing_moves_nothing_is_missing(device):
    """Second derivatives by other arguments go past a rule that is not exact."""
    f: tl.constexpr = custom_vjp(softplus, softplus_vjp)

    @differentiable
    @triton.jit
    def kernel(x, w, y, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(y + i, f(tl.load(x + i)) * tl.exp(tl.load(w + i)))

    x, w = random_tensor(16, device=device, dtype=F64), random_tensor(16, device=device, dtype=F64)

    def op(w):
        y = torch.empty_like(w)
        kernel[(1,)](x.detach(), w, y, BLOCK=16)
        return y

    assert torch.autograd.gradgradcheck(op, (w,))


def test_rules_without_a_transpose(device):
    """Minimum is not linear, but its derivative at zero is what is taken: say so."""
    op = elementwise(custom_jvp(softplus, clipped_jvp))
    x = random_tensor(20, device=device, dtype=F64)
    torch.testing.assert_close(torch.autograd.grad(op(x).sum(), x)[0], 2 * x.detach())


def test_check_finds_what_is_not_exact(device):
    x = random_tensor(20, device=device)
    check(elementwise(custom_vjp(softplus, softplus_vjp, exact=True)), (x,), order=2)

    @triton.jit
    def cubic_vjp(dy, x, y):
        return dy * (1 + x * x)

    wrong = elementwise(custom_vjp(softplus, cubic_vjp, exact=True))
    with pytest.raises(GradientCheckError, match="second derivative"):
        check(wrong, (x,), order=2)


# Operations.


def assembly(text):
    @differentiable
    @triton.jit
    def kernel(x, w, y, ASM: tl.constexpr, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        a, b = tl.load(x + i), tl.load(w + i)
        v = tl.inline_asm_elementwise(ASM, "=f,f,f", [a * a, b], tl.float32, is_pure=True, pack=1)
        tl.store(y + i, v * b)

    def op(x, w):
        y = torch.empty_like(x)
        kernel[(1,)](x, w, y, ASM=text, BLOCK=x.numel())
        return y

    return op


@triton.jit
def product_vjp(dy, a, b, y):
    return dy * b, dy * a


@triton.jit
def product_jvp(ta, tb, a, b, y):
    return ta * b + a * tb


_names = itertools.count()


@pytest.mark.parametrize("way", ["vjp", "jvp"])
def test_registered(device, way):
    # A comment makes it another text.
    text = f"mul.rn.f32 $0, $1, $2; // {way} {next(_names)}"
    register, rule = {
        "vjp": (register_vjp, product_vjp),
        "jvp": (register_jvp, product_jvp),
    }[way]
    op = assembly(text)
    x, w = random_tensor(16, device=device), random_tensor(16, device=device)
    tangents = (torch.randn_like(x), torch.randn_like(x))
    detached = (x.detach(), w.detach())

    def reference(x, w):
        return x * x * w * w

    register(rule, asm=text)
    u = torch.randn_like(x)
    torch.testing.assert_close(
        torch.autograd.grad(op(x, w), (x, w), u), torch.autograd.grad(reference(x, w), (x, w), u)
    )
    if way == "vjp":
        with pytest.raises(AutodiffError, match="exact=True"):
            torch.func.jvp(op, detached, tangents)
    for second in MIXED.values():
        with pytest.raises(AutodiffError, match="exact=True"):
            second(op, *detached)
    register(rule, asm=text, exact=True)
    torch.testing.assert_close(
        torch.func.jvp(op, detached, tangents)[1], torch.func.jvp(reference, detached, tangents)[1]
    )

    def second(f):
        g = torch.autograd.grad(f(x, w).sin().sum(), (x, w), create_graph=True)
        return torch.autograd.grad(sum(part.square().sum() for part in g), (x, w))

    torch.testing.assert_close(second(op), second(reference), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda: custom_vjp(softplus, exact=True), "defvjp"),
        (lambda: custom_jvp(softplus, exact=True), "defjvp"),
        (lambda: custom_jvp(len), "custom_jvp takes a function decorated with"),
        (lambda: custom_jvp(softplus, len), "defjvp takes a function decorated with"),
        (lambda: register_jvp(softplus_jvp), "register_jvp takes either"),
    ],
)
def test_bad_arguments(wrong, message):
    with pytest.raises(TypeError, match=message):
        wrong()


@pytest.mark.parametrize(
    "rule, message",
    [
        (softplus, r"is given 3: \(t_x0, x, y0\), the tangents of the arguments"),
        (doubled_jvp, r"is given 3: \(t_x0, x, y0\)"),
    ],
)
def test_wrong_rules_are_named(device, rule, message):
    x = random_tensor(8, device=device)
    with pytest.raises(AutodiffError, match=message):
        torch.func.jvp(elementwise(custom_jvp(softplus, rule)), (x.detach(),), (x.detach(),))


@triton.jit
def too_many_jvp(t, x, y):
    return t, t


def test_a_wrong_number_of_tangents(device):
    x = random_tensor(8, device=device)
    op = elementwise(custom_jvp(softplus, too_many_jvp))
    with pytest.raises(AutodiffError, match="should return 1 tangents, one for each result"):
        torch.func.jvp(op, (x.detach(),), (x.detach(),))
