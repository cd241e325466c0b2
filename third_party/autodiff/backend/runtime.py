"""Launches as autograd nodes."""

from __future__ import annotations

import torch

from .blame import blame
from .errors import ArgumentError
from .executable import launch
from .once import refuse_second
from .specialize import Resolver
from .state import KernelState

Tensor = torch.Tensor


class _Call:
    """What one launch hands to autograd's forward."""

    __slots__ = ("execution", "kernel", "grid", "values", "leaves")


class _Launch(torch.autograd.Function):
    """One kernel launch: takes its tensors, returns those that the kernel wrote."""

    @staticmethod
    def forward(ctx, call, *slots):
        return call.execution.run_forward(ctx, call)

    @staticmethod
    def backward(ctx, *grads):
        execution = ctx.execution
        if not torch.is_grad_enabled():
            return (None, *execution.run_backward(ctx, grads))
        with torch.no_grad():
            gradients = execution.run_backward(ctx, grads)
        name = execution.state.spec.name
        inputs = [reference() for reference in ctx.inputs]
        return (None, *refuse_second(name, ctx, grads, inputs, gradients))


class _Graft(torch.autograd.Function):
    """Gives a view that a kernel wrote to the history of the values written.

    Autograd lets a function with a single output update a view; a launch may have several. The
    launch returns aliases instead, which are grafted one by one. No data moves.
    """

    @staticmethod
    def forward(ctx, view, written):
        ctx.set_materialize_grads(False)
        ctx.mark_dirty(view)
        return view

    @staticmethod
    def backward(ctx, gradient):
        # What the view held before reaches its gradient through the launch, if at all. The zero
        # must be there: without it, autograd drops the gradient of the rest of the base.
        if gradient is None:
            return None, None
        return gradient.new_zeros(()).expand_as(gradient), gradient


def _graft(views, aliases) -> None:
    # The launch has counted the change already, before it saved anything.
    with torch.autograd._unsafe_preserve_version_counter(views):
        for view, alias in zip(views, aliases, strict=True):
            _Graft.apply(view, alias)
    for view in views:
        # A view renews its history when its version has changed; make it match this version now,
        # lest a later version be mistaken for it.
        _ = view.grad_fn


def run(resolver: Resolver, args, kwargs, grid):
    """Launch a kernel, as an autograd node if anything it is given requires a gradient.

    Returns the state of the compiled kernel and the execution; None for a plain launch.
    """
    return start(resolver, resolve(resolver, args, kwargs, grid))


def start(resolver: Resolver, resolved):
    """Run a resolved launch, as `run` does."""
    kernel, grid = resolved.kernel, resolved.grid
    options = resolver.options
    state = KernelState.known(kernel, options) or KernelState.of(kernel, resolver.function, options)
    leaves = state.spec.flatten(resolved.values)
    wanted = tuple([i for i in state.spec.pointers if _requires_grad(state, i, leaves[i])])
    execution = None
    if wanted and torch.is_grad_enabled():
        execution = state.execution(wanted, grid, leaves)
    if execution is None or not execution.position:
        launch(kernel, grid, resolved.values)
        _mark_written(state, leaves)
        return state, None
    for j in execution.leaves_written:
        _refuse_leaf(state, j, leaves[j])
    call = _Call()
    call.execution, call.kernel, call.grid = execution, kernel, grid
    call.values, call.leaves = resolved.values, leaves
    bases = [leaves[i]._base for i in execution.based]
    results = _Launch.apply(call, *[leaves[i] for i in execution.slots], *bases)
    if execution.views:
        views = tuple([leaves[j] for j in execution.views])
        _graft(views, results[len(execution.dirty) :])
        for j, spill in execution.spills.items():
            spill.watch(leaves[j])
    return state, execution


def prepare(resolver: Resolver, args, kwargs, grid):
    """Return the compiled kernel of a launch and its execution, without launching.

    The execution is None if no argument requires a gradient.
    """
    resolved = resolve(resolver, args, kwargs, grid)
    state = KernelState.of(resolved.kernel, resolver.function, resolver.options)
    leaves = state.spec.flatten(resolved.values)
    wanted = tuple([i for i in state.spec.pointers if _requires_grad(state, i, leaves[i])])
    execution = state.execution(wanted, resolved.grid, leaves) if wanted else None
    return resolved.kernel, execution


def resolve(resolver, args, kwargs, grid):
    """Return a launch, compiled and bound but not run; names the argument that Triton refuses."""
    try:
        # Autotuning may reset or restore tensors that require a gradient.
        with torch.no_grad():
            return resolver.resolve(args, kwargs, grid)
    except Exception as error:
        blame(resolver, args, kwargs, error)
        raise


def _requires_grad(state, index, value) -> bool:
    if isinstance(value, Tensor):
        return value.requires_grad
    # What stands for a tensor: triton.reinterpret's wrapper, or anything else with a data_ptr().
    held = [getattr(value, "base", None), *getattr(value, "__dict__", {}).values()]
    if any(isinstance(tensor, Tensor) and tensor.requires_grad for tensor in held):
        raise ArgumentError(
            f"argument {state.spec.names[index]!r} of kernel {state.spec.name!r} is a "
            f"{type(value).__name__} for a tensor that requires a gradient; detach() it, or pass "
            "the tensor itself"
        )
    return False


def _refuse_leaf(state, index, tensor) -> None:
    """Raise what PyTorch raises when an in-place operation meets a leaf, before the launch."""
    where = f" (argument {state.spec.names[index]!r} of kernel {state.spec.name!r})"
    if tensor.is_leaf:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation." + where
        )
    if tensor._is_view() and tensor._base.is_leaf and tensor._base.requires_grad:
        raise RuntimeError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation."
            + where
        )


def note_plain_launch(resolver: Resolver, kernel, args, kwargs) -> None:
    """Count a launch made without us as a change of what it wrote, if a plan has told that."""
    state = KernelState.known(kernel, resolver.options)
    if state is not None and state.outputs:
        _mark_written(state, state.spec.flatten(resolver.bind(args, kwargs)))


def _mark_written(state, leaves) -> None:
    """Count a plain launch as a change of what it wrote, as far as that is known."""
    for j in state.outputs or ():
        tensor = leaves[j]
        if isinstance(tensor, Tensor) and not tensor.is_inference():
            torch.autograd.graph.increment_version(tensor)
