"""`register_vjp`, `register_jvp`: derivatives of operations that the compiler does not know.

A rule is a kernel function. It is kept under the operation that it is for, and found again in the
TTIR of kernels.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, overload

from triton.runtime.jit import JITFunction

from ..kernels.interpreted import compilable, is_jit

Rule = TypeVar("Rule")


class Rules(NamedTuple):
    """The rules of a function: one of them may be None. Exact ones are its derivative."""

    vjp: Any = None
    jvp: Any = None
    is_exact: bool = False

    @property
    def go_forward(self) -> bool:
        """Whether tangents go through the function."""
        return self.jvp is not None or self.is_exact


class Registered(NamedTuple):
    """A registered rule, and whether its author says that it is the exact derivative."""

    function: JITFunction
    is_exact: bool


# By ("vjp" or "jvp", "asm" or "symbol", text).
_rules: dict[tuple[str, str, str], Registered] = {}
# A text: Dynamo compares it, where an integer may become a symbol.
_generation = "0"


def generation() -> str:
    """Return a text that changes whenever a rule is registered."""
    return _generation


def _change() -> None:
    global _generation
    _generation = str(int(_generation) + 1)


def _normalized(assembly: str) -> str:
    return " ".join(assembly.split())


@overload
def register_vjp(
    vjp: Rule, *, asm: str | None = None, symbol: str | None = None, exact: bool = False
) -> Rule: ...


@overload
def register_vjp(
    vjp: None = None, *, asm: str | None = None, symbol: str | None = None, exact: bool = False
) -> Callable[[Rule], Rule]: ...


def register_vjp(vjp=None, *, asm=None, symbol=None, exact=False):
    """Give the derivative of inline assembly or of a library's function.

    `vjp` is a `@triton.jit` function of the cotangents of the float results, then the operands,
    then the results. It returns one gradient for each operand, in order; an integer's is ignored.
    Values are tiles of the operation's shape, or scalars; cotangents are float32, or float64 for
    float64 results.
    Assembly matches up to white space. Without `vjp` this is a decorator. A rule that is
    registered again, or that the compiler has one for, replaces the other.

    `exact` says that `vjp` is linear in the cotangents, and the derivative of the operation. Only
    then are there tangents without a `register_jvp`, and second derivatives.
    """
    return _register("vjp", vjp, asm, symbol, exact)


@overload
def register_jvp(
    jvp: Rule, *, asm: str | None = None, symbol: str | None = None, exact: bool = False
) -> Rule: ...


@overload
def register_jvp(
    jvp: None = None, *, asm: str | None = None, symbol: str | None = None, exact: bool = False
) -> Callable[[Rule], Rule]: ...


def register_jvp(jvp=None, *, asm=None, symbol=None, exact=False):
    """Give the tangents of inline assembly or of a library's function.

    `jvp` is a `@triton.jit` function of the tangents of the float operands, then the operands, then
    the results. It returns one tangent for each result, in order; an integer's is ignored. It has
    to be linear in the tangents: gradients come of its transpose, unless there is a `register_vjp`.
    All else is as for `register_vjp`.
    """
    return _register("jvp", jvp, asm, symbol, exact)


def _register(way: str, rule, asm, symbol, exact):
    if (asm is None) == (symbol is None):
        raise TypeError(f"register_{way} takes either asm= or symbol=")
    if rule is None:
        return lambda function: _register(way, function, asm, symbol, exact)
    if not is_jit(rule):
        kind = type(rule).__name__
        raise TypeError(f"the rule should be a function decorated with @triton.jit, got {kind}")
    key = ("asm", _normalized(asm)) if symbol is None else ("symbol", symbol)
    _rules[(way, *key)] = Registered(compilable(rule), bool(exact))
    _change()
    return rule


def _rules_of(kind: str, text: str) -> Rules | None:
    """Return the rules of an operation, if there are any."""
    key = (kind, _normalized(text) if kind == "asm" else text)
    found = [_rules.get((way, *key)) for way in ("vjp", "jvp")]
    given = [rule for rule in found if rule is not None]
    if not given:
        return None
    functions = (rule and rule.function for rule in found)
    return Rules(*functions, all(rule.is_exact for rule in given))


_STRING = r'"((?:[^"\\]|\\.)*)"'
_ASM = re.compile(rf"tt\.elementwise_inline_asm {_STRING} \{{.*?\}}(?: [^:]*: (.*?))? -> (.*)")
_EXTERN = re.compile(rf"tt\.extern_elementwise .*?symbol = {_STRING}\}} : \((.*?)\) -> (.*)")


def _unescaped(text: str) -> str:
    """Decode a string literal of MLIR."""
    return re.sub(
        r"\\([0-9A-F]{2}|.)",
        lambda m: chr(int(m[1], 16)) if len(m[1]) == 2 else {"n": "\n", "t": "\t"}.get(m[1], m[1]),
        text,
    )


def fingerprint() -> str:
    """Return a text that identifies the registered rules, in any process."""
    return str(
        sorted((key, rule.function.cache_key, rule.is_exact) for key, rule in _rules.items())
    )


def find_rules(ttir: str) -> dict[tuple, Rules]:
    """Return the registered rules that a kernel needs, by kind, text and types of operations."""
    found: dict[tuple, Rules] = {}
    if not _rules:
        return found
    for line in ttir.splitlines():
        line = re.sub(r"\s*loc\(.*$", "", line)
        for kind, pattern in (("asm", _ASM), ("symbol", _EXTERN)):
            match = pattern.search(line)
            if match is None:
                continue
            text = _unescaped(match[1])
            rules = _rules_of(kind, text)
            if rules is not None:
                found[kind, text, match[2], match[3]] = rules
    return found


def functions_of(found: dict[tuple, Rules]) -> list[JITFunction]:
    """Return the functions of rules."""
    return [rule for rules in found.values() for rule in (rules.vjp, rules.jvp) if rule is not None]


def require_globals(rules) -> None:
    """Raise if a global variable that a rule uses has changed since the rule was traced.

    Triton does so for kernels.
    """
    for rule in rules:
        # Triton notes the variables when it computes the key.
        rule.cache_key  # noqa: B018
        for (name, _), (value, known) in rule.used_global_vals.items():
            now = known.get(name)
            # NaN does not equal itself.
            if now != value and repr(now) != repr(value):
                raise RuntimeError(
                    f"Global variable {name} has changed since the rule {rule.__name__!r} was "
                    f"traced, from {value} to {now}. This is not allowed: register another rule"
                )
