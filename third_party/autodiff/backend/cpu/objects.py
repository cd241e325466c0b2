"""Objects of the CPU backend, kept under what they depend on.

Triton keeps a kernel under the text of its Python functions and of all this package: there, a
changed comment makes it stale. Most of the time goes into the object, though, which only depends on
TTIR, on the code that lowers it, on LLVM, and on this machine. So it has a file of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import re

from ..driver import host_arch
from ..kernels.effects import refuse_results
from ..library import native
from ..plans.cache import manager_for, put, read_bytes
from ..support.waiting import work

_FILE = "kernel.cpu_object"
# Assertions say where they are in the source.
_LOCATED = ("tt.assert",)
_DIGEST = 32


def _key(module, text: str, options: str) -> str:
    """Return what the object depends on, as a hash; `text` is the module with locations."""
    is_located = any(name in text for name in _LOCATED)
    meaning = text if is_located else module.str_nodebug()
    # Behind the dot is the hash of the code that makes objects.
    code = native().version().rpartition(".")[2]
    parts = ("object", code, host_arch(), options, meaning)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def compiled(module, text: str, options: str) -> tuple[bytes, str]:
    """Return the object for a module of TTIR, and its description as JSON.

    It is compiled unless it was before, in whatever process. A damaged file is as good as none.
    """
    if os.environ.get("TRITON_AUTODIFF_DUMP_LLVM"):
        return native().compile_cpu(text, options)
    manager = manager_for(_key(module, text, options))
    data = read_bytes(manager, _FILE) or b""
    digest, content = data[:_DIGEST], data[_DIGEST:]
    if hashlib.sha256(content).digest() != digest:
        code, description = native().compile_cpu(text, options)
        content = description.encode() + b"\0" + code
        put(manager, hashlib.sha256(content).digest() + content, _FILE)
        return code, description
    description, _, code = content.partition(b"\0")
    return code, description.decode()


def object_of(module, text: str, metadata: dict, options) -> bytes:
    """Compile TTIR, a module and its text, for this machine; notes in `metadata` what it found."""
    refuse_results(text)
    choices = {"opt_level": options.opt_level}
    kernels = re.findall(r"tt\.func public @(\w+)", text)
    with work(f"compiling kernel {', '.join(map(repr, kernels))} for the CPU"):
        code, description = compiled(module, text, json.dumps(choices))
    metadata["name"] = json.loads(description)["symbol"]
    metadata["shared"] = 0
    return code
