"""Gradients that are differentiated again: a launch as a function of what it read.

A launch keeps what its backward reads. The rest of its tensors are found by weak references: one
that is gone, or has changed since, is not there for a second derivative, which is an error then.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

from ..storage.memory import allocate, tensor_span
from .pure import Left, PureLaunch, Values, is_aligned

Tensor = torch.Tensor


WAY_OUT = "differentiable(kernel, order=2) keeps all that a launch reads"


class Lost(Exception):
    """What a second derivative needs is not there; says why not."""


def _found(execution, left, read, clones) -> tuple[dict[int, Tensor], dict[int, Callable]]:
    """Return what the tensors of a launch held before it, and what makes memory for those that held
    nothing of interest. `read` are those that its backward reads.

    Raises `Lost` for one that is not there.
    """
    spec, plain, facts = execution.state.spec, execution.state.plain, execution.facts
    others = dict(zip(execution.unsaved, left.inputs, strict=True))
    before = dict(zip(execution.cloned, clones, strict=True))
    tensors, blank = {}, {}
    for i in spec.pointers:
        argument, name = plain.arguments[i], f"argument {spec.names[i]!r} of kernel {spec.name!r}"
        if not facts.tensors[i].is_tensor:
            continue
        if i in before:
            tensors[i] = before[i]
        elif i in execution.copied and i not in execution.wanted:
            tensors[i] = read[i]
        elif i in execution.kept and not argument.stored:
            tensors[i] = read[i]
        elif not argument.loaded:
            known = facts.tensors[i]
            layout = (known.shape, known.strides, known.span, known.dtype, facts.device, False)
            blank[i] = functools.partial(allocate, *layout)
        elif i in others and not argument.stored:
            reference, version = others[i]
            tensor = reference()
            if tensor is None:
                raise Lost(
                    f"it depends on {name}, which is gone: first derivatives do not need it, so "
                    "nothing kept it"
                )
            if tensor._version != version:
                raise Lost(f"it depends on {name}, which has changed since the launch")
            tensors[i] = tensor
        else:
            raise Lost(f"it depends on what {name} held before the launch, which wrote there")
    return tensors, blank


def _outputs(execution, read, blank) -> dict[int, Tensor]:
    """Return the outputs that hold what the launch has left, which began with nothing of interest,
    if they are whole tensors with the same strides.
    """
    known = execution.facts.tensors
    return {
        i: t
        for i, t in read.items()
        if i in blank
        and i in execution.kept
        and t.dtype == known[i].dtype
        and t.device == execution.facts.device
        and not t.is_neg()
        and t.shape == known[i].shape
        and t.stride() == known[i].strides
        and tensor_span(t) == known[i].span
        and is_aligned(t)
    }


def differentiable_again(
    start: Callable, ctx, saved, clones, upstream: dict[int, Tensor], gradients: dict[int, Tensor]
) -> dict[int, Tensor]:
    """Return gradients of a launch, by argument, so that they can be differentiated.

    `upstream` are the gradients of its outputs. Raises `Lost` if that is impossible.
    """
    execution, left = ctx.execution, ctx.left
    state = execution.state
    read = dict(zip(execution.reread, saved, strict=False))
    tensors, blank = _found(execution, left, read, clones)
    leaves, layouts = list(left.scalars), execution.facts.tensors
    for i in state.spec.pointers:
        leaves[i] = tensors[i] if i in tensors else blank[i]() if i in blank else leaves[i]
    launch = PureLaunch(start, state, execution.facts.grid, leaves)
    launch.blank = blank
    launch.left = Left(_outputs(execution, read, blank), tensors)
    # Hooks on saved tensors may give them other strides.
    launch.strides = {i: layouts[i].strides for i in launch.slots}
    launch.aligned = frozenset(launch.slots)
    known = list(gradients.values())
    call = (launch, (), tuple(gradients), tuple(upstream), known)
    given = (tensors.get(i) for i in launch.slots)
    return dict(zip(gradients, Values.apply(*call, *given, *upstream.values()), strict=True))
