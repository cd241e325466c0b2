"""`check(op, inputs)`: right gradients pass in every dtype, wrong ones are found and named."""

import gradients
import pytest
import torch
import triton
import triton.language as tl
from gradients import differentiated, random_tensor
from kernels import cross_entropy, gather, loops, narrow_copies, user_rules
from kernels import elementwise as ew
from kernels import matmul as mm
from kernels import normalization as norm
from kernels import softmax as sm
from triton_autodiff.inspecting import gradient_check


@pytest.fixture(autouse=True)
def needs_gradients():
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")


@pytest.fixture
def check():
    from triton.backends.autodiff import check

    return check


def _wrong(op, **spoil):
    """`op` with gradients that are multiplied or changed in one place, input by input."""

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            ctx.inputs = [x.detach().requires_grad_(x.requires_grad) for x in inputs]
            with torch.enable_grad():
                ctx.output = op(*ctx.inputs)
            return ctx.output.detach()

        @staticmethod
        def backward(ctx, upstream):
            wanted = [x for x in ctx.inputs if x.requires_grad]
            found = iter(torch.autograd.grad(ctx.output, wanted, upstream))
            return tuple(
                spoil.get(f"input{n}", lambda g: g)(next(found).clone())
                if x.requires_grad
                else None
                for n, x in enumerate(ctx.inputs)
            )

    return Wrong.apply


DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("case", ["gelu", "softmax", "matmul", "layer norm", "gather", "loop"])
def test_right_gradients(device, check, case, dtype):
    def make(*shape, **options):
        return random_tensor(*shape, device=device, dtype=dtype, **options)

    if case == "gelu":
        op, inputs = differentiated(ew.gelu_tanh_kernel, ew.unary), (make(5, 31),)
    elif case == "softmax":
        op, inputs = differentiated(sm.softmax_kernel, sm.rowwise), (make(3, 20),)
    elif case == "matmul":
        if dtype == torch.float64:
            pytest.skip("the kernel's accumulator is float32")
        op, inputs = differentiated(mm.matmul_kernel, mm.matmul), (make(33, 20), make(20, 40))
    elif case == "layer norm":
        op = differentiated(norm.layer_norm_kernel, norm.layer_norm)
        inputs = make(4, 30), make(30), make(30)
    elif case == "gather":
        op = differentiated(gather.take_kernel, gather.take)
        inputs = make(20), torch.randint(0, 15, (40,), device=device)
    else:
        op = differentiated(loops.rnn_kernel, loops.rnn)
        inputs = make(2, 5, 20), make(20, scale=0.4), make(2, 20)
    report = check(op, inputs, elements=8, directions=1)
    assert report.passed and report.inputs[0].elements == 8
    assert str(dtype)[6:] in str(report)


def test_report(device, check):
    op = differentiated(mm.matmul_kernel, mm.matmul)
    a, b = (random_tensor(6, 6, device=device, dtype=torch.float16) for _ in range(2))
    text = str(check(op, (a, b), elements=40))
    assert "gradients of matmul are right (tolerance 0.0098: float16 is the coarsest" in text
    assert "input 0 (a): 36 of 36 elements and 2 directions compared; the largest error is" in text


def test_torch_code_around_views_and_two_kernels(device, check):
    from triton.backends.autodiff import differentiable

    gelu, matmul = differentiable(ew.gelu_erf_kernel), differentiable(mm.matmul_kernel)

    def layer(x, w, scale):
        x = (x.t() * scale).to(torch.float16).contiguous()
        y = ew.unary(gelu, mm.matmul(matmul, x, w.to(torch.float16)))
        return {"y": y.float().softmax(1), "squares": (y * y).sum(0)}

    x, w = random_tensor(8, 12, device=device), random_tensor(8, 16, device=device)
    report = check(layer, (x, w, 0.7), elements=6, rtol=2e-2)
    assert report.passed and "input 1 (w)" in str(report)


def test_strided_input(device, check):
    op = differentiated(ew.affine_columns_kernel, ew.affine_columns)
    x = torch.randn(40, 60, device=device)[3:23, 5:29:2].t().detach().requires_grad_()
    w, b = (random_tensor(20, device=device) for _ in range(2))
    assert check(op, (x, w, b), elements=8)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_wrong_factor(device, check, dtype):
    """One input's gradient is a third too large; the other's is right."""
    from triton.backends.autodiff import GradientCheckError

    op = differentiated(ew.swiglu_kernel, ew.swiglu)
    x, y = (random_tensor(8, 8, device=device, dtype=dtype) for _ in range(2))
    assert check(op, (x, y))
    with pytest.raises(GradientCheckError, match=r"input 1.*: expected .*, got") as caught:
        check(_wrong(op, input1=lambda g: g * 1.333), (x, y))
    assert all("input 1" in m.name for m in caught.value.report.mismatches)


def _normalized(how):
    """x over its root mean square, times c: nothing depends on the length of x."""
    op = differentiated(narrow_copies.statistic_kernel, narrow_copies.statistic)

    def normalized(x, c):
        y = op(x, "inverse", torch.float32) * c
        if how == "squares":
            y = y.square()
        return y if how == "elements" else y.sum(1)

    return normalized


@pytest.mark.parametrize("how", ["elements", "rows", "squares"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_terms_that_cancel(device, check, how, scale):
    """The gradient is zero, but for the rounding of what it is a sum of."""
    from triton_autodiff import GradientCheckError

    # The first numbers are those of the upstream gradient.
    generator = torch.Generator().manual_seed(gradient_check._OTHER_SEED)
    unscaled = torch.randn(9, 50, generator=generator).to(device)
    op, x = _normalized(how), (unscaled * scale).requires_grad_()
    c = unscaled if how == "rows" else torch.ones_like(x)
    (gradient,) = torch.autograd.grad(
        op(x, c), x, unscaled if how == "elements" else unscaled.new_ones(9)
    )
    assert gradient.abs().max() * scale < 1e-3
    assert check(op, (x, c))
    with pytest.raises(GradientCheckError, match=r"input 0.*: expected"):
        check(_wrong(op, input0=lambda g: g + 0.05 / scale), (x, c))


def test_small_factors(device, check):
    """A gradient that is off by a thousandth, in float32, where no product is in TF32."""
    from triton_autodiff import GradientCheckError

    x = random_tensor(9, 50, device=device)
    c = random_tensor(9, 50, device=device, grad=False)
    rtol = 1e-4 if device == "cuda" else None
    for how in ("elements", "rows"):
        assert check(_normalized(how), (x, c), rtol=rtol)
        for factor in (1.001, 0.999):
            with pytest.raises(GradientCheckError, match="input 0"):
                wrong = _wrong(_normalized(how), input0=lambda g, factor=factor: g * factor)
                check(wrong, (x, c), rtol=rtol)


def test_upstream_gradients_are_no_inputs(device, check):
    """Inputs are drawn from a generator with the same seed."""
    add, seen = differentiated(ew.add_kernel, ew.add), []

    def watched(x, y):
        z = add(x, y)
        if z.requires_grad:
            z.register_hook(seen.append)
        return z

    generator = torch.Generator().manual_seed(3)
    x = torch.randn(40, generator=generator).to(device).requires_grad_()
    assert check(watched, (x, random_tensor(40, device=device)), seed=3)
    assert not torch.isclose(seen[0], x).any()


@pytest.mark.parametrize("value", [float("nan"), 30.0, -30.0])
def test_one_wrong_element_of_many(device, check, value):
    """Not among the elements looked at, perhaps; bisection finds it."""
    from triton.backends.autodiff import GradientCheckError

    def spoil(gradient):
        gradient[17, 4] = value
        return gradient

    op = _wrong(differentiated(ew.add_kernel, ew.add), input0=spoil)
    x, y = (random_tensor(40, 30, device=device) for _ in range(2))
    with pytest.raises(GradientCheckError, match=r"input 0.*\[17, 4\]: expected"):
        check(op, (x, y), elements=4)


def test_a_direction_moves_all_elements(device, check):
    """So that one direction shows a wrong element that is not looked at by itself."""
    from triton.backends.autodiff import GradientCheckError

    def spoil(gradient):
        gradient[17, 4] = 30.0
        return gradient

    op = _wrong(differentiated(ew.add_kernel, ew.add), input0=spoil)
    x, y = (random_tensor(40, 30, device=device) for _ in range(2))
    for seed in range(4):
        with pytest.raises(GradientCheckError, match=r"input 0.*\[17, 4\]: expected"):
            check(op, (x, y), elements=1, directions=1, seed=seed)


@pytest.mark.parametrize("default", ["cpu", "meta"])
def test_any_default_device(device, check, default):
    """A tensor of the check's own is not made where the user's are."""
    from triton.backends.autodiff import GradientCheckError

    op = differentiated(sm.softmax_kernel, sm.rowwise)
    x = random_tensor(5, 65, device=device)

    def doubled(x):
        # Only the reference makes it where it stands by itself.
        return op(x) * torch.tensor(2.0, device=None if x.dtype == torch.float64 else device)

    with torch.device(default):
        report = check(doubled, (x,))
        with pytest.raises(GradientCheckError, match=r"input 0.*\[\d, \d+\]: expected"):
            check(_wrong(op, input0=lambda g: g * 1.5), (x,))
    assert report.passed and report.inputs[0].elements == 32


def test_missing_gradient(device, check):
    """Zero where it should not be: what a detach() in the middle does."""
    from triton.backends.autodiff import GradientCheckError

    add = differentiated(ew.add_kernel, ew.add)
    x, y = (random_tensor(30, device=device) for _ in range(2))
    with pytest.raises(GradientCheckError, match="input 1 .y.*got 0 "):
        check(lambda x, y: add(x, y.detach()) * x, (x, y))
    report = check(lambda x, y: add(x, y.detach()), (x, y), raise_exception=False)
    assert not report and len(report.mismatches) == 30


def test_kinks_are_reported(device, check):
    x = torch.tensor([-1.0, 0.0, 2.0, -3.0], device=device, requires_grad=True)
    op = differentiated(ew.relu_inplace_kernel, ew.inplace)
    (found,) = check(op, (x,)).inputs
    assert any("[1] has slopes" in line for line in found.not_smooth)


@triton.jit
def root_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, tl.sqrt(x), mask=offsets < n)


def test_where_a_function_ends(device, check):
    """The gradient is infinite there, and slopes are not known: that is reported, and no error."""
    x = torch.tensor([0.0, 1.0, 0.0, 4.0], device=device, requires_grad=True)
    (found,) = check(differentiated(root_kernel, _launch), (x,)).inputs
    for element in (0, 2):
        lines = [line for line in found.not_smooth if line.startswith(f"[{element}] has slopes")]
        assert lines and "nan" in lines[0]


@triton.jit
def half_constants_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Computes in float16 what the memory does not make it."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float16)
    y = tl.dot(
        tl.broadcast_to(x[:, None], (BLOCK, BLOCK)), tl.broadcast_to(x[None, :], (BLOCK, BLOCK))
    )
    tl.store(y_ptr + offsets, tl.sum(y, 1), mask=offsets < n)


def test_kernel_that_fixes_its_precision(device, check):
    """In float64 its own casts would lose the differences; promoted, there are none."""
    x = random_tensor(16, device=device, shift=5.0)  # where sums do not cancel
    op = differentiated(half_constants_kernel, lambda k, x: _launch(k, x))
    assert check(op, (x,), rtol=1e-2, elements=6)


def _launch(kernel, x):
    y = torch.empty_like(x)
    kernel[(1,)](x, y, x.numel(), BLOCK=16)
    return y


@triton.jit
def bits_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    sign = (x.to(tl.int32, bitcast=True) >> 31) & 1
    tl.store(y_ptr + offsets, x * (1 - 2 * sign), mask=offsets < n)


def test_bits_are_refused(device, check):
    from triton.backends.autodiff import AutodiffError

    op = differentiated(bits_kernel, lambda k, x: _launch(k, x))
    with pytest.raises(AutodiffError, match="'bits_kernel'.*test_gradient_check.py.*the bits of"):
        check(op, (random_tensor(16, device=device),))


def test_what_cannot_be_checked(device, check):
    from triton.backends.autodiff import AutodiffError

    add = differentiated(ew.add_kernel, ew.add)
    x, y = random_tensor(6, device=device), random_tensor(6, device=device, grad=False)
    with pytest.raises(AutodiffError, match="no input requires a gradient"):
        check(add, (y, y))
    with pytest.raises(AutodiffError, match="no output depends"):
        check(lambda x, y: add(y, y), (x, y))
    with pytest.raises(AutodiffError, match=r"input 0 .* share memory"):
        check(add, (x[:1].detach().expand(6).requires_grad_(), y))
    with pytest.raises(AutodiffError, match="another path in float64"):
        check(lambda x, y: add(x, y) if x.dtype == torch.float32 else x + y, (x, y))


def test_several_outputs_and_integers(device, check):
    op = differentiated(cross_entropy.cross_entropy_kernel, cross_entropy.cross_entropy)
    logits = random_tensor(5, 20, device=device)
    target = torch.randint(0, 20, (5,), device=device)
    assert check(op, (logits, target), elements=10)
    op = differentiated(ew.product_and_exponential_kernel, ew.product_and_exponential)
    x, y = (random_tensor(30, device=device) for _ in range(2))
    assert len(check(op, (x, y), elements=4).inputs) == 2


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_right_derivatives_of_the_user(device, check, dtype):
    """What a kernel computes in float64 does not depend on the derivatives it is traced with."""
    op = differentiated(user_rules.row_norm_kernel, user_rules.norms)
    x = random_tensor(4, 16, device=device, dtype=dtype)
    assert check(op, (x, 1e-2), elements=8)


def test_derivatives_that_are_meant_to_differ(device, check):
    """A report of differences says which derivatives the user gave."""
    from triton.backends.autodiff import GradientCheckError

    op = differentiated(user_rules.custom_kernel, user_rules.apply)
    x = random_tensor(64, device=device) + 2.0
    x, w = x.detach().requires_grad_(), random_tensor(64, device=device)
    with pytest.raises(GradientCheckError) as caught:
        check(op, (x, w))
    said = str(caught.value)
    assert "'custom_kernel' has derivatives that you gave it" in said
    assert "own derivative of 'polar'" in said and "stop_gradient" not in said
    op = differentiated(user_rules.stopped_kernel, user_rules.apply)
    with pytest.raises(GradientCheckError, match=r"'stopped_kernel' has .*\(stop_gradient\)"):
        check(op, (x,))


def _made(twice):
    """A kernel of its own, from the same text."""
    FACTOR = tl.constexpr(2 if twice else 1)

    @triton.jit
    def made_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n)
        tl.store(y_ptr + offsets, FACTOR * x * x, mask=offsets < n)

    return made_kernel


def test_kernels_made_anew_at_each_call(device, check):
    from triton.backends.autodiff import AutodiffError, autodiff, differentiable

    x = random_tensor(16, device=device)
    kernel = _made(twice=True)
    configs = [triton.Config({"BLOCK": 16})]

    def tuned(x):
        y = torch.empty_like(x)
        differentiable(triton.autotune(configs, key=["n"])(kernel))[(1,)](x, y, x.numel())
        return y

    assert check(lambda x: _launch(differentiable(kernel), x), (x,))
    assert check(lambda x: autodiff(kernel, _launch)(x), (x,))
    assert check(lambda x: _launch(differentiable(_made(twice=True)), x), (x,))
    assert check(tuned, (x,))
    with pytest.raises(AutodiffError, match="a kernel 'made_kernel' of its own where"):
        check(lambda x: _launch(differentiable(_made(x.dtype == torch.float64)), x), (x,))


class Tripled:
    """A reference without a kernel: three times its input."""

    def evaluate(self, inputs):
        return [3 * inputs[0]]


def test_slopes_of_terms_that_cancel():
    """A slope of zero is made of terms that are not."""
    from triton.backends.autodiff.inspecting.gradient_check import _Loss

    loss = _Loss(Tripled(), [torch.ones(4)])
    loss.start([torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)])
    found = loss.slopes(0, torch.arange(4), torch.ones(4, dtype=torch.float64))
    assert abs(found.central) < 1e-9 and found.smooth
    # Four terms of size 3; their slopes are as large, as the elements are ones.
    assert found.terms == pytest.approx(6) and found.values == pytest.approx(6)
    found = loss.slopes(0, torch.arange(4), loss.weights[0])
    assert [found.central, found.low, found.high] == pytest.approx([12, 12, 12]) and found.smooth
