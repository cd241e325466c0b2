"""Kernels of a backward are compiled side by side."""

import threading
import types
from pathlib import Path

import pytest
import torch
from gradients import assert_gradients_close
from kernels import matmul
from triton.backends.autodiff import AutodiffError, autodiff, executable, together
from triton.backends.autodiff.executable import Executable
from triton.backends.autodiff.plan import Kernel
from triton.backends.autodiff.together import compile_all
from triton.backends.compiler import GPUTarget

HOST = GPUTarget("cpu", "x86_64", 1)
_TIMEOUT = 60  # seconds, which only a failing test waits


@pytest.fixture
def compiler(monkeypatch):
    """A compiler that calls `meet(name)` while it compiles a kernel."""
    found = types.SimpleNamespace()

    def compile_(path, target, options):
        found.meet(Path(path).read_text())
        return types.SimpleNamespace(asm={}, _init_handles=int, src=types.SimpleNamespace(module=1))

    monkeypatch.setattr(executable, "triton_compile", compile_)
    return found


def made(*names):
    return [Executable(Kernel(name, name, None, ()), HOST, {}) for name in names]


def test_side_by_side(compiler):
    barrier = threading.Barrier(3)
    compiler.meet = lambda name: barrier.wait(_TIMEOUT)
    kernels = made("a", "b", "c")
    compile_all(kernels + kernels)
    assert all(kernel.compiled is not None for kernel in kernels)


def test_once(compiler):
    """What has been compiled is not compiled again, by itself or with others."""
    names = []
    compiler.meet = names.append
    kernels = made("a", "b", "c")
    kernels[1].compile()
    compile_all(kernels)
    compile_all(kernels)
    compile_all([])
    assert sorted(names) == ["a", "b", "c"]


def test_first_error(compiler):
    """The error is the first kernel's, whenever it comes, and the others have ended by then."""
    others = threading.Semaphore(0)

    def meet(name):
        if name == "a":
            assert others.acquire(timeout=_TIMEOUT) and others.acquire(timeout=_TIMEOUT)
        else:
            others.release()
        if name != "c":
            raise RuntimeError("no")

    compiler.meet = meet
    kernels = made("a", "b", "c")
    with pytest.raises(AutodiffError, match="kernel 'a'"):
        compile_all(kernels)
    assert [kernel.compiled is None for kernel in kernels] == [True, True, False]


def test_one_after_another_while_passes_are_printed(compiler, monkeypatch):
    monkeypatch.setenv("MLIR_ENABLE_DUMP", "1")
    threads = []
    compiler.meet = lambda name: threads.append((name, threading.current_thread()))
    compile_all(made("a", "b"))
    assert threads == [(name, threading.current_thread()) for name in ("a", "b")]


def test_on_the_current_device(compiler, monkeypatch):
    """Whose properties a kernel is compiled for, and where it is loaded."""
    here = threading.local()
    here.device = 3
    active = types.SimpleNamespace(
        get_current_device=lambda: getattr(here, "device", 0),
        set_current_device=lambda device: setattr(here, "device", device),
    )
    monkeypatch.setattr(together, "driver", types.SimpleNamespace(active=active))
    devices = []
    compiler.meet = lambda name: devices.append(active.get_current_device())
    compile_all(made("a", "b"))
    assert devices == [3, 3]


def test_backward(device, monkeypatch):
    """The two kernels of a product's backward wait for one another."""
    op = autodiff(matmul.matmul_kernel, matmul.matmul)
    a, b = (torch.randn(*shape, device=device) for shape in ((40, 50), (50, 60)))
    inputs = a.requires_grad_(), b.requires_grad_()
    y = op(*inputs)
    barrier = threading.Barrier(2)
    real = Executable._compile

    def compile_(self):
        barrier.wait(_TIMEOUT)
        return real(self)

    with monkeypatch.context() as patched:
        patched.setattr(Executable, "_compile", compile_)
        y.sum().backward()
    assert_gradients_close(op, torch.matmul, inputs)
