"""Tensor descriptors made on the host: which arguments they become, and facts of a launch.

Triton specialises kernels for the values of arguments, but not of a descriptor's components.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from ..errors import ArgumentError

# The element type of a descriptor, and the shape of its blocks.
_TYPE = r"tensordesc<([^[]*)\[([^]]*)\]"


def _parse(type_: str) -> tuple[str, list[int]]:
    element, block = re.match(_TYPE, type_).groups()
    return element, [int(size) for size in block.split(",")]


def block_of(type_: str) -> list[int]:
    """Return the shape of the blocks of a descriptor of this type."""
    return _parse(type_)[1]


def leaves(type_, path):
    """Yield path and type of the arguments that autodiff-lower-descriptors makes of this type."""
    element, block = _parse(type_)
    yield (*path, "base"), f"*{element}"
    yield (*path, "is_nan"), "i1"
    yield from (((*path, "shape", axis), "i32") for axis in range(len(block)))
    yield from (((*path, "strides", axis), "i64") for axis in range(len(block)))


def rebuilt(type_: str, parts):
    """Return the descriptor of a type whose arguments are the next of `parts` (see `leaves`)."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    block = block_of(type_)
    base, is_nan = next(parts), next(parts)
    shape, strides = ([next(parts) for _ in block] for _ in range(2))
    padding = {"padding": "nan"} if is_nan else {}
    return TensorDescriptor(base, shape, strides, block, **padding)


def part_of(descriptor, name):
    """Return a component of a `TensorDescriptor` by its name in a path."""
    if name != "is_nan":
        return getattr(descriptor, name)
    if getattr(descriptor, "round_f32_to_tf32", False):
        raise ArgumentError(
            f"a tensor descriptor that rounds to tf32 cannot be differentiated ({descriptor}): "
            "round in the kernel"
        )
    return descriptor.padding == "nan"


class Known(NamedTuple):
    """Facts about descriptors in a launch, by the plan's argument numbers."""

    aligned: tuple[int, ...] = ()  # sizes that are multiples of 16
    known: tuple[tuple[int, int], ...] = ()  # parts, and what they are
    same: tuple[tuple[int, int], ...] = ()  # parts, and an earlier one that is the same


class Descriptors:
    """The descriptors among a kernel's arguments, from the types and paths of their components."""

    def __init__(self, types, paths):
        # For each descriptor, its padding, its sizes and strides, and the length of a block's rows.
        self._parts = []
        for place, path in enumerate(paths):
            if path[-1] == "is_nan":
                type_ = functools.reduce(lambda t, index: tuple(t)[index], path[:-1], types)
                _, block = _parse(type_)
                first, rank = place + 1, len(block)
                sizes, strides = range(first, first + rank), range(first + rank, first + 2 * rank)
                self._parts.append((place, sizes, strides, block[-1]))

    def known(self, values) -> Known:
        """Return the facts that a launch knows of its descriptors; `values` are their components.

        These are: whether reads beside the tensor give NaN; whether rows are as long as a block,
        and contiguous; whether sizes end between groups of lanes; and which tensors have equal
        sizes, or strides, so that lanes are inside of all of them or of none.
        """
        if not self._parts:
            return _NOTHING
        aligned, known, same = [], [], []
        sizes_seen, strides_seen = {}, {}
        for padding, sizes, strides, row in self._parts:
            known.append((padding, int(values[padding])))
            length = sizes[-1]
            whole = ()
            if values[length] == row:
                # Also the stride between rows, if rows are contiguous.
                whole = (length, *(part for part in strides[-2:-1] if values[part] == row))
                known += [(part, row) for part in whole]
            aligned += [part for part in sizes if part not in whole and values[part] % 16 == 0]
            for parts, seen in ((sizes, sizes_seen), (strides[:-1], strides_seen)):
                for part in parts:
                    if part not in whole and (first := seen.setdefault(values[part], part)) != part:
                        same.append((part, first))
        return Known(tuple(aligned), tuple(known), tuple(same))


_NOTHING = Known()
