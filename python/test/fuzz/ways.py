"""One plan, carried out in other ways: by an exported module, and in a graph of PyTorch's.

A launch is carried out by objects (`Execution`), an exported module by its text, and a graph by
operators, or by kernels that Inductor knows. Gradients are equal: to the bit, unless contributions
meet in atomics, which add them up in any order.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from exporting import module_at
from looking import REFUSALS

from .differences import Check, Verdict, gradients_of

# What a graph may refuse, in PyTorch's words around ours.
NO_GRAPH = re.compile(
    r"no graph can hold this launch|in a larger storage, and the kernel reads around"
)
# Of the size of a gradient, what another order of its sum changes.
REORDERED = 1e-12


def exported(check: Check, folder: Path) -> Callable:
    """Return the function of a module to which the program's operation is exported."""
    wanted = check.program.wanted
    leaves = {n: x.clone().requires_grad_(n in wanted) for n, x in check.inputs.values.items()}
    path = check.op.export(folder / "exported.py", *leaves.values())
    return getattr(module_at(path), check.op.stub.__name__)


def graphed(check: Check, folder: Path) -> Callable:
    """Return the operation in a graph that has to be whole."""
    torch._dynamo.reset()
    op = check.op

    def call(*values):
        return op(*values)

    return torch.compile(call, backend="aot_eager", fullgraph=True)


WAYS = {"exported": exported, "graph": graphed}


def _meets(check: Check) -> bool:
    """Return whether contributions meet in atomics."""
    kernels = (k for _, _, found in check.launches for k in found.backward.plan.kernels)
    return any("tt.atomic_rmw fadd" in kernel.ttir for kernel in kernels)


def _difference(ours: torch.Tensor, theirs: torch.Tensor, reordered: float) -> str | None:
    if torch.equal(ours.nan_to_num(nan=1e300), theirs.nan_to_num(nan=1e300)):
        return None
    off = (ours - theirs).norm().item()
    if off <= reordered * ours.norm().item():
        return None
    i = (ours != theirs).nonzero()[0].item()
    return f"[{i}] is {theirs[i]:.17g}, by a launch {ours[i]:.17g}"


def carried_out_otherwise(check: Check) -> Verdict | None:
    """Return the first difference between ways as a verdict; None if there is none."""
    for kind, reason in differences(check) if check.launches else ():
        return Verdict(kind, reason, schedules=check.schedules)
    return None


def differences(check: Check) -> Iterator[tuple[str, str]]:
    """Yield what a program's other ways do otherwise: "wrong" gradients, or "broken", and how."""
    given = check.program, check.inputs.values, check.upstream
    ours = gradients_of(check.op, *given)
    reordered = REORDERED if _meets(check) else 0.0
    for name, make in WAYS.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                theirs = gradients_of(make(check, Path(folder)), *given, name != "graph")
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
                if not (REFUSALS["export"].search(text) or NO_GRAPH.search(text)):
                    yield "broken", f"{name}: {text}"
                continue
        for argument, gradient in ours.items():
            found = _difference(gradient, theirs[argument], reordered)
            if found is not None:
                yield "wrong", f"{name}: gradient of {argument}{found}"
