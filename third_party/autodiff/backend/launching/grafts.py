"""Gives views that a kernel wrote an autograd history; exported modules contain this, too."""

from __future__ import annotations

import torch


class Graft(torch.autograd.Function):
    """Makes a view that a kernel wrote depend on the values written, for autograd.

    Autograd lets a function with a single output update a view; a launch may have several outputs.
    So the launch returns aliases, and each view gets the history of its alias. No data is copied.
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
        # The view's old contents get their gradient through the launch, if at all. The zero is
        # needed: without it, autograd drops the gradient of the rest of the base.
        if gradient is None:
            return None, None
        return gradient.new_zeros(()).expand_as(gradient), gradient


def graft(views, aliases, kind=Graft) -> None:
    """Give views the history of their aliases, by autograd nodes of a `kind`."""
    # The launch has increased the versions already, before it saved anything.
    with torch.autograd._unsafe_preserve_version_counter(views):
        for view, alias in zip(views, aliases, strict=True):
            kind.apply(view, alias)
    for view in views:
        # A view updates its history when its version has changed. It is updated for this version
        # now, so that a later version is not mistaken for it.
        _ = view.grad_fn
