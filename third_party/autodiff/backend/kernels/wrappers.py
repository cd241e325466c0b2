"""Kernels under wrappers: the function inside, and its launches.

A wrapper is any object whose `fn`, or whose `fn`'s `fn`, and so on, is a kernel: an object of
Triton's `autotune` and `heuristics`, or of another library. It may tune, cache compiled kernels,
pass its arguments in another order, or launch by itself. So a wrapper is not asked what it would
launch: it runs as it is, and its launches are intercepted at `run` of Triton's compiled kernel,
through which all of them go.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
import threading
import weakref

import torch
from triton.compiler import CompiledKernel
from triton.runtime import Autotuner, Heuristics
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction, KernelInterface

from ..errors import AutodiffError, KernelTypeError
from ..support.places import place_of
from .interpreted import compilable, compiling, is_interpreted, is_jit, rehearse
from .order import Outermost

# Objects with a longer chain answer to every name.
_MOST_LINKS = 64
# A handler that lets intercepted launches run.
_LET_BE = object()


class Differentiable(Outermost):
    """A kernel that `differentiable` has made."""


class _Thread(threading.local):
    # The handler for launches of this thread: a function of kernel, grid and values.
    handle = None


of_thread = _Thread()


class Shared:
    """What everybody shares who uses one kernel, wrapped or not: it lives as long as they do."""

    _unused = itertools.count()

    def __init__(self):
        self.number = next(self._unused)
        # Held while wrappers run, which may not be thread-safe: Triton's autotuner stores the
        # arguments of the launch.
        self.lock = threading.RLock()


# By the `id` of a kernel in use.
_shared: weakref.WeakValueDictionary[int, Shared] = weakref.WeakValueDictionary()


def chain(kernel, what: str = "kernel") -> list:
    """Return the wrappers of a kernel, the outermost first, and the function under all of them.

    Raises a `KernelTypeError` that says what is wrong with something that is no kernel.
    """
    links = [kernel]
    while not is_jit(links[-1]):
        following = getattr(links[-1], "fn", None)
        if following is None or len(links) == _MOST_LINKS:
            raise KernelTypeError(_no_kernel(kernel, what))
        if isinstance(following, Differentiable):
            raise KernelTypeError(
                f"{what} is a {type(kernel).__name__} of a differentiable kernel: apply "
                "differentiable last, to the outermost wrapper"
            )
        links.append(following)
    return links


def _no_kernel(thing, what: str) -> str:
    kind, name = type(thing).__name__, getattr(thing, "__name__", None)
    shown = f"{kind} {name!r}" if name else kind
    if inspect.isfunction(thing):
        shown += f" ({place_of(thing)})"
    message = (
        f"{what} should be a function decorated with @triton.jit (under @triton.autotune, "
        f"@triton.heuristics, or what else has the kernel as its `fn`), got {shown}"
    )
    held = [n for n, value in getattr(thing, "__dict__", {}).items() if is_kernel(value)]
    if isinstance(thing, Outermost):
        return f"{message}: that is an operation already, which is called as it is"
    if held:
        return f"{message}: differentiate its `{held[0]}`"
    if isinstance(thing, functools.partial):
        return f"{message}: differentiate the kernel, and bind arguments where it is launched"
    if inspect.isfunction(thing) and any(map(is_kernel, _enclosed(thing))):
        return f"{message}: differentiate the kernel itself, then launch it as kernel[grid](…)"
    if inspect.isfunction(thing):
        return f"{message}: @triton.jit goes below, next to the function"
    return message


def _enclosed(function) -> list:
    """Return the values that a function captures."""
    return [cell.cell_contents for cell in function.__closure__ or ()]


def is_kernel(value) -> bool:
    """Whether a value is a kernel, or a wrapper of one that has Triton's interface."""
    return isinstance(value, KernelInterface)


def is_plain(function) -> bool:
    """Whether a function is launched by Triton's own code."""
    return is_interpreted(function) or getattr(function.run, "__func__", None) is JITFunction.run


def passes_on(wrapper) -> bool:
    """Whether a wrapper is known to pass its arguments on unchanged, and only to add some
    by name.
    """
    return getattr(type(wrapper), "run", None) in (Autotuner.run, Heuristics.run)


def shared_by(kernel) -> Shared:
    """Return what users of a kernel share. They have to hold both."""
    return _shared.setdefault(id(kernel), Shared())


def catch(handle, call, /, *args, **kwargs):
    """Call something, and pass the launches that it makes to `handle(kernel, grid, values)`;
    returns its result.

    These are launches by this thread, of any kernel; `values` are those of all parameters.
    """
    before, of_thread.handle = of_thread.handle, handle
    try:
        return call(*args, **kwargs)
    finally:
        of_thread.handle = before


def prepare(wrappers, function) -> None:
    """Let launches of these wrappers of a function be intercepted."""
    if CompiledKernel.run is not _run:
        CompiledKernel.run = _run
    for wrapper in wrappers:
        for owner in type(wrapper).__mro__:
            bench = vars(owner).get("_bench")
            if inspect.isfunction(bench) and not hasattr(bench, "lets_be"):
                owner._bench = _letting_be(bench)
    if is_interpreted(function) and "run" not in vars(function):
        function.run = _compiling(function)


# Returns the launch function of a compiled kernel that nobody observes or intercepts.
plain_run = CompiledKernel.run.fget
# Makes a launch function of a compiled kernel in place of Triton's, which it gets, too; or None.
observer = None
_OBSERVED = "_autodiff_observed"
# Where Triton launches kernels. Other code (Inductor) keeps the launch function that it gets.
_LAUNCHING = ("triton.runtime.jit", "triton.compiler.compiler")


def observe(make) -> None:
    """Let all launches by Triton's code that no handler takes go through `make(kernel, run)`, which
    is called once for each compiled kernel.
    """
    global observer
    observer = make
    CompiledKernel.run = _run


@property
def _run(kernel):
    """Return the launch function of a compiled kernel; replaces the property of Triton's class."""
    if of_thread.handle is None and sys._getframe(1).f_globals.get("__name__") not in _LAUNCHING:
        return plain_run(kernel)
    return run_of(kernel)


def run_of(kernel):
    """Return the launch function of a compiled kernel that Triton's own code gets."""
    if of_thread.handle is not None:
        return functools.partial(_launch, kernel)
    if observer is None:
        return plain_run(kernel)
    known = kernel.__dict__.get(_OBSERVED)
    if known is None:
        known = kernel.__dict__[_OBSERVED] = observer(kernel, plain_run(kernel))
    return known


def _launch(kernel, gx, gy, gz, stream, function, packed, metadata, enter, leave, *values):
    """Launch a compiled kernel, unless the launch is intercepted; a wrapper may keep this
    function.
    """
    handle = of_thread.handle
    if handle is None or handle is _LET_BE:
        run = plain_run(kernel)
        return run(gx, gy, gz, stream, kernel.function, packed, metadata, enter, leave, *values)
    active = driver.active
    if stream != active.get_current_stream(active.get_current_device()):
        raise AutodiffError(
            f"kernel {kernel.name!r} is launched on a stream that is not the current one: make it "
            "current (torch.cuda.stream), so that PyTorch knows of it"
        )
    return catch(None, handle, kernel, (gx, gy, gz), values)


def _letting_be(bench):
    """Return a tuner's method that measures, so that its launches are not intercepted."""

    @functools.wraps(bench)
    def measure(*args, **kwargs):
        if of_thread.handle is None:
            return bench(*args, **kwargs)
        # Nor does autograd record what the tuner resets and restores.
        with torch.no_grad():
            return catch(_LET_BE, bench, *args, **kwargs)

    measure.lets_be = True
    return measure


def _compiling(function):
    """Return `run` of a function decorated for the interpreter: intercepted launches are
    compiled.
    """
    interpret, twin = function.run, compilable(function)

    def run(*args, **kwargs):
        if of_thread.handle is None:
            return interpret(*args, **kwargs)
        if of_thread.handle is not _LET_BE:
            rehearse(function, interpret, args, kwargs)
        with compiling(twin):
            return twin.run(*args, **kwargs)

    return run
