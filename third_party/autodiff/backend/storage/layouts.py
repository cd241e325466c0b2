"""Addresses, shapes and strides of tensors as bytes, which are quick to take and to compare."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch

from ..library import native

# PyTorch's functions for DLPack, which the native module reads tensors with; None before PyTorch
# had them.
TABLE = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)


class Layout(NamedTuple):
    """Where a tensor is, and how its elements follow each other."""

    address: int
    is_negated: bool
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _by_methods(tensors: list | tuple) -> bytes:
    return b"".join(
        struct.pack(f"{3 + 2 * t.dim()}q", t.data_ptr(), t.dim(), t.is_neg(), *t.shape, *t.stride())
        for t in tensors
    )


@functools.cache
def taking_layouts() -> Callable[[list | tuple], bytes]:
    """Return a function of tensors that returns their layouts. Equal bytes mean equal layouts."""
    return _by_methods if TABLE is None else partial(native().layouts, TABLE, _by_methods)


@functools.cache
def taking_forms() -> Callable[[torch.Tensor], bytes | None]:
    """Return a function that returns type, shape and strides of a tensor whose memory is aligned;
    None for others, and where it is not known.
    """
    return (lambda _: None) if TABLE is None else partial(native().form, TABLE)


def read(data: bytes) -> list[Layout]:
    """Return the layouts that bytes hold."""
    found, place = [], 0
    numbers = struct.unpack(f"{len(data) // 8}q", data)
    while place < len(numbers):
        address, rank, is_negated = numbers[place : place + 3]
        shape = numbers[place + 3 : place + 3 + rank]
        strides = numbers[place + 3 + rank : place + 3 + 2 * rank]
        found.append(Layout(address, bool(is_negated), shape, strides))
        place += 3 + 2 * rank
    return found
