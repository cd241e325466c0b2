"""Shadows, cotangents and snapshots against brute force over views."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.backends.autodiff.storage import memory
from triton.backends.autodiff.storage.memory import Span


@st.composite
def views(draw, overlapping=True):
    """A tensor viewed through sizes, strides and an offset of a larger storage."""
    shape = draw(st.lists(st.integers(0 if overlapping else 1, 3), max_size=3))
    strides, reach = [], 1
    for size in shape:
        gap = draw(st.integers(0, 2))
        strides.append(draw(st.sampled_from([reach + gap] * 3 + [0, 1] * overlapping)))
        reach = max(reach, strides[-1] * size + 1) if size else reach
    order = draw(st.permutations(range(len(shape))))
    shape, strides = [shape[i] for i in order], [strides[i] for i in order]
    before, after = draw(st.integers(0, 9)), draw(st.integers(0, 3))
    dtype = draw(st.sampled_from([torch.float16, torch.float32, torch.float64]))
    total = before + memory.extent(shape, strides) + after
    storage = torch.randn(total, dtype=torch.float64).to(dtype)
    return storage.as_strided(shape, strides, before)


def addresses(tensor):
    """Element offsets from the data pointer, in the order of the elements."""
    numbers = torch.arange(memory.extent(tensor.shape, tensor.stride()))
    return numbers.as_strided(tensor.shape, tensor.stride()).reshape(-1).tolist()


@settings(deadline=None)
@given(views())
def test_overlap_and_density_by_enumeration(tensor):
    found = addresses(tensor)
    distinct = len(set(found)) == len(found)
    assert memory.extent(tensor.shape, tensor.stride()) == max(found, default=-1) + 1
    if memory.is_non_overlapping(tensor.shape, tensor.stride()):
        assert distinct
    assert memory.shares_memory(tensor.shape, tensor.stride()) is not distinct
    if memory.is_dense(tensor.shape, tensor.stride()):
        assert distinct and sorted(found) == list(range(len(found)))


def test_memory_is_compared_on_the_host():
    """Whatever PyTorch's default device is, where that would wait for a GPU, or spoil a capture."""
    with torch.device("meta"):
        assert memory.shares_memory((2, 2), (1, 1)) and not memory.shares_memory((3, 4), (2, 3))
        assert memory.meet(((2,), (2,), 4), ((2,), (2,), 4), 8)
        assert not memory.meet(((2,), (2,), 4), ((2,), (2,), 4), 4)


@settings(deadline=None)
@given(views(), st.sampled_from([torch.float16, torch.float32, torch.float64]), st.booleans())
def test_shadow_covers_storage_and_is_aligned(tensor, dtype, zero):
    span = memory.storage_span(tensor)
    shadow = memory.allocate(tensor.shape, tensor.stride(), span, dtype, tensor.device, zero)
    assert shadow.shape == tensor.shape and shadow.stride() == tensor.stride()
    lead = shadow.storage_offset()
    held = shadow.untyped_storage().nbytes() // dtype.itemsize
    assert lead >= span.lead and held - lead >= span.total - span.lead
    if shadow.numel():
        assert shadow.data_ptr() % 16 == 0
    if zero:
        assert not shadow.as_strided((held,), (1,), 0).any()


@settings(deadline=None)
@given(views())
def test_tight_shadow(tensor):
    span = memory.tensor_span(tensor)
    shadow = memory.allocate(tensor.shape, tensor.stride(), span, torch.float32, "cpu", False)
    assert shadow.stride() == tensor.stride()
    assert shadow.untyped_storage().nbytes() >= 4 * span.total


@settings(deadline=None)
@given(views())
def test_snapshot_holds_the_whole_storage(tensor):
    before, after = memory.storage_span(tensor)
    copy = memory.snapshot(tensor)
    assert copy.stride() == tensor.stride() and torch.equal(copy, tensor)
    assert copy.data_ptr() != tensor.data_ptr() or tensor.numel() == 0
    start = copy.storage_offset() - before
    assert torch.equal(copy.as_strided((after,), (1,), start), tensor.as_strided((after,), (1,), 0))


@settings(deadline=None)
@given(views(overlapping=False), st.integers(0, 5))
def test_cotangent_has_the_addressing_of_the_output(output, kind):
    shape = output.shape
    upstream = torch.randn(shape, dtype=output.dtype)
    if kind == 1:
        upstream = torch.ones((), dtype=output.dtype).expand(shape)
    elif kind == 2 and output.dim() > 1:
        upstream = torch.randn(shape[::-1], dtype=output.dtype).permute(*range(output.dim())[::-1])
    elif kind == 3:
        upstream = upstream.double()
    elif kind == 4:
        upstream = torch.randn(upstream.numel() + 1, dtype=output.dtype)[1:].view(shape)
    elif kind == 5:
        upstream = torch.empty_strided(shape, output.stride(), dtype=output.dtype).normal_()
    span = memory.storage_span(output)
    cotangent = memory.lay_out(upstream, shape, output.stride(), output.dtype, span)
    assert torch.equal(cotangent, upstream.to(output.dtype)) and cotangent.dtype == output.dtype
    assert memory.same_strides(shape, cotangent.stride(), output.stride())
    assert cotangent.data_ptr() % 16 == 0
    whole = span == memory.tensor_span(output) and memory.is_dense(shape, output.stride())
    if not whole:
        lead = cotangent.storage_offset()
        held = cotangent.untyped_storage().nbytes() // output.dtype.itemsize
        assert lead >= span.lead and held - lead >= span.total - span.lead
        everything = cotangent.as_strided((held,), (1,), 0).clone()
        everything.as_strided(shape, output.stride(), lead).zero_()
        assert not everything.any()


def test_pitch_is_that_of_rows():
    table = torch.empty(4, 700)
    assert memory.pitch(table.shape, table.stride(), 1024) == 700  # one tile holds a row
    assert memory.pitch(table.shape, table.stride(), 64) == 700  # several pieces of one
    assert memory.pitch(table.shape, table.stride(), 2048) == 700  # with many lanes masked off
    assert memory.pitch((700,), (1,), 64) == 64
    assert memory.pitch((700, 8), (8, 1), 64) == 64  # rows are short
    # An axis of length 1 may have any stride.
    assert memory.pitch((1, 700), (10**12, 1), 64) == 64
    assert memory.pitch((5, 3, 8), (24, 8, 1), 8) == 8
    assert memory.pitch((5, 3, 8), (24, 8, 1), 32) == 24
    assert memory.pitch((5, 3, 20), (60, 20, 1), 256) == 60
    assert memory.pitch((5, 3), (0, 0), 8) == 8


def test_cotangent_is_not_copied_without_need():
    output, upstream = torch.empty(4, 8), torch.randn(4, 8)
    span = memory.storage_span(output)
    assert memory.lay_out(upstream, (4, 8), (8, 1), torch.float32, span) is upstream
    row = torch.randn(1, 8)
    odd = row.as_strided((1, 8), (99, 1))
    assert memory.lay_out(odd, (1, 8), (8, 1), torch.float32, Span(0, 8)) is odd


@settings(deadline=None)
@given(views(), st.sampled_from([torch.float32, torch.float64]))
def test_gradient_of_overlapping_elements_sums_to_the_shadow(tensor, dtype):
    span = memory.storage_span(tensor)
    shadow = memory.allocate(tensor.shape, tensor.stride(), span, dtype, "cpu", True)
    lead = shadow.storage_offset()
    memory_of = shadow.as_strided(
        (memory.extent(tensor.shape, tensor.stride()),), (1,), lead if shadow.numel() else 0
    )
    memory_of.copy_(torch.arange(1, memory_of.numel() + 1))
    gradient = memory.gradient_of(shadow, torch.float64)
    assert gradient.shape == tensor.shape and gradient.dtype == torch.float64
    sums = torch.zeros_like(memory_of, dtype=torch.float64)
    for address, value in zip(addresses(tensor), gradient.reshape(-1).tolist(), strict=True):
        sums[address] += value
    touched = sorted(set(addresses(tensor)))
    assert sums[touched].tolist() == [float(a + 1) for a in touched]


def test_gradient_of_an_expanded_tensor_reaches_its_base():
    base = torch.randn(3, 1, requires_grad=True)
    expanded = base.expand(3, 4)
    shadow = memory.allocate((3, 4), (1, 0), Span(0, 3), torch.float32, "cpu", True)
    shadow[:, 0] = torch.tensor([1.0, 2.0, 3.0])
    expanded.backward(memory.gradient_of(shadow, torch.float32))
    assert base.grad.flatten().tolist() == [1.0, 2.0, 3.0]
