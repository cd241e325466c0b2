"""Finds matrix products to which ptxas gives wrong addresses, and assembles them again.

On Hopper, a product (wgmma) finds its operands in shared memory by descriptors, 64-bit numbers in
uniform registers, of which there are 63. The upper half of a descriptor is constant. The next
descriptor is a 64-bit sum of an address and the constant with an offset, in which the upper half of
the address is a register that contains zero:

    UMOV UR8, URZ ;
    UIADD3 UR14, UP0, UR10, 0x40, URZ ;
    UIADD3.X UR15, UR8, -0x7fffffe0, URZ, UP0, !UPT ;

A kernel with many products has more descriptors than registers. Then ptxas 12.8, which comes with
Triton 3.6, may lose the address, and read both halves from registers with other contents: the
stack pointer R1, or what the last product has left. Such a product reads from a wrong address, or
outside of the program's memory, which ends the process. Triton's second assembler is newer (12.9),
and was not seen to do it.
"""

from __future__ import annotations

import warnings

from ..errors import DoesNotFit
from .assembler import assembled_by_newer, instructions, replaced

# Operations, by the lowest bits of an instruction, and their forms, by the bits above.
_IADD3, _UIADD3 = 0x10, 0x90
_MOV, _CS2R, _IMAD, _UMOV = 0x02, 0x05, 0x24, 0x82
_SECOND_IS_NUMBER, _THIRD_IS_NUMBER = 0x4, 0x2
# Instructions that write uniform registers: arithmetic, and moves from registers or constants.
_UNIFORM = {*range(0x80, 0xB0), 0xB9, 0xC3, 0xCA}
_FROM_UNIFORM = 0x6
# Registers that are always zero: RZ and SRZ, and URZ.
_RZ, _URZ = 0xFF, 0x3F
_ALWAYS_ZERO = {(False, _RZ), (True, _URZ)}
# In the upper half of a descriptor: the operand's swizzle, and bits that are never set.
_SWIZZLE, _UNSET = 0xC0000000, 0x3FFF0000


def _bits(instruction: int, start: int, count: int) -> int:
    return instruction >> start & (1 << count) - 1


def _operation(instruction: int) -> int:
    return _bits(instruction, 0, 9)


def _form(instruction: int) -> int:
    return _bits(instruction, 9, 3)


def _upper_half_of(instruction: int) -> int | None:
    """Return the register to which an instruction adds the upper half of a descriptor and a
    carry.
    """
    is_sum = _operation(instruction) in (_IADD3, _UIADD3)
    if not is_sum or _form(instruction) != _SECOND_IS_NUMBER:
        return None
    has_carry, number = _bits(instruction, 74, 1), _bits(instruction, 32, 32)
    if not has_carry or not number & _SWIZZLE or number & _UNSET:
        return None
    return _bits(instruction, 24, 8)


def _written(instruction: int) -> set[tuple[bool, int]]:
    """Return the registers that an instruction writes, each with whether it is uniform."""
    operation, first = _operation(instruction), _bits(instruction, 16, 8)
    count = 2 if operation == _CS2R else 1
    return {(operation in _UNIFORM, first + n) for n in range(count)}


def _makes_zero(instruction: int) -> bool:
    """Return whether an instruction sets a register to zero."""
    operation, form = _operation(instruction), _form(instruction)
    if operation in (_MOV, _UMOV):
        if form == _SECOND_IS_NUMBER:
            return _bits(instruction, 32, 32) == 0
        return _bits(instruction, 32, 8) == (_URZ if form == _FROM_UNIFORM else _RZ)
    if operation == _CS2R:
        return _bits(instruction, 72, 8) == _RZ
    if operation != _IMAD or _bits(instruction, 24, 8) != _RZ:
        return False
    if form == _THIRD_IS_NUMBER:
        return _bits(instruction, 32, 32) == 0
    return _bits(instruction, 64, 8) == _RZ


def has_wrong_addresses(ptx: str, cubin: bytes) -> bool:
    """Return whether a cubin, assembled from this PTX, has products with wrong addresses."""
    if "wgmma" not in ptx:
        return False
    zeros = set(_ALWAYS_ZERO)
    for instruction in instructions(cubin):
        register = _upper_half_of(instruction)
        is_uniform = _operation(instruction) == _UIADD3
        if register is not None and (is_uniform, register) not in zeros:
            return True
        written = _written(instruction) - _ALWAYS_ZERO
        change = zeros.update if _makes_zero(instruction) else zeros.difference_update
        change(written)
    return False


def is_misaddressed(compiled) -> bool:
    """Return whether products of a compiled kernel have wrong addresses."""
    return has_wrong_addresses(compiled.asm.get("ptx", ""), compiled.asm.get("cubin", b""))


def ensure_addresses(compiled):
    """Return a derived kernel whose products have right addresses: as it is, or assembled again.

    It must not have been loaded yet. Raises `DoesNotFit`: the registers are not enough for it.
    """
    if not is_misaddressed(compiled):
        return compiled
    cubin = replaced(compiled, "addresses", lambda: assembled_by_newer(compiled))
    if has_wrong_addresses(compiled.asm["ptx"], cubin):
        raise DoesNotFit(
            f"ptxas gives products of the generated kernel {compiled.metadata.name!r} wrong "
            "addresses, as does the newer one that Triton has: let CUDA's newest assemble "
            "(TRITON_PTXAS_PATH), or launch the kernel with smaller tiles"
        )
    compiled.asm["cubin"] = compiled.kernel = cubin
    return compiled


def warn_of_misaddressed(compiled, name: str) -> None:
    """Warn if products of the user's own kernel have wrong addresses."""
    if is_misaddressed(compiled):
        warnings.warn(
            f"ptxas gives products of kernel {name!r} wrong addresses, as it is out of registers: "
            "its results are wrong, or it ends the process. The gradient is that of what is "
            "written. Let CUDA's newest ptxas assemble (TRITON_PTXAS_PATH), or launch it with "
            "smaller tiles or more warps",
            stacklevel=2,
        )
