"""A small kernel and its gradient, to see whether everything works."""

import torch
import triton
import triton.language as tl

from .. import differentiable


@differentiable
@triton.jit
def scaled_exponential(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """y = w · exp(x), of n elements."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, tl.load(w_ptr) * tl.exp(x), mask=offsets < n)


def gradient_is_right() -> tuple[str, bool]:
    """Return a device, and whether gradients on it are right."""
    device = triton.runtime.driver.active.get_active_torch_device()
    x = torch.randn(100, device=device, requires_grad=True)
    w = torch.randn(1, device=device, requires_grad=True)
    y = torch.empty_like(x)
    scaled_exponential[(4,)](x, w, y, x.numel(), BLOCK=32)
    y.sum().backward()
    powers = x.detach().double().exp()
    truths = (w.detach().double() * powers, powers.sum()[None])
    pairs = zip((x.grad, w.grad), truths, strict=True)
    return str(device), all(torch.allclose(g.double(), t, rtol=1e-4) for g, t in pairs)
