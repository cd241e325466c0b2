"""The CPU backend's compiler: TTIR to a native object for this machine.

Triton imports this module with itself: it must not import torch or the native library.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from triton.backends.compiler import BaseBackend, GPUTarget

from .cpu import TARGET
from .library import native

if TYPE_CHECKING:
    from .cpu.options import CPUOptions


@functools.lru_cache
def sources_hash() -> str:
    """Return a hash of this package's Python files, which Triton's hash of backends lacks."""
    folder = Path(__file__).parent
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*.py")}
    parts = [part for name in sorted(files) for part in (name.encode(), files[name].read_bytes())]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _reject_custom_conversion(*args, **kwargs):
    raise ValueError("fp8e4b15 exists only on NVIDIA GPUs")


def _run_passes(module, name: str, add) -> None:
    from triton._C.libtriton import ir

    pm = ir.pass_manager(module.context)
    pm.enable_debug()
    add(pm)
    pm.run(module, name)


def _add_pointer_rewriting(pm) -> None:
    """Turn block pointers, which older versions of Triton have, into tensors of pointers."""
    from triton._C.libtriton import passes

    if hasattr(passes.ttir, "add_rewrite_tensor_pointer"):
        passes.ttir.add_rewrite_tensor_pointer(pm)


class CPUBackend(BaseBackend):
    """Compiles for `GPUTarget("cpu", arch, 1)`, arch being this machine's."""

    binary_ext = "obj"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == TARGET

    def hash(self) -> str:
        return f"{TARGET}-{self.target.arch}-{native().version()}-{sources_hash()}"

    def get_target_name(self, options) -> str:
        return f"{TARGET}:{self.target.arch}"

    def parse_options(self, opts: dict) -> CPUOptions:
        # Making the class takes half as long as all that Triton imports of this package.
        from .cpu.options import CPUOptions, default_level

        known = CPUOptions.__dataclass_fields__
        args = {name: opts[name] for name in known if opts.get(name) is not None}
        args.setdefault("opt_level", default_level())
        args["arch"] = self.target.arch
        return CPUOptions(**args)

    def pack_metadata(self, metadata):
        return (metadata.num_warps, metadata.num_ctas, metadata.shared)

    def get_codegen_implementation(self, options) -> dict:
        return {
            "min_dot_size": lambda lhs_type, rhs_type: (1, 1, 1),
            "convert_custom_types": _reject_custom_conversion,
        }

    def get_module_map(self) -> dict[str, ModuleType]:
        from triton.language.extra.cuda import libdevice

        return {"triton.language.extra.libdevice": libdevice}

    def load_dialects(self, context) -> None:
        pass

    @staticmethod
    def make_ttir(module, metadata, options):
        """Run Triton's own passes on its front end's output."""
        from triton._C.libtriton import passes

        def add(pm):
            passes.common.add_inliner(pm)
            _add_pointer_rewriting(pm)
            passes.common.add_canonicalizer(pm)
            passes.ttir.add_combine(pm)
            passes.ttir.add_reorder_broadcast(pm)
            passes.common.add_cse(pm)
            passes.ttir.add_triton_licm(pm)
            passes.common.add_symbol_dce(pm)
            passes.ttir.add_loop_unroll(pm)

        _run_passes(module, "make_ttir", add)
        return module

    @staticmethod
    def make_object(module, metadata, options) -> bytes:
        """Compile TTIR for this machine."""
        from .cpu.objects import object_of

        text = str(module)
        # TTIR that was given as text has not been through make_ttir.
        if "tt.make_tensor_ptr" in text:
            _run_passes(module, "make_object", _add_pointer_rewriting)
            text = str(module)
        return object_of(module, text, metadata, options)

    def add_stages(self, stages: dict, options, language=None) -> None:
        stages["ttir"] = lambda module, metadata: self.make_ttir(module, metadata, options)
        stages["obj"] = lambda module, metadata: self.make_object(module, metadata, options)
