"""Finds products that ptxas leaves out, and compiles the kernel again without the fault.

On Hopper, Triton compiles a `tt.dot` of large tiles to asynchronous matrix instructions (wgmma). If
a loop's trip count is a constant, ptxas (12.8 to 13.0, at least) may unroll it, mistake the product
of one iteration, whose accumulator is zero, for that of another, and leave it out. For

    for i in range(4):
        acc += tl.exp2(tl.dot(tl.load(x + i * step + tile), b))

with 64 rows and 16 columns, the first product is added twice, and the second never. Where it left
out a group of instructions, ptxas puts one that does nothing. At its optimization level 1, it does
not unroll.

It is right to leave out a product whose result nobody reads. Some such products are removed by
neither Triton nor LLVM, for which the instructions are assembly text. To distinguish the two cases,
the PTX is assembled again without these products. The kernel is right if then no group is left out
and the number of instructions is the same.
"""

from __future__ import annotations

import re
import warnings

from ..errors import Miscompiled
from .assembler import assembled, instructions

# HGMMA.64x8x16.F16 RZ, gdesc[URZ], RZ, !UPT, without the last bits, which are for scheduling.
_NOTHING = bytes.fromhex("f079ff3f00000000ff00000c")
# The first bits of all asynchronous matrix instructions.
_OPCODE, _OPCODE_BITS = 0x1F0, 0x1FC

_REGISTER = re.compile(r"%[a-z]+\d+")
_COMMENT = re.compile(r'("[^"\n]*")|//.*')
_WGMMA = re.compile(r"(?:@!?%p\d+\s+)?\bwgmma\.")
_PRODUCT = "wgmma.mma_async"
_COMMIT = "wgmma.commit_group"
# Instructions without effects, whose results are their first operands.
_COMPUTES = re.compile(
    r"(?<![\w.])(?:abs|add|and|bfe|cvt|div|ex2|fma|lg2|mad|max|min|mov|mul|neg|not|or|prmt|rcp|rsqrt|selp|setp"
    r"|shl|shr|sqrt|sub|wgmma\.mma_async|xor)\.[\w.:]+\s+(?P<results>\{[^}]*\}|[^,]*),"
)


# --------------------------------------------------------------------------------------------
# PTX
# --------------------------------------------------------------------------------------------


def _live(statements: list[str]) -> set[int]:
    """Return the statements whose results are used by others.

    Registers are identified by name, wherever they are read: more may be live than really are.
    """
    makers, needed = {}, []
    for place, statement in enumerate(statements):
        made = _COMPUTES.search(statement)
        for register in _REGISTER.findall(made["results"]) if made else ():
            makers.setdefault(register, []).append(place)
        if not made:
            needed += _REGISTER.findall(statement)
    live, known = set(), set()
    while needed:
        register = needed.pop()
        if register not in known:
            known.add(register)
            for place in set(makers.get(register, ())) - live:
                live.add(place)
                needed += _REGISTER.findall(statements[place])
    return live


def _without_unread_products(ptx: str) -> str | None:
    """Return PTX without products that nobody reads, None if there are none.

    It must only be assembled, not run: with groups missing, others may not be waited for.
    """
    *statements, end = _COMMENT.sub(r"\1", ptx).split(";")
    live = _live(statements)
    unread, group = set(), []
    for place, statement in enumerate(statements):
        if _PRODUCT in statement:
            group.append(place)
        elif _COMMIT in statement:
            dead = set(group) - live
            unread |= dead
            if dead and len(dead) == len(group):
                unread.add(place)
            group = []
    if not unread:
        return None
    # Labels and braces in front of an instruction stay.
    left = (
        statement[: _WGMMA.search(statement).start()] if place in unread else f"{statement};"
        for place, statement in enumerate(statements)
    )
    return "".join((*left, end))


# --------------------------------------------------------------------------------------------
# Cubins
# --------------------------------------------------------------------------------------------


def _products(cubin: bytes) -> int:
    """Return the number of asynchronous matrix instructions that do something."""
    found = (i for i in instructions(cubin) if i & _OPCODE_BITS == _OPCODE)
    nothing = int.from_bytes(_NOTHING, "little")
    return sum(i & (1 << 8 * len(_NOTHING)) - 1 != nothing for i in found)


# --------------------------------------------------------------------------------------------
# Kernels
# --------------------------------------------------------------------------------------------


def omits_products(compiled) -> bool:
    """Return whether ptxas has left out a product whose result is read."""
    ptx, cubin = compiled.asm.get("ptx", ""), compiled.asm.get("cubin", b"")
    # A synchronous product is never left out: its operands are registers.
    if "wgmma" not in ptx or _NOTHING not in cubin:
        return False
    rest = _without_unread_products(ptx)
    if rest is None:
        return True
    other = assembled(rest, compiled)
    return _NOTHING in other or _products(other) != _products(cubin)


def with_all_products(translate, options: dict):
    """Return the result of `translate` with these options, or with others that lose no product."""
    compiled = translate(options)
    if not omits_products(compiled):
        return compiled
    own = options.get("ptx_options")
    compiled = translate({**options, "ptx_options": f"{own} -O1" if own else "-O1"})
    if omits_products(compiled):
        raise Miscompiled(
            f"ptxas leaves out products of the generated kernel {compiled.metadata.name!r}, even "
            "at its optimization level 1: update CUDA's ptxas (TRITON_PTXAS_PATH), or let the "
            "number of iterations of the kernel's loops be no constant"
        )
    return compiled


def warn_of_omitted(compiled, name: str) -> None:
    """Warn if ptxas has left out a product of the user's own kernel."""
    if omits_products(compiled):
        warnings.warn(
            f"ptxas leaves out products of kernel {name!r}, whose results are wrong: it unrolls a "
            "loop of a constant number of iterations, and takes the product of one for that of "
            "another. The gradient is that of what is written. Let the number of iterations be no "
            "constant, or launch with ptx_options='-O1'",
            stacklevel=2,
        )
