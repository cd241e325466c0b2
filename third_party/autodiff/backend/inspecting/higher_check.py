"""Tangents and second derivatives of an operation, for comparisons of any kind.

`check` compares them with finite differences in float64. These are those of the same loss ⟨u, f(x)⟩
that first derivatives are compared with: along a direction v for a tangent, ⟨u, J v⟩, and along two
of them for a second derivative, ⟨w, H v⟩.
"""

from __future__ import annotations

import torch
from torch.autograd import forward_ad
from torch.utils._pytree import tree_leaves

Tensor = torch.Tensor
# A step of second differences, relative to the size of a typical element: its error is of the
# fourth root of what rounding makes of a value.
STEP = 2.0**-11


def fresh(inputs, wanted) -> list:
    """Return copies of inputs, as leaves where their gradient is wanted, by input."""
    return [
        x.detach().clone().requires_grad_(n in wanted) if isinstance(x, Tensor) else x
        for n, x in enumerate(inputs)
    ]


def tensors_of(outputs) -> list[Tensor]:
    """Return the tensors among what an operation returns."""
    return [y for y in tree_leaves(outputs) if isinstance(y, Tensor)]


def pushed(op, inputs, directions: dict[int, Tensor]) -> list[tuple[Tensor, Tensor | None]]:
    """Return the outputs of an operation, each with its tangent along directions, by input; None is
    the tangent of one that has none.
    """
    with torch.no_grad(), forward_ad.dual_level():
        given = [
            forward_ad.make_dual(x, directions[n]) if n in directions else x
            for n, x in enumerate(inputs)
        ]
        return [tuple(forward_ad.unpack_dual(y)) for y in tensors_of(op(*given))]


def along(outputs, weights, leaves, directions, others=()) -> list[Tensor | None]:
    """Return the derivative of ⟨gradients, directions⟩ by leaves, and by others.

    The gradients are those of ⟨weights, outputs⟩ by the leaves. An output whose weight is None does
    not count. A derivative that is None is zero.
    """
    by = (*leaves, *others)
    used = [
        (y, u) for y, u in zip(outputs, weights, strict=True) if u is not None and y.requires_grad
    ]
    if not used:
        return [None] * len(by)
    gradients = torch.autograd.grad(
        [y for y, _ in used], leaves, [u for _, u in used], create_graph=True, allow_unused=True
    )
    pairs = [
        (g, v.to(g.dtype))
        for g, v in zip(gradients, directions, strict=True)
        if g is not None and g.requires_grad
    ]
    if not pairs:
        return [None] * len(by)
    return list(
        torch.autograd.grad([g for g, _ in pairs], by, [v for _, v in pairs], allow_unused=True)
    )


def inner(tensors, weights) -> tuple[float, float]:
    """Return a sum of products, and the size of its terms; None counts as zero."""
    total, size = 0.0, 0.0
    for t, w in zip(tensors, weights, strict=True):
        if t is not None and w is not None:
            terms = t.detach().double().cpu() * w.detach().double().cpu()
            total, size = total + terms.sum().item(), size + terms.square().sum().item()
    return total, size**0.5
