"""Reverse-mode differentiation of Triton kernels.

Triton imports this package with itself, so nothing here may import torch or the native library:
the public names below are resolved on first use.
"""

from typing import TYPE_CHECKING

from . import entry_point as _entry_point

if TYPE_CHECKING:
    from .api import autodiff, differentiable
    from .errors import AutodiffError, GradientCheckError
    from .inspecting.gradient_check import check
    from .kernels.stubs import right_partial
    from .rules.custom import custom_jvp, custom_vjp, stop_gradient
    from .rules.device_functions import grad, value_and_grad, vjp
    from .rules.user_rules import register_jvp, register_vjp

__version__ = "0.1.0"

__all__ = [
    "AutodiffError",
    "GradientCheckError",
    "autodiff",
    "check",
    "custom_jvp",
    "custom_vjp",
    "differentiable",
    "grad",
    "register_jvp",
    "register_vjp",
    "right_partial",
    "stop_gradient",
    "value_and_grad",
    "vjp",
]

_HOMES = {
    "AutodiffError": "errors",
    "GradientCheckError": "errors",
    "autodiff": "api",
    "check": "inspecting.gradient_check",
    "custom_jvp": "rules.custom",
    "custom_vjp": "rules.custom",
    "differentiable": "api",
    "grad": "rules.device_functions",
    "register_jvp": "rules.user_rules",
    "register_vjp": "rules.user_rules",
    "right_partial": "kernels.stubs",
    "stop_gradient": "rules.custom",
    "value_and_grad": "rules.device_functions",
    "vjp": "rules.device_functions",
}


# A type checker would take it for any name.
if not TYPE_CHECKING:

    def __getattr__(name):
        if name in _HOMES:
            import importlib

            _entry_point.require_sound()
            value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


_entry_point.register()
