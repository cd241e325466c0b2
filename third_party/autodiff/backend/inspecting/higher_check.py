"""Tangents and second derivatives of an operation, against finite differences in float64.

The differences are those of the same loss ⟨u, f(x)⟩ that first derivatives are compared with: along
a direction v for a tangent, ⟨u, J v⟩, and along two of them for a second derivative, ⟨w, H v⟩.
"""

from __future__ import annotations

import torch
from torch.autograd import forward_ad
from torch.utils._pytree import tree_leaves

Tensor = torch.Tensor
# A step of second differences, relative to the size of a typical element: its error is of the
# fourth root of what rounding makes of a value.
STEP = 2.0**-11


def _fresh(inputs, wanted) -> list:
    """Return copies of inputs, as leaves where their gradient is wanted."""
    return [
        x.detach().clone().requires_grad_(n in wanted) if isinstance(x, Tensor) else x
        for n, x in enumerate(inputs)
    ]


def pushed(op, inputs, directions: dict[int, Tensor]) -> list[Tensor | None]:
    """Return the tangents of the outputs of an operation, along directions by input."""
    given = _fresh(inputs, ())
    with torch.no_grad(), forward_ad.dual_level():
        for n, v in directions.items():
            given[n] = forward_ad.make_dual(given[n], v)
        outputs = [y for y in tree_leaves(op(*given)) if isinstance(y, Tensor)]
        return [forward_ad.unpack_dual(y).tangent for y in outputs]


def along(op, inputs, weights, directions: dict[int, Tensor]) -> dict[int, Tensor | None]:
    """Return the derivative, along directions, of the gradients of ⟨weights, outputs⟩."""
    given = _fresh(inputs, directions)
    outputs = [y for y in tree_leaves(op(*given)) if isinstance(y, Tensor)]
    used = [(y, u) for y, u in zip(outputs, weights, strict=True) if u is not None]
    leaves = [given[n] for n in directions]
    gradients = torch.autograd.grad(
        [y for y, _ in used], leaves, [u for _, u in used], create_graph=True, allow_unused=True
    )
    pairs = zip(gradients, directions.values(), strict=True)
    pairs = [(g, v) for g, v in pairs if g is not None and g.requires_grad]
    if not pairs:
        return dict.fromkeys(directions)
    found = torch.autograd.grad(
        [g for g, _ in pairs], leaves, [v for _, v in pairs], allow_unused=True
    )
    return dict(zip(directions, found, strict=True))


def inner(tensors, weights) -> tuple[float, float]:
    """Return a sum of products, and the size of its terms; None counts as zero."""
    total, size = 0.0, 0.0
    for t, w in zip(tensors, weights, strict=True):
        if t is not None and w is not None:
            terms = t.detach().double().cpu() * w.detach().double().cpu()
            total, size = total + terms.sum().item(), size + terms.square().sum().item()
    return total, size**0.5
