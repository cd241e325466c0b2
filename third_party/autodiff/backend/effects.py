"""Kernels of which nothing remains: those without a store, and those that return what they made."""

from __future__ import annotations

import re

from .errors import AutodiffError
from .places import named

# The head of a module's kernel, and what it begins with.
_KERNEL = re.compile(r'tt\.func public @"?(?P<name>\w+)"?\(.*\n\s*(?P<first>[^\n]*)')
_SEEN = "_autodiff_has_effects"


def refuse_results(ttir: str) -> None:
    """Raise if a kernel returns a value: it has no caller that could receive it."""
    kernel = _KERNEL.search(ttir)
    if kernel and re.search(r"\) -> ", kernel[0].split("\n")[0]):
        raise AutodiffError(
            f"kernel {kernel['name']!r} returns a value, which nobody receives: tl.store it to "
            "memory that the launch passes, and return nothing"
        )


def refuse_idle(compiled, function) -> None:
    """Raise if a compiled kernel of a function does nothing. What comes to nothing is left out."""
    if getattr(compiled, _SEEN, False):
        return
    kernel = _KERNEL.search(compiled.asm["ttir"])
    if kernel and re.match(r"tt\.return(?! %)", kernel["first"]):
        raise AutodiffError(
            f"kernel {named(function.fn)} stores nothing: what it computes is lost, and no tensor "
            "depends on what it loads. Is a tl.store missing?"
        )
    setattr(compiled, _SEEN, True)
