"""A plan bound to the facts of a launch: what its host programs share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

from ..checking.bounds import CheckedLaunch
from ..checking.facts import Facts
from ..compiling.device_launch import prepared_launch
from ..compiling.executable import Executable
from ..plans.plan import Plan
from ..support.dtypes import DTYPES
from .counting import Counting, Size
from .host_steps import Registers, Step

# The kinds of operands that have a place for each argument.
_OF_ARGUMENTS = ("argument", "before", "cotangent", "gradient", "rounded")


def picking(indices) -> Callable[[Sequence], Sequence]:
    """Return a function that returns the values of a sequence at these places."""
    if len(indices) < 2:
        # itemgetter of one index returns a bare value.
        first = indices[0] if indices else 0
        return itemgetter(slice(first, first + len(indices)))
    return itemgetter(*indices)


class _Places:
    """Where the operands of kernels are in `Registers`."""

    def __init__(self, arguments: int, buffers: int, sizes: int):
        self._starts = {kind: n * arguments for n, kind in enumerate(_OF_ARGUMENTS)}
        self._starts["buffer"] = len(_OF_ARGUMENTS) * arguments
        self._starts["size"] = self._starts["buffer"] + buffers
        self.count = self._starts["size"] + sizes

    def of(self, kind: str, index: int) -> int:
        return self._starts[kind] + index

    def picker(self, operands) -> Callable:
        """Return a function that picks a kernel's operands from a list of values."""
        return picking([self.of(*operand) for operand in operands if operand[0] in self._starts])


def buffer_sizes(plan: Plan, facts: Facts) -> tuple:
    """Return `(kind, dtype, size)` of each buffer of a plan."""
    return tuple(
        (b.kind, DTYPES[b.dtype], Size(b.size, facts, f"buffer {b.name!r} of {plan.kernel!r}"))
        for b in plan.buffers
    )


def grid_of(kernel, facts: Facts) -> tuple[int, int, int]:
    """Return the grid extents of a generated kernel."""
    if kernel.grid is None:
        return facts.grid
    return tuple(facts.evaluate(e) for e in kernel.grid)


class Bound(NamedTuple):
    """A kernel of a plan at a launch: its grid, how to pick its operands, and its checks."""

    executable: Executable
    grid: tuple[int, int, int]
    pick: Callable
    checked: CheckedLaunch | None


class Binding:
    """Makes functions of the steps of a host program, for launches that share their facts."""

    def __init__(self, executable_plan, facts: Facts, spec):
        plan = executable_plan.plan
        self.executable_plan, self.plan = executable_plan, plan
        self.facts, self.spec, self.device = facts, spec, facts.device
        self.buffers = buffer_sizes(plan, facts)
        self.saved = tuple(n for n, b in enumerate(self.buffers) if b[0] == "saved")
        self.sizes = tuple(Size(e, facts, f"a size of {plan.kernel!r}") for e in plan.sizes)
        self.counting = None
        if plan.counting is not None:
            self.counting = Counting(plan, executable_plan.counting, facts, spec)
        self._places = _Places(len(plan.arguments), len(self.buffers), len(self.sizes))
        self._forget()

    def _forget(self) -> None:
        """Forget what steps have needed."""
        # Values of operands that are known now, by place; and kernels.
        self.constants: dict[int, int] = {}
        self.sequence: list[Bound] = []

    def needed(self, steps: Iterable[Step]) -> tuple[Step, ...]:
        """Return the steps that have something to do at these launches."""
        return tuple(step for step in steps if step.is_needed(self))

    def functions_of(self, steps: Iterable[Step]) -> tuple[Callable, ...]:
        """Return functions of `Registers` for steps that have something to do in a run."""
        return tuple(run for step in steps if (run := step.bind(self)) is not None)

    def known(self) -> list:
        """Return the values of operands behind those of the arguments; None if a run has them."""
        return [
            self.constants.get(place)
            for place in range(len(self.plan.arguments), self._places.count)
        ]

    def place(self, kind: str, index: int) -> int:
        """Return where an operand is in `Registers`."""
        return self._places.of(kind, index)

    def bind(self, executable: Executable) -> Bound:
        """Return how a kernel, or another variant of it, is launched."""
        kernel = executable.kernel
        pick = self._places.picker(kernel.operands)
        checked = CheckedLaunch.of(kernel, self.spec, self.plan)
        return Bound(executable, grid_of(kernel, self.facts), pick, checked)

    def starting(self, bound: Bound) -> Callable:
        """Return a function that launches a kernel on `Registers`."""
        self.sequence.append(bound)
        executable, grid, pick, checked = bound
        launch_on = None

        def start(registers: Registers):
            nonlocal launch_on
            if launch_on is None:
                executable.compile()
                launch_on = prepared_launch(executable.compiled, grid, self.device)
            launch_on(pick(registers.values))

        def start_checked(registers: Registers):
            operands = pick(registers.values)
            checked.launch(executable, grid, operands, registers.memory(), self.device)

        return start if checked is None else start_checked
