"""Whether ranges of addresses touch each element once, and whether they touch all.

A range is a sum of digits: of numbers 0 … extent - 1, each times a step. In `checks.py`, digits are
programs, iterations and lanes. `exporting/export.py` writes these functions into modules.
"""

from __future__ import annotations

from typing import NamedTuple


def merge(dims) -> tuple[tuple[int, int], ...]:
    """Return sorted `(extent, stride)` pairs, without extents of one, and contiguous ones merged.

    Two index spaces without repeated offsets that merge to the same pairs have the same offsets.
    """
    merged: list[tuple[int, int]] = []
    for extent, stride in sorted((d for d in dims if d[0] != 1), key=lambda d: (d[1], d[0])):
        if merged and stride == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        else:
            merged.append((extent, stride))
    return tuple(merged)


def distinct(dims) -> bool:
    """Return whether all offsets of merged `(extent, stride)` pairs are proved to differ."""
    span = 0
    for extent, stride in dims:
        if stride <= span:
            return False
        span += (extent - 1) * stride
    return True


def is_within(start: int, box, held) -> bool:
    """Return whether all elements of a box are proved to be elements of a tensor.

    The box is a list of `(count, stride)` pairs, the tensor one of merged pairs.
    """
    places = {}
    for length, stride in sorted(held, key=lambda dim: -dim[1]):
        if stride < 0:
            return False
        if stride == 0:
            # Elements with stride zero are the same one.
            continue
        places[stride] = [start // stride, length - 1]
        start %= stride
    if start:
        return False
    for count, stride in box:
        along = max((s for s in places if stride % s == 0), default=None)
        if along is None:
            return False
        places[along][0] += (count - 1) * (stride // along)
    return all(0 <= place <= last for place, last in places.values())


def spelled(dims) -> str:
    """Describe merged `(extent, stride)` pairs in words."""
    return " by ".join(f"{extent} elements of stride {stride}" for extent, stride in dims) or "one"


class Indices(NamedTuple):
    """An index from `place` to `place` + count - 1, and its stride.

    The count is None if the digits leave gaps or repeat values.
    """

    stride: int
    digits: list[tuple[int, int]]
    count: int | None
    place: int


def length_of(digits) -> int | None:
    """Return the length of the range that `(step, extent)` digits add up to; zero if it is empty.

    None if it has gaps or repeated values.
    """
    length = 1
    for step, extent in sorted(digits):
        # If it is the only value, its step does not matter.
        if length != step and extent > 1 and length > 0:
            return None
        length *= max(extent, 0)
    return length


def bounded(digits, count: int, bound: int) -> list | None:
    """Merge the first `count` digits into one below a bound; None if they leave gaps."""
    first, others = digits[:count], digits[count:]
    length = length_of(first) if all(step > 0 for step, _ in first) else None
    return None if length is None else [(1, max(min(length, bound), 0)), *others]


def indices(stride, digits, bound=None, start=None) -> Indices:
    """Return the values of a sum of `(step, extent)` digits, below a bound and from a start on.

    Digits that count down are replaced by ones that count up from the other end. If the digits are
    None, there are gaps.
    """
    if digits is None:
        return Indices(abs(stride), [], None, 0)
    lowest = sum(s * (e - 1) for s, e in digits if s < 0 < e)
    digits = sorted((abs(s), e) for s, e in digits if e != 1)
    count, place = length_of(digits), 0
    if count is not None:
        first = 0 if start is None else max(start - lowest, 0)
        count = (count if bound is None else min(count, bound - lowest)) - first
        place = stride * (lowest + first + (max(count - 1, 0) if stride < 0 else 0))
    return Indices(abs(stride), digits, count, place)


def cover(shape, strides, offset: int, dims) -> str | None:
    """Return why `Indices` from an offset on do not touch each element of a tensor once.

    None if they do.
    """
    first = offset + sum(dim.place for dim in dims)
    if first != 0:
        return f"the first element that it reaches is number {first}"
    if any(dim.count is None for dim in dims):
        return GAPS
    if any(dim.count <= 0 for dim in dims):
        return "it reaches no element"
    reached = merge((dim.count, dim.stride) for dim in dims)
    held = merge(zip(shape, strides, strict=True))
    if not distinct(reached):
        return f"it repeats addresses ({spelled(reached)})"
    if reached != held:
        return f"it reaches {spelled(reached)}, and the tensor is {spelled(held)}"
    return None


GAPS = "programs or iterations leave gaps or repeat addresses"


def repeat(dims) -> str | None:
    """Return why `Indices` may touch an element twice; None if they cannot."""
    pairs = []
    for stride, digits, count, _ in dims:
        # Bounds only exclude accesses.
        apart = [(extent, stride * step) for step, extent in digits]
        pairs += apart if count is None else [(count, stride)]
    if any(extent <= 0 for extent, _ in pairs) or distinct(merge(pairs)):
        return None
    return "it may reach an element more than once"
