"""Tests the judge: gradients with small mistakes must be found wrong."""

from __future__ import annotations

from collections.abc import Iterator

import torch

Tensor = torch.Tensor
# A tile is this share of a tensor's elements.
_TILES = 16


# A tile with less of the gradient than this, relative to others, is left out: that is rounding.
_LEAST = 0.1


def _tiles(gradient: Tensor) -> list[slice]:
    """The tiles of the flat tensor that have a noticeable gradient."""
    flat = gradient.reshape(-1).float()
    size = max(1, flat.numel() // _TILES)
    norms = torch.stack([part.norm() for part in flat.split(size)])
    typical = norms.norm() / len(norms) ** 0.5
    return [slice(n * size, (n + 1) * size) for n in (norms >= _LEAST * typical).nonzero()[:, 0]]


def _changed(gradient: Tensor, tile: slice, factor: float) -> Tensor:
    spoilt = gradient.float().clone(memory_format=torch.contiguous_format)
    spoilt.view(-1)[tile] *= factor
    return spoilt


def spoilt(gradient: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Copies of a gradient with one mistake each, and its description."""
    if not gradient.any():
        return
    yield "scaled by 1.02", gradient.float() * 1.02
    tiles = _tiles(gradient)
    yield "last tile dropped", _changed(gradient, tiles[-1], 0.0)
    yield "sign of a tile swapped", _changed(gradient, tiles[len(tiles) // 2], -1.0)
