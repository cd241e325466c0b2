"""Gradients of registered operations that are differentiated again.

The nodes of a history are apart from autograd's graph outside: they end in an entry of their own.
A gradient that they computed, and that they recorded, is a function of the arguments that are
wanted and of the upstream gradients. A node outside stands for that function. Its own gradient is
one of the same kind, so there is one class of nodes for all orders.
"""

from __future__ import annotations

import functools

import torch

from ..launching.batches import for_each_upstream
from ..launching.blame import is_batch
from ..launching.second_order import Lost

Tensor = torch.Tensor


class _Outside(torch.autograd.Function):
    """Stands, in the graph outside, for what nodes of a history have computed.

    Takes the history; results of its nodes; `inside`, what these depend on there: edges, and
    tensors; and tensors: what stands for `inside` in the graph outside, then those that the history
    has saved.
    """

    @staticmethod
    def forward(ctx, history, results, inside, *tensors):
        ctx.set_materialize_grads(False)
        ctx.history, ctx.results, ctx.inside = history, results, inside
        ctx.save_for_backward(*tensors)
        return tuple(t.detach() for t in results)

    @staticmethod
    def backward(ctx, *upstream):
        if any(map(is_batch, upstream)):
            return for_each_upstream(functools.partial(_Outside.backward, ctx), upstream)
        count = len(ctx.inside)
        outside, saved = ctx.saved_tensors[:count], ctx.saved_tensors[count:]
        pairs = zip(ctx.results, upstream, strict=True)
        pairs = [(result, u) for result, u in pairs if u is not None]
        found = ()
        if pairs:
            results, upstream = zip(*pairs, strict=True)
            found = _computed(ctx.history, results, upstream, ctx.inside, outside, saved)
        return (None, None, None, *found, *(None,) * (len(outside) + len(saved) - len(found)))


def _computed(history, results, upstream, inside, outside, saved) -> list[Tensor | None]:
    """Return the gradients of what is `inside` from those of results of a history's nodes.

    If gradients are recorded, these depend on what is `outside` and on the upstream gradients.
    """
    is_recorded = torch.is_grad_enabled()
    # Gradients that are not recorded keep their tangents.
    own = tuple(u.detach().requires_grad_() for u in upstream) if is_recorded else upstream
    found = list(history.differentiated(results, inside, own, saved, is_recorded))
    places = [n for n, g in enumerate(found) if g is not None and g.requires_grad]
    if not places:
        return found
    further = tuple(found[n] for n in places)
    gone = [n for n, tensor in enumerate(outside) if tensor is None]
    if gone and not history.reached_from(further).isdisjoint(gone):
        raise Lost(
            "it depends on an argument that is gone or has changed: first derivatives do not need "
            "it, so nothing kept it"
        )
    given = (*outside, *upstream, *saved)
    known = _Outside.apply(history, further, (*inside, *own), *given)
    for n, gradient in zip(places, known, strict=True):
        found[n] = gradient
    return found


def differentiable_again(history, upstream, arguments, saved) -> list[Tensor | None]:
    """Return the gradients of the arguments that a history's operation wanted, so that they can be
    differentiated; None if nothing reaches one.

    `arguments` are these as they are outside, None for those that are gone. `saved` are the tensors
    that the history has saved. Raises `Lost` if a gradient depends on what is gone.
    """
    edges, upstream = history.reached_by(upstream)
    if not edges:
        return [None] * len(arguments)
    return _computed(history, edges, upstream, tuple(history.inputs), arguments, saved)
