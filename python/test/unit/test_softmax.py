"""Softmax and log-softmax: a reduction with max, one with add, and what they cancel."""

import pytest
import torch
from gradients import assert_gradcheck, assert_gradients_close, differentiated, random_tensor
from kernels import softmax as sm

pytestmark = pytest.mark.schedules

KERNELS = {
    "softmax": (sm.softmax_kernel, sm.rowwise, sm.softmax_reference),
    "log_softmax": (sm.log_softmax_kernel, sm.rowwise, sm.log_softmax_reference),
    "persistent": (sm.persistent_softmax_kernel, sm.persistent, sm.softmax_reference),
}
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_softmax(device, name, dtype):
    kernel, stub, reference = KERNELS[name]
    op = differentiated(kernel, stub)
    for shape in [(8, 128), (7, 100), (2, 1)]:
        x = random_tensor(*shape, device=device, dtype=dtype)
        assert_gradients_close(op, reference, (x,))


@pytest.mark.parametrize("name", KERNELS)
def test_row_stride(device, name):
    """Rows of a wider matrix: nothing outside them may be touched."""
    kernel, stub, reference = KERNELS[name]
    x = random_tensor(6, 90, device=device, grad=False)[:, 7:57].requires_grad_()
    assert_gradients_close(differentiated(kernel, stub), reference, (x,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_large_logits(device, dtype):
    """Far beyond where an exponential overflows."""
    x = random_tensor(5, 64, device=device, dtype=dtype, shift=1000.0)
    op = differentiated(sm.softmax_kernel, sm.rowwise)
    assert_gradients_close(op, sm.softmax_reference, (x,))


@pytest.mark.parametrize("name", KERNELS)
def test_gradcheck(device, name):
    kernel, stub, _ = KERNELS[name]
    x = random_tensor(4, 7, device=device, dtype=torch.float64)
    assert_gradcheck(differentiated(kernel, stub), (x,))


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(4096, 1024), (1823, 781)], ids=str)
def test_softmax_real_sizes(cuda, name, shape):
    kernel, stub, reference = KERNELS[name]
    x = random_tensor(*shape, device=cuda, dtype=torch.float16)
    assert_gradients_close(differentiated(kernel, stub), reference, (x,))


def test_maximum_of_a_maximum(device):
    """Of two maxima that may be any value, one at a time makes the sum one."""
    x, a = random_tensor(3, 8, device=device), random_tensor(3, 8, device=device, grad=False)
    op = differentiated(sm.two_maxima_kernel, sm.two_maxima)
    assert_gradients_close(op, sm.two_maxima_reference, (x, a))
