"""Gradients that a launch was not planned for.

A forward cannot know which outputs will get a gradient. Its first plan is for all of them. If a
backward then gets fewer, later launches are planned for these. If another gradient arrives after
all, the backward computes what no forward has saved.
"""

from __future__ import annotations

import torch

from ..errors import ArgumentError, AutodiffError
from ..storage.memory import has_memory
from .backward import Backward


class Spare:
    """A backward for all outputs that works after any forward: it only needs the inputs.

    Inputs that the planned backward does not read are kept beside what autograd saves, and their
    versions are checked in every backward.
    """

    def __init__(self, execution, choice):
        self._execution = execution
        self.plan = choice.executable_plan.plan
        self.scalars = choice.scalars
        self._first = self._bind(choice)
        self._changed: dict[tuple, Backward] = {}
        known = {*execution.kept, *execution.copied, *execution.opaque}
        self._held = tuple(i for i in self._first.pointers if i not in known)

    @classmethod
    def of(cls, execution) -> Spare | None:
        """Return the spare backward of an execution, None if there can be none."""
        try:
            choice = cls._choose(execution)
        except AutodiffError:
            return None
        if choice.executable_plan.plan.forward is not None:
            return None
        spare = cls(execution, choice)
        return spare if spare._finds_inputs() else None

    @staticmethod
    def _choose(execution, changes=()):
        state, facts = execution.state, execution.facts
        request = state.first_request(execution.wanted, facts, save=False, reload=False)
        return state.choose(request.changed(changes), facts)

    def _bind(self, choice) -> Backward:
        backward = Backward(choice.executable_plan, choice.facts, self._execution.state.spec)
        return backward.give_to(self._execution.based)

    def _finds_inputs(self) -> bool:
        """Whether the inputs are unchanged, or copies are."""
        execution, facts = self._execution, self._execution.facts
        changed = {*self.plan.outputs, *(i for j in self.plan.outputs for i in facts.aliases(j))}
        unknown = [i for i in self._held if not facts.tensors[i].is_tensor]
        reread = changed & {*self._first.pointers} - {*execution.copied}
        return not unknown and not reread

    def spanned(self) -> set[int]:
        """Return the arguments for which the range of their storage matters."""
        return self._first.spanned()

    def backward(self, changes=()) -> Backward:
        """Return the backward; with `changes`, that of a plan for a changed request."""
        if not changes:
            return self._first
        if changes not in self._changed:
            found = self._bind(self._choose(self._execution, changes))
            fits = set(found.pointers) <= set(self._first.pointers)
            self._changed[changes] = found if fits else self._first
        return self._changed[changes]

    def hold(self, leaves) -> list:
        """Return the inputs that only this backward needs, and their versions."""
        return [(leaves[i].detach(), leaves[i]._version) for i in self._held]

    def load(self, held, arguments) -> list:
        """Add the addresses of inputs to the arguments of a backward; returns the tensors."""
        spec = self._execution.state.spec
        for i, (tensor, version) in zip(self._held, held, strict=True):
            if tensor._version != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an "
                    f"inplace operation: argument {spec.names[i]!r} of kernel {spec.name!r}"
                )
            require_memory(spec, i, tensor)
            arguments[i] = tensor.data_ptr()
        return [tensor for tensor, _ in held]


def require_memory(spec, argument: int, tensor: torch.Tensor) -> None:
    """Raise if a tensor that a backward reads has lost its memory since the forward."""
    if not has_memory(tensor):
        raise ArgumentError(
            f"argument {spec.names[argument]!r} of kernel {spec.name!r} has lost its memory since "
            "the forward: its storage was freed or resized, and the backward reads it. Keep it "
            "until then"
        )
