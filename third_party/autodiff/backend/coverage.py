"""Which elements ranges of addresses cover, as numbers: whether each is met once, and all are.

A range is a sum of digits: of numbers 0 … extent - 1, each times a step. See `checks.py`, where
digits are programs, iterations and lanes, and `export.py`, which gives these functions to modules.
"""

from __future__ import annotations

from typing import NamedTuple


def merge(dims) -> tuple[tuple[int, int], ...]:
    """Return `(extent, stride)` pairs sorted by stride, unit extents dropped, neighbours joined.

    Two index spaces without repeated offsets that merge to the same pairs cover the same offsets.
    """
    merged: list[tuple[int, int]] = []
    for extent, stride in sorted((d for d in dims if d[0] != 1), key=lambda d: (d[1], d[0])):
        if merged and stride == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        else:
            merged.append((extent, stride))
    return tuple(merged)


def distinct(dims) -> bool:
    """Return whether the offsets of merged `(extent, stride)` pairs are proved distinct."""
    span = 0
    for extent, stride in dims:
        if stride <= span:
            return False
        span += (extent - 1) * stride
    return True


def is_within(start: int, box, held) -> bool:
    """Return whether all elements of a box are proved to be a tensor's.

    The box are `(count, stride)` pairs, the tensor merged ones.
    """
    places = {}
    for length, stride in sorted(held, key=lambda dim: -dim[1]):
        if stride < 0:
            return False
        if stride == 0:
            # Elements that share memory: one of them is where all are.
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
    """Return merged `(extent, stride)` pairs in words."""
    return " by ".join(f"{extent} elements of stride {stride}" for extent, stride in dims) or "one"


class Indices(NamedTuple):
    """The values 0 … count - 1 of an index, times the stride; they begin at `place`.

    The count is None where the digits leave gaps or repeat.
    """

    stride: int
    digits: list[tuple[int, int]]
    count: int | None
    place: int


def length_of(digits) -> int | None:
    """Return the length of the range that `(step, extent)` digits add up to; zero if it is empty.

    None if it has gaps or repeats.
    """
    length = 1
    for step, extent in sorted(digits):
        # Where there are no others, how far one moves does not matter.
        if length != step and extent > 1 and length > 0:
            return None
        length *= max(extent, 0)
    return length


def bounded(digits, count: int, bound: int) -> list | None:
    """Return digits of which the first `count` are one, below a bound; None if it has gaps."""
    first, others = digits[:count], digits[count:]
    length = length_of(first) if all(step > 0 for step, _ in first) else None
    return None if length is None else [(1, max(min(length, bound), 0)), *others]


def indices(stride, digits, bound=None, start=None) -> Indices:
    """Return the values of a sum of `(step, extent)` digits, below a bound, no less than a start.

    Those that count down are counted up, from so far in front of where they are. Without digits
    (None), there are gaps.
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
    """Return why `Indices` from an offset on do not meet each element of a tensor once.

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
    """Return why `Indices` may meet an element twice; None if they do not."""
    pairs = []
    for stride, digits, count, _ in dims:
        # Bounds only ever take accesses away.
        apart = [(extent, stride * step) for step, extent in digits]
        pairs += apart if count is None else [(count, stride)]
    if any(extent <= 0 for extent, _ in pairs) or distinct(merge(pairs)):
        return None
    return "it may reach an element more than once"
