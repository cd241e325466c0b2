"""Source locations of the user's functions, for messages."""

from __future__ import annotations

import inspect
import os
import re

_LOCATION = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)


def place_of(function) -> str:
    """Return the file and line of a Python function, `file.py:12`, as far as known."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return f"a {type(function).__name__}"
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"


def lines_of(ir: str, locations) -> list[str]:
    """Return lines of the user's file, `file.py:12`, for locations of a module, each once."""
    aliases = dict(_LOCATION.findall(ir))

    def lines(location):
        for alias, file, line in re.findall(r'(#loc\d*)|"([^"]*)":(\d+)', location):
            if alias:
                yield from lines(aliases.get(alias, ""))
            elif "/triton/language/" not in file:
                yield f"{file}:{line}"

    return list(dict.fromkeys(next(lines(at), "an unknown line") for at in locations))


def named(function) -> str:
    """Return a function's name and place."""
    name = getattr(function, "__name__", None)
    return f"{name!r} ({place_of(function)})" if name else f"({place_of(function)})"
