"""What is measured: for each kernel its operation, PyTorch's, and a hand-written backward."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
import triton

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python" / "test"), str(ROOT / "python" / "examples")]

import flash_attention_v2 as flash  # noqa: E402
import layer_norm as looped  # noqa: E402
from handwritten.attention import attention_backward  # noqa: E402
from handwritten.layer_norm import layer_norm_backward  # noqa: E402
from kernels import cross_entropy, elementwise, gather, image, loops, matmul, normalization, softmax  # noqa: E402  # noqa: E402


@dataclass(frozen=True)
class Case:
    """One row. ``reference`` is the same function of the same inputs in plain PyTorch."""

    name: str
    kernel: object
    stub: Callable
    inputs: Callable[[], tuple]
    reference: Callable
    # Given the inputs, makes a function of the upstream gradient that returns the gradients.
    handwritten: Callable | None = None


def _tensor(*shape, dtype=torch.float16, scale=1.0):
    return (scale * torch.randn(*shape, device="cuda")).to(dtype).requires_grad_()


def _tensors(count, *shape, **options):
    return lambda: tuple(_tensor(*shape, **options) for _ in range(count))


def _with(stub, **options):
    """The stub with tile sizes and launch options of a real size."""
    return lambda kernel, *args: stub(kernel, *args, **options)


def _norm_inputs(rows, columns, bias):
    def make():
        x, w, b = _tensor(rows, columns), _tensor(columns), _tensor(columns)
        return (x, w, b) if bias else (x, w)

    return make


def _layer_norm_by_hand(x, w, b):
    x, w = x.detach(), w.detach()
    wide = x.float()
    mean = wide.mean(1)
    rstd = torch.rsqrt(wide.var(1, unbiased=False) + 1e-5)
    return lambda upstream: layer_norm_backward(x, w, mean, rstd, upstream)


def _attention_case(batch, heads, context, dim, causal, dtype):
    scale = dim**-0.5
    tiles = {"BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 4}

    def stub(kernel, q, k, v):
        return flash.attention(kernel, q, k, v, causal, scale, **tiles)

    def by_hand(q, k, v):
        q, k, v = q.detach(), k.detach(), v.detach()
        out, m = torch.empty_like(q), torch.empty(q.shape[:3], device=q.device)
        flash.attention_kernel[(triton.cdiv(context, 64), batch * heads)](
            q, k, v, scale, m, out, *q.stride(), *k.stride(), *v.stride(), *out.stride(),
            heads, context, HEAD_DIM=dim, CAUSAL=causal, EVEN=True, **tiles,
        )  # fmt: skip
        return lambda upstream: attention_backward(q, k, v, out, m, upstream, causal, scale)

    mask = "causal" if causal else "full"
    name = f"attention {mask} {batch}x{heads}x{context}x{dim} {str(dtype)[6:]}"
    return Case(
        name,
        flash.attention_kernel,
        stub,
        _tensors(3, batch, heads, context, dim, dtype=dtype, scale=0.5),
        lambda q, k, v: flash.reference(q, k, v, causal, scale),
        by_hand,
    )


# The tests' configurations are for tiny matrices.
_autotuned_matmul_kernel = triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 64, "GROUP": 8}, num_warps=warps)
        for m, n, warps in ((128, 128, 8), (64, 128, 4), (128, 64, 4))
    ],
    key=["m", "n", "k"],
)(matmul.grouped_matmul_kernel)


def _matmul_cases():
    tiles = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8}

    def operands(m, n, k, *more):
        return lambda: (_tensor(m, k), _tensor(k, n), *(f() for f in more))

    yield Case(
        "matmul 4096x4096x4096", matmul.matmul_kernel, _with(matmul.matmul, **tiles),
        operands(4096, 4096, 4096), torch.matmul,
    )  # fmt: skip
    yield Case(
        "matmul grouped 4096x4096x4096", matmul.grouped_matmul_kernel,
        _with(matmul.grouped_matmul, GROUP=8, **tiles),
        operands(4096, 4096, 4096), torch.matmul,
    )  # fmt: skip
    yield Case(
        "matmul autotuned 2048x2048x2048", _autotuned_matmul_kernel,
        matmul.autotuned_matmul, operands(2048, 2048, 2048), torch.matmul,
    )  # fmt: skip
    yield Case(
        "matmul x transposed 4096x4096x4096", matmul.matmul_kernel, _with(matmul.matmul, **tiles),
        lambda: (_tensor(4096, 4096), _tensor(4096, 4096).detach().t().requires_grad_()),
        torch.matmul,
    )  # fmt: skip
    yield Case(
        "matmul + bias + gelu 4096x4096x1024", matmul.bias_activation_kernel,
        lambda kernel, a, b, bias: matmul.bias_activation(kernel, a, b, bias, "gelu", **tiles),
        operands(4096, 4096, 1024, lambda: _tensor(4096)),
        lambda a, b, bias: matmul.bias_activation_reference(a, b, bias, "gelu"),
    )  # fmt: skip
    yield Case(
        "matmul batched 16x1024x1024x512", matmul.batched_matmul_kernel,
        _with(matmul.batched_matmul, **tiles),
        lambda: (_tensor(16, 1024, 512), _tensor(16, 512, 1024)), torch.matmul,
    )  # fmt: skip


def _elementwise_cases():
    n = 2**25
    yield Case(
        "add 2^25", elementwise.add_kernel, _with(elementwise.add, BLOCK=1024),
        _tensors(2, n), torch.add,
    )  # fmt: skip
    yield Case(
        "gelu (tanh) 2^25", elementwise.gelu_tanh_kernel, _with(elementwise.unary, BLOCK=1024),
        _tensors(1, n), elementwise.gelu_tanh_reference,
    )  # fmt: skip
    yield Case(
        "gelu (erf) 2^25", elementwise.gelu_erf_kernel, _with(elementwise.unary, BLOCK=1024),
        _tensors(1, n), elementwise.gelu_erf_reference,
    )  # fmt: skip
    yield Case(
        "swiglu 4096x11008", elementwise.swiglu_kernel, elementwise.swiglu,
        _tensors(2, 4096, 11008), elementwise.swiglu_reference,
    )  # fmt: skip
    # The masks are different ones, so only the times can be compared.
    yield Case(
        "dropout 2^25", elementwise.dropout_kernel,
        lambda kernel, x: elementwise.dropout(kernel, x, 0.5, 1234, BLOCK=1024),
        _tensors(1, n), lambda x: F.dropout(x, 0.5),
    )  # fmt: skip
    yield Case(
        "greyscale 3x4320x7680", image.greyscale_kernel, _with(image.greyscale, BLOCK=32),
        _tensors(1, 3, 4320, 7680), image.greyscale_reference,
    )  # fmt: skip


def _row_cases():
    for name in ("softmax", "log_softmax"):
        yield Case(
            f"{name} 8192x4096", getattr(softmax, f"{name}_kernel"), softmax.rowwise,
            _tensors(1, 8192, 4096), getattr(softmax, f"{name}_reference"),
        )  # fmt: skip
    yield Case(
        "layer norm, one block 4096x4096", normalization.layer_norm_kernel,
        normalization.layer_norm, _norm_inputs(4096, 4096, True),
        normalization.layer_norm_reference, _layer_norm_by_hand,
    )  # fmt: skip
    yield Case(
        "layer norm, looped 4096x8192", looped.layer_norm_kernel, looped.layer_norm,
        _norm_inputs(4096, 8192, True), looped.reference, _layer_norm_by_hand,
    )  # fmt: skip
    yield Case(
        "rms norm 4096x4096", normalization.rms_norm_kernel, normalization.rms_norm,
        _norm_inputs(4096, 4096, False), normalization.rms_norm_reference,
    )  # fmt: skip
    yield Case(
        "cross-entropy 4096x50257", cross_entropy.cross_entropy_kernel,
        _with(cross_entropy.cross_entropy, BLOCK=4096, num_warps=8),
        lambda: (
            _tensor(4096, 50257),
            torch.randint(50257, (4096,), device="cuda"),
        ),
        cross_entropy.cross_entropy_reference,
    )  # fmt: skip
    yield Case(
        "embedding 8192 of 32000x2048", gather.embedding_kernel,
        _with(gather.embedding, BLOCK=1024),
        lambda: (torch.randint(32000, (8192,), device="cuda"), _tensor(32000, 2048)),
        lambda index, table: F.embedding(index, table),
    )  # fmt: skip
    yield Case(
        "rnn 64x128x1024 float32", loops.rnn_kernel, _with(loops.rnn, BLOCK=128),
        lambda: (
            _tensor(64, 128, 1024, dtype=torch.float32),
            # Small weights, for a chaotic recurrence would amplify every rounding.
            _tensor(1024, dtype=torch.float32, scale=0.4),
            _tensor(64, 1024, dtype=torch.float32),
        ),
        loops.rnn_reference,
    )  # fmt: skip


def all_cases() -> list[Case]:
    """Every row of the table, in its order."""
    cases = [*_elementwise_cases(), *_row_cases(), *_matmul_cases()]
    for dim in (64, 128):
        for causal in (False, True):
            cases.append(_attention_case(4, 16, 4096, dim, causal, torch.float16))
    cases.append(_attention_case(4, 16, 4096, 64, True, torch.bfloat16))
    return cases
