"""Derivatives of a wrapper beyond the gradient, compared with one another: nothing else is needed.

- ⟨u, J v⟩ = ⟨Jᵀ u, v⟩: the tangent along v, and the gradient for the upstream gradients u, which
  the arena judges.
- ⟨w, H v⟩ = ⟨v, H w⟩: second derivatives of ⟨u, f⟩ are symmetric.

Directions are random, and then along the derivative, where rounding cancels and a wrong factor does
not, as in the judge's. In float16, a derivative may be beyond the range of numbers, or what
PyTorch computes around a kernel. Then nothing is compared, and the row says so.
"""

from __future__ import annotations

import math

import torch
from poison import poisoned_memory
from torch.autograd import forward_ad

from .judge import tolerance_of
from .problem import OURS, NoHistory, Problem, dot, is_no_finding, leaf, mapped, norm, tensors, told

Tensor = torch.Tensor
# In a random direction, rounding does not cancel; a second derivative is rounded on the way.
_ROUNDING = {"tangents": 4.0, "second": 16.0}
RIGHT, WRONG, REFUSED = "right", "wrong", "refused"
BEYOND = "not finite"


def _directions(leaves) -> list[Tensor]:
    return [torch.randn_like(x, requires_grad=False) for x in leaves]


def _product(some, others) -> float:
    pairs = zip(some, others, strict=True)
    return sum(dot(a, b) for a, b in pairs if a is not None)


def _size(derivatives) -> float:
    return sum(norm(x) ** 2 for x in derivatives if x is not None) ** 0.5


def _tangents(problem: Problem, along: list[Tensor]) -> list[Tensor | None]:
    """The tangents of the outputs that count."""
    following = iter(along)

    def dual(x: Tensor) -> Tensor:
        copy = leaf(x).detach()
        # A kernel in place changes both.
        return forward_ad.make_dual(copy, next(following).clone()) if x.requires_grad else copy

    with forward_ad.dual_level():
        outputs = problem.call(OURS, mapped(dual, problem.inputs))
        return [forward_ad.unpack_dual(outputs[i]).tangent for i in problem.used]


def _apart(one: float, other: float, size: float) -> float:
    return abs(one - other) / size if size else abs(one - other)


def tangents(problem: Problem) -> tuple[float, float]:
    """How far ⟨u, J v⟩ and ⟨Jᵀ u, v⟩ are apart, relative to the gradient: for a random v, and for
    the gradient as v.
    """
    gradients = problem.backward(*problem.forward(OURS))
    size = _size(gradients)

    def apart(along, size: float) -> float:
        found = _tangents(problem, along)
        return _apart(_product(found, problem.upstreams), _product(gradients, along), size)

    along = [
        torch.zeros_like(x) if g is None else (g / (size or 1.0)).to(x)
        for x, g in zip(problem.leaves, gradients, strict=True)
    ]
    return apart(_directions(problem.leaves), size), apart(along, size)


def second(problem: Problem) -> tuple[float, float]:
    """How far ⟨w, H v⟩ and ⟨v, H w⟩ are apart for random v and w, relative to these, and for H v in
    place of w.
    """
    leaves, outputs = problem.forward(OURS)
    gradients = problem.backward(leaves, outputs, create_graph=True)

    def along(direction) -> list[Tensor]:
        pairs = zip(gradients, direction, strict=True)
        pairs = [(g, v.to(g)) for g, v in pairs if g is not None and g.requires_grad]
        found: tuple = (None,) * len(leaves)
        if pairs:
            of, by = zip(*pairs, strict=True)
            found = torch.autograd.grad(of, leaves, by, retain_graph=True, allow_unused=True)
        return [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)]

    v, w = _directions(leaves), _directions(leaves)
    of_v, of_w = along(v), along(w)
    size = _size(of_v)
    at_random = _apart(_product(of_v, w), _product(of_w, v), max(size, _size(of_w)))
    ahead = [(g / (size or 1.0)).to(g) for g in of_v]
    return at_random, _apart(_product(of_v, ahead), _product(along(ahead), v), size)


def looked_at(problem: Problem) -> dict:
    """The row of one variant of a case: for each identity, how far it is from holding, or why there
    is no such derivative.
    """
    row: dict = {}
    floats = [x for x in tensors(problem.inputs) if x.is_floating_point()]
    allowed, is_short = tolerance_of(floats), any(x.dtype == torch.float16 for x in floats)
    for name, compare in (("tangents", tangents), ("second", second)):
        try:
            with poisoned_memory():
                apart = compare(problem)
        except NoHistory:
            raise
        except Exception as error:
            if is_no_finding(error):
                raise
            row[name] = {"verdict": REFUSED, "why": told(error)}
            continue
        limits = _ROUNDING[name] * allowed.rounding, _ROUNDING[name] * allowed.scale
        row[name] = {"verdict": _verdict(apart, limits, is_short), "apart": apart}
    verdicts = {entry["verdict"] for entry in row.values()}
    row["verdict"] = next(v for v in (WRONG, REFUSED, BEYOND, RIGHT) if v in verdicts)
    return row


def _verdict(apart: tuple[float, float], limits: tuple[float, float], is_short: bool) -> str:
    if is_short and not all(map(math.isfinite, apart)):
        return BEYOND
    is_right = all(x <= limit for x, limit in zip(apart, limits, strict=True))
    return RIGHT if is_right else WRONG
