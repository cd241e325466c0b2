"""Launches under transforms of `torch.func` (grad, vjp, jvp, vmap, …).

A transform wraps tensors, so a launch has no memory to run on. It becomes a function of tensors
(pure.py), which all transforms see through; what that returns is copied into the user's outputs.
"""

from __future__ import annotations

import torch
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

from ..errors import ArgumentError
from . import nodes
from .pure import PureLaunch, Values

Tensor = torch.Tensor
_functorch = torch._C._functorch
_is_wrapped = _functorch.is_functorch_wrapped_tensor


def is_wrapped(value) -> bool:
    """Whether a value, or a tensor in it, is wrapped by a transform."""
    if isinstance(value, Tensor):
        return _is_wrapped(value)
    return isinstance(value, (tuple, list)) and any(map(is_wrapped, value))


def example(tensor: Tensor) -> Tensor:
    """Return the memory behind a wrapped tensor: of a batch, that of the first example."""
    batched = []
    while _is_wrapped(tensor):
        dim = _functorch.maybe_get_bdim(tensor) if _functorch.is_batchedtensor(tensor) else -1
        tensor = _functorch.get_unwrapped(tensor)
        batched += [dim] if dim >= 0 else []
    # The innermost batch counts all axes.
    for dim in reversed(batched):
        tensor = tensor.select(dim, 0)
    return tensor.detach()


class _Examples:
    """Examples of the tensors of a launch, and what they are examples of."""

    def __init__(self):
        self._wrapped: dict[int, tuple[Tensor, Tensor]] = {}

    def of(self, value):
        """Return an argument with examples in place of tensors."""
        if isinstance(value, (tuple, list)):
            return type(value)(map(self.of, value))
        if not isinstance(value, Tensor):
            return value
        found = example(value)
        self._wrapped[id(found)] = found, value
        return found

    def wrapped(self, tensor):
        """Return what an example is of; itself, if it is none."""
        return self._wrapped.get(id(tensor), (None, tensor))[1]


def launch(resolver, args, kwargs, grid, keep) -> object:
    """Run a launch whose tensors are wrapped; `keep(kernel, function)` is told of what ran."""
    examples, launches = _Examples(), []
    with temporarily_clear_interpreter_stack():
        given = [examples.of(value) for value in args]
        named = {name: examples.of(value) for name, value in kwargs.items()}
        result = nodes.each_launch(resolver, launches.append, given, named, grid)
    for resolved in launches:
        state = nodes.state_of(resolved, resolver.options)
        _run(state, resolved, examples)
        keep(resolved.kernel, None, resolved.function)
    return result


def refuse_around(pure: PureLaunch, leaves) -> None:
    """Raise for a tensor around which a launch may read or write, with a derivative there."""
    state = pure.state
    for i in pure.floats:
        if state.accesses.around(i, leaves, pure.grid) is not None:
            raise ArgumentError(
                f"argument {state.spec.names[i]!r} of kernel {state.spec.name!r} is a part of a "
                "tensor, and the kernel may touch what is around it, of which torch.func knows "
                "nothing: pass the whole tensor"
            )


def _run(state, resolved, examples: _Examples) -> None:
    leaves = state.spec.flatten(resolved.values)
    pure = PureLaunch(nodes.start, state, resolved.grid, leaves)
    refuse_around(pure, leaves)
    tensors = {i: examples.wrapped(leaves[i]) for i in pure.slots}
    for j in pure.written:
        # What the results depend on is not what is written below.
        tensors[j] = tensors[j].clone()
    results = Values.apply(pure, pure.written, (), (), None, *tensors.values())
    for j, result in zip(pure.written, results, strict=True):
        target = examples.wrapped(leaves[j])
        where = f"argument {state.spec.names[j]!r} of kernel {state.spec.name!r}"
        try:
            target.copy_(result)
        except RuntimeError as error:
            raise ArgumentError(
                f"{where} is written by the kernel, and is the same tensor for all examples of a "
                "vmap, or is made outside of the transform: make it of an input that the transform "
                f"knows (x.new_empty(shape), torch.empty_like(x)). PyTorch: {error}"
            ) from error
