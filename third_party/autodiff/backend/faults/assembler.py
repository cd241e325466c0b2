"""Triton's assemblers, ptxas: the machine instructions for a kernel's PTX."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

from triton.backends.compiler import GPUTarget, Language
from triton.compiler.compiler import make_backend

from ..plans.cache import manager_for, put, read_bytes
from .elf import is_whole, sections

_SIZE = 16
# From this capability on, Triton uses the newer of its two assemblers.
_BLACKWELL = 100


def instructions(cubin: bytes) -> Iterator[int]:
    """Yield the instructions of a cubin, numbers of 128 bits."""
    for section in sections(cubin):
        if section.is_code:
            for at in range(section.start, section.end, _SIZE):
                yield int.from_bytes(cubin[at : at + _SIZE], "little")


def assembled(ptx: str, compiled) -> bytes:
    """Return the cubin for another PTX text, with the options of a compiled kernel."""
    backend = make_backend(compiled.metadata.target)
    stages = {}
    backend.add_stages(stages, _options(backend, compiled), Language.TRITON)
    return stages["cubin"](ptx, {})


def assembled_by_newer(compiled) -> bytes:
    """Return the cubin for a kernel's PTX by the assembler that Triton has for Blackwell."""
    target = compiled.metadata.target
    options = _options(make_backend(target), compiled)
    newer = make_backend(GPUTarget(target.backend, _BLACKWELL, target.warp_size))
    return newer.make_cubin(compiled.asm["ptx"], {}, options, target.arch)


def replaced(compiled, reason: str, make: Callable[[], bytes]) -> bytes:
    """Return what `make` returns for a kernel whose cubin is wrong, from the cache if it is there.

    `reason` is a word for what is wrong.
    """
    wrong = hashlib.sha256(compiled.asm["cubin"]).hexdigest()
    manager, name = manager_for(wrong), f"{wrong}.{reason}.cubin"
    cubin = read_bytes(manager, name)
    if cubin is None or not is_whole(cubin):
        cubin = make()
        put(manager, cubin, name)
    return cubin


def _options(backend, compiled):
    return backend.parse_options(compiled.metadata._asdict())
