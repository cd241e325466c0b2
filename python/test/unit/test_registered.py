"""Operations as operators of PyTorch: schemas, gradients, tracers, and what is refused."""

import copy

import pytest
import torch
import triton
import triton.language as tl
from triton_autodiff import AutodiffError, autodiff

Tensor = torch.Tensor


@triton.jit
def scale_kernel(x_ptr, w_ptr, y_ptr, n, eps, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, w * tl.exp(x) + eps, mask=i < n)


def launch(kernel, x, w, y, eps):
    kernel[(triton.cdiv(x.numel(), 64),)](x, w, y, x.numel(), eps, BLOCK=64)
    return y


def scale(kernel, x: Tensor, w: Tensor, eps: float = 0.5) -> Tensor:
    # What PyTorch computes in a stub has a history, too.
    return launch(kernel, x * 2, w.sin(), torch.empty_like(x), eps)


def scale_reference(x, w, eps=0.5):
    return w.double().sin() * torch.exp(2 * x.double()) + eps


def pair(kernel, xs: list[Tensor], bias: Tensor | None, twice: bool) -> tuple[Tensor, Tensor]:
    y = launch(kernel, *xs, torch.empty_like(xs[0]), 0.0)
    if bias is not None:
        y = y + bias
    return (y * 2 if twice else y * 1), (y > 0).sum()


def apart(kernel, x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    return launch(kernel, x, w, torch.empty_like(x), 0.0), x.cos()


def unannotated(kernel, x, w, eps=0.5):
    return launch(kernel, x, w, torch.empty_like(x), eps)


def in_place(kernel, x: Tensor, w: Tensor) -> Tensor:
    launch(kernel, x, w, x, 0.0)
    return x + 0


def in_place_by_pytorch(kernel, x: Tensor, w: Tensor) -> Tensor:
    y = launch(kernel, x.clone(), w, torch.empty_like(x), 0.0)
    x[3:].add_(1)
    return y


def returns_view(kernel, x: Tensor, w: Tensor) -> Tensor:
    launch(kernel, x, w, torch.empty_like(x), 0.0)
    return x[1:]


scaled = autodiff(scale_kernel, scale)
registered = scaled.register("autodiff_test::scale")
paired = autodiff(scale_kernel, pair).register("autodiff_test::pair")


separate = autodiff(scale_kernel, apart).register("autodiff_test::apart")


def inputs(device, n=150):
    return [torch.randn(n, device=device, requires_grad=True) for _ in range(2)]


def expect(result, reference, leaves):
    upstream = torch.randn_like(result)
    torch.testing.assert_close(result, reference.to(result.dtype))
    found = torch.autograd.grad(result, leaves, upstream)
    expected = torch.autograd.grad(reference, leaves, upstream.double())
    expected = tuple(g.to(f.dtype) for f, g in zip(found, expected, strict=True))
    torch.testing.assert_close(found, expected)


def test_it_is_the_operation(device):
    x, w = inputs(device)
    expect(registered(x, w, 0.25), scale_reference(x, w, 0.25), (x, w))
    expect(torch.ops.autodiff_test.scale(x, w), scale_reference(x, w), (x, w))


def test_one_gradient_alone(device):
    x, w = inputs(device)
    expect(registered(x.detach(), w), scale_reference(x.detach(), w), (w,))


@pytest.mark.parametrize("twice", [True, False])
@pytest.mark.parametrize("has_bias", [True, False])
def test_lists_and_options_and_several_results(device, has_bias, twice):
    x, w = inputs(device)
    bias = torch.randn(150, device=device, requires_grad=True) if has_bias else None
    y, count = paired([x, w], bias, twice)
    z = w.double() * x.double().exp() + (bias.double() if has_bias else 0)
    assert count == (z > 0).sum() and not count.requires_grad
    expect(y, z * (1 + twice), (x, w, bias) if has_bias else (x, w))


def test_opcheck(device):
    x, w = inputs(device)
    results = torch.library.opcheck(registered, (x, w, 0.5))
    assert set(results.values()) == {"SUCCESS"} and len(results) == 4
    results = torch.library.opcheck(paired, ([x, w], None, True))
    assert set(results.values()) == {"SUCCESS"}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_torch_compile(device, backend):
    x, w = inputs(device)
    compiled = torch.compile(
        lambda x, w: registered(x.cos(), w) + 1, fullgraph=True, backend=backend
    )
    expect(compiled(x, w), scale_reference(x.cos(), w) + 1, (x, w))


class Model(torch.nn.Module):
    def forward(self, x, w):
        return registered(x, w)


@pytest.mark.parametrize("strict", [True, False])
def test_export(device, strict):
    x, w = inputs(device)
    program = torch.export.export(Model(), (x, w), strict=strict)
    targets = [str(node.target) for node in program.graph.nodes]
    assert "autodiff_test.scale.default" in targets
    expect(program.module()(x, w), scale_reference(x, w), (x, w))


def test_inside_of_a_custom_operator(device, operator_name):
    @torch.library.custom_op(operator_name("gradient"), mutates_args=())
    def gradient(x: Tensor, w: Tensor, g: Tensor) -> list[Tensor]:
        with torch.enable_grad():
            leaves = [t.detach().requires_grad_() for t in (x, w)]
            y = scaled(*leaves)
        return list(torch.autograd.grad(y, leaves, g))

    x, w = inputs(device)
    g = torch.randn_like(x)
    expected = torch.autograd.grad(scale_reference(x, w), (x, w), g.double())
    torch.testing.assert_close(tuple(gradient(x, w, g)), expected)


def test_a_schema_in_place_of_annotations(device, operator_name):
    op, name = autodiff(scale_kernel, unannotated), operator_name("unannotated")
    with pytest.raises(AutodiffError, match="parameter 'x' may be anything"):
        op.register(name)
    made = op.register(name, schema="(Tensor x, Tensor w, float eps=0.5) -> Tensor")
    x, w = inputs(device)
    expect(made(x, w), w.double() * x.double().exp() + 0.5, (x, w))


def test_names():
    assert scaled.register("autodiff_test::scale") is registered
    with pytest.raises(AutodiffError, match="already"):
        autodiff(scale_kernel, scale).register("autodiff_test::scale")
    with pytest.raises(AutodiffError, match="no name of an operator"):
        scaled.register("scale")


@pytest.mark.parametrize("has_history", [True, False])
@pytest.mark.parametrize(
    ("stub", "message"),
    [
        (in_place, "changes its argument 'x'"),
        (in_place_by_pytorch, "changes its argument 'x'"),
        (returns_view, "memory of its argument 'x'"),
    ],
)
def test_arguments_that_are_results(device, stub, message, has_history, operator_name):
    made = autodiff(scale_kernel, stub).register(operator_name(stub.__name__))
    with pytest.raises(AutodiffError, match=message):
        made(*(t * 1 if has_history else t.detach() for t in inputs(device)))


def test_inference_mode(device):
    with torch.inference_mode():
        x, w = (torch.randn(150, device=device) for _ in range(2))
        torch.testing.assert_close(registered(x, w), scale_reference(x, w).float())


def test_batches(device):
    """Once for each, with a history of its own."""
    x, w = inputs(device)
    xs = torch.stack([x, x * 2]).detach().requires_grad_()
    expect(torch.func.vmap(registered, (0, None))(xs, w), scale_reference(xs, w), (xs, w))
    expect(torch.func.vmap(scaled, (0, None))(xs, w), scale_reference(xs, w), (xs, w))


def test_what_no_gradient_reaches(device):
    """Its gradient is zero, in memory that holds anything else."""
    x, w = inputs(device)
    _, second = separate(x, w)
    for gradient, truth in zip(
        torch.autograd.grad(second.sum(), (x, w)), (-x.sin(), torch.zeros_like(w)), strict=True
    ):
        torch.testing.assert_close(gradient, truth.detach())


@triton.jit
def scaled_kernel(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


class Scaled(torch.nn.Module):
    def __init__(self, name=None):
        super().__init__()
        self.factor = 2.0
        self.op = autodiff(scaled_kernel, self.launch)
        if name is not None:
            self.op = self.op.register(name)

    def launch(self, kernel, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), self.factor, 32)
        return y


def test_copies_of_what_an_operation_belongs_to(device, operator_name):
    """An operation is the copy's own; an operator would stay the original's."""
    copied = copy.deepcopy(Scaled())
    copied.factor = 3.0
    x = torch.randn(40, device=device, requires_grad=True)
    torch.testing.assert_close(torch.autograd.grad(copied.op(x).sum(), x), (torch.full_like(x, 3),))
    layer = Scaled(operator_name("copied"))
    assert copy.deepcopy(layer.op) is layer.op
    with pytest.raises(AutodiffError, match="launches for one Scaled.*its arguments"):
        copy.deepcopy(layer)
