"""Factors that a forward saves in place of what it computes them from."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import epilogues

pytestmark = pytest.mark.schedules


def _inputs(device, dtype, kind, bias=None):
    m, n, k = 35, 40, 36
    a = random_tensor(m, k, device=device, dtype=dtype)
    w, v = (random_tensor(k, n, device=device, dtype=dtype, scale=0.25) for _ in range(2))
    bias = random_tensor(n, device=device, dtype=bias or dtype, shift=0.5)
    if kind == "log":
        # Of zero, which lanes without elements have, its derivative has a pole.
        a, w, bias = (x.detach().abs().requires_grad_() for x in (a, w, bias))
    keep = torch.rand(m, n, device=device) > 0.3
    return a, w, v.requires_grad_(kind == "gate"), bias, keep.to(torch.uint8), kind


def _saved(op):
    """The element types of what a launch saves."""
    lines = [line for line in op.explain().splitlines() if line.startswith("  saved:")]
    return [line.split(" a program")[0].split()[-1] for line in lines]


# What the backward of a bfloat16 output loads. A factor is as exact as its cotangent, two of them
# take no more than one sum, and save exponentials.
SAVED = {
    **dict.fromkeys(("tanh", "steps", "log", "dropout", "stored, too"), ["bf16"]),
    **dict.fromkeys(("gate", "two outputs"), ["bf16", "bf16"]),
    "rows": ["f32", "f32"],
}
# Others are not rounded: half precision has not the range of what it is computed with.
SUMS = {"gate": 2, "rows": 2}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("kind", epilogues.KINDS)
def test_epilogue(device, kind, dtype):
    op = differentiated(epilogues.epilogue_kernel, epilogues.epilogue)
    assert_gradients_close(op, epilogues.epilogue_reference, _inputs(device, dtype, kind))
    is_rounded = dtype == torch.bfloat16
    assert _saved(op) == (SAVED[kind] if is_rounded else ["f32"] * SUMS.get(kind, 1))


def test_bias_in_float32(device):
    """Cotangents come rounded, whatever else is not: the sum over them is as exact as they are."""
    inputs = _inputs(device, torch.bfloat16, "tanh", bias=torch.float32)
    op = differentiated(epilogues.epilogue_kernel, epilogues.epilogue)
    half = torch.finfo(torch.bfloat16).eps / 2
    roundings = 2 * half / torch.finfo(torch.float32).eps
    assert_gradients_close(op, epilogues.epilogue_reference, inputs, roundings=roundings)


def test_explanation_of_factor(device):
    op = differentiated(epilogues.epilogue_kernel, epilogues.epilogue)
    inputs = _inputs(device, torch.bfloat16, "tanh")
    op(*inputs).sum().backward()
    assert "  saved: a factor of 'd_acc' at common.py" in op.explain()


def test_cotangent_that_is_zero_at_a_pole(device):
    """What is not used of an output has no gradient, whatever its derivative is."""
    a, w, v, bias, keep, kind = _inputs(device, torch.bfloat16, "log")
    a, bias = a.detach().clone(), torch.zeros_like(bias)
    a[3] = 0
    a.requires_grad_()
    y = differentiated(epilogues.epilogue_kernel, epilogues.epilogue)(a, w, v, bias, keep, kind)
    upstream = torch.randn_like(y)
    upstream[3] = 0
    gradients = torch.autograd.grad(y, (a, w), upstream)
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert not gradients[0][3].any()
