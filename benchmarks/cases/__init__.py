"""The measured operations: for each kernel, PyTorch's version and other backwards."""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
# The kernels are those of the tests and examples.
sys.path[:0] = [str(_ROOT / part) for part in ("python/test", "python/examples", "benchmarks")]

from . import attention, elementwise, losses, norms, products, recurrences  # noqa: E402
from .common import Case  # noqa: E402

__all__ = ["Case", "all_cases"]


def all_cases(quick: bool = False) -> list[Case]:
    """Every row of the table, in its order; of a quick run, fewer, and baselines are not tuned."""
    found = [
        *(case for family in (elementwise, norms, losses, recurrences) for case in family.cases()),
        *products.cases(),
        *attention.cases(tuned=not quick),
    ]
    return [case for case in found if case.quick] if quick else found
