"""Pointers of every kind: chosen among arguments, moved by loaded distances, from memory."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import pointers as k
from releases import NEWEST

pytestmark = pytest.mark.schedules

FLOATS = [torch.float16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("which", [0, 2])
def test_branch(device, dtype, which):
    x, z = (random_tensor(40, device=device, dtype=dtype) for _ in range(2))
    op = differentiated(k.branch_kernel, k.branch)
    assert_gradients_close(op, k.branch_reference, [x, z, which])


@pytest.mark.parametrize("wanted", [(1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
def test_select_by_lane(device, wanted):
    """Lanes of tensors whose gradient nobody wants are left out."""
    x, z, w = (
        random_tensor(n, device=device, grad=bool(grad))
        for n, grad in zip((45, 45, 7), wanted, strict=True)
    )
    op = differentiated(k.select_kernel, k.select)
    assert_gradients_close(op, k.select_reference, [x, z, w])


@pytest.mark.parametrize("rows", [2, 3, 6])
def test_swapped_in_a_loop(device, rows):
    x, z = (random_tensor(rows, 11, device=device) for _ in range(2))
    assert_gradients_close(differentiated(k.swap_kernel, k.swap), k.swap_reference, [x, z])


@pytest.mark.parametrize("dtype", FLOATS[1:])
@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)])
def test_chosen_output(device, dtype, used):
    x = random_tensor(29, device=device, dtype=dtype)
    upstreams = [torch.randn_like(x) if i in used else None for i in range(2)]
    op = differentiated(k.output_kernel, k.output)
    assert_gradients_close(op, k.output_reference, [x], upstreams)


@pytest.mark.parametrize("count", [1, 6])
def test_moved_by_what_memory_says(device, count):
    x = random_tensor(40, device=device)
    steps = torch.randint(0, 5, (count,), dtype=torch.int32, device=device)
    assert_gradients_close(differentiated(k.jump_kernel, k.jump), k.jump_reference, [x, steps])


@pytest.mark.parametrize("dtype", FLOATS)
def test_indices_that_are_no_sums(device, dtype):
    x = random_tensor(32, device=device, dtype=dtype)
    op = differentiated(k.odd_index_kernel, k.odd_index)
    assert_gradients_close(op, k.odd_index_reference, [x])


@pytest.mark.skipif(NEWEST, reason="Triton 3.9 has no block pointers")
@pytest.mark.parametrize("shape", [(16, 32), (13, 27)])
def test_block_pointers(device, shape):
    x = random_tensor(*shape, device=device)
    op = differentiated(k.block_pointer_kernel, k.block_pointer)
    assert_gradients_close(op, lambda x: x.sin() * x, [x])


def test_floats_behind_a_pointer_in_memory(device):
    """They might need a gradient, which nobody could receive."""
    from triton.backends.autodiff import AutodiffError, differentiable

    x = random_tensor(8, device=device)
    hidden, y = torch.randn(8, device=device), torch.empty(8, device=device)
    table = torch.tensor([hidden.data_ptr()], device=device)
    with pytest.raises(AutodiffError, match="pass the tensor as an argument"):
        differentiable(k.table_kernel)[(1,)](table, x, y, 8, BLOCK=8)


@pytest.mark.parametrize("n", [5, 16, 39])
def test_pointers_after_a_loop(device, n):
    x = random_tensor(3, n, device=device)
    assert_gradients_close(differentiated(k.tail_kernel, k.tail), k.tail_reference, [x])


def test_integers_behind_a_pointer_in_memory(device):
    rows = torch.tensor([2, 0, 2, 1, 7, 7, 3], dtype=torch.int32, device=device)
    table = torch.tensor([rows.data_ptr()], device=device)

    def stub(kernel, x):
        y = torch.full((7,), float("nan"), dtype=x.dtype, device=device)
        kernel[(1,)](table, x, y, 7, BLOCK=8)
        return y

    x = random_tensor(8, device=device)
    op = differentiated(k.index_table_kernel, stub)
    assert_gradients_close(op, lambda x: x[rows.long()] ** 2, [x])


@pytest.mark.parametrize(
    "kernel, types, constants",
    [
        ("branch_kernel", "*fp32 *fp32 *fp32 i32 i32", {"BLOCK": 32}),
        ("select_kernel", "*fp16 *fp16 *fp16 *fp16 i32", {"BLOCK": 32}),
        ("swap_kernel", "*fp32 *fp32 *fp32 i32 i32", {"BLOCK": 32}),
        ("output_kernel", "*fp32 *fp32 *fp32 i32", {"BLOCK": 32}),
        ("jump_kernel", "*fp32 *i32 *fp32 i32", {"BLOCK": 32}),
    ],
)
def test_backward_compiles_for_hopper(kernel, types, constants):
    import hopper

    hopper.assert_backward_compiles(hopper.ttir(getattr(k, kernel), types.split(), constants))
