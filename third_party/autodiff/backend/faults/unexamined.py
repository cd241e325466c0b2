"""What Triton or ptxas may get wrong in kernels whose machine code this package does not look at.

When a kernel is compiled for a launch, its code is examined and mended
(`compiling/executable.py`). That of an exported module is not, where another Triton may compile it.
"""

from __future__ import annotations

import re

from .table import fault, numbers

_DOUBLE_PRODUCT = re.compile(r"tt\.dot\b.*-> tensor<[\dx]+xf64>")
# Operations after which lanes and warps may be numbered in another order.
_REORDERS = re.compile(r"tt\.(?:reshape|trans|join|split)\b")
_HOPPER = (9, 0)


def doubts(texts: list[str], capability: tuple[int, int]) -> dict[str, tuple[int, int]]:
    """Return what some Tritons get wrong of kernels in TTIR, and from which version on it is right.

    Says what it is in words: "products in float64".
    """
    found = {}
    if capability >= _HOPPER and any(_DOUBLE_PRODUCT.search(text) for text in texts):
        found["products in float64"] = numbers(fault("lost-sums").avoided)
    if any('"tt.reduce"' in text and _REORDERS.search(text) for text in texts):
        what = "reductions of tiles that are reshaped or transposed"
        found[what] = numbers(fault("reduced-lanes").right)
    return found
