"""Deterministic backwards, which must not add atomically: which launches are refused, and why.

The compiler refuses gradients that always need atomics. This module refuses a launch for which a
host check fails, so that a backward with atomics would be needed.
"""

from __future__ import annotations

import warnings

from ..errors import AutodiffError
from .remarks import in_the_way

_ORDER = "atomic operations, whose order differs from run to run"


def _loads(plan, argument: int) -> str:
    """Return where a kernel loads an argument, in words."""
    facts = plan.report.get("gradients", ())
    loads = [load for entry in facts if entry["argument"] == argument for load in entry["loads"]]
    places = ", ".join(dict.fromkeys(load["position"] for load in loads if load["position"]))
    return f" (loaded at {places})" if places else ""


def refused(spec, plan, failed: dict, repeated) -> AutodiffError:
    """Return the error for checks that failed at a launch.

    `failed` has the reasons by argument, and `repeated` the outputs that may be stored to twice.
    One of them is not empty.
    """
    for argument, objection in failed.items():
        return AutodiffError(
            f"the gradient of argument {spec.names[argument]!r} of kernel {spec.name!r}"
            f"{_loads(plan, argument)} would meet in {_ORDER}, and a deterministic backward was "
            "asked for. It can do without them if the kernel loads every element of the tensor "
            f"exactly once, or every program all of them; but at this launch {objection}. Pass "
            "the part of the tensor that is loaded, contiguous, or allow atomics "
            f"(deterministic=False){in_the_way(plan, {argument})}"
        )
    return AutodiffError(
        f"the upstream gradient of argument {spec.names[min(repeated)]!r} of kernel {spec.name!r} "
        f"would be taken by {_ORDER}, and a deterministic backward was asked for: programs "
        "may store to the same address of it. Let the kernel store to each address once, or "
        f"allow atomics (deterministic=False){in_the_way(plan, {min(repeated)})}"
    )


def warn(spec, plan) -> None:
    """Warn about gradients that are added atomically."""
    for gradient in plan.gradients:
        if gradient.accumulate == "atomic" or gradient.remainder:
            warnings.warn(
                f"the gradient of argument {spec.names[gradient.argument]!r} of kernel "
                f"{spec.name!r}{_loads(plan, gradient.argument)} meets in {_ORDER}, although "
                "torch.use_deterministic_algorithms(True, warn_only=True) is set",
                stacklevel=2,
            )
