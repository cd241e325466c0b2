"""A plan together with its kernels, which are compiled when they are first launched."""

from __future__ import annotations

import copy

from ..plans.plan import Plan, Tallied
from .executable import Executable


class ExecutablePlan:
    """A plan with its kernels' executables, which are compiled when first launched.

    `chosen` are compile options of the backward kernels that replace the forward's and the plan's.
    """

    def __init__(self, plan: Plan, target, options: dict, chosen: dict):
        def executable(kernel, chosen=None):
            return None if kernel is None else Executable(kernel, target, options, chosen)

        self.plan = plan
        self.forward = executable(plan.forward)
        self.backward = tuple(executable(kernel, chosen) for kernel in plan.backward)
        self.counting = executable(plan.counting)
        self.tallied = {
            g.argument: Tallied(*(executable(kernel, chosen) for kernel in g.tallied))
            for g in plan.gradients
            if g.tallied is not None
        }
        # The best options that were measured, by the variants that a launch allows; see
        # compiling/tuning.py.
        self.measured: dict = {}
        self._others: dict = {}

    def otherwise(self, own: Executable, choice) -> Executable:
        """Return a backward kernel compiled with other options, a tuple of pairs."""
        if dict(choice).items() <= own.options.items():
            return own
        found = self._others.get((own, choice))
        if found is None:
            chosen = {**own.chosen, **dict(choice)}
            found = Executable(own.kernel, own.target, own.inherited, chosen)
            self._others[own, choice] = found
        return found

    def with_gradients(self, gradients) -> ExecutablePlan:
        """Return it with `gradients` in place of those of the same arguments."""
        executable_plan = copy.copy(self)
        executable_plan.plan = self.plan.with_gradients(gradients)
        return executable_plan

    def keep(self, variants, own: Executable, choice) -> None:
        """Forget all compiled variants of a backward kernel but `own` with these options."""
        keys = [key for key in self._others if key[0] in variants and key != (own, choice)]
        for key in keys:
            del self._others[key]
