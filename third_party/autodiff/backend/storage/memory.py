"""Buffers with the same addressing as a tensor: gradients ("shadows"), cotangents and snapshots.

A generated kernel addresses the gradient of a tensor by the tensor's own element offsets from the
pointer that it was given. A `Span` says how much memory these offsets may touch: `lead` elements
before the pointer, and `total` elements in all. It is the tensor's own extent if accesses are known
to stay inside, and otherwise the tensor's whole storage: so no kernel writes outside of a buffer
where the forward was allowed to touch memory.

Generated kernels assume 16-byte alignment where the forward's pointer had it. So every buffer is
aligned at the data pointer, whatever its element size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch._prims_common import make_contiguous_strides_for

from .layouts import taking_forms

ALIGNMENT = 16


class Span(NamedTuple):
    """A range of elements around a data pointer."""

    lead: int
    total: int

    def covering(self, first: int, last: int) -> Span:
        """Return the span, extended to contain these elements."""
        lead = max(self.lead, -first)
        return Span(lead, lead + max(self.total - self.lead, last + 1))

    def widened(self, margin: int) -> Span:
        """Return the span with `margin` more elements on both sides."""
        return Span(self.lead + margin, self.total + 2 * margin)


def extent(shape, strides) -> int:
    """Return the number of elements from the first to the last one of a strided tensor."""
    reach = 1
    for size, stride in zip(shape, strides, strict=True):
        if size == 0:
            return 0
        reach += (size - 1) * stride
    return reach


# Elements of a sum in a cache line: a shorter row is not worth a counter.
SHORTEST_ROW = 32


def pitch(shape, strides, length: int) -> int:
    """Return the distance of rows that contain tiles of this `length`, or parts of them.

    It is the smallest stride larger than half of `length`; otherwise the largest one that is not
    short; otherwise `length`.
    """
    steps = [step for size, step in zip(shape, strides, strict=True) if size > 1]
    long = [step for step in steps if step > length // 2]
    return min(long, default=max((s for s in steps if s >= SHORTEST_ROW), default=length))


def same_strides(shape, a, b) -> bool:
    """Return whether strides `a` and `b` address a tensor of `shape` in the same way."""
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
    """Return the strides of a tensor's gradient: the same, unless elements of the tensor share
    memory.
    """
    if is_non_overlapping(shape, strides):
        return tuple(strides)
    return make_contiguous_strides_for(shape)


def shares_memory(shape, strides) -> bool:
    """Return whether two elements of a tensor have the same address; exact."""
    if is_non_overlapping(shape, strides):
        return False
    linear = torch.arange(extent(shape, strides), device="cpu").as_strided(shape, strides)
    return linear.unique().numel() < linear.numel()


def is_dense(shape, strides) -> bool:
    """Return whether elements fill the memory from first to last, each address once."""
    count = 1
    for size in shape:
        count *= size
    return extent(shape, strides) == count and is_non_overlapping(shape, strides)


def meet(a, b, distance: int) -> bool:
    """Return whether two tensors share a byte; exact.

    Each is `(shape, strides, itemsize)`; the second one starts `distance` bytes after the first.
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
    """Return the span of the tensor's whole storage, relative to its data pointer."""
    itemsize = tensor.element_size()
    nbytes = tensor.untyped_storage().nbytes()
    lead = tensor.storage_offset()
    # A storage may end inside an element (a view as a wider dtype); a resized one may end early.
    return Span(lead, max(nbytes // itemsize, lead + tensor_span(tensor).total))


def whole(tensor: torch.Tensor, span: Span) -> torch.Tensor:
    """Return a tensor of all elements in a span around another one."""
    return tensor.detach().as_strided((span.total,), (1,), tensor.storage_offset() - span.lead)


def has_memory(tensor: torch.Tensor) -> bool:
    """Return whether the storage contains all elements; one that was resized may not."""
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
    flat, start = room_for(span, dtype, device, zero)
    return flat.as_strided(shape, strides, start)


def allocating(shape, strides, span: Span, dtype, device, zero: bool) -> Callable:
    """Return a function that does as `allocate` does, and has decided how."""
    if span == Span(0, extent(shape, strides)) and not zero:
        return partial(torch.empty_strided, shape, strides, dtype=dtype, device=device)
    return partial(allocate, shape, strides, span, dtype, device, zero)


def room_for(span: Span, dtype, device, zero: bool) -> tuple[torch.Tensor, int]:
    """Return memory that covers a span, and where its data pointer is in it, aligned."""
    padding = -span.lead % max(1, ALIGNMENT // dtype.itemsize)
    make = torch.zeros if zero else torch.empty
    return make(span.total + padding, dtype=dtype, device=device), span.lead + padding


def snapshot(tensor: torch.Tensor, dtype=None, device=None) -> torch.Tensor:
    """Return a copy of the tensor's whole storage, with the same addressing.

    The copy may have another dtype and be on another device.
    """
    tensor = tensor.detach()
    dtype, device = dtype or tensor.dtype, device or tensor.device
    shape, strides = tensor.shape, tensor.stride()
    span = storage_span(tensor)
    copy = allocate(shape, strides, span, dtype, device, zero=False)
    if span == tensor_span(tensor) and is_dense(shape, strides):
        return copy.copy_(tensor)
    whole(copy, span).copy_(whole(tensor, span))
    return copy


def fits(tensor: torch.Tensor, shape, strides, dtype) -> bool:
    """Return whether a kernel can read `tensor` with these strides, dtype and alignment."""
    return (
        tensor.dtype == dtype
        and not tensor.is_neg()
        and not tensor._is_zerotensor()
        and same_strides(shape, tensor.stride(), strides)
        and tensor.data_ptr() % ALIGNMENT == 0
    )


def lay_out(upstream: torch.Tensor, shape, strides, dtype, span: Span) -> torch.Tensor:
    """Return an upstream gradient with the addressing of its output, copied only if necessary.

    Elements of the span outside of the output tensor have gradient zero.
    """
    if upstream.layout is not torch.strided:
        upstream = upstream.to_dense()
    if upstream._is_zerotensor():
        # It has no memory.
        return allocate(shape, strides, span, dtype, upstream.device, True)
    tight = span.lead == 0 and span.total == extent(shape, strides)
    if tight and is_dense(shape, strides):
        if fits(upstream, shape, strides, dtype):
            return upstream
        return allocate(shape, strides, span, dtype, upstream.device, False).copy_(upstream)
    return allocate(shape, strides, span, dtype, upstream.device, True).copy_(upstream)


def laying_out(shape, strides, dtype, span: Span, device) -> Callable:
    """Return a function of an upstream gradient, or None, that does as `lay_out` does, and
    remembers what fits.
    """
    is_tight = span == Span(0, extent(shape, strides)) and is_dense(shape, strides)
    form_of = taking_forms()
    # Learned from the first one that is taken as it is.
    known: bytes | None = None

    def lay(upstream):
        nonlocal known
        if upstream is None:
            return allocate(shape, strides, span, dtype, device, True)
        # A tensor of zeros may have the form of another one, and no memory.
        form = form_of(upstream) if is_tight and not upstream._is_zerotensor() else None
        if form is not None and form == known:
            return upstream
        laid_out = lay_out(upstream, shape, strides, dtype, span)
        if laid_out is upstream:
            known = form
        return laid_out

    return lay


def restore(tensor: torch.Tensor, strides, span: Span) -> torch.Tensor:
    """Return what autograd saved of a tensor, with the strides that the kernel expects.

    Hooks on saved tensors may return a tensor with the same elements in another layout.
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
    """Return the gradient of a tensor from its shadow, the buffer with the same addressing.

    If elements of the tensor share an address, the shadow has one sum for it. Autograd adds up the
    gradients of such elements, so one of them gets the sum, and the others zero.
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
