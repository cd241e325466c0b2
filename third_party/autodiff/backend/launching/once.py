"""Gradients that cannot be differentiated again: trying to is an error, not a missing term.

Autograd only runs a node that is on a path to what it differentiates by. So the node that raises
the error has an edge to everything that the gradient depends on: the upstream gradients, the
tensors that the kernel read, and the leaves that these were computed from. Exported modules contain
this, too.
"""

from __future__ import annotations

import torch

# Why a gradient is not differentiated again.
IN_GRAPHS = (
    "autograd's gradient in a graph, of tensors without memory, or of DTensors has no derivative. "
    "Outside of these it has, and in a graph torch.func (grad, jvp, hessian, …) takes those of "
    "every order"
)


class _Once(torch.autograd.Function):
    """The identity on its first input; to differentiate it is an error."""

    @staticmethod
    def forward(ctx, error, name, reason, gradient, *anchors):
        ctx.error, ctx.name, ctx.reason = error, name, reason
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx, _):
        raise ctx.error(
            f"the gradient of {ctx.name} cannot be differentiated again: {ctx.reason}. If it need "
            "not be, take this gradient without create_graph=True, or detach() it"
        )


def _leaves_behind(node):
    """Yield the leaves of autograd's graph that a node depends on."""
    seen, stack = {node}, [node]
    while stack:
        current = stack.pop()
        leaf = getattr(current, "variable", None)
        if leaf is not None:
            yield leaf
        for following, _ in current.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                stack.append(following)


def refuse_second(error, name, reason, node, upstream, inputs, gradients) -> list:
    """Return `gradients`, the results of a `node`, so that to differentiate them is an `error` (a
    class), for a `reason`.

    They depend on `upstream` and on `inputs`, as far as these are known, and through `node` on
    leaves.
    """
    anchors = [t for t in (*upstream, *inputs) if t is not None and t.requires_grad]
    anchors += _leaves_behind(node)
    about = error, name, reason
    return [g if g is None else _Once.apply(*about, g.detach(), *anchors) for g in gradients]
