"""Launchers that Triton has a C compiler build: they are built while their kernels compile."""

import sysconfig
import threading
import types

import hopper
import pytest
import torch
from triton.backends.autodiff.compiling import executable
from triton.backends.autodiff.compiling.executable import Executable
from triton.backends.autodiff.faults import launchers
from triton.backends.autodiff.faults.launchers import built_meanwhile, source_of
from triton.backends.autodiff.plans.plan import Kernel
from triton.backends.autodiff.programs import partials
from triton.backends.nvidia import driver as nvidia
from triton.runtime import build, jit

_TIMEOUT = 60  # seconds, which only a failing test waits
TTIR = """
module {
  tt.func public @copy(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f16>, %n: i32,
                       %scale: f32) {
    tt.return
  }
}
"""
compiles = pytest.mark.skipif(
    not launchers._is_compiled(nvidia.CudaLauncher), reason="this Triton compiles no launchers"
)


@pytest.fixture
def launcher(monkeypatch):
    """A kind of launcher that is compiled, by `build(source, metadata)`."""
    found = types.SimpleNamespace(build=lambda source, metadata: None)
    compile_module_from_src = lambda *args: found.build(*args)  # noqa: E731

    class Launcher:
        def __init__(self, source, metadata):
            compile_module_from_src(source, metadata)

    # Where Triton has it, it is a function of the module.
    names = Launcher.__init__.__code__.replace(co_names=("compile_module_from_src",))
    Launcher.__init__.__code__ = names
    active = types.SimpleNamespace(launcher_cls=Launcher)
    monkeypatch.setattr(launchers, "driver", types.SimpleNamespace(active=active))
    found.active = active
    return found


def test_meanwhile(launcher):
    """The launcher and what needs it wait for one another, and both have ended behind it."""
    barrier, built = threading.Barrier(2), []

    def build(source, metadata):
        barrier.wait(_TIMEOUT)
        built.append((source, metadata.warp_size, metadata.num_ctas))

    launcher.build = build
    with built_meanwhile(hopper.TARGET, lambda: "source"):
        barrier.wait(_TIMEOUT)
    assert built == [("source", 32, None)]


def test_ended_when_the_kernel_fails(launcher):
    running = threading.Event()
    built = []

    def build(*_):
        assert running.wait(_TIMEOUT)
        built.append(1)

    launcher.build = build
    before = threading.enumerate()
    with pytest.raises(ZeroDivisionError), built_meanwhile(hopper.TARGET, lambda: "source"):
        running.set()
        raise ZeroDivisionError
    assert built and threading.enumerate() == before


def test_its_error_is_that_of_loading(launcher, monkeypatch):
    """What goes wrong with it goes wrong again when the kernel is loaded, and is raised there."""
    tried, shown = [], []
    # By default, an error that ends a thread is written to stderr.
    monkeypatch.setattr(threading, "excepthook", shown.append)

    def build(*_):
        tried.append(threading.current_thread() is threading.main_thread())
        raise OSError("no C compiler")

    launcher.build = build

    def compile_(path, target, options):
        load = lambda: launcher.active.launcher_cls(None, None)  # noqa: E731
        return types.SimpleNamespace(asm={}, _init_handles=load, src=types.SimpleNamespace())

    monkeypatch.setattr(executable, "triton_compile", compile_)
    with pytest.raises(Exception, match="no C compiler"):
        Executable(Kernel("copy", TTIR, None, ()), hopper.TARGET, {}).compile()
    assert tried[:2] == [False, True] and shown == []


def test_others_are_made_once(launcher):
    """Those that no compiler builds."""
    made = []
    launcher.active.launcher_cls = lambda *args: made.append(args)
    with built_meanwhile(hopper.TARGET, lambda: made.append("source")):
        pass
    assert made == []


@pytest.fixture
def code(monkeypatch):
    """The C code of launchers as Triton asks for it."""
    found = []

    def compile_(src, **_):
        found.append(src)
        return types.SimpleNamespace(launch=None)

    monkeypatch.setattr(nvidia, "compile_module_from_src", compile_, raising=False)
    monkeypatch.setattr(nvidia, "library_dirs", list)
    return found


@compiles
def test_of_a_file(code, tmp_path):
    """It is the one that the compiled kernel needs."""
    path = tmp_path / "copy.ttir"
    path.write_text(TTIR)
    nvidia.CudaLauncher(source_of(str(path), hopper.TARGET), launchers._Metadata(hopper.TARGET))
    kernel = hopper.compiled_text(TTIR)
    nvidia.CudaLauncher(kernel.src, kernel.metadata)
    ahead, needed = code
    assert ahead == needed and "arg3" in ahead


@compiles
def test_of_sums(code, monkeypatch):
    """That of the kernel of partial sums is built when it is compiled first, too."""
    active = types.SimpleNamespace(
        launcher_cls=nvidia.CudaLauncher,
        get_current_device=int,
        get_current_stream=lambda device: 0,
        get_current_target=lambda: hopper.TARGET,
    )
    add_up = partials._Kernel(partials.add_up.fn)
    for module in (launchers, partials, jit):
        monkeypatch.setattr(module, "driver", types.SimpleNamespace(active=active))
    monkeypatch.setattr(partials, "add_up", add_up)
    monkeypatch.setattr(partials, "load", lambda kernel: None)
    layout = ((300,), (1,), torch.float32, torch.float16)
    sums = [partials.SumOfPartials(17, 300, *layout) for _ in range(2)]
    total = partials.Sums(sums, torch.device("cuda"))
    total.compile()
    kernel = total.compiled
    total.compile()
    assert total.compiled is kernel and len(code) == 1
    nvidia.CudaLauncher(kernel.src, kernel.metadata)
    ahead, needed = code
    assert ahead == needed


_MODULE = """
#include <Python.h>
static PyObject *number(PyObject *self, PyObject *args) { return PyLong_FromLong(%d); }
static PyMethodDef methods[] = {{"launch", number, METH_VARARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "__triton_launcher", NULL, -1, methods};
PyMODINIT_FUNC PyInit___triton_launcher(void) { return PyModule_Create(&definition); }
"""


def load(number):
    """Load a module in C whose function returns a number, as Triton loads launchers."""
    include = [sysconfig.get_paths()["include"]]
    return build.compile_module_from_src(
        _MODULE % number, "__triton_launcher", include_dirs=include
    )


def test_launchers_of_one_name():
    """Each is its own, also when its file is loaded again: Triton takes their function later."""
    for _ in range(3):
        assert [module.launch() for module in [load(1), load(2), load(3)]] == [1, 2, 3]
