"""Random shapes and strides of every tensor at once; the seed repeats a failing run."""

import random

import pytest
import torch
from gradients import assert_gradients_close, differentiated
from kernels import elementwise as ew
from kernels import matmul as mm


def _layout(rows, columns, device, dtype=torch.float32):
    """A rows x columns leaf somewhere in a larger buffer, with random strides."""
    steps = random.choice([1, 1, 2, 3]), random.choice([1, 1, 2, 3])
    before = random.choice([0, 0, 1, 5]), random.choice([0, 0, 3, 16])
    height, width = (
        offset + step * size
        for offset, step, size in zip(before, steps, (rows, columns), strict=True)
    )
    transposed = random.random() < 0.3
    size = (width, height) if transposed else (height, width)
    base = torch.randn(size, device=device, dtype=dtype)
    view = base.t() if transposed else base
    view = view[before[0] :: steps[0], before[1] :: steps[1]][:rows, :columns]
    assert view.shape == (rows, columns)
    return view.detach().requires_grad_()


def _upstream(rows, columns, device):
    # Equal columns are positive: what sums them is one sum, which must not cancel.
    kind = random.choice(["dense", "transposed", "rows", "columns", "number", "sliced"])
    return {
        "dense": torch.randn(rows, columns, device=device),
        "transposed": torch.randn(columns, rows, device=device).t(),
        "rows": torch.randn(1, columns, device=device).expand(rows, columns),
        "columns": torch.rand(rows, 1, device=device).expand(rows, columns),
        "number": torch.randn(1, 1, device=device).expand(rows, columns),
        "sliced": torch.randn(rows + 3, 2 * columns, device=device)[3:, ::2],
    }[kind]


@pytest.mark.parametrize("repetition", range(6))
def test_elementwise(device, repetition):
    # Addresses are in question, not the rounding of a sum over equal numbers.
    dtype = torch.float64
    m, n = random.randint(5, 50), random.randint(5, 70)
    x, upstream = _layout(m, n, device, dtype), _upstream(m, n, device).to(dtype)
    w = _layout(1, n, device, dtype).detach()[0].requires_grad_()
    b = torch.randn(n, device=device, dtype=dtype, requires_grad=True)
    print(x.shape, x.stride(), x.storage_offset(), w.stride(), upstream.stride())
    op = differentiated(ew.affine_columns_kernel, ew.affine_columns)
    assert_gradients_close(op, ew.affine_columns_reference, (x, w, b), [upstream])


@pytest.mark.parametrize("repetition", range(6))
def test_matmul(device, repetition):
    m, n, k = (random.randint(5, 60) for _ in range(3))
    a, b, upstream = _layout(m, k, device), _layout(k, n, device), _upstream(m, n, device)
    print(a.shape, a.stride(), b.shape, b.stride(), upstream.stride())
    op = differentiated(mm.matmul_kernel, mm.matmul)
    assert_gradients_close(op, torch.matmul, (a, b), [upstream])
