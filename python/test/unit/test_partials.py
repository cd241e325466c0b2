"""Partial sums added up by a kernel: against PyTorch in float64, for any layout and count."""

import pytest
import torch
from kernels import normalization
from triton.backends.autodiff import partials
from triton.backends.autodiff.partials import Finish, SumOfPartials

LAYOUTS = {
    "dense": ((40,), (1,)),
    "matrix": ((6, 33), (33, 1)),
    "transposed": ((6, 33), (1, 6)),
    "holes": ((5, 7), (16, 2)),
    "one element": ((1,), (1,)),
    "no dimensions": ((), ()),
    "wide": ((2500,), (1,)),
    "empty": ((0, 3), (3, 1)),
}


def made(count, layout, dtype, result, device):
    """Return `(sums, memory, expected)` of random partial sums; the holes hold NaN."""
    shape, strides = LAYOUTS[layout]
    size = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    sums = SumOfPartials(count, size, shape, strides, dtype, result)
    memory = sums.make(device)
    memory.copy_(torch.randn(memory.shape, dtype=torch.float64))
    return sums, memory, memory.double().sum(0)


@pytest.fixture
def on_gpu(monkeypatch):
    """Let the kernel add up on any device, PyTorch nowhere."""
    monkeypatch.delattr(SumOfPartials, "by_torch")

    class Device:
        type = "cuda"

    return Device


@pytest.mark.parametrize("count", [0, 1, 3, 17, 264, 1100])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(device, on_gpu, layout, count):
    sums, memory, expected = made(count, layout, torch.float32, torch.float32, device)
    found = Finish({4: sums}, on_gpu).run({4: memory})[4]
    assert found.shape == expected.shape and (found.numel() <= 1 or found.stride() == sums.strides)
    torch.testing.assert_close(found.double(), expected, atol=1e-5 * (1 + count), rtol=1e-6)
    again = Finish({4: sums}, on_gpu).run({4: memory})[4]
    assert torch.equal(found, again)


@pytest.mark.parametrize("result", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_rounds_once(device, on_gpu, result):
    """The sum is rounded to the gradient's type at the end, as PyTorch rounds."""
    sums, memory, _ = made(1, "wide", torch.float32, result, device)
    found = Finish({0: sums}, on_gpu).run({0: memory})[0]
    assert torch.equal(found, memory[0].to(result))


def test_float64(device, on_gpu):
    sums, memory, expected = made(33, "matrix", torch.float64, torch.float64, device)
    found = Finish({0: sums}, on_gpu).run({0: memory})[0]
    torch.testing.assert_close(found, expected, atol=1e-13, rtol=1e-13)


def test_launch_for_all(device, on_gpu, monkeypatch):
    """Gradients with equally many sums share a launch, whatever their sizes and types."""
    several = {
        0: made(17, "wide", torch.float32, torch.float16, device),
        2: made(17, "holes", torch.float32, torch.float32, device),
        5: made(17, "matrix", torch.float64, torch.float64, device),
        7: made(4, "wide", torch.float32, torch.float32, device),
    }
    launches = []
    real = partials.launch
    monkeypatch.setattr(partials, "launch", lambda *args: (launches.append(1), real(*args)))
    finish = Finish({i: sums for i, (sums, _, _) in several.items()}, on_gpu)
    found = finish.run({i: memory for i, (_, memory, _) in several.items()})
    assert len(launches) == 2
    for i, (sums, _, expected) in several.items():
        tolerance = 2e-2 if sums.result == torch.float16 else 1e-4
        torch.testing.assert_close(found[i].double(), expected, atol=tolerance, rtol=1e-3)


def test_float8_is_left_to_torch(device):
    """PyTorch and Triton differ in what is too large for float8."""
    sums, memory, expected = made(3, "dense", torch.float32, torch.float8_e5m2, device)
    found = Finish({0: sums}, torch.device(device)).run({0: memory})[0]
    assert torch.equal(found.float(), expected.float().to(torch.float8_e5m2).float())


def test_backward_uses_it(device, on_gpu, monkeypatch):
    """The weights' gradients of a norm come from the kernel, and are right."""
    from triton.backends.autodiff import autodiff, backward

    ran = []

    class Noted(Finish):
        def __init__(self, sums, _):
            super().__init__(sums, on_gpu)

        def run(self, memory):
            ran.append(sorted(memory))
            return super().run(memory)

    monkeypatch.setattr(backward, "Finish", Noted)
    x = torch.randn(37, 50, device=device, requires_grad=True)
    w, b = (torch.randn(50, device=device, requires_grad=True) for _ in range(2))
    op = autodiff(normalization.layer_norm_kernel, normalization.layer_norm)
    g = torch.randn(37, 50, device=device)
    found = torch.autograd.grad(op(x, w, b), (x, w, b), g)
    wide = [t.detach().double().requires_grad_() for t in (x, w, b)]
    expected = torch.autograd.grad(normalization.layer_norm_reference(*wide), wide, g.double())
    assert len(ran) == 1 and len(ran[0]) == 2
    for a, e in zip(found, expected, strict=True):
        torch.testing.assert_close(a.double(), e, atol=1e-4, rtol=1e-4)
