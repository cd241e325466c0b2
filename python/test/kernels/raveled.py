"""Reductions of pairs, of tiles that are reshaped to one axis."""

import torch
import triton
import triton.language as tl

from .common import poisoned


@triton.jit
def _later(a, i, b, j):
    """The larger one of two numbers, the later one of equal ones."""
    take = (a > b) | ((a == b) & (i > j))
    return tl.where(take, a, b), tl.where(take, i, j)


@triton.jit
def _complex_product(a, b, c, d):
    return a * c - b * d, a * d + b * c


@triton.jit
def place_kernel(
    x_ptr, w_ptr, y_ptr, place_ptr, A: tl.constexpr, B: tl.constexpr, HOW: tl.constexpr
):
    """A tile of columns of memory, so that threads hold neighbours along the first axis."""
    places = tl.arange(0, A)[:, None] + tl.arange(0, B)[None, :] * A
    tile = tl.load(x_ptr + tl.program_id(0) * A * B + places)
    x = tl.reshape(tile, [A * B])
    indices = tl.arange(0, A * B)
    if HOW == "product":
        # Of e^(i w), with a weight of its own for each element.
        w = tl.load(w_ptr + indices)
        y, _ = tl.reduce((x, w), 0, _complex_product)
        place = tl.zeros([], tl.int32)
    elif HOW == "later":
        y, place = tl.reduce((x, indices), 0, _later)
    elif HOW == "least":
        y, place = tl.min(x, 0, return_indices=True)
    else:
        y, place = tl.max(x, 0, return_indices=True)
    tl.store(y_ptr + tl.program_id(0), y)
    tl.store(place_ptr + tl.program_id(0), place)


def place(kernel, x, w, shape, how, **options):
    """x: (programs, A·B), w: (A·B,)."""
    A, B = shape
    y = poisoned((len(x),), x)
    found = torch.zeros(len(x), dtype=torch.int32, device=x.device)
    kernel[(len(x),)](x, w, y, found, A=A, B=B, HOW=how, **options)
    return y, found


def place_reference(x, w, shape, how):
    A, B = shape
    tiles = x.reshape(len(x), B, A).transpose(1, 2).reshape(len(x), -1)
    if how == "product":
        product = torch.complex(tiles, w.to(tiles).expand_as(tiles)).prod(1)
        return product.real, torch.zeros(len(x), dtype=torch.int32, device=x.device)
    found = tiles.argmin(1) if how == "least" else tiles.argmax(1)
    return tiles.gather(1, found[:, None])[:, 0], found.int()
