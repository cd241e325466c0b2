"""Gradients of tiles that are taken apart, joined and moved, stored under partial masks."""

import random

import pytest
import shape_programs
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import halves

pytestmark = pytest.mark.schedules


@pytest.mark.parametrize("columns", [16, 15, 5, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_halves_of_one_tile(device, dtype, columns):
    operation = differentiated(halves.product_kernel, halves.product)
    s = random_tensor(3, device=device, dtype=dtype)
    w = random_tensor(16, device=device, dtype=dtype)
    assert_gradients_close(operation, halves.product_reference, (s, w, columns))


@pytest.mark.parametrize("index", range(24))
def test_random_moves(device, index, tmp_path):
    """Random chains of moves, sums, products and selections, against the same in PyTorch."""
    program = shape_programs.generate(random.Random(random.getrandbits(32)))
    kernel = program.load(tmp_path)
    x = random_tensor(2, *program.shape, device=device, dtype=torch.float64)
    s = random_tensor(2, device=device, dtype=torch.float64)
    try:
        assert_gradients_close(differentiated(kernel, program.launch), program.reference, (x, s))
    except Exception:
        print(program.source)
        raise
