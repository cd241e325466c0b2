"""Makes functions for kernels, together with a source, since Triton reads it."""

from __future__ import annotations

import hashlib
import inspect
import linecache

import triton.language as tl

from ..kernels.interpreted import compilable

_SOURCE = """
@jit
def {name}({parameters}):
    return _call({arguments})
"""


def parameters_of(function) -> list[inspect.Parameter]:
    """Return the parameters of a `@triton.jit` function; all must have names."""
    parameters = list(inspect.signature(function.fn).parameters.values())
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        raise TypeError(f"the arguments of {function.__name__!r} should be named one by one")
    return parameters


def _declare(parameter) -> str:
    """Return the source of a parameter; objects in it get fixed names."""
    is_constant = "constexpr" in str(parameter.annotation)
    text = parameter.name + (": _language.constexpr" if is_constant else "")
    return text if parameter.default is parameter.empty else f"{text} = _default_{parameter.name}"


def compile_text(text: str, filename: str, scope: dict) -> None:
    """Run a text that Triton will read as a file of this name."""
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), scope)


def stand_in(what: str, name: str, parameters, before, scope: dict):
    """Return a plain function `name` that passes its arguments to the builtin `_call` of `scope`.

    `before` are names of `scope` that are passed first. Triton identifies functions by module and
    name, so `what` is part of the module's name.
    """
    text = _SOURCE.format(
        name=name,
        parameters=", ".join(_declare(p) for p in parameters),
        arguments=", ".join((*before, *(p.name for p in parameters))),
    )
    scope.update({f"_default_{p.name}": p.default for p in parameters}, _language=tl)
    # The decorator is read by Triton, and never called.
    scope["jit"] = lambda function: function
    compile_text(text, f"<{what}>", scope)
    return scope[name]


def load_derived(text: str, name: str, home: str):
    """Return the function `name` from the text of a derived module that stands for module
    `home`.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    scope = {"__name__": f"{home}.{digest}"}
    compile_text(text, f"<{name} {digest}>", scope)
    # It is compiled even where kernels are interpreted.
    scope.update({k: compilable(value) for k, value in scope.items()})
    return scope[name]
