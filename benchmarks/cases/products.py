"""Products of matrices, with what is fused to them."""

from __future__ import annotations

import torch
import triton
from kernels import grid_stride, low_rank, matmul, turns, wraparound

from .common import Case, leaf, with_options

TILES = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8}


# The tests' configurations are for tiny matrices.
_autotuned_matmul_kernel = triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 64, "GROUP": 8}, num_warps=warps)
        for m, n, warps in ((128, 128, 8), (64, 128, 4), (128, 64, 4))
    ],
    key=["m", "n", "k"],
)(matmul.grouped_matmul_kernel)


def _operand(rows, columns, transposed):
    """A leaf that is transposed in memory, or not."""
    if not transposed:
        return leaf(rows, columns)
    return leaf(columns, rows).detach().t().requires_grad_()


def product(m, n, k, transposed=(False, False), tiles=TILES, quick=False):
    form = "".join("NT"[t] for t in transposed)
    return Case(
        "matmul", f"matmul {form} {m}x{n}x{k}", matmul.matmul_kernel,
        with_options(matmul.matmul, **tiles),
        lambda: (_operand(m, k, transposed[0]), _operand(k, n, transposed[1])),
        torch.matmul, quick=quick, compiles=False,
    )  # fmt: skip


def grouped(
    m, n, k, how="grouped", kernel=matmul.grouped_matmul_kernel, stub=matmul.grouped_matmul,
    tiles=TILES, **options,
):  # fmt: skip
    return Case(
        "matmul", f"matmul {how} {m}x{n}x{k}", kernel,
        with_options(stub, GROUP=8, **tiles, **options),
        lambda: (leaf(m, k), leaf(k, n)), torch.matmul, compiles=False,
    )  # fmt: skip


def gram(rows, columns, block=128, **options):
    """Both factors are the same tensor."""
    return Case(
        "matmul", f"matmul xᵀx {rows}x{columns}", turns.gram_kernel,
        with_options(turns.gram, block=block, **options), lambda: (leaf(rows, columns),),
        turns.gram_reference, compiles=False,
    )  # fmt: skip


def persistent(m, n, k, how="persistent", programs=132, **options):
    kernel, stub = grid_stride.matmul_kernel, grid_stride.matmul
    return grouped(m, n, k, how, kernel, stub, programs=programs, **options)


def bias_gelu(m, n, k, dtype, tiles=TILES, quick=False):
    name = str(dtype).removeprefix("torch.")
    return Case(
        "matmul", f"matmul + bias + gelu {m}x{n}x{k} {name}", matmul.bias_activation_kernel,
        lambda kernel, a, b, bias: matmul.bias_activation(kernel, a, b, bias, "gelu", **tiles),
        lambda: (leaf(m, k, dtype=dtype), leaf(k, n, dtype=dtype), leaf(n, dtype=dtype)),
        lambda a, b, bias: matmul.bias_activation_reference(a, b, bias, "gelu"), quick=quick,
    )  # fmt: skip


def low_rank_product(m, n, k, rank, tiles=TILES):
    shapes = ((m, k), (k, n), (k, rank), (rank, n))
    return Case(
        "matmul", f"matmul with rank {rank} added {m}x{n}x{k} bfloat16", low_rank.low_rank_kernel,
        with_options(low_rank.low_rank, **tiles),
        lambda: tuple(leaf(*shape, dtype=torch.bfloat16, scale=0.1) for shape in shapes),
        low_rank.low_rank_reference,
    )  # fmt: skip


def batched(batch, m, n, k, tiles=TILES):
    return Case(
        "matmul", f"matmul batched {batch}x{m}x{n}x{k}", matmul.batched_matmul_kernel,
        with_options(matmul.batched_matmul, **tiles),
        lambda: (leaf(batch, m, k), leaf(batch, k, n)), torch.matmul, compiles=False,
    )  # fmt: skip


def cases():
    for shape in ((4096, 4096, 4096), (2048, 2048, 2048), (8192, 1024, 4096)):
        for form in ((False, False), (True, False), (False, True), (True, True)):
            yield product(*shape, form, quick=shape[0] == 4096 and not any(form))
    yield grouped(4096, 4096, 4096)
    yield grouped(4096, 4096, 4096, "modulo lengths", wraparound.matmul_kernel)
    yield gram(4096, 4096, 64, num_warps=4)
    yield persistent(4096, 4096, 4096)
    yield persistent(4096, 4096, 4096, "persistent, in halves", HALVES=True)
    yield Case(
        "matmul", "matmul autotuned 2048x2048x2048", _autotuned_matmul_kernel,
        matmul.autotuned_matmul, lambda: (leaf(2048, 2048), leaf(2048, 2048)), torch.matmul,
        compiles=False,
    )  # fmt: skip
    for dtype in (torch.float16, torch.bfloat16):
        yield bias_gelu(4096, 4096, 1024, dtype, quick=dtype == torch.bfloat16)
    yield low_rank_product(4096, 4096, 4096, 16)
    yield batched(16, 1024, 1024, 512)
