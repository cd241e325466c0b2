"""Compiling for sm_90 on a machine that has none."""

import json
import tempfile

import triton
from triton.backends.autodiff import _native, corpus
from triton.backends.compiler import GPUTarget

TARGET = GPUTarget("cuda", 90, 32)


def ttir(kernel, types, constants) -> str:
    """Return what Triton makes of a kernel for Hopper, up to TTIR.

    `types` are those of the parameters that are no constants, in order.
    """
    from triton import knobs

    def leave_out_assembler(backend=None, stages=None, *_):
        if stages is None:
            return "text", "text"
        stages["cubin"] = lambda *_: b""

    names = [name for name in kernel.arg_names if name not in constants]
    signature = {**dict(zip(names, types, strict=True)), **dict.fromkeys(constants, "constexpr")}
    source = triton.compiler.ASTSource(kernel, signature, constexprs=constants)
    with tempfile.TemporaryDirectory() as folder, knobs.runtime.scope(), knobs.cache.scope():
        knobs.cache.dir = folder
        knobs.runtime.add_stages_inspection_hook = leave_out_assembler
        return triton.compile(source, target=TARGET).asm["ttir"]


def assert_backward_compiles(text):
    """Differentiate TTIR and compile all that is derived from it."""
    plan = json.loads(_native.differentiate(text, json.dumps(corpus.REQUEST), "kernel.ttir"))
    kernels = [*filter(None, [plan["forward"]]), *plan["backward"]]
    for kernel in kernels:
        corpus.compile_ttir(kernel["ttir"], TARGET)
    return plan
