"""Gradients of elements around a tensor that a kernel reads: in its storage, but outside of a view.

Autograd takes the gradient of the tensor that was passed. The elements around it belong to the
tensor that it is a view of, its base, which gets the rest of the gradient. If there is no base, the
rest has to be zero.
"""

from __future__ import annotations

import enum

import torch

from ..checking.accesses import goes_around
from ..checking.coverage import is_within, merge
from ..checking.spaces import union
from ..errors import ArgumentError, BoundsError, CheckError
from ..storage.memory import Span, extent, gradient_of, is_dense


class Whereabouts(enum.Enum):
    """Where contributions to a gradient that are not zero are: in the tensor, or also around it."""

    INSIDE = enum.auto()
    AROUND = enum.auto()
    UNPROVED = enum.auto()
    OF_DATA = enum.auto()


def whereabouts_of(gradient, live, tensor, args, grid) -> Whereabouts:
    """Return where contributions to the gradient of a tensor may be; `live` is a plan's."""
    if not gradient.returned or gradient.stays_inside or tensor.is_whole:
        return Whereabouts.INSIDE
    spaces = live.get(gradient.argument, (None,))
    if None in spaces:
        return Whereabouts.OF_DATA
    try:
        spaces = [space for space in spaces if space.ends(args, grid) is not None]
        ends = union(space.ends(args, grid) for space in spaces)
        if ends is None:
            return Whereabouts.INSIDE
        if goes_around(tensor.span, tensor.own.total, ends):
            return Whereabouts.AROUND
        held = merge(zip(tensor.shape, tensor.strides, strict=True))
        inside = all(is_within(*space.box(args, grid), held) for space in spaces)
    except CheckError:
        return Whereabouts.OF_DATA
    return Whereabouts.INSIDE if inside else Whereabouts.UNPROVED


class Around:
    """Splits a gradient into that of an argument's tensor, and that of the elements around it."""

    def __init__(self, argument: int, tensor, spec, whereabouts: Whereabouts):
        self.argument = argument
        self.tensor, self.spec, self.whereabouts = tensor, spec, whereabouts
        self.base = tensor.base if self.is_known else None

    @classmethod
    def of(cls, gradient, plan, facts, spec, checks_bounds: bool) -> Around | None:
        """Return how to split the gradient of an argument; None if only its tensor can have one.

        With bounds checks, gradients that only the kernel can place are checked, too.
        """
        tensor = facts.tensors[gradient.argument]
        whereabouts = whereabouts_of(gradient, plan.live, tensor, facts.scalars, facts.grid)
        around = cls(gradient.argument, tensor, spec, whereabouts)
        is_inside = whereabouts is Whereabouts.INSIDE or not (around.is_known or checks_bounds)
        return None if is_inside else around

    @property
    def is_known(self) -> bool:
        """Whether it is known before the launch that elements around the tensor have a gradient."""
        return self.whereabouts is not Whereabouts.OF_DATA

    def split(self, shadow: torch.Tensor):
        """Return the gradients of the tensor, and of its base outside of the tensor (or None).

        `shadow` holds both; it may be overwritten. Raises if elements of neither have a gradient.
        """
        tensor = self.tensor
        own = gradient_of(shadow, tensor.dtype).clone()
        shadow.zero_()
        rest = None
        place = shadow.storage_offset()
        if self.base is not None:
            shape, strides, start = self.base
            held = shadow.as_strided(shape, strides, place + start)
            rest = gradient_of(held, tensor.dtype).clone()
            held.zero_()
        # The check would wait for the device, which a CUDA graph cannot record.
        captures = shadow.is_cuda and torch.cuda.is_current_stream_capturing()
        if not self._is_base_whole and not captures:
            self._require_nothing_else(shadow, place)
        return own, rest

    @property
    def _is_base_whole(self) -> bool:
        """Whether the base is all that the storage holds."""
        if self.base is None:
            return False
        shape, strides, start = self.base
        span = Span(-start, extent(shape, strides))
        return span == self.tensor.span and is_dense(shape, strides)

    def _require_nothing_else(self, shadow, place) -> None:
        """Raise if a gradient is not zero elsewhere in the storage."""
        lead, total = self.tensor.span
        storage = shadow.as_strided((total,), (1,), place - lead)
        if not storage.any():
            return
        places = storage.nonzero()[:, 0] - lead
        first, last = int(places[0]), int(places[-1])
        name = f"argument {self.spec.names[self.argument]!r} of kernel {self.spec.name!r}"
        known = BoundsError if self.whereabouts is Whereabouts.OF_DATA else ArgumentError
        raise known(
            f"{name} is a tensor of shape {self.tensor.shape} in a larger storage, and the kernel "
            f"reads around it: the elements {first} to {last}, counted from its first one, have "
            "gradients that belong to no tensor that autograd knows of. Pass the whole tensor, or "
            "a view of it that has a history"
        )


class Spill:
    """What a kernel stores around the tensor of an output, in the same storage.

    Autograd only knows about the tensor. If a gradient arrives for elements around it, through the
    base that it is a view of, that is an error.
    """

    def __init__(self, store, tensor, ends, spec):
        self._store, self._tensor, self._ends, self._spec = store, tensor, ends, spec

    @classmethod
    def of(cls, stores, tensor, spec, args, grid) -> Spill | None:
        """Return what stores through an argument leave around its tensor, None if nothing."""
        for store in () if tensor.is_whole else stores:
            try:
                known = store.space.has_exact_ends(args, grid)
                ends = store.space.ends(args, grid) if known else None
            except CheckError:
                continue
            if ends is not None and goes_around(tensor.span, tensor.own.total, ends):
                return cls(store, tensor, ends, spec)
        return None

    @property
    def where(self) -> str:
        """Return where it is stored, in words, if that is known."""
        return f" at {self._store.position}" if self._store.position else ""

    def watch(self, view: torch.Tensor) -> None:
        """Raise an error later, if a gradient arrives for elements around a view that were just
        stored.
        """
        base = view._base
        if base is None or not base.requires_grad:
            return
        layout = base.shape, base.stride(), base.storage_offset()
        start = view.storage_offset()
        base.register_hook(lambda gradient: self._check(gradient, layout, start))

    def _check(self, gradient, layout, start: int) -> None:
        tensor, (first, last) = self._tensor, self._ends
        storage = gradient.new_zeros(tensor.span.total)
        storage.as_strided(*layout).copy_(gradient)
        storage.as_strided(tensor.shape, tensor.strides, start).zero_()
        if not storage[max(start + first, 0) : start + last + 1].any():
            return
        spec, store = self._spec, self._store
        raise ArgumentError(
            f"argument {spec.names[store.argument]!r} of kernel {spec.name!r} is a tensor of shape "
            f"{tensor.shape} in a larger storage, and the kernel stores around it{self.where}: to "
            f"elements {first} to {last}, counted from its first one. These have a gradient now, "
            "which the kernel does not get: pass the whole tensor"
        )
