"""Products that ptxas leaves out: found in what it has made, and compiled again without the fault.

For Hopper, Triton makes a `tt.dot` of large tiles asynchronous matrix instructions (wgmma). Where a
loop's number of iterations is a constant, ptxas (12.8 to 13.0, at least) may unroll it, take the
product of one iteration, whose accumulator is zero, for that of another, and leave it out. For

    for i in range(4):
        acc += tl.exp2(tl.dot(tl.load(x + i * step + tile), b))

with 64 rows and 16 columns, the first product is then added twice, and the second never. In the
place of a group of instructions that it has left out, ptxas puts one that does nothing. At its
optimization level 1 it does not unroll.
"""

from __future__ import annotations

import warnings

from .errors import AutodiffError

# HGMMA.64x8x16.F16 RZ, gdesc[URZ], RZ, !UPT, without the last bits, which are for its scheduling.
_NOTHING = bytes.fromhex("f079ff3f00000000ff00000c")


def omits_products(compiled) -> bool:
    """Return whether ptxas has left out a product of a kernel."""
    # A synchronous product is not left out: its operands are registers.
    return "wgmma" in compiled.asm.get("ptx", "") and _NOTHING in compiled.asm.get("cubin", b"")


def with_all_products(translate, options: dict):
    """Return what `translate` makes with these options, or others with which no product is lost."""
    compiled = translate(options)
    if not omits_products(compiled):
        return compiled
    own = options.get("ptx_options")
    compiled = translate({**options, "ptx_options": f"{own} -O1" if own else "-O1"})
    if omits_products(compiled):
        raise AutodiffError(
            f"ptxas leaves out products of the generated kernel {compiled.metadata.name!r}, even "
            "at its optimization level 1: update CUDA's ptxas (TRITON_PTXAS_PATH), or let the "
            "number of iterations of the kernel's loops be no constant"
        )
    return compiled


def warn_of_omitted(compiled, name: str) -> None:
    """Warn where ptxas has left out a product of the user's own kernel."""
    if omits_products(compiled):
        warnings.warn(
            f"ptxas leaves out products of kernel {name!r}, whose results are wrong: it unrolls a "
            "loop of a constant number of iterations, and takes the product of one for that of "
            "another. The gradient is that of what is written. Let the number of iterations be no "
            "constant, or launch with ptx_options='-O1'",
            stacklevel=2,
        )
