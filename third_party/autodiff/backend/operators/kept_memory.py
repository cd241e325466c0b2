"""How a registered operation hands what autograd saves to its gradient, as results of an operator.

Results of an operator share memory neither with its arguments nor with each other. So a saved
tensor that is a view of an argument or of a result is described as such, and other tensors of one
storage become views of one tensor. In a graph, the number of results is fixed: there, the rest is
copied into one tensor of bytes for each device.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from ..storage.memory import ALIGNMENT, Span, extent, is_dense, restore

Tensor = torch.Tensor
_ARGUMENT, _RESULT, _OWN = range(3)


class _Layout(NamedTuple):
    """Where the elements of a tensor are, relative to the first one of what it is a view of."""

    shape: tuple
    strides: tuple
    dtype: torch.dtype
    offset: int = 0

    @classmethod
    def of(cls, t: Tensor, base: Tensor | None = None) -> _Layout:
        start = t.storage_offset() if base is None else base.storage_offset()
        return cls(tuple(t.shape), tuple(t.stride()), t.dtype, t.storage_offset() - start)

    @property
    def extent(self) -> int:
        return extent(self.shape, self.strides)

    def seen_in(self, base: Tensor) -> Tensor:
        """Return the tensor, as a view of its base."""
        return base.as_strided(self.shape, self.strides, base.storage_offset() + self.offset)


class Kept:
    """The tensors that autograd has saved in a call, as views of arguments, results, and others.

    `own` are the others. `used` are the numbers of arguments and of results that are needed; some
    arguments are `always`.
    """

    def __init__(self, tensors, given, results, always=()):
        # What is known, by its storage.
        self._known: dict = {}
        for kind, known in enumerate((given, results)):
            for n, tensor in enumerate(known):
                self._known.setdefault(_storage(tensor), []).append((kind, n, tensor))
        self._layouts: dict[tuple[int, int], _Layout] = {}
        self.own: list[Tensor] = []
        self._joined: list[tuple[int, int]] | None = None
        # The tensors in a storage with a type.
        groups: dict[tuple, list[int]] = {}
        # For each tensor, what it is a view of, and how.
        self._parts: list = [None] * len(tensors)
        for place, tensor in enumerate(tensors):
            if _is_plain(tensor):
                storage = _storage(tensor)
                self._parts[place] = self._view(tensor, self._known.get(storage, ()))
                if self._parts[place] is None:
                    groups.setdefault((storage, tensor.dtype), []).append(place)
            else:
                self._parts[place] = self._add(_resolved(tensor)), None
        taken = {*self._known, *(_storage(t) for t in self.own)}
        for (storage, _), places in groups.items():
            base = _base([tensors[place] for place in places])
            layouts = [_Layout.of(tensors[place], base) for place in places]
            key = self._add(_copy(base) if storage in taken else base)
            taken.add(storage)
            for place, layout in zip(places, layouts, strict=True):
                self._parts[place] = key, layout
        kinds = [key for key, _ in self._parts]
        if always:
            kinds += [(_ARGUMENT, n) for n in always]
        self.used = tuple(
            sorted({n for kind, n in kinds if kind == which}) for which in (_ARGUMENT, _RESULT)
        )
        self._known = None

    def _view(self, tensor: Tensor, known):
        """Return a tensor as a view of an argument or result that is `known` to have its storage,
        None if it is none.
        """
        for kind, n, base in known:
            if not _is_plain(base) or base.dtype != tensor.dtype:
                continue
            own = self._layouts.get((kind, n)) or _Layout.of(base)
            if tensor is base or _seen(tensor) == _seen(base):
                self._layouts[kind, n] = own
                return (kind, n), own
            layout = _Layout.of(tensor, base)
            inside = layout.offset >= 0 and layout.offset + layout.extent <= own.extent
            if inside and is_dense(own.shape, own.strides):
                self._layouts[kind, n] = own
                return (kind, n), layout
        return None

    def _add(self, tensor: Tensor) -> tuple[int, int]:
        """Add a tensor to those that are neither arguments nor results."""
        key = _OWN, len(self.own)
        self.own.append(tensor)
        if _is_plain(tensor):
            self._layouts[key] = _Layout.of(tensor)
        return key

    def take(self) -> list[Tensor]:
        """Return the tensors that are neither arguments nor results; it keeps them no more."""
        own, self.own = self.own, []
        return own

    def join(self, device, refuse) -> list[Tensor]:
        """Return them as bytes, on the device and on the CPU; `refuse(tensor)` raises an error for
        what no graph can keep.
        """
        flat, ends, self._joined = ([], []), [0, 0], []
        for n, tensor in enumerate(self.take()):
            side = 0 if tensor.device == device else 1
            if not _is_plain(tensor) or (side and tensor.device.type != "cpu"):
                refuse(tensor)
            layout = self._layouts[_OWN, n]
            elements = _Layout((layout.extent,), (1,), layout.dtype).seen_in(tensor)
            flat[side].append(elements.view(torch.uint8))
            self._joined.append((side, ends[side]))
            ends[side] += -(-flat[side][-1].numel() // ALIGNMENT) * ALIGNMENT
        whole = []
        for parts, end, where in zip(flat, ends, (device, torch.device("cpu")), strict=True):
            whole.append(torch.empty(end, dtype=torch.uint8, device=where))
            begins = [begin for side, begin in self._joined if side == len(whole) - 1]
            for part, begin in zip(parts, begins, strict=True):
                whole[-1][begin : begin + part.numel()] = part
        return whole

    def tensors(self, given, results, own) -> list[Tensor]:
        """Return the saved tensors, of the arguments and results that are `used` and the others.

        In a graph, these are all arguments, all results, and bytes.
        """
        if self._joined is None:
            known = [
                dict(zip(n, t, strict=True))
                for n, t in zip(self.used, (given, results), strict=True)
            ]
            known.append(dict(enumerate(own)))
        else:
            known = [dict(enumerate(given)), dict(enumerate(results)), self._apart(own)]
        bases: dict = {}

        def tensor(key, layout):
            kind, n = key
            if layout is None:
                return known[kind][n]
            if key not in bases:
                bases[key] = _as_it_was(known[kind][n], self._layouts[key])
            same = layout is self._layouts[key] or layout == self._layouts[key]
            return bases[key] if same else layout.seen_in(bases[key])

        return [tensor(*part) for part in self._parts]

    def _apart(self, whole) -> dict[int, Tensor]:
        """Return tensors from their bytes, by number."""
        found = {}
        for n, (side, begin) in enumerate(self._joined):
            layout = self._layouts[_OWN, n]
            end = begin + layout.extent * layout.dtype.itemsize
            found[n] = layout.seen_in(whole[side][begin:end].view(layout.dtype))
        return found


def _as_it_was(tensor: Tensor, layout: _Layout) -> Tensor:
    """Return a tensor in its layout: hooks may change the layouts of saved tensors."""
    if tensor.stride() == layout.strides:
        return tensor
    return restore(tensor, layout.strides, Span(0, layout.extent))


def _base(tensors) -> Tensor:
    """Return one tensor of which others, in the same storage, are views."""
    if len(tensors) == 1:
        return tensors[0]
    first = min(t.storage_offset() for t in tensors)
    last = max(t.storage_offset() + _Layout.of(t).extent for t in tensors)
    for tensor in tensors:
        layout = _Layout.of(tensor)
        is_whole = (tensor.storage_offset(), layout.extent) == (first, last - first)
        if is_whole and is_dense(layout.shape, layout.strides):
            return tensor
    return tensors[0].as_strided((last - first,), (1,), first)


def _copy(tensor: Tensor) -> Tensor:
    """Return a copy in the same layout."""
    made = torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
    )
    if is_dense(tensor.shape, tensor.stride()):
        return made.copy_(tensor)
    flat = (extent(tensor.shape, tensor.stride()),), (1,)
    made.as_strided(*flat).copy_(tensor.as_strided(*flat, tensor.storage_offset()))
    return made


def _is_plain(tensor: Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_conj() and not tensor.is_neg()


def _resolved(tensor: Tensor) -> Tensor:
    strided = tensor.layout is torch.strided
    return tensor.resolve_conj().resolve_neg() if strided else tensor


def _seen(tensor: Tensor) -> tuple:
    """Return which elements of its storage a tensor sees."""
    return tensor.storage_offset(), tensor.shape, tensor.stride()


def _storage(tensor: Tensor):
    return tensor.untyped_storage()._cdata if tensor.layout is torch.strided else id(tensor)
