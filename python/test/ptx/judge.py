"""Operands for instructions, and whether the results are right."""

from __future__ import annotations

import math
import struct

import torch

from .table import DTYPES, FORMATS, Instruction, signed


def _special_floats(kind: str) -> torch.Tensor:
    """Return zeros, subnormal numbers, ties, limits, infinities and NaN."""
    form = FORMATS[kind]
    tiny, unit = 2.0 ** (form.smallest - form.digits + 1), 2.0 ** (1 - form.digits)
    normal = 2.0**form.smallest
    sizes = [0.0, tiny, normal - tiny, normal, 1.0, 1 + unit, 2.0, 3.0, 0.5, 0.25, 1.5, 2.5]
    sizes += [0.75, 1 - unit / 2, 1 / 3, 6.0, 100.7, form.largest / 2, form.largest, math.inf]
    sizes += [math.nan, 8.5, 448.0, 464.0, 480.0, 57344.0, 61440.0, 65504.0, 65519.0, 65520.0]
    if kind in ("f32", "f64"):
        sizes += [2.0**126 * 1.5, 2.0**31, 2.0**63, 2.0**-149, 2.0**-26, 1 + 2.0**-11, 1 + 2.0**-8]
        sizes += [2.0**31 - 128, 1 + 2.0**-11 + 2.0**-23, 2147483520.0, 4294967040.0, 0.03125]
    both = [sign * size for size in sizes for sign in (1.0, -1.0)]
    return torch.tensor(both, dtype=torch.float64).to(DTYPES[kind])


def _random(kind: str, count: int) -> torch.Tensor:
    """Return numbers of all sizes, and ordinary ones."""
    dtype = DTYPES[kind]
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    info = torch.iinfo(bits)
    wild = torch.randint(info.min, info.max, (count,), dtype=bits)
    if not dtype.is_floating_point:
        return torch.where(torch.rand(count) < 0.5, wild, torch.randint(-40, 70, (count,))).to(bits)
    return torch.where(
        torch.rand(count) < 0.4, wild.view(dtype).double(), torch.randn(count, dtype=torch.float64)
    ).to(dtype)


def operands(instruction: Instruction, count: int = 1024) -> list[torch.Tensor]:
    """Return special values against each other, and random ones."""
    columns = []
    for number, kind in enumerate(instruction.operands):
        if DTYPES[kind].is_floating_point:
            special = _special_floats(kind)
        else:
            low = -(2 ** (8 * DTYPES[kind].itemsize - 1))
            special = torch.tensor(
                [0, 1, -1, 2, 7, 31, 32, 33, 64, 255, low, low + 1, -low - 1, 0x5555, 0x7F00],
                dtype=torch.int64,
            ).to(DTYPES[kind])
        # The first operand goes through all of them for each of the second one's.
        order = torch.arange(count // 2) // len(special) ** number
        if len(instruction.operands) > 2 or number:
            order = torch.where(order < len(special), order, torch.randint(0, 997, order.shape))
        column = torch.cat([special[order % len(special)], _random(kind, count - len(order))])
        if instruction.limit is not None:
            keeps = (column.double().abs() <= instruction.limit) | ~column.isfinite()
            column = torch.where(keeps, column, torch.ones((), dtype=column.dtype))
        columns.append(column)
    return columns


def expected(instruction: Instruction, inputs: list[torch.Tensor]) -> torch.Tensor:
    """Return the results, one element at a time."""
    rows = zip(*(x.tolist() for x in inputs), strict=True)
    dtype = DTYPES[instruction.result]
    values = [instruction.function(*row) for row in rows]
    if dtype.is_floating_point:
        return torch.tensor(values, dtype=torch.float64)
    bits = 8 * dtype.itemsize
    return torch.tensor([signed(int(v), bits) for v in values], dtype=dtype)


def mistakes(instruction: Instruction, inputs, got: torch.Tensor) -> list[str]:
    """Return the elements that are wrong, NaN, infinities and signs of zeros included."""
    wanted, wrong = expected(instruction, inputs), []
    rows = list(zip(*(x.tolist() for x in inputs), strict=True))
    for row, want, have in zip(rows, wanted.tolist(), got.tolist(), strict=True):
        if isinstance(want, int):
            good = want == have
        elif math.isnan(want) or math.isnan(have):
            good = math.isnan(want) and math.isnan(have)
        elif instruction.tolerance and math.isfinite(want) and math.isfinite(have):
            good = instruction.tolerance(want, have, *row)
        else:
            good = struct.pack("d", want) == struct.pack("d", have)
        if not good:
            wrong.append(f"{instruction.text} of {row}: expected {want!r}, got {have!r}")
    return wrong
