"""The host programs of a plan: what the host does, in order, as data.

The compiler lists them (ListSteps.cpp). Eager launches bind their steps to what they know; exported
modules and graphs are these steps, written as Python.
"""

from __future__ import annotations

from typing import NamedTuple

from ..plans.plan import Plan
from ..plans.planned_steps import STAGES
from . import host_steps
from .host_steps import Step

# By the compiler's names.
KINDS = {
    kind.verb.replace(" ", "_"): kind
    for kind in vars(host_steps).values()
    if isinstance(kind, type) and issubclass(kind, Step) and hasattr(kind, "verb")
}


class HostProgram(NamedTuple):
    """The programs of a forward and a backward, by stage.

    A forward ends with the launch that the user asks for. A backward makes memory and numbers
    (`prepare`), launches kernels, and makes gradients of what these leave (`finish`).
    """

    forward: tuple[Step, ...]
    prepare: tuple[Step, ...]
    launch: tuple[Step, ...]
    finish: tuple[Step, ...]

    @classmethod
    def of(cls, plan: Plan) -> HostProgram:
        """Return the programs of a plan."""
        return cls(
            *(tuple(KINDS[kind](*about) for kind, about in plan.steps[stage]) for stage in STAGES)
        )


def described(steps, plan: Plan, names) -> str:
    """Return steps as text, one to a line; `names` are those of the kernel's arguments."""

    def name(kind: str, index) -> str:
        if kind == "kernel":
            return index
        if kind in ("buffer", "size"):
            return f"{kind} {plan.buffers[index].name if kind == 'buffer' else index}"
        return names[index] if kind == "argument" else f"{kind} of {names[index]}"

    lines = []
    for step in steps:
        operands = ", ".join(name(*operand) for operand in step.operands(plan))
        lines.append(f"{step.verb:14} {operands}{' (waits)' * step.waits}")
    return "\n".join(lines)
