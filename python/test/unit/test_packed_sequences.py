"""Sequences of any lengths, whose places come from memory."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import packed_sequences
from schedules import assert_no_atomics

pytestmark = pytest.mark.schedules

HEADS, DIM = 2, 16


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [(37, 0, 63, 29), (64,), (1, 2, 3)])
def test_sequences(device, lengths, causal):
    """One of them may be empty."""
    starts = torch.tensor((0, *lengths), device=device, dtype=torch.int32).cumsum(0).int()
    inputs = [random_tensor(HEADS, sum(lengths), DIM, device=device) for _ in range(3)]
    op = differentiated(packed_sequences.attention_kernel, packed_sequences.attention)
    places = starts, starts[:-1].clone(), starts[1:].clone(), causal
    assert_gradients_close(
        op, packed_sequences.attention_reference, (*inputs, *places), roundings=32
    )


@pytest.mark.parametrize("shared", [2, 4])
def test_heads_that_share_keys(device, shared, ran):
    """What head of keys a program reads, it finds by dividing by an argument."""
    starts = torch.tensor((0, 37, 37, 90), device=device, dtype=torch.int32)
    q = random_tensor(4, 90, DIM, device=device)
    k, v = (random_tensor(4 // shared, 90, DIM, device=device) for _ in range(2))
    op = differentiated(packed_sequences.attention_kernel, packed_sequences.attention)
    places = starts, starts[:-1].clone(), starts[1:].clone(), True
    assert_gradients_close(
        op, packed_sequences.attention_reference, (q, k, v, *places), roundings=64
    )
    assert_no_atomics(ran)


def test_sequences_that_share_keys(device):
    """A prefix that two sequences see gets the sum of what they contribute; a gap gets zero."""
    q = random_tensor(HEADS, 80, DIM, device=device)
    k, v = (random_tensor(HEADS, 70, DIM, device=device) for _ in range(2))
    places = [
        torch.tensor(place, device=device, dtype=torch.int32)
        for place in ((0, 45, 80), (0, 0), (50, 33))
    ]
    op = differentiated(packed_sequences.attention_kernel, packed_sequences.attention)
    reference = packed_sequences.attention_reference
    assert_gradients_close(op, reference, (q, k, v, *places, False), roundings=64)
