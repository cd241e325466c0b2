"""The state of one compiled kernel: its plans, and the executions made from them.

It is an attribute of Triton's `CompiledKernel`, so that it is freed with the kernel. There is one
for each set of options that the kernel is used with.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
import threading
from collections.abc import Callable
from typing import NamedTuple

import torch

from ..checking import bounds
from ..checking.accesses import Accesses
from ..checking.facts import FactExtractor, Facts
from ..compiling.executable_plan import ExecutablePlan
from ..errors import AutodiffError, NoTangents, PlanError
from ..faults.short_products import warn_of_miscomputed
from ..plans import determinism
from ..plans.cache import Pushed, plan_for
from ..plans.plan import Plan
from ..plans.rearranged_launch import RearrangedLaunch
from ..plans.target import described
from ..rules.requests import rules_for
from ..rules.user_rules import find_rules, functions_of, generation, require_globals
from ..support.places import lines_of
from .asking import PlanRequest, Suitability
from .execution import Execution, saves_by_hooks
from .higher import Higher
from .options import DEFAULT, FORBIDDEN, WARNED_OF, Options
from .specialization import Specialization
from .tapes import default_limit
from .with_tangents import WithTangents, pushed

_ATTRIBUTE = "_autodiff_states"
_MAX_EXECUTIONS = 1024
# How many sets of arguments with tangents have a kernel of their own.
_SETS = 8

_EXCHANGE = re.compile(
    r"tt\.atomic_rmw exch\b.*-> (?:tensor<[\dx]+x)?(?:bf|f)\d\w*>?( loc\(.*\))?$", re.MULTILINE
)


class ChosenPlan(NamedTuple):
    """A plan that suits a launch, the facts of the launch that it is for, and the request.

    `scalars` are the arguments that the choice depends on, `objections` the reasons, by argument,
    why checks of gradients failed before. `unsuited` is how a plan would have rearranged the launch
    that was asked for before, None if there was none that this launch breaks an assumption of.
    """

    executable_plan: ExecutablePlan
    facts: Facts
    request: PlanRequest
    scalars: frozenset[int]
    objections: dict[int, str]
    unsuited: RearrangedLaunch | None = None


class KernelState:
    """Plans and executions of one compiled kernel."""

    def __init__(self, spec: Specialization, options: Options, atomics: int):
        self.spec = spec
        self.options = options
        self.atomics = atomics
        self.pointer_set = frozenset(self.spec.pointers)
        self.outputs: tuple[int, ...] | None = None
        # Threads with new facts at the same time wait for each other.
        self.lock = threading.RLock()
        self.generation = generation()
        self._rules = rules_for(self.spec.ttir, self.spec.target, self.spec.options)
        self.used_rules = functions_of(find_rules(self.spec.ttir)) if self._rules else []
        require_globals(self.used_rules)
        self.checks_bounds = bounds.wanted()
        # Counts what changes the execution of a launch that has had one.
        self.revision = 0
        self._executable_plans: dict = {}
        self._families: dict = {}
        self._expected: dict = {}
        # The outputs that got gradients last, and all that ever did, by the arguments whose
        # gradient was wanted.
        self.latest: dict[tuple[int, ...], tuple[int, ...]] = {}
        self.came: dict[tuple[int, ...], frozenset[int]] = {}
        # The states of kernels that compute tangents of some arguments, too.
        self._with_tangents: dict[frozenset[int], KernelState] = {}
        # What ran for tangents and second derivatives.
        self.higher = Higher()

    @classmethod
    def of(cls, kernel, function, options=DEFAULT) -> KernelState:
        """Return the state of a compiled kernel, made on first use."""
        state = cls.existing(kernel, options)
        if state is None:
            atomics = options.atomics()
            state = cls(Specialization(kernel, function), options, atomics)
            if not hasattr(kernel, _ATTRIBUTE):
                setattr(kernel, _ATTRIBUTE, {})
            getattr(kernel, _ATTRIBUTE)[options, atomics] = state
        return state

    @staticmethod
    def existing(kernel, options=DEFAULT) -> KernelState | None:
        """Return the state of a compiled kernel if it has one."""
        states = getattr(kernel, _ATTRIBUTE, None)
        state = None if states is None else states.get((options, options.atomics()))
        # A rule that was registered later may change every plan.
        if state is None or state.generation != generation():
            return None
        if state.used_rules:
            require_globals(state.used_rules)
        return state

    @property
    def rules(self) -> list[dict]:
        """The user's rules that the kernel needs, for requests."""
        return self._rules

    def user_rules(self) -> list[str]:
        """Return, in words, which user-defined derivatives the kernel has."""
        registered = [f"register_vjp of {rule['name']!r}" for rule in self._rules]
        return [*self.spec.own_derivatives(), *registered]

    def first_request(self, wanted, facts: Facts | None = None, **more) -> PlanRequest:
        """Return the first request, for what the user wants and, if it is given, the launch."""
        described = {} if facts is None else facts.descriptors._asdict()
        return PlanRequest(wanted, **{**self.options.requested, **described, **more})

    def executable_plan(self, request: PlanRequest, is_launched: bool = True) -> ExecutablePlan:
        """Return the plan for a request, with its executables, which check their accesses if they
        are to be launched, and that is wanted.
        """
        executable_plan = self._executable_plans.get(request)
        if executable_plan is None:
            spec = self.spec
            checks = self.checks_bounds and is_launched
            data = {**request.to_json(), "rules": self._rules, "check": checks}
            plan = plan_for(spec.ttir, {**data, **described(spec.target)}, spec.name)
            warn_of_miscomputed(spec.name, plan)
            if len(plan.arguments) != len(spec.types):
                raise PlanError(
                    f"kernel {spec.name!r} has {len(spec.types)} run-time arguments, its plan "
                    f"{len(plan.arguments)}"
                )
            executable_plan = ExecutablePlan(plan, spec.target, spec.options, self.options.launch)
            self._executable_plans[request] = executable_plan
            self.outputs = plan.outputs
        return executable_plan

    @functools.cached_property
    def plain(self) -> Plan:
        """A plan of no gradient, for what all plans say of the kernel itself."""
        nothing = PlanRequest((), (), save=False, assume=False, scheduled=False)
        return self.executable_plan(nothing, is_launched=False).plan

    @functools.cached_property
    def accesses(self) -> Accesses:
        """Which elements launches touch."""
        return Accesses(self.plain.accesses)

    def is_stored(self, argument: int) -> bool:
        """Whether the kernel stores to an argument."""
        return self.plain.arguments[argument].stored or argument in self.spec.settled

    def fills(self, argument: int, tensor, leaves, grid) -> bool:
        """Whether a launch is known to store to each element of an argument, laid out as this
        tensor, of which it reads nothing.
        """
        if self.plain.arguments[argument].loaded:
            return False
        # All stores to an argument have one check.
        check = next((s.fills for s in self.plain.stores if s.argument == argument), None)
        return check is not None and check.holds(tensor.shape, tensor.stride(), leaves, grid)

    def with_tangents(self, arguments: frozenset[int]) -> KernelState:
        """Return the state of the kernel that computes tangents, too, from those of arguments.

        After some sets, it is that of one for all that came: it gets zeros for what does not move.
        """
        if self.spec.settling is not None:
            raise AutodiffError(
                f"kernel {self.spec.function.__name__!r}: of what atomic maxima, minima and "
                "exchanges leave, there are tangents and second derivatives, but no tangents of "
                "tangents"
            )
        found = self._with_tangents.get(arguments)
        if found is not None:
            return found
        if len(self._with_tangents) >= _SETS:
            every = arguments.union(*self._with_tangents)
            if every != arguments:
                # Another argument may have no tangent in this kernel.
                with contextlib.suppress(NoTangents):
                    return self.with_tangents(every)
        with self.lock:
            spec = WithTangents(self.spec, arguments, self._rules, self.options.launch)
            state = KernelState(spec, self.options, self.atomics)
            state.outputs = state.plain.outputs
            return self._with_tangents.setdefault(arguments, state)

    @functools.cached_property
    def _exchanges(self) -> list[str]:
        """The lines of exchanges of floats."""
        return lines_of(self.spec.ttir, _EXCHANGE.findall(self.spec.ttir))

    def refuse_another_run(self, grid) -> None:
        """Raise if the kernel may leave something else when it runs again: another program may be
        the last one to exchange a float.
        """
        if math.prod(grid) > 1 and self._exchanges:
            raise AutodiffError(
                f"kernel {self.spec.function.__name__!r} exchanges floats "
                f"({', '.join(self._exchanges)}), and "
                "which program is last differs from run to run. Second derivatives, and those of "
                "torch.func, run it again, and would be of what another program has left: take "
                "first ones by forward_ad, or by autograd, or let one program store the result"
            )

    def refuse_settling(self, why: str) -> None:
        """Raise if a gradient of tangents is wanted that are not the kernel's alone."""
        if self.spec.settling is not None:
            raise AutodiffError(
                f"kernel {self.spec.function.__name__!r} leaves tangents of an atomic maximum, "
                f"minimum or exchange, which cannot be differentiated here: {why}"
            )

    def pushing(self, arguments: frozenset[int]) -> Callable[[str], Pushed]:
        """Return what derives, of TTIR of the kernel, the one that computes tangents, too."""
        return lambda ttir: pushed(self.spec, ttir, arguments, self._rules)

    def moves(self, argument: int) -> bool:
        """Whether the kernel stores tangents of one of its primal's arguments."""
        place = self.spec.place_of_tangent(argument)
        return place is not None and self.is_stored(place)

    @property
    def tunes(self) -> bool:
        """Whether options of backwards are measured; not with bounds checks."""
        return self.options.tunes and not self.checks_bounds

    @property
    def forward_configs(self) -> tuple[tuple[int, int], ...]:
        """The stages and warps in the forward's configurations."""
        return self.options.forward_configs

    def tape_limit(self, device) -> int:
        """Return how many bytes the tapes of one backward may take."""
        limit = self.options.tape_limit
        return default_limit(device) if limit is None else limit

    def choose(self, request: PlanRequest, facts: Facts) -> ChosenPlan:
        """Return a plan that suits a launch: that of a request, or of changed requests.

        This ends: no request comes twice, and there are finitely many, since they consist of flags,
        sets of arguments, and lengths of axes with at most 2^20 lanes in all.
        """
        scalars: set[int] = set()
        asked: set[PlanRequest] = set()
        objections: dict[int, str] = {}
        unsuited = None
        forbidden = self.atomics == FORBIDDEN
        while request not in asked:
            asked.add(request)
            executable_plan = self.executable_plan(request)
            plan = executable_plan.plan
            scalars |= plan.used_arguments()
            suits = Suitability(executable_plan, facts, forbidden, self.tape_limit(facts.device))
            found = suits.next()
            if not found:
                choice = request, frozenset(scalars), objections, unsuited
                return ChosenPlan(suits.executable_plan, suits.facts, *choice)
            if any(entry.key is None for entry in found):
                raise determinism.refused(self.spec, plan, suits.failed, suits.repeated)
            objections |= suits.failed_among(found)
            if any(entry.fails == "launch" for entry in found):
                unsuited = plan.launch
            request = request.changed(suits.changes(found))
        raise PlanError(f"kernel {self.spec.name!r}: plans say to ask for what was asked before")

    def execution(self, wanted, grid, leaves, foreseen=True) -> Execution:
        """Return how to run a launch that wants the gradients of arguments `wanted`.

        It is planned for the outputs that are expected to have gradients, or for all of them if
        that is not `foreseen`, as in a graph.
        """
        # When a checkpoint's forward is run again, hooks have to save the same tensors.
        expected = self._expected.get(wanted) if foreseen and not saves_by_hooks(True) else None
        family = self._families.get(wanted)
        if family is not None:
            extractor, executions = family
            found = executions.get((expected, extractor.extract(grid, leaves)[0]))
            if found is not None:
                return found
        with self.lock:
            return self._new_execution(wanted, expected, grid, leaves)

    def to_differentiate(self, wanted, outputs, grid, leaves) -> Execution:
        """Return how to run a launch if gradients of these outputs are differentiated again."""
        asked = ("again", outputs)
        with self.lock:
            family = extractor, executions = self._family(wanted)
            facts_key, aliasing = extractor.extract(grid, leaves)
            found = executions.get((asked, facts_key))
            if found is not None:
                return found
            extractor.validate(leaves, self.spec.target)
            facts = Facts(extractor, grid, leaves, aliasing)
            request = self.first_request(wanted, facts, cotangents=outputs, again=True)
            found = Execution(self, wanted, self.choose(request, facts), facts)
            return self._kept(asked, found, family, grid, leaves)

    def _kept(self, asked, found: Execution, family, grid, leaves) -> Execution:
        """Keep an execution for launches with its facts, and return it."""
        extractor, executions = family
        needed = found.needed()
        if not extractor.covers(*needed):
            self.forget(extractor, *needed)
        if len(executions) >= _MAX_EXECUTIONS:
            executions.clear()
        executions[asked, extractor.extract(grid, leaves)[0]] = found
        return found

    def _new_execution(self, wanted, expected, grid, leaves) -> Execution:
        family = extractor, executions = self._family(wanted)
        facts_key, aliasing = extractor.extract(grid, leaves)
        found = executions.get((expected, facts_key))
        if found is None and torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
            # During a capture, nothing new can be compiled.
            found = executions.get((None, facts_key))
        if found is not None:
            return found
        extractor.validate(leaves, self.spec.target)
        facts = Facts(extractor, grid, leaves, aliasing)
        found = self._planned(wanted, facts, expected)
        if not found.is_complete:
            found = self._planned(wanted, facts, None)
        if self.atomics == WARNED_OF:
            determinism.warn(self.spec, found.backward.plan)
        return self._kept(expected, found, family, grid, leaves)

    def _planned(self, wanted, facts, outputs) -> Execution:
        """Return how to run a launch for gradients of these outputs, or (None) of all."""
        chosen = self.choose(self.first_request(wanted, facts, cotangents=outputs), facts)
        return Execution(self, wanted, chosen, facts, outputs)

    def note_upstream(self, wanted, outputs: tuple[int, ...]) -> None:
        """Remember for which outputs gradients came."""
        if self.latest.get(wanted) != outputs:
            self.latest[wanted] = outputs
            self.came[wanted] = self.came.get(wanted, frozenset()).union(outputs)

    def expect(self, wanted, outputs) -> None:
        """Plan launches from now on for gradients of these outputs, and those expected before.

        Where atomics are forbidden, nothing changes: equal backwards give equal bits.
        """
        if self.atomics == FORBIDDEN:
            return
        with self.lock:
            before = self._expected.get(wanted, ())
            self._expected[wanted] = tuple(sorted({*before, *outputs}))
            self.revision += 1

    def _family(self, wanted):
        """Return what finds the facts of launches that want these gradients, and executions."""
        if wanted in self._families:
            return self._families[wanted]
        plan = self.executable_plan(self.first_request(wanted)).plan
        spec = self.spec
        extractor = FactExtractor(
            spec.name, spec.names, spec.pointers, plan.outputs, spec.descriptors, plan.accesses
        )
        family = self._families[wanted] = extractor, {}
        return family

    def forget(self, extractor: FactExtractor, *needed) -> None:
        """Add facts to an extractor; executions that were found without are dropped."""
        extractor.grow(*needed)
        self.revision += 1
        for own, executions in self._families.values():
            if own is extractor:
                executions.clear()

    def plans(self):
        """Return the plans asked for so far, the latest last."""
        return [executable_plan.plan for executable_plan in self._executable_plans.values()]

    def plan_of_everything(self):
        """Return the plan for all inputs and outputs, for display."""
        plan = self.plan_of_floats()
        if not plan.inputs or not plan.backward:
            raise self._nothing()
        return plan

    def plan_of_floats(self, wanted=None):
        """Return the plan for all outputs, if any of these holds floats, and may have a history."""
        plan = self.executable_plan(
            self.first_request(wanted, deterministic=self.atomics == FORBIDDEN)
        ).plan
        if not plan.history:
            raise self._nothing()
        return plan

    def _nothing(self) -> AutodiffError:
        return AutodiffError(
            f"kernel {self.spec.name!r} has nothing to differentiate: no floating-point "
            "argument that it stores to depends on one that it loads"
        )
