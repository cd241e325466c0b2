"""Buffers that mirror a tensor's addressing: shadows, cotangents and snapshots.

A generated kernel addresses the gradient of a tensor with the tensor's own element offsets from
the pointer it was given. A `Span` says how much memory those offsets may touch: `lead` elements
before the pointer and `total` elements in all. It is the tensor's own extent where the accesses
are known to stay inside, and the tensor's whole storage elsewhere, so that no kernel writes
outside a buffer that merely mirrors memory which the forward kernel was allowed to touch.

Generated kernels assume 16-byte alignment wherever the primal pointer had it, so every buffer
made here is aligned at the data pointer, whatever its element size.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch._prims_common import make_contiguous_strides_for

ALIGNMENT = 16


class Span(NamedTuple):
    """Elements that offsets from a data pointer may touch."""

    lead: int
    total: int

    def covering(self, first: int, last: int) -> Span:
        """Return the span that holds these elements, too."""
        lead = max(self.lead, -first)
        return Span(lead, lead + max(self.total - self.lead, last + 1))

    def widened(self, margin: int) -> Span:
        """Return the span with so many more elements on both sides."""
        return Span(self.lead + margin, self.total + 2 * margin)


def extent(shape, strides) -> int:
    """Return the elements from the first to the last one of a strided tensor."""
    reach = 1
    for size, stride in zip(shape, strides, strict=True):
        if size == 0:
            return 0
        reach += (size - 1) * stride
    return reach


# What a line of memory holds of a sum: parts that are shorter are hardly worth a number.
SHORTEST_ROW = 32


def pitch(shape, strides, length: int) -> int:
    """Return how far rows lie apart that tiles of this `length` may hold, or a part of which.

    The smallest stride larger than half of it; else the largest one that is not short; else
    `length`.
    """
    steps = [step for size, step in zip(shape, strides, strict=True) if size > 1]
    long = [step for step in steps if step > length // 2]
    return min(long, default=max((s for s in steps if s >= SHORTEST_ROW), default=length))


def same_strides(shape, a, b) -> bool:
    """Return whether strides `a` and `b` address a tensor of `shape` alike."""
    return all(size <= 1 or s == t for size, s, t in zip(shape, a, b, strict=True))


def is_non_overlapping(shape, strides) -> bool:
    """Return whether no two elements are proved to share memory by the nesting of strides.

    Sufficient, not necessary: an interleaving that is distinct for another reason counts as
    overlapping, which costs an exact computation later and nothing else.
    """
    if 0 in shape:
        return True
    reach = 0
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return False
            reach += (size - 1) * stride
    return True


def strides_of_gradient(shape, strides) -> tuple[int, ...]:
    """Return those of a tensor's gradient: the same, unless elements of the tensor share memory."""
    if is_non_overlapping(shape, strides):
        return tuple(strides)
    return make_contiguous_strides_for(shape)


def shares_memory(shape, strides) -> bool:
    """Return whether two elements of a tensor are one place in memory; exact."""
    if is_non_overlapping(shape, strides):
        return False
    linear = torch.arange(extent(shape, strides), device="cpu").as_strided(shape, strides)
    return linear.unique().numel() < linear.numel()


def is_dense(shape, strides) -> bool:
    """Return whether the elements fill their extent, each place once."""
    count = 1
    for size in shape:
        count *= size
    return extent(shape, strides) == count and is_non_overlapping(shape, strides)


def meet(a, b, distance: int) -> bool:
    """Return whether two tensors share a byte; exact.

    Each is `(shape, strides, itemsize)`; the second starts `distance` bytes after the first.
    """
    low = min(0, distance)
    extents = [extent(shape, strides) * size for shape, strides, size in (a, b)]
    count = max(extents[0], distance + extents[1]) - low
    held = torch.zeros(count, dtype=torch.bool, device="cpu")
    views = [
        held.as_strided((*shape, size), (*(s * size for s in strides), 1), start - low)
        for (shape, strides, size), start in ((a, 0), (b, distance))
    ]
    views[0].fill_(True)
    return bool(views[1].any())


def tensor_span(tensor: torch.Tensor) -> Span:
    """Return the span of the tensor's own elements."""
    return Span(0, extent(tensor.shape, tensor.stride()))


def storage_span(tensor: torch.Tensor) -> Span:
    """Return the span of the tensor's whole storage, seen from its data pointer."""
    itemsize = tensor.element_size()
    nbytes = tensor.untyped_storage().nbytes()
    lead = tensor.storage_offset()
    # A storage may end inside an element (a view as a wider dtype); a resized one may end early.
    return Span(lead, max(nbytes // itemsize, lead + tensor_span(tensor).total))


def storage_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of all elements that the storage of another one holds."""
    return tensor.detach().as_strided((storage_span(tensor).total,), (1,), 0)


def has_memory(tensor: torch.Tensor) -> bool:
    """Return whether the storage holds all elements; one that was resized may not."""
    needed = (tensor.storage_offset() + tensor_span(tensor).total) * tensor.element_size()
    held = tensor.untyped_storage().nbytes()
    return needed <= held and (tensor.numel() == 0 or tensor.data_ptr() != 0)


def allocate(shape, strides, span: Span, dtype, device, zero: bool) -> torch.Tensor:
    """Return a tensor of `shape` and `strides` whose memory covers `span` and is aligned.

    With `zero`, all of the span is zero, not only the tensor's own elements.
    """
    tight = span.lead == 0 and span.total == extent(shape, strides)
    if tight and not zero:
        return torch.empty_strided(shape, strides, dtype=dtype, device=device)
    if tight and is_dense(shape, strides):
        return torch.empty_strided(shape, strides, dtype=dtype, device=device).zero_()
    unit = max(1, ALIGNMENT // dtype.itemsize)
    padding = -span.lead % unit
    make = torch.zeros if zero else torch.empty
    flat = make(span.total + padding, dtype=dtype, device=device)
    return flat.as_strided(shape, strides, span.lead + padding)


def snapshot(tensor: torch.Tensor, dtype=None, device=None) -> torch.Tensor:
    """Return a copy with the same addressing, of everything that the tensor's storage holds.

    The copy may be of another dtype and on another device.
    """
    tensor = tensor.detach()
    dtype, device = dtype or tensor.dtype, device or tensor.device
    shape, strides = tensor.shape, tensor.stride()
    span = storage_span(tensor)
    copy = allocate(shape, strides, span, dtype, device, zero=False)
    if span == tensor_span(tensor) and is_dense(shape, strides):
        return copy.copy_(tensor)
    start = copy.storage_offset() - span.lead
    whole = copy.as_strided((span.total,), (1,), start)
    whole.copy_(tensor.as_strided((span.total,), (1,), 0))
    return copy


def fits(tensor: torch.Tensor, shape, strides, dtype) -> bool:
    """Return whether a kernel can read `tensor` as one of these strides, dtype and alignment."""
    return (
        tensor.dtype == dtype
        and not tensor.is_neg()
        and same_strides(shape, tensor.stride(), strides)
        and tensor.data_ptr() % ALIGNMENT == 0
    )


def lay_out(upstream: torch.Tensor, shape, strides, dtype, span: Span) -> torch.Tensor:
    """Return an upstream gradient with the addressing of its output, copying only if needed.

    Memory of the span that the output tensor does not hold has a zero gradient.
    """
    if upstream.layout is not torch.strided:
        upstream = upstream.to_dense()
    tight = span.lead == 0 and span.total == extent(shape, strides)
    if tight and is_dense(shape, strides):
        if fits(upstream, shape, strides, dtype):
            return upstream
        return allocate(shape, strides, span, dtype, upstream.device, False).copy_(upstream)
    return allocate(shape, strides, span, dtype, upstream.device, True).copy_(upstream)


def restore(tensor: torch.Tensor, strides, span: Span) -> torch.Tensor:
    """Return what autograd kept of a tensor, with the strides that the kernel knows it by.

    Hooks on saved tensors may return a tensor of the same elements that lies otherwise in memory.
    """
    shape = tensor.shape
    if fits(tensor, shape, strides, tensor.dtype):
        return tensor
    copy = allocate(shape, strides, span, tensor.dtype, tensor.device, True)
    if is_non_overlapping(shape, strides):
        return copy.copy_(tensor)
    places = torch.arange(extent(shape, strides), device=tensor.device)
    flat = copy.as_strided(places.shape, (1,))
    flat[places.as_strided(shape, strides).reshape(-1)] = tensor.reshape(-1)
    return copy


def first_alias(shape, strides, device) -> torch.Tensor:
    """Return a mask that is true at one element for each memory location of a tensor."""
    count = extent(shape, strides)
    linear = torch.arange(count, device=device).as_strided(shape, strides).reshape(-1)
    order = torch.arange(linear.numel(), device=device)
    first = torch.full((count,), linear.numel(), dtype=torch.int64, device=device)
    first.scatter_reduce_(0, linear, order, "amin")
    return (first[linear] == order).view(shape)


def gradient_of(shadow: torch.Tensor, dtype) -> torch.Tensor:
    """Return the gradient of a tensor from its shadow.

    The shadow of a tensor with overlapping elements holds one sum per memory location; autograd
    sums the elements that share one, so the sum goes to one of them and zero to the others.
    """
    shape, strides = shadow.shape, shadow.stride()
    if is_non_overlapping(shape, strides):
        return shadow if shadow.dtype == dtype else shadow.to(dtype)
    expanded = [d for d, (n, s) in enumerate(zip(shape, strides, strict=True)) if n > 1 and s == 0]
    held = shadow
    for dim in expanded:
        held = held.narrow(dim, 0, 1)
    if is_non_overlapping(held.shape, held.stride()):
        gradient = torch.zeros(shape, dtype=dtype, device=shadow.device)
        target = gradient
        for dim in expanded:
            target = target.narrow(dim, 0, 1)
        target.copy_(held)
        return gradient
    mask = first_alias(shape, strides, shadow.device)
    return torch.where(mask, shadow, 0).to(dtype)
