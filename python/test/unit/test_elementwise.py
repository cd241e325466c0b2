"""Elementwise kernels: tails, precisions, several outputs, in-place updates, random masks."""

import pytest
import torch
from gradients import assert_gradcheck, assert_gradients_close, differentiated, random_tensor
from kernels import elementwise as ew

pytestmark = pytest.mark.schedules

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
SIZES = [1, 255, 256, 1000]

UNARY = {
    "gelu_tanh": (ew.gelu_tanh_kernel, ew.gelu_tanh_reference),
    "gelu_erf": (ew.gelu_erf_kernel, ew.gelu_erf_reference),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", SIZES)
def test_add(device, n, dtype):
    x, y = (random_tensor(n, device=device, dtype=dtype) for _ in range(2))
    op = differentiated(ew.add_kernel, ew.add)
    assert_gradients_close(op, torch.add, (x, y))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("a", [0.0, 1.0, -2.5])
def test_scalar_arguments(device, a, dtype):
    x = random_tensor(300, device=device, dtype=dtype)
    op = differentiated(ew.axpb_kernel, ew.axpb)
    assert_gradients_close(op, lambda x, a, b: a * x + b, (x, a, 0.25))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_gelu(device, name, dtype):
    kernel, reference = UNARY[name]
    op = differentiated(kernel, ew.unary)
    for n in (1000, 257):
        x = random_tensor(n, device=device, dtype=dtype, scale=2.0)
        assert_gradients_close(op, reference, (x,))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(3, 128), (5, 100), (2, 1)], ids=str)
def test_swiglu(device, shape, dtype):
    gate, up = (random_tensor(*shape, device=device, dtype=dtype) for _ in range(2))
    if gate.numel() < 100:
        # The derivative vanishes at -1.28: of few numbers, only roundings may be left.
        gate = gate.detach().abs().requires_grad_()
    op = differentiated(ew.swiglu_kernel, ew.swiglu)
    assert_gradients_close(op, ew.swiglu_reference, (gate, up))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("p", [0.1, 0.5])
def test_dropout(device, p, dtype, seed):
    n = 5000
    # The mask is what the kernel does to ones.
    ones = torch.ones(n, device=device)
    mask = ew.dropout(ew.dropout_kernel, ones, p, seed % 2**31) != 0
    assert abs(mask.double().mean().item() - (1 - p)) < 6 * (p * (1 - p) / n) ** 0.5
    x = random_tensor(n, device=device, dtype=dtype)
    op = differentiated(ew.dropout_kernel, ew.dropout)

    def reference(x, p, _):
        return torch.where(mask, x / (1 - p), torch.zeros_like(x))

    assert_gradients_close(op, reference, (x, p, seed % 2**31))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("used", [(True, True), (True, False), (False, True)], ids=str)
def test_several_outputs(device, used, dtype):
    x, y = (random_tensor(500, device=device, dtype=dtype) for _ in range(2))
    upstreams = [torch.randn_like(x) if use else None for use in used]
    inputs = (x, y) if used[0] else (x, y.detach())
    op = differentiated(ew.product_and_exponential_kernel, ew.product_and_exponential)
    assert_gradients_close(op, ew.product_and_exponential_reference, inputs, upstreams)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_relu_in_place(device, dtype):
    x = random_tensor(777, device=device, dtype=dtype)
    op = differentiated(ew.relu_inplace_kernel, ew.inplace)
    assert_gradients_close(op, torch.relu, (x,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_square_in_place(device, dtype):
    """The backward needs what the kernel overwrote."""
    x = random_tensor(777, device=device, dtype=dtype)
    op = differentiated(ew.square_inplace_kernel, ew.inplace)
    assert_gradients_close(op, torch.square, (x,))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("shape", [(16, 32), (37, 70), (1, 5)], ids=str)
def test_broadcast_operands(device, shape, dtype):
    x = random_tensor(*shape, device=device, dtype=dtype)
    w, b = (random_tensor(shape[1], device=device, dtype=dtype) for _ in range(2))
    op = differentiated(ew.affine_columns_kernel, ew.affine_columns)
    assert_gradients_close(op, ew.affine_columns_reference, (x, w, b))


@pytest.mark.parametrize("name", ["add", "gelu_tanh", "gelu_erf", "swiglu", "outputs", "broadcast"])
def test_gradcheck(device, name):
    def leaf(*shape):
        return random_tensor(*shape, device=device, dtype=torch.float64)

    if name == "add":
        op, inputs = differentiated(ew.add_kernel, ew.add), (leaf(17), leaf(17))
    elif name == "swiglu":
        op, inputs = differentiated(ew.swiglu_kernel, ew.swiglu), (leaf(3, 5), leaf(3, 5))
    elif name == "outputs":
        op = differentiated(ew.product_and_exponential_kernel, ew.product_and_exponential)
        inputs = (leaf(9), leaf(9))
    elif name == "broadcast":
        op = differentiated(ew.affine_columns_kernel, ew.affine_columns)
        inputs = (leaf(3, 4), leaf(4), leaf(4))
    else:
        op, inputs = differentiated(UNARY[name][0], ew.unary), (leaf(19),)
    assert_gradcheck(op, inputs)


def test_elementwise_real_sizes(cuda):
    n = 2**22 + 3
    for kernel, reference in UNARY.values():
        x = random_tensor(n, device=cuda, dtype=torch.float16)
        op = differentiated(kernel, lambda kernel, x: ew.unary(kernel, x, BLOCK=1024))
        assert_gradients_close(op, reference, (x,))
    gate, up = (random_tensor(4096, 5632, device=cuda, dtype=torch.bfloat16) for _ in range(2))
    op = differentiated(ew.swiglu_kernel, ew.swiglu)
    assert_gradients_close(op, ew.swiglu_reference, (gate, up))
