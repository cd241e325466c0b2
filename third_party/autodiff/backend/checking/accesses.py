"""Which elements a launch touches of its arguments: in their tensors, and around them.

A launch does not know addresses that the kernel loads: these count as inside.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..storage.memory import Span, extent, storage_span
from .spaces import bounds, touched

# How many launches' elements are remembered.
_MOST = 4096


def numbers(leaves) -> list:
    """Return the numbers among a launch's arguments; None for others."""
    return [leaf if isinstance(leaf, (int, float)) else None for leaf in leaves]


def in_one_storage(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors lie in one storage, which has memory."""
    try:
        address = one.untyped_storage().data_ptr()
        return address != 0 and address == other.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # one has none
        return False


def goes_around(span: Span, own: int, ends) -> bool:
    """Return whether elements are in a storage before a tensor's first element, or behind its last.

    `own` is the number of elements from the first to the last.
    """
    return min(span.lead, -ends[0]) > 0 or min(span.total - span.lead, ends[1] + 1) > own


class Accesses:
    """What a kernel touches; `spaces` are a plan's `accesses`."""

    def __init__(self, spaces):
        self._spaces = spaces
        self._scalars = {
            i: sorted(set().union(*(s.used_arguments() for s in known if s is not None)))
            for i, known in spaces.items()
        }
        self._known: dict = {}

    def _ends(self, find: Callable, argument: int, leaves, grid) -> tuple[int, int] | None:
        """Return the ends that `bounds` or `touched` finds, counted from the element that the
        argument points to.
        """
        if argument not in self._spaces:
            return None
        scalars = numbers(leaves)
        key = (find, argument, grid, *(scalars[i] for i in self._scalars[argument]))
        if key not in self._known:
            if len(self._known) > _MOST:
                self._known.clear()
            self._known[key] = find(self._spaces[argument], scalars, grid)
        return self._known[key]

    def meet(self, one: int, other: int, leaves, grid) -> bool:
        """Return whether a launch touches common memory through two arguments of one storage.

        What lies between elements that it touches counts.
        """
        # To look at each program takes longer.
        return all(self._overlap(find, one, other, leaves, grid) for find in (bounds, touched))

    def _overlap(self, find: Callable, one: int, other: int, leaves, grid) -> bool:
        first, second = (self._bytes(find, i, leaves, grid) for i in (one, other))
        return first[0] < second[1] and second[0] < first[1]

    def _bytes(self, find: Callable, argument: int, leaves, grid) -> tuple[int, int]:
        """Return the addresses of what a tensor has, and of what the kernel touches around it."""
        tensor = leaves[argument]
        first, last = self._ends(find, argument, leaves, grid) or (0, -1)
        size = tensor.element_size()
        end = max(last + 1, extent(tensor.shape, tensor.stride()))
        return tensor.data_ptr() + min(first, 0) * size, tensor.data_ptr() + end * size

    def around(self, argument: int, leaves, grid) -> Span | None:
        """Return the memory of a tensor's whole storage, if the kernel may touch elements in it
        that are outside of the tensor.
        """
        tensor = leaves[argument]
        span, own = storage_span(tensor), extent(tensor.shape, tensor.stride())
        ends = None if span == Span(0, own) else self._ends(bounds, argument, leaves, grid)
        return span if ends is not None and goes_around(span, own, ends) else None
