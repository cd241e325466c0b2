"""An operation as a function in float64, evaluated on the CPU: what gradients are judged by.

The operation runs once as it is, and its launches are noted. It then runs again, as often as
wanted, on float64 copies in host memory: PyTorch's operations are kept from leaving float64, and
each launch becomes one of the same kernel, promoted to float64 by the compiler, whatever the
precision in which the kernel was written to compute.
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

from . import runtime
from .api import DifferentiableKernel
from .driver import CPUDriver, host_arch
from .errors import AutodiffError
from .executable import Executable
from .library import native
from .memory import snapshot
from .plan import Kernel

Tensor = torch.Tensor
_NARROW = (torch.float16, torch.bfloat16, torch.float32)


class _Launch(NamedTuple):
    """A launch of the operation as it is."""

    resolver: object
    spec: object
    grid: tuple
    values: list


class _Doubles(TorchDispatchMode):
    """Makes PyTorch's operations compute in float64 on the CPU, whatever they are asked for."""

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
    """Let `observer(kernel, args, kwargs, grid)` take the launches of this thread."""
    mine, before = threading.get_ident(), DifferentiableKernel.observer

    def observe(kernel, args, kwargs, grid):
        if threading.get_ident() != mine:
            return kernel._run(*args, grid=grid, **kwargs)
        return observer(kernel, args, kwargs, grid)

    DifferentiableKernel.observer = observe
    try:
        yield
    finally:
        DifferentiableKernel.observer = before


@contextlib.contextmanager
def in_doubles():
    """Let PyTorch's operations compute in float64 on the CPU, whatever they are asked for."""
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Doubles():
            yield
    finally:
        torch.set_default_dtype(dtype)


@contextlib.contextmanager
def _on_cpu():
    """Let kernels run on the CPU backend."""
    active = driver._active
    driver.set_active(CPUDriver())
    try:
        yield
    finally:
        driver._active = active


def promoted(spec) -> Executable:
    """Return a compiled kernel in float64, for the CPU."""
    pipeline = "builtin.module(autodiff-promote)"
    try:
        ttir = native().run_pipeline(spec.ttir, pipeline, file_name=f"<ttir of {spec.name}>")
    except AutodiffError as error:
        raise type(error)(f"kernel {spec.name!r} has no form in float64: {error}") from None
    target = GPUTarget("cpu", host_arch(), 1)
    return Executable(Kernel(f"{spec.name}_f64", ttir, None, ()), target, {})


def in_double(value):
    """Return a float64 copy in host memory, with the same strides, of a floating-point tensor.

    Other tensors are copied, too; what is no tensor stays as it is.
    """
    if not isinstance(value, Tensor):
        return value
    dtype = torch.float64 if value.is_floating_point() else value.dtype
    return snapshot(value, dtype, torch.device("cpu"))


def _tensors(outputs) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(outputs) if isinstance(leaf, Tensor)]


class Reference:
    """An operation at given inputs, as it is and in float64."""

    def __init__(self, op, seed: int):
        self._op = op
        self._seed = seed
        self._launches: list[_Launch] = []
        self._executables: dict = {}
        self._next = 0

    def run(self, inputs):
        """Run the operation as it is and return its outputs; notes its launches."""
        self._launches.clear()
        with _observed(self._record), torch.random.fork_rng():
            torch.manual_seed(self._seed)
            return _tensors(self._op(*inputs))

    def evaluate(self, inputs):
        """Return the outputs at float64 inputs, which it may change."""
        self._next = 0
        with _on_cpu(), _observed(self._replay), torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed)
            with torch.no_grad(), in_doubles():
                outputs = _tensors(self._op(*inputs))
        if self._next != len(self._launches):
            raise self._diverged(f"{self._next} launches")
        return outputs

    def _record(self, kernel, args, kwargs, grid):
        device = next(
            (a.device for a in tree_leaves((args, kwargs)) if isinstance(a, Tensor)), None
        )
        guard = torch.cuda.device(device) if device is not None and device.type == "cuda" else None
        with guard or contextlib.nullcontext():
            resolved = runtime.resolve(kernel._resolver, args, kwargs, grid)
            state, execution = runtime.start(kernel._resolver, resolved)
        kernel._remember(state.spec.kernel, execution)
        self._launches.append(
            _Launch(kernel._resolver, state.spec, resolved.grid, list(resolved.values))
        )
        return state.spec.kernel

    def _replay(self, kernel, args, kwargs, grid):
        if self._next == len(self._launches):
            raise self._diverged("another launch")
        recorded = self._launches[self._next]
        if recorded.resolver is not kernel._resolver:
            raise self._diverged(f"kernel {kernel._resolver.function.__name__!r}")
        self._next += 1
        spec = recorded.spec
        values = kernel._resolver.bind(args, kwargs)
        # What a wrapper (an autotuner, say) chose is chosen again.
        values = [
            old if new is None else new for old, new in zip(recorded.values, values, strict=True)
        ]
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
        executable.launch(recorded.grid, leaves)
        return spec.kernel

    def _left_narrow(self, spec, index):
        raise AutodiffError(
            f"argument {spec.names[index]!r} of kernel {spec.name!r} is not one of the inputs "
            "or made from them, so it cannot be copied in float64: make it an input"
        )

    def _diverged(self, what: str) -> AutodiffError:
        names = ", ".join(repr(launch.spec.name) for launch in self._launches) or "none"
        return AutodiffError(
            f"the operation takes another path in float64: {what} where its launches were {names}; "
            "it should not decide by dtype or device"
        )
