"""A launch with tangents that PyTorch traces, as `torch.func.linearize` does.

It is an operator that knows the launch, and takes its tensors.
"""

from __future__ import annotations

import itertools

import torch
from torch.autograd import forward_ad
from torch.utils.flop_counter import register_flop_formula

from ..launching import forward_mode, nodes
from ..launching.flops import of_launch
from ..launching.pure import PureLaunch, Values
from .operator import NAMESPACE

Tensor = torch.Tensor
# The launches that graphs hold, by number.
_launches: dict[int, PureLaunch] = {}
_numbers = itertools.count()
_library = torch.library.Library(NAMESPACE, "FRAGMENT")
_library.define("launch_with_tangents(int launch, Tensor?[] tensors) -> Tensor[]")


def _run(launch: int, tensors: list[Tensor | None]) -> list[Tensor]:
    pure = _launches[launch]
    return list(Values.forward(pure, pure.written, (), (), None, *tensors))


def _fake(launch: int, tensors: list[Tensor | None]) -> list[Tensor]:
    pure = _launches[launch]
    held = dict(zip(pure.slots, tensors, strict=True))
    return [torch.empty_like(held[pure.like.get(i, i)]) for i in pure.written]


_library.impl("launch_with_tangents", _run, "CompositeExplicitAutograd")
torch.library.register_fake(f"{NAMESPACE}::launch_with_tangents", _fake, lib=_library)


@register_flop_formula(torch.ops.triton_autodiff.launch_with_tangents, get_raw=True)
def _count(launch: int, tensors, out_val=None) -> int:
    pure = _launches[launch]
    return of_launch(pure.state.spec, pure.grid, pure.leaves)


def record(resolver, args, kwargs, grid) -> None:
    """Record a launch some of whose tensors have tangents."""
    launches: list = []
    nodes.each_launch(resolver, launches.append, args, kwargs, grid)
    for resolved in launches:
        state = nodes.state_of(resolved, resolver.options)
        leaves = state.spec.flatten(resolved.values)
        given = forward_mode.given_tangents(state, leaves)
        own = PureLaunch(nodes.start, state, resolved.grid, leaves)
        pure = own.with_tangents(frozenset(given))
        number = next(_numbers)
        _launches[number] = pure
        tensors = [*(leaves[i] for i in own.slots), *map(given.get, pure.state.spec.tangents)]
        with forward_ad._set_fwd_grad_enabled(False):
            results = torch.ops.triton_autodiff.launch_with_tangents(number, tensors)
            results = dict(zip(pure.written, results, strict=True))
            for j in own.written:
                leaves[j].copy_(results[j])
        for j in own.written:
            tangent = results.get(pure.place(j))
            if tangent is not None:
                forward_mode.give_tangent(leaves[j], tangent, given.get(j))
