"""Addresses of other kinds: images, loaded indices that repeat, values nobody reads."""

import gradients
import pytest
import torch
from gradients import assert_gradcheck, assert_gradients_close, differentiated, random_tensor
from kernels import gather, image


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("shape", [(32, 48), (33, 50)], ids=str)
def test_greyscale(device, shape, dtype):
    x = random_tensor(3, *shape, device=device, dtype=dtype)
    op = differentiated(image.greyscale_kernel, image.greyscale)
    assert_gradients_close(op, image.greyscale_reference, (x,))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_embedding(device, dtype):
    """Rows that are looked up often add up."""
    table = random_tensor(20, 50, device=device, dtype=dtype)
    index = torch.randint(0, 15, (40,), device=device)
    op = differentiated(gather.embedding_kernel, gather.embedding)
    assert_gradients_close(op, gather.embedding_reference, (index, table))


def test_embedding_untouched_rows(device):
    """Rows that are never looked up have a zero gradient, not an unwritten one."""
    table = random_tensor(20, 50, device=device)
    index = torch.randint(0, 15, (40,), device=device)
    out = differentiated(gather.embedding_kernel, gather.embedding)(index, table)
    if gradients.FORWARD_ONLY:
        return
    out.sum().backward()
    counts = torch.bincount(index, minlength=20).to(table.dtype)
    assert torch.equal(table.grad, counts[:, None].expand_as(table))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_take(device, dtype):
    x = random_tensor(30, device=device, dtype=dtype)
    index = torch.randint(0, 30, (100,), device=device)
    op = differentiated(gather.take_kernel, gather.take)
    assert_gradients_close(op, gather.take_reference, (x, index))


def test_take_gradcheck(device):
    x = random_tensor(6, device=device, dtype=torch.float64)
    index = torch.randint(0, 6, (10,), device=device)
    op = differentiated(gather.take_kernel, gather.take)
    assert_gradcheck(lambda x: op(x, index), (x,))


def test_greyscale_real_sizes(cuda):
    x = random_tensor(3, 2160, 3840, device=cuda, dtype=torch.float16)
    op = differentiated(image.greyscale_kernel, lambda k, x: image.greyscale(k, x, BLOCK=32))
    assert_gradients_close(op, image.greyscale_reference, (x,))


def test_embedding_real_sizes(cuda):
    table = random_tensor(32000, 2048, device=cuda, dtype=torch.float16)
    index = torch.randint(0, 32000, (8192,), device=cuda)
    op = differentiated(
        gather.embedding_kernel, lambda k, i, t: gather.embedding(k, i, t, BLOCK=1024)
    )
    assert_gradients_close(op, gather.embedding_reference, (index, table))
