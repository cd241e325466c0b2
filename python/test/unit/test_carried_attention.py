"""Attention whose loops carry where their keys are: pointers that advance, rows that count up."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated
from kernels import carried_attention as carried
from releases import NEWEST
from schedules import assert_no_atomics

pytestmark = [pytest.mark.schedules, pytest.mark.usefixtures("descriptor_memory")]

# Triton 3.9 has no block pointers.
FORMS = [form for form in carried.FORMS if not (NEWEST and form == "block pointers")]


def _check(random, ran, form, causal, shape, tiles, roundings=32):
    inputs = [random(*shape) for _ in range(3)]
    op = differentiated(
        carried.carried_attention_kernel,
        lambda kernel, q, k, v: carried.carried_attention(kernel, q, k, v, causal, form, *tiles),
    )

    def reference(q, k, v):
        return carried.carried_attention_reference(q, k, v, causal, form)

    assert_gradients_close(op, reference, inputs, roundings=roundings)
    assert_no_atomics(ran)


@pytest.mark.parametrize("tiles", [(16, 16), (32, 16)])
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("form", FORMS)
def test_carried(random, ran, form, causal, tiles):
    _check(random, ran, form, causal, (2, 3, 64, 16), tiles)


@pytest.mark.parametrize("form", FORMS)
def test_one_block(random, ran, form):
    """The first stage runs no iteration."""
    _check(random, ran, form, True, (1, 2, 32, 16), (32, 32))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("form", FORMS)
def test_half_precision(random, ran, form, dtype):
    _check(random, ran, form, True, (1, 2, 128, 64), (64, 32))
