"""An operation as a function in float64 on the CPU: the reference for gradients.

The operation runs once as it is, and its launches are noted. It then runs again, as often as
wanted, on float64 copies in host memory. PyTorch's operations are kept in float64, and each launch
is one of the same kernel, promoted to float64 by the compiler, whatever precision the kernel was
written for.
"""

from __future__ import annotations

import contextlib
import threading
from typing import NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from ..compiling.executable import Executable
from ..driver import CPUDriver, host_arch
from ..errors import AutodiffError
from ..launching import nodes
from ..library import native
from ..plans.plan import Kernel
from ..storage.memory import snapshot
from ..surface.kernel import DifferentiableKernel

Tensor = torch.Tensor
_NARROW = (torch.float16, torch.bfloat16, torch.float32)


class _NotedLaunch(NamedTuple):
    """A launch of the operation as it is.

    Under a wrapper, which may do anything, `sources` has for each value its index among the tensors
    of the call, or -1.
    """

    spec: object
    grid: tuple
    values: list
    sources: list


class _Call(NamedTuple):
    """A call of a kernel: its numbers, its launches, and its results."""

    kernel: object
    numbers: list
    launches: list
    result: object


class _Doubles(TorchDispatchMode):
    """Makes PyTorch's operations compute in float64 on the CPU, whatever dtype and device they ask
    for.
    """

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        args, kwargs = tree_map(self._translate, (args, kwargs or {}))
        return function(*args, **kwargs)

    @staticmethod
    def _translate(value):
        if isinstance(value, torch.dtype):
            return torch.float64 if value in _NARROW else value
        return torch.device("cpu") if isinstance(value, torch.device) else value


@contextlib.contextmanager
def _observed(observer):
    """Pass the launches of this thread to `observer(kernel, args, kwargs, grid)` instead."""
    mine, before = threading.get_ident(), DifferentiableKernel.observer

    def observe(kernel, args, kwargs, grid):
        if threading.get_ident() != mine:
            return kernel._launch_the_long_way(*args, grid=grid, **kwargs)
        return observer(kernel, args, kwargs, grid)

    DifferentiableKernel.observer = observe
    try:
        yield
    finally:
        DifferentiableKernel.observer = before


@contextlib.contextmanager
def in_doubles():
    """Make PyTorch's operations compute in float64 on the CPU, during the context."""
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        # PyTorch makes tensors of numbers on its default device, which a dispatch mode does not
        # see.
        with torch.device("cpu"), _Doubles():
            yield
    finally:
        torch.set_default_dtype(dtype)


@contextlib.contextmanager
def _on_cpu():
    """Let kernels run on the CPU backend, during the context."""
    active = driver._active
    driver.set_active(CPUDriver())
    try:
        yield
    finally:
        driver._active = active


@contextlib.contextmanager
def _undrawn(inputs):
    """Raise an error if random numbers are drawn on a GPU: a CPU draws others."""
    devices = {x.device for x in inputs if isinstance(x, Tensor) and x.device.type == "cuda"}
    before = {device: torch.cuda.get_rng_state(device) for device in devices}
    yield
    for device, state in before.items():
        if not torch.equal(state, torch.cuda.get_rng_state(device)):
            raise AutodiffError(
                f"the operation draws random numbers on {device}, which cannot be drawn again for "
                "the reference on the CPU: draw them before, and pass them as an input"
            )


def promoted(spec) -> Executable:
    """Return a compiled kernel in float64, for the CPU."""
    pipeline = "builtin.module(autodiff-promote)"
    # The values do not depend on user-defined derivatives, so the plain TTIR is used.
    plain = spec.kernel.asm["ttir"]
    try:
        ttir = native().run_pipeline(plain, pipeline, file_name=f"<ttir of {spec.name}>")
    except AutodiffError as error:
        raise type(error)(f"kernel {spec.name!r} has no form in float64: {error}") from None
    target = GPUTarget("cpu", host_arch(), 1)
    return Executable(Kernel(f"{spec.name}_f64", ttir, None, ()), target, {})


def in_double(value):
    """Return a float64 copy of a floating-point tensor, in host memory, with the same strides.

    Other tensors are copied, too; other values are returned as they are.
    """
    if not isinstance(value, Tensor):
        return value
    dtype = torch.float64 if value.is_floating_point() else value.dtype
    return snapshot(value, dtype, torch.device("cpu"))


def _given(args, kwargs):
    """Return the tensors and the numbers among the arguments of a call."""
    leaves = tree_leaves((args, kwargs))
    numbers = [leaf for leaf in leaves if isinstance(leaf, (int, float))]
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)], numbers


def _place(value, given) -> int:
    return next((n for n, tensor in enumerate(given) if tensor is value), -1)


def _tensors(outputs) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(outputs) if isinstance(leaf, Tensor)]


class Reference:
    """An operation on given inputs, as it is and in float64."""

    def __init__(self, op, seed: int):
        self._op = op
        self._seed = seed
        self._calls: list[_Call] = []
        # For each kernel, its user-defined derivatives.
        self.user_rules: dict[str, list[str]] = {}
        self._executables: dict = {}
        self._next = 0

    def run(self, inputs):
        """Run the operation as it is and return its outputs; notes the calls of kernels."""
        self._calls.clear()
        with _observed(self._record), torch.random.fork_rng():
            torch.manual_seed(self._seed)
            with _undrawn(inputs):
                return _tensors(self._op(*inputs))

    def evaluate(self, inputs):
        """Return the outputs at float64 inputs, which it may change."""
        self._next = 0
        with _on_cpu(), _observed(self._replay), torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed)
            with torch.no_grad(), in_doubles():
                outputs = _tensors(self._op(*inputs))
        if self._next != len(self._calls):
            raise self._diverged(f"{self._next} launches")
        return outputs

    def _record(self, kernel, args, kwargs, grid):
        given, numbers = _given(args, kwargs)
        launches = []

        def take(launch):
            state = nodes.state_of(launch, kernel._resolver.options)
            nodes.start(launch, state)
            rules = state.user_rules()
            if rules:
                self.user_rules[state.spec.name] = rules
            sources = [_place(value, given) for value in launch.values]
            launches.append(_NotedLaunch(state.spec, launch.grid, list(launch.values), sources))

        device = next((tensor.device for tensor in given), None)
        guard = torch.cuda.device(device) if device is not None and device.type == "cuda" else None
        with guard or contextlib.nullcontext():
            result = nodes.each_launch(kernel._resolver, take, args, kwargs, grid)
        self._calls.append(_Call(kernel, numbers, launches, result))
        return result

    def _replay(self, kernel, args, kwargs, grid):
        if self._next == len(self._calls):
            raise self._diverged("another launch")
        call = self._calls[self._next]
        # The kernel may have been wrapped again, or be a new one.
        if call.kernel._resolver.identity() != kernel._resolver.identity():
            raise self._diverged(f"a kernel {kernel.__name__!r} of its own")
        self._next += 1
        for launch in call.launches:
            self._launch(launch, self._values(call, launch, args, kwargs))
        return call.result

    def _values(self, call, launch, args, kwargs):
        """Return the values of a launch's parameters in another call."""
        if call.kernel._resolver.passes_on:
            values = call.kernel._resolver.bind(args, kwargs)
            # Values that a wrapper (an autotuner, say) chose stay the same.
            pairs = zip(launch.values, values, strict=True)
            return [old if new is None else new for old, new in pairs]
        given, numbers = _given(args, kwargs)
        tensors = [v for v in launch.values if isinstance(v, Tensor)]
        known = sum(source >= 0 for source in launch.sources)
        if known < len(tensors) or numbers != call.numbers:
            raise AutodiffError(
                f"what wraps kernel {launch.spec.name!r} makes tensors of its own, or is given "
                "other numbers in float64: it cannot be followed there"
            )
        pairs = zip(launch.values, launch.sources, strict=True)
        return [given[source] if source >= 0 else value for value, source in pairs]

    def _launch(self, launch, values):
        """Launch a kernel in float64."""
        spec = launch.spec
        leaves = spec.flatten(values)
        for i in spec.pointers:
            if not isinstance(leaves[i], Tensor):
                raise AutodiffError(
                    f"argument {spec.names[i]!r} of kernel {spec.name!r} is no tensor, so it "
                    "cannot be copied in float64"
                )
            if leaves[i].dtype in _NARROW:
                leaves[i] = self._left_narrow(spec, i)
        executable = self._executables.get(spec)
        if executable is None:
            executable = self._executables[spec] = promoted(spec)
        executable.launch(launch.grid, leaves)

    def _left_narrow(self, spec, index):
        raise AutodiffError(
            f"argument {spec.names[index]!r} of kernel {spec.name!r} is not one of the inputs "
            "or made from them, so it cannot be copied in float64: make it an input"
        )

    def _diverged(self, what: str) -> AutodiffError:
        launches = [launch for call in self._calls for launch in call.launches]
        names = ", ".join(repr(launch.spec.name) for launch in launches) or "none"
        return AutodiffError(
            f"the operation takes another path in float64: {what} where its launches were {names}; "
            "it should not decide by dtype or device"
        )
