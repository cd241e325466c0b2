"""What `differentiable` and `autodiff` make goes over all decorators of Triton, never under one."""

from __future__ import annotations

import sys

from .errors import KernelTypeError

_OURS = (__name__, "inspect", "functools")
# Where Triton's decorators look at what they are given.
_JIT = ("triton.runtime.jit", "triton.runtime.interpreter")
_TUNER = "triton.runtime.autotuner"


def _decorator() -> str | None:
    """Return the decorator of Triton that looks at an attribute, None if somebody else does."""
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
    """What a decorator would look at, `name` of an object: it has that itself, or not at all."""

    def __init__(self, name: str):
        self._name = name

    def __get__(self, thing, owner=None):
        if thing is not None:
            decorator = _decorator()
            if decorator is not None:
                thing._refuse(decorator)
            if self._name in vars(thing):
                return vars(thing)[self._name]
        # Who looks further finds that of the kernel.
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r}")

    def __set__(self, thing, value):
        vars(thing)[self._name] = value


class Outermost:
    """Refuses to be decorated by Triton, which would look for a function under it."""

    # Autotune and heuristics ask for names of parameters, jit for the source of the function.
    arg_names = _Inside("arg_names")
    __wrapped__ = _Inside("__wrapped__")

    def _refuse(self, decorator: str) -> None:
        name = vars(self).get("__name__", type(self).__name__)
        raise KernelTypeError(
            f"{decorator} is applied to {name!r}, which is differentiable already: "
            "differentiable, or autodiff, goes over all decorators of Triton, as the last of them"
        )
