"""PTX instructions and what each of them is, computed exactly: a table for the tests.

An entry has the assembly, the types of operands and result, a function of one element, and how far
an approximation may be off. Elements are Python floats, or integers as they are in registers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import torch
from rounding import BF16, F16, F32, F64, flushed

FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
}


@dataclasses.dataclass(frozen=True)
class Instruction:
    """A piece of assembly for one element, or for `pack` of them."""

    text: str
    operands: tuple[str, ...]
    result: str
    function: Callable
    pack: int = 1
    #: (expected, got, operands) → whether an approximation is good enough; exact without it.
    tolerance: Callable | None = None
    #: What operands are limited to, where the error is only stated for these.
    limit: float | None = None
    #: The least compute capability that has it.
    capability: int = 80


TABLE: dict[str, Instruction] = {}


def enter(name: str, text: str, operands: str, result: str, function, **options):
    """Add an instruction; types of operands are words."""
    assert name not in TABLE, name
    TABLE[name] = Instruction(text, tuple(operands.split()), result, function, **options)


def numbers(first: int, count: int) -> str:
    """Return operands of assembly, one after the other."""
    return ", ".join(f"${i}" for i in range(first, first + count))


def flushing(function, form):
    """Return a function of numbers of which subnormal ones are zeros, as are its results."""
    return lambda *x: flushed(function(*(flushed(value, form) for value in x)), form)


def saturating(function):
    """Return a function whose results are limited to [0, 1]; NaN becomes zero."""

    def saturated(*x):
        y = function(*x)
        return 0.0 if not y > 0 else min(y, 1.0)

    return saturated


def rectifying(function):
    """Return a function whose negative results are zero."""

    def rectified(*x):
        y = function(*x)
        return y if math.isnan(y) or y > 0 else 0.0

    return rectified


def signed(value: int, bits: int) -> int:
    """Return the number that these bits are in two's complement."""
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def unsigned(function, bits: int = 32):
    """Return a function of what integers are without a sign."""
    return lambda *x: function(*(value % 2**bits for value in x))
