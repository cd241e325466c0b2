"""Batches of `vmap`: a loop over examples, each of which runs as it would by itself."""

from __future__ import annotations

import threading

import torch
from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter
from torch._functorch.vmap import unwrap_batched, wrap_batched
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from ..errors import ArgumentError
from .tracers import is_traced

Tensor = torch.Tensor
_functorch = torch._C._functorch
# The most vmaps of the older kind around each other.
_MOST_LEVELS = 64


def is_batching(values) -> bool:
    """Whether the innermost transform is a vmap, and has a batch among some values."""
    if not _functorch.peek_interpreter_stack():
        return False
    interpreter = retrieve_current_functorch_interpreter()
    if interpreter.key() != _functorch.TransformType.Vmap:
        return False
    _, dims = unwrap_batched(tuple(values), interpreter.level())
    return any(dim is not None for dim in tree_leaves(dims))


def for_each_example(function, args, kwargs=None):
    """Call a function for each example of the innermost vmap, and return the batch of its results.

    The function sees each example as `x.select(dim, n)`. If there is no batch among its arguments,
    and examples draw no numbers of their own, it is called once, for all.
    """
    interpreter = retrieve_current_functorch_interpreter()
    level, size = interpreter.level(), interpreter.batch_size()
    leaves, structure = tree_flatten((args, kwargs or {}))
    held, dims = unwrap_batched(tuple(leaves), level)
    is_one = interpreter.randomness() != "different" and all(dim is None for dim in dims)
    if is_one:
        size = 1
    results = []
    draws = _Draws(interpreter.randomness())
    with interpreter.lower(), draws, _Made(held, dims, draws):
        for n in range(size):
            draws.begin()
            example = [
                x if dim is None else x.select(dim, n) for x, dim in zip(held, dims, strict=True)
            ]
            own_args, own_kwargs = tree_unflatten(example, structure)
            results.append(function(*own_args, **own_kwargs))
        if is_one:
            return results[0]
        found = [tree_flatten(result) for result in results]
        stacked = [
            torch.stack(parts) if isinstance(parts[0], Tensor) else parts[0]
            for parts in zip(*(parts for parts, _ in found), strict=True)
        ]
    batch = [0 if isinstance(part, Tensor) else None for part in stacked]
    wrapped = wrap_batched(tuple(stacked), tuple(batch), level)
    return tree_unflatten(list(wrapped), found[0][1])


class _Made(TorchDispatchMode):
    """Notes the memory that examples make, or have of a batch: they may write to no other."""

    supports_higher_order_operators = True

    def __init__(self, held, dims, draws):
        super().__init__()
        self._around, self._draws = None, draws
        pairs = zip(held, dims, strict=True)
        self._known = _storages([behind(x) for x, dim in pairs if dim is not None])

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self._draws.note(function)
        # What an operator launches inside writes to memory of its own.
        _of_thread.made, before = None, _of_thread.made
        try:
            result = function(*args, **(kwargs or {}))
        finally:
            _of_thread.made = before
        # A view of what all share is shared, too.
        self._known |= _storages(result) - _storages((args, kwargs))
        return result

    def __enter__(self):
        self._around, _of_thread.made = _of_thread.made, self
        return super().__enter__()

    def __exit__(self, *error):
        _of_thread.made = self._around
        return super().__exit__(*error)

    def knows(self, tensor: Tensor) -> bool:
        return _storages(tensor) <= self._known


def _storages(values) -> set[int]:
    """Return the storages of tensors, as numbers."""
    tensors = (t for t in tree_leaves(values) if isinstance(t, Tensor))
    return {t.untyped_storage()._cdata for t in tensors if torch._C._has_storage(t)}


class _OfThread(threading.local):
    """Of each thread, what the examples of its innermost loop have made; None outside of loops."""

    made: _Made | None = None


_of_thread = _OfThread()


def is_looping() -> bool:
    """Whether this thread is in a loop over examples."""
    return _of_thread.made is not None


def refuse_shared(name: str, names, written, leaves) -> None:
    """Raise if a launch for one example writes to memory that all of them share."""
    made = _of_thread.made
    for j in written if made is not None else ():
        if isinstance(leaves[j], Tensor) and leaves[j].numel() and not made.knows(leaves[j]):
            raise ArgumentError(
                f"argument {names[j]!r} of kernel {name!r} is written by the kernel, and is the "
                "same tensor for all examples of a vmap: make it where the kernel is launched"
            )


def behind(tensor: Tensor) -> Tensor:
    """Return the tensor that is behind all wrappers of transforms: of a batch, the whole."""
    while _functorch.is_functorch_wrapped_tensor(tensor):
        tensor = _functorch.get_unwrapped(tensor)
    return tensor


class _Draws:
    """Random numbers of a function for each example, as vmap's `randomness` says."""

    def __init__(self, randomness: str):
        self._randomness = randomness
        self._before: list[Tensor] = []
        # No generator moves while a graph is made.
        self._is_traced = is_traced()

    def __enter__(self):
        if self._randomness != "different":
            self._before = [generator.get_state() for generator in _generators()]
        return self

    def note(self, function) -> None:
        """Note an operator that is called for an example."""
        if not self._is_traced or self._randomness == "different":
            return
        # Other operators than PyTorch's own say by the tag that they might draw.
        is_own = getattr(function, "namespace", None) == "aten"
        if is_own and torch.Tag.nondeterministic_seeded in function.tags:
            raise RuntimeError(
                "vmap: a stub draws random numbers in a graph, where each example has its own: "
                "call vmap with randomness='different'"
            )

    def begin(self) -> None:
        """Begin with an example."""
        if self._randomness == "same":
            with _disable_current_modes():
                generators = _generators()
                for generator, state in zip(generators, self._before, strict=False):
                    generator.set_state(state)
                for generator in generators[len(self._before) :]:
                    generator.set_offset(0)

    def __exit__(self, kind, *_):
        if kind is None and self._randomness == "error" and self._has_drawn():
            raise RuntimeError(
                "vmap: a stub has drawn random numbers, and randomness is 'error': call vmap with "
                "randomness='same' or 'different'"
            )

    def _has_drawn(self) -> bool:
        with _disable_current_modes():
            generators = _generators()
            known = zip(generators, self._before, strict=False)
            return any(not torch.equal(own.get_state(), before) for own, before in known) or any(
                generator.get_offset() for generator in generators[len(self._before) :]
            )


def _generators() -> list[torch.Generator]:
    """Return PyTorch's generators. Those of GPUs are there as soon as CUDA is started; they begin
    at offset 0.
    """
    return [torch.default_generator, *torch.cuda.default_generators]


# `torch.autograd.grad(is_grads_batched=True)` has a vmap of its own, the older kind.
is_older_batch = _functorch.is_legacy_batchedtensor


def for_each_gradient(function, gradients) -> tuple:
    """Call a function of gradients, some of which are batches of the older vmap, for each of the
    batch.

    Returns the batch of its results, some of which may be None.
    """
    level = max(_level(g) for g in gradients if g is not None and is_older_batch(g))
    batched = [g is not None and is_older_batch(g) and _has_level(g, level) for g in gradients]
    held = [
        _removed(g, level) if is_batch else g
        for g, is_batch in zip(gradients, batched, strict=True)
    ]
    size = next(len(g) for g, is_batch in zip(held, batched, strict=True) if is_batch)
    results = [
        function(*(g[n] if is_batch else g for g, is_batch in zip(held, batched, strict=True)))
        for n in range(size)
    ]
    return tuple(
        None if parts[0] is None else torch._add_batch_dim(torch.stack(parts), 0, level)
        for parts in zip(*results, strict=True)
    )


def for_each_upstream(function, upstream) -> tuple:
    """Call the backward of a node for each of a batch of gradients, of a vmap of either kind."""
    loop = for_each_example if is_batching(upstream) else for_each_gradient
    return loop(function, upstream)


def _has_level(batch: Tensor, level: int) -> bool:
    """Whether a batch is one of the vmap at a level. For another, PyTorch makes no examples."""
    return 0 not in _removed(batch, level).shape


def _removed(batch: Tensor, level: int) -> Tensor:
    return torch._remove_batch_dim(batch, level, 0, 0)


def _level(batch: Tensor) -> int:
    """Return the level of the innermost vmap that a batch is of, which PyTorch does not tell."""
    return next(n for n in range(_MOST_LEVELS, 0, -1) if _has_level(batch, n))
