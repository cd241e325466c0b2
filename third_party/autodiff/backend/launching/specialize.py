"""From a kernel and a launch's arguments to what Triton compiles for them."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading

import torch
from triton import Config
from triton.runtime import Heuristics
from triton.runtime.jit import KernelInterface

from ..compiling.device_launch import launch
from ..errors import AutodiffError
from ..kernels.grid import checked_grid
from ..kernels.interpreted import compilable, compiling, is_interpreted, rehearse
from ..kernels.wrappers import catch, chain, is_plain, passes_on, prepare, shared_by
from .blame import blame
from .options import DEFAULT


def _configs(wrapper) -> list[Config]:
    """Return the configurations that a wrapper chooses from; none if it is no tuner."""
    configs = getattr(wrapper, "configs", ())
    listed = configs if isinstance(configs, (list, tuple)) else ()
    return [config for config in listed if isinstance(config, Config)]


def _tried(tuned: list[list[Config]]) -> tuple[tuple[int, int], ...]:
    """Return the stages and warps that tuners try; empty if there is just one configuration."""
    tried = (config for configs in tuned if len(configs) > 1 for config in configs)
    return tuple(dict.fromkeys((c.num_stages, c.num_warps) for c in tried))


# What no argument is.
_UNKNOWN = object()

# Triton parses a kernel when it compiles it. Early Pythons 3.11 and 3.12 count in one place how
# deep they are in a text, and fail if another thread parses meanwhile (python/cpython#106905).
_COUNTS_IN_ONE_PLACE = (3, 11) <= sys.version_info < (3, 11, 8) or (
    (3, 12) <= sys.version_info < (3, 12, 2)
)
_parsing = threading.RLock() if _COUNTS_IN_ONE_PLACE else contextlib.nullcontext()


class CompiledLaunch:
    """One launch of a function, bound and compiled but not run."""

    __slots__ = ("function", "kernel", "grid", "values")

    def __init__(self, function, kernel, grid, values):
        self.function = function
        self.kernel = kernel
        self.grid = grid
        self.values = values


class Resolver:
    """Turns launches of one kernel, wrapped or not, into compiled kernels and bound arguments."""

    def __init__(self, kernel, options=DEFAULT):
        *wrappers, inner = chain(kernel)
        tuned = [configs for configs in map(_configs, wrappers) if configs]
        self.options = options._replace(forward_configs=_tried(tuned))
        self._shared = shared_by(kernel)
        # A graph is for one kernel with the same options: Dynamo compares this text.
        self.kernel_and_options = f"kernel {self._shared.number}, {self.options}"
        self.interpreted = is_interpreted(inner)
        self.function = compilable(inner) if self.interpreted else inner
        plain = is_plain(inner)
        self.wrapped = bool(wrappers) or not plain
        # Whether a call's arguments are known to be those of the launch.
        self.passes_on = plain and all(passes_on(wrapper) for wrapper in wrappers)
        self._kernel = kernel
        self.lock = self._shared.lock if self.wrapped else _parsing
        if self.wrapped:
            prepare(wrappers, inner)
        parameters = list(self.function.signature.parameters.values())
        self.names = [p.name for p in parameters]
        self.constants = [parameter.is_constexpr for parameter in self.function.params]
        self.configurations = [dict(c.kwargs) for c in tuned[0]] if tuned else [{}]
        self._choices = [configs for configs in tuned if len(configs) > 1]
        # Whether a tuner may launch on any memory, and launches with given options when it has
        # chosen.
        self.is_free_to_try = self.passes_on and not any(c.pre_hook for cs in tuned for c in cs)
        self._heuristics = [w.values for w in wrappers if isinstance(w, Heuristics)]
        self.positions = sum(p.kind is not p.KEYWORD_ONLY for p in parameters)
        self.is_variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        empty = inspect.Parameter.empty
        self.defaults = {p.name: p.default for p in parameters if p.default is not empty}

    def resolve(self, args, kwargs, grid) -> CompiledLaunch:
        """Specialise and compile the function for the arguments of a launch.

        An error names the argument that Triton refuses.
        """
        try:
            return self._resolve(args, kwargs, grid)
        except Exception as error:
            blame(self, args, kwargs, error)
            raise

    def _resolve(self, args, kwargs, grid) -> CompiledLaunch:
        with self._compiling():
            kernel = self.function.run(*args, grid=grid, warmup=True, **kwargs)
        if hasattr(kernel, "result"):
            kernel = kernel.result()
        if kernel is None:
            raise self.prevented()
        values = self.bind(args, kwargs)
        if callable(grid):
            grid = grid(dict(zip(self.names, values, strict=True)))
        backend = kernel.metadata.target.backend
        grid = checked_grid(grid, self.function.__name__, backend)
        return CompiledLaunch(self.function, kernel, grid, values)

    def chosen(self, arguments: dict, config: dict) -> dict:
        """Return the arguments that a configuration and heuristics add to a launch."""
        chosen = dict(config)
        for heuristics in self._heuristics:
            for name, choose in heuristics.items():
                chosen[name] = choose({**arguments, **chosen})
        return chosen

    def _compiling(self):
        return compiling(self.function) if self.interpreted else _parsing

    def rehearse(self, args, kwargs, grid) -> None:
        """Run a launch in the interpreter first, if the kernel is decorated for it and has
        debugging.
        """
        if self.interpreted and not self.wrapped:
            launch = functools.partial(self._kernel.run, grid=grid, warmup=False)
            rehearse(self._kernel, launch, args, kwargs)

    def identity(self) -> str:
        """Return a key that is equal for functions with equal source that call functions with equal
        source.
        """
        with self._compiling():
            return self.function.cache_key

    def prevented(self) -> AutodiffError:
        """Return the error for a launch that Triton has not compiled."""
        name = self.function.__name__
        return AutodiffError(f"a Triton hook prevented the compilation of kernel {name!r}")

    def launcher(self, grid):
        """Return a function that launches a wrapped kernel on a grid."""
        if self.passes_on and not (isinstance(grid, tuple) and len(grid) <= 3):
            # Triton only uses the first three extents.
            grid = self._checked(grid)
        brackets = getattr(type(self._kernel), "__getitem__", None)
        if brackets in (None, KernelInterface.__getitem__):
            # Triton's own does no more, and may be replaced while a package is differentiated.
            return functools.partial(self._kernel.run, grid=grid, warmup=False)
        return self._kernel[grid]

    def _checked(self, grid):
        name = self.function.__name__
        if callable(grid):
            return lambda meta: checked_grid(grid(meta), name, "cpu")
        return checked_grid(grid, name, "cpu")

    def through_wrappers(self, take, call, args, kwargs):
        """Call wrapped code, and pass its launches to `take(launch)` instead; returns its
        result.
        """
        with self.lock:
            return catch(functools.partial(self._caught, take), call, *args, **kwargs)

    def _caught(self, take, kernel, grid, values):
        function = getattr(kernel.src, "fn", None)
        if function is None:
            wanted = any(isinstance(v, torch.Tensor) and v.requires_grad for v in values)
            if wanted and torch.is_grad_enabled():
                raise AutodiffError(
                    f"{self._name} launches kernel {kernel.name!r}, which was compiled from text: "
                    "it can only be differentiated if it is decorated with @triton.jit"
                )
            return launch(kernel, grid, values)
        if len(values) != len(kernel.src.signature):
            raise AutodiffError(
                f"{self._name} launches kernel {kernel.name!r} with {len(values)} arguments: it "
                f"has {len(kernel.src.signature)} parameters, constexprs among them; pass them all"
            )
        grid = checked_grid(grid, function.__name__, kernel.metadata.target.backend)
        try:
            return take(CompiledLaunch(function, kernel, grid, list(values)))
        except AutodiffError as error:
            error.args = (str(error).rstrip() + self._chosen(kernel, values),)
            raise

    def _chosen(self, kernel, values) -> str:
        """Return, for the error of a launch, which configurations tuners chose for it."""
        given = dict(zip(self.names, values, strict=False))
        said = ""
        for configs in self._choices:
            for config in configs:
                parts = {name: given.get(name, _UNKNOWN) for name in config.kwargs}
                options = {name: getattr(config, name) for name in ("num_warps", "num_stages")}
                built = {name: getattr(kernel.metadata, name, None) for name in options}
                if parts == config.kwargs and built == options:
                    chosen = {**parts, **options}.items()
                    spelled = ", ".join(f"{name}={value!r}" for name, value in chosen)
                    said += (
                        f"\nThis is with the configuration {spelled}, which the autotuner chose of "
                        f"{len(configs)}; leave it out if another one can be differentiated"
                    )
                    break
        return said

    @property
    def _name(self) -> str:
        """The kernel and its wrapper, for messages."""
        return f"the {type(self._kernel).__name__} of kernel {self.function.__name__!r}"

    def bind(self, args, kwargs) -> list:
        """Return the value of each parameter, in order; None for those that a wrapper provides."""
        if self.is_variadic:
            names = set(self.names)
            named = {k: v for k, v in kwargs.items() if k in names}
            bound = self.function.signature.bind_partial(*args, **named)
            bound.apply_defaults()
            return [bound.arguments.get(name) for name in self.names]
        values = list(args)
        for name in self.names[len(values) :]:
            values.append(kwargs[name] if name in kwargs else self.defaults.get(name))
        return values
