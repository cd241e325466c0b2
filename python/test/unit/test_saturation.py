"""Where an exponential overflows, what it divides has come to its limit: its gradient is zero."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated
from kernels import saturation


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("function", saturation.FUNCTIONS)
def test_functions(device, function, dtype):
    # From where nothing is left of the derivative to where there is all of it, on both sides.
    sizes = torch.cat([torch.linspace(1e-3, 12, 25), torch.linspace(13, 3e3, 6)])
    x = torch.cat([-sizes, sizes]) * (0.9 + 0.1 * torch.rand(3, 62))
    x = x.to(dtype).to(device).requires_grad_()
    op = differentiated(saturation.saturation_kernel, saturation.saturation)
    upstream = 0.5 + torch.rand(3, 62, device=device)
    # PyTorch's own functions are not made of overflowing exponentials.
    assert_gradients_close(
        op, saturation.saturation_reference, (x, function), [upstream.to(dtype)], roundings=64
    )
