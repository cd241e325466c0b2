"""Recurrences along time."""

from __future__ import annotations

import torch
from kernels import loops, recurrences

from .common import Case, leaf, with_options


def _fla_chunked():
    from fla.ops.hgrn import chunk_hgrn

    return lambda x, g: chunk_hgrn(x, g)[0]


def _fla_recurrent():
    from fla.ops.hgrn import fused_recurrent_hgrn

    return lambda x, g: fused_recurrent_hgrn(x, g)[0]


class _FlaCumsum(torch.autograd.Function):
    """fla's kernel in both directions: the backward of a cumulative sum is one from the end."""

    @staticmethod
    def forward(ctx, x):
        return _fla_sums(x, reverse=False)

    @staticmethod
    def backward(ctx, gradient):
        return _fla_sums(gradient, reverse=True)


def _fla_sums(x, reverse):
    from fla.ops.utils.cumsum import chunk_global_cumsum

    return chunk_global_cumsum(x[:, :, None], reverse=reverse)[:, :, 0]


def _fla_cumsum():
    import fla.ops.utils.cumsum  # noqa: F401

    return _FlaCumsum.apply


def gated(batch, steps, channels, dtype=torch.float32, quick=False):
    def inputs():
        # Gates just below one, which remember for some hundred steps.
        decay = leaf(batch, steps, channels, dtype=dtype).detach().abs() * -0.01
        return leaf(batch, steps, channels, dtype=dtype), decay.requires_grad_()

    # A loop over thousands of steps in PyTorch would take longer than everything else.
    return Case(
        "recurrence", f"gated recurrence {batch}x{steps}x{channels} {str(dtype)[6:]}",
        recurrences.gated_kernel, with_options(recurrences.gated, BLOCK=64, num_warps=1), inputs,
        None, {"fla": _fla_chunked, "fla_loop": _fla_recurrent}, quick=quick, compiles=False,
        streams="inputs",
    )  # fmt: skip


def cumsum(batch, steps, channels):
    return Case(
        "recurrence", f"cumsum {batch}x{steps}x{channels} float32", recurrences.cumsum_kernel,
        recurrences.cumsum, lambda: (leaf(batch, steps, channels, dtype=torch.float32),),
        recurrences.cumsum_reference, {"fla": _fla_cumsum}, streams="gradients",
    )  # fmt: skip


def rnn(steps, batch, channels, quick=False):
    return Case(
        "recurrence", f"rnn {batch}x{steps}x{channels} float32", loops.rnn_kernel,
        with_options(loops.rnn, BLOCK=128),
        lambda: (
            leaf(batch, steps, channels, dtype=torch.float32),
            # Small weights, since a chaotic recurrence would amplify rounding errors.
            leaf(channels, dtype=torch.float32, scale=0.4),
            leaf(batch, channels, dtype=torch.float32),
        ),
        loops.rnn_reference, quick=quick, compiles=False,
    )  # fmt: skip


def cases():
    yield gated(16, 4096, 1024, quick=True)
    yield gated(16, 4096, 1024, torch.bfloat16)
    yield cumsum(16, 4096, 1024)
    yield rnn(128, 64, 1024)
