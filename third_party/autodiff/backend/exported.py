"""What modules that `export` writes have besides kernels: assertions, memory, sums of gradients.

A module gets those of these functions that it uses, as text (`bundle.py`).
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from .coverage import GAPS, cover, is_within, length_of, merge, repeat, spelled
from .memory import (
    Span,
    allocate,
    extent,
    is_dense,
    is_non_overlapping,
    lay_out,
    restore,
    storage_span,
)
from .partials import ROUNDED_ALIKE, add_up, tile_of


def require(condition: bool, message: str) -> None:
    """Raise an `AssertionError` unless a condition holds, also where Python leaves out asserts."""
    if not condition:
        raise AssertionError(message)


def require_tensor(name: str, value, dtype, device: str, aligned: bool) -> None:
    """Raise unless an argument is a tensor of this dtype on this device, all that it stands for."""
    is_tensor = isinstance(value, torch.Tensor)
    if not is_tensor:
        raise AssertionError(f"{name} was a tensor, it is {value!r}")
    if value.dtype != dtype:
        raise AssertionError(f"{name} was of {dtype}, it is of {value.dtype}")
    if value.device.type != device:
        raise AssertionError(f"{name} was on {device}, it is on {value.device}")
    if value.layout is not torch.strided or value.is_neg():
        raise AssertionError(f"{name} has to hold its elements as they are: {value.layout}")
    if aligned and value.data_ptr() % 16:
        raise AssertionError(f"{name} began at a multiple of 16 bytes, not at {value.data_ptr()}")


def require_integer(name: str, value, bits: int, divisor: int = 1) -> None:
    """Raise unless a scalar is an integer of so many bits, and a multiple of `divisor`."""
    if type(value) is not int or not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise AssertionError(f"{name} was an integer of {bits} bits, it is {value!r}")
    if value % divisor:
        raise AssertionError(f"{name} was a multiple of {divisor}, it is {value}")


def require_same(name: str, value, given) -> None:
    """Raise unless an argument is what the kernel was compiled for."""
    if type(value) is not type(given) or value != given:
        raise AssertionError(f"{name} was {given!r}, it is {value!r}")


def require_options(options: dict, given: dict) -> None:
    """Raise unless options of a launch are those that the kernels were compiled with."""
    for name, value in options.items():
        if name not in given:
            raise AssertionError(f"{name} is neither a parameter nor an option")
        require_same(name, value, given[name])


def parts(name: str, value, count: int) -> tuple:
    """Return a tuple; raises unless it is one of so many parts."""
    is_such = isinstance(value, tuple) and len(value) == count
    require(is_such, f"{name} was a tuple of {count}, it is {value!r}")
    return value


def described(name: str, value, block: list[int]) -> tuple:
    """Return what a descriptor of blocks is of: a tensor, its padding, its sizes, its strides.

    Raises unless it is one of such blocks. The padding is said to be NaN, or not.
    """
    is_such = isinstance(value, TensorDescriptor)
    require(is_such, f"{name} was a TensorDescriptor, it is {value!r}")
    require_same(f"{name}.block_shape", list(value.block_shape), block)
    require_same(f"{name}.round_f32_to_tf32", getattr(value, "round_f32_to_tf32", False), False)
    rank = len(block)
    require_same(f"the rank of {name}", (len(value.shape), len(value.strides)), (rank, rank))
    return value.base, value.padding == "nan", *value.shape, *value.strides


def integers_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """Return what memory holds from a tensor's first to its last element; waits for the device."""
    count = extent(tensor.shape, tensor.stride())
    require(count <= 4096, f"{count} integers are too many to be read at a launch")
    return tuple(tensor.detach().as_strided((count,), (1,)).tolist())


def at(held: tuple[int, ...], place: int) -> int:
    """Return what a tensor holds at a place, counted from its first element on."""
    require(0 <= place < len(held), f"integers are read at {place}, the tensor has {len(held)}")
    return held[place]


def require_no_gradient(name: str, tensor) -> None:
    """Raise if a gradient is wanted that nobody has exported."""
    if isinstance(tensor, torch.Tensor) and tensor.requires_grad and torch.is_grad_enabled():
        raise AssertionError(f"{name} did not require a gradient: detach it, or export again")


def require_no_part(name: str, tensor: torch.Tensor) -> None:
    """Raise if a tensor is a part of another one, whose other parts may change meanwhile."""
    if tensor._is_view() and tensor._base.numel() != tensor.numel():
        raise AssertionError(f"{name} was no part of another tensor, it is: clone it")


def require_one_device(tensors: dict, capability) -> None:
    """Raise unless tensors are on one device, of this capability if it is a GPU (else None)."""
    devices = {tensor.device for tensor in tensors.values()}
    if len(devices) != 1:
        raise AssertionError(f"all tensors were on one device, they are on {devices}")
    if capability is None:
        return
    device = devices.pop()
    if device.index != torch.cuda.current_device():
        raise AssertionError(f"the tensors are on {device}, which is not the current device")
    here = capability_of(device)
    if here != capability:
        raise AssertionError(f"the device's capability was {capability}, it is {here}")


@functools.cache
def capability_of(device: torch.device) -> tuple[int, int]:
    """Return what PyTorch says of a GPU."""
    return torch.cuda.get_device_capability(device)


def require_meetings(tensors: dict, written: tuple, meetings: tuple) -> None:
    """Raise unless just those tensors share memory with a written one that did, from one start."""
    ranges = [(name, t.data_ptr(), t.data_ptr() + sum_of_bytes(t)) for name, t in tensors.items()]
    for place, (a, first, end) in enumerate(ranges):
        for b, other, other_end in ranges[place + 1 :]:
            if a in written or b in written:
                meet = first < other_end and other < end
                if meet != ((a, b) in meetings) or (meet and first != other):
                    how = "share" if meet else "shared"
                    raise AssertionError(f"{a} and {b} {how} memory: not as before")


def sum_of_bytes(tensor: torch.Tensor) -> int:
    """Return how many bytes lie from the first to the last element."""
    return extent(tensor.shape, tensor.stride()) * tensor.element_size()


def require_whole(name: str, like: Layout) -> None:
    """Raise unless a tensor is all that its storage holds, each element once."""
    if like.span != Span(0, like.size) or not is_dense(like.shape, like.strides):
        raise AssertionError(f"{name} was all that its storage holds, it is a part or repeats some")


def require_dense(name: str, like: Layout) -> None:
    """Raise unless a tensor has no gaps, and holds each element once."""
    if not is_dense(like.shape, like.strides):
        raise AssertionError(f"{name} had no gaps and repeated nothing, it has {like.strides}")


def require_cover(name: str, like: Layout, offset: int, dims) -> None:
    """Raise unless each element of a tensor gets its gradient once."""
    objection = cover(like.shape, like.strides, offset, dims)
    if objection is not None:
        raise AssertionError(f"the kernel reached each element of {name} once: {objection}")


def require_distinct(name: str, dims) -> None:
    """Raise unless no element is reached twice."""
    objection = repeat(dims)
    if objection is not None:
        raise AssertionError(f"the kernel reached no element of {name} twice: {objection}")


def part(digits, bound: int | None = None) -> int:
    """Return the length of a program's part: what `(step, extent)` digits add up to."""
    length = length_of(digits)
    require(length is not None, GAPS)
    return length if bound is None else min(length, bound)


def counted_up(parts) -> list:
    """Return those of programs' parts that hold anything, in the order of memory.

    A part is where it starts, and the `(stride, length)` pairs of a box.
    """
    found = []
    for start, box in parts:
        if all(length > 0 for _, length in box):
            start += sum(min(stride * (length - 1), 0) for stride, length in box)
            found.append((start, [(1, 1), *((abs(stride), length) for stride, length in box)]))
    return found


def ends_of_parts(parts) -> tuple[int, int]:
    """Return the first and the last element of programs' parts; 0 and -1 if there is none."""
    parts = counted_up(parts)
    ends = [start + sum(stride * (length - 1) for stride, length in box) for start, box in parts]
    return min((start for start, _ in parts), default=0), max(ends, default=-1)


def met_by_parts(name: str, parts, first: int, count: int) -> torch.Tensor:
    """Return how many of programs' parts hold each of so many elements, from the first on."""
    require(count < 1 << 31, f"{name}: parts of {count} elements are too many to be compared")
    met = torch.zeros(count, dtype=torch.int32, device="cpu")
    for start, box in counted_up(parts):
        strides, lengths = zip(*box, strict=True)
        require(is_non_overlapping(lengths, strides), f"no program reached part of {name} twice")
        met.as_strided(lengths, strides, start - first).add_(1)
    return met


def require_parts_cover(name: str, like: Layout, parts) -> None:
    """Raise unless each element of a tensor is in one of programs' parts."""
    words = f"the parts of {name} that programs have held each element once"
    first, last = ends_of_parts(parts)
    require(0 <= first and last < like.size, words)
    met = met_by_parts(name, parts, 0, like.size)
    held = met.as_strided(like.shape, like.strides)
    require(bool((held == 1).all()) and int(met.sum()) == held.numel(), words)


def require_parts_distinct(name: str, parts) -> None:
    """Raise unless no element is in two of programs' parts."""
    first, last = ends_of_parts(parts)
    met = met_by_parts(name, parts, first, last - first + 1)
    require(not (met > 1).any(), f"the parts of {name} that programs have did not overlap")


def require_in_tensor(name: str, like: Layout, first: int, last: int) -> None:
    """Raise unless what a storage holds from the first to the last element is a tensor's."""
    lead, total = like.span
    held = max(first, -lead), min(last, total - lead - 1)
    if first <= last and not 0 <= held[0] <= held[1] < like.size:
        raise AssertionError(f"{name}: {first} to {last} of {like.size} elements are reached")


def require_among(name: str, like: Layout, start: int, box) -> None:
    """Raise unless all of a box are elements of a tensor, which may have gaps or repeat some.

    The box are `(count, stride)` pairs from a start on.
    """
    held = merge(zip(like.shape, like.strides, strict=True))
    is_empty = any(count <= 0 for count, _ in box)
    words = f"{name}: all that is reached was the tensor's, now {spelled(box)} from {start} is not"
    require(is_empty or is_within(start, box, held), words)


def box(grid, place_of, filled: bool) -> list[int]:
    """Return the extents of a box in which each program has a place of its own.

    Raises unless they have; and unless there is nothing else in it, if it is `filled`.
    """
    z, y, x = (range(extent) for extent in reversed(grid))
    places = [place_of(i, j, k) for k in z for j in y for i in x]
    extents = [max(along) + 1 for along in zip(*places, strict=True)]
    apart = len(set(places)) == len(places) and min(map(min, places), default=0) >= 0
    if not apart or (filled and math.prod(extents) != len(places)):
        raise AssertionError(f"programs had places of their own in a box, here of {extents}")
    return extents


class Layout(NamedTuple):
    """Where the elements of a tensor are, in which storage, and what they are."""

    shape: torch.Size
    strides: tuple[int, ...]
    span: Span
    dtype: torch.dtype
    device: torch.device

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Layout:
        """Return that of a tensor."""
        span = storage_span(tensor)
        return cls(tensor.shape, tensor.stride(), span, tensor.dtype, tensor.device)

    @property
    def size(self) -> int:
        """The elements from the first to the last one."""
        return extent(self.shape, self.strides)

    def empty(self, dtype: torch.dtype) -> torch.Tensor:
        """Return memory for a number for each element."""
        return torch.empty_strided(self.shape, self.strides, dtype=dtype, device=self.device)

    def memory(self, dtype: torch.dtype, span: Span, zero: bool) -> torch.Tensor:
        """Return memory for a number for each element of a span, seen from the tensor."""
        return allocate(self.shape, self.strides, span, dtype, self.device, zero)

    def upstream(self, gradient: torch.Tensor | None) -> torch.Tensor:
        """Return an upstream gradient as kernels read it; nothing is zero."""
        if gradient is None:
            return self.memory(self.dtype, self.span, True)
        return lay_out(gradient, self.shape, self.strides, self.dtype, self.span)

    def sums(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        """Return memory for `count` partial sums of the gradient, one after the other."""
        shape, strides = (count, *self.shape), (self.size, *self.strides)
        return torch.empty_strided(shape, strides, dtype=dtype, device=self.device)

    def restored(self, kept: torch.Tensor) -> torch.Tensor:
        """Return what autograd kept of a tensor; hooks may have laid it out otherwise."""
        return restore(kept, self.strides, self.span)


def added_up(layouts, partials) -> list[torch.Tensor]:
    """Return the gradients of tensors from equally many partial sums of each."""
    count = partials[0].shape[0]
    on_cpu = layouts[0].device.type == "cpu"
    if on_cpu or any(layout.dtype not in ROUNDED_ALIKE for layout in layouts):
        pairs = zip(partials, layouts, strict=True)
        return [sums.sum(0).to(layout.dtype) for sums, layout in pairs]
    totals = [layout.empty(layout.dtype) for layout in layouts]
    sizes = tuple(layout.size for layout in layouts)
    rows, columns, warps = tile_of(count)
    grid = (triton.cdiv(max(sizes), columns), len(sizes))
    args = (tuple(partials), tuple(totals), sizes, count, rows, columns)
    add_up[grid](*args, num_warps=warps)
    return totals


class Kernel:
    """What launches a kernel and its gradients: `kernel[grid](…)`."""

    def __init__(self, *launches):
        self._launches = launches

    def __getitem__(self, grid):
        return functools.partial(self._launch, grid)

    def _launch(self, grid, *args, **options):
        if len(self._launches) == 1:
            return self._launches[0](grid, *args, **options)
        objections = []
        for launch in self._launches:
            try:
                return launch(grid, *args, **options)
            except AssertionError as error:
                objections.append(str(error))
        raise AssertionError("nothing was exported for this launch: " + "; ".join(objections))


def three(grid, arguments: dict) -> tuple[int, int, int]:
    """Return the extents of a grid along three axes."""
    grid = grid(arguments) if callable(grid) else grid
    grid = (grid,) if isinstance(grid, int) else tuple(grid)
    return (*grid, 1, 1)[:3]
