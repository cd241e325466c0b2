"""The autograd node of a registered operation, eager and in graphs."""

from __future__ import annotations

import functools

import torch
from torch._guards import detect_fake_mode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from .blame import is_batch, refuse_batch
from .graph_backward import layouts_of
from .once import refuse_second
from .tensors import tensors_in
from .tracers import is_traced, outside_of_dynamo

Tensor = torch.Tensor


class Call:
    """A call of a registered operation from which gradients of the leaves `wanted` are wanted."""

    def __init__(self, operator, args, kwargs, wanted):
        self.operator, self.args, self.kwargs, self.wanted = operator, args, kwargs, wanted
        self._structure, self._others = None, ()

    def run(self, ctx) -> tuple[Tensor, ...]:
        """Run the stub, and tell a node what its gradient needs; returns the tensors that are
        results.
        """
        given = list(tensors_in(self.args))
        joined = is_traced() or detect_fake_mode(given) is not None or given[0].is_meta
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
        leaves = tree_leaves(local)
        ctx.layouts = layouts_of([leaves[n] for n in self.wanted])
        leaves, self._structure = tree_flatten(results)
        if without:
            tensors = list(tensors_in(leaves))
            ctx.mark_non_differentiable(*(tensors[n] for n in without))
        self._others = [None if isinstance(value, Tensor) else value for value in leaves]
        self._are_tensors = [isinstance(value, Tensor) for value in leaves]
        return tuple(value for value in leaves if isinstance(value, Tensor))

    def restored(self, tensors):
        """Return the results as the operator returns them, with the tensors of a node."""
        tensors = iter(tensors)
        pairs = zip(self._are_tensors, self._others, strict=True)
        leaves = [next(tensors) if is_tensor else other for is_tensor, other in pairs]
        results = tree_unflatten(leaves, self._structure)
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
    name = ctx.operator.described
    if any(map(is_batch, given)):
        refuse_batch(f"a result of {name}")
    if not torch.is_grad_enabled():
        return (None, *_gradients(ctx, *upstream))
    with torch.no_grad():
        found = _gradients(ctx, *upstream)
    return (None, *refuse_second(name, ctx, upstream, (), found))


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
