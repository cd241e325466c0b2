"""Kernels decorated for the interpreter, made compilable again.

With TRITON_INTERPRET=1, `@triton.jit` yields an `InterpretedFunction`, for kernels, for the device
functions they call and for Triton's own library (`tl.sum`). The compiler finds callees by name, so
while it runs, every interpreted function in its reach is replaced by a compilable twin.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading

import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from . import debugging

_twins: dict[int, tuple[InterpretedFunction, JITFunction]] = {}
_lock = threading.RLock()
# The interpreter replaces members of the language and leaves some replaced after a run.
_LANGUAGE = (tl, tl.core, tl.math, tl.tensor, tl.dtype, tl.core.tensor_descriptor_base)
_pristine = [(holder, dict(vars(holder))) for holder in _LANGUAGE]
_JIT_PARAMETERS = frozenset(inspect.signature(JITFunction.__init__).parameters)


def is_interpreted(kernel) -> bool:
    """Return whether `kernel` was decorated for the interpreter."""
    return isinstance(kernel, InterpretedFunction)


def is_jit(function) -> bool:
    """Return whether `function` was decorated with `@triton.jit`, for the interpreter or not."""
    return isinstance(function, JITFunction) or is_interpreted(function)


def compilable(function) -> JITFunction:
    """Return the compilable twin of an interpreted function, always the same one."""
    if not is_interpreted(function):
        return function
    found = _twins.get(id(function))
    if found is None:
        options = {k: v for k, v in function.kwargs.items() if k in _JIT_PARAMETERS}
        found = _twins[id(function)] = (function, JITFunction(function.fn, **options))
    return found[1]


def _reachable_namespaces(function):
    """Yield each dictionary in which the code of `function` may look up other functions."""
    languages = [m for n, m in list(sys.modules.items()) if n.startswith("triton.language")]
    pending = [function.__globals__, *(vars(m) for m in languages if m is not None)]
    seen = set()
    while pending:
        namespace = pending.pop()
        if id(namespace) in seen:
            continue
        seen.add(id(namespace))
        yield namespace
        for value in list(namespace.values()):
            if isinstance(value, InterpretedFunction):
                pending.append(value.fn.__globals__)
            elif inspect.ismodule(value) and _holds_interpreted(value):
                pending.append(vars(value))


def _holds_interpreted(module) -> bool:
    return any(isinstance(v, InterpretedFunction) for v in list(vars(module).values()))


def _captured(function) -> InterpretedFunction | None:
    """Return the interpreted function that a wrapper captures, if it captures one."""
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):
            if isinstance(cell.cell_contents, InterpretedFunction):
                return cell.cell_contents
    return None


def rehearse(function: InterpretedFunction, interpret, args, kwargs) -> None:
    """Run a launch in the interpreter before it is compiled, if it has debugging statements.

    `interpret` launches the function there.
    """
    with _lock:
        debugs = debugging.leave_out(compilable(function), compilable)
    if debugs:
        debugging.rehearse(interpret, args, kwargs)


@contextlib.contextmanager
def compiling(function: JITFunction):
    """Replace all functions that `function` calls by compilable ones, during the context."""
    with _lock:
        undo = []
        if any(twin is function for _, twin in _twins.values()):
            debugging.leave_out(function, compilable)

        def replace(holder, name, value, original):
            setattr(holder, name, value)
            undo.append((functools.partial(setattr, holder), name, original))

        try:
            for holder, members in _pristine:
                for name, value in list(vars(holder).items()):
                    if members.get(name, value) is not value:
                        replace(holder, name, members[name], value)
            for namespace in list(_reachable_namespaces(function.fn)):
                for name, value in list(namespace.items()):
                    if isinstance(value, InterpretedFunction):
                        namespace[name] = compilable(value)
                        undo.append((namespace.__setitem__, name, value))
            for cell in function.fn.__closure__ or ():
                with contextlib.suppress(ValueError):
                    value = cell.cell_contents
                    if isinstance(value, InterpretedFunction):
                        replace(cell, "cell_contents", compilable(value), value)
            for name, value in list(vars(tl.tensor).items()):
                method = _captured(value)
                if method is not None:
                    replace(tl.tensor, name, compilable(method), value)
            yield
        finally:
            for restore, name, value in reversed(undo):
                restore(name, value)
