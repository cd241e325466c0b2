"""Which tensors have a tangent of PyTorch's forward mode (`torch.autograd.forward_ad`).

PyTorch's Python knows whether there may be any. It does not where a graph of Dynamo runs, which
enters forward mode in C++. That is the case, at most, once a launch in a graph had a tangent.
"""

from __future__ import annotations

import torch
from torch.autograd import forward_ad

from .tracers import AUTOGRAD

Tensor = torch.Tensor
_is_excluded = torch._C._dispatch_tls_is_dispatch_key_excluded
# PyTorch has no others.
LEVEL = 0
_are_in_graphs = False


def note_graph() -> None:
    """Note that there are graphs whose tensors have tangents."""
    global _are_in_graphs
    _are_in_graphs = True


def is_active() -> bool:
    """Whether tensors may have tangents: below autograd, they have none."""
    return (is_entered() or _are_in_graphs) and not _is_excluded(AUTOGRAD)


def is_entered() -> bool:
    """Whether PyTorch's Python is in forward mode."""
    return forward_ad._current_level >= 0


def tangent_of(tensor: Tensor) -> Tensor | None:
    """Return the tangent of a tensor; None if it has none."""
    try:
        return forward_ad.unpack_dual(tensor, level=LEVEL).tangent
    except (RuntimeError, TypeError, ValueError):
        # It was made for a trace that is over, or no kernel takes it.
        return None


def has_tangents(values) -> bool:
    """Whether a tensor among the arguments of a launch has a tangent."""
    return is_active() and any(tangent_of(t) is not None for t in tensors_of(values))


def tensors_of(value):
    """Yield the tensors in an argument, in a list, or in a tensor descriptor."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors_of(part)
    elif isinstance(base := getattr(value, "base", None), Tensor):
        yield base
