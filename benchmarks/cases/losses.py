"""Cross-entropy over large vocabularies, and embeddings."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from kernels import cross_entropy, gather

from .common import DEVICE, Case, leaf, leaves, with_options


def _liger_cross_entropy():
    from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction

    def apply(logits, target):
        # Ignored index, regularisation, smoothing: none.
        return LigerCrossEntropyFunction.apply(logits, target, None, -100, 0.0, 0.0, "mean")[0]

    return apply


def _liger_embedding():
    from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction

    return lambda index, table: LigerEmbeddingFunction.apply(table, index)


def loss(tokens, classes, block=4096, quick=False):
    def stub(kernel, logits, target):
        losses = cross_entropy.cross_entropy(kernel, logits, target, BLOCK=block, num_warps=8)
        return losses.mean()

    def inputs():
        target = torch.randint(classes, (tokens,), device=DEVICE)
        return leaf(tokens, classes, dtype=torch.bfloat16), target

    # Liger's forward computes the gradient.
    return Case(
        "cross-entropy", f"cross-entropy, forward and backward, {tokens}x{classes}",
        cross_entropy.cross_entropy_kernel, stub, inputs, F.cross_entropy,
        {"liger": _liger_cross_entropy}, quick=quick, whole=True,
    )  # fmt: skip


def divergence(rows, classes, block=4096):
    return Case(
        "cross-entropy", f"divergence of two softmaxes {rows}x{classes}",
        cross_entropy.divergence_kernel, with_options(cross_entropy.divergence, BLOCK=block),
        leaves(2, rows, classes), cross_entropy.divergence_reference, streams="inputs",
    )  # fmt: skip


def embedding(tokens, rows, columns, distinct, quick=False):
    """`distinct` is the number of different rows: fewer mean more repetitions."""
    return Case(
        "embedding", f"embedding {tokens} of {rows}x{columns}, {distinct} different",
        gather.embedding_kernel, with_options(gather.embedding, BLOCK=1024),
        lambda: (torch.randint(distinct, (tokens,), device=DEVICE), leaf(rows, columns)),
        lambda index, table: F.embedding(index, table), {"liger": _liger_embedding}, quick=quick,
    )  # fmt: skip


def cases():
    for classes in (32000, 128256):
        for tokens in (4096, 8192):
            yield loss(tokens, classes, quick=(tokens, classes) == (4096, 32000))
    yield divergence(2048, 32000)
    yield embedding(8192, 32000, 2048, 32000, True)
    yield embedding(8192, 32000, 2048, 100)
