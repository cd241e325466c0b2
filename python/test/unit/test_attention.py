"""Flash attention v2: online softmax, causal in two stages, half precision."""

import flash_attention_v2 as flash
import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import grouped_attention as grouped
from schedules import assert_interchanged, assert_sums

pytestmark = pytest.mark.schedules

HALF = [torch.float16, torch.bfloat16]


def _inputs(shape, device, dtype):
    return tuple(random_tensor(*shape, device=device, dtype=dtype, scale=0.5) for _ in range(3))


def _check(shape, device, dtype, causal, **options):
    def stub(kernel, q, k, v, causal, sm_scale):
        return flash.attention(kernel, q, k, v, causal, sm_scale, **options)

    op = differentiated(flash.attention_kernel, stub)
    inputs = (*_inputs(shape, device, dtype), causal, shape[-1] ** -0.5)
    assert_gradients_close(op, flash.reference, inputs)


@pytest.mark.parametrize("dtype", HALF, ids=str)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("head_dim", [64, 128])
def test_attention(device, head_dim, causal, dtype):
    _check((1, 2, 128, head_dim), device, dtype, causal, BLOCK_M=64, BLOCK_N=32)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("context", [100, 33])
def test_context_with_tail(device, context, causal):
    _check((2, 1, context, 64), device, torch.float16, causal, BLOCK_M=32, BLOCK_N=32)


@pytest.mark.parametrize("context", [128, 100])
def test_interleaved_heads(device, ran, context):
    """A query's head modulo the number of key heads says which keys it sees."""
    q = random_tensor(2, 6, context, 32, device=device, dtype=torch.float16, scale=0.5)
    k, v = (
        random_tensor(2, 2, context, 32, device=device, dtype=torch.float16, scale=0.5)
        for _ in range(2)
    )

    def stub(kernel, q, k, v):
        return grouped.grouped_attention(kernel, q, k, v, 0.125, INTERLEAVED=True)

    op = differentiated(grouped.grouped_attention_kernel, stub)
    reference = grouped.interleaved_reference
    assert_gradients_close(op, lambda q, k, v: reference(q, k, v, 0.125), (q, k, v))
    assert_sums(ran, "store", 0, 1, 2)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("context", [128, 100])
def test_shared_keys(device, ran, context, causal):
    """Three heads share keys and values: a program sums over them and over blocks of queries."""
    q = random_tensor(2, 6, context, 64, device=device, dtype=torch.float16, scale=0.5)
    k, v = (
        random_tensor(2, 2, context, 64, device=device, dtype=torch.float16, scale=0.5)
        for _ in range(2)
    )

    def stub(kernel, q, k, v):
        return flash.attention(kernel, q, k, v, causal, 0.125, BLOCK_M=64, BLOCK_N=32)

    op = differentiated(flash.attention_kernel, stub)
    assert_gradients_close(op, lambda q, k, v: flash.reference(q, k, v, causal, 0.125), (q, k, v))
    assert_interchanged(ran, [1, 2], 4 * 2 * 2)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_layout_of_heads(device, causal):
    """(batch, context, heads, dim) in memory: the views' strides reach the kernel."""
    q, k, v = (
        random_tensor(1, 64, 2, 64, device=device, dtype=torch.float16, scale=0.5) for _ in range(3)
    )

    def stub(kernel, q, k, v):
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        return flash.attention(kernel, q, k, v, causal, 0.125, BLOCK_M=32, BLOCK_N=32)

    def reference(q, k, v):
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        return flash.reference(q, k, v, causal, 0.125)

    assert_gradients_close(differentiated(flash.attention_kernel, stub), reference, (q, k, v))


def test_self_attention_of_one_tensor(device):
    """q, k and v are one packed tensor: its gradient has three parts."""
    packed = random_tensor(3, 1, 2, 64, 64, device=device, dtype=torch.float16, scale=0.5)

    def stub(kernel, packed):
        return flash.attention(kernel, *packed.unbind(0), True, 0.125, BLOCK_M=32, BLOCK_N=32)

    def reference(packed):
        return flash.reference(*packed.unbind(0), True, 0.125)

    assert_gradients_close(differentiated(flash.attention_kernel, stub), reference, (packed,))


@pytest.mark.parametrize("dtype", HALF, ids=str)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.parametrize("context", [1024, 1000])
def test_attention_real_sizes(cuda, context, head_dim, causal, dtype):
    _check((2, 4, context, head_dim), cuda, dtype, causal, BLOCK_M=64, BLOCK_N=32)
