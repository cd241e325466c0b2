"""From a kernel and a launch's arguments to what Triton compiles for them.

A kernel may sit under any nesting of wrappers (`autotune`, `heuristics`, anything with `fn` and
`run`). The wrappers do their work on a stand-in for the innermost function which records the call
that would reach it; tuning runs still go to the real one.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import threading

from triton.runtime.jit import JITFunction

from . import descriptors
from .errors import ArgumentError, AutodiffError
from .executable import inherited_options
from .grid import checked_grid
from .interpreted import compilable, compiling, is_interpreted
from .miscompiled import warn_of_wrong
from .options import DEFAULT


def innermost(kernel, what: str = "kernel"):
    """Return the function under all wrappers of `kernel`; TypeError if it is not a kernel."""
    inner = kernel
    while not (isinstance(inner, JITFunction) or is_interpreted(inner)):
        following = getattr(inner, "fn", None)
        if following is None or not callable(getattr(inner, "run", None)):
            kind = type(kernel).__name__
            name = getattr(kernel, "__name__", None)
            shown = f"{kind} {name!r}" if name else kind
            raise TypeError(
                f"{what} should be a function decorated with @triton.jit (under @triton.autotune "
                f"or @triton.heuristics if need be), got {shown}"
            )
        inner = following
    return inner


class _Recorder:
    """Stands in for the innermost function under copies of its wrappers."""

    def __init__(self, function):
        self.fn = function
        self.tuning = False
        self.call = None

    def __getattr__(self, name):
        return getattr(self.fn, name)

    def run(self, *args, **kwargs):
        if self.tuning:
            return self.fn.run(*args, **kwargs)
        self.call = (args, kwargs)
        return None


class _Chain:
    """Copies of the wrappers of a kernel around a recorder; they share the originals' caches."""

    def __init__(self, kernel, function):
        self.recorder = _Recorder(function)
        self.pairs = []
        self.head = self._copy(kernel)

    def _copy(self, wrapper):
        if isinstance(wrapper, JITFunction) or is_interpreted(wrapper):
            return self.recorder
        twin = copy.copy(wrapper)
        twin.fn = self._copy(wrapper.fn)
        if hasattr(type(wrapper), "_bench"):
            twin._bench = self._tuning(twin._bench)
        self.pairs.append((wrapper, twin))
        return twin

    def _tuning(self, bench):
        def run(*args, **kwargs):
            self.recorder.tuning = True
            try:
                return bench(*args, **kwargs)
            finally:
                self.recorder.tuning = False

        return run

    def resolve(self, args, kwargs, grid):
        self.recorder.call = None
        self.head.run(*args, grid=grid, warmup=False, **kwargs)
        for wrapper, twin in self.pairs:
            if hasattr(twin, "best_config"):
                wrapper.best_config = twin.best_config
        args, kwargs = self.recorder.call
        self.recorder.call = None
        kwargs.pop("warmup", None)
        return args, kwargs, kwargs.pop("grid")


def _configs(kernel) -> tuple[tuple[int, int], ...]:
    """Return the stages and warps of the configurations that a kernel's autotuner tries."""
    found = []
    while not (isinstance(kernel, JITFunction) or is_interpreted(kernel)):
        configs = getattr(kernel, "configs", ())
        found += [(c.num_stages, c.num_warps) for c in configs if len(configs) > 1]
        kernel = kernel.fn
    return tuple(dict.fromkeys(found))


class Launch:
    """One call of the innermost function, bound and compiled but not run."""

    __slots__ = ("kernel", "grid", "values")

    def __init__(self, kernel, grid, values):
        self.kernel = kernel
        self.grid = grid
        self.values = values


class Resolver:
    """Turns launches of one kernel, wrapped or not, into compiled kernels and bound arguments."""

    def __init__(self, kernel, options=DEFAULT):
        inner = innermost(kernel)
        self.options = options._replace(forward_configs=_configs(kernel))
        self.interpreted = is_interpreted(inner)
        self.function = compilable(inner) if self.interpreted else inner
        self._kernel = kernel
        self._wrapped = kernel is not inner
        self._local = threading.local()
        parameters = list(self.function.signature.parameters.values())
        self._names = [p.name for p in parameters]
        self._variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        empty = inspect.Parameter.empty
        self._defaults = {p.name: p.default for p in parameters if p.default is not empty}

    def resolve(self, args, kwargs, grid) -> Launch:
        """Specialise and compile for the arguments of a launch; autotunes on first use."""
        context = compiling(self.function) if self.interpreted else contextlib.nullcontext()
        with context:
            if self._wrapped:
                chain = getattr(self._local, "chain", None)
                if chain is None:
                    chain = self._local.chain = _Chain(self._kernel, self.function)
                args, kwargs, grid = chain.resolve(args, kwargs, grid)
            kernel = self.function.run(*args, grid=grid, warmup=True, **kwargs)
        if hasattr(kernel, "result"):
            kernel = kernel.result()
        if kernel is None:
            name = self.function.__name__
            raise AutodiffError(f"a Triton hook prevented the compilation of kernel {name!r}")
        values = self.bind(args, kwargs)
        if callable(grid):
            grid = grid(dict(zip(self._names, values, strict=True)))
        backend = kernel.metadata.target.backend
        return Launch(kernel, checked_grid(grid, self.function.__name__, backend), values)

    def bind(self, args, kwargs) -> list:
        """Return the value of each parameter, in order; None for what a wrapper would provide."""
        if self._variadic:
            names = set(self._names)
            named = {k: v for k, v in kwargs.items() if k in names}
            bound = self.function.signature.bind_partial(*args, **named)
            bound.apply_defaults()
            return [bound.arguments.get(name) for name in self._names]
        values = list(args)
        for name in self._names[len(values) :]:
            values.append(kwargs[name] if name in kwargs else self._defaults.get(name))
        return values


# What a function with a derivative of its own leaves in TTIR (custom.py).
CUSTOM_MARKER = "autodiff.custom_vjp"


def _leaves(types, path=()):
    """Yield the path and type of each run-time argument of a (nested) signature."""
    for index, type_ in enumerate(types):
        if isinstance(type_, (tuple, list)):
            yield from _leaves(type_, (*path, index))
        elif type_.startswith("tensordesc<"):
            yield from descriptors.leaves(type_, (*path, index))
        elif type_ != "constexpr":
            yield (*path, index), type_


def _step(value, index):
    """Follow one step of a path into a parameter's value: into a tuple or a descriptor."""
    return value[index] if isinstance(index, int) else descriptors.part_of(value, index)


class Specialization:
    """What the arguments of one compiled kernel are, seen from Python and from its TTIR."""

    def __init__(self, kernel, function):
        self.kernel = kernel
        self.name = function.__name__
        self.target = kernel.metadata.target
        self.options = inherited_options(kernel.metadata)
        self.ttir = kernel.asm["ttir"]
        warn_of_wrong(kernel, self.name)
        if CUSTOM_MARKER in self.ttir:
            from .tracing import trace_for_derivative

            self.ttir = trace_for_derivative(kernel, self.target, self.options)
        signature = kernel.src.signature
        names = list(signature)
        leaves = list(_leaves(signature.values()))
        self.paths = tuple(path for path, _ in leaves)
        self.parameters = tuple(path[0] for path in self.paths)
        self.types = tuple(type_ for _, type_ in leaves)
        self.names = tuple(
            names[path[0]] + "".join(f"[{i}]" if isinstance(i, int) else f".{i}" for i in path[1:])
            for path in self.paths
        )
        self._flat = all(len(path) == 1 for path in self.paths)
        for name, type_ in zip(self.names, self.types, strict=True):
            if type_.startswith(("tensordesc", "nvTmaDesc")):
                raise ArgumentError(
                    f"argument {name!r} of kernel {self.name!r} is of type {type_}, which cannot "
                    "be differentiated: pass a triton.tools.tensor_descriptor.TensorDescriptor"
                )
        self.pointers = tuple(i for i, type_ in enumerate(self.types) if type_.startswith("*"))
        self.descriptors = descriptors.Descriptors(signature.values(), self.paths)

    def flatten(self, values) -> list:
        """Return the values of the plan's arguments from those of the parameters."""
        if self._flat:
            return [values[i] for i in self.parameters]
        return [functools.reduce(_step, path, values) for path in self.paths]
