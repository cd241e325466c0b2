"""What masked lanes hold must not reach a gradient, be it infinite or NaN."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import masks

pytestmark = pytest.mark.schedules

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


@DTYPES
@pytest.mark.parametrize("shape", [(3, 50), (2, 64), (4, 1)], ids=str)
def test_tails_of_minus_infinity(device, shape, dtype):
    x, y = (random_tensor(*shape, device=device, dtype=dtype) for _ in range(2))
    op = differentiated(masks.divergence_kernel, masks.divergence)
    assert_gradients_close(op, masks.divergence_reference, (x, y))


@DTYPES
@pytest.mark.parametrize("n", [32, 20, 1])
def test_selected_overflow(device, n, dtype):
    x = random_tensor(n, device=device, dtype=dtype)
    g = masks.falling(n, device=device, dtype=dtype)
    op = differentiated(masks.decay_kernel, masks.decay)
    assert_gradients_close(op, masks.decay_reference, (x, g))
