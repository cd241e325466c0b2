"""Source locations of the user's functions, for messages."""

from __future__ import annotations

import inspect
import os


def place_of(function) -> str:
    """Return the file and line of a Python function, `file.py:12`, as far as known."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return f"a {type(function).__name__}"
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"


def named(function) -> str:
    """Return a function's name and place."""
    name = getattr(function, "__name__", None)
    return f"{name!r} ({place_of(function)})" if name else f"({place_of(function)})"
