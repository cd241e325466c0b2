"""Kernels that do something with each element, or with elements side by side."""

from __future__ import annotations

import torch.nn.functional as F
from kernels import elementwise, image, lines, packed, rotary, runs, shifted, windows

from .common import Case, leaf, leaves, with_options


def _liger_swiglu():
    from liger_kernel.ops.swiglu import LigerSiLUMulFunction

    return LigerSiLUMulFunction.apply


def _liger_geglu():
    from liger_kernel.ops.geglu import LigerGELUMulFunction

    return LigerGELUMulFunction.apply


def _liger_rotary():
    import torch
    from liger_kernel.ops.rope import LigerRopeFunction

    def apply(x, cos, sin):
        # Its layout is (batch, heads, context, dim), and it also rotates keys, of which there are
        # none here.
        q = x.transpose(1, 2)
        full = (torch.cat([t, t], -1)[None] for t in (cos, sin))
        return LigerRopeFunction.apply(q, q[:, :1].detach(), *full)[0].transpose(1, 2)

    return apply


def unary(name, kernel, reference, n, quick=False):
    return Case(
        "elementwise", f"{name} {n}", kernel, with_options(elementwise.unary, BLOCK=1024),
        leaves(1, n), reference, quick=quick, streams="inputs",
    )  # fmt: skip


def gated(name, rows, columns, rival, quick=False):
    return Case(
        "elementwise", f"{name} {rows}x{columns}", getattr(elementwise, f"{name}_kernel"),
        elementwise.swiglu, leaves(2, rows, columns), getattr(elementwise, f"{name}_reference"),
        {"liger": rival}, quick=quick, streams="inputs",
    )  # fmt: skip


def rotary_case(batch, context, heads, dim, quick=False):
    def inputs():
        x = leaf(batch, context, heads, dim)
        return (x, *rotary.angles(context, dim, x))

    return Case(
        "rotary", f"rotary {batch}x{context}x{heads}x{dim}", rotary.rotary_kernel, rotary.rotary,
        inputs, rotary.rotary_reference, {"liger": _liger_rotary}, quick=quick, streams="gradients",
    )  # fmt: skip


def dropout(n):
    # The random masks differ, so only times can be compared.
    return Case(
        "elementwise", f"dropout {n}", elementwise.dropout_kernel,
        lambda kernel, x: elementwise.dropout(kernel, x, 0.5, 1234, BLOCK=1024),
        leaves(1, n), lambda x: F.dropout(x, 0.5), comparable=False, streams="gradients",
    )  # fmt: skip


def affine(*shape, quick=False):
    return Case(
        "broadcast", f"scale and shift of channels {'x'.join(map(str, shape))}",
        lines.affine_kernel, with_options(lines.affine, BLOCK=1024),
        lambda: (leaf(*shape), leaf(shape[1]), leaf(shape[1])), lines.affine_reference,
        quick=quick, streams="inputs",
    )  # fmt: skip


def channels(samples, count, inner):
    return Case(
        "broadcast", f"scale of channels in a loop {samples}x{count}x{inner}",
        runs.channels_kernel, with_options(runs.channels, BLOCK=1024),
        lambda: (leaf(samples, count, inner), leaf(count)), runs.channels_reference,
        streams="inputs",
    )  # fmt: skip


def padded(how, rows, columns):
    sides = (3, 5, 0, 0)
    return Case(
        "elementwise", f"padded rows, {how}, {rows}x{columns}", shifted.pad_kernel,
        lambda kernel, x: shifted.pad(kernel, x, how, sides, BLOCK=1024),
        leaves(1, rows, columns), lambda x: shifted.pad_reference(x, how, sides),
        streams="inputs",
    )  # fmt: skip


def gate_and_weights(rows, columns):
    return Case(
        "broadcast", f"packed gate and weights {rows}x{2 * columns}", packed.packed_kernel,
        lambda kernel, x, w: packed.packed(kernel, x, w, columns, BLOCK=1024),
        lambda: (leaf(rows, 2 * columns), leaf(2 * columns)),
        lambda x, w: packed.packed_reference(x, w, columns), streams="inputs",
    )  # fmt: skip


def pixels(images, height, width):
    return Case(
        "broadcast", f"windows of 2x2 in {images}x{height}x{width}", lines.windows_kernel,
        lambda kernel, x: lines.windows(kernel, x, 2, 2, BLOCK=1024),
        leaves(1, images, height, width), lambda x: lines.windows_reference(x, 2, 2),
        streams="inputs",
    )  # fmt: skip


def _causal_convolution(x, w, how):
    """x: (batch, times, channels), w: (channels, taps)"""
    padded = F.pad(x.transpose(1, 2), (w.shape[1] - 1, 0))
    z = F.conv1d(padded, w[:, None], groups=w.shape[0]).transpose(1, 2)
    return z if how == "linear" else z.tanh()


def convolution(batch, times, channels, taps, how="linear"):
    name = "causal convolution" if how == "linear" else f"{how} of a causal convolution"
    return Case(
        "broadcast", f"{name} {batch}x{times}x{channels}, {taps} taps", windows.taps_kernel,
        lambda kernel, x, w: windows.taps(kernel, x, w, 1 - taps, how, TIMES=32, CHANNELS=64),
        lambda: (leaf(batch, times, channels), leaf(channels, taps)),
        lambda x, w: _causal_convolution(x, w, how), streams="inputs",
    )  # fmt: skip


def maxima(images, height, width):
    return Case(
        "broadcast", f"maxima of 3x3 in steps of 2 in {images}x{height}x{width}",
        windows.maxima_kernel,
        lambda kernel, x: windows.maxima(kernel, x, 2, BLOCK=1024),
        leaves(1, images, height, width), lambda x: windows.maxima_reference(x, 2),
        streams="inputs",
    )  # fmt: skip


def stencil(rows, columns):
    return Case(
        "broadcast", f"stencil {rows}x{columns}", windows.stencil_kernel,
        with_options(windows.stencil, BLOCK=1024), leaves(1, rows, columns),
        windows.stencil_reference, streams="inputs",
    )  # fmt: skip


def cases():
    n = 2**26
    yield Case(
        "elementwise", f"add {n}", elementwise.add_kernel,
        with_options(elementwise.add, BLOCK=1024), leaves(2, n), lambda x, y: x + y,
        streams="gradients",
    )  # fmt: skip
    yield unary("gelu (tanh)", elementwise.gelu_tanh_kernel, elementwise.gelu_tanh_reference, n)
    yield unary("gelu (erf)", elementwise.gelu_erf_kernel, elementwise.gelu_erf_reference, n, True)
    yield gated("swiglu", 16384, 4096, _liger_swiglu, True)
    yield gated("swiglu", 4096, 11008, _liger_swiglu)
    yield gated("geglu", 16384, 4096, _liger_geglu)
    yield dropout(n)
    yield rotary_case(4, 4096, 32, 128, True)
    yield padded("behind", 16384, 4096)
    yield padded("mirrored", 16384, 4096)
    yield affine(32, 256, 56, 56, quick=True)
    yield affine(128, 2048, 7, 7)
    yield affine(8192, 4096)
    yield affine(32768, 768)
    yield affine(524288, 64)
    yield channels(256, 40, 4096)
    yield gate_and_weights(8192, 4096)
    yield pixels(8192, 56, 56)
    yield convolution(8, 2048, 2048, 4)
    yield convolution(8, 2048, 2048, 4, "tanh")
    yield maxima(8192, 56, 56)
    yield stencil(8192, 4096)
    yield Case(
        "elementwise", "greyscale 3x4320x7680", image.greyscale_kernel,
        with_options(image.greyscale, BLOCK=32), leaves(1, 3, 4320, 7680),
        image.greyscale_reference, streams="gradients",
    )  # fmt: skip
