"""What tells a run with one Triton which tests a run with another one has made superfluous."""

import sys
import types

import launched
import pytest
import torch
import triton
import triton.language as tl
from gradients import random_tensor
from triton.backends.autodiff import differentiable
from triton.backends.autodiff.launching.state import KernelState

THIS = sys.modules[__name__]
FACTOR = tl.constexpr(2.0)


@triton.jit
def factor_of(x):
    return x * FACTOR


@triton.jit
def scaled_kernel(x_ptr, y_ptr, n, function: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, tl.exp(function(x)), mask=i < n)


def _kernel(name="scaled_kernel"):
    """The same function, which Triton has not compiled yet."""
    return triton.jit(getattr(THIS, name).fn)


@pytest.fixture
def noted(device, tmp_path):
    """Launches a kernel, notes that a test has done so, and reads the notes."""

    def note(kernel, change=lambda kernel: kernel):
        x = random_tensor(100, device=device)
        y = torch.empty_like(x)
        launcher = differentiable(kernel)
        launcher[(4,)](x, y, 100, factor_of, BLOCK=32)
        y.sum().backward()
        state = KernelState.of(launcher._launches[0][0], kernel)
        notes = launched.Notes()
        notes.note("test", [state])
        notes.kernels = {key: change(kernel) for key, kernel in notes.kernels.items()}
        notes.write(tmp_path, "main")
        return launched.Others(tmp_path)

    return note


def test_what_is_equal_need_not_run(noted):
    others = noted(scaled_kernel)
    assert others.version == triton.__version__
    assert others.ran("test") and not others.differs("test")
    assert not others.ran("another test")


def test_other_text(noted, monkeypatch):
    """The function of that name is another one."""
    others = noted(scaled_kernel)
    monkeypatch.setattr(THIS, "scaled_kernel", factor_of)
    assert others.differs("test")


@pytest.mark.parametrize("factor", [2.0, 3.0])
def test_other_forward(noted, monkeypatch, factor):
    """The same text is compiled again, to something else if a global is another one."""
    kernel = _kernel()
    monkeypatch.setattr(THIS, "scaled_kernel", kernel)
    others = noted(kernel)
    monkeypatch.setattr(THIS, "FACTOR", tl.constexpr(factor))
    monkeypatch.setattr(THIS, "factor_of", _kernel("factor_of"))
    monkeypatch.setattr(THIS, "scaled_kernel", _kernel())
    assert others.differs("test") == (factor != 2)


def test_other_plan(noted):
    """What is derived of the same forward is something else."""

    def changed(kernel):
        (asked, digest), *others = kernel.plans
        return kernel._replace(plans=((asked, digest[::-1]), *others))

    assert noted(scaled_kernel, changed).differs("test")


def test_what_cannot_be_found_again_runs(noted):
    assert noted(_kernel()).differs("test")


def test_modules_of_one_run(noted, monkeypatch, tmp_path):
    """A module that the other run made is no module here."""
    made = types.ModuleType("made_while_testing")
    kernel = _kernel()
    kernel.__module__, made.scaled_kernel = made.__name__, kernel
    monkeypatch.setitem(sys.modules, made.__name__, made)
    others = noted(kernel)
    assert not others.differs("test")
    monkeypatch.delitem(sys.modules, made.__name__)
    others = launched.Others(tmp_path)
    assert others.differs("test")


def test_no_notes(tmp_path):
    with pytest.raises(FileNotFoundError, match="no notes of launches"):
        launched.Others(tmp_path)
