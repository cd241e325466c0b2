"""The elements that each program of a launch touches, if each has its own range.

A program's range of a tensor is a box: an interval in each of some dimensions, which depends on the
program.
"""

from __future__ import annotations

import numpy

from ..storage.memory import is_non_overlapping


class Ranges:
    """Boxes of elements, one for each program: `starts` and `lengths` by dimension and program."""

    def __init__(self, dims, offsets, runs):
        """Collect the boxes of the programs that `runs`, a boolean array, selects.

        `dims` are `(stride, lengths)`, from zero on. `offsets` are `(stride, values)` by which a
        program's box is moved: along the dimension with the longest stride that divides theirs.
        """
        dims = _joined((stride, lengths) for stride, lengths in dims if (lengths != 1).any())
        strides = sorted({stride for stride, _ in dims if stride > 0}, reverse=True)
        starts: dict = {}
        for stride, values in offsets:
            along = next((s for s in strides if stride % s == 0), 0) or abs(stride)
            if along:
                starts[along] = starts.get(along, 0) + values * (stride // along)
        alone = [(s, numpy.ones(len(runs), numpy.int64)) for s in starts if s not in strides]
        dims += alone
        for _, lengths in dims:
            runs = runs & (lengths > 0)
        self.programs = int(runs.sum())
        self.strides = [stride for stride, _ in dims]
        self.lengths = [lengths[runs] for _, lengths in dims]
        zero = numpy.zeros(self.programs, numpy.int64)
        # Of several dimensions with the same stride, the first one is moved.
        self.starts = [
            starts.pop(stride)[runs] if stride in starts else zero for stride in self.strides
        ]

    def count(self) -> int:
        """Return the number of elements of all boxes."""
        volumes = numpy.ones(self.programs, numpy.int64)
        for lengths in self.lengths:
            volumes = volumes * lengths
        return int(volumes.sum())

    def hull(self) -> list[tuple[int, int, int]]:
        """Return `(start, length, stride)` of each dimension of the box that contains all
        of them.
        """
        hull = []
        for starts, lengths, stride in zip(self.starts, self.lengths, self.strides, strict=True):
            start = int(starts.min())
            hull.append((start, int((starts + lengths).max()) - start, stride))
        return hull

    def ends(self) -> tuple[int, int] | None:
        """Return the first and the last element of all boxes; None if there is none."""
        if not self.programs:
            return None
        low = high = 0
        for start, length, stride in self.hull():
            reached = sorted((stride * start, stride * (start + length - 1)))
            low, high = low + reached[0], high + reached[1]
        return low, high

    def are_distinct(self) -> bool:
        """Return whether it is proved that no element is in a box twice, or in two boxes."""
        if not self.programs:
            return True
        hull = self.hull()
        return self._are_apart() and is_non_overlapping(
            [length for _, length, _ in hull], [stride for _, _, stride in hull]
        )

    def _are_apart(self) -> bool:
        """Return whether any two boxes are disjoint in some dimension.

        In each dimension, intervals that overlap, directly or through others, form a group.
        """
        place = numpy.zeros(self.programs, numpy.int64)
        places = place[:1]
        for starts, lengths in zip(self.starts, self.lengths, strict=True):
            order = numpy.argsort(starts, kind="stable")
            reach = numpy.maximum.accumulate((starts + lengths)[order])
            groups = numpy.zeros(self.programs, numpy.int64)
            groups[order[1:]] = numpy.cumsum(starts[order][1:] >= reach[:-1])
            # Renumbered, so that numbers stay small.
            place = place * (groups.max() + 1) + groups
            places, place = numpy.unique(place, return_inverse=True)
        return len(places) == self.programs


def _joined(dims) -> list:
    """Return dimensions sorted by stride, each merged with the next one if that continues it."""
    joined: list = []
    for stride, lengths in sorted(dims, key=lambda dim: dim[0]):
        if joined:
            before, own = joined[-1]
            if len(own) and (own == own[0]).all() and stride == before * own[0]:
                joined[-1] = (before, own * lengths)
                continue
        joined.append((stride, lengths))
    return joined
