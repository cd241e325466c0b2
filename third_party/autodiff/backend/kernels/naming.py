"""Copies and pickles of kernels and operations.

A kernel is code. A copy of it is the kernel itself, and a pickle contains the name under which a
module has it, like pickles of functions. Objects without such a name are made again from those that
have one: an operation from its kernel and stub, a differentiable kernel from Triton's. A pickle
contains the version that wrote it, so that another version refuses it.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import sys
import types
from collections.abc import Iterator
from multiprocessing.context import get_spawning_popen
from operator import attrgetter
from typing import NamedTuple

from triton.runtime.jit import KernelInterface

from .. import __version__
from ..entry_point import PACKAGE
from ..errors import PickleError
from .interpreted import is_jit
from .stubs import innermost
from .wrappers import Differentiable

# Increased when the arguments of `restore` change.
FORMAT = 1


class Surface(NamedTuple):
    """The classes of the public surface, which makes objects of them."""

    kernel: type
    operation: type
    options: type


# Set by the surface.
surface: Surface | None = None


class Place(NamedTuple):
    """Where an object is found: under a name in a module, or so many wrappers below that."""

    module: str
    name: str
    steps: int


def _is_kernel(thing) -> bool:
    # Proxies in modules may have their own isinstance().
    return issubclass(type(thing), (Differentiable, KernelInterface))


def _from(thing) -> Iterator:
    """Yield an object and all objects below it: Triton's kernel, the function, and so on."""
    yield thing
    if issubclass(type(thing), Differentiable):
        thing = thing._kernel
        yield thing
    while _is_kernel(thing) and not is_jit(thing):
        thing = thing.fn
        yield thing


def _is_named(thing) -> bool:
    """Whether an object is what its own name refers to in its module."""
    try:
        return attrgetter(thing.__qualname__)(sys.modules.get(thing.__module__)) is thing
    except AttributeError:
        return False


def _names(function) -> Iterator[tuple[str, str, object]]:
    """Yield the names and values of all modules, beginning with the one that is probably right."""
    home, name = function.__module__, function.__qualname__
    with contextlib.suppress(AttributeError):
        yield home, name, attrgetter(name)(sys.modules.get(home))
    # A wrapper may be in another module than its function.
    for module in (home, *sys.modules):
        for name, found in list(getattr(sys.modules.get(module), "__dict__", {}).items()):
            yield module, name, found


def _place_of(kernel, function) -> Place | None:
    """Return where a kernel without our wrapper is found; None if nowhere."""
    for module, name, found in _names(function):
        if found is kernel or _is_kernel(found):
            for steps, below in enumerate(_from(found)):
                if below is kernel:
                    return Place(module, name, steps)
    return None


def _refuse_session(module: str, what: str) -> None:
    """Raise if a spawned process would not have a module."""
    main = sys.modules["__main__"]
    has_file = getattr(main, "__spec__", None) is not None or hasattr(main, "__file__")
    is_main = module in ("__main__", "__mp_main__")
    if is_main and not has_file and get_spawning_popen() is not None:
        raise PickleError(
            f"{what} is defined in an interactive session, which a process that is spawned does "
            "not have: define it in a module that can be imported"
        )


def _refuse_nameless(what: str, function) -> None:
    inside = "<locals>" in function.__qualname__
    why = "is defined inside of a function" if inside else "is no longer what its name stands for"
    raise PickleError(
        f"{what} of module {function.__module__!r} {why}, so that no other process could find it: "
        "a pickle holds names, not code. Define it at the top of a module, and keep it in a "
        "variable there"
    )


def _find(place: Place):
    """Return the object at a place, in this process."""
    try:
        found = attrgetter(place.name)(importlib.import_module(place.module))
        return next(itertools.islice(_from(found), place.steps, None))
    except (ImportError, AttributeError, StopIteration) as error:
        raise _missing(place, error) from error


def _missing(place: Place, reason) -> PickleError:
    return PickleError(
        f"this pickle refers to {place.name!r} of module {place.module!r}, which this process does "
        f"not have ({reason or 'there is another kernel'}): define it at the top of a module that "
        "can be imported, not below `if __name__ == '__main__'`"
    )


def reduce_kernel(kernel) -> tuple:
    """Return how to make a differentiable kernel again, as `__reduce__` does."""
    function = kernel._resolver.function
    what = f"kernel {function.__qualname__!r}"
    if _is_named(kernel):
        return _reduced("named", what, Place(kernel.__module__, kernel.__qualname__, 0))
    place = _place_of(kernel._kernel, function)
    if place is None:
        _refuse_nameless(what, function)
    options = kernel._resolver.options._asdict()
    del options["forward_configs"]  # which is the kernel's own
    return _reduced("kernel", what, place, function.__qualname__, options)


def reduce_op(op, *more) -> tuple:
    """Return how to make an operation again; `more` are functions and values besides its stub."""
    what = f"operation {op.__name__!r}"
    if _is_named(op):
        return _reduced("named", what, Place(op.__module__, op.__qualname__, 0))
    for function in map(innermost, (op.stub, *more)):
        if isinstance(function, types.FunctionType) and not _is_named(function):
            _refuse_nameless(f"function {function.__qualname__!r}", function)
    return _reduced("op", what, None, op.kernel, op.stub, *more)


def _reduced(kind: str, what: str, place: Place | None, *state) -> tuple:
    if place is not None:
        _refuse_session(place.module, what)
    # Who pickles functions by value if their module is not there, as cloudpickle does, finds it.
    importlib.import_module(restore.__module__)
    return restore, (FORMAT, __version__, kind, place and tuple(place), *state)


def restore(format_, version, kind, *state):
    """Return the object of a pickle; its format and version come first."""
    if format_ != FORMAT:
        raise PickleError(
            f"this pickle was written by triton-autodiff {version} (format {format_}); this is "
            f"{__version__}, which reads format {FORMAT}: write it again with this version, or "
            "keep a state_dict() instead, which holds no kernels"
        )
    place, *state = state
    if kind == "op":
        kernel, stub, *more = state
        return surface.operation(kernel._kernel, stub, *more, kernel._resolver.options)
    found = _find(Place(*place))
    if kind == "named":
        if not isinstance(found, surface[:2]):
            raise _missing(Place(*place), f"it is a {type(found).__name__}")
        return found
    name, options = state
    kernel = surface.kernel(found, surface.options(**options))
    if kernel._resolver.function.__qualname__ != name:
        raise _missing(Place(*place), f"it is {kernel!r}")
    return kernel


# Pickles of all versions find it there.
restore.__module__ = f"{PACKAGE}.pickling"
