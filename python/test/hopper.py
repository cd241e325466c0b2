"""Compiling for sm_90 on a machine that has none."""

import contextlib
import io
import json
import tempfile
import types

import triton
from triton import knobs
from triton.backends.autodiff import _native
from triton.backends.autodiff.faults.assembler import assembled
from triton.backends.autodiff.inspecting import corpus
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptxas

TARGET = GPUTarget("cuda", 90, 32)
# Bytes that a program can have.
SHARED_MEMORY = 232448


def _leave_out_assembler(backend=None, stages=None, *_):
    if stages is None:
        return "text", "text"
    stages["cubin"] = lambda *_: b""


def _compile(source, assemble=False, hook=_leave_out_assembler, **options):
    with tempfile.TemporaryDirectory() as folder, knobs.runtime.scope(), knobs.cache.scope():
        knobs.cache.dir = folder
        if not assemble:
            knobs.runtime.add_stages_inspection_hook = hook
        return triton.compile(source, target=TARGET, options=options)


class _Finished(Exception):
    """What a stage was given, of which no more is wanted."""


def _stop_behind_ttir(backend=None, stages=None, *_):
    if stages is None:
        return "ttir", "ttir"

    def stop(module, _):
        raise _Finished(str(module))

    stages["ttgir"] = stop


def _source(kernel, types, constants, multiples_of_16=False):
    names = [name for name in kernel.arg_names if name not in constants]
    signature = {**dict(zip(names, types, strict=True)), **dict.fromkeys(constants, "constexpr")}
    attributes = {
        (kernel.arg_names.index(name),): [["tt.divisibility", 16]]
        for name in names
        if multiples_of_16 and not signature[name].startswith("fp")
    }
    return triton.compiler.ASTSource(kernel, signature, constants, attributes)


def assembly(kernel, types, constants, multiples_of_16=False, **options) -> dict:
    """Return what Triton makes of a kernel for Hopper, stage by stage, up to PTX.

    `types` are those of the parameters that are no constants, in order. Addresses and integers are
    multiples of 16 if so stated, as Triton finds them in launches with whole tiles. With
    `assemble=True` the assembler takes the PTX.
    """
    return dict(_compile(_source(kernel, types, constants, multiples_of_16), **options).asm)


def ttir(kernel, types, constants, multiples_of_16=False) -> str:
    """Return the TTIR, whether or not Triton can compile it any further."""
    source = _source(kernel, types, constants, multiples_of_16)
    try:
        return _compile(source, hook=_stop_behind_ttir).asm["ttir"]
    except _Finished as finished:
        return str(finished)


def compiled_text(text, stage="ttir", assemble=False, **options):
    """Return what Triton compiles the text of one of its stages to."""
    with tempfile.NamedTemporaryFile("w", suffix=f".{stage}") as file:
        file.write(text)
        file.flush()
        return _compile(file.name, assemble, **options)


# A kernel that does nothing.
EMPTY = "module {\n  tt.func public @k() {\n    tt.return\n  }\n}\n"


def assembled_ptx(ptx):
    """Return a kernel of PTX text, as ptxas assembles it with Triton's options."""
    plain = compiled_text(EMPTY, assemble=True)
    code = assembled(ptx, plain)
    asm = {"ptx": ptx, "cubin": code}
    return types.SimpleNamespace(asm=asm, kernel=code, metadata=plain.metadata)


def compiled(source, **options) -> str:
    """Return the PTX that Triton compiles a kernel's source to."""
    return _compile(source, **options).asm["ptx"]


def _compiled(kernel, **options):
    options = {"num_warps": 4, **kernel.get("options", {}), **options}
    options["num_warps"] = max(options["num_warps"], options.pop("least_warps", 1))
    return compiled_text(kernel["ttir"], **options)


def ptxas_version() -> str:
    """Return the version of the ptxas that Triton takes for Hopper."""
    return get_ptxas(TARGET.arch).version


def shared_memory(kernel) -> int:
    """Return how many bytes of shared memory a plan's kernel takes at least."""
    return _compiled(kernel, num_stages=1).metadata.shared


def assembler_remarks(kernel) -> str:
    """Return what ptxas has to say of a plan's kernel."""
    with knobs.nvidia.scope(), contextlib.redirect_stdout(io.StringIO()) as remarks:
        knobs.nvidia.dump_ptxas_log = True
        _compiled(kernel, assemble=True)
    return remarks.getvalue()


def plan_of(text, target=TARGET) -> dict:
    """Differentiate TTIR."""
    return json.loads(_native.differentiate(text, corpus.request_for(target), "kernel.ttir"))


def assert_backward_compiles(text):
    """Differentiate TTIR and compile all that is derived from it."""
    plan = plan_of(text)
    kernels = [*filter(None, [plan["forward"]]), *plan["backward"]]
    for kernel in kernels:
        assert corpus.compile_ttir(kernel["ttir"], TARGET)["cubin"]
