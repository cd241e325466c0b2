"""`deterministic=True`: equal bits in every run, or an error that says what stands in the way."""

import flash_attention_v2 as flash
import layer_norm as looped
import pytest
import torch
import triton
import triton.language as tl
from gradients import assert_gradients_close
from kernels import cross_entropy, elementwise, gather, loops, matmul, normalization
from triton.backends.autodiff import AutodiffError, autodiff, differentiable


def leaf(device, *shape, dtype=torch.float32):
    return torch.randn(*shape, device=device, dtype=dtype).requires_grad_()


def attention(kernel, q, k, v):
    return flash.attention(kernel, q, k, v, True, 0.25)


def bias_gelu(kernel, a, b, bias):
    return matmul.bias_activation(kernel, a, b, bias, "gelu")


HEADS = [(2, 3, 200, 16)] * 3
NORM = [(371, 100), (100,), (100,)]
OPS = {
    "layer norm": (normalization.layer_norm_kernel, normalization.layer_norm, NORM),
    "looped layer norm": (looped.layer_norm_kernel, looped.layer_norm, NORM),
    "rms norm": (normalization.rms_norm_kernel, normalization.rms_norm, NORM[:2]),
    "matmul": (matmul.matmul_kernel, matmul.matmul, [(150, 70), (70, 133)]),
    "grouped": (matmul.grouped_matmul_kernel, matmul.grouped_matmul, [(150, 70), (70, 133)]),
    "bias": (matmul.bias_activation_kernel, bias_gelu, [(150, 70), (70, 133), (133,)]),
    "attention": (flash.attention_kernel, attention, HEADS),
    "recurrence": (loops.rnn_kernel, loops.rnn, [(3, 4, 20), (20,), (3, 20)]),
    "swiglu": (elementwise.swiglu_kernel, elementwise.swiglu, [(20, 300)] * 2),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_equal_bits(device, name, dtype):
    kernel, stub, shapes = OPS[name]
    inputs = [leaf(device, *shape, dtype=dtype) for shape in shapes]
    results = []
    for _ in range(4):
        # Made anew, lest only a first run be different.
        op = autodiff(kernel, stub, deterministic=True)
        output = op(*inputs)
        upstream = torch.linspace(-1, 1, output.numel(), device=device, dtype=dtype)
        results.append(torch.autograd.grad(output, inputs, upstream.view_as(output)))
    (plan,) = {plan.kernel: plan for _, plan, _ in op.kernel._plans((), {})}.values()
    assert all(g.accumulate != "atomic" for g in plan.gradients)
    assert "atomic_rmw" not in op.backward_ir()
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_repeated_indices(device):
    table, index = leaf(device, 5, 16), torch.randint(5, (20,), device=device)
    op = autodiff(gather.embedding_kernel, gather.embedding, deterministic=True)
    with pytest.raises(AutodiffError, match=r"gather\.py:\d+.*'table_ptr'.*deterministic=False"):
        op(index, table)
    free = autodiff(gather.embedding_kernel, gather.embedding, deterministic=False)
    assert torch.autograd.grad(free(index, table).sum(), table)[0].sum() == 20 * 16


def test_two_loads(device):
    op = autodiff(
        cross_entropy.cross_entropy_kernel, cross_entropy.cross_entropy, deterministic=True
    )
    with pytest.raises(AutodiffError, match=r"(?s)'logits_ptr'.*turns at .*: no: "):
        op(leaf(device, 6, 100), torch.randint(100, (6,), device=device))


@triton.jit
def scale_rows(x, w, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    v = tl.load(x + row * stride + columns, mask=inside) * tl.load(w + columns, mask=inside)
    tl.store(y + row * n + columns, v, mask=inside)


def scaled(kernel, x, w, columns):
    y = torch.empty(len(x), columns, device=x.device)
    kernel[(len(x),)](x, w, y, x.stride(0), columns, BLOCK=64)
    return y


def test_says_which_check_failed(device):
    """Part of a tensor is loaded: of partial sums, what is left out would not be zero."""
    x, w = leaf(device, 6, 40), leaf(device, 50)
    op = autodiff(scale_rows, scaled, deterministic=True)
    reason = "40 elements of stride 1, and the tensor is 50 elements"
    with pytest.raises(AutodiffError, match=rf"'w'.*test_deterministic\.py:\d+.*{reason}"):
        op(x, w, 40)
    assert autodiff(scale_rows, scaled)(x, w, 40).requires_grad


def test_part_of_a_tensor(device):
    """What is not loaded gets zero, without atomics."""
    x, w = leaf(device, 6, 50), leaf(device, 40)
    op = autodiff(scale_rows, scaled, deterministic=True)
    assert_gradients_close(op, lambda x, w, n: x[:, :n] * w, (x, w, 40))


def test_expanded(device):
    op = autodiff(scale_rows, scaled, deterministic=True)
    with pytest.raises(AutodiffError, match="'x'.*repeats addresses"):
        op(leaf(device, 1, 40).expand(6, 40), leaf(device, 40), 40)


def test_stores_that_repeat(device):
    @triton.jit
    def broadcast(x, y, stride):
        i = tl.program_id(0)
        tl.store(y + i * stride, tl.load(x + i))

    def stub(kernel, x, stride):
        y = torch.zeros(8, device=x.device)
        kernel[(4,)](x, y, stride)
        return y

    op = autodiff(broadcast, stub, deterministic=True)
    x = leaf(device, 4)
    (gradient,) = torch.autograd.grad(op(x, 2).sum(), x)
    assert torch.equal(gradient, torch.ones(4, device=device))
    with pytest.raises(AutodiffError, match="'y'.*store to the same address"):
        op(x, 0)


def test_empty_grid(device):
    op = autodiff(scale_rows, scaled, deterministic=True)
    x, w = leaf(device, 0, 40), leaf(device, 40)
    found = torch.autograd.grad(op(x, w, 40).sum(), (x, w))
    assert found[0].shape == (0, 40) and not found[1].any()


def test_cheap_sums(device):
    """A scalar that all programs read is summed without atomics, though these cost little."""

    @triton.jit
    def shift(x, s, y, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + i, tl.load(x + i) * tl.load(s))

    def stub(kernel, x, s):
        y = torch.empty_like(x)
        kernel[(len(x) // 16,)](x, s, y, BLOCK=16)
        return y

    # Sums of whole numbers are exact in any order.
    x = torch.randint(-9, 9, (4096,), device=device).float().requires_grad_()
    s = leaf(device, 1)
    op = autodiff(shift, stub, deterministic=True)
    found = [torch.autograd.grad(op(x, s).sum(), s)[0] for _ in range(3)]
    assert all(torch.equal(other, x.detach().sum().view(1)) for other in found)


@pytest.fixture
def mode():
    """Sets PyTorch's debug mode for what is not deterministic."""
    before = torch.get_deterministic_debug_mode()
    yield torch.set_deterministic_debug_mode
    torch.set_deterministic_debug_mode(before)


def test_follows_pytorch(device, mode):
    index = torch.randint(5, (20,), device=device)
    op = autodiff(gather.embedding_kernel, gather.embedding)

    def launch(op):
        table = leaf(device, 5, 16)
        return torch.autograd.grad(op(index, table).sum(), table)

    mode("default")
    launch(op)
    mode("warn")
    with pytest.warns(UserWarning, match="'table_ptr'.*meets in atomic operations"):
        launch(op)
    mode("error")
    with pytest.raises(AutodiffError, match="'table_ptr'"):
        launch(op)
    launch(autodiff(gather.embedding_kernel, gather.embedding, deterministic=False))
    mode("default")
    launch(op)


def test_options_are_kept():
    kernel = differentiable(tape_limit=100, deterministic=True)(scale_rows)
    assert differentiable(kernel) is kernel
    again = autodiff(kernel, scaled, deterministic=False).kernel._resolver.options
    assert again.tape_limit == 100 and again.deterministic is False
    with pytest.raises(TypeError, match="deterministic should be True or False"):
        autodiff(kernel, scaled, deterministic=1)
