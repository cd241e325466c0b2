"""The backward of an eager launch in a graph of compiled autograd: one operator.

Dynamo reads `put_into_graph` instead of the node's backward. Values that change from one run of
the graph to the next are arguments of the operator: gradients, saved tensors, and numbers that the
node gets when compiled autograd looks for a graph. One of the numbers identifies the node, which
has the rest.
"""

from __future__ import annotations

import functools
import itertools
import weakref

import torch

from ..storage.memory import strides_of_gradient

Tensor = torch.Tensor
_numbers = itertools.count(2)  # Smaller ones are constants to Dynamo.
_nodes: weakref.WeakValueDictionary = weakref.WeakValueDictionary()


def describe(node) -> None:
    """Set the attributes of a node that `put_into_graph` reads; compiled autograd asks for its key
    first.
    """
    _define()
    execution = node.execution
    # A view's base may get a gradient, too, but its layout is not known here.
    inputs = () if execution.based else execution.wanted
    node.has_gradient = tuple(i in inputs for i in execution.slots)
    found = [execution.facts.tensors[i] for i in execution.slots if i in inputs]
    # PyTorch 2.11 turns a list of types into numbers.
    node.gradient_types = tuple(str(tensor.dtype).removeprefix("torch.") for tensor in found)
    node.gradient_shapes = sum((tuple(tensor.shape) for tensor in found), ())
    strides = (strides_of_gradient(tensor.shape, tensor.strides) for tensor in found)
    node.gradient_strides = sum(strides, ())
    node.gradient_ranks = tuple(len(tensor.shape) for tensor in found)
    node.number = next(_numbers)
    _nodes[node.number] = node


def put_into_graph(ctx, *upstream):
    """Put the backward of a launch into the traced graph; Dynamo reads this function."""
    if not any(ctx.has_gradient) or all(gradient is None for gradient in upstream):
        return ctx._forward_cls.between_graphs(ctx, *upstream)
    found = torch.ops.triton_autodiff.backward_of_launch(
        list(upstream),
        list(ctx.saved_tensors),
        ctx.number,
        list(ctx.gradient_types),
        list(ctx.gradient_ranks),
        list(ctx.gradient_shapes),
        list(ctx.gradient_strides),
    )
    gradients = iter(found)
    return (None, *[next(gradients) if wanted else None for wanted in ctx.has_gradient])


@functools.cache
def _define() -> torch.library.Library:
    name = "backward_of_launch"
    library = torch.library.Library("triton_autodiff", "FRAGMENT")
    library.define(
        f"{name}(Tensor?[] upstream, Tensor[] saved, SymInt node, str[] types, int[] ranks,"
        " SymInt[] shapes, SymInt[] strides) -> Tensor[]",
        # The node's numbers are not those of the recorded launch.
        tags=(torch.Tag.needs_exact_strides, torch.Tag.cudagraph_unsafe),
    )
    library.impl(name, _run, "CompositeExplicitAutograd")
    torch.library.register_fake(f"triton_autodiff::{name}", _rooms, lib=library)
    return library


def _rooms(upstream, saved, node, types, *layouts) -> list[Tensor]:
    """Return memory for the gradients."""
    device = next(gradient.device for gradient in upstream if gradient is not None)
    types = [f"{dtype} {device}" for dtype in types]
    return [room(*layout) for layout in each_layout(types, *layouts)]


def layouts_of(tensors) -> tuple[tuple, tuple, tuple, tuple]:
    """Return types, ranks, sizes and strides of gradients of tensors, for `each_layout`."""
    # PyTorch 2.11 turns a list of types into numbers.
    types = tuple(f"{t.dtype} {t.device}".removeprefix("torch.") for t in tensors)
    shapes = sum((tuple(t.shape) for t in tensors), ())
    strides = (strides_of_gradient(t.shape, t.stride()) for t in tensors)
    return types, tuple(t.dim() for t in tensors), shapes, sum(strides, ())


@functools.cache
def _type_named(name: str) -> tuple[torch.dtype, torch.device]:
    dtype, device = name.split(" ")
    return getattr(torch, dtype), torch.device(device)


def each_layout(types, ranks, shapes, strides):
    """Yield shape, strides, type and device of tensors, from lists that an operator takes."""
    sizes, steps = iter(shapes), iter(strides)
    for given, rank in zip(types, ranks, strict=True):
        shape, own = (list(itertools.islice(part, rank)) for part in (sizes, steps))
        yield shape, own, *_type_named(given)


def room(shape, strides, dtype, device) -> Tensor:
    """Return memory for a gradient."""
    return torch.empty_strided(shape, strides, dtype=dtype, device=device)


def _run(upstream, saved, number, *layouts) -> list[Tensor]:
    node = _nodes[number]
    with torch.no_grad():
        found = node.execution.run_backward(node, saved, upstream)
        rooms = _rooms(upstream, saved, number, *layouts)
        found = itertools.compress(found, node.has_gradient)
        return list(map(_laid_out, rooms, found))


def _laid_out(room: Tensor, gradient: Tensor | None) -> Tensor:
    """Return a gradient in the layout that the graph knows; None is zero."""
    if gradient is None:
        return room.zero_()
    return gradient if gradient.stride() == room.stride() else room.copy_(gradient)
