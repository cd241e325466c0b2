"""Finds kernels without effect: those without a store, and those that return their result."""

from __future__ import annotations

import ast
import re
import textwrap

from triton.runtime.jit import JITFunction

from ..errors import AutodiffError
from ..support.places import named

# The header of a module's kernel, and its first operation.
_KERNEL = re.compile(r'tt\.func public @"?(?P<name>\w+)"?\(.*\n\s*(?P<first>[^\n]*)')
_SEEN = "_autodiff_has_effects"
# Calls by which a kernel's source may have an effect, in some launch.
_EFFECT = re.compile(r"store|atomic|scatter|inline_asm|device_(print|assert)|^(print|breakpoint)$")


def refuse_results(ttir: str) -> None:
    """Raise if a kernel returns a value, since it has no caller."""
    kernel = _KERNEL.search(ttir)
    if kernel and re.search(r"\) -> ", kernel[0].split("\n")[0]):
        raise AutodiffError(
            f"kernel {kernel['name']!r} returns a value, which nobody receives: tl.store it to "
            "memory that the launch passes, and return nothing"
        )


def _may_act(function, seen: set) -> bool:
    """Whether a function, or one that it may call, has a statement with an effect."""
    if function in seen:
        return False
    seen.add(function)
    calls = (n for n in ast.walk(ast.parse(textwrap.dedent(function.src))) if type(n) is ast.Call)
    called = (getattr(c.func, "attr", None) or getattr(c.func, "id", "") for c in calls)
    if any(_EFFECT.search(name) for name in called):
        return True
    code, scope = function.fn.__code__, function.fn.__globals__
    captured = (cell.cell_contents for cell in function.fn.__closure__ or ())
    values = [scope.get(name) for name in code.co_names]
    members = (getattr(value, name, None) for value in values for name in code.co_names)
    callees = [f for f in (*values, *captured, *members) if isinstance(f, JITFunction)]
    return any(_may_act(callee, seen) for callee in callees)


def refuse_idle(compiled, function) -> None:
    """Raise if a compiled kernel has no effect, nor would any other launch of its function."""
    if getattr(compiled, _SEEN, False):
        return
    kernel = _KERNEL.search(compiled.asm["ttir"])
    is_idle = kernel and re.match(r"tt\.return(?! %)", kernel["first"])
    if is_idle and not _may_act(function, set()):
        raise AutodiffError(
            f"kernel {named(function.fn)} stores nothing: what it computes is lost, and no tensor "
            "depends on what it loads. Is a tl.store missing?"
        )
    setattr(compiled, _SEEN, True)
