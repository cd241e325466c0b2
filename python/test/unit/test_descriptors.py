"""Kernels that access memory through tensor descriptors, made in the kernel or on the host."""

import gradients
import pytest
import torch
from kernels import descriptors as k
from releases import NEWEST
from triton.tools.tensor_descriptor import TensorDescriptor

pytestmark = [
    pytest.mark.schedules,
    pytest.mark.usefixtures("descriptor_memory"),
    pytest.mark.every_triton,
]

DTYPES = [torch.float16, torch.float32, torch.float64]
random_tensor = gradients.random_tensor


def check(device, kernel, stub, reference, inputs):
    gradients.assert_gradients_close(gradients.differentiated(kernel, stub), reference, inputs)


def three_powers(x, z, which):
    """The reference of `chosen_kernel`: 16 columns of one, 16 of the other, and so on."""
    columns = torch.arange(x.shape[1], device=x.device) // 16 % 2
    return torch.where((columns == 0) == (which == 0), x, z) ** 3


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(32, 64), (37, 61), (1, 3)])
def test_blocks_out_of_bounds(device, dtype, shape):
    x = random_tensor(*shape, device=device, dtype=dtype)
    w = random_tensor(shape[1], device=device, dtype=dtype)
    check(device, k.weighted_square_kernel, k.weighted_square, lambda x, w: x * x * w, [x, w])


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_nan_padding(device, dtype):
    if device == "cuda":
        pytest.skip("Triton 3.6's own forward ends in an illegal instruction on Hopper")
    x = random_tensor(13, 40, device=device, dtype=dtype)
    check(device, k.nan_row_sum_kernel, k.nan_row_sum, lambda x: x.exp().sum(1), [x])


@pytest.mark.parametrize("dtype", DTYPES[:2])
@pytest.mark.parametrize("sizes", [(64, 32, 32), (50, 19, 41)])
def test_matmul(device, dtype, sizes):
    M, N, K = sizes
    a = random_tensor(M, K, device=device, dtype=dtype)
    b = random_tensor(K, N, device=device, dtype=dtype)
    check(device, k.matmul_kernel, k.matmul, torch.matmul, [a, b])


@pytest.mark.parametrize("which", [0, 2])
def test_chosen_by_control_flow(device, which):
    x, z = (random_tensor(21, 70, device=device) for _ in range(2))
    check(device, k.chosen_kernel, k.chosen, three_powers, [x, z, which])


@pytest.mark.parametrize("wanted", [0, 1])
def test_chosen_with_one_gradient_wanted(device, wanted):
    """Lanes that belong to the other tensor must not reach this one's gradient."""
    tensors = [random_tensor(21, 70, device=device, grad=i == wanted) for i in range(2)]
    check(device, k.chosen_kernel, k.chosen, three_powers, [*tensors, 2])


def test_gather_and_scatter(device):
    if device == "cuda" and torch.cuda.get_device_capability()[0] < 10:
        pytest.skip("rows are gathered by Blackwell")
    x = random_tensor(9, 40, device=device)
    index = torch.tensor([3, 0, 8, 20, 5, -1, 1, 7], dtype=torch.int32, device=device)

    def reference(x, index):
        kept = index[(index >= 0) & (index < 9)].long()
        y = torch.zeros_like(x)
        y[kept, 4:20] = x[kept, 2:18] ** 2
        return y

    check(device, k.rows_kernel, k.rows, reference, [x, index])


def test_reduction(device):
    x = random_tensor(30, 27, device=device)

    def reference(x):
        blocks = torch.nn.functional.pad(x, (0, 0, 0, 2)).reshape(4, 8, 27)
        return (blocks * blocks).sum(0)

    check(device, k.reduce_kernel, k.reduce_blocks, reference, [x])


@pytest.mark.parametrize("dtype", DTYPES[:2])
@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_host_descriptors(device, dtype, padding):
    x = random_tensor(37, 61, device=device, dtype=dtype)
    # The rows out of bounds would make the gradient of w, a sum over rows, NaN.
    w = random_tensor(1, 61, device=device, dtype=dtype, grad=padding == "zero")

    def reference(x, w):
        return x.float().exp().to(x.dtype) * w if x.dtype == torch.float16 else x.exp() * w

    check(device, k.host_kernel, lambda *args: k.host(*args, padding=padding), reference, [x, w])


def test_launches_with_other_host_descriptors(device):
    """Rows as long as a block, or several, or not in steps of 16: each launch has its plan."""
    padding = "zero"
    op = gradients.differentiated(k.host_kernel, lambda *args: k.host(*args, padding=padding))
    for columns, padding in [(32, "zero"), (48, "zero"), (61, "zero"), (32, "nan"), (64, "zero")]:
        x = random_tensor(21, columns, device=device)
        w = random_tensor(1, columns, device=device, grad=padding == "zero")
        gradients.assert_gradients_close(op, lambda x, w: x.exp() * w, [x, w])


def test_host_descriptor_of_a_view(device):
    """The base is a slice: only its elements get a gradient."""
    x = random_tensor(20, 64, device=device)
    w = random_tensor(1, 64, device=device)
    part = slice(16, 48)
    check(
        device,
        k.host_kernel,
        lambda kernel, x, w: k.host(kernel, x, w, part),
        lambda x, w: (x.exp() * w)[:, part],
        [x, w],
    )


def test_only_one_host_descriptor_wants_a_gradient(device):
    x = random_tensor(20, 64, device=device, grad=False)
    w = random_tensor(1, 64, device=device)
    check(device, k.host_kernel, k.host, lambda x, w: x.exp() * w, [x, w])


@pytest.mark.skipif(not NEWEST, reason="descriptors in tuples came with Triton 3.9")
def test_descriptors_of_rank_three_in_a_tuple(device):
    x, z = (random_tensor(3, 7, 28, device=device) for _ in range(2))
    check(device, k.batched_kernel, k.batched, lambda x, z: (x * z).sum(2), [x, z])


def test_plain_launch(device):
    """Without gradients a kernel with host descriptors is the user's own."""
    x, w = torch.randn(20, 64, device=device), torch.randn(1, 64, device=device)
    torch.testing.assert_close(k.host(k.host_kernel, x, w), x.exp() * w)


def test_rounding_descriptors_are_refused(device):
    if not NEWEST:
        pytest.skip("this Triton has none")
    from triton.backends.autodiff import AutodiffError, differentiable

    x = torch.randn(16, 32, device=device, requires_grad=True)
    y = torch.empty_like(x)
    rounding = TensorDescriptor.from_tensor(x, [16, 32], round_f32_to_tf32=True)
    plain = TensorDescriptor.from_tensor(y, [16, 32])
    with pytest.raises(AutodiffError, match="tf32"):
        differentiable(k.host_kernel)[(1,)](rounding, plain, plain, BM=16, BN=32)


@pytest.mark.parametrize(
    "kernel",
    ["weighted_square_kernel", "matmul_kernel", "chosen_kernel", "rows_kernel", "host_kernel"],
)
def test_backward_compiles_for_hopper(kernel):
    """Triton takes the derived kernels; TTIR for Hopper has descriptors in it."""
    import hopper

    types = {
        "weighted_square_kernel": "*fp32 *fp32 *fp32 i32 i32 i32",
        "matmul_kernel": "*fp16 *fp16 *fp16 i32 i32 i32 i32 i32 i32",
        "chosen_kernel": "*fp32 *fp32 *fp32 i32 i32 i32 i32",
        "rows_kernel": "*fp32 *i32 *fp32 i32 i32 i32",
        "host_kernel": "tensordesc<fp16[16,32]> tensordesc<fp16[1,32]> tensordesc<fp16[16,32]>",
    }
    constants = {
        "matmul_kernel": {"BM": 32, "BN": 32, "BK": 32},
        "rows_kernel": {"N": 8, "B": 16},
    }
    function = getattr(k, kernel)
    text = hopper.ttir(function, types[kernel].split(), constants.get(kernel, {"BM": 16, "BN": 32}))
    assert "tt.descriptor_" in text
    hopper.assert_backward_compiles(text)
