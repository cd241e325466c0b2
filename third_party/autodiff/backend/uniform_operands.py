"""Finds float64 products that ptxas leaves out, and assembles them otherwise.

On Hopper, ptxas keeps what is the same for all threads in uniform registers. It may put an operand
of a matrix instruction there that consists of such numbers: a scalar from memory, for all elements
of a tile. The instruction for float64 (16x8x4 to 16x8x16) has no such form. ptxas (12.8 and 12.9,
which come with Triton 3.6, were tried) drops it then, without a word, at each optimization level
but 0 (13.4 ends with an error). What reads the result gets what its registers held before:

    b = tl.broadcast_to(tl.load(scale_ptr), [K, N])
    y = tl.dot(a, b)

Whether it does depends on what else is done with the number. Triton takes products of this size up
to 3.7. Later versions take smaller ones (8x8x4), which stay.

Arithmetic in float64 has no uniform form, either: a sum is never in uniform registers. So, where a
number of an operand might be, zero is added to it. It comes of the thread's number, so that ptxas
cannot leave it out: -0·n, since x + -0 is x for each x.
"""

from __future__ import annotations

import itertools
import re
import warnings

from .assembler import assembled, replaced
from .double_products import PRODUCT, product_instructions, registers_of

_REGISTER = re.compile(r"%\w+")
# What writes registers of 64 bits, and what it writes.
_WRITES = re.compile(
    r"(?<![\w.%])(?P<operation>[a-z]\w*(?:\.\w+)+)\s+(?P<results>\{[^}]*\}|%\w+)\s*,(?P<rest>[^;]*);"
)
# Whose results are no uniform registers: matrix products, arithmetic in float64, and loads from
# addresses that threads do not share.
_OWN = re.compile(r"mma\.|ld\.shared|(?:add|sub|mul|fma|div|rcp|sqrt|rsqrt)\.(?:\w+\.)*f64")
_ZERO = {"0", "0x0", "0d0000000000000000"}


def _shared_by_threads(ptx: str) -> set[str]:
    """Return the registers that may hold the same in all threads, other than zero.

    A register is known by its name: each of its values counts. Results of products do not, which
    are written to the registers of summands.
    """
    shared, moves = set(), {}
    for found in _WRITES.finditer(ptx):
        operation, rest = found["operation"], found["rest"].strip()
        results = set(registers_of(found["results"]))
        is_move = operation.startswith("mov.")
        if is_move and _REGISTER.fullmatch(rest):
            moves.setdefault(rest, set()).update(results)
        elif not (is_move and rest in _ZERO or _OWN.match(operation)):
            shared |= results
    left = list(shared)
    while left:
        moved = moves.get(left.pop(), set()) - shared
        shared |= moved
        left += moved
    return shared


def _with_own_operands(ptx: str) -> str:
    """Return PTX in which no product has an operand that may be in uniform registers."""
    shared = _shared_by_threads(ptx)

    def written(product: re.Match) -> str:
        operands = [registers_of(product[name]) for name in ("a", "b", "c")]
        names = [r for r in dict.fromkeys(itertools.chain(*operands)) if r in shared]
        if not names:
            return product[0]
        own = {register: f"%own{place}" for place, register in enumerate(names)}
        sums = "".join(f"add.f64 {new}, {old}, %zero; " for old, new in own.items())
        texts = (
            "{ " + ", ".join(own.get(r, r) for r in registers) + " }" for registers in operands
        )
        return (
            f"{{ .reg .b32 %thread; .reg .f64 %zero, %own<{len(own)}>; mov.u32 %thread, %tid.x; "
            "cvt.rn.f64.u32 %zero, %thread; mul.f64 %zero, %zero, 0d8000000000000000; "
            f"{sums}{product['operation']} {product['results']}, {', '.join(texts)}; }}"
        )

    return PRODUCT.sub(written, ptx)


def _other_text(compiled) -> str | None:
    """Return PTX that ptxas leaves no product out of, None if that is what there is."""
    ptx = compiled.asm.get("ptx", "")
    if not compiled.asm.get("cubin") or not PRODUCT.search(ptx):
        return None
    other = _with_own_operands(ptx)
    return None if other == ptx else other


def products(cubin: bytes) -> int:
    """Return the number of float64 products in machine code."""
    return len(product_instructions(cubin))


def ensure_operands(compiled):
    """Return a derived kernel none of whose float64 products is left out.

    It is as it is, or assembled again. It must not have been loaded yet.
    """
    other = _other_text(compiled)
    if other is None:
        return compiled
    # What is assembled from this text later on is right, too.
    compiled.asm["ptx"] = other
    cubin = replaced(compiled, "operands", lambda: assembled(other, compiled))
    compiled.asm["cubin"] = compiled.kernel = cubin
    return compiled


def warn_of_uniform_operands(compiled, name: str) -> None:
    """Warn if ptxas has left out float64 products of the user's own kernel."""
    other = _other_text(compiled)
    if other is not None and products(assembled(other, compiled)) != products(
        compiled.asm["cubin"]
    ):
        warnings.warn(
            f"ptxas leaves out float64 products of kernel {name!r}: an operand of tl.dot is one "
            "number from memory for all elements. The results are wrong. The gradient is that of "
            "what is written. Multiply by the number afterwards, or launch the kernel with "
            "ptx_options='-O0'",
            stacklevel=2,
        )
