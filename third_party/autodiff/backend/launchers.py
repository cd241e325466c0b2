"""The C code that launches a kernel, built while the kernel compiles.

Before 3.7, Triton writes a launcher in C for each signature of a kernel, and waits for the C
compiler when a compiled kernel is loaded. That takes as long as the kernel itself does. The
launcher depends on the signature alone, and Triton keeps it in its cache: what has been built there
by then need not be waited for.
"""

from __future__ import annotations

import contextlib
import threading

from triton._C.libtriton import ir
from triton.compiler.compiler import IRSource, make_backend
from triton.runtime.driver import driver


class _Metadata:
    """What a launcher is told of a kernel besides its signature, as far as its code needs it."""

    def __init__(self, target):
        self.warp_size = target.warp_size

    def __getattr__(self, name):
        return None


def _is_compiled(kind) -> bool:
    """Whether Triton compiles launchers of a kind."""
    code = getattr(kind.__init__, "__code__", None)
    return code is not None and "compile_module_from_src" in code.co_names


def source_of(path: str, target) -> IRSource:
    """Return what Triton makes of a file of TTIR, or of a later stage."""
    return IRSource(path, ir.context(), make_backend(target))


@contextlib.contextmanager
def built_meanwhile(target, source):
    """Build the launcher of `source()`, a kernel that is compiled in this context."""
    kind = driver.active.launcher_cls
    if not _is_compiled(kind):
        yield
        return

    def build():
        # Whatever is wrong, it is wrong again when the kernel is loaded.
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
