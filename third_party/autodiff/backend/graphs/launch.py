"""A launch that PyTorch traces: an operator in the graph, whose results are copied to the outputs.

The operator takes the tensors and numbers of a launch, and returns what the kernel writes
(`operator.py`). Everything else is a constant of the graph.
"""

from __future__ import annotations

import torch
from torch.compiler import is_dynamo_compiling

from ..launching.tracers import refuse_tracers
from ..rules.user_rules import generation
from .arguments import FlatArguments, constant
from .descriptors import teach_dynamo

# Whether Dynamo takes a kernel's function for a constant.
KEEPS_FUNCTIONS = torch.__version__ >= (2, 13)
_FUNCTION = "a function is a constexpr of this launch, which graphs hold from PyTorch 2.13 on"


def _is_function(value) -> bool:
    """Whether a constexpr is a function; Triton's `constexpr` can be called, too."""
    return callable(value) and not hasattr(value, "value")


def put_into_graph(kernel, grid, /, *args, **kwargs) -> None:
    """Put a launch of a differentiable kernel into the traced graph.

    Dynamo reads this function and all that it calls; other tracers run it.
    """
    teach_dynamo()
    resolver = kernel._resolver
    if not resolver.passes_on or resolver.interpreted:
        # What such a wrapper launches is only known when it runs.
        return kernel._launch_outside(grid, *args, **kwargs)
    values = resolver.bind(args, kwargs)
    arguments = dict(zip(resolver.names, values, strict=True))
    parts = FlatArguments()
    for value, is_constant in zip(values, resolver.constants, strict=True):
        if is_constant and not KEEPS_FUNCTIONS and _is_function(value) and is_dynamo_compiling():
            torch._dynamo.graph_break(msg=_FUNCTION)
            return kernel._launch_outside(grid, *args, **kwargs)
        parts.add(value, is_constant)
    for name in kwargs:
        if name not in arguments:
            parts.described += (name, constant(kwargs[name]))
    metas = [resolver.chosen(arguments, config) for config in resolver.configurations]
    for name in metas[0]:
        parts.described += ("chosen " + name, constant(metas[0][name]))
    grids: list = []
    for meta in metas if callable(grid) else [{}]:
        extents = grid(arguments | meta) if callable(grid) else grid
        extents = list(extents) if isinstance(extents, (tuple, list)) else [extents]
        grids += [*extents, 1, 1][:3]
    # A graph is for this kernel, its options, these rules, and what wrappers choose for each
    # configuration: the graph may hold any of these.
    guarded = (resolver.kernel_and_options, generation())
    for meta in metas[1:]:
        for name in meta:
            guarded += (constant(meta[name]),)
    name, outputs, refusal = kernel._operator(guarded, *parts.described)
    if not name:
        # Without gradients, it may run outside of the graph.
        if is_dynamo_compiling():
            torch._dynamo.graph_break(msg=refusal)
        refuse_tracers(resolver.function.__name__, refusal)
        return kernel._launch_outside(grid, *args, **kwargs)
    recorded = getattr(torch.ops.triton_autodiff, name)
    written = recorded(parts.tensors, parts.ints, parts.floats, grids)
    for place, value in zip(outputs, written, strict=True):
        parts.tensors[place].copy_(value)
    return None
