"""The tangent of a plan: its forward and its backward on values and tangents, side by side.

The gradient of a launch is what the plan's kernels compute, one after the other, so its tangent is
what these kernels do with tangents. Steps that make memory of memory are linear: they are done
twice. Each kernel computes tangents beside its values. So a second derivative has the schedule of
the first: no atomics that this has not.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from functools import partial

import torch

from ..checking.expr import mentions
from ..checking.facts import processors
from ..compiling.executable import Executable
from ..compiling.together import compile_all
from ..plans.cache import kernel_with_tangents
from ..plans.plan import Kernel
from ..plans.target import described
from . import host_steps
from .backward import Backward
from .binding import Bound
from .forward import Forward
from .host_steps import Registers

Tensor = torch.Tensor
# What an exchange may take from: upstream gradients.
_TAKEN = ("cotangent", "gradient")
# What is done once: numbers.
_ONCE = (host_steps.Evaluate,)
_LAUNCHES = (host_steps.LaunchForward, host_steps.LaunchKernel, host_steps.Count)
_RESULTS = (host_steps.AddUp, host_steps.Convert, host_steps.Return)


class Pair:
    """The registers of values and of tangents in one run."""

    __slots__ = ("values", "tangents")

    def __init__(self, values: Registers, tangents: Registers):
        self.values, self.tangents = values, tangents


class Moving:
    """What has tangents in a run of a plan.

    `before` are the arguments whose content has some before the launch, `after` those that have
    some after it; `upstream` says whether upstream gradients have. `read` are the arguments that
    the backward reads again, and `left` those that hold what the forward would store.
    """

    def __init__(
        self,
        before: frozenset[int],
        after: frozenset[int],
        upstream: bool,
        read: frozenset[int],
        left: frozenset[int],
        rules,
    ):
        self.before, self.after, self.upstream = before, after, upstream
        self.read, self.left, self.rules = read, left, rules


class _Dual:
    """Makes functions of `Pair`s of the steps of a program."""

    moving: Moving
    # The arguments whose content has tangents when the program begins.
    moving_arguments: frozenset[int]
    # Those that hold what its kernels would store.
    holding: frozenset[int] = frozenset()

    def functions_of(self, steps):
        return tuple(run for step in steps for run in (self._dual(step),) if run is not None)

    def _dual(self, step):
        run = step.bind(self)
        if run is None or isinstance(step, _LAUNCHES):
            return run
        if isinstance(step, _ONCE):
            return lambda pair: run(pair.values)
        if isinstance(step, _RESULTS):
            return lambda pair: run(pair.tangents)
        if not self._has_tangents(step):
            return lambda pair: run(pair.values)

        def both(pair):
            run(pair.values)
            run(pair.tangents)

        return both

    def _has_tangents(self, step) -> bool:
        """Whether a step is done for tangents, too."""
        if isinstance(step, host_steps.LayOut):
            return self._moves("cotangent", step.index)
        if isinstance(step, host_steps.Copy):
            return self._moves("before", step.index)
        if isinstance(step, host_steps.Allocate):
            return self._moves("buffer", step.index)
        return True

    def _moves(self, kind: str, index: int) -> bool:
        moving = self.moving
        if kind == "argument":
            return index in self.moving_arguments
        if kind == "before":
            return index in moving.before
        if kind == "cotangent":
            return moving.upstream or self._begins_with_upstream(index)
        if kind == "buffer":
            _, dtype, _ = self.buffers[index]
            return dtype.is_floating_point
        return kind in ("gradient", "rounded")

    def _begins_with_upstream(self, index: int) -> bool:
        """Whether a gradient's memory begins with an upstream gradient."""
        return any(g.argument == index and g.init == "cotangent" for g in self.plan.gradients)

    def _is_unread(self, kind: str, index: int) -> bool:
        """Whether nobody reads what a kernel leaves of values in an operand."""
        is_needed = index in self.moving.read or index in self.holding
        return kind == "gradient" or (kind == "argument" and not is_needed)

    def _residents(self, kernel: Kernel, grid) -> tuple:
        """Return how many programs share a processor, where a plan has chosen their number.

        With tangents they would have too many registers for that.
        """
        chosen = kernel.grid is not None and any(mentions(e, "processors") for e in kernel.grid)
        if not chosen or self.device.type != "cuda" or torch.version.hip:
            return ()
        return (("residents", -(-math.prod(grid) // processors(self.device))),)

    def starting(self, bound: Bound):
        own, grid = bound.executable, bound.grid
        kernel = own.kernel
        moving = [k for k, operand in enumerate(kernel.operands) if self._moves(*operand)]
        unread = [k for k, operand in enumerate(kernel.operands) if self._is_unread(*operand)]
        taken = [k for k, (kind, _) in enumerate(kernel.operands) if kind in _TAKEN]
        holding = {("argument", i) for i in self.holding}
        request = {
            "tangents": moving,
            "unread": unread,
            "left": [k for k, operand in enumerate(kernel.operands) if operand in holding],
            "taken": taken,
            # The launch settles what the forward's atomic operations leave.
            "later": True,
            "last": True,
            "rules": self.moving.rules,
            **described(own.target),
        }
        leaner = kernel_with_tangents(kernel.ttir, request, kernel.name)
        pushed = kernel_with_tangents(kernel.ttir, {**request, "ample": True}, kernel.name)
        tangents = [kernel.operands[k] for k in pushed.tangents]
        # Others are stored.
        self.holding = frozenset(kernel.operands[k][1] for k in pushed.left)
        for kind, index in tangents:
            if not self._moves(kind, index):
                self.zeros.append((kind, index))
        operands = (*kernel.operands, *tangents)
        options = (*kernel.options, *pushed.options, *self._residents(kernel, grid))
        both = replace(
            kernel,
            name=pushed.name,
            ttir=pushed.ttir,
            operands=operands,
            options=options,
            variants=(),
            leaner=None if leaner.ttir == pushed.ttir else leaner.ttir,
        )
        executable = Executable(both, own.target, own.inherited, own.chosen)
        pick_tangents = self._places.picker(tangents)
        start = super().starting(
            Bound(executable, grid, partial(_picked, bound.pick, pick_tangents), None)
        )
        return lambda pair: start(_Both(pair))

    def pair(self, arguments, tangents, live, upstream, moved, counts) -> Pair:
        """Return the registers of a run; the first two are values of arguments and tangents."""
        rest = self.known()
        values = Registers([*arguments, *rest], live, upstream, counts)
        other = Registers([*tangents, *rest], live, moved, counts)
        for kind, index in self.zeros:
            place = self.place(kind, index)
            if other.values[place] is None:
                other.tensors[place] = torch.zeros_like(values.values[place])
                other.values[place] = other.tensors[place]
        return Pair(values, other)


class _Both:
    """Registers whose values are those of a pair."""

    __slots__ = ("values",)

    def __init__(self, pair: Pair):
        self.values = pair.values.values, pair.tangents.values


def _picked(pick, pick_tangents, values):
    return (*pick(values[0]), *pick_tangents(values[1]))


class DualForward(_Dual, Forward):
    """A forward that leaves tangents beside values."""

    def __init__(self, execution, moving: Moving):
        self.moving, self.zeros = moving, []
        self.moving_arguments, self.holding = moving.before, moving.left
        plan, spec = execution.forward.executable_plan, execution.state.spec
        # Whether the backward needs what it leaves.
        self.is_needed = plan.forward is not None or not moving.read.isdisjoint(plan.plan.outputs)
        if plan.forward is None:
            operands = tuple(("argument", i) for i in range(len(spec.types)))
            # The user's launch, whatever the plan makes of it.
            own = Kernel(spec.name, spec.ttir, tuple(execution.facts.grid), operands)
            plan = copy.copy(plan)
            plan.forward = Executable(own, spec.target, spec.options, {})
        super().__init__(plan, execution.forward.facts, spec, execution.copied)

    def count(self, pair: Pair) -> None:
        """Count how often loops run."""
        super().count(pair.values)
        pair.tangents.counts = pair.values.counts


class DualBackward(_Dual, Backward):
    """A backward whose gradients have tangents."""

    def __init__(self, execution, moving: Moving):
        self.moving, self.zeros = moving, []
        # Of those that the forward has copied, it reads what they held before.
        self.moving_arguments = moving.before | (moving.after - {*execution.copied})
        given = execution.backward
        super().__init__(given.executable_plan, given.facts, given.spec)

    def _tallied(self) -> frozenset[int]:
        # To round at once is for values alone.
        return frozenset()


class Dual:
    """A forward and a backward with tangents, for launches that share their facts."""

    def __init__(self, execution, moving: Moving):
        self.execution = execution
        self.forward = DualForward(execution, moving)
        self.backward = DualBackward(execution, moving)

    @property
    def holding(self) -> frozenset[int]:
        """The arguments that have to hold what the launch has left."""
        return self.forward.holding

    def compile(self) -> None:
        """Compile all kernels, side by side."""
        compile_all([*self.forward._kernels(), *self.backward._kernels()])

    def programs(self, returns: bool) -> tuple:
        """Return the programs of a run, the forward first if it is among them; see `run`."""
        runs_forward = returns or self.forward.is_needed
        return (self.forward, self.backward) if runs_forward else (self.backward,)

    def run(self, leaves, tangents, upstream, moved, returns: bool) -> dict[int, Tensor]:
        """Return tangents of gradients, by argument.

        `leaves` and `tangents` are the launch's arguments, which the forward changes (but for those
        that are `holding`); `upstream` the cotangents and `moved` their tangents, by argument. The
        forward runs if the caller `returns` tangents that it leaves, or the backward needs it.
        """
        forward, backward = self.forward, self.backward
        handed = [], []
        if forward in self.programs(returns):
            pair = forward.pair(leaves, tangents, leaves, {}, {}, None)
            for step in forward._steps:
                step(pair)
            handed = pair.values.handed, pair.tangents.handed
        copied = self.execution.copied
        arguments = [
            [dict(zip(copied, saved, strict=False)).get(i, own) for i, own in enumerate(held)]
            for held, saved in zip((leaves, tangents), handed, strict=True)
        ]
        counts = backward.count_trips(arguments[0], leaves) if backward.counts_trips else None
        pair = backward.pair(*arguments, leaves, upstream, moved, counts)
        for registers, saved in zip((pair.values, pair.tangents), handed, strict=True):
            for n, buffer in zip(backward.saved, saved[len(copied) :], strict=True):
                registers.values[backward.place("buffer", n)] = buffer
        for step in backward._steps:
            step(pair)
        return pair.tangents.gradients
