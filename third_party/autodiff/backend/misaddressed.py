"""Products to which ptxas gives wrong addresses: found in what it has made, and assembled anew.

For Hopper, a product (wgmma) finds its operands in shared memory by descriptors, numbers of 64 bits
in uniform registers, of which there are 63. A kernel of many products has more descriptors. If it
is out of other registers, too, ptxas 12.8, which Triton 3.6 comes with, may compute a descriptor
from register 1. That is the stack pointer:

    IADD3 R5, P2, R1, 0x2, RZ ;
    IADD3.X R5, R1, -0x7fffffe0, RZ, P2, !PT ;

Then the product reads what lies somewhere else, or outside of the program's memory, which ends the
process. The second assembler that Triton comes with is newer (12.9), and was not seen to do it.
"""

from __future__ import annotations

import hashlib
import warnings

from .assembler import assembled_by_newer, instructions
from .cache import manager_for, put, read_bytes
from .elf import is_whole
from .errors import AutodiffError

_STACK_POINTER = 1
# IADD3, LEA, LOP3, SHF, IMAD, VIADD: they make a register of others.
_ARITHMETIC = {0x10, 0x11, 0x12, 0x19, 0x24, 0x36}
# R2UR: it makes a uniform register of one.
_TO_UNIFORM = 0xCA
_IADD3 = 0x10
# Two registers and a third one; else the second may be a number.
_OF_REGISTERS = 0x1


def _bits(instruction: int, start: int, count: int) -> int:
    return instruction >> start & (1 << count) - 1


def _reads_stack_pointer(instruction: int) -> bool:
    """Return whether an instruction computes something else of the stack pointer than itself."""
    operation, form = _bits(instruction, 0, 9), _bits(instruction, 9, 3)
    result, first, second, third = (_bits(instruction, at, 8) for at in (16, 24, 32, 64))
    if operation == _TO_UNIFORM:
        return first == _STACK_POINTER
    if operation not in _ARITHMETIC or result == _STACK_POINTER:
        return False
    return _STACK_POINTER in (first, third) or (form == _OF_REGISTERS and second == _STACK_POINTER)


def _carries_into_stack_pointer(instruction: int) -> bool:
    """Return whether an instruction adds a carry to the stack pointer, which has no upper half."""
    is_first = _bits(instruction, 24, 8) == _STACK_POINTER
    return _bits(instruction, 0, 9) == _IADD3 and bool(_bits(instruction, 74, 1)) and is_first


def _is_misaddressed(ptx: str, cubin: bytes) -> bool:
    if "wgmma" not in ptx:
        return False
    # The address of an array of the kernel's own is computed from the stack pointer.
    is_wrong = _carries_into_stack_pointer if ".local" in ptx else _reads_stack_pointer
    return any(map(is_wrong, instructions(cubin)))


def is_misaddressed(compiled) -> bool:
    """Return whether ptxas has given a product of a kernel addresses that it made of nothing."""
    return _is_misaddressed(compiled.asm.get("ptx", ""), compiled.asm.get("cubin", b""))


def ensure_addresses(compiled):
    """Return a derived kernel in which products have their addresses: as it is, or assembled anew.

    It must not have been loaded.
    """
    if not is_misaddressed(compiled):
        return compiled
    cubin = _mended(compiled)
    if _is_misaddressed(compiled.asm["ptx"], cubin):
        raise AutodiffError(
            f"ptxas gives products of the generated kernel {compiled.metadata.name!r} wrong "
            "addresses, as does the newer one that Triton has: let CUDA's newest assemble "
            "(TRITON_PTXAS_PATH), or launch the kernel with smaller tiles"
        )
    compiled.asm["cubin"] = compiled.kernel = cubin
    return compiled


def _mended(compiled) -> bytes:
    """Return what the newer assembler makes of a kernel, or has made, by the cache."""
    wrong = hashlib.sha256(compiled.asm["cubin"]).hexdigest()
    manager, name = manager_for(wrong), f"{wrong}.assembled.cubin"
    cubin = read_bytes(manager, name)
    if cubin is None or not is_whole(cubin):
        cubin = assembled_by_newer(compiled)
        put(manager, cubin, name)
    return cubin


def warn_of_misaddressed(compiled, name: str) -> None:
    """Warn where ptxas has given a product of the user's own kernel wrong addresses."""
    if is_misaddressed(compiled):
        warnings.warn(
            f"ptxas gives products of kernel {name!r} wrong addresses, as it is out of registers: "
            "its results are wrong, or it ends the process. The gradient is that of what is "
            "written. Let CUDA's newest ptxas assemble (TRITON_PTXAS_PATH), or launch it with "
            "smaller tiles or more warps",
            stacklevel=2,
        )
