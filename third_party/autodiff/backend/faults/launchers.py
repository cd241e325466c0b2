"""The C code that launches a kernel, built while the kernel compiles.

Before 3.7, Triton writes a launcher in C for each signature of a kernel, and waits for the C
compiler when a compiled kernel is loaded. That takes as long as compiling the kernel. The launcher
only depends on the signature, and Triton caches it. So it is built here in the meantime.

All these launchers are modules with one name. Where Python loads a file of that name again, it
returns the module of `sys.modules`, and puts the file's functions into it (`import_find_extension`
of CPython). So the launcher of one signature can turn into that of another before Triton has taken
its function, if two threads load kernels at a time. The wrong launcher reads arguments wrongly.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import types

from triton._C.libtriton import ir
from triton.compiler.compiler import IRSource, make_backend
from triton.runtime import build as triton_build
from triton.runtime.driver import driver

_loading = threading.Lock()


def _apart(load):
    """Return Triton's `load`, with a module of its own for each file."""

    @functools.wraps(load)
    def loaded(name: str, path: str) -> types.ModuleType:
        own = types.ModuleType(name)
        with _loading:
            vars(own).update(vars(load(name, path)))
        return own

    return loaded


# In Triton itself: launchers that others load at the same time are wrong as well.
triton_build._load_module_from_path = _apart(triton_build._load_module_from_path)


class _Metadata:
    """The metadata of a kernel that a launcher's code depends on, besides the signature."""

    def __init__(self, target):
        self.warp_size = target.warp_size

    def __getattr__(self, name):
        return None


def _is_compiled(kind) -> bool:
    """Whether Triton compiles launchers of this kind."""
    code = getattr(kind.__init__, "__code__", None)
    return code is not None and "compile_module_from_src" in code.co_names


def source_of(path: str, target) -> IRSource:
    """Return Triton's source object for a file of TTIR, or of a later stage."""
    return IRSource(path, ir.context(), make_backend(target))


@contextlib.contextmanager
def built_meanwhile(target, source):
    """Build the launcher of `source()`, a kernel that is compiled in this context."""
    kind = driver.active.launcher_cls
    if not _is_compiled(kind):
        yield
        return

    def build():
        # An error will appear again when the kernel is loaded.
        with contextlib.suppress(Exception):
            kind(source(), _Metadata(target))

    thread = threading.Thread(target=build)
    try:
        thread.start()
    except RuntimeError:  # There can be no more threads.
        yield
        return
    try:
        yield
    finally:
        thread.join()
