"""The autograd node of a launch that PyTorch traces."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ..errors import AutodiffError
from ..launching.once import IN_GRAPHS, refuse_second
from ..storage.memory import extent, is_dense, meet, same_strides, strides_of_gradient
from .kept import Held, has_numbers_of_runs, with_passed_on

Tensor = torch.Tensor
# PyTorch has few operations for these.
_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


class Recorded(torch.autograd.Function):
    """A launch as an operator: takes tensors, and returns those that the kernel writes."""

    @staticmethod
    def forward(ctx, operator, numbers, wanted, *tensors):
        ctx.set_materialize_grads(False)
        # Tensors that share memory with an output are copied, since they are about to change.
        before = operator.meeting(tensors, *numbers)
        tensors = [copy_of(t) if n in before else t for n, t in enumerate(tensors)]
        inlined = operator.inlined(wanted, tensors, *numbers)
        if inlined is None:
            found = _of_operator(ctx, operator, numbers, wanted, tensors)
        else:
            found = _of_kernels(ctx, operator, inlined, numbers, tensors)
        ctx.backward_of, written = found
        ctx.count = len(tensors)
        outputs = zip(operator.outputs, written, strict=True)
        with_history = operator.with_history(wanted)
        ctx.mark_non_differentiable(*(t for n, t in outputs if n not in with_history))
        ctx.kernel = f"kernel {operator.kernel._resolver.function.__name__!r}"
        return tuple(written)

    @staticmethod
    def backward(ctx, *upstream):
        with torch.no_grad():
            found = ctx.backward_of(ctx.saved_tensors, upstream)
        gradients = [found.get(place) for place in range(ctx.count)]
        if torch.is_grad_enabled():
            gradients = refuse_second(
                AutodiffError, ctx.kernel, IN_GRAPHS, ctx, upstream, (), gradients
            )
        return (None, None, None, *gradients)


def _of_kernels(ctx, operator, inlined, numbers, tensors):
    """Launch kernels that PyTorch traces; returns a function for gradients, and the outputs."""
    ints, floats, _ = numbers
    kernels, grid = inlined
    copies = {place: copy_of(tensors[place]) for place in operator.outputs}
    given = [copies.get(place, tensor) for place, tensor in enumerate(tensors)]
    saved, known = kernels.forward(operator.values(given, ints, floats), grid)
    ctx.save_for_backward(*saved)
    places = operator.places(kernels.execution.state)

    def backward(saved, upstream):
        given = dict(zip(operator.outputs, upstream, strict=True))
        outputs = kernels.execution.backward.plan.outputs
        by_argument = {j: given[places[j]] for j in outputs if given[places[j]] is not None}
        found = kernels.backward(saved, known, by_argument) if by_argument else {}
        own = {places[i]: gradient for i, gradient in found.items()}
        return with_passed_on(own, given, {places[j] for j in outputs})

    return backward, list(copies.values())


def _of_operator(ctx, operator, numbers, wanted, tensors):
    """Launch an operator that chooses its plan when it runs; returns a function for gradients, and
    the outputs.

    If a graph cannot have sizes that only the run knows, the backward launches again.
    """
    numbered = tuple(map(list, numbers))
    if has_numbers_of_runs(tensors):
        held = operator.held(wanted)
        found = operator.keep(list(tensors), *numbered, list(wanted), *map(list, held))
        count = len(operator.outputs)
        written, kept = found[:count], found[count:]
    else:
        reads = [n for n in range(len(tensors)) if n in operator.read or n not in operator.outputs]
        held, kept = Held(tuple(reads), ()), []
        written = operator.operator(list(tensors), *numbered)
    # Tensors that are about to change are copied.
    changed = operator.outputs
    before = [copy_of(tensors[n]) if n in changed else tensors[n] for n in held.before]
    after = [t for n, t in zip(operator.outputs, written, strict=True) if n in held.after]
    ctx.save_for_backward(*before, *after, *kept)
    layouts = [(t.shape, t.stride(), t.dtype, t.device) for t in tensors]

    def backward(saved, upstream):
        known = dict(zip(held.before, saved, strict=False))
        given = [known[n] if n in known else _empty(*of) for n, of in enumerate(layouts)]
        rest = list(saved[len(held.before) :])
        after, kept = rest[: len(held.after)], rest[len(held.after) :]
        places = (list(wanted), *map(list, held))
        found = operator.gradient(list(upstream), given, after, kept, *numbered, *places)
        return dict(zip(wanted, found, strict=True))

    return backward, written


def _empty(shape, strides, dtype, device) -> Tensor:
    return torch.empty_strided(shape, strides, dtype=dtype, device=device)


def like(tensor: Tensor) -> Tensor:
    """Return uninitialised memory with the layout of a tensor."""
    return _empty(tensor.shape, tensor.stride(), tensor.dtype, tensor.device)


def same_layout(one: Tensor, other: Tensor) -> bool:
    """Return whether elements of two tensors are at the same offsets in their storages."""
    places = ((t.shape, t.stride(), t.storage_offset(), t.dtype) for t in (one, other))
    return next(places) == next(places)


def have_places_in_common(one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors of the same storage share an element."""
    starts, sizes = [], []
    for tensor in (one, other):
        starts.append(tensor.storage_offset() * tensor.element_size())
        sizes.append(extent(tensor.shape, tensor.stride()) * tensor.element_size())
    if not (starts[0] < starts[1] + sizes[1] and starts[1] < starts[0] + sizes[0]):
        return False
    # They may be parts of rows, for example. Sizes that decide this become constants of the graph.
    layouts = [
        (tuple(map(int, t.shape)), tuple(map(int, t.stride())), t.element_size())
        for t in (one, other)
    ]
    distance = int(starts[1] - starts[0])
    with _disable_current_modes():
        return meet(*layouts, distance)


def copy_of(tensor: Tensor) -> Tensor:
    """Return a copy of a tensor with the same layout."""
    if is_dense(tensor.shape, tensor.stride()) and _begins_its_storage(tensor):
        return tensor.clone()
    # Inductor may leave out a copy, and pass a part of a tensor to the kernel. If it then copies,
    # because the part is written, PyTorch 2.11 copies from the beginning of the whole tensor.
    value = tensor if _begins_its_storage(tensor) else _computed(tensor)
    return like(tensor).copy_(value)


def _computed(tensor: Tensor) -> Tensor:
    """Return an equal value of any type that PyTorch takes for another tensor."""
    wide = tensor
    if tensor.is_floating_point() and tensor.element_size() == 1:
        wide = tensor.to(torch.float32)
    elif tensor.dtype in _UNSIGNED:
        wide = tensor.to(torch.int64)
    return torch.maximum(wide, wide).to(tensor.dtype)


def _begins_its_storage(tensor: Tensor) -> bool:
    offset = tensor.storage_offset()
    return isinstance(offset, int) and offset == 0


def room_for_gradient(tensor: Tensor) -> Tensor:
    """Return memory for the gradient of a tensor, in its layout if no elements share memory."""
    strides = strides_of_gradient(tensor.shape, tensor.stride())
    return _empty(tensor.shape, strides, tensor.dtype, tensor.device)


def gradient_like(tensor: Tensor, gradient: Tensor | None, is_own: bool = False) -> Tensor:
    """Return a gradient in memory of its own, in its tensor's layout; None is zero.

    `is_own`: it is in memory of its own unless it is a view.
    """
    if is_own and gradient is not None and not gradient._is_view():
        strides = strides_of_gradient(tensor.shape, tensor.stride())
        is_alike = same_strides(tensor.shape, gradient.stride(), strides)
        if is_alike and gradient.dtype == tensor.dtype:
            return gradient
    made = room_for_gradient(tensor)
    return made.zero_() if gradient is None else made.copy_(gradient)


def gradients_of(outputs, inputs, upstream) -> tuple[Tensor | None, ...]:
    """Return gradients of inputs; None for those that no upstream gradient reaches."""
    given = zip(outputs, upstream, strict=True)
    pairs = [(y, g) for y, g in given if g is not None and y.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    reached, gradients = zip(*pairs, strict=True)
    return torch.autograd.grad(reached, inputs, gradients, allow_unused=True)
