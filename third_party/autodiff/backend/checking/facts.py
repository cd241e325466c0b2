"""Facts that decide how a plan runs: the grid, some scalars, layouts of tensors, shared memory.

`FactExtractor` extracts these facts from a launch, cheaply, as a dictionary key. It only extracts
what the plans so far depend on, so that a changing seed or an offset into a larger tensor does not
make every launch a new one. If a plan needs more, the key grows.
"""

from __future__ import annotations

import copy
import os
from typing import NamedTuple

import torch

from ..errors import ArgumentError
from ..storage.memory import Span, extent, is_dense, meet, pitch, storage_span
from ..storage.tensors import fault_of
from . import contents
from .accesses import Accesses, in_one_storage, numbers
from .expr import evaluate, substitute

Tensor = torch.Tensor


def processors(device) -> int:
    """Return how many programs a device runs side by side, one on each processor."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).multi_processor_count
    return os.cpu_count() or 1


def _is_part(tensor: Tensor) -> bool:
    """Whether a tensor is a part of another one, whose other elements may change meanwhile."""
    return tensor._is_view() and tensor._base.numel() != tensor.numel()


class Base(NamedTuple):
    """Layout of the base, the tensor that an argument is a view of, and its start relative to the
    view.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start: int

    @classmethod
    def of(cls, tensor: Tensor) -> Base | None:
        """Return the base of a view through which it gets a gradient; None for other tensors."""
        if not tensor._is_view() or tensor.grad_fn is None:
            return None
        base = tensor._base
        if not base.requires_grad or base.dtype != tensor.dtype:
            return None
        start = base.storage_offset() - tensor.storage_offset()
        return cls(tuple(base.shape), base.stride(), start)


class Overlap(NamedTuple):
    """Two arguments of a launch that share memory.

    If both are written, `distance` is how many bytes the second one starts after the first, and
    `together` is whether they start together. If `is_around`, their tensors have no byte in common,
    but lie in one storage, and the kernel touches elements around them.
    """

    first: int
    second: int
    distance: int | None
    together: bool
    is_around: bool = False


class TensorFacts:
    """Layout of one pointer argument at one launch."""

    __slots__ = ("shape", "strides", "dtype", "span", "is_view", "is_part", "is_tensor", "base")

    def __init__(self, value):
        self.is_tensor = isinstance(value, Tensor)
        if self.is_tensor:
            self.shape = tuple(value.shape)
            self.strides = value.stride()
            self.dtype = value.dtype
            self.span = storage_span(value)
            self.is_view = value._is_view()
            self.is_part = _is_part(value)
            self.base = Base.of(value)

    @property
    def own(self) -> Span:
        """The memory from the first to the last element."""
        return Span(0, extent(self.shape, self.strides))

    @property
    def is_whole(self) -> bool:
        """Whether the tensor fills its storage."""
        return self.span == self.own and is_dense(self.shape, self.strides)


class Facts:
    """The facts of one launch. A result may only rely on those that its `extractor` extracts.

    `scalars` are the values of arguments; for tensors, their integer contents.
    """

    def __init__(self, extractor: FactExtractor, grid, leaves, aliasing):
        self.extractor = extractor
        self.grid = grid
        self.scalars = numbers(leaves)
        # The kernel may change contents that overlap an output before a program reads them.
        overlapping = {i for pair in aliasing[0] for i in pair[:2]}
        for i in extractor.pointers:
            if isinstance(leaves[i], Tensor) and i not in overlapping:
                self.scalars[i] = contents.Contents(leaves[i])
        self.tensors = {i: TensorFacts(leaves[i]) for i in extractor.pointers}
        self.aliasing, self.beside = aliasing
        self.descriptors = extractor.descriptors.known(leaves)
        self.device = next(
            leaves[i].device for i in extractor.pointers if self.tensors[i].is_tensor
        )
        self.spans: dict[int, Span] = {}

    def with_spans(self, spans: dict[int, Span]) -> Facts:
        """Return the facts of a launch with other memory for gradients than the tensors'
        storage.
        """
        facts = copy.copy(self)
        facts.spans = spans
        return facts

    def span(self, i: int) -> Span:
        """Return the memory that the gradient of an argument has."""
        return self.spans.get(i, self.tensors[i].span)

    def with_grid(self, grid) -> Facts:
        """Return the facts of a launch with another grid that does the same."""
        facts = copy.copy(self)
        facts.grid = grid
        return facts

    def evaluate(self, expr) -> int:
        """Return the value of a plan's expression for this launch."""
        known = {
            "extent": self._extent,
            "span": lambda i: self.span(i).total,
            "lead": lambda i: self.span(i).lead,
            "pitch": self._pitch,
            "processors": lambda: processors(self.device),
            "shared": lambda: int(bool(self.aliasing)),
            "parts": lambda: int(not self.keeps_outputs()),
        }
        return evaluate(substitute(expr, known), self.scalars, self.grid)

    def _extent(self, i: int) -> int:
        tensor = self.tensors[i]
        return extent(tensor.shape, tensor.strides)

    def _pitch(self, i: int, length: int) -> int:
        tensor = self.tensors[i]
        return pitch(tensor.shape, tensor.strides, length)

    def outputs_that_meet(self):
        """Yield the pairs of outputs that share memory."""
        for a, b, distance, _, is_around in self.aliasing:
            first, second = (
                (t.shape, t.strides, t.dtype.itemsize) for t in (self.tensors[a], self.tensors[b])
            )
            if distance is not None and (is_around or meet(first, second, distance)):
                yield a, b

    def keeps_outputs(self) -> bool:
        """Whether outputs keep what the kernel has stored as long as PyTorch notices no change.

        For PyTorch, a change of one part of a tensor is a change of all parts: a later launch may
        cause it.
        """
        parts = (t.is_part for t in map(self.tensors.get, self.extractor.outputs) if t.is_tensor)
        return not any(self.outputs_that_meet()) and not any(parts)

    def aliases(self, i: int):
        """Yield the other arguments whose memory overlaps that of argument `i`."""
        for a, b, *_ in self.aliasing:
            if a == i:
                yield b
            elif b == i:
                yield a

    def meet(self, hazard) -> bool:
        """Whether the tensors of this launch share memory in the way that a `Hazard` excludes."""
        for a, b, _, together, _ in self.aliasing:
            if {a, b} == {hazard.written, hazard.read}:
                return (
                    not together
                    or hazard.unless is None
                    or not all(
                        evaluate(x, self.scalars, self.grid) == evaluate(y, self.scalars, self.grid)
                        for x, y in hazard.unless
                    )
                )
        return False


class FactExtractor:
    """Extracts the facts of launches of one kernel."""

    def __init__(self, name: str, names, pointers, outputs, descriptors, accesses):
        self.name = name
        self.names = names
        self.pointers = pointers
        self.outputs = tuple(outputs)
        self.descriptors = descriptors
        self.scalars: tuple[int, ...] = ()
        self.spanned: tuple[int, ...] = ()
        self.based: tuple[int, ...] = ()
        written = set(outputs)
        # Shared memory only matters if it is written.
        self._pairs = tuple(
            (a, b, a in written and b in written)
            for n, a in enumerate(pointers)
            for b in pointers[n + 1 :]
            if a in written or b in written
        )
        self.accesses = Accesses(accesses)

    def covers(self, scalars, spanned, based) -> bool:
        """Return whether the key contains these scalars, spans and bases."""
        return (
            set(scalars) <= set(self.scalars)
            and set(spanned) <= set(self.spanned)
            and set(based) <= set(self.based)
        )

    def grow(self, scalars, spanned, based) -> None:
        """Add these scalars, spans and bases to the key."""
        self.scalars = tuple(sorted({*self.scalars, *scalars}))
        self.spanned = tuple(sorted({*self.spanned, *spanned}))
        self.based = tuple(sorted({*self.based, *based}))

    def extract(self, grid, leaves):
        """Return the key of a launch, and which arguments share memory: see `_aliasing`."""
        layouts, spans, views, scalars = [], [], [], []
        # From where to where tensors reach, if it matters which of them meet.
        ranges = {} if self._pairs else None
        for i in self.pointers:
            t = leaves[i]
            if not isinstance(t, Tensor):
                layouts.append(type(t))
                continue
            if t.is_nested:
                raise ArgumentError(f"{self._where(i)} {fault_of(t)}")
            shape, strides, start = t.shape, t.stride(), t.data_ptr()
            # Where there is an address, the device's number says enough, and takes less time.
            layouts.append((shape, strides, t.get_device(), t.is_neg(), start == 0 and t.device))
            if ranges is not None:
                size = t.nbytes if t.is_contiguous() else extent(shape, strides) * t.element_size()
                ranges[i] = start, start + size
        for i in self.spanned:
            t = leaves[i]
            if isinstance(t, Tensor):
                spans.append((t.storage_offset(), t.untyped_storage().nbytes()))
        for i in self.based:
            if isinstance(t := leaves[i], Tensor):
                spans.append(Base.of(t))
        for i in self.outputs:
            t = leaves[i]
            if isinstance(t, Tensor):
                views.append(_is_part(t) if t._is_view() else None)
        for i in self.scalars:
            v = leaves[i]
            scalars.append(contents.fingerprint(v) if isinstance(v, Tensor) else v)
        aliasing = self._aliasing(leaves, ranges, grid) if ranges else ((), ())
        described = self.descriptors.known(leaves)
        return (grid, described, *scalars, *layouts, *spans, *views, aliasing), aliasing

    def _aliasing(self, leaves, ranges, grid):
        """Return the `Overlap`s of a launch, and the pairs of arguments in one storage of which
        the kernel touches no common memory.
        """
        found, beside = [], []
        parts = None
        for a, b, written in self._pairs:
            if a in ranges and b in ranges:
                start_a, end_a = ranges[a]
                start_b, end_b = ranges[b]
                meets = start_a < end_b and start_b < end_a
                if not meets:
                    if parts is None:
                        parts = self._writes_to_parts(leaves, ranges)
                    if not parts or not in_one_storage(leaves[a], leaves[b]):
                        continue
                    if not self.accesses.meet(a, b, leaves, grid):
                        beside.append((a, b))
                        continue
                distance = start_b - start_a
                found.append(Overlap(a, b, distance if written else None, distance == 0, not meets))
        return tuple(found), tuple(beside)

    def _writes_to_parts(self, leaves, ranges) -> bool:
        """Return whether the storage of an output holds more than its elements."""
        for j in self.outputs:
            if j in ranges:
                first, end = ranges[j]
                if torch._C._has_storage(leaves[j]):
                    if leaves[j].untyped_storage().nbytes() > end - first:
                        return True
        return False

    def _where(self, i) -> str:
        return f"argument {self.names[i]!r} of kernel {self.name!r}"

    def validate(self, leaves, target) -> None:
        """Raise `ArgumentError` unless every pointer is a tensor on the device of the kernel."""
        cpu = target.backend == "cpu"
        first = None
        for i in self.pointers:
            value = leaves[i]
            if not isinstance(value, Tensor):
                continue
            where = self._where(i)
            fault = fault_of(value)
            if fault is not None:
                raise ArgumentError(f"{where} {fault}")
            if (value.device.type == "cpu") != cpu:
                raise ArgumentError(
                    f"{where} is on {value.device}, but the kernel runs on {target.backend}: move "
                    "all tensors of the launch to one device"
                )
            if value.is_neg():
                raise ArgumentError(
                    f"{where} holds the negatives of its elements in memory (the imaginary part "
                    "of a conjugate does): call resolve_neg() on it"
                )
            if first is not None and value.device != leaves[first].device:
                raise ArgumentError(
                    f"{where} is on {value.device}, but {self.names[first]!r} is on "
                    f"{leaves[first].device}: move them to one device"
                )
            first = i if first is None else first
