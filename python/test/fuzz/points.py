"""Where a program is looked at: inputs, upstream gradients, and what neither has an effect on."""

from __future__ import annotations

import torch
from watched import Watch

from .program import LARGEST

Tensors = dict[str, torch.Tensor]
# What an element holds that no result depends on, and what else may be there without a difference:
# x / (1 + |x|) is NaN for infinities, of either sign for numbers.
ANYTHING = (float("nan"), float("inf"), float("-inf"), 1e30)
WHATEVER = (*ANYTHING, -1e30, 3.0, -3.0)
# What outputs hold before, that a program would hardly store: a zero is often stored, too.
UNTOUCHED = 0.578125


class Inputs:
    """Random inputs of a program and upstream gradients of its outputs."""

    def __init__(self, sizes: dict[str, int], seed: int):
        self.source = torch.Generator().manual_seed(seed)
        self.values = {name: self.spaced(size) for name, size in sizes.items()}

    def spaced(self, size: int) -> torch.Tensor:
        """Return numbers of at most LARGEST in random order that keep their distance."""
        order = torch.randperm(size, generator=self.source).double()
        jitter = torch.rand(size, generator=self.source, dtype=torch.float64) * 0.8 + 0.1
        return ((order + jitter) / size * 2 - 1) * LARGEST

    def normal(self, shape) -> torch.Tensor:
        """Return normally distributed numbers."""
        return torch.randn(shape, generator=self.source, dtype=torch.float64)


class Forward:
    """A program's plain kernel; its inputs lie in memory around which everything is NaN."""

    def __init__(self, kernel, stub, values: Tensors, **options):
        self.kernel, self.stub, self.options = kernel, stub, options
        self.watch = Watch()
        self.inputs = {name: self.watch.copy(value) for name, value in values.items()}

    def __call__(self, changed: Tensors, fill: float = float("nan")) -> tuple[torch.Tensor, ...]:
        """Return the outputs with some inputs changed; they hold `fill` where nothing is stored."""
        before = {name: self.inputs[name].clone() for name in changed}
        for name, value in changed.items():
            self.inputs[name].copy_(value)
        try:
            return self.stub(self.kernel, *self.inputs.values(), fill=fill, **self.options)
        finally:
            for name, value in before.items():
                self.inputs[name].copy_(value)


def same(these, those) -> bool:
    """Return whether tensors are equal, NaN where NaN is."""
    return all(
        torch.equal(a.nan_to_num(7e77), b.nan_to_num(7e77))
        for a, b in zip(these, those, strict=True)
    )


def apart(this: torch.Tensor, that: torch.Tensor, allowed: float) -> int | None:
    """Return the first place where two tensors differ; None if they are equal, NaN where NaN is, or
    no further apart than is allowed.
    """
    differs = (this != that) & ~(this.isnan() & that.isnan())
    if not differs.any() or (this - that).norm().item() <= allowed:
        return None
    return differs.flatten().nonzero()[0].item()


def stored(forward: Forward) -> list[torch.Tensor]:
    """Return where each output is stored to; a result that is no finite number is an error."""
    before, others = forward({}), forward({}, fill=1.0)
    places = []
    for y, other in zip(before, others, strict=True):
        # What nothing is stored to is as it was.
        untouched = y.isnan() & (other == 1.0)
        if not y[~untouched].double().isfinite().all():
            raise ArithmeticError("a stored result is not finite")
        places.append(~untouched)
    return places


def without_effect(forward: Forward, values: Tensors, candidates: Tensors) -> Tensors:
    """Return which of the candidates, elements of inputs, may be anything: all results stay."""
    right = forward({})

    def free(masks: Tensors) -> bool:
        return all(
            same(right, forward({n: values[n].masked_fill(m, x) for n, m in masks.items()}))
            for x in WHATEVER
        )

    def among(name: str, places: torch.Tensor) -> list[torch.Tensor]:
        if not len(places):
            return []
        mask = torch.zeros_like(values[name], dtype=torch.bool)
        mask[places] = True
        if free({name: mask}):
            return [places]
        if len(places) == 1:
            return []
        middle = len(places) // 2
        return among(name, places[:middle]) + among(name, places[middle:])

    found = {}
    for name, mask in candidates.items():
        places = among(name, mask.nonzero().flatten())
        found[name] = torch.zeros_like(mask)
        if places:
            found[name][torch.cat(places)] = True
    return found if free(found) else {name: torch.zeros_like(m) for name, m in found.items()}


def poisoned(values: Tensors, places: Tensors, source: torch.Generator) -> Tensors:
    """Return inputs that hold anything where it does not matter."""
    result = {}
    for name, value in values.items():
        some = torch.randint(len(ANYTHING), value.shape, generator=source)
        result[name] = torch.where(places[name], torch.tensor(ANYTHING).double()[some], value)
    return result
