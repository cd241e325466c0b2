"""Launches as autograd nodes."""

from __future__ import annotations

import contextlib
import functools
from typing import NamedTuple

import torch
from torch.autograd import forward_ad

from ..compiling.device_launch import launch
from ..errors import ArgumentError, AutodiffError
from ..kernels.wrappers import run_of
from ..rules.user_rules import generation
from ..storage.addresses import refuse_addresses
from ..storage.overwritten import checked_saved_tensors
from ..storage.overwritten import note as note_writes
from ..storage.tensors import PLAIN, TENSORS
from . import compiled_autograd, eager_flops, plain_launches
from .batches import for_each_upstream, is_looping, refuse_shared
from .blame import blame, is_batch, refuse_null
from .duals import has_tangents, is_active, is_entered
from .execution import saves_by_hooks
from .grafts import Graft, graft
from .once import refuse_second
from .second_order import WAY_OUT, Lost, differentiable_again
from .state import KernelState
from .stub_results import note_wanted, note_without_history, of_thread
from .tracers import AUTOGRAD, outside_of_dynamo, refuse_proxy

Tensor = torch.Tensor
# What records histories, and views.
_RECORDING = (AUTOGRAD, torch._C.DispatchKey.ADInplaceOrView)
_NONE = (None, None, None)


def _backward(ctx, *upstream):
    execution = ctx.execution
    if any(map(is_batch, upstream)):
        return for_each_upstream(functools.partial(_backward, ctx), upstream)
    saved = checked_saved_tensors(ctx)
    clones = ()
    if execution.cloned:
        clones = saved[-len(execution.cloned) :]
        saved = saved[: -len(clones)]
    nothing = (None,) * len(clones)
    if not torch.is_grad_enabled() and not _moves(ctx, saved, upstream):
        return (None, *execution.run_backward(ctx, saved, upstream), *nothing)
    with torch.no_grad(), forward_ad._set_fwd_grad_enabled(False):
        gradients = execution.run_backward(ctx, saved, upstream)
    return (None, *_again(ctx, saved, clones, upstream, gradients), *nothing)


def _moves(ctx, saved, upstream) -> bool:
    """Whether a tangent may reach the gradients of a launch."""
    if not is_active():
        return False
    if is_entered():
        return True
    others = (reference() for reference, _ in ctx.left.inputs)
    return has_tangents((*upstream, *saved, *others))


def _again(ctx, saved, clones, upstream, gradients) -> tuple:
    """Return the gradients of a launch so that they can be differentiated, or that to do so is an
    error.
    """
    execution, count = ctx.execution, len(ctx.execution.slots)
    of = {i: g for i, g in zip(execution.slots, gradients, strict=False) if g is not None}
    given = {j: upstream[place] for j, place in execution.position.items()}
    given = {j: u for j, u in given.items() if u is not None}
    name = f"kernel {execution.state.spec.name!r}"
    reason = None
    try:
        if any(g is not None for g in gradients[count:]):
            raise Lost("the gradient of elements around a view has no second derivative")
        if not of:
            return gradients
        found = differentiable_again(start, ctx, saved, clones, given, of)
        return tuple(found.get(i) for i in execution.slots) + gradients[count:]
    except Lost as lost:
        reason = f"{lost}; {WAY_OUT}"
    inputs = [*saved, *(reference() for reference, _ in ctx.left.inputs)]
    return tuple(refuse_second(AutodiffError, name, reason, ctx, upstream, inputs, gradients))


class _LaunchNode(torch.autograd.Function):
    """One kernel launch: takes its tensors, returns those that the kernel wrote."""

    @staticmethod
    def forward(ctx, call, *slots):
        execution, *launched = call
        clones = slots[-len(execution.cloned) :] if execution.cloned else ()
        return execution.run_forward(ctx, *launched, clones)

    backward = staticmethod(outside_of_dynamo(_backward, instead=compiled_autograd.put_into_graph))
    between_graphs = staticmethod(outside_of_dynamo(_backward))

    @staticmethod
    def _compiled_autograd_key(ctx):
        compiled_autograd.describe(ctx)
        return (ctx._autograd_function_id,)


@functools.cache
def _node(kind, name: str):
    """Return a subclass of a node with its kernel's name, which PyTorch shows in graphs and
    profiles.
    """
    return type(kind)(name, (kind,), {"__module__": kind.__module__})


@functools.cache
def _apply_of(name: str):
    """Return `apply` of a kernel's nodes without what PyTorch does around it for `torch.func`,
    which is not active when a launch is known.
    """
    return super(torch.autograd.Function, _node(_LaunchNode, name)).apply


class Look(NamedTuple):
    """What is seen of the arguments of a launch, which are looked at once.

    That is whether a gradient of one may be wanted, their CUDA device, and whether all are
    `ordinary`: numbers, strings, or tensors with an address, which an empty one has not.
    """

    wants: bool
    device: int | None
    is_ordinary: bool


def look_over(name: str, values) -> Look:
    """Look at the arguments of a launch.

    Raises for a proxy of `torch.fx` among the arguments of kernel `name`, and for tensors on
    several devices.
    """
    wants, device, other, is_ordinary = False, None, None, True
    for value in values:
        kind = type(value)
        if kind in PLAIN:
            continue
        if isinstance(value, Tensor):
            if value.requires_grad:
                wants = True
            place = value.get_device() if value.is_cuda else None
            try:
                if kind not in TENSORS or value.is_nested or not value.data_ptr():
                    is_ordinary = False
            except (RuntimeError, ValueError):  # one that refuses to tell
                is_ordinary = False
        else:
            refuse_proxy(name, value)
            wants, is_ordinary = True, False
            # A tuple, or a tensor descriptor.
            inner = value if isinstance(value, (tuple, list)) else (getattr(value, "base", None),)
            tensors = [part for part in inner if isinstance(part, (Tensor, tuple))]
            place = look_over(name, tensors).device if tensors else None
        if device is None:
            device = place
        elif place is not None and place != device:
            other = place
    wants = wants and torch.is_grad_enabled()
    if wants and other is not None:
        raise ArgumentError(
            f"the tensors given to kernel {name!r} are on cuda:{device} and cuda:{other}: "
            "move them to one device"
        )
    return Look(wants, device, is_ordinary)


@contextlib.contextmanager
def recording_history():
    """Let PyTorch's operations record autograd history wherever gradients are enabled, and which
    tensors are views.

    In the implementation of a custom operator, PyTorch does neither, even under `enable_grad`.
    """
    excluded = [key for key in _RECORDING if torch._C._dispatch_tls_is_dispatch_key_excluded(key)]
    if not (excluded and torch.is_grad_enabled()):
        yield
        return
    for key in excluded:
        torch._C._dispatch_tls_set_dispatch_key_excluded(key, False)
    try:
        yield
    finally:
        for key in excluded:
            torch._C._dispatch_tls_set_dispatch_key_excluded(key, True)


def state_of(resolved, options) -> KernelState:
    """Return the state of a launch's compiled kernel."""
    found = KernelState.existing(resolved.kernel, options)
    return found or KernelState.of(resolved.kernel, resolved.function, options)


def start(resolved, state):
    """Run a resolved launch, as an autograd node if a gradient is wanted.

    Returns the execution; None for a plain launch.
    """
    kernel, grid = resolved.kernel, resolved.grid
    leaves = state.spec.flatten(resolved.values)
    if eager_flops.is_counting():
        eager_flops.count_launch(state, grid, leaves)
    if is_looping():
        refuse_shared(state.spec.name, state.spec.names, state.plain.outputs, leaves)
    wanted = _wanted(state, leaves)
    execution = None
    if wanted and torch.is_grad_enabled():
        execution = state.execution(wanted, grid, leaves)
    if execution is None or not execution.position:
        launch_plainly(resolved, state)
        refuse_addresses(kernel, resolved.function, leaves)
        name, names = state.spec.name, state.spec.names
        note_writes([(j, (name, names[j], None)) for j in state.outputs or ()], leaves)
        return None
    for j in execution.leaves_written:
        _refuse_leaf(state, j, leaves[j])
    plain_launches.watch()
    apply = _node(_LaunchNode, state.spec.name).apply
    execute(apply, execution, kernel, grid, resolved.values, leaves)
    return execution


def execute(apply, execution, kernel, grid, values, leaves) -> None:
    """Run a launch as an autograd node, by a function that applies it.

    `values` are those of the kernel's parameters, `leaves` its run-time arguments.
    """
    inputs = [*execution.pick_slots(leaves)]
    for i in execution.based:
        inputs.append(leaves[i]._base)
    for i in execution.cloned:
        inputs.append(execution.clone(i, leaves[i]))
    spec = execution.state.spec
    call = (execution, kernel, grid, values, leaves)
    results = apply(call, *inputs)
    if execution.without_history:
        note_without_history(leaves[j] for j in execution.without_history)
    if execution.views:
        views = tuple([leaves[j] for j in execution.views])
        graft(views, results[len(execution.dirty) :], _node(Graft, spec.name))
        for j, spill in execution.spills.items():
            spill.watch(leaves[j])
    note_writes(execution.written, leaves)


def launch_known(record, values, wants, grid, options) -> tuple[bool, object]:
    """Run a known launch on a grid, if there is one; the first arguments are those that
    `Known.find` returns.

    Returns whether it was run, and the execution; None for a plain launch.
    """
    if grid is None:
        return False, None
    if not (wants and torch.is_grad_enabled()):
        launch(record.kernel, grid, values, run_of(record.kernel), record.device)
        return True, None
    execution, state, revision = record.executions.get((grid, options.atomics()), _NONE)
    if (
        execution is None
        or revision != state.revision
        or state.generation != generation()
        or saves_by_hooks(True) is not None
    ):
        return False, None
    if of_thread.watch is not None:
        note_wanted()
    apply = _apply_of(state.spec.name)
    execute(apply, execution, record.kernel, grid, values, record.pick(values))
    return True, execution


def _launch(resolved) -> None:
    refuse_null(resolved.function, resolved.values, {})
    launch(resolved.kernel, resolved.grid, resolved.values)


def launch_plainly(resolved, state=None) -> None:
    """Run a resolved launch without gradients; `state` is that of its kernel, if it has one."""
    _launch(resolved)
    if not plain_launches.note(resolved.kernel, resolved.values):
        if state is not None and state.outputs:
            leaves = state.spec.flatten(resolved.values)
            written = (leaves[j] for j in state.outputs)
            plain_launches.increase(
                [t for t in written if isinstance(t, Tensor) and not t.is_inference()]
            )


def prepare(resolved, options):
    """Return how a resolved launch would run; None if no argument requires a gradient."""
    state = KernelState.of(resolved.kernel, resolved.function, options)
    leaves = state.spec.flatten(resolved.values)
    wanted = _wanted(state, leaves)
    return state.execution(wanted, resolved.grid, leaves) if wanted else None


def each_launch(resolver, take, args, kwargs, grid):
    """Call a kernel, and pass each of its launches to `take(launch)` instead; returns its
    result.
    """
    if resolver.wrapped:
        result = through_wrappers(resolver, take, resolver.launcher(grid), args, kwargs)
        if result is None and resolver.passes_on:
            raise resolver.prevented()
        return result
    # As torch.no_grad does, which takes longer.
    enabled = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    try:
        compiled = resolver.resolve(args, kwargs, grid)
    finally:
        torch._C._set_grad_enabled(enabled)
    take(compiled)
    return compiled.kernel


def through_wrappers(resolver, take, call, args, kwargs):
    """Call wrapped code, and pass each of its launches to `take(launch)` instead; returns its
    result.

    An error names the argument that Triton refuses.
    """
    try:
        return resolver.through_wrappers(take, call, args, kwargs)
    except AutodiffError:
        raise
    except Exception as error:
        blame(resolver, args, kwargs, error)
        raise


def _wanted(state, leaves) -> tuple[int, ...]:
    """Return the arguments that require a gradient."""
    # What stands for a tensor that nobody knows has none.
    return tuple([i for i in state.spec.pointers if getattr(leaves[i], "requires_grad", False)])


def _refuse_leaf(state, index, tensor) -> None:
    """Raise PyTorch's error for in-place operations on leaves, before the launch."""
    where = f" (argument {state.spec.names[index]!r} of kernel {state.spec.name!r})"
    if tensor.is_leaf:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
            f"{where}: make what a kernel writes without requires_grad"
        )
    if tensor._is_view() and tensor._base.is_leaf and tensor._base.requires_grad:
        raise RuntimeError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation."
            + where
        )
