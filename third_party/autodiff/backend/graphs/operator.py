"""Launches as operators of PyTorch: they take tensors and numbers, and return what is written.

An operator is functional. It does not change its arguments, and returns the contents that the
kernel would write to them. So PyTorch can trace, differentiate, and reorder it. In a graph of
AOTAutograd, the operator is replaced by its implementation: it copies the outputs, and launches on
the copies. Inductor leaves out a copy if the original is not used any more.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import threading

import torch
from torch.utils._python_dispatch import _disable_current_modes
from triton.runtime.jit import MockTensor

from ..checking.expr import evaluate
from ..checking.spaces import are_inside, touched
from ..errors import AutodiffError
from ..launching.duals import has_tangents, note_graph
from ..launching.nodes import each_launch, recording_history
from ..launching.state import KernelState
from ..launching.transformed_operators import under_transforms
from ..library import native
from ..rules.requests import rules_for
from ..rules.user_rules import generation
from ..storage.memory import extent
from . import derivatives
from .arguments import assembled, identity, paths
from .facts import StandIn, Unforeseen, hints, memory_of, trial
from .gradient import (
    Recorded,
    copy_of,
    gradient_like,
    have_places_in_common,
    like,
    room_for_gradient,
    same_layout,
)
from .kept import Held, Runs, faked, gradients, keep
from .kernels import InlinedForward, InlinedLaunch, refuse_long
from .operator_flops import count, count_again
from .stores import refuse_around, stay_inside

Tensor = torch.Tensor
NAMESPACE = "triton_autodiff"
_ARGUMENTS = "SymInt[] ints, float[] floats, SymInt[] grids"
# Numbers of tensors: those with a gradient, and those that a graph holds for gradients.
_WANTED = "int[] wanted, int[] before, int[] after"
# An integer about which Triton should know nothing.
_SOME_INT = 24
_MOST_INLINED = 64
# Of how many launches an operator remembers that they store to tensors only.
_MOST_INSIDE = 1024
_lock = threading.RLock()
# Never removed: PyTorch's saved graphs refer to them by name.
_operators: dict[str, LaunchOperator] = {}


def operator_of(kernel, described) -> LaunchOperator:
    """Return the operator for launches of a differentiable kernel with arguments as described.

    `described` is their description (`arguments.py`), followed by options by name, and what a
    tuner or a heuristic chooses, as ("chosen NAME", value).
    """
    with _lock:
        known = kernel.__dict__.setdefault("_operators", {})
        key = (generation(), *((kind, type(value), identity(value)) for kind, value in described))
        if key not in known:
            known[key] = _defined(LaunchOperator(kernel, described))
        return known[key]


def _defined(made: LaunchOperator) -> LaunchOperator:
    """Return the defined operator that is equal to one that was made.

    Wrappers are compared by identity: of what they do, a name contains a part.
    """
    name = made.name
    for number in itertools.count(2):
        known = _operators.get(made.name)
        if known is None:
            made.define()
            _operators[made.name] = made
            return made
        if known.runs_like(made):
            return known
        made.name = f"{name}_{number}"


def rereads(name: str) -> list[int]:
    """Return the numbers of an operator's tensors that its gradient may read again."""
    operator = _operators.get(name)
    if operator is None:
        return []
    places = operator.places(operator.state)
    return [places[i] for i in operator._plan.reread()]


class LaunchOperator:
    """The operators for launches of one kernel that only differ in tensors and numbers.

    `outputs` are the numbers, among their tensors, of those that the kernel writes to.
    """

    def __init__(self, kernel, described):
        self.kernel = kernel
        names = kernel._resolver.names
        rest = iter(described)
        self._paths = paths(rest, len(names))
        further = list(rest)
        self._parameters = described[: len(described) - len(further)]
        self._options = {k: v for k, v in further if not k.startswith("chosen ")}
        self._chosen = {k.removeprefix("chosen "): v for k, v in further if k.startswith("chosen ")}
        # The types of the tensors.
        self.dtypes = [value for kind, value in self._parameters if kind == "tensor"]
        self.state = self._state()
        self._inlined: dict = {}
        self._inside: set = set()
        self.runs = Runs(self.state.spec.name)
        self._plan = plan = self._plan_of_launches()
        places = self.places(self.state)
        self.outputs = tuple(places[j] for j in plan.outputs)
        # The tensors whose contents the kernel reads.
        self.read = frozenset(places[i] for i, a in enumerate(plan.arguments) if a.loaded)
        # PyTorch saves compiled operators by name, so the name has to contain everything that
        # matters.
        resolver = kernel._resolver
        decides = (
            resolver.identity(),
            resolver.options,
            resolver.options.atomics(),
            resolver.configurations,
            [(kind, identity(value)) for kind, value in described],
            self._rules,
            native().version(),
        )
        digest = hashlib.sha256(repr(decides).encode()).hexdigest()[:12]
        self.name = f"{resolver.function.__name__}_{digest}"

    def runs_like(self, other: LaunchOperator) -> bool:
        """Whether an operator with the same name launches the same."""
        one, two = self.kernel._resolver, other.kernel._resolver
        is_plain = not one.wrapped and not two.wrapped
        return is_plain or one.kernel_and_options == two.kernel_and_options

    @property
    def _rules(self) -> list:
        spec = self.state.spec
        return rules_for(spec.ttir, spec.target, spec.options)

    def _state(self) -> KernelState:
        """Return the state of the kernel for some numbers."""
        resolver = self.kernel._resolver
        numbers = map(itertools.repeat, (_SOME_INT, 0.5))
        values = self.values(map(MockTensor, self.dtypes), *numbers)
        arguments = dict(zip(resolver.names, values, strict=True)) | self._chosen
        launch = resolver.resolve((), {**arguments, **self._options}, (1, 1, 1))
        return KernelState.of(launch.kernel, launch.function, resolver.options)

    def _plan_of_launches(self):
        """Return a plan that says what launches read and write.

        Which inputs are wanted is not known here: of all of them, there may be no gradient.
        """
        self._is_differentiable = True
        try:
            return self.state.plan_of_floats()
        except AutodiffError:
            plan = self.state.plan_of_floats(wanted=())
            self._is_differentiable = False
            return plan

    def define(self) -> None:
        """Register the operators with PyTorch."""
        library = torch.library.Library(NAMESPACE, "FRAGMENT")
        self._library = library
        full = f"{NAMESPACE}::{self.name}"

        def define(suffix, schema, implementation, fake, tags=()):
            tags = (torch.Tag.needs_exact_strides, *tags)
            library.define(f"{self.name}{suffix}{schema}", tags=tags)
            library.impl(f"{self.name}{suffix}", implementation, "CompositeExplicitAutograd")
            torch.library.register_fake(f"{full}{suffix}", fake, lib=library)
            return getattr(getattr(torch.ops, NAMESPACE), f"{self.name}{suffix}").default

        schema = f"(Tensor[] tensors, {_ARGUMENTS}) -> Tensor[]"
        self.operator = define("", schema, self._run, self._written)
        library.impl(self.name, self._recorded, "Autograd")
        schema = f"(Tensor[] read, Tensor(a!)[] written, {_ARGUMENTS}) -> ()"
        self.launch = define("_launch", schema, self._launch, lambda *_: None)
        # At run time, the host chooses how they run, and how much is saved.
        unsafe = (torch.Tag.cudagraph_unsafe,)
        schema = f"(Tensor[] tensors, {_ARGUMENTS}, {_WANTED}) -> Tensor[]"
        self.keep = define("_keep", schema, self._keep, self._kept, unsafe)
        schema = (
            "(Tensor?[] upstream, Tensor[] tensors, Tensor[] written, Tensor[] kept, "
            f"{_ARGUMENTS}, {_WANTED}) -> Tensor[]"
        )
        self.gradient = define("_gradient", schema, self._gradient, _empty_gradients, unsafe)
        from torch._subclasses.functional_tensor import FunctionalTensorMode

        of_derivatives = (
            functools.partial(f, self) for f in (derivatives.evaluate, derivatives.rooms)
        )
        self.derivative = define(
            "_derivative", derivatives.schema(_ARGUMENTS), *of_derivatives, unsafe
        )
        differentiable = functools.partial(derivatives.differentiable, self)
        under_transforms(library, self.name, self.operator, differentiable)
        again = functools.partial(derivatives.again, self)
        under_transforms(library, f"{self.name}_derivative", self.derivative, again)
        self._count()
        torch.library.register_torch_dispatch(
            full, FunctionalTensorMode, self._functionalized, lib=library
        )

    def __repr__(self):
        return f"operator {self.name!r}"

    def _count(self) -> None:
        """Tell PyTorch's counter the number of operations of the operators."""
        from torch.utils.flop_counter import register_flop_formula

        def formula(operator):
            return register_flop_formula(operator.overloadpacket, get_raw=True)

        @formula(self.operator)
        @formula(self.keep)
        def count_forward(tensors, ints, floats, grids, *_, out_val=None):
            return count(self, (tensors, ints, floats, grids), {})

        @formula(self.launch)
        def count_launch(read, written, *numbers, out_val=None):
            return count(self, (self.joined(read, written), *numbers), {})

        @formula(self.gradient)
        def count_gradient(_, tensors, written, kept, *others, out_val=None):
            *numbers, wanted, _, _ = others
            forward = 0 if kept else count(self, (tensors, *numbers), {})
            return forward + count(self, (tensors, *numbers), {}, wanted)

        @formula(self.derivative)
        def count_derivative(*args, out_val=None):
            return count_again(self, functools.partial(derivatives.evaluate, self), args)

    def preview(self, args, kwargs, note) -> None:
        """Preview a launch without running it; `note` is told of it."""
        tensors, ints, floats, grids = args
        kernel = self.kernel._previewed(note)
        kernel.run(**self._given(tensors, ints, floats), grid=self._grid(grids))

    def values(self, tensors, ints, floats) -> list:
        """Return the values of the kernel's parameters."""
        described = iter(self._parameters)
        following = {"tensor": iter(tensors), "int": iter(ints), "float": iter(floats)}
        names = self.kernel._resolver.names
        return [assembled(described, following) for _ in names]

    def eager(self, tensors, ints, floats, grids) -> list[Tensor]:
        """Launch on copies of the outputs, as an autograd node if a gradient is wanted; return the
        copies.
        """
        copies = {place: copy_of(tensors[place]) for place in self.outputs}
        given = [copies.get(place, tensor) for place, tensor in enumerate(tensors)]
        self._launch_on(given, ints, floats, grids)
        return list(copies.values())

    def _arguments(self, tensors, ints, floats) -> dict:
        values = self.values(tensors, ints, floats)
        return dict(zip(self.kernel._resolver.names, values, strict=True))

    def _given(self, tensors, ints, floats) -> dict:
        """Return the arguments of a launch, except those that a tuner or a heuristic chooses."""
        arguments = self._arguments(tensors, ints, floats)
        chosen = {name for name in self._chosen if arguments.get(name) is None}
        return {n: v for n, v in arguments.items() if n not in chosen} | self._options

    def _launch_on(self, tensors, ints, floats, grids) -> None:
        self._stay_inside(tensors, ints, floats, grids)
        self.kernel.run(**self._given(tensors, ints, floats), grid=self._grid(grids))

    def resolved(self, tensors, ints, floats, grids):
        """Return the launch of the operator with tensors that have memory."""
        self._stay_inside(tensors, ints, floats, grids)
        found: list = []
        given, grid = self._given(tensors, ints, floats), self._grid(grids)
        each_launch(self.kernel._resolver, found.append, (), given, grid)
        return found[0]

    def _grid(self, grids):
        if len(grids) == 3:
            return tuple(grids)
        return lambda meta: tuple(grids[3 * self._place(meta) :][:3])

    def _place(self, meta) -> int:
        """Return the number of the configuration that a tuner chose, by a launch's arguments."""
        for place, config in enumerate(self.kernel._resolver.configurations):
            if all(meta.get(name) == value for name, value in config.items()):
                return place
        raise AssertionError("a tuner chose what is none of its configurations")

    def inlined(self, wanted, tensors, ints, floats, grids):
        """Return a launch as Triton kernels, with gradients for the tensors that are `wanted`, and
        its grid.

        None if it has to be an opaque operator, which chooses its plan when it runs.
        """
        if not _is_functionalized():
            return None
        try:
            launch, grid = self._foreseen(tensors, ints, floats, grids)
            state = KernelState.of(launch.kernel, launch.function, self.kernel._resolver.options)
            leaves = state.spec.flatten(launch.values)
            refuse_long(state.spec, leaves)
            values = self.state.spec.flatten(self.values(tensors, ints, floats))
            if len(grids) == 3 and not stay_inside(self._plan.stores, values, grids):
                return None
            places = self.places(state)
            arguments = tuple(i for i in state.spec.pointers if places[i] in wanted)
            kind, of = InlinedForward, state
            if wanted:
                of = state.execution(arguments, launch.grid, leaves, foreseen=False)
                kind = InlinedLaunch
            if len(self._inlined) >= _MOST_INLINED:
                # Graphs keep those that they use.
                self._inlined.clear()
            if of not in self._inlined:
                self._inlined[of] = kind(of)
            self._inlined[of].check(launch.values, launch.grid)
            return self._inlined[of], tuple(grid)
        except (Unforeseen, AutodiffError, AssertionError):
            return None

    def _foreseen(self, tensors, ints, floats, grids):
        """Return a launch like the traced one, and its grid."""
        ints, floats = hints(ints), hints(floats)
        resolver = self.kernel._resolver
        free = (
            name
            for name, fixed in zip(resolver.names, resolver.constants, strict=True)
            if not fixed
        )
        if not resolver.is_free_to_try or not self._chosen.keys().isdisjoint(free):
            # A graph does not call hooks before launches, nor does it choose numbers.
            raise Unforeseen
        if len(resolver.configurations) == 1:
            stand_ins = [StandIn(t, n) for n, t in enumerate(tensors)]
            arguments = self._arguments(stand_ins, ints, floats) | self._chosen
            return resolver.resolve((), {**arguments, **self._options}, hints(grids)), grids
        if any(not t.is_floating_point() for t in tensors):
            # The values that it is tried with must not matter.
            raise Unforeseen
        found = []
        with _disable_current_modes(), torch.no_grad():
            given = self._given(map(trial, tensors), ints, floats)
            call = resolver.launcher(self._grid(hints(grids)))
            resolver.through_wrappers(found.append, call, (), given)
        place = self._place(dict(zip(resolver.names, found[0].values, strict=True)))
        grid = grids[3 * place :][:3] if len(grids) > 3 else grids
        return found[0], grid

    def places(self, state) -> dict[int, int]:
        """Return the tensor numbers by the plan's arguments."""
        spec = state.spec
        return {i: self._paths.index(spec.paths[i]) for i in spec.pointers}

    def _run(self, tensors, ints, floats, grids) -> list[Tensor]:
        with torch.no_grad():
            return self.eager(tensors, ints, floats, grids)

    def meeting(self, tensors, ints, floats, grids) -> set[int]:
        """Return the numbers of tensors that are only read, but share a storage with a written one.

        Raises an `AutodiffError` if the kernel may load through one what it stores through another,
        or stores around one.
        """
        memory = [memory_of(tensor) for tensor in tensors]
        changing = {memory[place] for place in self.outputs}

        def meet(one, other):
            shared = one != other and memory[one] == memory[other]
            return shared and have_places_in_common(tensors[one], tensors[other])

        if any(meet(a, b) for a in self.outputs for b in self.outputs):
            raise self._refusal("two of the tensors that it writes to share memory")
        found = {
            place
            for place in range(len(tensors))
            if place not in self.outputs and memory[place] in changing
        }
        places = self.places(self.state)
        leaves = self.state.spec.flatten(self.values(tensors, ints, floats))
        with contextlib.suppress(Unforeseen):
            self._stay_inside(tensors, hints(ints), hints(floats), hints(grids))
        with contextlib.suppress(Unforeseen):
            self._reads_inside(found, tensors, hints(ints), hints(floats), hints(grids))
        for hazard in self._plan.hazards if found else ():
            read, written = places[hazard.read], places[hazard.written]
            excluded = hazard.unless is not None and all(
                evaluate(a, leaves, grids) == evaluate(b, leaves, grids) for a, b in hazard.unless
            )
            same = same_layout(tensors[read], tensors[written])
            if meet(read, written) and not (same and excluded):
                raise self._refusal("it may load through one tensor what it stores through another")
        return found

    def _stay_inside(self, tensors, ints, floats, grids) -> None:
        """Raise if the kernel stores around a tensor: it gets a copy of that, with nothing around.

        A graph with symbols looks once more when it launches. Tuned kernels are not looked at.
        """
        if len(grids) != 3:
            return
        outputs = (tensors[place] for place in self.outputs)
        layouts = [(hints(t.shape), hints(t.stride())) for t in outputs]
        key = (tuple(ints), tuple(grids), *layouts)
        if key in self._inside:
            return
        spec = self.state.spec
        leaves = spec.flatten(self.values(tensors, ints, floats))
        refuse_around(spec, self._plan.stores, leaves, grids)
        if len(self._inside) >= _MOST_INSIDE:
            self._inside.clear()
        self._inside.add(key)

    def _reads_inside(self, copied, tensors, ints, floats, grids) -> None:
        """Raise if the kernel reads around a tensor that is `copied`, or written to: a graph gives
        it memory with nothing around.
        """
        if len(grids) != 3:
            return
        places, spec = self.places(self.state), self.state.spec
        leaves = spec.flatten(self.values(tensors, ints, floats))
        for i, spaces in self._plan.accesses.items():
            if places[i] not in copied and places[i] not in self.outputs:
                continue
            tensor = tensors[places[i]]
            ends = touched(spaces, leaves, grids)
            size = extent(hints(tensor.shape), hints(tensor.stride()))
            if not are_inside(ends, size):
                raise self._refusal(
                    f"it reads around argument {spec.names[i]!r}, a part of a tensor that it "
                    "writes to"
                )

    def _refusal(self, why: str) -> AutodiffError:
        name = self.kernel._resolver.function.__name__
        return AutodiffError(f"kernel {name!r} cannot be traced: {why}; clone one of the tensors")

    def _written(self, tensors, ints, floats, grids) -> list[Tensor]:
        self.meeting(tensors, ints, floats, grids)
        return [like(tensors[place]) for place in self.outputs]

    def _launch(self, read, written, ints, floats, grids) -> None:
        with torch.no_grad():
            self._launch_on(self.joined(read, written), ints, floats, grids)

    def joined(self, read, written) -> list[Tensor]:
        """Return all tensors of a launch, from those that are only read and those that are
        written.
        """
        read, outputs = iter(read), dict(zip(self.outputs, written, strict=True))
        places = range(len(self._paths))
        return [outputs[n] if n in outputs else next(read) for n in places]

    def _recorded(self, tensors, ints, floats, grids) -> list[Tensor]:
        """Launch the operator with autograd history, if gradients are wanted."""
        if has_tangents(tensors):
            note_graph()
            return derivatives.differentiable(self, tensors, ints, floats, grids)
        wanted = tuple(n for n, t in enumerate(tensors) if t.requires_grad)
        if not (torch.is_grad_enabled() and self.with_history(wanted)):
            with torch._C._AutoDispatchBelowAutograd():
                return self.operator(tensors, ints, floats, grids)
        if not torch._C._len_torch_dispatch_stack():
            return self.eager(tensors, ints, floats, grids)
        numbers = tuple(ints), tuple(floats), tuple(grids)
        return list(Recorded.apply(self, numbers, wanted, *tensors))

    def _given_to(self, places) -> tuple[int, ...]:
        """Return the arguments for which a launch is given some of its tensors."""
        return tuple(i for i, place in self.places(self.state).items() if place in places)

    def with_history(self, wanted) -> set[int]:
        """Return the numbers of outputs that have a history if the tensors `wanted` have one.

        Raises an `AutodiffError` if there is no gradient of these.
        """
        places, arguments = self.places(self.state), self._given_to(wanted)
        found = {places[j] for j in self._plan.with_history(arguments)}
        if found and not self._is_differentiable:
            self.state.executable_plan(self.state.first_request(arguments))
        return found

    def held(self, wanted) -> Held:
        """Return which tensors a graph keeps for the gradients of the tensors that are `wanted`."""
        plan = self.state.executable_plan(self.state.first_request(self._given_to(wanted))).plan
        return Held.of(plan, self.places(self.state))

    def _keep(self, tensors, ints, floats, grids, wanted, before, after) -> list[Tensor]:
        """Launch; returns the outputs, and what the backward needs and the graph does not hold."""

        def same(tensor):
            return tensor

        # Inside of these hooks, tensors are saved for gradients of any outputs.
        hooks = torch.autograd.graph.saved_tensors_hooks(same, same)
        with torch.enable_grad(), recording_history(), hooks:
            leaves = [
                t.detach().requires_grad_() if n in wanted else t for n, t in enumerate(tensors)
            ]
            written = self.eager(leaves, ints, floats, grids)
        nodes = (t.grad_fn for t in written if hasattr(t.grad_fn, "execution"))
        kept = keep(self, next(nodes, None), Held(tuple(before), tuple(after)), tensors[0].device)
        return [*(t.detach() for t in written), *kept]

    def _kept(self, tensors, ints, floats, grids, wanted, before, after) -> list[Tensor]:
        written = self._written(tensors, ints, floats, grids)
        return [*written, *faked(written[0].device)]

    def _gradient(
        self, upstream, tensors, written, kept, ints, floats, grids, wanted, before, after
    ) -> list[Tensor]:
        """Return gradients of the tensors that are wanted; launch first if nothing was saved."""
        if not kept:
            after = self.outputs
            found = self._keep(tensors, ints, floats, grids, wanted, before, after)
            written, kept = found[: len(after)], found[len(after) :]
        held = {n: tensors[n] for n in before}, dict(zip(after, written, strict=True))
        given = dict(zip(self.outputs, upstream, strict=True))
        with torch.no_grad(), torch.cuda.device_of(tensors[0]):
            found = gradients(self, given, *held, kept)
        return [gradient_like(tensors[n], found.get(n), is_own=True) for n in wanted]

    def _functionalized(self, mode, operator, types, args, kwargs):
        """Return the operator's implementation for AOTAutograd's trace: a launch on copies."""
        if not _looks_into_operators():
            return mode.__torch_dispatch__(operator, types, args, kwargs)
        tensors, ints, floats, grids = args
        with mode:
            copies = {place: copy_of(tensors[place]) for place in self.outputs}
            inlined = self.inlined((), tensors, ints, floats, grids)
            if inlined is not None:
                kernels, grid = inlined
                given = [copies.get(place, t) for place, t in enumerate(tensors)]
                kernels.forward(self.values(given, ints, floats), grid)
            else:
                read = [t for n, t in enumerate(tensors) if n not in copies]
                self.launch(read, list(copies.values()), ints, floats, grids)
            return list(copies.values())


def _is_functionalized() -> bool:
    """Whether AOTAutograd is tracing, so that operators are replaced by their implementation."""
    functional = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FUNCTIONAL)
    return functional is not None and _looks_into_operators()


def _looks_into_operators() -> bool:
    from torch.export._trace import custom_triton_ops_decomposition_disabled

    return not custom_triton_ops_decomposition_disabled()


def _empty_gradients(
    upstream, tensors, written, kept, ints, floats, grids, wanted, before, after
) -> list[Tensor]:
    return [room_for_gradient(tensors[n]) for n in wanted]
