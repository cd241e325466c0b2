"""Makes sure that `differentiable` and `autodiff` are outermost, above all decorators of Triton."""

from __future__ import annotations

import sys

from ..errors import KernelTypeError

_OURS = (__name__, "inspect", "functools")
# Files of Triton's decorators.
_JIT = ("triton.runtime.jit", "triton.runtime.interpreter")
_TUNER = "triton.runtime.autotuner"


def _decorator() -> str | None:
    """Return the decorator of Triton that reads an attribute, None if other code does."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") in _OURS:
        frame = frame.f_back
    if frame is None:
        return None
    module, code = frame.f_globals.get("__name__"), frame.f_code
    if module in _JIT and code.co_name == "__init__":
        return "@triton.jit"
    if module == _TUNER and code.co_name == "decorator":
        return "@triton.autotune" if "configs" in code.co_freevars else "@triton.heuristics"
    return None


class _Inside:
    """The attribute `name`, which Triton's decorators read to find a function."""

    def __init__(self, name: str):
        self._name = name

    def __get__(self, thing, owner=None):
        if thing is not None:
            decorator = _decorator()
            if decorator is not None:
                thing._refuse(decorator)
            if self._name in vars(thing):
                return vars(thing)[self._name]
        # Other code gets the kernel's attribute.
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r}")

    def __set__(self, thing, value):
        vars(thing)[self._name] = value


class Outermost:
    """Raises an error if Triton decorates it, since Triton would look for a function under it."""

    # Autotune and heuristics read the names of parameters, and jit reads the function's source.
    arg_names = _Inside("arg_names")
    __wrapped__ = _Inside("__wrapped__")

    def _refuse(self, decorator: str) -> None:
        name = vars(self).get("__name__", type(self).__name__)
        raise KernelTypeError(
            f"{decorator} is applied to {name!r}, which is differentiable already: "
            "differentiable, or autodiff, goes over all decorators of Triton, as the last of them"
        )
