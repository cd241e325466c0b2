"""A launch where PyTorch traces: an operator in the graph, and what it wrote, copied to its place.

An operator takes the tensors and numbers of a launch, and returns what the kernel writes
(`graph_operator.py`). All else is a constant of the graph.
"""

from __future__ import annotations

import operator

import torch

Tensor = torch.Tensor
_NUMBERS = (int, float, torch.SymInt, torch.SymFloat)


def record(kernel, grid, /, *args, **kwargs) -> None:
    """Put a launch of a differentiable kernel into the graph that is traced.

    Dynamo reads this function, and all that it calls; other tracers run it.
    """
    resolver = kernel._resolver
    values = resolver.bind(args, kwargs)
    arguments = dict(zip(resolver.names, values, strict=True))
    tensors: list[Tensor] = []
    ints: list = []
    floats: list = []
    described: list = []
    for value, is_constant in zip(values, resolver.constants, strict=True):
        if isinstance(value, Tensor):
            tensors.append(value)
            described += ("tensor", value.dtype)
        elif is_constant or isinstance(value, bool) or not isinstance(value, _NUMBERS):
            described += ("constant", _constant(value))
        elif isinstance(value, (float, torch.SymFloat)):
            floats.append(value)
            described += ("float", None)
        else:
            ints.append(value)
            described += ("int", None)
    for name in kwargs:
        if name not in arguments:
            described += (name, _constant(kwargs[name]))
    metas = [resolver.chosen(arguments, config) for config in resolver.configurations]
    for name in metas[0]:
        described += ("chosen " + name, _constant(metas[0][name]))
    grids: list = []
    for meta in metas if callable(grid) else [{}]:
        extents = grid(arguments | meta) if callable(grid) else grid
        extents = list(extents) if isinstance(extents, (tuple, list)) else [extents]
        grids += [*extents, 1, 1][:3]
    name, outputs = kernel._operator(*described)
    recorded = getattr(torch.ops.triton_autodiff, name)
    written = recorded(tensors, ints, floats, grids)
    for place, value in zip(outputs, written, strict=True):
        tensors[place].copy_(value)


def _constant(value):
    """Return a value for which a graph is made; of a symbol it is the one that is traced with."""
    if isinstance(value, (bool, torch.SymBool)):
        return True if value else False  # noqa: SIM210
    return operator.index(value) if isinstance(value, (int, torch.SymInt)) else value
