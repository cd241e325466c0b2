"""What the tests of the CPU backend share."""

import os

import pytest
import torch

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
EPSILON = {dtype: torch.finfo(dtype).eps for dtype in FLOATS}


@pytest.fixture(autouse=True)
def on_cpu():
    """Choose the CPU driver for a test's duration; on a GPU machine another one is active."""
    from triton.backends.autodiff.driver import CPUDriver
    from triton.runtime import driver

    if os.environ.get("TRITON_INTERPRET") == "1":
        pytest.skip("kernels are interpreted")
    previous = driver._active
    driver.set_active(CPUDriver())
    yield
    driver._active = previous


def close(actual, expected, dtype, factor=4.0):
    """Check that no element is off by more than a few units of the largest one's last place."""
    scale = expected.double().abs().max().clamp(min=1e-30)
    error = (actual.double() - expected.double()).abs().max() / scale
    assert error <= factor * EPSILON[dtype], f"relative error {error:.3g} in {dtype}"
