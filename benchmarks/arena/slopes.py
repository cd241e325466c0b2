"""Slopes of a noisy function of one variable, with error bars.

A central difference with step h has two errors: one proportional to h² and the third derivative,
and noise / h. Steps are halved until the noise dominates. Two neighbouring steps, extrapolated to h
= 0, give an estimate, and their distance bounds the error of the curve. The noise is measured: the
deviation of values on a short interval from a cubic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch

HALVINGS = 5
_SAMPLES = 9
_DEGREE = 3
# How many times the measured noise an error bar is. The noise is estimated from _SAMPLES values
# minus the cubic's four coefficients: Student's t with 5 degrees of freedom exceeds this in 0.3% of
# all cases, as a normal variable exceeds 3 known deviations.
DEVIATIONS = 5.5


class Slope(NamedTuple):
    """A slope, and a bound of its error.

    With noise, the error is larger in a few cases out of a thousand.
    """

    value: float
    error: float

    def __add__(self, other):
        return Slope(self.value + other.value, math.hypot(self.error, other.error))


def noise(values: list[float]) -> float:
    """The standard deviation of equidistant values around the cubic that fits them best."""
    places = torch.linspace(-1, 1, len(values), dtype=torch.float64)
    basis = torch.stack([places**power for power in range(_DEGREE + 1)], dim=1)
    target = torch.tensor(values, dtype=torch.float64)
    # For nearly equal numbers, the differences matter.
    target = target - target.mean()
    left = target - basis @ torch.linalg.lstsq(basis, target[:, None]).solution[:, 0]
    return (left.square().sum().item() / (len(values) - basis.shape[1])) ** 0.5


def slope(function: Callable[[float], float], step: float) -> Slope:
    """The derivative at 0 of a function with noise, from steps no longer than `step`."""
    steps = [step / 2**n for n in range(HALVINGS + 1)]
    ends = {h: (function(h), function(-h)) for h in steps}
    shortest = steps[-1]
    inner = [function(shortest * (2 * n / (_SAMPLES - 1) - 1)) for n in range(1, _SAMPLES - 1)]
    samples = [ends[shortest][1], *inner, ends[shortest][0]]
    if not all(map(math.isfinite, samples)):
        return Slope(math.nan, math.inf)
    spread = noise(samples)
    differences = [(ends[h][0] - ends[h][1]) / (2 * h) for h in steps]
    found = []
    for long, short, h in zip(differences, differences[1:], steps[1:], strict=False):
        better = (4 * short - long) / 3
        # The extrapolation's own variance: 16/9 of the short difference's, 1/9 of the long one's.
        random = DEVIATIONS * spread / h * math.sqrt((16 / 9 + 1 / 36) / 2)
        if math.isfinite(better):
            found.append(Slope(better, abs(better - short) + random))
    return min(found, key=lambda s: s.error, default=Slope(math.nan, math.inf))


def exact_slope(function: Callable[[float], float], step: float) -> Slope:
    """The same for a function in float64, whose noise is negligible."""
    long, short = ((function(h) - function(-h)) / (2 * h) for h in (step, step / 2))
    better = (4 * short - long) / 3
    return (
        Slope(better, abs(better - short)) if math.isfinite(better) else Slope(math.nan, math.inf)
    )
