"""Tensors with more elements than 32 bits can count."""

import gradients
import pytest
import torch
import triton
import triton.language as tl

pytestmark = pytest.mark.slow


@triton.jit
def long_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x * x, mask=mask)


@triton.jit
def long_gather_kernel(x_ptr, index_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + offsets, mask=offsets < n, other=0)
    x = tl.load(x_ptr + index, mask=offsets < n)
    tl.store(y_ptr + offsets, x * x, mask=offsets < n)


@triton.jit
def long_rows_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    x = tl.load(x_ptr + row + columns, mask=mask)
    tl.store(y_ptr + row + columns, x * tl.load(w_ptr + columns, mask=mask), mask=mask)


@pytest.fixture(autouse=True)
def memory(device, gigabytes=19):
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")
    if device == "cuda":
        free = torch.cuda.mem_get_info()[0]
    else:
        with open("/proc/meminfo") as file:
            free = next(int(line.split()[1]) << 10 for line in file if "MemAvailable" in line)
    if free < gigabytes << 30:
        pytest.skip(f"needs {gigabytes} GiB of memory")


def test_more_than_2_31_elements(device):
    from triton.backends.autodiff import differentiable

    n = 2**31 + 4096
    x = torch.ones(n, dtype=torch.bfloat16, device=device)
    x[-3:] = torch.tensor([2.0, 3.0, 4.0])
    x.requires_grad_()
    y = torch.empty_like(x)
    differentiable(long_kernel)[(triton.cdiv(n, 1 << 16),)](x, y, n, BLOCK=1 << 16)
    y.backward(torch.ones((), dtype=x.dtype, device=device).expand(n))
    assert x.grad[-4:].tolist() == [2, 4, 6, 8] and x.grad[:4].tolist() == [2] * 4


def test_gather_beyond_2_31_elements(device):
    """Gradients of gathers live in float32, as long as the storage is."""
    from triton.backends.autodiff import differentiable

    n = 2**31 + 4096
    x = torch.ones(n, dtype=torch.bfloat16, device=device).requires_grad_()
    index = torch.tensor([0, n - 1, n - 1, 2**31, 5], device=device)
    y = torch.empty(5, dtype=x.dtype, device=device)
    differentiable(long_gather_kernel)[(1,)](x, index, y, 5, BLOCK=8)
    y.sum().backward()
    assert [x.grad[i].item() for i in (0, 1, 5, 2**31, n - 1)] == [2, 0, 2, 2, 4]


def test_rows_beyond_2_31_elements(device):
    """Programs that do the work of many find their rows, too, and the weight has the whole sum."""
    from triton.backends.autodiff import differentiable

    rows, columns = 2**17 + 3, 2**14
    x = torch.zeros(rows, columns, dtype=torch.bfloat16, device=device)
    x[-1], x[2**16] = 3.0, 2.0
    x.requires_grad_()
    w = torch.arange(columns, device=device).bfloat16().requires_grad_()
    y = torch.empty_like(x)
    kernel = differentiable(long_rows_kernel, backward={"schedules": ["persist"]})
    kernel[(rows,)](x, w, y, columns, BLOCK=columns)
    y.backward(torch.ones((), dtype=x.dtype, device=device).expand(rows, columns))
    assert torch.equal(w.grad, torch.full_like(w, 5.0))
    for row in (0, 2**16, 2**17, rows - 1):
        assert torch.equal(x.grad[row], w.detach())
