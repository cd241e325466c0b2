"""What padding holds reaches no gradient: neither NaN nor infinities, nor any number."""

import pytest
import torch
from kernels.padding import CASES
from triton.backends.autodiff import differentiable

pytestmark = pytest.mark.skipif("config.getoption('--forward-only')", reason="about backwards")


def _gradients(kernel, launch, form, fill, device, seed):
    torch.manual_seed(seed)
    output, leaves, counts = launch(differentiable(kernel), form, fill, device)
    gradients = torch.autograd.grad(output, leaves, torch.randn_like(output), allow_unused=True)
    return output.detach(), [
        (torch.zeros_like(x) if g is None else g, g if g is None else g[part])
        for x, g, part in zip(leaves, gradients, counts, strict=True)
    ]


@pytest.mark.parametrize(
    "kernel, launch, form",
    [
        pytest.param(kernel, launch, form, id=f"{launch.__name__}-{form}")
        for (kernel, launch), forms in CASES.items()
        for form in forms
    ],
)
def test_padding(device, kernel, launch, form):
    """The same results for whatever the padding holds, and a gradient of numbers only."""
    seed = torch.randint(2**31, ()).item()
    output, expected = _gradients(kernel, launch, form, 0.25, device, seed)
    assert output.isfinite().all() and any(g is not None and g.any() for _, g in expected)
    for fill in (float("nan"), float("inf"), -float("inf")):
        found, gradients = _gradients(kernel, launch, form, fill, device, seed)
        torch.testing.assert_close(found, output, rtol=1e-6, atol=1e-6)
        for (whole, part), (_, wanted) in zip(gradients, expected, strict=True):
            assert whole.isfinite().all(), f"padding of {fill} reaches a gradient"
            if part is not None:
                torch.testing.assert_close(part, wanted, rtol=1e-4, atol=1e-5)
