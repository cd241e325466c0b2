"""A launch as a function of tensors, with derivatives of every order.

Let y = f(x) be what a launch leaves in the tensors that it writes, as a function of what all of its
tensors hold before, and G(x, u) = ∂⟨u, f(x)⟩/∂x its gradient. With P(x, u) = (f(x), G(x, u)), both
derivatives of P are a P again, that of the kernel f′(x, ẋ) = (f(x), J ẋ), which computes tangents:

- The tangent of P along (ẋ, u̇) is (J ẋ, ∂⟨u̇, f⟩/∂x + ∂⟨u, J ẋ⟩/∂x): the tangents of f′, and its
  gradient by x for the cotangents u̇ of values and u of tangents.
- P is the gradient of φ(x, u) = ⟨u, f(x)⟩, by u and by x. So its Jacobian is a Hessian, which is
  symmetric: the pullback of (a, b) is the tangent along ẋ = b, u̇ = a, with its parts swapped.

So there is one class of nodes, at every order. It holds for true derivatives: a rule of the user's
that is not said to be exact has none of second order, which is an error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ..errors import ArgumentError, DoesNotFit, Miscompiled, NoHistory, NoTangents
from ..programs.dual import Dual, Moving
from ..storage.memory import (
    ALIGNMENT,
    Span,
    allocate,
    extent,
    is_non_overlapping,
    lay_out,
    restore,
    same_strides,
)
from ..storage.memory import tensor_span as own_span
from . import eager_flops
from .batches import for_each_gradient, is_older_batch
from .higher import Again, WithoutPlan
from .specialize import CompiledLaunch

Tensor = torch.Tensor


def is_aligned(tensor: Tensor) -> bool:
    """Whether a tensor's memory is aligned as Triton compiles for."""
    return tensor.data_ptr() % ALIGNMENT == 0


class Left:
    """What a launch has left in some of its arguments, if it was one on the same tensors."""

    def __init__(self, outputs: dict[int, Tensor], inputs: dict[int, Tensor]):
        self._outputs = {i: (t.detach(), t._version) for i, t in outputs.items()}
        self._inputs = {i: t.data_ptr() for i, t in inputs.items()}

    def outputs(self, given: dict[int, Tensor], others) -> dict[int, Tensor]:
        """Return tensors with the content that a launch on the `given` tensors leaves, by argument,
        as far as they were not changed since; not for the arguments `others`.
        """
        if any(given[i].data_ptr() != address for i, address in self._inputs.items()):
            return {}
        return {
            i: tensor
            for i, (tensor, version) in self._outputs.items()
            if tensor._version == version and i not in others
        }


class PureLaunch:
    """A launch of one compiled kernel, whose tensors are parameters.

    `slots` are the arguments that are tensors, `written` those of them that the kernel stores to.
    `start` runs a launch as a node of autograd, if a gradient is wanted.
    """

    def __init__(self, start: Callable, state, grid, leaves):
        self.start, self.state, self.grid = start, state, grid
        self.leaves = [None if isinstance(x, Tensor) else x for x in leaves]
        self.slots = tuple(i for i in state.spec.pointers if isinstance(leaves[i], Tensor))
        self.arguments, self.accesses = state.plain.arguments, state.accesses
        self.written = tuple(filter(state.is_stored, self.slots))
        # How the kernel addresses them: strides are numbers among its arguments.
        self.strides = {i: leaves[i].stride() for i in self.slots}
        # Those whose memory is aligned, which Triton compiles for.
        self.aligned = frozenset(i for i in self.slots if is_aligned(leaves[i]))
        # The arguments whose tangents it takes.
        self.tangents: tuple[int, ...] = ()
        # Of each argument that is a tangent, the argument that it is laid out like.
        self.like: dict[int, int] = {}
        # Of each argument, the directions (bits) that its content is a derivative along.
        self.directions = dict.fromkeys(self.slots, 0)
        self.order = 0
        # The launch that this one computes tangents of, too, and those that it is given.
        self.primal: PureLaunch | None = None
        self.given: frozenset[int] = frozenset()
        # What makes memory for written arguments whose content no result depends on.
        self.blank: dict[int, Callable[[], Tensor]] = {}
        # What a launch on the same tensors has left.
        self.left: Left | None = None
        self._derived: dict[frozenset[int], PureLaunch] = {}

    @property
    def floats(self) -> frozenset[int]:
        """The arguments that are tensors of floats."""
        return frozenset(i for i in self.slots if self.arguments[i].points_to_floats)

    def with_tangents(self, arguments: frozenset[int]) -> PureLaunch:
        """Return the launch that computes tangents, too, from those of some arguments."""
        found = self._derived.get(arguments)
        if found is None:
            state = self.state.with_tangents(arguments)
            leaves = [*self.leaves, *(None for _ in state.spec.tangents)]
            found = PureLaunch(self.start, state, self.grid, leaves)
            first = len(self.leaves)
            found.tangents = state.spec.tangents
            tangents = dict(enumerate(found.tangents, first))
            found.like = {**self.like, **tangents}
            found.slots = (*self.slots, *tangents)
            found.written = tuple(filter(state.is_stored, found.slots))
            bit = 1 << self.order
            further = {n: self.directions[i] | bit for n, i in tangents.items()}
            found.directions = {**self.directions, **further}
            found.primal, found.given = self, arguments
            found.strides = self.strides
            found.order, found.blank, found.aligned = self.order + 1, self.blank, self.aligned
            self._derived[arguments] = found
        return found

    def place(self, argument: int) -> int | None:
        """Return which argument is the tangent of another one; None if that has none."""
        return self.state.spec.place_of_tangent(argument)

    def memory(self, tensors: dict[int, Tensor]) -> list:
        """Return the arguments of a launch on these tensors, which leaves all of them as they are.

        What the kernel writes is a copy, and tangents are laid out like what they are tangents of.
        """
        leaves = list(self.leaves)
        for i in self.slots:
            if i not in self.like:
                leaves[i] = tensors[i].detach() if i in tensors else self.blank[i]()
        for i in self.slots:
            if i in self.like:
                leaves[i] = self._tangent(i, tensors.get(i), leaves)
            elif i in tensors and (i in self.written or self._is_moved(i, leaves[i])):
                leaves[i] = self._copy(i, leaves)
        return leaves

    def _is_moved(self, argument: int, tensor: Tensor) -> bool:
        """Whether a tensor is not where the kernel looks: an example may be aligned otherwise, and
        hooks on saved tensors give them other strides.
        """
        strides = self.strides[argument]
        is_there = same_strides(tensor.shape, tensor.stride(), strides) and not tensor.is_neg()
        is_there = is_there and not tensor._is_zerotensor()
        return not is_there or (argument in self.aligned and not is_aligned(tensor))

    def _copy(self, argument: int, leaves) -> Tensor:
        """Return a copy of a tensor, outside of which the kernel touches nothing, aligned."""
        tensor, strides = leaves[argument], self.strides[argument]
        has_strides = same_strides(tensor.shape, tensor.stride(), strides)
        if has_strides and self.accesses.around(argument, leaves, self.grid) is not None:
            spec = self.state.spec
            raise ArgumentError(
                f"argument {spec.names[argument]!r} of kernel {spec.name!r} is a part of a tensor, "
                "and the kernel may touch what is around it: for derivatives by torch.func, or of "
                "second order, pass the whole tensor, or a part that all accesses are in"
            )
        span = Span(0, extent(tensor.shape, strides))
        if not is_non_overlapping(tensor.shape, strides):
            return restore(tensor, strides, span)
        layout = (tensor.shape, strides, span, tensor.dtype, tensor.device)
        return allocate(*layout, zero=False).copy_(tensor)

    def _tangent(self, argument: int, given: Tensor | None, leaves) -> Tensor:
        primal = leaves[self.like[argument]]
        around = self.accesses.around(self.like[argument], leaves, self.grid)
        if given is None:
            is_filled = self.state.fills(argument, primal, leaves, self.grid)
            return new_tangent(primal, around, is_filled)
        is_own = argument in self.written
        return laid_out_tangent(given, primal, around, is_own, self.state.spec.names[argument])

    def evaluate(self, returned, wanted, tensors, cotangents: dict[int, Tensor]) -> list[Tensor]:
        """Return contents of written arguments, then gradients by those that are `wanted`: P, for
        `tensors` in the slots.
        """
        try:
            return self._evaluate(returned, wanted, tensors, cotangents)
        except NoHistory as error:
            if error.argument not in wanted:
                raise
            # It is zero by what this argument held before.
            others = tuple(i for i in wanted if i != error.argument)
            found = self.evaluate(returned, others, tensors, cotangents)
            place = len(returned) + wanted.index(error.argument)
            held = tensors[self.slots.index(error.argument)]
            return [*found[:place], torch.zeros_like(held), *found[place:]]

    def _evaluate(self, returned, wanted, tensors, cotangents) -> list[Tensor]:
        if wanted or self.primal is not None:
            # Values are there already.
            self.state.refuse_another_run(self.grid)
        given = dict(zip(self.slots, tensors, strict=True))
        with torch.set_grad_enabled(bool(wanted)):
            leaves = self.memory({i: t for i, t in given.items() if t is not None})
        if not wanted:
            with torch.no_grad():
                self.launch(leaves)
            if self.primal is not None:
                self.primal.state.higher.note_tangents(self.given, self.state, None)
            return [leaves[j] for j in returned]
        try:
            return self.by_plan(given, leaves, returned, wanted, cotangents)
        except WithoutPlan as other:
            reason = str(other)
            self.state.refuse_settling(reason)
        before = {}
        with torch.enable_grad():
            for i in wanted:
                is_written = i in self.written
                before[i] = (leaves[i].clone() if is_written else leaves[i]).requires_grad_()
                if is_written:
                    # It keeps its strides.
                    leaves[i].copy_(before[i])
                    assert leaves[i].requires_grad, "PyTorch records nothing here"
            execution = self.launch(leaves)
            if self.primal is not None:
                again = Again(tuple(wanted), self.given, self.state, (), reason, execution)
                self.primal.state.higher.note_second(again)
            pairs = [(leaves[j], u) for j, u in cotangents.items()]
            pairs = [(y, u.to(y.dtype)) for y, u in pairs if y.requires_grad]
            gradients = [None] * len(before)
            if pairs:
                gradients = torch.autograd.grad(
                    [y for y, _ in pairs],
                    list(before.values()),
                    [u for _, u in pairs],
                    allow_unused=True,
                )
        pairs = zip(gradients, before.values(), strict=True)
        gradients = [torch.zeros_like(x) if g is None else g for g, x in pairs]
        return [*(leaves[j].detach() for j in returned), *gradients]

    def by_plan(self, given, leaves, returned, wanted, cotangents: dict[int, Tensor]) -> list:
        """Return tangents of outputs, and of gradients of what this computes tangents of, from its
        plan with tangents. `leaves` are the arguments that are made of the `given` tensors.

        Raises `WithoutPlan` if that cannot be.
        """
        primal = self.primal
        if primal is None:
            raise WithoutPlan("it is a first derivative")
        if not set(wanted) <= set(primal.slots):
            raise WithoutPlan("a gradient by a tangent is wanted, too")
        count = len(primal.leaves)
        moving = dict(zip(self.tangents, leaves[count:], strict=True))
        upstream = {j: cotangents.get(self.place(j)) for j in primal.written}
        upstream = {j: u for j, u in upstream.items() if u is not None}
        moved = {j: cotangents[j] for j in primal.written if j in cotangents}
        if not upstream or not upstream.keys() >= moved.keys():
            raise WithoutPlan("the tangent of an upstream gradient came, and not the gradient")
        sets = self.state.spec.given, frozenset(moving)
        left = primal.left.outputs(given, returned) if primal.left is not None else {}
        dual = primal.dual(
            wanted, tuple(upstream), sets, bool(moved), frozenset(left), leaves[:count]
        )
        for i in dual.holding:
            leaves[i] = left[i]
        ran = dual.programs(bool(returned))
        if eager_flops.is_counting():
            eager_flops.count_dual(dual, ran, leaves[:count])
        primal.state.higher.note_second(Again(tuple(wanted), self.given, self.state, ran))
        own = [moving.get(i) for i in range(count)]
        gradients = dual.run(leaves[:count], own, upstream, moved, bool(returned))
        if returned:
            self.settle(leaves)
        found = (gradients[i] if i in gradients else torch.zeros_like(leaves[i]) for i in wanted)
        return [*(leaves[j] for j in returned), *found]

    def dual(self, wanted, outputs, sets, moves: bool, left: frozenset[int], leaves) -> Dual:
        """Return a plan with tangents of arguments, and perhaps of upstream gradients.

        `sets` are the arguments that have some before the launch, and after it, and `left` those
        that hold what it would store. Raises `WithoutPlan` if that cannot be.
        """
        execution = self.state.to_differentiate(wanted, outputs, self.grid, leaves)
        found = execution.duals.get((sets, moves, left))
        if found is None:
            found = execution.why_not_dual() or self._new_dual(execution, sets, moves, left)
            execution.duals[sets, moves, left] = found
        if isinstance(found, str):
            raise WithoutPlan(found)
        return found

    def _new_dual(self, execution, sets, moves: bool, left: frozenset[int]) -> Dual | str:
        """Return a plan with tangents; a text that says why not, if there is none."""
        read = execution.plan.reread()
        try:
            found = Dual(execution, Moving(*sets, moves, read, left, self.state.rules))
            found.compile()
        except (NoTangents, DoesNotFit, Miscompiled) as error:
            # What has no tangent in a backward may have one in the forward, which is differentiated
            # in reverse then. So it is where a kernel with tangents is too large for a processor,
            # or for a compiler.
            return str(error)
        return found

    def launch(self, leaves: list):
        """Run it as a node of autograd, if a gradient is wanted; returns the execution then."""
        spec = self.state.spec
        values = spec.values_of(leaves)
        launch = CompiledLaunch(spec.function, spec.kernel, self.grid, values)
        execution = self.start(launch, self.state)
        self.settle(leaves)
        return execution

    def settle(self, leaves: list) -> None:
        """Compute what is known of tangents when all programs have run."""
        settling = self.state.spec.settling
        if settling is not None:
            settling.launch(self.grid, leaves)


def new_tangent(primal: Tensor, around, is_filled: bool) -> Tensor:
    """Return a tangent of zeros, addressed as its primal, or memory for one that a launch fills.

    `around` is the span that the kernel touches, if that is more than the tensor.
    """
    layout = primal.shape, primal.stride(), around or own_span(primal), primal.dtype
    return allocate(*layout, primal.device, zero=around is not None or not is_filled)


def laid_out_tangent(given: Tensor, primal: Tensor, around, is_own: bool, name: str) -> Tensor:
    """Return a tangent addressed as its primal; a copy, if it is to be its `own`.

    `around` is the span that the kernel touches, if that is more than the tensor.
    """
    shape, strides, dtype = primal.shape, primal.stride(), primal.dtype
    span = around or own_span(primal)
    if given.shape != shape or given.device != primal.device:
        raise ArgumentError(
            f"the {name} has shape {tuple(given.shape)} on {given.device}, and should have "
            f"{tuple(shape)} on {primal.device}"
        )
    if is_non_overlapping(shape, strides):
        laid = lay_out(given, shape, strides, dtype, span)
        if laid is not given or not is_own:
            return laid
        return allocate(shape, strides, span, dtype, primal.device, zero=False).copy_(given)
    # Elements that share memory have one tangent, that of the first: a gradient, whose cotangent
    # this may be, is there, too.
    flat = allocate(shape, strides, span, dtype, primal.device, zero=True)
    held = flat
    for dim, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        if size > 1 and stride == 0:
            held, given = held.narrow(dim, 0, 1), given.narrow(dim, 0, 1)
    held.copy_(given)
    return flat


class Values(torch.autograd.Function):
    """P(x, u): values of a launch, and gradients of them.

    Takes a launch; `returned`, the written arguments whose content is returned; `wanted`, those
    whose gradient is; `upstream`, those that the cotangents are of; `known`, gradients that have
    been computed, or None; and tensors: what `slots` hold, then cotangents. Returns contents, then
    gradients.
    """

    @staticmethod
    def forward(launch, returned, wanted, upstream, known, *tensors):
        if known is not None:
            return tuple(known)
        count = len(launch.slots)
        cotangents = dict(zip(upstream, tensors[count:], strict=True))
        found = launch.evaluate(returned, wanted, tensors[:count], cotangents)
        # A gradient may be the upstream one itself, but PyTorch takes no input for a result.
        given = {id(t) for t in tensors}
        return tuple(t.view_as(t) if id(t) in given else t for t in found)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.launch, ctx.returned, ctx.wanted, ctx.upstream, _, *tensors = inputs
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        whole = [t for t in output if not t.is_floating_point()]
        if whole:
            ctx.mark_non_differentiable(*whole)

    @staticmethod
    def backward(ctx, *cotangents):
        if any(u is not None and is_older_batch(u) for u in cotangents):
            return for_each_gradient(functools.partial(Values.backward, ctx), cotangents)
        slots = ctx.launch.slots
        count = len(ctx.returned)
        of_values = dict(zip(ctx.returned, cotangents[:count], strict=True))
        along = dict(zip(ctx.wanted, cotangents[count:], strict=True))
        needed = ctx.needs_input_grad[5:]
        by_slots = tuple(i for i, n in zip(slots, needed, strict=False) if n)
        by_upstream = tuple(j for j, n in zip(ctx.upstream, needed[len(slots) :], strict=True) if n)
        gradients = _tangent(ctx, along, of_values, by_upstream, by_slots)
        places = {("u", j): g for j, g in zip(by_upstream, gradients, strict=False)}
        places |= {
            ("x", i): g for i, g in zip(by_slots, gradients[len(by_upstream) :], strict=True)
        }
        return (
            *(None,) * 5,
            *(places.get(("x", i)) for i in slots),
            *(places.get(("u", j)) for j in ctx.upstream),
        )

    @staticmethod
    def jvp(ctx, *tangents):
        tangents = tangents[5:]
        slots = ctx.launch.slots
        along = dict(zip(slots, tangents, strict=False))
        of_upstream = dict(zip(ctx.upstream, tangents[len(slots) :], strict=True))
        return tuple(_tangent(ctx, along, of_upstream, ctx.returned, ctx.wanted))

    @staticmethod
    def vmap(info, in_dims, launch, returned, wanted, upstream, known, *tensors):
        dims = in_dims[5:]
        examples = [
            Values.apply(
                launch,
                returned,
                wanted,
                upstream,
                None,
                *(
                    t if dim is None else t.select(dim, n)
                    for t, dim in zip(tensors, dims, strict=True)
                ),
            )
            for n in range(info.batch_size)
        ]
        batched = [
            launch.directions[i]
            for i, dim in zip(launch.slots, dims, strict=False)
            if dim is not None
        ]
        # A value is the same for all examples, if only tangents differ.
        same = [all(bits & ~launch.directions[j] for bits in batched) for j in returned] + [
            False
        ] * len(wanted)
        results = [
            parts[0] if is_same else torch.stack(parts)
            for parts, is_same in zip(zip(*examples, strict=True), same, strict=True)
        ]
        return tuple(results), tuple(None if is_same else 0 for is_same in same)


def _tangent(ctx, along: dict[int, Any], of_upstream: dict[int, Any], values, wanted) -> list:
    """Return the tangent of P along tangents of slots, and of cotangents: that of `values`, then
    that of the gradients by `wanted`. Absent tangents are None.
    """
    saved = ctx.saved_tensors
    launch, slots = ctx.launch, ctx.launch.slots
    held, given = saved[: len(slots)], dict(zip(ctx.upstream, saved[len(slots) :], strict=True))
    cotangents = {j: u for j, u in of_upstream.items() if u is not None}
    along = {i: t for i, t in along.items() if t is not None and i in launch.floats}
    if not along:
        gradients = _applied(launch, (), wanted, held, cotangents)
        return [*(None for _ in values), *gradients]
    derived = launch.with_tangents(frozenset(along))
    cotangents |= {derived.place(j): u for j, u in given.items()}
    tangents = (along.get(i) for i in derived.tangents)
    returned = [derived.place(j) for j in values]
    found = [place for place in returned if place is not None]
    results = iter(_applied(derived, found, wanted, (*held, *tangents), cotangents))
    return [*(None if place is None else next(results) for place in returned), *results]


def _applied(launch, returned, wanted, tensors, cotangents) -> tuple:
    """Return P for contents of slots and for cotangents, by argument."""
    if not returned and not (wanted and cotangents):
        return (None,) * len(wanted)
    call = (launch, tuple(returned), tuple(wanted), tuple(cotangents), None)
    return Values.apply(*call, *tensors, *cotangents.values())
