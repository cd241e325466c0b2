"""Attention: causal or not, of heads of 64 and 128, with shared keys, packed, in windows."""

from __future__ import annotations

import flash_attention_v2 as flash
import torch
from handwritten import attention as by_hand
from kernels import carried_attention as carried
from kernels import carried_sums, descriptors, picked_maxima, scratch_attention, skipped
from kernels import grouped_attention as grouped
from kernels import packed_sequences as packed
from kernels import window_attention as windowed
from torch.nn.attention import SDPBackend, sdpa_kernel

from .common import DEVICE, Case, leaf, leaves

TILES = {"BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 4}
PACKED_TILES = {"BLOCK_M": 64, "BLOCK_N": 64}


def _with_backend(function, backend):
    def apply(*args):
        with sdpa_kernel(backend):
            return function(*args)

    return apply


def _case(name, kernel, stub, inputs, reference, handwritten, quick, family="attention"):
    """PyTorch is its flash backend (on the CPU, whatever there is)."""
    flashing = torch.cuda.is_available()
    rivals = {"cudnn": lambda: _with_backend(reference, SDPBackend.CUDNN_ATTENTION)}
    rivals["handwritten"] = lambda: handwritten
    if flashing:
        theirs = _with_backend(reference, SDPBackend.FLASH_ATTENTION)
    return Case(
        family, name, kernel, stub, inputs, theirs if flashing else reference, rivals,
        quick=quick, compiles=False, twice=_with_backend(reference, SDPBackend.MATH),
    )  # fmt: skip


def _own_heads(form, kernel, stub, shape, causal, quick, tuned, dtype=torch.bfloat16):
    """Attention of `shape` in which each head has its own keys, for different ways to write it.

    shape: (batch, heads, context, dim); form: a suffix of "causal" in the name.
    """
    scale = shape[-1] ** -0.5
    return _case(
        f"attention {'causal' if causal else 'full'}{form} {'x'.join(map(str, shape))} "
        f"{str(dtype)[6:]}",
        kernel,
        stub,
        leaves(3, *shape, dtype=dtype, scale=0.5),
        lambda q, k, v: flash.reference(q, k, v, causal, scale),
        lambda q, k, v: by_hand.attention(q, k, v, causal, scale, tuned),
        quick,
    )


def attention(batch, heads, context, dim, causal, dtype, quick=False, tuned=True, tiles=TILES):
    def stub(kernel, q, k, v):
        return flash.attention(kernel, q, k, v, causal, dim**-0.5, **tiles)

    shape = batch, heads, context, dim
    return _own_heads("", flash.attention_kernel, stub, shape, causal, quick, tuned, dtype)


def carried_places(batch, heads, context, dim, form, quick=False, tuned=True, tiles=TILES):
    """Triton's tutorial in its newer forms, whose loops carry the position of keys."""
    descriptors.give_memory()

    def stub(kernel, q, k, v):
        return carried.carried_attention(kernel, q, k, v, True, form, **tiles)

    kernel, shape = carried.carried_attention_kernel, (batch, heads, context, dim)
    return _own_heads(f", {form}", kernel, stub, shape, True, quick, tuned)


def other_sums(batch, heads, context, dim, form, quick=False, tuned=True):
    """Loops that carry divided sums, or logarithms of sums."""

    def stub(kernel, q, k, v):
        q, k, v = (x.flatten(0, 1) for x in (q, k, v))
        none = q[:, :0]
        options = {"log": False, "block": 64, "num_warps": 4}
        y = carried_sums.attention(kernel, q, none, none, k, v, form, **options)
        return y.unflatten(0, (batch, heads))

    kernel, shape = carried_sums.attention_kernel, (batch, heads, context, dim)
    return _own_heads(f", {form}", kernel, stub, shape, True, quick, tuned)


def kept_maxima(batch, heads, context, dim, quick=False, tuned=True):
    """Maxima stored beside log-sum-exps: they might have a gradient, but do not get one."""

    def stub(kernel, q, k, v):
        q, k, v = (x.flatten(0, 1) for x in (q, k, v))
        y, _, _ = picked_maxima.attention(kernel, q, k, v, "kept", block=64, num_warps=4)
        return y.view(batch, heads, context, dim)

    kernel, shape = picked_maxima.attention_kernel, (batch, heads, context, dim)
    return _own_heads(", maxima kept", kernel, stub, shape, False, quick, tuned)


def scratch(batch, heads, context, dim, quick=False, tuned=True):
    """Scales that go through a scratch tensor whose gradient nobody needs."""

    def stub(kernel, q, k, v):
        q, k, v = (x.flatten(0, 1) for x in (q, k, v))
        y, _, _ = scratch_attention.attention(kernel, q, k, v, True, 64, 64)
        return y.view(batch, heads, context, dim)

    kernel, shape = scratch_attention.attention_kernel, (batch, heads, context, dim)
    return _own_heads(", scratch", kernel, stub, shape, True, quick, tuned)


def skipping(batch, heads, context, dim, quick=False, tuned=True):
    """A branch around each iteration, in a loop over all keys."""

    def stub(kernel, q, k, v):
        q, k, v = (x.flatten(0, 1) for x in (q, k, v))
        y = skipped.skipping(kernel, q, k, v, "causal", EXACT=True, scale=dim**-0.5, BLOCK=64)
        return y.view(batch, heads, context, dim)

    kernel, shape = skipped.skipping_kernel, (batch, heads, context, dim)
    return _own_heads(", skipping", kernel, stub, shape, True, quick, tuned)


def shared_heads(batch, heads, shared, context, dim, quick=False, tuned=True, tiles=TILES):
    scale, dtype = dim**-0.5, torch.bfloat16

    def inputs():
        keys = (batch, shared, context, dim)
        q = leaf(batch, heads, context, dim, dtype=dtype, scale=0.5)
        return (q, *(leaf(*keys, dtype=dtype, scale=0.5) for _ in range(2)))

    return _case(
        f"gqa causal {batch}x{heads}/{shared}x{context}x{dim} bfloat16",
        grouped.grouped_attention_kernel,
        lambda kernel, q, k, v: grouped.grouped_attention(kernel, q, k, v, scale, **tiles),
        inputs,
        lambda q, k, v: grouped.grouped_attention_reference(q, k, v, scale),
        lambda q, k, v: by_hand.attention(q, k, v, True, scale, tuned),
        quick,
        "gqa",
    )


def packed_sequences(lengths, heads, dim, causal, name, quick=False, tiles=PACKED_TILES):
    """Sequences of these lengths, one after the other."""
    places = torch.tensor((0, *lengths), device=DEVICE, dtype=torch.int32).cumsum(0).int()
    starts, ends = places[:-1].clone(), places[1:].clone()

    def stub(kernel, q, k, v):
        return packed.attention(kernel, q, k, v, places, starts, ends, causal, **tiles)

    def theirs(q, k, v):
        rows = (x.transpose(0, 1) for x in (q, k, v))
        longest = max(lengths)
        forward = torch.ops.aten._flash_attention_forward
        out = forward(*rows, places, places, longest, longest, 0.0, causal, False)[0]
        return out.transpose(0, 1)

    def one_by_one(q, k, v):
        return packed.attention_reference(q, k, v, places, starts, ends, causal)

    return Case(
        "packed attention",
        f"attention of packed sequences, {name} {sum(lengths)}x{heads}x{dim} "
        f"{'causal' if causal else 'full'}",
        packed.attention_kernel,
        stub,
        leaves(3, heads, sum(lengths), dim, dtype=torch.bfloat16, scale=0.5),
        theirs if torch.cuda.is_available() else one_by_one,
        quick=quick,
        compiles=False,
    )


def window_attention(heads, context, dim, window, quick=False, tuned=True, tiles=TILES):
    """Each query sees itself and the window - 1 keys before it."""

    def theirs(q, k, v):
        # Each head becomes a batch, which is the layout of flash attention, without copies.
        rows = (x.unsqueeze(2) for x in (q, k, v))
        forward = torch.ops.aten._flash_attention_forward
        sides = {"window_size_left": window - 1, "window_size_right": 0}
        out = forward(*rows, None, None, context, context, 0.0, False, False, **sides)[0]
        return out.squeeze(2)

    def one_batch(q, k, v):
        batch = (x.unsqueeze(0) for x in (q, k, v))
        return by_hand.attention(*batch, True, dim**-0.5, tuned, window).squeeze(0)

    def masked(q, k, v):
        return windowed.window_attention_reference(q, k, v, window)

    return Case(
        "window attention",
        f"attention to the last {window} keys {heads}x{context}x{dim} bfloat16",
        windowed.window_attention_kernel,
        lambda kernel, q, k, v: windowed.window_attention(kernel, q, k, v, window, **tiles),
        leaves(3, heads, context, dim, dtype=torch.bfloat16, scale=0.5),
        theirs if torch.cuda.is_available() else masked,
        {"handwritten": lambda: one_batch},
        quick=quick,
        compiles=False,
    )


def cases(tuned=True):
    for dim in (64, 128):
        for causal in (False, True):
            for context in (1024, 2048, 4096, 8192, 16384):
                quick = (dim, causal, context) == (64, True, 4096)
                yield attention(4, 32, context, dim, causal, torch.bfloat16, quick, tuned)
    yield attention(4, 32, 4096, 64, True, torch.float16, tuned=tuned)
    yield attention(4, 32, 4096, 128, True, torch.float16, tuned=tuned)
    for form in carried.FORMS:
        for dim in (64, 128):
            yield carried_places(4, 32, 4096, dim, form, tuned=tuned)
    for form in carried_sums.FORMS:
        for dim in (64, 128):
            yield other_sums(4, 32, 4096, dim, form, tuned=tuned)
    for dim in (64, 128):
        yield kept_maxima(4, 32, 4096, dim, tuned=tuned)
        yield scratch(4, 32, 4096, dim, tuned=tuned)
        yield skipping(4, 32, 4096, dim, tuned=tuned)
    for dim in (64, 128):
        yield shared_heads(4, 32, 8, 4096, dim, quick=dim == 64, tuned=tuned)
    mixed = (256, 512, 1024, 1536, 2048, 3072, 3840, 4096)
    for causal in (False, True):
        yield packed_sequences((2048,) * 8, 16, 64, causal, "equal")
        yield packed_sequences(mixed, 16, 64, causal, "mixed", quick=causal)
    yield window_attention(64, 4096, 64, 512, tuned=tuned)
    yield window_attention(64, 8192, 64, 1024, quick=True, tuned=tuned)
    yield window_attention(32, 16384, 128, 4096, tuned=tuned)
