"""Gathers and sorting within a tile, concatenation, and scalar functions of every element."""

import gradients
import pytest
import torch
from gradients import assert_compiles, assert_gradients_close, differentiated, random_tensor
from kernels import picking as pk
from kernels.combiners import HOME

pytestmark = pytest.mark.schedules


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(4, 8), (16, 64)], ids=str)
def test_gather(device, shape, axis):
    """Some elements are picked several times, some never."""
    if device == "cuda" and shape == (4, 8):
        pytest.skip("Triton does not compile a gather in so small a tile for GPUs")
    x = random_tensor(*shape, device=device, dtype=torch.float64)
    picks = [16 if i == axis else n for i, n in enumerate(shape)]
    index = torch.randint(0, shape[axis], picks, device=device, dtype=torch.int32)
    op = differentiated(pk.gather_kernel, pk.gather)
    assert_gradients_close(op, pk.gather_reference, (x, index, axis))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    "how, k",
    [
        ("sort", 16),
        ("descending", 16),
        ("topk", 4),
        ("flip", 16),
        ("flip rows", 16),
        ("flip equal", 16),
    ],
)
def test_order(device, how, k, dtype):
    """Triton sorts with the bits of floats."""
    x = torch.randperm(64, device=device).view(4, 16).to(dtype) / 32 - 0.7
    op = differentiated(pk.order_kernel, pk.order)
    assert_gradients_close(op, pk.order_reference, (x.requires_grad_(), how, k))


@pytest.mark.parametrize("n, k", [(16, 4), (11, 2)])
def test_router(device, n, k):
    """Lanes that a mask left out sort last, at minus infinity."""
    x = random_tensor(5, n, device=device, dtype=torch.float64)
    op = differentiated(pk.router_kernel, pk.router)
    assert_gradients_close(op, pk.router_reference, (x, k))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_cat(device, dtype):
    x, w = (random_tensor(16, device=device, dtype=dtype) for _ in range(2))
    op = differentiated(pk.cat_kernel, pk.cat)
    assert_gradients_close(op, pk.cat_reference, (x, w))
    if not gradients.FORWARD_ONLY:
        assert "keeps elements in order" in op.explain()


@pytest.mark.parametrize("n", [32, 21])
def test_map_elementwise(device, n):
    x = random_tensor(n, device=device, dtype=torch.float64, shift=1.0)
    w = (
        random_tensor(n, device=device, dtype=torch.float64, grad=False).abs() + 0.1
    ).requires_grad_()
    op = differentiated(pk.map_kernel, pk.map_elementwise)
    assert_gradients_close(op, pk.map_reference, (x, w))


def test_triton_compiles():
    x, w = (random_tensor(32, device=HOME) for _ in range(2))
    assert_compiles(differentiated(pk.cat_kernel, pk.cat), (x, w))
    assert_compiles(differentiated(pk.map_kernel, pk.map_elementwise), (x, w))
    x = random_tensor(4, 64, device=HOME)
    for how in ("sort", "topk", "flip"):
        assert_compiles(differentiated(pk.order_kernel, pk.order), (x, how, 64))
    for rows, columns, axis in ((4, 8, 1), (32, 64, 0)):
        x = random_tensor(rows, columns, device=HOME)
        index = torch.zeros(rows, columns, dtype=torch.int32, device=HOME)
        assert_compiles(differentiated(pk.gather_kernel, pk.gather), (x, index, axis))
