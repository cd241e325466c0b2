"""Finds float64 products that lose what they are added to, and assembles them otherwise.

A matrix instruction computes A·B + C. For C = (acc if p else 0), where p is the same for all
threads, ptxas leaves out the selection, and lets the instruction itself take C if p is true:

    VOTEU.ANY UP0, P3 ;
    DMMA.16x8x16 R24, R32, R24, R16, UP0 ;

An H100 then adds something else than C. ptxas makes such instructions for Hopper (12.8 to 13.0
were tried), at each optimization level but 0:

    acc = tl.where(n > 0, acc, 0.0)
    acc = tl.dot(a, b, acc=acc)

Triton takes products of this size up to 3.7. Later versions take smaller ones (8x8x4), which are
right with a predicate, too.

If a kernel has such an instruction, its PTX is assembled again, with products A·B + 0 to which C is
added by an instruction of its own. As that rounds twice, ptxas leaves it alone.
"""

from __future__ import annotations

import re
import warnings

from ..errors import Miscompiled
from .assembler import assembled, replaced
from .double_products import PRODUCT, product_instructions, registers_of

# The bits of a matrix instruction's predicate, zero if it has none.
_PREDICATE = 0b1111 << 87


def loses_sums(ptx: str, cubin: bytes) -> bool:
    """Return whether a cubin, assembled from this PTX, has products that lose a summand."""
    if not PRODUCT.search(ptx):
        return False
    return any(i & _PREDICATE for i in product_instructions(cubin))


def has_lost_sums(compiled) -> bool:
    """Return whether products of a compiled kernel lose what they are added to."""
    return loses_sums(compiled.asm.get("ptx", ""), compiled.asm.get("cubin", b""))


def _added_afterwards(product: re.Match) -> str:
    """Return the text of a product to which its summands are added by other instructions."""
    results, summands = (registers_of(product[name]) for name in ("results", "c"))
    parts = [f"%part{place}" for place in range(len(results))]
    sums = "".join(
        f"add.f64 {result}, {summand}, {part}; "
        for result, summand, part in zip(results, summands, parts, strict=True)
    )
    zeros = ", ".join(["%zero"] * len(results))
    return (
        f"{{ .reg .f64 %part<{len(parts)}>, %zero; mov.f64 %zero, 0d0000000000000000; "
        f"{product['operation']} {{ {', '.join(parts)} }}, {product['a']}, {product['b']}, "
        f"{{ {zeros} }}; "
        f"{sums}}}"
    )


def ensure_sums(compiled):
    """Return a derived kernel whose products lose no summand: as it is, or assembled again.

    It must not have been loaded yet.
    """
    if not has_lost_sums(compiled):
        return compiled
    # What is assembled from this text later on is right, too.
    compiled.asm["ptx"] = ptx = PRODUCT.sub(_added_afterwards, compiled.asm["ptx"])
    cubin = replaced(compiled, "sums", lambda: assembled(ptx, compiled))
    if loses_sums(ptx, cubin):
        raise Miscompiled(
            f"ptxas computes float64 products of the generated kernel {compiled.metadata.name!r} "
            "wrongly, also where sums are added afterwards: let another one assemble "
            "(TRITON_PTXAS_PATH), or compute in float32"
        )
    compiled.asm["cubin"] = compiled.kernel = cubin
    return compiled


def warn_of_lost_sums(compiled, name: str) -> None:
    """Warn if products of the user's own kernel lose what they are added to."""
    if has_lost_sums(compiled):
        warnings.warn(
            f"ptxas computes float64 products of kernel {name!r} wrongly: tl.dot(a, b, acc=c) adds "
            "something else where c is tl.where of a condition that is no tile. The gradient is "
            "that of what is written. Let c be added afterwards, c - tl.dot(-a, b), or launch the "
            "kernel with ptx_options='-O0'",
            stacklevel=2,
        )
