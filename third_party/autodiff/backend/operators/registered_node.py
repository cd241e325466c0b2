"""The autograd node of a registered operation, eager and in graphs."""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch
from torch._guards import detect_fake_mode

from ..errors import ArgumentError, AutodiffError
from ..launching.batches import for_each_upstream
from ..launching.blame import is_batch
from ..launching.compiled_autograd import each_layout, layouts_of, room
from ..launching.duals import has_tangents
from ..launching.once import IN_GRAPHS, refuse_second
from ..launching.second_order import WAY_OUT, Lost
from ..launching.tracers import is_traced, outside_of_dynamo
from ..storage.tensors import flattened, rebuilt, tensors_in
from .again import differentiable_again

Tensor = torch.Tensor
# What a trace replaces is of other types.
_PLAIN = (Tensor, torch.nn.Parameter)


class _Layout(NamedTuple):
    """What `layouts_of` asks a tensor."""

    dtype: torch.dtype
    device: torch.device
    shape: torch.Size
    strides: tuple

    @classmethod
    def of(cls, t: Tensor) -> _Layout:
        return cls(t.dtype, t.device, t.shape, t.stride())

    def stride(self):
        return self.strides

    def dim(self):
        return len(self.shape)


@functools.lru_cache(1024)
def _layouts_of(*layouts):
    return layouts_of(layouts)


class Call:
    """A call of a registered operation from which gradients of the leaves `wanted` are wanted."""

    def __init__(self, operator, args, kwargs, leaves, wanted):
        self.operator, self.args, self.kwargs, self.wanted = operator, args, kwargs, wanted
        self._leaves, self._results = leaves, ()

    def run(self, ctx) -> tuple[Tensor, ...]:
        """Run the stub, and tell a node what its gradient needs; returns the tensors that are
        results.
        """
        given = [leaf for leaf in self._leaves if isinstance(leaf, Tensor)]
        joined = is_traced() or given[0].is_meta
        if not joined and any(type(t) not in _PLAIN for t in given):
            joined = detect_fake_mode(given) is not None
        shards = self.operator.shards(self.args, self.kwargs)
        # The numbers of results without a history; None if only the run tells.
        without = None

        def run(*args):
            nonlocal without
            if joined:
                without = self.operator.without_history(self.wanted, args, self.kwargs)
            return self.operator.keep(self.wanted, without, *args, **self.kwargs)

        if shards is None:
            local = self.args
            *results, kept = run(*local)
            own = results
        else:
            results, own, local, kept = shards.keep(run, self.wanted)
            results = [results] if not isinstance(results, tuple) else results
        ctx.number = 0
        if not joined:
            *kept, numbered = kept
            ctx.number = numbered.shape[0]
            # The number alone keeps no history.
            ctx.history = self.operator.history(ctx.number)
            if ctx.history:
                without = ctx.history.without_history
        held = [list(tensors_in(local)), list(tensors_in(own))]
        if not joined:
            used = ctx.history.kept.used if ctx.history else ((), ())
            held = [[ts[n] for n in ns] for ts, ns in zip(held, used, strict=True)]
        ctx.counts = tuple(map(len, held))
        ctx.save_for_backward(*held[0], *held[1], *kept)
        ctx.operator, ctx.shards = self.operator, shards
        leaves = self._leaves if local is self.args else flattened(local)
        wanted = [leaves[n] for n in self.wanted]
        ctx.layouts = layouts_of(wanted) if joined else _layouts_of(*map(_Layout.of, wanted))
        self._results = results
        tensors = [value for value in flattened(results) if isinstance(value, Tensor)]
        if without:
            ctx.mark_non_differentiable(*(tensors[n] for n in without))
        return tuple(tensors)

    def restored(self, tensors):
        """Return the results as the operator returns them, with the tensors of a node."""
        tensors, leaves = iter(tensors), flattened(self._results)
        restored = (next(tensors) if isinstance(leaf, Tensor) else leaf for leaf in leaves)
        results = rebuilt(self._results, restored)
        return results[0] if len(results) == 1 else tuple(results)


def _gradients(ctx, *upstream):
    """Return the gradients; Dynamo may read this."""
    saved = list(ctx.saved_tensors)
    first, second = ctx.counts
    given, results, kept = saved[:first], saved[first:][:second], saved[first + second :]
    if ctx.shards is not None:
        upstream = ctx.shards.local_upstream(upstream)
    types, ranks, shapes, strides = ctx.layouts
    found = ctx.operator.gradient(
        list(upstream), given, results, kept, ctx.number,
        list(types), list(ranks), list(shapes), list(strides),
    )  # fmt: skip
    return found if ctx.shards is None else ctx.shards.gradients(found)


def _backward(ctx, *upstream):
    given = [gradient for gradient in upstream if gradient is not None]
    if not given:
        return (None,) * len(ctx.needs_input_grad)
    if any(map(is_batch, given)):
        return for_each_upstream(functools.partial(_backward, ctx), upstream)
    is_pushed = has_tangents(given)
    if not torch.is_grad_enabled() and not is_pushed:
        return (None, *_gradients(ctx, *upstream))
    reason = IN_GRAPHS
    if ctx.number and ctx.shards is None:
        try:
            return (None, *_again(ctx, upstream))
        except Lost as lost:
            reason = f"{lost}; {WAY_OUT}"
    name = ctx.operator.described
    if is_pushed:
        raise ArgumentError(
            f"the upstream gradient of a result of {name} has a tangent of forward mode, which "
            f"would be lost: {reason}"
        )
    with torch.no_grad():
        found = _gradients(ctx, *upstream)
    return (None, *refuse_second(AutodiffError, name, reason, ctx, upstream, (), found))


def _again(ctx, upstream) -> list[Tensor]:
    """Return the gradients so that they can be differentiated.

    Raises `Lost` if that is impossible.
    """
    saved, (first, second) = ctx.saved_tensors, ctx.counts
    given, results, kept = saved[:first], saved[first:][:second], saved[first + second :]
    history = ctx.history
    arguments = history.arguments(dict(zip(history.kept.used[0], given, strict=True)))
    with torch.no_grad():
        tensors = history.kept.tensors(given, results, kept)
    found = differentiable_again(history, upstream, arguments, tensors)
    layouts = each_layout(*ctx.layouts)
    pairs = zip(found, layouts, strict=True)
    return [room(*layout).zero_() if g is None else g for g, layout in pairs]


def _recorded_backward(ctx, *upstream):
    if all(gradient is None for gradient in upstream):
        return (None,) * len(ctx.needs_input_grad)
    return (None, *_gradients(ctx, *upstream))


class _Registered(torch.autograd.Function):
    """A call of a registered operation: takes tensors whose gradient is wanted."""

    @staticmethod
    def forward(ctx, call, *wanted):
        ctx.set_materialize_grads(False)
        with torch._C._AutoDispatchBelowAutograd():
            return call.run(ctx)

    backward = staticmethod(outside_of_dynamo(_backward, instead=_recorded_backward))


@functools.cache
def node(name: str):
    """Return the node's class, with the name that PyTorch shows in graphs and profiles."""
    return type(_Registered)(name, (_Registered,), {"__module__": __name__})
