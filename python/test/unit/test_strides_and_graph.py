"""What autograd may hand us: gradients of any stride, views, shared nodes, repeated use."""

import gradients
import pytest
import torch
from gradients import assert_close, assert_gradients_close, differentiated, random_tensor
from kernels import elementwise as ew
from kernels import matmul as mm
from kernels import softmax as sm

pytestmark = pytest.mark.usefixtures("needs_gradients")


@pytest.fixture
def needs_gradients():
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")


def _gradients(function, inputs):
    leaves = [x.detach().double().requires_grad_(x.requires_grad) for x in inputs]
    function(*leaves).backward()
    return [x.grad for x in leaves]


def _compare(ours, reference, inputs):
    """Backward from a scalar: the leaves' .grad against float64."""
    for x in inputs:
        x.grad = None
    ours(*inputs).backward()
    grads = [x.grad for x in inputs]
    singles = [x.detach().clone().requires_grad_() for x in inputs]
    reference(*singles).backward()
    truths = _gradients(reference, inputs)
    for i, (grad, single, truth) in enumerate(zip(grads, singles, truths, strict=True)):
        assert_close(f"gradient {i}", grad, single.grad, truth)


# How an output may become a scalar, and so what the upstream gradient looks like in memory.
HEADS = {
    "sum: one expanded element": lambda y: y.sum(),
    "mean": lambda y: y.mean(),
    "column sums: expanded along rows": lambda y: (y.sum(0) ** 2).sum(),
    "row sums: expanded along columns": lambda y: (y.sum(1) ** 2).sum(),
    "transposed": lambda y: (y.t().contiguous() ** 2).sum(),
    "every second column": lambda y: (y[:, ::2] ** 2).sum(),
    "one row": lambda y: (y[1] ** 3).sum(),
    "flipped": lambda y: (y.flip(1) * torch.arange(y.shape[1], device=y.device)).sum(),
}


@pytest.mark.parametrize("head", HEADS)
def test_upstream_gradient(device, head):
    f = HEADS[head]
    x = random_tensor(12, 40, device=device)
    # Not softmax: its gradient under a constant upstream gradient is zero, and all error is noise.
    log_softmax = differentiated(sm.log_softmax_kernel, sm.rowwise)
    _compare(lambda x: f(log_softmax(x)), lambda x: f(torch.log_softmax(x, 1)), (x,))
    y = random_tensor(12, 40, device=device)
    add = differentiated(ew.add_kernel, ew.add)
    _compare(lambda x, y: f(add(x, y)), lambda x, y: f(x + y), (x, y))
    w = random_tensor(40, 24, device=device)
    matmul = differentiated(mm.matmul_kernel, mm.matmul)
    _compare(lambda x, w: f(matmul(x, w)), lambda x, w: f(x @ w), (x, w))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_permuted_upstream_tensor(device, dtype):
    """Passed to backward() by hand, with the strides of a transpose and of an expansion."""
    x = random_tensor(12, 40, device=device, dtype=dtype)
    op = differentiated(sm.softmax_kernel, sm.rowwise)
    transposed = torch.randn(40, 12, device=device, dtype=torch.float64).to(dtype).t()
    expanded = torch.randn(12, 1, device=device, dtype=torch.float64).to(dtype).expand(12, 40)
    offset = torch.randn(481, device=device, dtype=torch.float64).to(dtype)[1:].view(12, 40)
    for upstream in (transposed, offset):
        assert_gradients_close(op, sm.softmax_reference, (x,), [upstream])
    # Softmax of a constant direction is exactly flat, so log-softmax for the expanded one.
    op = differentiated(sm.log_softmax_kernel, sm.rowwise)
    assert_gradients_close(op, sm.log_softmax_reference, (x,), [expanded])


# What a stub may do to a parameter (64 x 96) before it launches a kernel: views of 20 x 24.
VIEWS = {
    "transposed": lambda base: base.t()[:20, :24],
    "strided": lambda base: base[:40:2, 1:73:3],
    "offset": lambda base: base.view(-1)[5 : 5 + 20 * 24].view(20, 24),
    "part of a tensor": lambda base: base.view(2, 32, 96)[1][:20, :24],
    "expanded rows": lambda base: base[0, :24].expand(20, 24),
    "expanded columns": lambda base: base[:20, :1].expand(20, 24),
    "overlapping windows": lambda base: base.view(-1).as_strided((20, 24), (7, 1), 3),
}


@pytest.mark.parametrize("leaf", ["the base", "the view"])
@pytest.mark.parametrize("kind", VIEWS)
def test_view_as_input(device, kind, leaf):
    base = random_tensor(64, 96, device=device)
    w, b = (random_tensor(24, device=device) for _ in range(2))
    op = differentiated(ew.affine_columns_kernel, ew.affine_columns)
    _check_view(op, ew.affine_columns_reference, kind, leaf, base, w, b)


@pytest.mark.parametrize("leaf", ["the base", "the view"])
@pytest.mark.parametrize("kind", VIEWS)
def test_view_as_matmul_operand(device, kind, leaf):
    base, w = random_tensor(64, 96, device=device), random_tensor(24, 40, device=device)
    op = differentiated(mm.matmul_kernel, mm.matmul)
    _check_view(op, torch.matmul, kind, leaf, base, w)


def _check_view(op, reference, kind, leaf, base, *others):
    view = VIEWS[kind]
    if leaf == "the base":
        assert_gradients_close(
            lambda base, *others: op(view(base), *others),
            lambda base, *others: reference(view(base), *others),
            (base, *others),
        )
        return
    x = view(base).detach().requires_grad_()
    if kind not in ("expanded rows", "expanded columns", "overlapping windows"):
        assert_gradients_close(op, reference, (x, *others))
        return
    # Elements of such a leaf share memory: only the sum over what they share is determined.
    output = op(x, *others)
    upstream = torch.randn_like(output)
    output.backward(upstream)
    found = [x.grad]
    for dtype in (torch.float32, torch.float64):
        copies = [y.detach().to(dtype, copy=True).requires_grad_() for y in (x, *others)]
        reference(*copies).backward(upstream.to(dtype))
        found.append(copies[0].grad)
    ours, theirs, truth = (
        torch.zeros(64 * 96, dtype=torch.float64, device=x.device).index_add_(
            0, _addresses(x).flatten(), gradient.flatten().double()
        )
        for gradient in found
    )
    assert_close("sums", ours.float(), theirs.float(), truth)


def _addresses(x):
    """The storage offset of every element."""
    offsets = torch.full((), x.storage_offset(), device=x.device)
    for dimension, (size, stride) in enumerate(zip(x.shape, x.stride(), strict=True)):
        steps = torch.arange(size, device=x.device) * stride
        offsets = offsets + steps.reshape([-1] + [1] * (x.dim() - 1 - dimension))
    return offsets


def test_view_with_strided_vector(device):
    """A parameter with a stride of its own, from the middle of a larger buffer."""
    w = torch.randn(200, device=device)[3:75:3].detach().requires_grad_()
    x, b = random_tensor(20, 24, device=device), random_tensor(24, device=device)
    op = differentiated(ew.affine_columns_kernel, ew.affine_columns)
    assert_gradients_close(op, ew.affine_columns_reference, (x, w, b))


def test_two_views_of_one_buffer(device):
    """Halves of one projection, as SwiGLU layers have them; gradients meet in the buffer."""
    packed = random_tensor(6, 64, device=device)

    def stub(kernel, packed):
        gate, up = (half.contiguous() for half in packed.chunk(2, dim=1))
        return ew.swiglu(kernel, gate, up)

    def reference(packed):
        return ew.swiglu_reference(*packed.chunk(2, dim=1))

    assert_gradients_close(differentiated(ew.swiglu_kernel, stub), reference, (packed,))


def test_output_is_a_view(device):
    """The kernel writes into part of a larger tensor; the rest keeps its values."""
    x, y = (random_tensor(100, device=device) for _ in range(2))

    def stub(kernel, x, y):
        big = torch.full((300,), 7.0, device=x.device)
        kernel[(2,)](x, y, big[100:200], 100, BLOCK=64)
        return big

    def reference(x, y):
        sevens = torch.full_like(x, 7.0)
        return torch.cat([sevens, x + y, sevens])

    assert_gradients_close(differentiated(ew.add_kernel, stub), reference, (x, y))


def test_output_reused_in_torch(device):
    x, y = (random_tensor(100, device=device) for _ in range(2))

    def stub(kernel, x, y):
        z = ew.add(kernel, torch.sin(x), y)
        return z * z + x

    def reference(x, y):
        z = torch.sin(x) + y
        return z * z + x

    assert_gradients_close(differentiated(ew.add_kernel, stub), reference, (x, y))


def test_caller_s_output_joins_the_graph(device):
    from triton.backends.autodiff import differentiable

    x, y = (random_tensor(100, device=device) for _ in range(2))
    out = torch.full((100,), float("nan"), device=device)
    differentiable(ew.add_kernel)[(1,)](x, y, out, 100, BLOCK=128)
    assert out.grad_fn is not None
    out.backward(torch.arange(100.0, device=device))
    assert torch.equal(x.grad, torch.arange(100.0, device=device))
    assert torch.equal(y.grad, x.grad)


def test_no_gradient_wanted(device):
    x, y = (random_tensor(100, device=device, grad=False) for _ in range(2))
    op = differentiated(ew.add_kernel, ew.add)
    assert op(x, y).grad_fn is None
    x.requires_grad_()
    with torch.no_grad():
        assert op(x, y).grad_fn is None
    assert op(x, y).grad_fn is not None
    assert_gradients_close(op, torch.add, (x, y))


def test_same_tensor_twice(device):
    x = random_tensor(100, device=device)
    op = differentiated(
        ew.product_and_exponential_kernel,
        lambda kernel, x: ew.product_and_exponential(kernel, x, x)[0],
    )
    assert_gradients_close(op, torch.square, (x,))


def test_retain_graph(device):
    x = random_tensor(5, 30, device=device)
    y = differentiated(sm.softmax_kernel, sm.rowwise)(x)
    upstream = torch.randn_like(y)
    (first,) = torch.autograd.grad(y, x, upstream, retain_graph=True)
    (second,) = torch.autograd.grad(y, x, 2 * upstream, retain_graph=True)
    torch.testing.assert_close(2 * first, second, rtol=1e-6, atol=1e-7)
    y.backward(upstream)
    assert torch.equal(x.grad, first)
    with pytest.raises(RuntimeError):
        y.backward(upstream)


def test_many_launches_in_one_graph(device):
    """Fifty nodes of one kernel, each with residuals of its own."""
    x = random_tensor(4, 16, device=device)
    op = differentiated(ew.gelu_tanh_kernel, ew.unary)

    def chain(f, x):
        for _ in range(50):
            x = x + 0.1 * f(x)
        return x

    assert_gradients_close(lambda x: chain(op, x), lambda x: chain(ew.gelu_tanh_reference, x), (x,))


def test_shared_input_of_several_launches(device):
    """Gradients of one leaf from several nodes add up."""
    x = random_tensor(30, device=device)
    add = differentiated(ew.add_kernel, ew.add)
    assert_gradients_close(
        lambda x: add(add(x, x), add(x, torch.sin(x))), lambda x: 3 * x + torch.sin(x), (x,)
    )


def test_two_kernels_in_a_stub(device):
    from triton.backends.autodiff import differentiable

    gelu = differentiable(ew.gelu_erf_kernel)
    x, y = random_tensor(24, 40, device=device), random_tensor(40, 24, device=device)

    def stub(kernel, x, y):
        return ew.unary(gelu, mm.matmul(kernel, x, y))

    assert_gradients_close(
        differentiated(mm.matmul_kernel, stub),
        lambda x, y: ew.gelu_erf_reference(x @ y),
        (x, y),
    )


def test_training_reduces_the_loss(device):
    """Parameters change between launches; every backward sees the current ones."""
    op = differentiated(ew.affine_columns_kernel, ew.affine_columns)
    x = torch.randn(64, 8, device=device)
    w_true, b_true = torch.randn(8, device=device), torch.randn(8, device=device)
    w = torch.zeros(8, device=device, requires_grad=True)
    b = torch.zeros(8, device=device, requires_grad=True)
    optimizer = torch.optim.SGD([w, b], lr=0.5)
    for _ in range(200):
        optimizer.zero_grad()
        ((op(x, w, b) - (x * w_true + b_true)) ** 2).sum(1).mean().backward()
        optimizer.step()
    torch.testing.assert_close(w.detach(), w_true, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(b.detach(), b_true, rtol=1e-3, atol=1e-3)
