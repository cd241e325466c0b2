"""Decides which of two different gradients is right.

Slopes of the forward decide, along directions that are chosen by the two gradients ("claims"):
along their difference (whole, and in the slabs of the tensor where it is largest), and along the
gradient itself. A claim's error in a direction is its distance from the slope, relative to the
gradient.

Along the difference, rounding errors are visible: two right gradients both have some of it. A claim
is wrong there if its error is more than `rounding` allows. Unless the other claim is far better,
the case is hard, and a claim may have twice the other's error. Along the gradient, rounding errors
cancel, since they are hardly correlated with it, and a wrong factor remains: `scale` is below a
percent even where `rounding` is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from .problem import dot, norm

Tensor = torch.Tensor
AGREE, OURS_RIGHT, THEIRS_RIGHT, NEITHER, UNDECIDED = (
    "agree",
    "ours",
    "theirs",
    "neither",
    "undecided",
)
# From bad to good: a case is as bad as the worst of its gradients.
SEVERITY = (THEIRS_RIGHT, NEITHER, UNDECIDED, OURS_RIGHT, AGREE)
# The slabs along each axis that are compared by themselves, and how many of them are judged.
_SLABS = 16
_JUDGED = 2
# If a slab's gradient is smaller than this share of a typical one's, errors are relative to that.
_LEAST = 0.3
# The largest number of half precision, and how many gradients may be larger.
_LARGEST_HALF = torch.finfo(torch.float16).max
_MOST_BEYOND = 64
# A claim whose error is so many times the tolerance says nothing about the other one.
_HARD = 3.0
# In a random direction, rounding errors do not cancel as much as the gradient does.
_RANDOM = 4.0


class Tolerance(NamedTuple):
    """Relative errors: of equal gradients, of right ones along a difference, and of factors."""

    same: float
    rounding: float
    scale: float


def tolerance(dtype: torch.dtype, device: str) -> Tolerance:
    """The error that the coarsest dtype of a computation may cause in a right gradient.

    Half precision rounds every value in memory, and intermediate ones. GPUs multiply float32 as
    tf32.
    """
    eps = torch.finfo(dtype).eps
    if dtype != torch.float32:
        return Tolerance(eps / 2, 2 * eps, max(eps, 2e-3))
    return Tolerance(1e-5, 2e-3 if device == "cuda" else 1e-4, 2e-3)


def tolerance_of(floats) -> Tolerance:
    """The tolerance of a computation with these tensors."""
    floats = list(floats)
    coarsest = max((x.dtype for x in floats), key=lambda dtype: torch.finfo(dtype).eps)
    return tolerance(coarsest, floats[0].device.type)


class Evidence(NamedTuple):
    """The result along one direction: how far both claims are above the slope, and the error of
    that.

    All three are relative to the gradient.
    """

    where: str
    theirs: float
    ours: float
    error: float


@dataclass
class Finding:
    """The verdict on the gradient of one leaf."""

    name: str
    verdict: str
    # The relative distance of the two gradients, and the largest one in a slab.
    difference: float
    slab: float
    evidence: list[Evidence] = field(default_factory=list)
    # Whether theirs, and ours, is certainly wrong.
    wrong: tuple[bool, bool] = (False, False)


def _few(limit: float, count: int) -> float:
    """A limit for so many elements: with fewer elements, rounding errors may be larger."""
    return limit * (1 + 3 / max(count, 1) ** 0.5)


def worst(verdicts) -> str:
    """The verdict on a case, from those on its gradients."""
    return min(verdicts, key=SEVERITY.index, default=AGREE)


def _present(gradient: Tensor | None, like: Tensor) -> Tensor:
    """A gradient in float32; zero if there is none."""
    if gradient is None:
        return torch.zeros(like.shape, device=like.device)
    return gradient.detach().float()


def _squares_along(x: Tensor, axis: int, slabs: int) -> list[float]:
    """The squared norms of slabs along an axis."""
    return [part.square().sum(dtype=torch.float64).item() for part in x.chunk(slabs, axis)]


class _Slab(NamedTuple):
    axis: int
    index: int
    slabs: int
    ratio: float

    def of(self, x: Tensor) -> Tensor:
        """The tensor, with zeros outside of the slab."""
        kept = torch.zeros_like(x)
        part = kept.chunk(self.slabs, self.axis)[self.index]
        part.copy_(x.chunk(self.slabs, self.axis)[self.index])
        return kept

    def __str__(self):
        return f"axis {self.axis}, part {self.index + 1} of {self.slabs}"


def _size(a: float, b: float, whole: float, share: float) -> float:
    """The norm of a part of the gradient; one claim may lack that part."""
    return max(a, b, _LEAST * whole * share**0.5)


def _slabs(theirs: Tensor, ours: Tensor, apart: Tensor, whole: float) -> Iterator[_Slab]:
    for axis in range(apart.dim()):
        count = len(apart.chunk(_SLABS, axis))
        if count < 2:
            continue
        squares = [_squares_along(x, axis, _SLABS) for x in (theirs, ours, apart)]
        for index, (a, b, d) in enumerate(zip(*squares, strict=True)):
            size = _size(a**0.5, b**0.5, whole, 1 / count)
            yield _Slab(axis, index, _SLABS, d**0.5 / size if size else 0.0)


class Judge:
    """Judges the gradients of one problem by slopes of a truth; without one, as far as possible."""

    def __init__(self, truth, allowed: Tolerance):
        self.truth = truth
        self.allowed = allowed

    def finding(self, index: int, name: str, theirs, ours, like: Tensor, alone=False) -> Finding:
        """The verdict on the claimed gradients of one leaf.

        `alone`: there is just one claim, which is passed on both sides.
        """
        a, b = _present(theirs, like), _present(ours, like)
        same = (a == b) & (not alone)
        half = [x is not None and x.dtype == torch.float16 for x in (theirs, ours)]
        broken = [self._overflow(index, x, h, same) for x, h in zip((a, b), half, strict=True)]
        a, b = _where_both(a, b)
        apart = b - a
        whole = max(norm(a), norm(b))
        difference = norm(apart) / whole if whole else 0.0
        slabs = sorted(_slabs(a, b, apart, whole), key=lambda s: -s.ratio)
        largest = slabs[0].ratio if slabs else difference
        found = Finding(name, AGREE, difference, largest)
        if broken != [False, False]:
            # The finite elements are still judged.
            infinite = [torch.inf if x else 0.0 for x in broken]
            found.evidence.append(Evidence("not finite", *infinite, 0.0))
        wrong, unsure = [x is True for x in broken], [x is None for x in broken]
        if alone:
            examined = self._examine_alone(index, b)
        elif difference > self.allowed.same or largest > 4 * self.allowed.same:
            examined = self._examine(index, a, b, apart, whole, difference, slabs)
        else:
            examined = ()
        if self.truth is None:
            unsure = [x or examined != () for x in unsure]
            examined = ()
        for evidence, limit in examined:
            found.evidence.append(evidence)
            for side, decided in enumerate(_wrong(evidence, limit, alone)):
                wrong[side] |= decided is True
                unsure[side] |= decided is None
        if wrong[0] != wrong[1] and broken == [False, False] and self.truth is not None:
            # A wrong claim says nothing about the other one, which may be wrong as well.
            other = wrong.index(False)
            rest = self.finding(index, name, *(2 * [(theirs, ours)[other]]), like, alone=True)
            found.evidence += rest.evidence
            wrong[other] = rest.wrong[0]
        found.verdict, found.wrong = _verdict(wrong, unsure), tuple(wrong)
        return found

    def _overflow(self, index: int, x: Tensor, half: bool, same: Tensor) -> bool | None:
        """Whether a claim is not finite where it should be; None if that is not known.

        A number beyond half precision may be infinite, if the truth says so, or the other claim
        where both are the `same`. It is replaced by the truth's number.
        """
        lost = ~x.isfinite()
        places = lost.nonzero().tolist()
        if not places:
            return False
        if not half or x.isnan().any() or len(places) > _MOST_BEYOND:
            return True
        if self.truth is None:
            return None if (lost & ~same).any() else False
        known, estimate = True, torch.where(lost, 0.0, x)
        for place in map(tuple, places):
            direction = torch.zeros_like(x)
            direction[place] = 1.0
            slope = self.truth.slope(index, direction, estimate)
            size = slope.value if x[place] > 0 else -slope.value
            if size + slope.error < _LARGEST_HALF:
                return True
            known &= size - slope.error >= _LARGEST_HALF
            x[place] = slope.value
        return False if known else None

    def _examine(self, index, a, b, apart, whole, difference, slabs):
        """Yields the evidence along each direction, and the tolerance for a claim there."""
        estimate = (a + b) / 2
        allowed = self.allowed
        if difference > allowed.same:
            limit = _few(allowed.rounding, apart.numel())
            yield self._along("difference", index, apart, a, b, whole, estimate), limit
            if norm(estimate) > 0.1 * whole:
                along = self._along("gradient", index, estimate, a, b, whole, estimate)
                yield along, allowed.scale
        for slab in slabs[:_JUDGED]:
            limit = _few(allowed.rounding, apart.numel() // slab.slabs)
            if slab.ratio > max(limit, 2 * difference):
                parts = [slab.of(x) for x in (a, b, apart)]
                size = _size(norm(parts[0]), norm(parts[1]), whole, 1 / slab.slabs)
                yield self._along(str(slab), index, parts[2], a, b, size, estimate), limit

    def _examine_alone(self, index, b):
        """As `_examine`, of a claim that nothing is compared with: along itself, and its ends.

        If the slopes are exact, random directions show what it lacks.
        """
        estimate, whole = b, norm(b)
        if whole:
            yield self._along("gradient", index, b, b, b, whole, estimate), self.allowed.scale
        ends = [_Slab(0, 0, 1, 0.0)] if b.dim() else []
        for axis in range(b.dim()):
            count = len(b.chunk(_SLABS, axis))
            ends += [_Slab(axis, n, _SLABS, 0.0) for n in ({0, count - 1} if count > 1 else ())]
        for slab in ends:
            part = slab.of(b)
            size = _size(norm(part), 0.0, whole, 1 / slab.slabs)
            if slab.slabs > 1 and part.any():
                found = self._along(str(slab), index, part, b, b, size, estimate)
                yield found, _few(self.allowed.rounding, b.numel() // slab.slabs)
            if self.truth.exact and size:
                signs = slab.of(torch.randint_like(b, 2) * 2 - 1)
                # A random direction sees as much of the gradient as one element has.
                size /= int(signs.count_nonzero()) ** 0.5
                found = self._along(f"random, {slab}", index, signs, b, b, size, estimate)
                yield found, _RANDOM * self.allowed.rounding

    def _along(self, where, index, direction, a, b, size, estimate) -> Evidence:
        direction = direction / norm(direction)
        slope = self.truth.slope(index, direction, estimate)
        errors = [(dot(x, direction) - slope.value) / size for x in (a, b)]
        return Evidence(where, *errors, slope.error / size)


def _where_both(a: Tensor, b: Tensor):
    """Both gradients, zero where one of them is no number."""
    finite = a.isfinite() & b.isfinite()
    if finite.all():
        return a, b
    return torch.where(finite, a, 0.0), torch.where(finite, b, 0.0)


def _wrong(evidence: Evidence, limit: float, alone=False) -> list[bool | None]:
    """Whether theirs and ours are wrong; None if the slope is too uncertain to say."""
    if not evidence.error < torch.inf:
        return [None, None]
    found = set()
    # The slope may be where a claim is, or anywhere within its error.
    meetings = (-x for x in evidence[1:3] if abs(x) <= evidence.error)
    for shift in (-evidence.error, 0.0, evidence.error, *meetings):
        a, b = abs(evidence.theirs + shift), abs(evidence.ours + shift)
        found.add(tuple(x > _limit(limit, y, alone) for x, y in ((a, b), (b, a))))
    sides = [set(side) for side in zip(*found, strict=True)]
    return [side.pop() if len(side) == 1 else None for side in sides]


def _limit(limit: float, other: float, alone: bool) -> float:
    """What a claim may be off, beside another one that is off by `other`."""
    return limit if alone or other > _HARD * limit else max(limit, 2 * other)


def _verdict(wrong: list[bool], unsure: list[bool]) -> str:
    """The verdict on a leaf: what is wrong for certain counts first."""
    if all(wrong):
        return NEITHER
    if wrong[1]:
        return THEIRS_RIGHT
    if any(u and not w for u, w in zip(unsure, wrong, strict=True)):
        return UNDECIDED
    return OURS_RIGHT if wrong[0] else AGREE
