"""Sizes that depend on how often loops run, where only running them can tell.

If loop bounds come from memory, or a loop is a `while`, a counting kernel runs first. It stores the
largest number of iterations of each loop, which the host reads before it allocates memory.
"""

from __future__ import annotations

import torch

from ..checking.bounds import CheckedLaunch
from ..checking.expr import substitute, used_counters
from ..errors import AutodiffError


class Counting:
    """The counting kernel of a plan, at launches that share their facts."""

    def __init__(self, plan, executable, facts, spec):
        self._executable = executable
        self._kernel = plan.counting
        self._grid = facts.grid
        self._device = facts.device
        self._name = plan.kernel
        self._counters = max(plan.counters(), default=-1) + 1
        self._checked = CheckedLaunch.of(plan.counting, spec, plan)

    def run(self, arguments, tensors) -> list[int]:
        """Return the counters; `arguments` are the TTIR function's, `tensors` their memory."""
        device = self._device
        if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            raise AutodiffError(
                f"kernel {self._name!r} has a loop whose number of iterations is found out by "
                "running it, to know how much memory its gradient takes; that cannot be captured "
                "in a CUDA graph: pass the loop's bound as an argument"
            )
        counters = torch.zeros(self._counters, dtype=torch.int32, device=device)
        pool = {"argument": arguments, "counters": (counters.data_ptr(),)}
        args = [pool[kind][index] for kind, index in self._kernel.operands if kind in pool]
        if self._checked is None:
            self._executable.launch(self._grid, args)
        else:
            memory = (*tensors, counters)
            self._checked.launch(self._executable, self._grid, args, memory, device)
        return counters.tolist()


class Size:
    """An integer expression of a plan, evaluated as soon as it can be."""

    def __init__(self, expr, facts, what: str):
        self._expr, self._facts, self._what = expr, facts, what
        self.is_counted = bool(used_counters(expr))
        self._known = None if self.is_counted else self._evaluate(expr)

    def _evaluate(self, expr) -> int:
        value = self._facts.evaluate(expr)
        if value < 0:
            raise AutodiffError(f"{self._what} has size {value}")
        return value

    def get(self, counts) -> int:
        """Return the value, given the counters (None if it does not depend on them)."""
        if self._known is not None:
            return self._known
        return self._evaluate(substitute(self._expr, {"counted": counts.__getitem__}))
