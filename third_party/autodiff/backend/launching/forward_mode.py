"""Launches with tangents (`torch.autograd.forward_ad`): one launch computes values and tangents.

`forward` of an `autograd.Function` sees no tangents. So they are looked for before, and are
arguments of another kernel. What that writes are tangents of the user's tensors afterwards.
"""

from __future__ import annotations

import torch
from torch.autograd import forward_ad

from ..errors import ArgumentError
from ..storage.memory import ALIGNMENT, Span, same_strides, storage_span
from . import nodes
from .blame import is_batch
from .duals import LEVEL, is_active, tangent_of
from .pure import laid_out_tangent, new_tangent
from .specialize import CompiledLaunch

Tensor = torch.Tensor


class _Attach(torch.autograd.Function):
    """Gives a tensor the tangent in a list: in place, so that the caller's own tensor has it."""

    @staticmethod
    def forward(ctx, tensor, tangent, _):
        ctx.tangent = tangent
        ctx.mark_dirty(tensor)
        return tensor

    @staticmethod
    def backward(ctx, upstream):
        return upstream, None, None

    @staticmethod
    def jvp(ctx, *_):
        return ctx.tangent[0]


def _wants(value) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def start(launch, state):
    """Run a resolved launch: with tangents, if an argument has one, and as a node of autograd, if a
    gradient is wanted. Returns the execution; None for a plain launch.
    """
    leaves = state.spec.flatten(launch.values)
    given = given_tangents(state, leaves) if is_active() else {}
    if not given:
        return nodes.start(launch, state)
    derived = state.with_tangents(frozenset(given))
    spec = derived.spec
    with forward_ad._set_fwd_grad_enabled(False):
        memory = {}
        for i in spec.tangents:
            around = state.accesses.around(i, leaves, launch.grid)
            memory[i] = None if around is None else _with_its_base(leaves[i], given.get(i), around)
            if memory[i] is not None:
                continue
            if i in given:
                name = f"tangent of argument {state.spec.names[i]!r}"
                memory[i] = laid_out_tangent(given[i], leaves[i], around, False, name)
            else:
                place = spec.place_of_tangent(i)
                is_filled = derived.fills(place, leaves[i], leaves, launch.grid)
                memory[i] = new_tangent(leaves[i], around, is_filled)
        values = [*leaves, *memory.values()]
        pushed = CompiledLaunch(spec.function, spec.kernel, launch.grid, values)
        if torch.is_grad_enabled() and any(_wants(value) for value in values):
            derived.refuse_settling(
                "a gradient is wanted, too; take torch.func.jvp, or detach what requires a gradient"
            )
        execution = nodes.start(pushed, derived)
        if spec.settling is not None:
            spec.settling.launch(launch.grid, values)
        state.higher.note_tangents(frozenset(given), derived, execution)
        for i, tangent in memory.items():
            if (
                i in given
                and tangent is not given[i]
                and derived.is_stored(spec.place_of_tangent(i))
            ):
                given[i].copy_(tangent)
    for i, tangent in memory.items():
        if i not in given and state.is_stored(i):
            give_tangent(leaves[i], tangent)
    return execution


def _with_its_base(view: Tensor, given: Tensor | None, around: Span) -> Tensor | None:
    """Return the tangent of a view in memory that has the tangents `around` it, too; None if what
    it is a view of has none.
    """
    # The tangent of a view is a view of its base's tangent, which the kernel may not find aligned.
    if given is not None and storage_span(given) == around:
        is_alike = same_strides(view.shape, given.stride(), view.stride()) and not given.is_neg()
        offsets = (t.data_ptr() % ALIGNMENT for t in (given, view))
        if is_alike and given.dtype == view.dtype and len({*offsets}) == 1:
            return given
    base = view._base
    with forward_ad._set_fwd_grad_enabled(True):
        tangent = None if base is None else tangent_of(base)
    if tangent is None:
        return None
    own = laid_out_tangent(tangent, base, storage_span(base), False, "tangent of a base")
    start = own.storage_offset() + view.storage_offset() - base.storage_offset()
    return own.as_strided(view.shape, view.stride(), start)


def give_tangent(tensor: Tensor, tangent: Tensor, before: Tensor | None = None) -> None:
    """Give a tensor a tangent; `before` is the one that it has, which changes in place."""
    if before is not None:
        before.copy_(tangent)
        return
    # PyTorch asks a function for tangents if an input has one.
    probe = forward_ad.make_dual(torch.zeros(()), torch.zeros(()), level=LEVEL)
    _Attach.apply(tensor, [tangent], probe)


def moving(launch, state) -> frozenset[int]:
    """Return the arguments of a resolved launch that have tangents."""
    if not is_active():
        return frozenset()
    return frozenset(given_tangents(state, state.spec.flatten(launch.values)))


def given_tangents(state, leaves) -> dict[int, Tensor]:
    """Return the tangents of arguments; raises an `ArgumentError` for a batch of some."""
    found = {}
    for i in state.spec.pointers:
        if isinstance(leaves[i], Tensor) and leaves[i].is_floating_point():
            tangent = tangent_of(leaves[i])
            if tangent is not None:
                found[i] = tangent
            if is_batch(tangent):
                raise ArgumentError(
                    f"the tangent of argument {state.spec.names[i]!r} of kernel "
                    f"{state.spec.name!r} is a batch of PyTorch's older vmap, as of "
                    "jacobian(vectorize=True, strategy='forward-mode'): take torch.func.jacfwd, or "
                    "leave vectorize out"
                )
    return found
