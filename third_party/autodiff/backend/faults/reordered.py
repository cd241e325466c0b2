"""Finds reductions of pairs in users' kernels whose elements Triton may put together wrongly.

If all that uses a reshaped tile of one axis are reductions, Triton's `triton-combine` lets its
elements be in any order. In `tl.argmax(tl.ravel(x), 0)`, the indices beside them are in order, so
what it finds need not be the place of the maximum. Derived kernels are kept from that
(`KeepOrder.cpp`). The table of faults has versions.
"""

from __future__ import annotations

import re
import warnings

import triton

_FREE = re.compile(r"(%[\w$.-]+) = tt\.reshape %\S+ allow_reorder : .*->")
_REDUCE = re.compile(r'(%[\w$.-]+):\d+ = "tt\.reduce"\(([^)]*)\)')


def pairs(ttir: str) -> list[str]:
    """Return the reductions of pairs, of tiles in any order, whose further results are used."""
    free = set(_FREE.findall(ttir))
    return [
        name
        for name, operands in _REDUCE.findall(ttir)
        if free.intersection(operands.split(", ")) and re.search(rf"{re.escape(name)}#[1-9]", ttir)
    ]


def warn_of_reordered(compiled, name: str) -> None:
    """Warn if Triton may give another element's index in the user's own kernel, on a GPU."""
    if compiled.metadata.target.backend == "cpu" or not pairs(compiled.asm.get("ttir", "")):
        return
    warnings.warn(
        f"kernel {name!r} reduces a reshaped tile together with others, such as indices. Triton "
        f"{triton.__version__} may put its elements into another order, and find another "
        "element's index. Launches that record a gradient, and gradients, keep the order. "
        "For the others, reduce one axis after the other, or tl.expand_dims(x, 1) along axis 0",
        stacklevel=2,
    )
