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


class Outermost:
    """Refuses to be decorated by Triton, which would look for a function under it."""

    def _refuse(self, decorator: str) -> None:
        name = vars(self).get("__name__", type(self).__name__)
        raise KernelTypeError(
            f"{decorator} is applied to {name!r}, which is differentiable already: "
            "differentiable, or autodiff, goes over all decorators of Triton, as the last of them"
        )

    @property
    def arg_names(self):
        """The names of parameters, which `autotune` and `heuristics` ask for."""
        decorator = _decorator()
        if decorator is not None:
            self._refuse(decorator)
        # Who looks further finds those of the kernel.
        raise AttributeError(f"{type(self).__name__!r} object has no attribute 'arg_names'")

    @property
    def __wrapped__(self):
        """The function inside, which `jit` reads the source of."""
        decorator = _decorator()
        if decorator is not None:
            self._refuse(decorator)
        if "__wrapped__" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute '__wrapped__'")
        return vars(self)["__wrapped__"]

    @__wrapped__.setter
    def __wrapped__(self, function):
        vars(self)["__wrapped__"] = function
