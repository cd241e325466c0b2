"""Reverse-mode differentiation of Triton kernels.

Triton imports this package with itself, so nothing here may import torch or the native library:
the public names below are resolved on first use.
"""

__all__ = [
    "AutodiffError",
    "GradientCheckError",
    "autodiff",
    "check",
    "differentiable",
    "right_partial",
]

_HOMES = {
    "AutodiffError": "errors",
    "GradientCheckError": "errors",
    "autodiff": "api",
    "check": "gradient_check",
    "differentiable": "api",
    "right_partial": "api",
}


def __getattr__(name):
    if name in _HOMES:
        import importlib

        value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
