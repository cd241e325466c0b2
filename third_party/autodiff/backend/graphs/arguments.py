"""Arguments of a traced launch: tensors and numbers of a graph, and constants for the rest.

A description is a list of pairs: ("tensor", dtype), ("int", None), ("float", None), or ("constant",
value). A pair ("tuple", count) precedes the elements of a tuple, and ("descriptor", rank) the
components of a tensor descriptor.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Iterator

import torch
from triton.tools.tensor_descriptor import TensorDescriptor

Tensor = torch.Tensor
_NUMBERS = (int, float, torch.SymInt, torch.SymFloat)


class FlatArguments:
    """Arguments as a graph knows them; `described` alternates kinds and values."""

    def __init__(self):
        self.tensors: list[Tensor] = []
        self.ints: list = []
        self.floats: list = []
        self.described: list = []

    def add(self, value, is_constant: bool = False) -> None:
        """Flatten an argument; Dynamo reads this function."""
        if isinstance(value, enum.IntEnum) and not is_constant:
            value = value.value
        if isinstance(value, Tensor):
            self.tensors.append(value)
            self.described += ("tensor", value.dtype)
        elif isinstance(value, TensorDescriptor):
            self.described += ("descriptor", len(value.shape))
            for part in (value.base, *value.shape, *value.strides[:-1]):
                self.add(part)
            # Rows are contiguous, which a descriptor asserts when it is made.
            for part in (1, *value.block_shape, value.padding):
                self.described += ("constant", constant(part))
        elif isinstance(value, tuple) and not is_constant:
            self.described += ("tuple", len(value))
            for part in value:
                self.add(part)
        elif is_constant or isinstance(value, bool) or not isinstance(value, _NUMBERS):
            self.described += ("constant", constant(value))
        elif isinstance(value, (float, torch.SymFloat)):
            self.floats.append(value)
            self.described += ("float", None)
        else:
            self.ints.append(value)
            self.described += ("int", None)


def constant(value):
    """Return the value that a graph is specialized for; for a symbol, the one it is traced with."""
    if isinstance(value, enum.Enum):
        return value
    if isinstance(value, (bool, torch.SymBool)):
        return True if value else False  # noqa: SIM210
    if isinstance(value, (float, torch.SymFloat)):
        # Dynamo has no symbols as keys: it looks up the number, and compares it from then on.
        (value,) = {value: None}
        return value
    return operator.index(value) if isinstance(value, (int, torch.SymInt)) else value


def identity(value) -> str:
    """Return a text that identifies a constant; a function of a kernel by its source."""
    return getattr(value, "cache_key", None) or repr(value)


def assembled(described: Iterator, following: dict[str, Iterator]):
    """Rebuild an argument from its description, and the graph's values of each kind."""
    kind, value = next(described)
    if kind in following:
        return next(following[kind])
    if kind == "tuple":
        return tuple(assembled(described, following) for _ in range(value))
    if kind == "descriptor":
        base, *parts = (assembled(described, following) for _ in range(3 * value + 2))
        shape, strides, block = (list(parts[n * value :][:value]) for n in range(3))
        return TensorDescriptor(base, shape, strides, block, *parts[3 * value :])
    return value


def paths(described: Iterator, count: int) -> list[tuple]:
    """Return the paths of tensors among `count` arguments: numbers, and "base" in a descriptor."""
    found: list[tuple] = []

    def look(path):
        kind, value = next(described)
        if kind == "tensor":
            found.append(path)
        elif kind == "tuple":
            for n in range(value):
                look((*path, n))
        elif kind == "descriptor":
            look((*path, "base"))
            for _ in range(3 * value + 1):
                next(described)

    for number in range(count):
        look((number,))
    return found
