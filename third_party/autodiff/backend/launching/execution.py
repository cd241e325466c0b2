"""How launches with equal facts run: the forward, what is kept, and which backward suits.

An `Execution` is made once for each set of facts (`checking/facts.py`). Later launches follow its
lists.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple
from weakref import ref

import torch

from ..checking import races
from ..checking.facts import Facts
from ..compiling import tuning
from ..compiling.together import together
from ..errors import ArgumentError, NoHistory, RaceError
from ..programs.around import Spill
from ..programs.backward import Backward
from ..programs.binding import picking
from ..programs.forward import Forward
from ..programs.host_steps import BASE
from ..programs.spare import Spare, require_memory
from ..storage.layouts import read, taking_layouts
from ..storage.memory import Span, allocate, restore, shares_memory, whole
from . import eager_flops
from .blame import is_batch, refuse_batch
from .stub_results import Witness, of_thread, witness_of
from .tapes import tape_bytes

# The hooks on saved tensors, while PyTorch traces (True), too; None if there are none.
saves_by_hooks = torch._C._autograd._top_saved_tensors_default_hooks


class Left(NamedTuple):
    """What a launch leaves to its backward, beside the tensors that autograd saves.

    The `witness` is that of a stub's launch. `inputs` are tensors that the kernel reads and nothing
    saves, for second derivatives, and bases of views: weak references with versions; `scalars` the
    launch's arguments, None for pointers, and `opaque` those of pointers that are no tensors;
    `held` what the spare backward reads; `surrounded` the arguments whose whole storage is saved;
    `layouts` are those of what is saved, none if it is somewhere else by now, and `shapes` its
    shapes.
    """

    witness: Witness | None
    inputs: list
    scalars: tuple
    opaque: tuple
    held: Sequence
    surrounded: dict[int, Span]
    layouts: bytes
    shapes: list


# Calling the class takes longer.
_left = partial(tuple.__new__, Left)


def _versioned(tensor) -> tuple:
    """Return a weak reference to a tensor, and its version; None if it has none."""
    return ref(tensor), None if tensor.is_inference() else tensor._version


class Execution:
    """Forward and backward of one kernel, for launches that share their facts.

    It is `planned` for gradients of these outputs, or (None) of all. Arguments are numbers. For
    y = w · exp(x) with arguments (x, w, y, n), where x and w want a gradient, they are sorted so:

    - `wanted` (0, 1): whose gradients are wanted;
    - `dirty` (2): outputs that autograd is told to be changed in place; `views` are those that are
      part of another tensor, whose history is grafted;
    - `position` {2: 0}: the outputs with a history, and their places among the node's results;
    - `without_history`: other outputs of floats; `leaves_written`: outputs that want a gradient;
    - `slots` (0, 1, 2): the inputs of the node; behind them come the bases of those in `based`,
      for elements around these;
    - `kept` (0, 1): what the backward reads again as it is; `copied`: of what it reads the contents
      from before the launch; `reread` both; `cloned`: what changes, for second derivatives, as
      inputs with their history; `opaque`: pointers among these that are no tensors;
      `unsaved`: other inputs.
    """

    def __init__(self, state, wanted, chosen, facts: Facts, planned=None):
        self.state = state
        self.wanted = wanted
        self.request = chosen.request
        self.objections = chosen.objections
        self.unsuited = chosen.unsuited
        self.facts = facts
        self.planned = planned
        executable_plan = chosen.executable_plan
        plan = executable_plan.plan
        self.plan = plan
        self._variants: dict = {}
        # Its plan with tangents, by what has some.
        self.duals: dict = {}
        # The backwards for gradients of certain outputs, that have come before.
        self._settled: dict[tuple, Backward] = {}
        self._tunes = state.tunes
        self._tuned_backwards: dict = {}
        self._is_compiled = False
        self._check_hazards(plan, chosen.facts)
        self._classify_outputs(plan, facts)
        self.backward = Backward(executable_plan, chosen.facts, state.spec)
        self._choose_saved(plan, facts)
        # Arguments whose base, the tensor that they are a view of, gets the gradient of elements
        # around.
        around = self.backward.around.values()
        self.based = tuple(a.argument for a in around if a.base is not None)
        # Of these, the whole storage is kept; hooks on saved tensors may return just the tensor.
        known = {a.argument for a in around if a.is_known}
        self._surrounded = {i: facts.tensors[i].span for i in self.kept if i in known}
        self._saved_shapes = self.saved_shapes(self._surrounded)
        self._planned_for = planned
        if planned is not None and self.position.keys() <= set(planned):
            self.planned = None
        self.spare = None if self.planned is None else Spare.of(self)
        self._scalars = chosen.scalars
        self._judge_stores(plan, facts)
        if self.is_complete:
            self._check_history(plan if self.spare is None else self.spare.plan)
        self.forward = Forward(executable_plan, chosen.facts, state.spec, self.copied)
        # Which results are the gradients of the slots; those that are wanted come first.
        self._keys = [i if i in wanted else None for i in self.slots]
        self._keys += [(BASE, i) for i in self.based]
        self._layouts = taking_layouts()
        # How parts of a launch's arguments are picked.
        count, pointers = len(plan.arguments), state.pointer_set
        self.pick_slots = picking(self.slots)
        self._pick_kept, self._pick_dirty = picking(self.kept), picking(self.dirty)
        self._pick_opaque = picking(self.opaque)
        self._pick_unsaved = picking(self.unsaved)
        # Behind the arguments is None.
        self._pick_scalars = picking([count if i in pointers else i for i in range(count)])

    def _check_history(self, plan):
        """Raise if an output's old contents have a history in autograd that would be cut off."""
        spec = self.state.spec
        for i in self.wanted:
            if plan.arguments[i].stored and i not in plan.inputs:
                error = NoHistory(
                    f"argument {spec.names[i]!r} of kernel {spec.name!r} requires a gradient "
                    "before the launch that writes to it; the plan has none for what it held: "
                    "pass a tensor without a history, or a clone"
                )
                error.argument = i
                raise error

    def _check_hazards(self, plan, facts):
        """Raise if a value may flow from one argument to another through shared memory."""
        for hazard in plan.hazards:
            if facts.meet(hazard):
                written, read = (self.state.spec.names[i] for i in (hazard.written, hazard.read))
                raise ArgumentError(
                    f"arguments {written!r} and {read!r} of kernel {self.state.spec.name!r} share "
                    f"memory, and the kernel may load through {read!r} what it has stored through "
                    f"{written!r}: the derivative cannot follow it there. Clone one of the "
                    "tensors, or let the kernel use one argument for both"
                )

    def _classify_outputs(self, plan, facts):
        """Sort the outputs: updated in place, grafted onto their base, or just marked as
        changed, if they have no history.
        """
        spec = self.state.spec
        for a, b in facts.outputs_that_meet():
            if any(facts.tensors[j].dtype.is_floating_point for j in (a, b)):
                raise ArgumentError(
                    f"arguments {spec.names[a]!r} and {spec.names[b]!r} of kernel {spec.name!r} "
                    "share memory, and the kernel writes to both; which of its stores decides "
                    "what the memory holds cannot be told: pass separate tensors"
                )
        dirty, views, bumped = [], [], []
        with_history = plan.with_history(self.wanted)
        for j in plan.outputs:
            tensor = facts.tensors[j]
            if not tensor.is_tensor:
                if j in with_history:
                    raise ArgumentError(
                        f"argument {spec.names[j]!r} of kernel {spec.name!r} is written by the "
                        "kernel and should be a tensor to carry a gradient"
                    )
                continue
            if j not in with_history:
                bumped.append(j)
            elif shares_memory(tensor.shape, tensor.strides):
                raise ArgumentError(
                    f"argument {spec.names[j]!r} of kernel {spec.name!r} is written by the kernel, "
                    "but some of its elements share memory (it is an expanded tensor, say): clone "
                    "it before the launch"
                )
            elif tensor.is_view:
                views.append(j)
                bumped.append(j)
            else:
                dirty.append(j)
        results = [*dirty, *views]
        self.dirty, self.views, self._bumped = tuple(dirty), tuple(views), tuple(bumped)
        self.position = {j: place for place, j in enumerate(results)}
        self.slots = tuple(dict.fromkeys([*self.wanted, *dirty]))
        floats = (j for j in bumped if facts.tensors[j].dtype.is_floating_point)
        self.without_history = tuple(j for j in floats if j not in views)
        self.leaves_written = tuple(j for j in results if j in self.wanted)
        # The floats that are written, but no parts of others.
        written = (*self.position, *self.without_history)
        spec = self.state.spec
        self.written = tuple((j, (spec.name, spec.names[j], None)) for j in written)

    def _judge_stores(self, plan, facts):
        """Find problems with stores that are known now: races, and stores that autograd cannot know
        of.
        """
        self.races, self.spills = {}, {}
        apart = {check.argument for check in plan.checks}
        for j in plan.cotangents():
            tensor = facts.tensors[j]
            stores = [store for store in plan.stores if store.argument == j]
            if not tensor.is_tensor or (j in apart and tensor.is_whole):
                continue
            given = (self.state.spec, facts.scalars, facts.grid)
            objection = None if j in apart else races.objection(stores, *given)
            spill = Spill.of(stores, tensor, *given)
            self.races |= {} if objection is None else {j: objection}
            self.spills |= {} if spill is None else {j: spill}
            self._scalars |= set().union(*(store.used_arguments() for store in stores))

    def _choose_saved(self, plan, facts):
        """Decide how to keep each argument that the backward reads: as a copy, or itself."""
        outputs = set(plan.outputs)
        overwritten = set(plan.snapshots)
        for i in self.backward.pointers:
            if i not in outputs and any(j in outputs for j in facts.aliases(i)):
                overwritten.add(i)
        # For autograd, a kernel cannot write to something that is not a tensor.
        kept = [i for i in self.backward.pointers if facts.tensors[i].is_tensor]
        self.cloned = ()
        if self.state.options.keeps_inputs:
            loaded = [i for i in facts.tensors if self.state.plain.arguments[i].loaded]
            loaded = [i for i in loaded if facts.tensors[i].is_tensor]
            changed = {i for j in outputs for i in (j, *facts.aliases(j))}
            self.cloned = tuple(i for i in loaded if i in changed)
            kept = sorted({*kept, *(i for i in loaded if i not in changed)})
        self.copied = tuple(i for i in kept if i in overwritten)
        self.kept = tuple(i for i in kept if i not in overwritten)
        self.reread = (*self.kept, *self.copied)
        self.opaque = tuple(i for i in self.backward.pointers if not facts.tensors[i].is_tensor)
        self.unsaved = tuple(
            i
            for i in self.state.spec.pointers
            if i not in self.kept and i not in outputs and facts.tensors[i].is_tensor
        )

    @property
    def is_complete(self) -> bool:
        """Whether this backward is right for any gradients that may arrive."""
        return self.planned is None or self.spare is not None

    def why_not_dual(self) -> str | None:
        """Return why its plan cannot be run with tangents; None if it can."""
        names, backward = self.state.spec.names, self.backward
        if backward.around:
            around = " and ".join(names[i] for i in sorted(backward.around))
            return f"its gradients may go to what is around {around}"
        if any(kernel.accesses is not None for kernel in self.plan.kernels):
            return "its accesses are checked"
        if backward.counts_trips:
            return "its loops have to be counted, to know how much memory what they record takes"
        if self.opaque:
            return f"{' and '.join(names[i] for i in self.opaque)} is not a tensor"
        return None

    @property
    def is_captured(self) -> bool:
        """Whether a CUDA graph records what is launched now."""
        return self.facts.device.type == "cuda" and torch.cuda.is_current_stream_capturing()

    @property
    def is_repeatable(self) -> bool:
        """Whether it is right for all launches that have one key (known.py)."""
        state, extractor = self.state, self.facts.extractor
        special = self.based or self.opaque or extractor.based or state.used_rules
        return not special and state.pointer_set.isdisjoint(extractor.scalars)

    def needed(self) -> tuple[frozenset[int], set[int], set[int]]:
        """Return the arguments whose values, storage ranges, and bases this depends on."""
        scalars, spanned = self._scalars, self.backward.spanned()
        based = set(self.backward.around)
        if self.spare is None:
            return scalars, spanned, based
        return scalars | self.spare.scalars, spanned | self.spare.spanned(), based

    def _compile(self, kernel) -> None:
        """Compile the launch's kernels, and beside them those that its backward will
        probably need.
        """
        # Deriving a plan may read memory, on this thread's stream.
        calls = [] if self.is_captured else [self._compile_ahead]
        calls.append(partial(self.forward.compile, kernel))
        together(calls)
        self._is_compiled = True

    def _compile_ahead(self) -> None:
        """Compile a backward in advance. Errors are ignored here, since they appear again later."""
        with suppress(Exception):
            upstream = self._foreseen()
            if upstream:
                with self.state.lock:
                    backward = self._backward_for(dict.fromkeys(upstream), foreseen=True)
                backward.compile()

    def _foreseen(self):
        """Return the outputs that will probably get a gradient, none if that is not known.

        These are the outputs of the latest launch that had gradients. The first time, it is the
        largest output: others are mostly statistics, for a backward written by hand, like mean and
        deviation of a norm, or the log-sum-exp of attention.
        """
        if self._planned_for is not None:
            return self._planned_for
        possible = self.backward.cotangents
        latest = self.state.latest.get(self.wanted)
        if latest is not None:
            return latest if {*latest} <= {*possible} else ()
        sizes = {j: math.prod(self.facts.tensors[j].shape) for j in possible}
        largest = [j for j in possible if sizes[j] == max(sizes.values())]
        return largest if len(largest) == 1 else ()

    def clone(self, argument: int, tensor) -> torch.Tensor:
        """Return a copy of an argument, with its history and layout, from before a launch."""
        facts = self.facts.tensors[argument]
        layout = (facts.shape, facts.strides, facts.own, facts.dtype, tensor.device)
        return allocate(*layout, zero=False).copy_(tensor)

    def run_forward(self, ctx, kernel, grid, values, leaves, clones=()):
        """Launch the forward kernel inside of autograd's forward; returns the outputs.

        `values` are those of the kernel's parameters, `leaves` its run-time arguments, `clones`
        copies of what it changes.
        """
        witness = None if of_thread.watch is None else witness_of(self, ctx)
        if not self._is_compiled:
            self._compile(kernel)
        ctx.set_materialize_grads(False)
        made = ()
        if self.forward.launch is None:
            made = self.forward.run(kernel, grid, values, leaves)
        else:
            self.forward.launch(values)
        for j in self._bumped:
            if not leaves[j].is_inference():
                torch.autograd.graph.increment_version(leaves[j])
        outputs = (*self._pick_dirty(leaves),)
        if outputs:
            ctx.mark_dirty(*outputs)
        saved = [*self._pick_kept(leaves), *made]
        if self.views:
            aliases = {j: leaves[j].detach() for j in self.views}
            outputs += tuple(aliases.values())
            for place, i in enumerate(self.kept):
                saved[place] = aliases.get(i, saved[place])
        surrounded, shapes = self._surrounded, self._saved_shapes
        if saves_by_hooks(True):
            surrounded = surrounded | self._read_around(leaves, grid)
            shapes = self.saved_shapes(surrounded)
        if surrounded:
            for place, i in enumerate(self.reread):
                if i in surrounded:
                    saved[place] = whole(saved[place], surrounded[i])
        ctx.save_for_backward(*saved, *clones)
        buffers = saved[len(self.reread) :]
        if buffers:
            shapes = [*shapes, *(buffer.shape for buffer in buffers)]
        inputs = [*map(_versioned, self._pick_unsaved(leaves))]
        for i in self.based:
            inputs.append(_versioned(leaves[i]._base))
        ctx.execution = self
        ctx.left = _left(
            (
                witness,
                inputs,
                self._pick_scalars((*leaves, None)),
                self._pick_opaque(leaves),
                self.spare.hold(leaves) if self.spare else (),
                surrounded,
                self._layouts(saved),
                shapes,
            )
        )
        return outputs

    def run_backward(self, ctx, saved, grads):
        """Run the backward kernels on saved tensors; returns one gradient (or None) per slot."""
        left = ctx.left
        if left.witness is not None:
            left.witness.was_used = True
        upstream = {}
        for j, place in self.position.items():
            if grads[place] is not None:
                upstream[j] = grads[place]
        if not upstream:
            return (None,) * (len(self.slots) + len(self.based))
        came = tuple(upstream)
        if self.state.latest.get(self.wanted) != came:
            self.state.note_upstream(self.wanted, came)
        for j, objection in self.races.items():
            if j in upstream:
                raise RaceError(objection)
        # Which one it is for these does not change, unless the spare one is for others, too.
        backward = self._settled.get(came)
        is_spare = backward is None and self._is_unplanned(upstream)
        if backward is None:
            backward = self._backward_for(upstream)
            if not is_spare:
                self._settled[came] = backward
        # Whoever sets `x.data` may leave the address as it was.
        if self._layouts(saved) != left.layouts:
            saved = self._restore(saved, left)
        if left.surrounded:
            saved = self._seen(saved, left.surrounded)
        arguments = list(left.scalars)
        for i, tensor in zip(self.reread, saved, strict=False):
            arguments[i] = tensor.data_ptr()
        if self.opaque:
            for i, value in zip(self.opaque, left.opaque, strict=True):
                arguments[i] = value
        buffers = saved[len(self.reread) :] if backward.saved else ()
        live = (*saved, *self.spare.load(left.held, arguments)) if is_spare else saved
        given = (arguments, buffers, upstream, live)
        try:
            counts = None
            if backward.counts_trips:
                backward, counts = self._for_counts(backward, given)
            if self._tunes:
                backward = self._tuned(backward, given, counts)
                counts = backward.count_trips(arguments, live)
            if eager_flops.is_counting():
                eager_flops.count_backward(backward, left.scalars)
            gradients = backward.run(*given, counts)
        except Exception as error:
            self._blame_upstream(upstream, error)
            raise
        results = [gradients.get(key) for key in self._keys]
        for place, i in enumerate(self.wanted):
            if results[place] is None:
                results[place] = self._zeros(i)
        return tuple(results)

    def _for_counts(self, backward, given):
        """Return a backward whose tapes are not too large, and the trip counts of its loops."""
        arguments, _, upstream, live = given
        counts = backward.count_trips(arguments, live)
        if tape_bytes(backward.buffers, counts) > self.state.tape_limit(self.facts.device):
            backward = self._backward_for(upstream, backward.plan.answers("tapes"))
            counts = backward.count_trips(arguments, live)
        return backward, counts

    def _zeros(self, argument: int) -> torch.Tensor:
        """Return the gradient of an argument that has no influence on what was asked for."""
        tensor = self.facts.tensors[argument]
        return torch.zeros(tensor.shape, dtype=tensor.dtype, device=self.facts.device)

    def saved_shapes(self, surrounded) -> list:
        """Return the shapes of what autograd saves before buffers: an argument, or its whole
        storage, if it is `surrounded`.
        """
        return [
            (surrounded[i].total,) if i in surrounded else self.facts.tensors[i].shape
            for i in self.reread
        ]

    def _read_around(self, leaves, grid) -> dict[int, Span]:
        """Return the storage of each argument that a launch touches around its tensor.

        Hooks on saved tensors may return just what they were given.
        """
        accesses = self.facts.extractor.accesses
        spans = {i: accesses.around(i, leaves, grid) for i in self.reread}
        return {i: span for i, span in spans.items() if span is not None}

    def _seen(self, saved, surrounded) -> list:
        """Return saved tensors, with the argument itself in place of its whole storage."""
        seen = list(saved)
        for place, i in enumerate(self.reread):
            if i in surrounded:
                tensor, facts = saved[place], self.facts.tensors[i]
                start = tensor.storage_offset() + surrounded[i].lead
                seen[place] = tensor.as_strided(facts.shape, facts.strides, start)
        return seen

    def _restore(self, saved, left: Left):
        """Return saved tensors in the layouts that kernels expect, whatever hooks made of them.

        One that is where it was stays there, with all that is around it.
        """
        shapes, surrounded = left.shapes, left.surrounded
        tensors = {i: self.facts.tensors[i] for i in self.reread}
        names = [f"argument {self.state.spec.names[i]!r}" for i in tensors]
        names += ["what the forward saved"] * (len(shapes) - len(names))
        types = [facts.dtype for facts in tensors.values()]
        types += [self.backward.buffers[n][1] for n in self.backward.saved]
        for name, tensor, shape in zip(names, saved, shapes, strict=True):
            if tensor.shape != shape:
                raise ArgumentError(
                    f"{name} of kernel {self.state.spec.name!r} was saved with shape "
                    f"{tuple(shape)}, and is {tuple(tensor.shape)} now: a hook on saved tensors "
                    "returned another one, or its data was set. The backward reads it"
                )
        for i, tensor in zip(tensors, saved, strict=False):
            require_memory(self.state.spec, i, tensor)
        # As for PyTorch's operations, numbers are what counts.
        saved = [tensor.to(dtype) for tensor, dtype in zip(saved, types, strict=True)]
        wanted = [
            ((1,), Span(0, surrounded[i].total)) if i in surrounded else (facts.strides, facts.span)
            for i, facts in tensors.items()
        ]
        wanted += [((1,), Span(0, t.numel())) for t in saved[len(wanted) :]]
        before, now = read(left.layouts) or [None] * len(saved), read(self._layouts(saved))
        return [
            t if a == b else restore(t, *layout)
            for t, layout, a, b in zip(saved, wanted, before, now, strict=True)
        ]

    def _blame_upstream(self, upstream, error):
        """Raise `ArgumentError` if the backward failed because of a transformation around it."""
        for j, gradient in upstream.items():
            if is_batch(gradient):
                spec = self.state.spec
                refuse_batch(f"argument {spec.names[j]!r} of kernel {spec.name!r}", error)

    def _is_unplanned(self, upstream) -> bool:
        return self.planned is not None and not upstream.keys() <= set(self.planned)

    def _backward_for(self, upstream, changes=(), foreseen=False) -> Backward:
        """Return a backward for exactly these cotangents, or the one for all of them.

        The forward could not know which outputs would get a gradient. Nor could it know, if
        iterations are counted, that tapes would be too large, for which the plan requests
        `changes`. If gradients are missing for which another forward would save less, or there are
        some that no forward was planned for, the next forward is planned accordingly, unless they
        are only `foreseen`.
        """
        if self._is_unplanned(upstream):
            self.state.expect(self.wanted, upstream)
            return self.spare.backward(changes)
        missing = self.backward.cotangents - upstream.keys()
        if not missing and not changes:
            return self.backward
        live = (tuple(sorted(upstream)) if missing else self.planned, changes)
        found = self._variants.get(live)
        if found is None:
            found = self._make_variant(*live, learns=not foreseen)
            if found is not None or not foreseen:
                found = self._variants[live] = found or self.backward
        return found or self.backward

    @property
    def shown(self) -> Backward:
        """The backward that runs if all outputs have a gradient, as far as is known."""
        return self._tuned_backwards.get(self.backward, self.backward)

    @property
    def used(self) -> Backward:
        """The backward for the outputs whose gradients have arrived; `shown` if none have."""
        upstream = dict.fromkeys(self.state.came.get(self.wanted, ()))
        if not upstream or self._is_unplanned(upstream):
            return self.shown
        with self.state.lock:
            backward = self._backward_for(upstream, foreseen=True)
        return self._tuned_backwards.get(backward, backward)

    def _tuned(self, backward, given, counts) -> Backward:
        found = self._tuned_backwards.get(backward)
        if found is None:
            with self.state.lock:
                found = tuning.tuned(self, backward, given, counts)
            if found is not None:
                self._tuned_backwards[backward] = found
        return found or backward

    def _make_variant(self, live, changes, learns) -> Backward | None:
        """Return a backward like the first that can use what this forward kept.

        If there is none, and the state `learns`, the next forward is planned for it.
        """
        keep_saving = self.plan.forward is not None
        # A gradient that only other outputs need is not masked.
        request = self.request._replace(cotangents=live, save=keep_saving, confine=())
        chosen = self.state.choose(request.changed(changes), self.facts)
        backward = Backward(chosen.executable_plan, chosen.facts, self.state.spec)
        backward.give_to(self.based)
        if not self._can_precede(backward):
            if live is not None and learns:
                self.state.expect(self.wanted, live)
            return None
        extractor = self.facts.extractor
        needed = (chosen.scalars, backward.spanned(), set(backward.around))
        if not extractor.covers(*needed):
            if learns:
                self.state.forget(extractor, *needed)
            return None
        return backward

    def _can_precede(self, backward) -> bool:
        """Whether this forward saved what a backward needs, and kept what it reads."""
        plan, pointers = backward.plan, set(backward.pointers)
        if not plan.has_same_forward(self.plan):
            return False
        overwritten = pointers & set(plan.snapshots)
        before = overwritten | (pointers - set(plan.outputs))
        kept_before = {*self.copied, *self.opaque} | (set(self.kept) - set(plan.outputs))
        return before <= kept_before and pointers - before <= set(self.kept)
