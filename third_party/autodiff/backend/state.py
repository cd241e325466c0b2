"""What is known about one compiled kernel: its plans and the executions they led to.

The state lives on Triton's `CompiledKernel` object, so that it goes when the kernel goes. There is
one for each set of options that the kernel is used with.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import torch

from . import bounds, determinism
from .backward import Handle, buffer_sizes
from .cache import plan_for
from .errors import AutodiffError, PlanError
from .execution import Execution
from .facts import FactKey, Facts
from .options import DEFAULT, FORBIDDEN, REQUESTED, WARNED_OF, Options
from .specialize import Specialization
from .tapes import default_limit, tape_bytes
from .target import described, warn_of_miscomputed
from .user_rules import generation, rules_for

_ATTRIBUTE = "_autodiff_states"
_MAX_EXECUTIONS = 1024
_saves_by_hooks = torch._C._autograd._top_saved_tensors_default_hooks


class Choice(NamedTuple):
    """A plan whose host checks hold, the arguments whose checks failed on the way, and why.

    The facts are those of the launch that the plan is for.
    """

    handle: Handle
    facts: Facts
    atomic: tuple[int, ...]
    exchange: tuple[int, ...]
    assume: bool
    axes: tuple[int, ...]
    scalars: frozenset[int]  # the arguments that decided
    checkpoint: bool
    objections: dict[int, str]  # why checks of gradients failed, by argument


class Ask(NamedTuple):
    """What a plan is asked for; see docs/plan.md."""

    wanted: tuple[int, ...] | None
    cotangents: tuple[int, ...] | None = None
    atomic: tuple[int, ...] = ()
    exchange: tuple[int, ...] = ()
    confine: tuple[int, ...] = ()
    aligned: tuple[int, ...] = ()
    known: tuple[tuple[int, int], ...] = ()
    same: tuple[tuple[int, int], ...] = ()
    save: bool = True
    reload: bool = True
    checkpoint: bool = False
    deterministic: bool = False
    assume: bool = True
    axes: tuple[int, ...] = ()
    widen: int | None = None
    schedules: tuple[str, ...] | None = None
    scheduled: bool | None = None

    def to_json(self) -> dict:
        """Return the request that the compiler reads."""
        request = {k: list(v) if isinstance(v, tuple) else v for k, v in self._asdict().items()}
        for name in REQUESTED:
            if request[name] is None:
                del request[name]
        return request


class KernelState:
    """Plans and executions of one compiled kernel."""

    def __init__(self, kernel, function, options: Options, atomics: int):
        self.spec = Specialization(kernel, function)
        self._options = options
        self._atomics = atomics
        self.pointer_set = frozenset(self.spec.pointers)
        self.outputs: tuple[int, ...] | None = None
        # Threads that meet new facts at once take turns.
        self.lock = threading.RLock()
        self._generation = generation()
        self._rules = rules_for(self.spec.ttir, self.spec.target, self.spec.options)
        self.checks_bounds = bounds.wanted()
        self._handles: dict = {}
        self._families: dict = {}
        self._expected: dict = {}
        # The outputs for which gradients came last, by the arguments whose gradient was wanted.
        self.latest: dict[tuple[int, ...], tuple[int, ...]] = {}

    @classmethod
    def of(cls, kernel, function, options=DEFAULT) -> KernelState:
        """Return the state of a compiled kernel, made on first use."""
        state = cls.known(kernel, options)
        if state is None:
            atomics = options.atomics()
            state = cls(kernel, function, options, atomics)
            if not hasattr(kernel, _ATTRIBUTE):
                setattr(kernel, _ATTRIBUTE, {})
            getattr(kernel, _ATTRIBUTE)[options, atomics] = state
        return state

    @staticmethod
    def known(kernel, options=DEFAULT) -> KernelState | None:
        """Return the state of a compiled kernel if it has one."""
        states = getattr(kernel, _ATTRIBUTE, None)
        state = None if states is None else states.get((options, options.atomics()))
        # A rule that was registered since may change every plan.
        return state if state is not None and state._generation == generation() else None

    def user_rules(self) -> list[str]:
        """Return which derivatives of the kernel its author has given, in words."""
        registered = [f"register_vjp of {rule['name']!r}" for rule in self._rules]
        return [*self.spec.own_derivatives(), *registered]

    def handle(self, wanted, cotangents=None, allows_atomics=False, **more) -> Handle:
        """Return the plan for a request (see `Ask`), with its executables.

        `allows_atomics` says that they do no harm where they are forbidden.
        """
        deterministic = self._atomics == FORBIDDEN and not allows_atomics
        requested = self._options.requested
        ask = Ask(wanted, cotangents, deterministic=deterministic, **{**requested, **more})
        handle = self._handles.get(ask)
        if handle is None:
            spec = self.spec
            request = {**ask.to_json(), "rules": self._rules, "check": self.checks_bounds}
            plan = plan_for(spec.ttir, {**request, **described(spec.target)}, spec.name)
            warn_of_miscomputed(spec.name, plan)
            if len(plan.arguments) != len(spec.types):
                raise PlanError(
                    f"kernel {spec.name!r} has {len(spec.types)} run-time arguments, its plan "
                    f"{len(plan.arguments)}"
                )
            handle = Handle(plan, spec.target, spec.options, self._options.launch)
            self._handles[ask] = handle
            self.outputs = plan.outputs
        return handle

    @property
    def tunes(self) -> bool:
        """Whether backwards are measured with several options; not while accesses are checked."""
        return self._options.tunes and not self.checks_bounds

    @property
    def forward_configs(self) -> tuple[tuple[int, int], ...]:
        """The stages and warps that the user tunes the forward with."""
        return self._options.forward_configs

    def tape_limit(self, device) -> int:
        """Return how many bytes the tapes of one backward may take."""
        limit = self._options.tape_limit
        return default_limit(device) if limit is None else limit

    def choose(
        self,
        wanted,
        facts: Facts,
        cotangents=None,
        atomic=(),
        exchange=(),
        assume=True,
        axes=None,
        checkpoint=False,
        save=True,
        reload=True,
        **more,
    ) -> Choice:
        """Return a plan whose host checks hold for a launch.

        Gradients of `atomic` are summed atomically and upstream gradients of `exchange` are used
        up atomically from the start; checks that fail add to these. What plans `assume` of a launch
        is given up where it does not hold. Iterations, or digits of positions, become axes of tiles
        (none of them if `axes` is empty; None: as the plan offers). Tapes hold checkpoints if asked
        to, or if they would exceed the limit otherwise. For `more`, see `Ask`.
        """
        launched = facts
        more["reload"] = reload and facts.keeps_outputs()
        more |= facts.descriptors._asdict()
        scalars: set[int] = set()
        objections: dict[int, str] = {}
        confine: tuple[int, ...] = ()
        while True:
            # Where no program runs, the checks of addresses fail, and nothing meets in atomics.
            nothing_runs = 0 in facts.grid
            # A plan that is asked what it offers is not run where it may not.
            more["allows_atomics"] = nothing_runs or axes is None
            handle = self.handle(
                wanted,
                cotangents,
                atomic=atomic,
                exchange=exchange,
                confine=confine,
                assume=assume,
                axes=axes or (),
                checkpoint=checkpoint,
                # One axis are iterations: a program that holds all of a row computes it again.
                save=save and len(axes or ()) != 1,
                **more,
            )
            plan = handle.plan
            scalars |= plan.used_arguments()
            if axes is None:
                axes = self._axes(plan, launched)
                if axes or self._atomics == FORBIDDEN:
                    continue
            grid = plan.grid_of(launched.scalars, launched.grid)
            # Through shared memory, iterations may depend on one another.
            if grid is None or (plan.launch is not None and launched.aliasing):
                # The axes are given up first.
                assume, axes = bool(axes), ()
                continue
            facts = launched.with_grid(grid)
            repeated = {c.argument for c in plan.checks if self._objection(c, facts)}
            failed = self._objections(plan.gradients, facts)
            # Elements that are left out have gradient zero, but none need meet for that.
            others = (g.leaving_out() for g in plan.gradients if g.argument in failed)
            sparse = [g for g in others if g and not self._objections([g], facts)]
            if sparse:
                handle = handle.with_gradients(sparse)
                failed = self._objections(handle.plan.gradients, facts)
            if not failed and not repeated:
                spans = self._spans(handle.plan, facts)
                far = {argument for argument, span in spans.items() if span is None}
                if far:
                    confine = tuple(sorted({*confine, *far}))
                    continue
                facts = facts.with_spans(spans)
                tapes = 0 if checkpoint else tape_bytes(buffer_sizes(plan, facts))
                if tapes <= self.tape_limit(facts.device):
                    used = frozenset(scalars)
                    return Choice(
                        handle, facts, atomic, exchange, assume, axes, used, checkpoint, objections
                    )
                checkpoint = True
                continue
            if self._atomics == FORBIDDEN and not nothing_runs:
                determinism.refuse(self.spec, plan, failed, repeated)
            if set(failed) <= set(atomic) and repeated <= set(exchange):
                raise PlanError(f"kernel {self.spec.name!r}: plan repeats checks that failed")
            objections |= failed
            atomic = tuple(sorted({*atomic, *failed}))
            exchange = tuple(sorted({*exchange, *repeated}))

    @staticmethod
    def _axes(plan, facts: Facts) -> tuple[int, ...]:
        """Return the axes that iterations or digits are to become for a launch, none if none."""
        if plan.offer is None or facts.aliasing:
            return ()
        return plan.offer.axes(facts.scalars, facts.grid)

    def _objections(self, gradients, facts: Facts) -> dict[int, str]:
        """Return why checks of gradients fail, by argument."""
        return {
            gradient.argument: objection
            for gradient in gradients
            for check in gradient.checks
            if (objection := self._objection(check, facts)) is not None
        }

    @staticmethod
    def _objection(check, facts: Facts) -> str | None:
        tensor = facts.tensors[check.argument]
        if not tensor.is_tensor:
            return "what it reaches is not known to be a tensor"
        return check.objection(tensor.shape, tensor.strides, facts.scalars, facts.grid)

    @staticmethod
    def _spans(plan, facts: Facts) -> dict:
        """Return the memory of gradients; None where contributions have to be confined to it."""
        return {
            gradient.argument: gradient.span(tensor, facts.scalars, facts.grid)
            for gradient in plan.gradients
            if (tensor := facts.tensors[gradient.argument]).is_tensor
        }

    def execution(self, wanted, grid, leaves) -> Execution:
        """Return how to run a launch that wants the gradients of arguments `wanted`."""
        # What hooks save has to be the same when a checkpoint's forward is run again.
        expected = None if _saves_by_hooks(True) else self._expected.get(wanted)
        family = self._families.get(wanted)
        if family is not None:
            key, executions = family
            found = executions.get((expected, key.extract(grid, leaves)[0]))
            if found is not None:
                return found
        with self.lock:
            return self._new_execution(wanted, expected, grid, leaves)

    def _new_execution(self, wanted, expected, grid, leaves) -> Execution:
        family = self._families.get(wanted)
        if family is None:
            family = self._families[wanted] = self._family(wanted)
        key, executions = family
        facts_key, aliasing = key.extract(grid, leaves)
        found = executions.get((expected, facts_key))
        if found is None and torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
            # There, nothing new can be compiled.
            found = executions.get((None, facts_key))
        if found is not None:
            return found
        key.validate(leaves, self.spec.target)
        facts = Facts(key, grid, leaves, aliasing)
        found = self._planned(wanted, facts, expected)
        if not found.is_complete:
            found = self._planned(wanted, facts, None)
        if self._atomics == WARNED_OF:
            determinism.warn(self.spec, found.backward.plan)
        needed = found.needed()
        if not key.covers(*needed):
            self.forget(key, *needed)
        facts_key, _ = key.extract(grid, leaves)
        if len(executions) >= _MAX_EXECUTIONS:
            executions.clear()
        executions[expected, facts_key] = found
        return found

    def _planned(self, wanted, facts, outputs) -> Execution:
        """Return how to run a launch for gradients of these outputs, or (None) of all."""
        return Execution(self, wanted, self.choose(wanted, facts, outputs), facts, outputs)

    def expect(self, wanted, outputs) -> None:
        """Plan launches from now on for gradients of these outputs, and those expected before.

        Where atomics are forbidden, nothing changes: equal backwards give equal bits.
        """
        if self._atomics == FORBIDDEN:
            return
        with self.lock:
            before = self._expected.get(wanted, ())
            self._expected[wanted] = tuple(sorted({*before, *outputs}))

    def _family(self, wanted):
        plan = self.handle(wanted, allows_atomics=True).plan
        spec = self.spec
        return FactKey(spec.name, spec.names, spec.pointers, plan.outputs, spec.descriptors), {}

    def forget(self, key: FactKey, *needed) -> None:
        """Make a key hold more facts; executions found under the old key go."""
        key.grow(*needed)
        for family_key, executions in self._families.values():
            if family_key is key:
                executions.clear()

    def plans(self):
        """Return the plans asked for so far, the latest last."""
        return [handle.plan for handle in self._handles.values()]

    def plan_of_everything(self):
        """Return the plan for all inputs and outputs, for display."""
        handle = self.handle(None)
        if not handle.plan.inputs or not handle.plan.backward:
            raise AutodiffError(
                f"kernel {self.spec.name!r} has nothing to differentiate: no floating-point "
                "argument that it stores to depends on one that it loads"
            )
        return handle.plan
