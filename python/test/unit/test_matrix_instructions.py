"""What ptxas makes of products, seen without a GPU."""

import flash_attention_v2 as flash
import hopper
import pytest
from kernels import grouped_attention as grouped

TILES = {"BLOCK_M": 64, "BLOCK_N": 64, "EVEN": True}


def _attention(dim, causal):
    strides = dict.fromkeys((f"stride_{x}" for x in ("qd", "kd", "vd", "od")), 1)
    types = ["*bf16"] * 3 + ["fp32", "*fp32", "*bf16"] + ["i32"] * 14
    constants = {**strides, **TILES, "HEAD_DIM": dim, "CAUSAL": causal, "GROUP": 1}
    return flash.attention_kernel, types, constants


def _shared_heads(dim):
    types = ["*bf16"] * 3 + ["fp32", "*fp32", "*bf16"] + ["i32"] * 3
    constants = {**TILES, "HEAD_DIM": dim, "INTERLEAVED": False}
    return grouped.grouped_attention_kernel, types, constants


@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("form", ["full", "causal", "shared heads"])
def test_matrix_instructions_overlap(form, dim):
    """Products are under way while others are started: ptxas warns if it has to wait for each."""
    form = _shared_heads(dim) if form == "shared heads" else _attention(dim, form == "causal")
    text = hopper.ttir(*form, multiples_of_16=True)
    for kernel in hopper.plan_of(text)["backward"]:
        if "tt.dot" in kernel["ttir"]:
            remarks = hopper.assembler_remarks(kernel)
            assert "Compiling entry function" in remarks
            assert "serialized" not in remarks
