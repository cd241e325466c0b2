"""Views that a kernel wrote, and the history of what was written; modules have this, too."""

from __future__ import annotations

import torch


class Graft(torch.autograd.Function):
    """Gives a view that a kernel wrote to the history of the values written.

    Autograd lets a function with a single output update a view; a launch may have several. The
    launch returns aliases instead, which are grafted one by one. No data moves.
    """

    @staticmethod
    def forward(ctx, view, written):
        """Return the view; `written` is an alias of it."""
        ctx.set_materialize_grads(False)
        ctx.mark_dirty(view)
        return view

    @staticmethod
    def backward(ctx, gradient):
        """Return the gradient of what was written."""
        # What the view held before reaches its gradient through the launch, if at all. The zero
        # must be there: without it, autograd drops the gradient of the rest of the base.
        if gradient is None:
            return None, None
        return gradient.new_zeros(()).expand_as(gradient), gradient


def graft(views, aliases, kind=Graft) -> None:
    """Give views the history of their aliases, by nodes of a `kind`."""
    # The launch has counted the change already, before it saved anything.
    with torch.autograd._unsafe_preserve_version_counter(views):
        for view, alias in zip(views, aliases, strict=True):
            kind.apply(view, alias)
    for view in views:
        # A view renews its history when its version has changed; make it match this version now,
        # lest a later version be mistaken for it.
        _ = view.grad_fn
