"""Products in float64, in PTX and in machine code, of the size that ptxas gets wrong.

Triton takes products of this size up to 3.7 on Hopper (`lost_sums.py`, `uniform_operands.py`).
"""

from __future__ import annotations

import re

from .assembler import instructions

# The factors are `a` and `b`, the summands `c`.
PRODUCT = re.compile(
    r"(?P<operation>mma\.sync\.aligned\.m16n8k\d+\.row\.col\.f64\.f64\.f64\.f64)\s*"
    r"(?P<results>\{[^}]*\})\s*,\s*(?P<a>\{[^}]*\})\s*,\s*(?P<b>\{[^}]*\})\s*,\s*(?P<c>\{[^}]*\})\s*;"
)
# The lowest bits of a matrix instruction for float64.
_DMMA, _OPERATION = 0x23F, 0xFFF


def registers_of(operand: str) -> list[str]:
    """Return the registers of an operand in PTX: of one, or of several in braces."""
    return [register.strip() for register in operand.strip("{} ").split(",")]


def has_products(compiled) -> bool:
    """Return whether a compiled kernel has products of this size, rightly assembled or not."""
    return PRODUCT.search(compiled.asm.get("ptx", "")) is not None


def product_instructions(cubin: bytes) -> list[int]:
    """Return the instructions of machine code that are float64 products."""
    return [i for i in instructions(cubin) if i & _OPERATION == _DMMA]
