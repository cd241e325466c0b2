"""Launches like an earlier one: what ran that one is looked up, and runs this one.

A launch is *known* if its key (`LaunchKey.cpp`) has come before, and nothing else has changed that
Triton or a plan looks at. What is found is a `Record`. All other launches are resolved by Triton
and planned (specialize.py, state.py), and leave records.

A record that is used in spite of a change would run the wrong kernel, silently. So a record is used
only where Triton would run the same compiled kernel, and `KernelState.execution` return the same
execution.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import attrgetter, is_
from typing import NamedTuple

import torch
import triton.language as tl
from triton import knobs
from triton.compiler import CompiledKernel
from triton.runtime import jit
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from ..compiling.device_launch import has_hooks
from ..errors import ArgumentError
from ..kernels.grid import checked_grid
from ..library import native
from ..programs.binding import picking
from ..storage.addresses import makes_pointers
from ..storage.layouts import TABLE
from ..storage.tensors import TENSORS
from .duals import has_tangents
from .tracers import is_quiet

# How values of a parameter are told apart; see LaunchKey.cpp.
_EXACT, _WRITTEN, _SPANNED = 1, 2, 4
_MOST = 1024
_MISSING = object()
_RUN = JITFunction.run
# Somebody else's `run` may do anything before it calls Triton's.
_IS_TRITONS = getattr(getattr(_RUN, "__code__", None), "co_filename", "") == jit.__file__
# What Triton asks for later than for a compiled kernel.
_LATER = ("launch_enter_hook", "launch_exit_hook")
_ASKED = [
    f"{group}.{name}"
    for group in ("runtime", "compilation")
    for name in (_RUN.__code__.co_names if _IS_TRITONS else ())
    if name in vars(type(getattr(knobs, group))) and name not in _LATER
]
# Two at least, or it would not return a tuple.
_settings = attrgetter("runtime.debug", "compilation.instrumentation_mode", *_ASKED)


class Record:
    """A compiled kernel, for launches with one key.

    It is Triton's as long as it is in `caches`, what Triton has of the function for a device.
    `executions` are by grid and deterministic mode; each comes with its state, and the revision of
    that.
    """

    __slots__ = (
        "kernel", "device", "caches", "name", "backend", "settings", "run", "debug",
        "executions", "pick",
    )  # fmt: skip

    def __init__(self, kernel, device: int, caches, name: str, debug: bool):
        self.kernel, self.device, self.caches, self.name = kernel, device, caches, name
        self.backend = kernel.metadata.target.backend
        self.settings, self.run, self.debug = _settings(knobs), CompiledKernel.run, debug
        self.executions: dict = {}
        # Returns the run-time arguments among the values of all parameters.
        self.pick = None

    @classmethod
    def of(cls, kernel, function) -> Record | None:
        """Return the record of a kernel that Triton has just looked up; None if it has not."""
        device = driver.active.get_current_device()
        caches = function.device_caches[device]
        # Another thread may compile meanwhile.
        for name, known in list(caches[0].items()):
            if known is kernel:
                return cls(kernel, device, caches, name, function.debug)
        return None

    def holds(self, function) -> bool:
        """Whether Triton would run this kernel: where the keys are equal, as far as arguments
        go.
        """
        current = driver.active.get_current_device
        # PyTorch's function makes sure that CUDA is initialized, as it is where a kernel has run.
        current = torch._C._cuda_getDevice if current is torch.cuda.current_device else current
        if (
            current() != self.device
            or function.device_caches.get(self.device) is not self.caches
            or self.caches[0].get(self.name) is not self.kernel
            or function.pre_run_hooks
            or function.debug != self.debug
            or CompiledKernel.run is not self.run
            or getattr(function.run, "__func__", None) is not _RUN
            or _settings(knobs) != self.settings
        ):
            return False
        for (name, _), (value, scope) in function.used_global_vals.items():
            if scope.get(name, _MISSING) != value:
                return False
        return True


class _Table(NamedTuple):
    """Records by keys, which `look(args, kwargs)` finds."""

    look: Callable
    flags: tuple[int, ...]
    records: dict[bytes, Record]


class Key(NamedTuple):
    """The key of a launch that is not known, and the table that it is for."""

    table: _Table
    key: bytes


class Known:
    """The known launches of one function."""

    @classmethod
    def of(cls, resolver) -> Known | None:
        """Return those of a kernel; None for wrapped or interpreted ones, of which nothing is
        known before they run, for a PyTorch without the functions that keys are made with, and for
        a Triton that somebody has changed.
        """
        if TABLE is None or not _IS_TRITONS:
            return None
        if resolver.wrapped or resolver.interpreted or resolver.is_variadic:
            return None
        return cls(resolver)

    def __init__(self, resolver):
        self._function, self._names = resolver.function, resolver.names
        self._name = self._function.__name__
        self._defaults, self._positions = resolver.defaults, resolver.positions
        self._constants = resolver.constants
        # Made by the first launch, which loads the library.
        self._table: _Table | None = None

    def _new_table(self, flags) -> _Table:
        parameters = [
            (name, flag, self._defaults[name]) if name in self._defaults else (name, flag)
            for name, flag in zip(self._names, flags, strict=True)
        ]
        signature = native().launch_signature(
            parameters, self._positions, list(TENSORS), tl.dtype, TABLE
        )
        return _Table(functools.partial(native().launch_key, signature), tuple(flags), {})

    def find(self, args, kwargs) -> tuple[Record, list, bool] | None:
        """Return the record of a launch with these arguments, the values of all parameters, and
        whether a tensor among them requires a gradient.

        Or None, if the launch is not known, or if something looks at launches.
        """
        table = self._table
        seen = None if table is None else table.look(args, kwargs)
        if seen is None:
            return None
        key, values, wants = seen
        record = table.records.get(key)
        if record is None or not record.holds(self._function):
            return None
        if not is_quiet() or has_tangents(values):
            return None
        return record, values, wants

    def grid(self, grid, record: Record, values, wants: bool) -> tuple[int, int, int] | None:
        """Return the extents of a known launch's grid; None if it should take the long way."""
        wants = wants and torch.is_grad_enabled()
        if not wants and has_hooks():
            # They get what Triton says of a launch.
            return None
        try:
            if callable(grid):
                grid = self._asked(grid, values, wants)
            return checked_grid(grid, self._name, record.backend)
        except ArgumentError:
            return None

    def _asked(self, grid, values, wants: bool):
        """Return what a grid function returns, called as the long way calls it."""
        given = dict(zip(self._names, values, strict=True))
        enabled = torch.is_grad_enabled()
        if wants:
            torch._C._set_grad_enabled(False)
        try:
            found = grid(given)
        finally:
            torch._C._set_grad_enabled(enabled)
        # Triton launches with what such a function has changed.
        return found if all(map(is_, given.values(), values)) else None

    def key(self, args, kwargs) -> Key | None:
        """Return the key of a launch; None if it has none, and should not be known."""
        if self._table is None:
            self._table = self._new_table([_EXACT * constant for constant in self._constants])
        table = self._table
        seen = table.look(args, kwargs)
        return None if seen is None else Key(table, seen[0])

    def note(self, key: Key, kernel, grid=None, state=None, execution=None) -> None:
        """Note how a launch was run: plainly, or by an execution."""
        # A hook may answer otherwise the next time.
        if makes_pointers(kernel) or any(map(callable, _settings(knobs))):
            return
        if execution is not None and not self._covers(key, state, execution):
            return
        records = key.table.records
        record = records.get(key.key)
        if record is None or record.kernel is not kernel or not record.holds(self._function):
            record = Record.of(kernel, self._function)
            if record is None:
                return
            if len(records) >= _MOST:
                records.clear()
            records[key.key] = record
        if execution is not None:
            if len(record.executions) >= _MOST:
                record.executions.clear()
            record.pick = picking(state.spec.parameters)
            record.executions[grid, state.atomics] = execution, state, state.revision

    def _covers(self, key: Key, state, execution) -> bool:
        """Whether equal keys mean that this execution is right; if not, longer keys may."""
        if not execution.is_repeatable or execution.is_captured:
            return False
        facts, parameters = execution.facts.extractor, state.spec.parameters
        flags = list(key.table.flags)
        for places, flag in (
            (facts.scalars, _EXACT),
            (facts.outputs, _WRITTEN),
            (facts.spanned, _SPANNED),
        ):
            for i in places:
                flags[parameters[i]] |= flag
        if tuple(flags) == key.table.flags:
            return True
        if self._table is key.table:
            self._table = self._new_table(flags)
        return False
