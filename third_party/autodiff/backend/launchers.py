"""The C code that launches a kernel, built while the kernel compiles.

Before 3.7, Triton writes a launcher in C for each signature of a kernel, and waits for the C
compiler when a compiled kernel is loaded. That takes as long as compiling the kernel. The launcher
only depends on the signature, and Triton caches it. So it is built here in the meantime.
"""

from __future__ import annotations

import contextlib
import threading

from triton._C.libtriton import ir
from triton.compiler.compiler import IRSource, make_backend
from triton.runtime.driver import driver


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
