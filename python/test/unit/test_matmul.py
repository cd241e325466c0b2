"""Matrix products: tails, all transpositions, swizzled grids, epilogues, batches."""

from functools import partial

import pytest
import torch
from gradients import assert_gradcheck, assert_gradients_close, differentiated, random_tensor
from kernels import grid_stride, low_rank, wraparound
from kernels import matmul as mm
from schedules import assert_no_atomics, assert_sums

pytestmark = pytest.mark.schedules

DTYPES = [torch.float16, torch.bfloat16, torch.float32]
SHAPES = [(64, 32, 96), (50, 70, 33), (32, 32, 1)]  # m, n, k


def _operand(rows, columns, device, dtype, transposed=False):
    if transposed:
        x = random_tensor(columns, rows, device=device, dtype=dtype, grad=False)
        return x.t().requires_grad_()
    return random_tensor(rows, columns, device=device, dtype=dtype)


def _operands(shape, device, dtype, transposed=(False, False)):
    m, n, k = shape
    a = _operand(m, k, device, dtype, transposed[0])
    return a, _operand(k, n, device, dtype, transposed[1])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_matmul(device, shape, dtype):
    op = differentiated(mm.matmul_kernel, mm.matmul)
    assert_gradients_close(op, torch.matmul, _operands(shape, device, dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("transposed", [(True, False), (False, True), (True, True)], ids=str)
def test_transposed_operands(device, transposed, dtype):
    op = differentiated(mm.matmul_kernel, mm.matmul)
    assert_gradients_close(op, torch.matmul, _operands((50, 70, 33), device, dtype, transposed))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("shape", [(160, 96, 64), (150, 70, 33)], ids=str)
def test_grouped_matmul(device, shape, dtype):
    """The tile a program computes comes from divisions and remainders of its id."""
    op = differentiated(mm.grouped_matmul_kernel, mm.grouped_matmul)
    assert_gradients_close(op, torch.matmul, _operands(shape, device, dtype))


@pytest.mark.parametrize("last", [None, "chosen", "branch", "smaller", "smaller branch"])
def test_height_of_the_last_group(device, ran, last):
    """However it is spelled, launches find out that programs compute a tile each."""
    op = differentiated(mm.grouped_matmul_kernel, partial(mm.grouped_matmul, LAST=last))
    for rows in (150, 192, 20):
        inputs = _operands((rows, 70, 133), device, torch.float32)
        assert_gradients_close(op, torch.matmul, inputs)
        assert_sums(ran, "store", 0, 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("shape", [(64, 96, 32), (50, 170, 33), (20, 7, 1)], ids=str)
@pytest.mark.parametrize("kernel, stub", [
    (wraparound.matmul_kernel, mm.grouped_matmul),
    (grid_stride.matmul_kernel, grid_stride.matmul),
    (grid_stride.matmul_kernel, partial(grid_stride.matmul, HALVES=True)),
], ids=["modulo lengths", "persistent", "in halves"])  # fmt: skip
def test_tutorials(device, ran, kernel, stub, shape, dtype):
    """Tiles that go around the end of the operands; few programs for more tiles, or fewer.

    The tutorial stores halves of a tile one after the other.
    """
    op = differentiated(kernel, stub)
    assert_gradients_close(op, torch.matmul, _operands(shape, device, dtype))
    assert_no_atomics(ran)


def test_autotuned_matmul(device):
    op = differentiated(mm.autotuned_matmul_kernel, mm.autotuned_matmul)
    for _ in range(2):
        assert_gradients_close(op, torch.matmul, _operands((70, 90, 40), device, torch.float16))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("activation", ["leaky_relu", "gelu"])
def test_bias_and_activation(device, activation, dtype):
    a, b = _operands((50, 70, 33), device, dtype)
    bias = random_tensor(70, device=device, dtype=dtype)
    op = differentiated(mm.bias_activation_kernel, mm.bias_activation)
    assert_gradients_close(op, mm.bias_activation_reference, (a, b, bias, activation))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [*SHAPES, (70, 100, 40)], ids=str)
def test_low_rank(device, shape, dtype):
    """What programs along a row share is multiplied once, by a sum over them."""
    (x, w), rank = _operands(shape, device, dtype), 16
    a, b = _operands((shape[2], shape[1], rank), device, dtype)
    op = differentiated(low_rank.low_rank_kernel, low_rank.low_rank)
    assert_gradients_close(op, low_rank.low_rank_reference, (x, w, a, b))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("shared", [False, True], ids=["batched", "shared operand"])
def test_batched_matmul(device, shared, dtype):
    """With a shared (expanded) operand every batch adds to the same gradient."""
    a = random_tensor(3, 40, 50, device=device, dtype=dtype)
    if shared:
        b = random_tensor(50, 36, device=device, dtype=dtype)
    else:
        b = random_tensor(3, 50, 36, device=device, dtype=dtype)
    op = differentiated(
        mm.batched_matmul_kernel,
        lambda kernel, a, b: mm.batched_matmul(kernel, a, b.expand(3, -1, -1)),
    )
    assert_gradients_close(op, torch.matmul, (a, b))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_three_dimensional_dot(device, dtype):
    a = random_tensor(2, 16, 32, device=device, dtype=dtype)
    b = random_tensor(2, 32, 16, device=device, dtype=dtype)
    op = differentiated(mm.block_dot_kernel, mm.block_dot)
    assert_gradients_close(op, torch.matmul, (a, b))


@pytest.mark.parametrize("shape", [(0, 64, 128), (64, 0, 128), (64, 128, 0)], ids=str)
def test_nothing_to_multiply(device, shape):
    """Loops over programs of the forward, of which there are none."""
    operands = _operands(shape, device, torch.float16)
    op = differentiated(mm.matmul_kernel, mm.matmul)
    c = op(*operands)
    gradients = torch.autograd.grad(c, operands, torch.ones_like(c))
    for gradient, operand in zip(gradients, operands, strict=True):
        assert gradient.shape == operand.shape and not gradient.any()


@pytest.mark.parametrize("wanted", [0, 1])
def test_one_operand(device, wanted):
    operands = [x.detach() for x in _operands((50, 40, 33), device, torch.float16)]
    operands[wanted].requires_grad_()
    assert_gradients_close(differentiated(mm.matmul_kernel, mm.matmul), torch.matmul, operands)


@pytest.mark.parametrize("format", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_float8_operands(device, format):
    """Rounding lets gradients through; their own operands have 16 bits, exact for these."""
    operands = _operands((32, 16, 64), device, torch.float32)
    upstream = torch.randint(-2000, 2000, (32, 16), device=device).float() / 1024
    op = differentiated(mm.float8_dot_kernel, mm.float8_dot)
    inputs = (*operands, format)
    assert_gradients_close(op, mm.float8_dot_reference, inputs, upstreams=[upstream])


def test_product_with_itself(device):
    """Two arguments that are one tensor."""
    a = random_tensor(40, 40, device=device)
    op = differentiated(mm.matmul_kernel, lambda kernel, a: mm.matmul(kernel, a, a))
    assert_gradients_close(op, lambda a: a @ a, (a,))


def test_gradcheck(device):
    """In float32, tt.dot's widest here: with a linear map a step of one loses nothing."""
    a, b = (random_tensor(5, 5, device=device) for _ in range(2))
    op = differentiated(mm.matmul_kernel, mm.matmul)
    assert_gradcheck(op, (a, b), eps=1.0, atol=1e-4, rtol=1e-4, nondet_tol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(2048, 1024, 512), (1000, 777, 300)], ids=str)
def test_matmul_real_sizes(cuda, shape, dtype):
    blocks = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32, "num_warps": 8}
    for kernel, stub in (
        (mm.matmul_kernel, mm.matmul),
        (mm.grouped_matmul_kernel, mm.grouped_matmul),
    ):
        op = differentiated(kernel, lambda kernel, a, b, stub=stub: stub(kernel, a, b, **blocks))
        assert_gradients_close(op, torch.matmul, _operands(shape, cuda, dtype))


@pytest.mark.parametrize("before, steps", [(0, 1), (1, 1), (0, 16)])
@pytest.mark.parametrize("shape", [(48, 32, 64), (53, 33, 70), (16, 16, 16), (80, 16, 40)], ids=str)
def test_triangular_products(device, ran, shape, before, steps):
    """Loops start at the diagonal: the second factor is summed up to it, the first by columns."""
    M, N, K = shape
    a, b = random_tensor(M, K, device=device), random_tensor(K, N, device=device)
    op = differentiated(mm.triangular_kernel, mm.triangular)
    inputs = (a, b, before, steps)
    assert_gradients_close(op, mm.triangular_reference, inputs, roundings=32)
    assert_sums(ran, "store", 0, 1)
    for wanted in (a, b):
        alone = [x if x is wanted else x.detach() for x in (a, b)]
        inputs = (*alone, before, steps)
        assert_gradients_close(op, mm.triangular_reference, inputs, roundings=32)
