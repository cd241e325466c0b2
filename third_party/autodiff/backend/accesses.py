"""Which elements a launch touches of its arguments: in their tensors, and around them."""

from __future__ import annotations

import torch

from .memory import Span, extent, storage_span
from .spaces import touched

# How many launches' elements are remembered.
_MOST = 4096


def _numbers(leaves) -> list:
    """Return the numbers among a launch's arguments; None for others."""
    return [leaf if isinstance(leaf, (int, float)) else None for leaf in leaves]


def in_one_storage(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors lie in one storage."""
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


class Accesses:
    """What a kernel touches; `spaces` are a plan's `accesses`."""

    def __init__(self, spaces):
        self._spaces = spaces
        self._scalars = {
            i: sorted(
                set().union(*(space.used_arguments() for space in known if space is not None))
            )
            for i, known in spaces.items()
        }
        self._known: dict = {}

    def ends(self, argument: int, leaves, grid) -> tuple[int, int] | None:
        """Return the first and the last element that a launch may touch, counted from the one
        that the argument points to, as far as it can compute them; None if it touches none.
        """
        if argument not in self._spaces:
            return None
        scalars = _numbers(leaves)
        key = (argument, grid, *(scalars[i] for i in self._scalars[argument]))
        if key not in self._known:
            if len(self._known) > _MOST:
                self._known.clear()
            self._known[key] = touched(self._spaces[argument], scalars, grid)
        return self._known[key]

    def meet(self, one: int, other: int, leaves, grid) -> bool:
        """Return whether a launch may touch common memory through two arguments of one storage."""
        first, second = (self._bytes(i, leaves, grid) for i in (one, other))
        return first[0] < second[1] and second[0] < first[1]

    def _bytes(self, argument: int, leaves, grid) -> tuple[int, int]:
        """Return the addresses of what a tensor has, and of what the kernel touches around it."""
        tensor = leaves[argument]
        first, last = self.ends(argument, leaves, grid) or (0, -1)
        size = tensor.element_size()
        end = max(last + 1, extent(tensor.shape, tensor.stride()))
        return tensor.data_ptr() + min(first, 0) * size, tensor.data_ptr() + end * size

    def around(self, argument: int, leaves, grid) -> Span | None:
        """Return the memory of a tensor's whole storage, if the kernel touches elements in it that
        are outside of the tensor.
        """
        tensor = leaves[argument]
        span, own = storage_span(tensor), extent(tensor.shape, tensor.stride())
        ends = None if span == Span(0, own) else self.ends(argument, leaves, grid)
        if ends is None:
            return None
        is_around = min(span.lead, -ends[0]) > 0 or min(span.total - span.lead, ends[1] + 1) > own
        return span if is_around else None
