"""Triton's assemblers, ptxas: the instructions that they make of a kernel's PTX."""

from __future__ import annotations

from collections.abc import Iterator

from triton.backends.compiler import GPUTarget, Language
from triton.compiler.compiler import make_backend

from .elf import sections

_SIZE = 16
# From here on, Triton takes the newer of the two assemblers that it comes with.
_BLACKWELL = 100


def instructions(cubin: bytes) -> Iterator[int]:
    """Yield the instructions of a cubin, numbers of 128 bits."""
    for section in sections(cubin):
        if section.is_code:
            for at in range(section.start, section.end, _SIZE):
                yield int.from_bytes(cubin[at : at + _SIZE], "little")


def assembled(ptx: str, compiled) -> bytes:
    """Return what becomes of other PTX than a kernel's, with its options."""
    backend = make_backend(compiled.metadata.target)
    stages = {}
    backend.add_stages(stages, _options(backend, compiled), Language.TRITON)
    return stages["cubin"](ptx, {})


def assembled_by_newer(compiled) -> bytes:
    """Return what becomes of a kernel's PTX by the assembler that Triton has for Blackwell."""
    target = compiled.metadata.target
    options = _options(make_backend(target), compiled)
    newer = make_backend(GPUTarget(target.backend, _BLACKWELL, target.warp_size))
    return newer.make_cubin(compiled.asm["ptx"], {}, options, target.arch)


def _options(backend, compiled):
    return backend.parse_options(compiled.metadata._asdict())
