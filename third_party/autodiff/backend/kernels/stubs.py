"""Functions that launch a kernel: binding arguments, and copying names and signatures."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class right_partial(Generic[Result]):
    """Bind the last positional arguments of a function, as `functools.partial` does the first."""

    def __init__(self, function: Callable[..., Result], *bound: Any):
        self._function, self._bound = function, bound
        name_after(self, function, slice(-len(bound), None) if bound else slice(0))

    def __call__(self, *args: Any, **kwargs: Any) -> Result:
        return self._function(*args, *self._bound, **kwargs)

    def __reduce__(self):
        return right_partial, (self._function, *self._bound)


def innermost(function):
    """Return the function under all partial applications."""
    while isinstance(function, (functools.partial, right_partial)):
        function = function.func if isinstance(function, functools.partial) else function._function
    return function


def _signature(function, bound: slice) -> inspect.Signature:
    """Return the signature of a function without some bound positional arguments."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    given = [p.name for p in [p for p in parameters if p.kind in kinds][bound]]
    return signature.replace(parameters=[p for p in parameters if p.name not in given])


def name_after(made, function, bound: slice) -> None:
    """Give `made` the name, the docstring, and the remaining signature of a function."""
    named = innermost(function)
    functools.update_wrapper(made, named, updated=())
    made.__wrapped__ = function
    if not hasattr(made, "__name__"):
        # The function is a callable object.
        made.__name__ = type(named).__name__
    with contextlib.suppress(TypeError, ValueError):
        made.__signature__ = _signature(function, bound)
