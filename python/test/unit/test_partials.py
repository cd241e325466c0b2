"""Partial sums added up by a kernel: against PyTorch in float64, for any layout and count."""

import math
import os
import subprocess
import sys

import pytest
import torch
from gradients import assert_gradients_close, random_tensor
from kernels import normalization
from triton.backends.autodiff.programs import partials
from triton.backends.autodiff.programs.partials import SumOfPartials, Sums

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
    """Return `(sums, memory)` of random partial sums; the holes hold NaN."""
    shape, strides = LAYOUTS[layout]
    size = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    sums = SumOfPartials(count, size, shape, strides, dtype, result)
    memory = sums.make(device)
    memory.copy_(torch.randn(memory.shape, dtype=torch.float64))
    return sums, memory


def assert_adds_up(found, memory):
    """`found` is the sum of the partial sums, as near as its type and theirs allow.

    The roundings of n - 1 additions, in whatever order, are relative to sums of some terms, so at
    most to the sum of the magnitudes. They are as good as independent: together rarely more than
    the square root of n - 1 times as large as one, and practically never five times that.
    """
    terms = memory.double()
    expected = terms.sum(0)
    assert found.shape == expected.shape
    additions = max(len(terms) - 1, 0)
    bound = 5 * math.sqrt(additions) * torch.finfo(memory.dtype).eps / 2 * terms.abs().sum(0)
    if found.dtype != memory.dtype:
        bound += torch.finfo(found.dtype).eps / 2 * (expected.abs() + bound)
    error = (found.double() - expected).abs()
    assert (error <= bound).all(), f"too far from the sum by {(error - bound).max().item():.3e}"


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
    sums, memory = made(count, layout, torch.float32, torch.float32, device)
    found = Sums([sums], on_gpu).run([memory])[0]
    assert found.numel() <= 1 or found.stride() == sums.strides
    assert_adds_up(found, memory)
    again = Sums([sums], on_gpu).run([memory])[0]
    assert torch.equal(found, again)


@pytest.mark.parametrize("result", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_rounds_once(device, on_gpu, result):
    """The sum is rounded to the gradient's type at the end, as PyTorch rounds."""
    sums, memory = made(1, "wide", torch.float32, result, device)
    found = Sums([sums], on_gpu).run([memory])[0]
    assert torch.equal(found, memory[0].to(result))


def test_float64(device, on_gpu):
    sums, memory = made(33, "matrix", torch.float64, torch.float64, device)
    assert_adds_up(Sums([sums], on_gpu).run([memory])[0], memory)


def test_launch_for_all(device, on_gpu, monkeypatch):
    """Gradients with equally many sums share a launch, whatever their sizes and types."""
    several = [
        made(17, "wide", torch.float32, torch.float16, device),
        made(17, "holes", torch.float32, torch.float32, device),
        made(17, "matrix", torch.float64, torch.float64, device),
    ]
    launches = []
    real = partials.launch
    monkeypatch.setattr(partials, "launch", lambda *args: (launches.append(1), real(*args)))
    total = Sums([sums for sums, _ in several], on_gpu)
    found = total.run([memory for _, memory in several])
    assert len(launches) == 1
    for gradient, (sums, memory) in zip(found, several, strict=True):
        assert gradient.dtype == sums.result
        assert_adds_up(gradient, memory)


def test_compiling_the_kernel_is_logged(device, on_gpu, caplog):
    """The launches behind it compile nothing."""
    sums, memory = made(3, "dense", torch.float32, torch.float32, device)
    several = Sums([sums], on_gpu)
    with caplog.at_level("INFO", logger="triton_autodiff"):
        several.run([memory])
        assert "compiling kernel 'add_up': " in caplog.text
        caplog.clear()
        several.run([memory])
        assert "add_up" not in caplog.text


def test_while_kernels_are_interpreted(device):
    """TRITON_INTERPRET=1 is for the user's kernels; sums are added up by a compiled one."""
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    tests = [f"{__file__}::{test.__name__}" for test in (test_float64, test_launch_for_all)]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    command += [f"--device={device}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout


def test_float8_is_left_to_torch(device):
    """PyTorch and Triton differ in what is too large for float8."""
    sums, memory = made(3, "dense", torch.float32, torch.float8_e5m2, device)
    found = Sums([sums], torch.device(device)).run([memory])[0]
    assert torch.equal(found.float(), memory.sum(0).to(torch.float8_e5m2).float())


def test_backward_uses_it(device, on_gpu, monkeypatch, fresh):
    """The weights' gradients of a norm come from the kernel, and are right."""
    from triton.backends.autodiff import autodiff
    from triton.backends.autodiff.programs import backward

    ran = []

    class Noted(Sums):
        def __init__(self, sums, _):
            super().__init__(sums, on_gpu)

        def run(self, memory):
            ran.append(len(memory))
            return super().run(memory)

    monkeypatch.setattr(backward, "Sums", Noted)
    x, w, b = (random_tensor(*shape, device=device) for shape in ((37, 50), (50,), (50,)))
    op = autodiff(normalization.layer_norm_kernel, normalization.layer_norm)
    assert_gradients_close(op, normalization.layer_norm_reference, (x, w, b))
    assert ran == [2]
