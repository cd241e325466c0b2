"""`tl.dot_scaled`: gradients of all operands that are floats."""

import pytest
import torch
from gradients import assert_compiles, assert_gradients_close, differentiated, random_tensor
from kernels import scaled_dots as sd
from kernels.combiners import HOME

pytestmark = [pytest.mark.schedules, pytest.mark.every_triton]

DTYPES = {
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
}


def _operand(rows, columns, name, axis, device):
    if name == "e2m1":
        shape = [rows, columns]
        shape[axis] //= 2
        return torch.randint(0, 256, shape, dtype=torch.uint8, device=device)
    return random_tensor(rows, columns, device=device, dtype=DTYPES[name])


def _scale(rows, depth, device):
    return torch.randint(121, 125, (rows, depth // 32), dtype=torch.uint8, device=device)


@pytest.mark.parametrize("scaled", [(True, True), (False, True), (True, False)], ids=str)
@pytest.mark.parametrize(
    "formats", [("e4m3", "e5m2"), ("bf16", "e4m3"), ("fp16", "e4m3"), ("e4m3", "bf16")], ids=str
)
def test_floats(device, formats, scaled):
    m, n, k = 16, 32, 64
    a = _operand(m, k, formats[0], 1, device)
    b = _operand(k, n, formats[1], 0, device)
    c = random_tensor(m, n, device=device)
    a_scale = _scale(m, k, device) if scaled[0] else None
    b_scale = _scale(n, k, device) if scaled[1] else None
    op = differentiated(sd.scaled_dot_kernel, sd.scaled_dot)
    inputs = (a, a_scale, b, b_scale, c, formats)
    # An exponential is as far off as its argument is, which is a large number here and there.
    assert_gradients_close(op, sd.scaled_dot_reference, inputs, roundings=32)


@pytest.mark.parametrize("along_k", [True, False])
@pytest.mark.parametrize("name", ["bf16", "e5m2"])
def test_packed_weights(device, name, along_k):
    """Weights of four bits have no gradient, what they are multiplied by has one."""
    if device == "cuda" and not along_k:
        pytest.skip("Triton does not compile the forward for Hopper")
    m, n, k = 16, 32, 64
    a = _operand(m, k, name, 1, device)
    b = _operand(k, n, "e2m1", 0 if along_k else 1, device)
    c = random_tensor(m, n, device=device)
    a_scale = None if name == "bf16" else _scale(m, k, device)
    op = differentiated(sd.scaled_dot_kernel, sd.scaled_dot)
    inputs = (a, a_scale, b, _scale(n, k, device) - 3, c, (name, "e2m1"), along_k)
    assert_gradients_close(op, sd.scaled_dot_reference, inputs)


def test_packed_left_operand(device):
    m, n, k = 32, 16, 64
    a = _operand(m, k, "e2m1", 1, device)
    b = _operand(k, n, "bf16", 0, device)
    c = random_tensor(m, n, device=device)
    op = differentiated(sd.scaled_dot_kernel, sd.scaled_dot)
    inputs = (a, _scale(m, k, device) - 3, b, None, c, ("e2m1", "bf16"))
    assert_gradients_close(op, sd.scaled_dot_reference, inputs)


def test_bits_of_floats_are_refused(device):
    from triton.backends.autodiff import AutodiffError, differentiable

    x = random_tensor(16, 32, device=device)
    b, y = torch.zeros(64, 16, dtype=torch.bfloat16, device=device), torch.empty_like(x[:, :16])
    with pytest.raises(AutodiffError, match=r"scaled_dots\.py.*\n?.*derivative lost"):
        differentiable(sd.packed_in_kernel)[(1,)](x, b, y, M=16, N=16, K=64)


def test_triton_compiles():
    a, b = _operand(64, 64, "bf16", 1, HOME), _operand(64, 64, "e2m1", 0, HOME)
    inputs = (a, None, b, _scale(64, 64, HOME), random_tensor(64, 64, device=HOME))
    assert_compiles(
        differentiated(sd.scaled_dot_kernel, sd.scaled_dot), (*inputs, ("bf16", "e2m1"))
    )
