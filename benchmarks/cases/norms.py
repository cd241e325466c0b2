"""Norms and softmax: sums along rows, and weights that all rows share."""

from __future__ import annotations

import layer_norm as looped
from handwritten.layer_norm import layer_norm as layer_norm_by_hand
from kernels import group_norm, in_place, long_rows, normalization, softmax, turns

from .common import Case, leaf, leaves, with_options

EPS = normalization.EPS


def _liger_layer_norm():
    from liger_kernel.ops.layer_norm import LigerLayerNormFunction

    return lambda x, w, b: LigerLayerNormFunction.apply(x, w, b, EPS)


def _liger_rms_norm():
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction

    # Not in place, since the upstream gradient is used again.
    return lambda x, w: LigerRMSNormFunction.apply(x, w, EPS, 0.0, "llama", False)


def _liger_add_rms_norm():
    from liger_kernel.ops.fused_add_rms_norm import LigerFusedAddRMSNormFunction

    return lambda x, r, w: LigerFusedAddRMSNormFunction.apply(x, r, w, EPS, 0.0, "llama", False)


def _liger_group_norm():
    from liger_kernel.ops.group_norm import LigerGroupNormFunction

    return lambda x, w, b, groups: LigerGroupNormFunction.apply(x, w, b, x.shape[1], groups, EPS)


def _liger_softmax():
    from liger_kernel.ops.softmax import LigerSoftmaxFunction

    return LigerSoftmaxFunction.apply


def layer_norm(rows, columns, quick=False):
    return Case(
        "layer norm", f"layer norm, one block {rows}x{columns}", normalization.layer_norm_kernel,
        normalization.layer_norm, lambda: (leaf(rows, columns), leaf(columns), leaf(columns)),
        normalization.layer_norm_reference,
        {"liger": _liger_layer_norm, "handwritten": lambda: layer_norm_by_hand},
        quick=quick, streams="inputs",
    )  # fmt: skip


def looped_layer_norm(rows, columns, name="looped", **options):
    return Case(
        "layer norm", f"layer norm, {name} {rows}x{columns}", looped.layer_norm_kernel,
        with_options(looped.layer_norm, **options),
        lambda: (leaf(rows, columns), leaf(columns), leaf(columns)),
        looped.reference, {"liger": _liger_layer_norm, "handwritten": lambda: layer_norm_by_hand},
        streams="inputs",
    )  # fmt: skip


def running_norm(rows, columns, block=1024):
    """A loop keeps the mean and squares up to date, as Welford's method does."""
    return Case(
        "layer norm", f"norm with running moments {rows}x{columns}", turns.running_norm_kernel,
        with_options(turns.running_norm, block=block), leaves(1, rows, columns),
        lambda x: turns.running_norm_reference(x, block), streams="inputs",
    )  # fmt: skip


def rms_norm(rows, columns, quick=False):
    return Case(
        "rms norm", f"rms norm {rows}x{columns}", normalization.rms_norm_kernel,
        normalization.rms_norm, lambda: (leaf(rows, columns), leaf(columns)),
        normalization.rms_norm_reference, {"liger": _liger_rms_norm}, quick=quick, streams="inputs",
    )  # fmt: skip


def add_rms_norm(rows, columns, quick=False):
    """Row and residual stream are overwritten; those of the rivals are not."""
    return Case(
        "rms norm", f"rms norm of a residual stream, in place {rows}x{columns}",
        in_place.add_rms_norm_kernel, in_place.add_rms_norm,
        lambda: (leaf(rows, columns), leaf(rows, columns), leaf(columns)),
        in_place.add_rms_norm_reference, {"liger": _liger_add_rms_norm}, quick=quick,
        streams="inputs",
    )  # fmt: skip


def group_norm_case(samples, channels, pixels, groups, quick=False):
    options = {"num_warps": 8}
    return Case(
        "group norm", f"group norm {samples}x{channels}x{pixels}, {groups} groups",
        group_norm.group_norm_kernel,
        lambda kernel, *args: group_norm.group_norm(kernel, *args, **options),
        lambda: (leaf(samples, channels, pixels), leaf(channels), leaf(channels), groups),
        group_norm.group_norm_reference, {"liger": _liger_group_norm}, quick=quick,
        streams="inputs",
    )  # fmt: skip


def row_softmax(name, rows, columns, quick=False):
    rivals = {"liger": _liger_softmax} if name == "softmax" else {}
    return Case(
        "softmax", f"{name} {rows}x{columns}", getattr(softmax, f"{name}_kernel"),
        softmax.rowwise, leaves(1, rows, columns), getattr(softmax, f"{name}_reference"), rivals,
        quick=quick, streams="inputs",
    )  # fmt: skip


def persistent_softmax(rows, columns, programs=264):
    return Case(
        "softmax", f"softmax persistent {rows}x{columns}", softmax.persistent_softmax_kernel,
        with_options(softmax.persistent, programs=programs), leaves(1, rows, columns),
        softmax.softmax_reference, {"liger": _liger_softmax}, streams="inputs",
    )  # fmt: skip


def _online(kernel, x, BLOCK):
    return long_rows.softmax(kernel, x, "online", BLOCK)[0]


def looped_softmax(rows, columns, BLOCK=1024):
    return Case(
        "softmax", f"softmax, looped {rows}x{columns}", long_rows.softmax_kernel,
        with_options(_online, BLOCK=BLOCK), leaves(1, rows, columns), softmax.softmax_reference,
        {"liger": _liger_softmax}, streams="inputs",
    )  # fmt: skip


SHAPES = ((4096, 1024), (4096, 4096), (4096, 8192), (16384, 2048))


def cases():
    for shape in SHAPES:
        yield layer_norm(*shape, quick=shape == (4096, 4096))
    yield looped_layer_norm(4096, 8192)
    yield looped_layer_norm(4096, 16384)
    for rows, columns in SHAPES:
        # Triton's tutorial takes blocks as long as a row.
        yield looped_layer_norm(rows, columns, "one iteration", BLOCK=columns, num_warps=8)
    yield running_norm(4096, 8192)
    for shape in SHAPES:
        yield rms_norm(*shape, quick=shape == (4096, 8192))
    yield rms_norm(65536, 128)  # of heads
    yield add_rms_norm(4096, 8192)
    yield add_rms_norm(16384, 2048)
    yield group_norm_case(32, 512, 1024, 32, True)
    yield group_norm_case(8, 320, 4096, 32)
    for name in ("softmax", "log_softmax"):
        yield row_softmax(name, 16384, 4096, name == "softmax")
        yield row_softmax(name, 4096, 8192)
    yield persistent_softmax(16384, 4096)
    yield looped_softmax(4096, 8192)
    yield looped_softmax(4096, 16384)
