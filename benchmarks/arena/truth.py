"""Sources of the slopes by which gradients are judged.

Best first: a reference in plain PyTorch, differentiated in float64; the wrapper's own forward, with
every kernel promoted to float64 on the CPU; the forward on float32 copies of the inputs; the
forward as it is. A source only counts if its outputs are those of the wrapper.
"""

from __future__ import annotations

import torch
from gradients import relative_error
from triton_autodiff.inspecting.reference import Reference, in_double, in_doubles
from triton_autodiff.storage.memory import snapshot

from .problem import (
    OURS,
    Claim,
    Problem,
    dot,
    is_no_finding,
    mapped,
    norm,
    tensors,
    weighted,
)
from .slopes import Slope, exact_slope, slope

Tensor = torch.Tensor
# Steps, relative to the size of the leaf.
COARSE, FINE = 0.08, 2.0**-12
# How far one element may move, relative to a typical one of its tensor.
FURTHEST = 0.25
# How far outputs may be from those of the wrapper, by the wrapper's dtype.
AGREEMENT = {torch.float32: 4e-3, torch.float16: 1e-2, torch.bfloat16: 5e-2}


class Unsuitable(RuntimeError):
    """A source does not compute the wrapper's function, or cannot be evaluated."""


def longest(x: Tensor, direction: Tensor, relative: float) -> float:
    """The longest step from `x` in a direction of length 1."""
    size = norm(x) or 1.0
    typical = size / max(x.numel(), 1) ** 0.5
    peak = direction.abs().max().item() or 1.0
    return min(relative * size, FURTHEST * typical / peak * relative / COARSE)


def distance(outputs, truths) -> float:
    """The largest relative distance of outputs from others; NaN counts as infinite."""
    errors = [
        relative_error(y.cpu(), t.cpu()) for y, t in zip(outputs, truths, strict=True) if y.numel()
    ]
    return max((e if e == e else torch.inf for e in errors), default=0.0)


class Truth:
    """Slopes of a problem's weighted outputs, along directions in one of its leaves."""

    name = ""
    # Whether slopes are in float64.
    exact = False

    def __init__(self, problem: Problem):
        self.problem = problem

    def accept(self, outputs, claim: Claim) -> None:
        """Raise unless the outputs are the wrapper's own."""
        pairs = [(y, t) for y, t in zip(claim.outputs, outputs, strict=True) if t is not None]
        limit = max((AGREEMENT[y.dtype] for y, _ in pairs), default=0.0)
        self.distance = distance(*zip(*pairs, strict=True)) if pairs else torch.inf
        if not self.distance <= limit:
            raise Unsuitable(f"{self.name}: its outputs are off by {self.distance:.2g}")

    def slope(self, index: int, direction: Tensor, estimate: Tensor) -> Slope:
        """The slope at leaf `index` along a direction of length 1; `estimate` is roughly the
        gradient.
        """
        raise NotImplementedError


def reference_gradients(problem: Problem, inputs: dict):
    """The outputs of a case's reference that count, None if it does not compute one, and the
    gradients of the leaves among `inputs`.
    """
    results = problem.case.reference(*inputs.values())
    results = [results] if isinstance(results, Tensor) else list(results)
    results = [results[i] if i < len(results) else None for i in problem.used]
    pairs = [
        (y, g.to(y.device, y.dtype).reshape(y.shape))
        for y, g in zip(results, problem.upstreams, strict=True)
        if y is not None
    ]
    leaves = [x for x in tensors(inputs) if x.requires_grad]
    found = torch.autograd.grad(
        [y for y, _ in pairs], leaves, [g for _, g in pairs], allow_unused=True
    )
    gradients = [
        torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)
    ]
    return [y if y is None else y.detach() for y in results], gradients


class Gradients(Truth):
    """The gradients of a reference in plain PyTorch, in float64 on the CPU."""

    name = "PyTorch in float64"
    exact = True

    def __init__(self, problem: Problem, claim: Claim):
        super().__init__(problem)
        if problem.case.reference is None:
            raise Unsuitable(f"{self.name}: there is no reference")
        inputs = mapped(lambda x: in_double(x).requires_grad_(x.requires_grad), problem.inputs)
        with in_doubles():
            self.outputs, self.gradients = reference_gradients(problem, inputs)
        self.accept(self.outputs, claim)
        if None in self.outputs:
            raise Unsuitable(f"{self.name}: the reference does not know all outputs")

    def slope(self, index, direction, estimate):
        return Slope(dot(self.gradients[index], direction.cpu()), 0.0)


class Promoted(Truth):
    """Differences of the wrapper's forward in float64 on the CPU."""

    name = "the forward in float64"
    exact = True

    def __init__(self, problem: Problem, claim: Claim):
        super().__init__(problem)
        self._flat = list(tensors(problem.inputs))
        reference = Reference(self._outputs, seed=0)
        reference.run([x.detach().clone() for x in self._flat])
        self._reference = reference
        self._weights = [g.double().cpu() for g in problem.upstreams]
        self._point = [in_double(x) for x in self._flat]
        self._places = [i for i, x in enumerate(self._flat) if x.requires_grad]
        self.accept(self._evaluate(self._point), claim)

    def _outputs(self, *flat):
        """The wrapper as a function of its tensors."""
        given = iter(
            x.requires_grad_(like.requires_grad) for x, like in zip(flat, self._flat, strict=True)
        )
        inputs = mapped(lambda _: next(given), self.problem.inputs)
        # The reference has a seed of its own. It takes another seed for numbers drawn on a GPU,
        # which it refuses.
        return self.problem.values(inputs, OURS, seeded=False)

    def _evaluate(self, point):
        return self._reference.evaluate([snapshot(x) for x in point])

    def slope(self, index, direction, estimate):
        place = self._places[index]
        direction = direction.double().cpu()

        def value(t):
            point = list(self._point)
            point[place] = point[place] + t * direction
            return weighted(self._evaluate(point), self._weights)

        return exact_slope(value, longest(self._point[place], direction, FINE))


class Differences(Truth):
    """Differences of the forward on the problem's device, in float32 or as it is."""

    def __init__(self, problem: Problem, claim: Claim, dtype: torch.dtype | None):
        super().__init__(problem)
        self.name = "the forward in float32" if dtype else "the forward as it is"

        def converted(x):
            if not x.is_floating_point() or dtype is None:
                return x
            return x.detach().to(dtype).requires_grad_(x.requires_grad)

        self._inputs = mapped(converted, problem.inputs)
        self._leaves = [x for x in tensors(self._inputs) if x.requires_grad]
        self.accept(problem.values(self._inputs), claim)

    def slope(self, index, direction, estimate):
        x = self._leaves[index]
        start = x.detach().clone()

        def value(t):
            way = t * direction
            with torch.no_grad():
                x.copy_(start + way)
            value = weighted(self.problem.values(self._inputs), self.problem.upstreams)
            if x.dtype == torch.float32:
                return value
            # The rounding of the step to the input's dtype is corrected, to first order.
            return value - dot(x.detach().float() - start.float() - way, estimate)

        try:
            return slope(value, longest(start, direction, COARSE))
        finally:
            with torch.no_grad():
                x.copy_(start)


def _attempt(make, problem: Problem, claim: Claim):
    try:
        return make(problem, claim), None
    except Unsuitable as error:
        return None, str(error)
    except Exception as error:
        if is_no_finding(error):
            raise
        lines = str(error).splitlines() or [""]
        return None, f"{type(error).__name__}: {lines[0][:200]}"


def truths(problem: Problem, claim: Claim, exact: str):
    """Yields the suitable sources of slopes, one after the other, or why one is unsuitable.

    `exact` is when float64 is tried, for which the CPU has to run the forward: "first", "last" or
    "never".
    """
    makers = [lambda p, c: Differences(p, c, None)]
    if any(x.dtype in (torch.bfloat16, torch.float16) for x in problem.leaves):
        makers.insert(0, lambda p, c: Differences(p, c, torch.float32))
    if exact == "first":
        makers[:0] = [Gradients, Promoted]
    elif exact == "last":
        makers += [Gradients, Promoted]
    for make in makers:
        yield _attempt(make, problem, claim)
