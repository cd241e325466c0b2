"""Differentiable kernels: launches of them are nodes of autograd."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from ..errors import ArgumentError, AutodiffError, KernelTypeError
from ..graphs.launch import put_into_graph
from ..kernels import naming
from ..kernels.effects import refuse_idle
from ..kernels.wrappers import Differentiable, is_kernel
from ..launching import forward_mode, func_transforms, nodes, stub_results
from ..launching.batches import is_looping
from ..launching.blame import blame, refuse_null
from ..launching.duals import has_tangents
from ..launching.eager_flops import is_counting
from ..launching.known import Known
from ..launching.options import DEFAULT
from ..launching.specialize import Resolver
from ..launching.state import KernelState
from ..launching.tracers import NOT_IN_GRAPHS, is_recorded, outside_of_dynamo, refuse_tracers
from ..printing.explain import backward_text, report
from ..printing.source import backward_source, jvp_source
from ..storage.addresses import makes_pointers, refuse_addresses

Tensor = torch.Tensor


class DifferentiableKernel(Differentiable):
    """A Triton kernel whose launches are autograd nodes.

    It stands in for the kernel: `kernel[grid](…)`, `kernel.run(…)` and every attribute work as
    before. A launch from which no gradient is wanted is a launch of the kernel itself.
    """

    # If set, gets the launches of all kernels in place of `run`, for a gradient check.
    observer = None

    def __init__(self, kernel, options=DEFAULT):
        self._kernel = kernel
        self._resolver = Resolver(kernel, options)
        self._known = Known.of(self._resolver)
        self._launches: list[tuple] = []
        self._keeps_all = False
        self._parts: dict[int, DifferentiableKernel] = {}
        functools.update_wrapper(self, self._resolver.function, updated=())
        self.__signature__ = self._resolver.function.signature

    def __dir__(self):
        of_kernel = (name for name in dir(self._kernel) if not name.startswith("_"))
        return sorted({*super().__dir__(), *of_kernel})

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = getattr(self._kernel, name)
        if not self._resolver.wrapped:
            return value
        # Kernels under a wrapper may be launched, too, and so may methods of a wrapper.
        if is_kernel(value):
            part = self._parts.get(id(value))
            if part is None:
                part = self._parts[id(value)] = self._part(type(self), value)
            return part
        if inspect.ismethod(value) and not self._resolver.passes_on:
            return functools.partial(self._call_wrapper, value)
        return value

    def _part(self, kind, kernel):
        """Return a differentiable kernel of this kind for another one, which notes launches
        here.
        """
        part = kind(kernel, self._resolver.options)
        part._launches, part._keeps_all = self._launches, self._keeps_all
        return part

    def _previewed(self, note=None) -> Preview:
        """Return the kernel for a preview; `note(launch, execution)` is told of each launch."""
        part = self._part(Preview, self._kernel)
        part._note = note
        return part

    def __repr__(self):
        return f"differentiable({self._kernel!r})"

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return naming.reduce_kernel(self)

    def __getitem__(self, grid) -> Callable[..., Any]:
        return functools.partial(self._launch, grid)

    def __call__(self, *args, **kwargs):
        if not self._resolver.passes_on and callable(self._kernel):
            return self._call_wrapper(self._kernel, *args, **kwargs)
        raise AutodiffError(
            f"kernel {self._resolver.function.__name__!r} is launched as kernel[grid](…), with a "
            "grid of one to three integers"
        )

    def run(self, *args, grid, warmup=False, **kwargs):
        """Launch the kernel on a grid; see `triton.runtime.JITFunction.run`."""
        if warmup:
            return self._kernel.run(*args, grid=grid, warmup=True, **kwargs)
        return self._launch(grid, *args, **kwargs)

    @functools.partial(outside_of_dynamo, instead=put_into_graph)
    def _launch(self, grid, /, *args, **kwargs):
        """Launch the kernel on a grid; its parameters may have names that `run` uses for itself."""
        name = self._resolver.function.__name__
        if "grid" in kwargs:
            raise KernelTypeError(f"kernel {name!r} has a grid in brackets, and another as grid=")
        known = self._known
        found = known.find(args, kwargs) if known and not DifferentiableKernel.observer else None
        if found is not None:
            extents = known.grid(grid, *found)
            ran, execution = nodes.launch_known(*found, extents, self._resolver.options)
            if ran:
                kernel = found[0].kernel
                self._keep_for_explain(kernel, execution, self._resolver.function)
                return kernel
            # A function is not asked twice.
            grid = extents or grid
        if is_recorded(name):
            return put_into_graph(self, grid, *args, **kwargs)
        if DifferentiableKernel.observer is not None:
            return DifferentiableKernel.observer(self, args, kwargs, grid)
        return self._launch_the_long_way(*args, grid=grid, **kwargs)

    @functools.partial(outside_of_dynamo, reason=NOT_IN_GRAPHS)
    def _launch_outside(self, grid, /, *args, **kwargs):
        """Launch between two graphs of Dynamo; under other tracers, raise an error."""
        refuse_tracers(self._resolver.function.__name__)
        return self._launch_the_long_way(*args, grid=grid, **kwargs)

    def _operator(self, guarded, /, *described) -> tuple[str, tuple[int, ...], str]:
        """Return the name of the operator for launches, and which of its tensors are written.

        If there is no operator, the name is empty, and the last part says why. Dynamo calls this
        while it traces, and takes the result for a constant, as long as `guarded` and the rest of
        the arguments stay the same. See `operator_of`; `described` has pairs, one after the other.
        """
        # Imported late, since it takes time and is for tracing only.
        from ..graphs.operator import operator_of

        pairs = tuple(zip(described[::2], described[1::2], strict=True))
        try:
            operator = operator_of(self, pairs)
        except AutodiffError as error:
            return "", (), f"no graph can hold this launch: {error}"
        return operator.name, operator.outputs, ""

    _operator._dynamo_marked_constant = True

    def _launch_the_long_way(self, *args, grid, **kwargs):
        resolver = self._resolver
        name = resolver.function.__name__
        given = (*args, *kwargs.values())
        if any(map(func_transforms.is_wrapped, given)):
            return func_transforms.launch(resolver, args, kwargs, grid, self._keep_for_explain)
        wants, device, is_ordinary = nodes.look_over(name, given)
        if wants:
            stub_results.note_wanted()
        if device is not None and device != torch.cuda.current_device():
            # Backward kernels run where autograd says, on the device of the tensors.
            with torch.cuda.device(device):
                return self._launch_the_long_way(*args, grid=grid, **kwargs)
        if not resolver.passes_on:
            return self._call_what_wraps(args, kwargs, grid)
        # What is more than to launch: tangents, or to look what is written.
        pushes = has_tangents(given) or is_looping()
        # An autotuner launches the kernel before we do.
        if not is_ordinary and (resolver.wrapped or not wants):
            refuse_null(resolver.function, args, kwargs)
        key = None if self._known is None else self._known.key(args, kwargs)
        if wants or pushes or is_counting():
            resolver.rehearse(args, kwargs, grid)
            take = functools.partial(self._plan_and_launch, key=key)
            return nodes.each_launch(resolver, take, args, kwargs, grid)
        try:
            with resolver.lock:
                kernel = self._kernel.run(*args, grid=grid, warmup=False, **kwargs)
        except AutodiffError:
            raise
        except Exception as error:
            blame(resolver, args, kwargs, error)
            raise
        if kernel is not None:
            refuse_idle(kernel, resolver.function)
            if not is_ordinary or makes_pointers(kernel):
                refuse_addresses(kernel, resolver.function, (*args, *kwargs.values()))
            self._keep_for_explain(kernel, None, resolver.function)
            if key is not None:
                self._known.note(key, kernel)
        return kernel

    def _call_what_wraps(self, args, kwargs, grid):
        """Launch a kernel under wrappers, which may do anything; returns their result."""
        given = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
        constants = [tensor for tensor in given if not tensor.requires_grad]
        differentiated = 0

        def take(launch):
            nonlocal differentiated
            differentiated += self._launch_of_wrapper(launch)

        result = nodes.each_launch(self._resolver, take, args, kwargs, grid)
        if not differentiated and torch.is_grad_enabled():
            name = self._resolver.function.__name__
            wanted = any(tensor.requires_grad and tensor.numel() for tensor in given)
            # A wrapper may return an output that no launch has written.
            made = [t for t in (*constants, *tree_leaves(result)) if isinstance(t, Tensor)]
            if wanted and not any(tensor.requires_grad for tensor in made):
                raise AutodiffError(
                    f"the {type(self._kernel).__name__} of kernel {name!r} returned "
                    "without a launch that could be differentiated: it made none that Triton "
                    "knows of, or under no_grad, or with detached tensors. Differentiate what it "
                    "wraps"
                )
        return result

    @functools.partial(outside_of_dynamo, reason=NOT_IN_GRAPHS)
    def _call_wrapper(self, call, *args, **kwargs):
        """Call a method of a wrapper, which may launch the kernel."""
        name = self._resolver.function.__name__
        refuse_tracers(name)
        if DifferentiableKernel.observer is not None:
            raise AutodiffError(
                f"kernel {name!r} is launched by a method of its {type(self._kernel).__name__}, "
                "which a check cannot follow: launch it as kernel[grid](…)"
            )
        device = nodes.look_over(name, (*args, *kwargs.values())).device
        with contextlib.nullcontext() if device is None else torch.cuda.device(device):
            return nodes.through_wrappers(
                self._resolver, self._launch_of_wrapper, call, args, kwargs
            )

    def _plan_and_launch(self, launch, key=None):
        """Run a launch, as an autograd node if a gradient is wanted; `key` is the launch's."""
        state = nodes.state_of(launch, self._resolver.options)
        execution = forward_mode.start(launch, state)
        # One with tangents is a launch of another kernel.
        is_own = execution is None or execution.state is state
        own, moving = execution if is_own else None, forward_mode.moving(launch, state)
        self._keep_for_explain(launch.kernel, own, launch.function, moving)
        if key is not None and is_own:
            self._known.note(key, launch.kernel, launch.grid, state, execution)

    def _launch_of_wrapper(self, launch) -> bool:
        """Run a launch that a wrapper makes; returns whether it has gradients."""
        pushes = has_tangents(launch.values) or is_looping()
        wants = nodes.look_over(launch.function.__name__, launch.values).wants
        if wants or pushes or is_counting():
            self._plan_and_launch(launch)
        else:
            state = KernelState.existing(launch.kernel, self._resolver.options)
            nodes.launch_plainly(launch, state)
            self._keep_for_explain(launch.kernel, None, launch.function)
        return wants

    def _keep_for_explain(self, kernel, execution, function, moving=frozenset()) -> None:
        """Keep a launch, whose arguments `moving` had tangents, for methods about the last one."""
        launches, kept = self._launches, (kernel, execution, function, moving)
        if self._keeps_all:
            launches.append(kept)
        elif len(launches) != 1 or launches[0] != kept:
            launches[:] = (kept,)

    def _plans(self, args, kwargs):
        """Return `(state, plan, execution)` for a launch with arguments, or for the last one."""
        found = []
        for state, plan, execution, _ in self._kept(args, kwargs):
            if all(plan is not other for _, other, _ in found):
                found.append((state, plan, execution))
        return found

    @outside_of_dynamo
    def _kept(self, args, kwargs):
        """Return `(state, plan, execution, moving)` for launches, as `_plans` does for kinds of
        them.
        """
        launches = self._launches
        if args or kwargs:
            if "grid" not in kwargs:
                raise ArgumentError(
                    f"give the grid of this launch of kernel {self._resolver.function.__name__!r}, "
                    "too, as grid=…: how a gradient is computed depends on it"
                )
            preview = Preview(self._kernel, self._resolver.options)
            preview._keeps_all = True
            preview.run(*args, grid=kwargs.pop("grid"), **kwargs)
            launches = preview._launches
        if not launches:
            raise AutodiffError(
                f"kernel {self._resolver.function.__name__!r} has not been launched: launch it "
                "once, or give the arguments of a launch"
            )
        found = []
        for kernel, execution, function, moving in launches:
            state = KernelState.of(kernel, function, self._resolver.options)
            if execution is None:
                plan = state.plan_of_everything()
            else:
                plan = execution.shown.plan
            found.append((state, plan, execution, moving))
        return found

    def backward_ir(self, *args, **kwargs) -> str:
        """Return the TTIR of the backward kernels of the last launch, or of a launch with `args`.

        Give the grid, too, as `grid=`, if the arguments are given; nothing is launched then.
        """
        return backward_text(self._plans(args, kwargs))

    def backward_source(self, *args, **kwargs) -> str:
        """Return the backward kernels of the last (or the given) launch as Triton Python.

        It is a module: kernels with the names of the user's variables, `d_x` for the gradient of
        `x`. It does not launch them (docs/python.md, "Source").

        Raises an `AutodiffError` that names the operation for what has no form in Python.
        """
        return backward_source(self._plans(args, kwargs))

    def jvp_source(self, *args, **kwargs) -> str:
        """Return the kernel with tangents of the last (or the given) launch as Triton Python.

        It computes values and tangents: `t_x` is the tangent of `x`. Given are the tangents of the
        arguments that had some at the launch. If none had, they are those of the arguments whose
        gradient was wanted (docs/python.md, "Source").

        Raises an `AutodiffError` that names the operation for what has no tangent, or no form in
        Python.
        """
        return jvp_source(self._moving(args, kwargs))

    def _moving(self, args, kwargs):
        """Return `(state, plan, arguments)` for kernels with tangents of a launch, or of the last
        one; the arguments are those whose tangents are given.
        """
        found = []
        for state, plan, execution, moving in self._kept(args, kwargs):
            # Under a transform of torch.func, a launch of values comes before one with tangents.
            latest = state.higher.latest if execution is None else frozenset()
            arguments = moving or latest or frozenset(plan.inputs)
            if not arguments:
                raise AutodiffError(
                    f"no argument of kernel {state.spec.name!r} has a tangent: none of the launch "
                    "had one, and none that wanted a gradient reaches what the kernel stores"
                )
            if all((state, arguments) != (other, those) for other, _, those in found):
                found.append((state, plan, arguments))
        return found

    def backward_kernels(self, *args, **kwargs) -> dict[str, Any]:
        """Return the backward kernels of the last (or the given) launch as functions of Triton.

        They are those that `backward_source` prints, by name and in the order in which they run:
        for `triton.autotune`, `triton.compile`, or launches of your own (docs/python.md).
        """
        backward_kernels, _ = exporting()
        return backward_kernels(self._plans(args, kwargs))

    def export(self, path, *args, **kwargs) -> Path:
        """Write the last launch, or one with `args` and `grid=`, as a module of its own.

        It imports torch and triton, not this package: `kernel[grid](…)` of it is a launch with its
        gradients. What it was made for is asserted (docs/export.md). Returns the path.

        Raises an `AutodiffError` for what a module cannot do, before anything is written.
        """
        _, export = exporting()
        return export(path, self._plans(args, kwargs))

    def explain(self, *args, verbose: bool = False, **kwargs) -> str:
        """Return how each gradient of the last launch is computed, and why.

        Or of a launch with `args` and `grid=`, which is not run. With `verbose=True`, also every
        schedule that the compiler tried, and what stood in its way.
        """
        return report(self._plans(args, kwargs), verbose)


class _Written(torch.autograd.Function):
    """Marks a tensor that a launch has written as depending on others; it has no gradient."""

    @staticmethod
    def forward(ctx, tensor, source):
        ctx.mark_dirty(tensor)
        return tensor

    @staticmethod
    def backward(ctx, gradient):
        raise AutodiffError("nothing was launched: this was to show what a launch would do")


class Preview(DifferentiableKernel):
    """A kernel that compiles and notes its launches without running them."""

    def _launch(self, grid, /, *args, **kwargs):
        """Note what a launch would compile."""
        return nodes.each_launch(self._resolver, self._launch_of_wrapper, args, kwargs, grid)

    def _launch_of_wrapper(self, launch):
        execution = nodes.prepare(launch, self._resolver.options)
        moving = forward_mode.moving(launch, nodes.state_of(launch, self._resolver.options))
        self._keep_for_explain(launch.kernel, execution, launch.function, moving)
        if self._note is not None:
            self._note(launch, execution)
        if execution is not None and self._written is not None:
            leaves = execution.state.spec.flatten(launch.values)
            for output in execution.position:
                self._note_written(leaves[output])

    # Who is told of launches.
    _note: Callable | None = None
    # The tensors that launches have written during a preview; None if no other launch uses them.
    _written: list[Tensor] | None = None

    def _note_written(self, tensor) -> None:
        """Mark an output as requiring a gradient, for later launches that read it."""
        is_plain = type(tensor) is Tensor and not tensor.requires_grad and not tensor._is_view()
        if is_plain and tensor.is_floating_point():
            _Written.apply(tensor, torch.empty((), requires_grad=True))
            self._written.append(tensor)


class WarmupKernel:
    """The second result of the earlier form of `autodiff`, with which the stub is called once.

    A warm-up is no longer needed. Its launches run the forward kernel without a graph.
    """

    def __init__(self, kernel: DifferentiableKernel):
        self._kernel = kernel

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._kernel, name)

    def __getitem__(self, grid):
        return functools.partial(self.run, grid=grid)

    def run(self, *args, grid, warmup=False, **kwargs):
        """Launch the forward kernel outside of autograd."""
        with torch.no_grad():
            return self._kernel.run(*args, grid=grid, warmup=warmup, **kwargs)


def exporting():
    """Return the functions that make kernels and modules of plans: few programs ask for these."""
    from ..exporting import export, printed_kernels

    return printed_kernels.backward_kernels, export.export
