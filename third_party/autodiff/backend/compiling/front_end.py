"""Runs the passes that Triton applies to Python code on kernels that are given as text.

Triton applies these passes to what its frontend makes, but not to TTIR that it is given. A derived
kernel goes through them, so that it is the same as its printed Python compiles to.
"""

from __future__ import annotations

import tempfile

from triton._C.libtriton import ir
from triton.backends.compiler import Language
from triton.compiler.compiler import make_backend


def made(ttir: str, target, options: dict) -> str:
    """Return a kernel's TTIR after Triton's own passes over TTIR.

    `options` are compile options. Raises what Triton raises for what it rejects.
    """
    backend, context = make_backend(target), ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    # Triton parses files. One in its cache, which is moved there, takes as long as the passes.
    with tempfile.NamedTemporaryFile("w", suffix=".ttir", encoding="utf-8") as file:
        file.write(ttir)
        file.flush()
        module = ir.parse_mlir_module(file.name, context)
    # The module does not keep what it is in.
    module.context = context
    stages: dict = {}
    backend.add_stages(stages, backend.parse_options(dict(options)), Language.TRITON)
    return str(stages["ttir"](module, {}))
