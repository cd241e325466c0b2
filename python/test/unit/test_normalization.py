"""Layer norm and RMS norm: statistics of a row, parameters shared by all rows."""

import layer_norm as looped
import pytest
import torch
from gradients import assert_gradcheck, assert_gradients_close, differentiated, random_tensor
from kernels import normalization as norm

pytestmark = pytest.mark.schedules

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def _inputs(shape, device, dtype, bias=True):
    x = random_tensor(*shape, device=device, dtype=dtype, scale=0.5, shift=-2.3)
    w = random_tensor(shape[-1], device=device, dtype=dtype, shift=1.0)
    b = random_tensor(shape[-1], device=device, dtype=dtype)
    return (x, w, b) if bias else (x, w)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(16, 128), (13, 100)], ids=str)
def test_layer_norm(device, shape, dtype):
    op = differentiated(norm.layer_norm_kernel, norm.layer_norm)
    assert_gradients_close(op, norm.layer_norm_reference, _inputs(shape, device, dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(16, 128), (13, 100)], ids=str)
def test_rms_norm(device, shape, dtype):
    op = differentiated(norm.rms_norm_kernel, norm.rms_norm)
    inputs = _inputs(shape, device, dtype, bias=False)
    assert_gradients_close(op, norm.rms_norm_reference, inputs)


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
@pytest.mark.parametrize("shape", [(12, 256), (11, 300), (5, 40)], ids=str)
def test_layer_norm_looped(device, shape, dtype):
    """Rows longer than a block, of a length known at launch only."""
    op = differentiated(
        looped.layer_norm_kernel,
        lambda kernel, x, w, b: looped.layer_norm(kernel, x, w, b, BLOCK=64),
    )
    assert_gradients_close(op, looped.reference, _inputs(shape, device, dtype))


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 2), (1, 2)], ids=str)
def test_wanted_gradients(device, wanted):
    """Only the gradients asked for are computed, and they don't depend on the others."""
    inputs = [x.detach() for x in _inputs((9, 70), device, torch.float32)]
    for i in wanted:
        inputs[i].requires_grad_()
    op = differentiated(norm.layer_norm_kernel, norm.layer_norm)
    assert_gradients_close(op, norm.layer_norm_reference, inputs)


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_gradcheck(device, name):
    inputs = _inputs((4, 6), device, torch.float64, bias=name == "layer_norm")
    op = differentiated(getattr(norm, f"{name}_kernel"), getattr(norm, name))
    assert_gradcheck(op, inputs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(4096, 8192), (1151, 8000)], ids=str)
def test_layer_norm_real_sizes(cuda, shape, dtype):
    op = differentiated(looped.layer_norm_kernel, looped.layer_norm)
    assert_gradients_close(op, looped.reference, _inputs(shape, cuda, dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_rms_norm_real_sizes(cuda, dtype):
    op = differentiated(norm.rms_norm_kernel, norm.rms_norm)
    inputs = _inputs((4096, 4096), cuda, dtype, bias=False)
    assert_gradients_close(op, norm.rms_norm_reference, inputs)
