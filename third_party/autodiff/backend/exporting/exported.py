"""Functions for modules that `export` writes: assertions, memory, sums of gradients.

A module gets the text of those functions that it uses (`bundle.py`).
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch
import triton
from torch.autograd import forward_ad
from triton.tools.tensor_descriptor import TensorDescriptor

from ..checking.accesses import in_one_storage
from ..checking.coverage import GAPS, cover, is_within, length_of, merge, repeat, spelled
from ..launching.blame import is_batch
from ..launching.once import refuse_second
from ..programs.partials import add_up, suit_kernel, tile_of
from ..storage.memory import (
    ALIGNMENT,
    Span,
    allocate,
    extent,
    is_dense,
    is_non_overlapping,
    lay_out,
    restore,
    room_for,
    same_strides,
    storage_span,
)


def require(condition: bool, message: str) -> None:
    """Raise an `AssertionError` unless a condition holds, even if Python skips asserts."""
    if not condition:
        raise AssertionError(message)


def require_tensor(name: str, value, dtype, device: str, aligned: bool) -> None:
    """Raise unless an argument is a plain tensor of this dtype on this device."""
    is_tensor = isinstance(value, torch.Tensor)
    if not is_tensor:
        raise AssertionError(f"{name} was a tensor, it is {value!r}")
    if value.dtype != dtype:
        raise AssertionError(f"{name} was of {dtype}, it is of {value.dtype}")
    if value.device.type != device:
        raise AssertionError(f"{name} was on {device}, it is on {value.device}")
    if value.layout is not torch.strided or value.is_neg():
        raise AssertionError(f"{name} has to hold its elements as they are: {value.layout}")
    require_plain(name, value)
    if aligned and value.data_ptr() % 16:
        raise AssertionError(f"{name} began at a multiple of 16 bytes, not at {value.data_ptr()}")


def require_plain(name: str, tensor: torch.Tensor) -> None:
    """Raise for a tensor that has a tangent, or that a transform of `torch.func` has wrapped."""
    what = None
    if is_batch(tensor):
        what = "is wrapped by a transform of torch.func, or a batch"
    elif forward_ad._current_level >= 0 and forward_ad.unpack_dual(tensor).tangent is not None:
        what = "has a tangent"
    if what is not None:
        raise AssertionError(
            f"{name} {what}: this module has first derivatives in reverse mode only. The operation "
            "or kernel that it was exported from has the others"
        )


def first_order(kernel: str, gradients_of, ctx, upstream) -> tuple:
    """Return the gradients of a launch of a kernel, so that to differentiate them is an error."""
    for gradient in upstream:
        if gradient is not None:
            require_plain(f"an upstream gradient of kernel {kernel!r}", gradient)
    with torch.no_grad():
        gradients = gradients_of(ctx, *upstream)
    if not torch.is_grad_enabled():
        return gradients
    reason = (
        "this module has first derivatives only; the operation or kernel that it was exported from "
        "has all"
    )
    about = RuntimeError, f"kernel {kernel!r}", reason
    return tuple(refuse_second(*about, ctx, upstream, ctx.saved_tensors, gradients))


def require_integer(name: str, value, bits: int, divisor: int = 1) -> None:
    """Raise unless a scalar is an integer of so many bits, and a multiple of `divisor`."""
    if type(value) is not int or not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise AssertionError(f"{name} was an integer of {bits} bits, it is {value!r}")
    if value % divisor:
        raise AssertionError(f"{name} was a multiple of {divisor}, it is {value}")


def require_same(name: str, value, given) -> None:
    """Raise unless an argument equals the value that the kernel was compiled for."""
    if type(value) is not type(given) or value != given:
        raise AssertionError(f"{name} was {given!r}, it is {value!r}")


def require_options(options: dict, given: dict) -> None:
    """Raise unless options of a launch are those that the kernels were compiled with."""
    for name, value in options.items():
        if name not in given:
            raise AssertionError(f"{name} is neither a parameter nor an option")
        require_same(name, value, given[name])


def parts(name: str, value, count: int) -> tuple:
    """Return a tuple; raises unless it has so many elements."""
    is_such = isinstance(value, tuple) and len(value) == count
    require(is_such, f"{name} was a tuple of {count}, it is {value!r}")
    return value


def described(name: str, value, block: list[int]) -> tuple:
    """Return the components of a descriptor: a tensor, its padding, its sizes, its strides.

    Raises unless it has blocks of this shape. The padding is whether it is NaN.
    """
    is_such = isinstance(value, TensorDescriptor)
    require(is_such, f"{name} was a TensorDescriptor, it is {value!r}")
    require_same(f"{name}.block_shape", list(value.block_shape), block)
    require_same(f"{name}.round_f32_to_tf32", getattr(value, "round_f32_to_tf32", False), False)
    rank = len(block)
    require_same(f"the rank of {name}", (len(value.shape), len(value.strides)), (rank, rank))
    return value.base, value.padding == "nan", *value.shape, *value.strides


def integers_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """Return the integers from a tensor's first to its last element; waits for the device."""
    count = extent(tensor.shape, tensor.stride())
    require(count <= 4096, f"{count} integers are too many to be read at a launch")
    return tuple(tensor.detach().as_strided((count,), (1,)).tolist())


def at(held: tuple[int, ...], place: int) -> int:
    """Return the integer at an index, counted from the tensor's first element."""
    require(0 <= place < len(held), f"integers are read at {place}, the tensor has {len(held)}")
    return held[place]


def require_no_gradient(name: str, tensor) -> None:
    """Raise if a gradient is wanted that was not exported."""
    if isinstance(tensor, torch.Tensor) and tensor.requires_grad and torch.is_grad_enabled():
        raise AssertionError(f"{name} did not require a gradient: detach it, or export again")


def require_no_part(name: str, tensor: torch.Tensor) -> None:
    """Raise if a tensor is a part of another one, whose other elements may change meanwhile."""
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
def require_triton(kernel: str, what: str, made: tuple, right: tuple) -> None:
    """Raise unless Triton is the version that a kernel was made with, where its code was examined,
    or one that gets `what` right: from `right` on.
    """
    here = tuple(int(part) for part in triton.__version__.split(".")[:2])
    if here != made and here < right:
        raise AssertionError(
            f"kernel {kernel!r} has {what}, which Triton {triton.__version__} may compile wrongly "
            f"on this GPU; it was made with {made[0]}.{made[1]}. Use Triton {right[0]}.{right[1]} "
            "or newer, or export it again with this one, which then looks at what it compiles"
        )


@functools.cache
def capability_of(device: torch.device) -> tuple[int, int]:
    """Return a GPU's compute capability."""
    return torch.cuda.get_device_capability(device)


def require_meetings(tensors: dict, written: tuple, meetings: tuple, beside: tuple = ()) -> None:
    """Raise unless the same tensors as before share memory with a written one, at one start, and
    lie `beside` one in its storage.
    """
    ranges = [(name, t.data_ptr(), t.data_ptr() + sum_of_bytes(t)) for name, t in tensors.items()]
    for place, (a, first, end) in enumerate(ranges):
        for b, other, other_end in ranges[place + 1 :]:
            if a in written or b in written:
                meet = first < other_end and other < end
                if meet != ((a, b) in meetings) or (meet and first != other):
                    how = "share" if meet else "shared"
                    raise AssertionError(f"{a} and {b} {how} memory: not as before")
                if not meet and (a, b) not in beside and in_one_storage(tensors[a], tensors[b]):
                    raise AssertionError(
                        f"{a} and {b} are parts of one tensor: not as before, and the kernel may "
                        "read around them. Export a launch of such parts"
                    )


def sum_of_bytes(tensor: torch.Tensor) -> int:
    """Return the number of bytes from the first to the last element."""
    return extent(tensor.shape, tensor.stride()) * tensor.element_size()


def require_whole(name: str, like: Layout) -> None:
    """Raise unless a tensor fills its storage, with each element once."""
    if like.span != Span(0, like.size) or not is_dense(like.shape, like.strides):
        raise AssertionError(f"{name} was all that its storage holds, it is a part or repeats some")


def require_dense(name: str, like: Layout) -> None:
    """Raise unless a tensor has no gaps, and has each element once."""
    if not is_dense(like.shape, like.strides):
        raise AssertionError(f"{name} had no gaps and repeated nothing, it has {like.strides}")


def require_cover(name: str, like: Layout, offset: int, dims) -> None:
    """Raise unless each element of a tensor gets its gradient once."""
    objection = cover(like.shape, like.strides, offset, dims)
    if objection is not None:
        raise AssertionError(f"the kernel reached each element of {name} once: {objection}")


def require_distinct(name: str, dims) -> None:
    """Raise unless no element is touched twice."""
    objection = repeat(dims)
    if objection is not None:
        raise AssertionError(f"the kernel reached no element of {name} twice: {objection}")


def part(digits, bound: int | None = None) -> int:
    """Return the length of a program's range: what `(step, extent)` digits add up to."""
    length = length_of(digits)
    require(length is not None, GAPS)
    return length if bound is None else min(length, bound)


def counted_up(parts) -> list:
    """Return the ranges of programs that are not empty, in the order of memory.

    A range is its start, and the `(stride, length)` pairs of a box.
    """
    found = []
    for start, box in parts:
        if all(length > 0 for _, length in box):
            start += sum(min(stride * (length - 1), 0) for stride, length in box)
            found.append((start, [(1, 1), *((abs(stride), length) for stride, length in box)]))
    return found


def ends_of_parts(parts) -> tuple[int, int]:
    """Return the first and the last element of programs' ranges; 0 and -1 if all are empty."""
    parts = counted_up(parts)
    ends = [start + sum(stride * (length - 1) for stride, length in box) for start, box in parts]
    return min((start for start, _ in parts), default=0), max(ends, default=-1)


def met_by_parts(name: str, parts, first: int, count: int) -> torch.Tensor:
    """Return, for each of `count` elements from the first on, how many ranges contain it."""
    require(count < 1 << 31, f"{name}: parts of {count} elements are too many to be compared")
    met = torch.zeros(count, dtype=torch.int32, device="cpu")
    for start, box in counted_up(parts):
        strides, lengths = zip(*box, strict=True)
        require(is_non_overlapping(lengths, strides), f"no program reached part of {name} twice")
        met.as_strided(lengths, strides, start - first).add_(1)
    return met


def require_parts_cover(name: str, like: Layout, parts) -> None:
    """Raise unless each element of a tensor is in the range of one program."""
    words = f"the parts of {name} that programs have held each element once"
    first, last = ends_of_parts(parts)
    require(0 <= first and last < like.size, words)
    met = met_by_parts(name, parts, 0, like.size)
    held = met.as_strided(like.shape, like.strides)
    require(bool((held == 1).all()) and int(met.sum()) == held.numel(), words)


def require_parts_distinct(name: str, parts) -> None:
    """Raise unless no element is in the ranges of two programs."""
    first, last = ends_of_parts(parts)
    met = met_by_parts(name, parts, first, last - first + 1)
    require(not (met > 1).any(), f"the parts of {name} that programs have did not overlap")


def require_in_tensor(name: str, like: Layout, first: int, last: int) -> None:
    """Raise unless all memory from the first to the last element belongs to a tensor."""
    lead, total = like.span
    held = max(first, -lead), min(last, total - lead - 1)
    if first <= last and not 0 <= held[0] <= held[1] < like.size:
        raise AssertionError(f"{name}: {first} to {last} of {like.size} elements are reached")


def require_nothing_around(name: str, like: Layout, first: int, last: int) -> None:
    """Raise unless all from the first to the last element are a tensor's, whatever is around it."""
    if first <= last and not (first >= 0 and last < like.size):
        raise AssertionError(f"{name}: {first} to {last} of {like.size} elements are reached")


def require_among(name: str, like: Layout, start: int, box) -> None:
    """Raise unless all elements of a box are a tensor's, which may have gaps or repeat some.

    The box is a list of `(count, stride)` pairs, from a start on.
    """
    held = merge(zip(like.shape, like.strides, strict=True))
    is_empty = any(count <= 0 for count, _ in box)
    words = f"{name}: all that is reached was the tensor's, now {spelled(box)} from {start} is not"
    require(is_empty or is_within(start, box, held), words)


def box(grid, place_of, filled: bool) -> list[int]:
    """Return the extents of a box in which each program has its own position.

    Raises if two programs share one, or, with `filled`, if a position is empty.
    """
    z, y, x = (range(extent) for extent in reversed(grid))
    places = [place_of(i, j, k) for k in z for j in y for i in x]
    extents = [max(along) + 1 for along in zip(*places, strict=True)]
    apart = len(set(places)) == len(places) and min(map(min, places), default=0) >= 0
    if not apart or (filled and math.prod(extents) != len(places)):
        raise AssertionError(f"programs had places of their own in a box, here of {extents}")
    return extents


class Layout(NamedTuple):
    """The layout of a tensor: storage, shape, strides, dtype."""

    shape: torch.Size
    strides: tuple[int, ...]
    span: Span
    dtype: torch.dtype
    device: torch.device

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Layout:
        """Return the layout of a tensor."""
        span = storage_span(tensor)
        return cls(tensor.shape, tensor.stride(), span, tensor.dtype, tensor.device)

    @property
    def size(self) -> int:
        """The number of elements from the first to the last one."""
        return extent(self.shape, self.strides)

    def empty(self, dtype: torch.dtype) -> torch.Tensor:
        """Return memory with the same layout."""
        return torch.empty_strided(self.shape, self.strides, dtype=dtype, device=self.device)

    def memory(self, dtype: torch.dtype, span: Span, zero: bool) -> torch.Tensor:
        """Return memory with the same layout, extended to a span around the tensor."""
        return allocate(self.shape, self.strides, span, dtype, self.device, zero)

    def zeros(self) -> torch.Tensor:
        """Return the gradient of a tensor without influence."""
        return torch.zeros(self.shape, dtype=self.dtype, device=self.device)

    def room(
        self, dtype: torch.dtype, span: Span, zero: bool, content: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return memory that covers a span around the tensor, from its first element to the end.

        A graph may copy what a kernel writes to: it copies what it sees.
        """
        if span.lead == 0 and span.total == self.size:
            made = self.memory(dtype, span, zero)
            return made if content is None else made.copy_(content)
        flat, start = room_for(span, dtype, self.device, zero)
        if content is not None:
            flat.as_strided(self.shape, self.strides, start).copy_(content)
        return flat[start:]

    def view_of(self, room: torch.Tensor) -> torch.Tensor:
        """Return the tensor's own elements in such memory."""
        return room if room.shape == self.shape else room.as_strided(self.shape, self.strides)

    def upstream(self, gradient: torch.Tensor | None) -> torch.Tensor:
        """Return an upstream gradient in the layout that kernels read; None is zero."""
        if gradient is None:
            return self.memory(self.dtype, self.span, True)
        return lay_out(gradient, self.shape, self.strides, self.dtype, self.span)

    def sums(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        """Return memory for `count` partial sums of the gradient, one after the other."""
        shape, strides = (count, *self.shape), (self.size, *self.strides)
        return torch.empty_strided(shape, strides, dtype=dtype, device=self.device)

    def restored(self, kept: torch.Tensor, around: bool = False) -> torch.Tensor:
        """Return what autograd saved of a tensor in its own layout, which hooks may change.

        Raises if the kernel may read `around` it, in its storage, and a hook has kept only the
        tensor.
        """
        held, (lead, total) = storage_span(kept), self.span
        # Something may be in front of a copy of the whole storage, so that it is aligned.
        padding = held.lead - lead
        has_surroundings = padding == held.total - total
        has_surroundings &= 0 <= padding * kept.element_size() < ALIGNMENT
        is_alike = same_strides(self.shape, kept.stride(), self.strides) and not kept.is_neg()
        if has_surroundings and is_alike and kept.dtype == self.dtype:
            return kept
        is_whole = self.span == Span(0, self.size)
        require(is_whole or not around, "a hook on saved tensors keeps what is around a tensor")
        return restore(kept.to(self.dtype), self.strides, self.span)


def added_up(layouts, partials) -> list[torch.Tensor]:
    """Return the gradients of tensors, given the same number of partial sums of each."""
    count = partials[0].shape[0]
    if not suit_kernel(count, layouts[0].device, [layout.dtype for layout in layouts]):
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
    """Launches a kernel with gradients: `kernel[grid](…)`."""

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
