"""Kernels of models that are not elsewhere: rotary embeddings, group norm, recurrences, GQA."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import elementwise, group_norm, grouped_attention, recurrences, rotary

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_geglu(device, dtype):
    inputs = [random_tensor(5, 100, device=device, dtype=dtype) for _ in range(2)]
    op = differentiated(elementwise.geglu_kernel, elementwise.swiglu)
    assert_gradients_close(op, elementwise.geglu_reference, inputs)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("heads", [3, 4])
def test_rotary(device, dtype, heads):
    x = random_tensor(2, 9, heads, 16, device=device, dtype=dtype)
    op = differentiated(rotary.rotary_kernel, rotary.rotary)
    assert_gradients_close(op, rotary.rotary_reference, (x, *rotary.angles(9, 16, x)))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("channels, pixels", [(8, 32), (6, 21)])
def test_group_norm(device, dtype, channels, pixels):
    x = random_tensor(5, channels, pixels, device=device, dtype=dtype, shift=1.0)
    w = random_tensor(channels, device=device, dtype=dtype, shift=1.0)
    b = random_tensor(channels, device=device, dtype=dtype)
    op = differentiated(group_norm.group_norm_kernel, group_norm.group_norm)
    assert_gradients_close(op, group_norm.group_norm_reference, (x, w, b, 2))


@pytest.mark.parametrize("dtype", DTYPES[2:], ids=str)
@pytest.mark.parametrize("steps", [0, 1, 37])
def test_gated_recurrence(device, dtype, steps):
    x = random_tensor(2, steps, 70, device=device, dtype=dtype)
    g = (-random_tensor(2, steps, 70, device=device, dtype=dtype).detach().abs()).requires_grad_()
    op = differentiated(recurrences.gated_kernel, recurrences.gated)
    if steps:
        assert_gradients_close(op, recurrences.gated_reference, (x, g))
    else:
        assert op(x, g).shape == x.shape


@pytest.mark.parametrize("dtype", DTYPES[2:], ids=str)
@pytest.mark.parametrize("steps", [1, 64, 150])
def test_cumsum(device, dtype, steps):
    x = random_tensor(2, steps, 40, device=device, dtype=dtype)
    op = differentiated(recurrences.cumsum_kernel, recurrences.cumsum)
    assert_gradients_close(op, recurrences.cumsum_reference, (x,))


@pytest.mark.parametrize("context", [128, 100])
@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
def test_grouped_attention(device, dtype, context):
    if device == "cuda" and dtype == torch.float32:
        pytest.skip("a GPU rounds the operands of these products to tf32")
    q = random_tensor(2, 4, context, 16, device=device, dtype=dtype)
    k, v = (random_tensor(2, 2, context, 16, device=device, dtype=dtype) for _ in range(2))
    op = differentiated(
        grouped_attention.grouped_attention_kernel, grouped_attention.grouped_attention
    )
    assert_gradients_close(op, grouped_attention.grouped_attention_reference, (q, k, v, 0.25))
