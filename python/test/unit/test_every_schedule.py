"""Kernels under every schedule that applies to them: each is right, whichever the compiler picks.

`pytest --schedules=all` does the same with all tests that are marked `schedules`.
"""

import flash_attention_v2 as flash
import forced
import gradients
import layer_norm as looped
import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import (
    cross_entropy,
    elementwise,
    gather,
    group_norm,
    grouped_attention,
    image,
    loops,
    matmul,
    normalization,
    recurrences,
    rotary,
    schedules,
    softmax,
)


class Case:
    """A kernel, its stub and the reference; float inputs of these shapes, then the `rest`."""

    def __init__(
        self, kernel, stub, reference, *shapes,
        rest=lambda device: (), scale=1.0, dtype=torch.float32, roundings=8,
    ):  # fmt: skip
        self.kernel, self.stub, self.reference = kernel, stub, reference
        self.shapes, self.rest, self.scale, self.dtype = shapes, rest, scale, dtype
        self.roundings = roundings

    def inputs(self, device):
        """Random inputs."""
        floats = [
            random_tensor(*shape, device=device, scale=self.scale, dtype=self.dtype)
            for shape in self.shapes
        ]
        return (*floats, *self.rest(device))


def indices(bound, count):
    return lambda device: (torch.randint(bound, (count,), device=device),)


def attention(kernel, *args):
    return flash.attention(kernel, *args, BLOCK_M=32, BLOCK_N=32)


def attention_in_long_blocks(kernel, *args):
    return flash.attention(kernel, *args, BLOCK_M=128, BLOCK_N=64)


def lookup(kernel, table, index):
    return gather.embedding(kernel, index, table)


def lookup_reference(table, index):
    return gather.embedding_reference(index, table)


NORM = (13, 100), (100,), (100,)
PRODUCT = (150, 70), (70, 133)
# Attention multiplies float32 as GPUs do by default, with 10 bits: its cases are in half precision.
HEADS = ((1, 2, 256, 16),) * 3
KERNELS = {
    "add": Case(elementwise.add_kernel, elementwise.add, torch.add, (1000,), (1000,)),
    "gelu": Case(
        elementwise.gelu_tanh_kernel, elementwise.unary, elementwise.gelu_tanh_reference, (1000,)
    ),
    "swiglu": Case(
        elementwise.swiglu_kernel, elementwise.swiglu, elementwise.swiglu_reference,
        (7, 300), (7, 300),
    ),
    "affine columns": Case(
        elementwise.affine_columns_kernel, elementwise.affine_columns,
        elementwise.affine_columns_reference, (50, 70), (70,), (70,),
    ),
    "greyscale": Case(
        image.greyscale_kernel, image.greyscale, image.greyscale_reference, (3, 33, 50)
    ),
    "rotary": Case(
        rotary.rotary_kernel, rotary.rotary, rotary.rotary_reference, (2, 8, 4, 16),
        rest=lambda device: rotary.angles(8, 16, torch.empty(0, device=device)),
    ),
    "softmax": Case(softmax.softmax_kernel, softmax.rowwise, softmax.softmax_reference, (7, 100)),
    "persistent softmax": Case(
        softmax.persistent_softmax_kernel, softmax.persistent, softmax.softmax_reference, (7, 100)
    ),
    "cross-entropy": Case(
        cross_entropy.cross_entropy_kernel, cross_entropy.cross_entropy,
        cross_entropy.cross_entropy_reference, (6, 300), rest=indices(300, 6),
    ),
    "embedding": Case(
        gather.embedding_kernel, lookup, lookup_reference, (5, 40), rest=indices(5, 20)
    ),
    "layer norm": Case(
        normalization.layer_norm_kernel, normalization.layer_norm,
        normalization.layer_norm_reference, *NORM,
    ),
    "looped layer norm": Case(looped.layer_norm_kernel, looped.layer_norm, looped.reference, *NORM),
    "rms norm": Case(
        normalization.rms_norm_kernel, normalization.rms_norm, normalization.rms_norm_reference,
        *NORM[:2],
    ),
    "group norm": Case(
        group_norm.group_norm_kernel, group_norm.group_norm, group_norm.group_norm_reference,
        (3, 8, 32), (8,), (8,), rest=lambda device: (2,),
    ),
    "matmul": Case(matmul.matmul_kernel, matmul.matmul, torch.matmul, *PRODUCT),
    "matmul of whole tiles": Case(
        matmul.matmul_kernel, matmul.matmul, torch.matmul, (256, 128), (128, 256)
    ),
    "swizzled matmul": Case(
        matmul.grouped_matmul_kernel, matmul.grouped_matmul, torch.matmul, *PRODUCT
    ),
    "batched matmul": Case(
        matmul.batched_matmul_kernel, matmul.batched_matmul, torch.matmul, (3, 40, 50), (3, 50, 36)
    ),
    "matmul, gelu": Case(
        matmul.bias_activation_kernel, matmul.bias_activation, matmul.bias_activation_reference,
        *PRODUCT, (133,), rest=lambda device: ("gelu",),
    ),
    "shared product": Case(
        schedules.shared_product_kernel, schedules.shared_product, torch.matmul,
        (3, 40, 50), (50, 36),
    ),
    "attention": Case(
        flash.attention_kernel, attention, flash.reference, *HEADS,
        rest=lambda _: (False, 0.25), dtype=torch.float16,
    ),
    "causal attention": Case(
        flash.attention_kernel, attention, flash.reference, *HEADS,
        rest=lambda _: (True, 0.25), dtype=torch.float16,
    ),
    "attention in long blocks": Case(
        flash.attention_kernel, attention_in_long_blocks, flash.reference,
        *((1, 1, 256, 64),) * 3, rest=lambda _: (True, 0.125), dtype=torch.float16,
    ),
    "grouped attention": Case(
        grouped_attention.grouped_attention_kernel, grouped_attention.grouped_attention,
        grouped_attention.grouped_attention_reference, (1, 4, 128, 16), *((1, 2, 128, 16),) * 2,
        rest=lambda device: (0.25,), dtype=torch.float16,
    ),
    "recurrence": Case(
        loops.rnn_kernel, loops.rnn, loops.rnn_reference, (3, 5, 20), (20,), (3, 20), scale=0.4,
        roundings=8 * 5,  # in each of the steps, see test_loops
    ),  # fmt: skip
    "nested loops": Case(
        loops.nested_kernel, loops.nested, loops.nested_reference, (3, 4, 32), (4,), scale=0.5
    ),
    "running sum": Case(
        loops.running_sum_kernel, loops.running_sum, loops.running_sum_reference, (7, 32), (32,)
    ),
    "gated recurrence": Case(
        recurrences.gated_kernel, recurrences.gated, recurrences.gated_reference,
        (2, 9, 70), (2, 9, 70), scale=0.5,
    ),
    "cumsum": Case(
        recurrences.cumsum_kernel, recurrences.cumsum, recurrences.cumsum_reference, (2, 90, 40)
    ),
}  # fmt: skip


# How many backwards there are at least.
DIFFERENT = {"layer norm": 3, "matmul of whole tiles": 8, "attention": 5, "batched matmul": 6}


@pytest.mark.parametrize("name", KERNELS)
def test_every_schedule(device, name):
    if gradients.FORWARD_ONLY:
        pytest.skip("a choice of backwards")
    case = KERNELS[name]
    inputs = case.inputs(device)
    ran = set()
    for how in forced.OPTIONS:
        print("schedule:", how)  # shown if it fails
        with forced.schedule(how) as found:
            op = differentiated(case.kernel, case.stub)
            assert_gradients_close(op, case.reference, inputs, roundings=case.roundings)
        ran |= found.ran
    assert len(ran) >= DIFFERENT.get(name, 1)
