"""The host programs of a plan: what the host does, in order, as data.

Eager launches bind its steps to what they know; exported modules and graphs are these steps,
written as Python.
"""

from __future__ import annotations

from typing import NamedTuple

from .expr import used_counters
from .host_steps import (
    AddUp,
    Allocate,
    Convert,
    Copy,
    Count,
    Evaluate,
    Launch,
    LaunchForward,
    LayOut,
    MakeGradient,
    Round,
    Split,
    Stand,
    Step,
    Tally,
)
from .partials import ROUNDED_ALIKE
from .plan import Plan


class HostProgram(NamedTuple):
    """The program of a backward.

    Its steps make memory and numbers, launch kernels, and make gradients of what these leave.
    """

    preparations: tuple[Step, ...]
    launches: tuple[Step, ...]
    results: tuple[Step, ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps, in order."""
        return (*self.preparations, *self.launches, *self.results)


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


def _counts(sizes) -> list[Step]:
    """Return the step that counts trips of loops, if sizes depend on them."""
    return [Count()] if any(map(used_counters, sizes)) else []


def lower_forward(plan: Plan, copied) -> tuple[Step, ...]:
    """Return the host program of a forward, which copies the arguments that are `copied`."""
    steps: list[Step] = list(map(Copy, copied))
    saved = [n for n, buffer in enumerate(plan.buffers) if buffer.kind == "saved"]
    operands = () if plan.forward is None else plan.forward.operands
    taken = list(dict.fromkeys(n for kind, n in operands if kind == "size"))
    steps += _counts([*(plan.buffers[n].size for n in saved), *(plan.sizes[n] for n in taken)])
    steps += map(Evaluate, taken)
    steps += map(Allocate, saved)
    return (*steps, LaunchForward())


def lower(plan: Plan, tallied, around, tensors) -> HostProgram:
    """Return the host program of a plan's backward.

    `tallied` are the arguments whose additions are counted first, `around` those that have
    gradients around their tensors; `tensors` has the layouts of arguments.
    """
    used = {operand for kernel in plan.kernels for operand in kernel.operands}
    preparations: list[Step] = [LayOut(j) for j in sorted(plan.cotangents())]
    own = [buffer.size for buffer in plan.buffers if buffer.kind != "saved"]
    preparations += _counts((*own, *plan.sizes))
    preparations += map(Evaluate, range(len(plan.sizes)))
    preparations += [Allocate(n) for n, b in enumerate(plan.buffers) if b.kind != "saved"]
    arguments = [gradient.argument for gradient in plan.gradients]
    preparations += [Stand(i) for i in arguments if ("rounded", i) in used]
    preparations += map(MakeGradient, arguments)
    ordered = [i for i in arguments if i in tallied]
    kernels = map(Launch, range(len(plan.backward)))
    launches = [*map(Tally, ordered), *kernels, *map(Round, ordered)]
    groups: dict[tuple, list[int]] = {}
    results: list[Step] = []
    for gradient in plan.gradients:
        i = gradient.argument
        if gradient.partials is not None:
            alike = tensors[i].dtype in ROUNDED_ALIKE
            groups.setdefault((str(gradient.partials), alike), []).append(i)
        elif i in around:
            results.append(Split(i))
        elif gradient.returned:
            results.append(Convert(i))
    totals = [AddUp(tuple(group)) for group in groups.values()]
    return HostProgram(tuple(preparations), tuple(launches), (*totals, *results))
