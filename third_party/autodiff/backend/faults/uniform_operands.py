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

So, unless a number of an operand depends on the thread's number, zero is added to it. The zero
comes of that number, so that ptxas cannot leave it out: -0·n, since x + -0 is x for each x. (What
has no uniform instruction, such as a sum in float64, may be moved to a uniform register, too.)
"""

from __future__ import annotations

import itertools
import re
import warnings

from .assembler import assembled, replaced
from .double_products import PRODUCT, product_instructions, registers_of

_REGISTER = re.compile(r"%\w+")
# What an instruction writes, and what it reads.
_WRITES = re.compile(
    r"(?<![\w.%])(?P<operation>[a-z]\w*(?:\.\w+)+)\s+(?P<results>\{[^}]*\}|%\w+)\s*,(?P<rest>[^;]*);"
)
# What differs between the threads of a warp, and what is the same for them, whatever it comes of.
_THREAD = {"%tid", "%laneid"}
_SAME = re.compile(r"(?:redux|vote|match|activemask)\.")
_ZERO = {"0", "0x0", "0d0000000000000000"}
# Where a function begins: registers belong to one.
_FUNCTION = re.compile(r"^(?=\.(?:\w+ \.)?(?:func|entry)\b)", re.MULTILINE)


def _shared_by_threads(ptx: str) -> set[str]:
    """Return the registers of a function that may hold the same in all threads, other than zero.

    A register is known by its name: it is a thread's own if each of its values is computed from
    what is a thread's own. Results of products are, which are written to registers of summands.
    """
    writes = []
    for found in _WRITES.finditer(ptx):
        operation, rest = found["operation"], found["rest"].strip()
        is_own = operation.startswith("mma.") or (operation.startswith("mov.") and rest in _ZERO)
        if not is_own:
            sources = set() if _SAME.match(operation) else set(_REGISTER.findall(rest))
            writes.append((set(registers_of(found["results"])), sources))
    # At first, what a loop hands on to itself counts as a thread's own.
    own = _THREAD.union(*(results for results, _ in writes))
    own |= {r for product in PRODUCT.finditer(ptx) for r in registers_of(product["results"])}
    shared: set[str] = set()
    while True:
        known = len(shared)
        for results, sources in writes:
            if not sources & own:
                own -= results
                shared |= results
        if len(shared) == known:
            return shared


def _with_own_operands(ptx: str) -> str:
    """Return a function in which no product has an operand that may be in uniform registers."""
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
    other = "".join(map(_with_own_operands, _FUNCTION.split(ptx)))
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
