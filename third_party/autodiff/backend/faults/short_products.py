"""Warns of products in users' kernels that Triton computes wrongly, for they sum over few elements.

There are two such faults (`short-products` and `sums-as-products` in `faults.json`). The compiler
finds the products, and derives kernels that have none (`MarkMiscomputed.cpp`, `FitProducts.cpp`).
"""

from __future__ import annotations

import warnings

from ..plans.target import version
from .table import fault


def warn_of_miscomputed(kernel: str, plan) -> None:
    """Warn about products of a user's kernel that Triton computes wrongly."""
    for position in plan.report.get("miscomputed", ()):
        warnings.warn(
            f"kernel {kernel!r}, {position}: Triton {version()} gets this product wrong, "
            "for it sums over so few elements. Launches that are differentiated compute it right, "
            "others do not. A tl.dot with an operand that comes of bytes needs a sum over 32 "
            "elements, of 16-bit numbers one over 16. A sum that Triton makes a product of is "
            "right with its factors in the other order, tl.sum(b[None, :, :] * a[:, :, None], 1), "
            f"or from Triton {fault('sums-as-products').right} on",
            stacklevel=2,
        )
