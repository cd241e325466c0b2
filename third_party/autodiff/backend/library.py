"""The native library, or the reason why it cannot be loaded."""

from __future__ import annotations

import functools
import platform

from .errors import AutodiffError


@functools.cache
def native():
    """Return the extension module of the compiler; raises `AutodiffError` if it cannot be
    loaded.
    """
    try:
        from . import _native
    except ImportError as error:
        raise AutodiffError(
            f"the native library of triton-autodiff cannot be loaded ({error}): it is built for "
            f"one version of Python; install the package again with this one "
            f"({platform.python_version()})"
        ) from error
    return _native
