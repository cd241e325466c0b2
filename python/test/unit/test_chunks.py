"""Chunks of sequences whose last one is shorter are stored, and interchanged, like whole ones."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import chunks
from schedules import assert_sums

pytestmark = pytest.mark.schedules


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape, chunk", [
    ((2, 48, 6), 16),
    ((3, 45, 5), 16),
    ((2, 45, 7), 12),  # a tile is longer than a chunk
    ((1, 10, 3), 16),  # the only chunk is short
    ((2, 1, 4), 4),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("bound", chunks.BOUNDS)
def test_rows(device, ran, bound, shape, chunk, dtype):
    x = random_tensor(*shape, device=device, dtype=dtype)
    w = random_tensor(shape[2], device=device, dtype=dtype)
    op = differentiated(chunks.chunk_rows_kernel, chunks.chunk_rows)
    assert_gradients_close(op, chunks.chunk_rows_reference, (x, w, chunk, bound))
    assert_sums(ran, "store", 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("shape, chunk", [
    ((2, 96, 2, 32), 32),
    ((2, 85, 2, 20), 32),
    ((1, 50, 3, 16), 24),  # tiles reach beyond a chunk
    ((2, 12, 1, 16), 16),
], ids=str)  # fmt: skip
def test_products(device, ran, shape, chunk, causal, dtype):
    batch, length, groups, _ = shape
    c, b = (random_tensor(*shape, device=device, dtype=dtype) for _ in range(2))
    decay = random_tensor(batch, -(-length // chunk), groups, chunk, device=device, dtype=dtype)
    op = differentiated(chunks.chunk_products_kernel, chunks.chunk_products)
    assert_gradients_close(op, chunks.chunk_products_reference, (c, b, decay, causal), roundings=16)
    assert_sums(ran, "store", 0, 1)
