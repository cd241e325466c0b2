"""A program carried out in other ways: by an exported module, in a graph of PyTorch's, and on parts
of tensors.

A launch is carried out by objects (`Execution`), an exported module by its text, and a graph by
operators, or by kernels that Inductor knows. All have one plan, so that gradients are equal: to the
bit, unless contributions meet in atomics, which add them up in any order. A kernel that is given
the first half of a tensor reads around it. Its gradients are those of the whole tensor, by another
plan.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from exporting import adds_atomically, module_at
from looking import REFUSALS
from torch.autograd.graph import saved_tensors_hooks

from .differences import Check, Verdict, gradients_of
from .points import Tensors, apart
from .tiled import FAR

# What a graph, or a module, may refuse; PyTorch's words may be around ours.
REFUSED = re.compile(
    r"no graph can hold this launch|in a larger storage, and the kernel reads around"
    r"|a hook on saved tensors keeps what is around"
)
# A half need not be all that a program reaches.
REFUSED_ON_HALVES = re.compile(r"and a deterministic backward was asked for.*Pass the part of")
# The elements around a tensor that a program may read, in rows that are far apart.
ROOM = 128 * FAR
# Of the size of a gradient, what another order of its sum changes.
REORDERED = 1e-12


def exported(check: Check, folder: Path) -> Callable:
    """Return the function of a module to which the program's operation is exported."""
    wanted = check.program.wanted
    leaves = {n: x.clone().requires_grad_(n in wanted) for n, x in check.inputs.values.items()}
    path = check.op.export(folder / "exported.py", *leaves.values())
    return getattr(module_at(path), check.op.stub.__name__)


def compact(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy without gaps, and without what is around it."""
    return tensor.clone(memory_format=torch.contiguous_format)


def saving_copies(check: Check, folder: Path) -> Callable:
    """Return the function of a module, of whose tensors autograd saves copies."""
    function = exported(check, folder)

    def call(*values):
        with saved_tensors_hooks(compact, lambda copy: copy):
            return function(*values)

    return call


def graphed(check: Check, folder: Path) -> Callable:
    """Return the operation in a graph that has to be whole."""
    torch._dynamo.reset()
    op = check.op

    def call(*values):
        return op(*values)

    return torch.compile(call, backend="aot_eager", fullgraph=True)


def halved(check: Check, folder: Path) -> Callable:
    """Return the operation on first halves of tensors, of which autograd saves copies."""
    plans = (found.backward.plan for _, _, found in check.launches)
    if any(None in spaces for plan in plans for spaces in plan.accesses.values()):
        # What is read at loaded addresses around a tensor has no gradient, and is not saved.
        raise Skipped

    def call(*values):
        # Loads of lanes that do not count go further.
        inputs = [
            torch.cat([x.new_full((ROOM,), float("nan")), x, x.new_full((ROOM,), float("nan"))])
            for x in values
        ]
        inputs = [x[ROOM:-ROOM] for x in inputs]
        with saved_tensors_hooks(compact, lambda copy: copy):
            return check.op.stub(_OnHalves(check.op.kernel, inputs), *inputs)

    return call


class _OnHalves:
    """A kernel that is launched on the first halves of some tensors."""

    def __init__(self, kernel, tensors):
        self._kernel, self._tensors = kernel, tensors

    def __getitem__(self, grid):
        def launch(*args, **options):
            given = (
                a[: (len(a) + 1) // 2] if any(a is t for t in self._tensors) else a for a in args
            )
            return self._kernel[grid](*given, **options)

        return launch


class Skipped(Exception):
    """A program that a way is not for."""


WAYS = {"exported": exported, "copies": saving_copies, "graph": graphed, "halves": halved}


def _difference(ours: torch.Tensor, theirs: torch.Tensor, reordered: float) -> str | None:
    i = apart(ours, theirs, reordered * ours.norm().item())
    if i is None:
        return None
    return f"[{i}] is {theirs.flatten()[i]:.17g}, by a launch {ours.flatten()[i]:.17g}"


def gradients_in(way: str, check: Check) -> Tensors | None:
    """Return a program's gradients in a way; None if that may refuse it, and does."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            op = WAYS[way](check, Path(folder))
            given = check.program, check.inputs.values, check.upstream
            return gradients_of(op, *given, watches=way != "graph")
        except Skipped:
            return None
        except Exception as error:
            refusals = [REFUSALS["export"], REFUSED]
            refusals += [REFUSED_ON_HALVES] if way == "halves" else []
            if any(refusal.search(str(error)) for refusal in refusals):
                return None
            raise


def carried_out_otherwise(check: Check) -> Verdict | None:
    """Return the first difference between ways as a verdict; None if there is none."""
    for kind, reason in differences(check) if check.launches else ():
        return Verdict(kind, reason, schedules=check.schedules)
    return None


def differences(check: Check) -> Iterator[tuple[str, str]]:
    """Yield what a program's other ways do otherwise: "wrong" gradients, or "broken", and how."""
    ours = gradients_of(check.op, check.program, check.inputs.values, check.upstream)
    meets = any(adds_atomically(found.backward.plan) for _, _, found in check.launches)
    for name in WAYS:
        reordered = REORDERED if meets or name == "halves" else 0.0
        try:
            theirs = gradients_in(name, check)
        except Exception as error:
            yield "broken", f"{name}: {type(error).__name__}: {error}"
            continue
        for argument, gradient in ours.items() if theirs is not None else ():
            found = _difference(gradient, theirs[argument], reordered)
            if found is not None:
                yield "wrong", f"{name}: gradient of {argument}{found}"
