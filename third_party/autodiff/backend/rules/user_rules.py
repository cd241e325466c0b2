"""`register_vjp`: derivatives of operations that the compiler does not know.

A rule is a kernel function. It is traced for the types of each operation that it applies to, and
its TTIR is sent to the compiler with the request.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import TypeVar, overload

import triton
import triton.language as tl
from triton.runtime.jit import JITFunction

from ..errors import AutodiffError
from ..kernels.interpreted import compilable, is_jit
from .tracing import call_declared, checked_gradients, cotangent_type, placeholder, trace_rule

Rule = TypeVar("Rule")

_rules: dict[tuple[str, str], JITFunction] = {}
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
def register_vjp(vjp: Rule, *, asm: str | None = None, symbol: str | None = None) -> Rule: ...


@overload
def register_vjp(
    vjp: None = None, *, asm: str | None = None, symbol: str | None = None
) -> Callable[[Rule], Rule]: ...


def register_vjp(vjp=None, *, asm=None, symbol=None):
    """Give the derivative of inline assembly or of a library's function.

    `vjp` is a `@triton.jit` function of the cotangents of the float results, then the operands,
    then the results. It returns one gradient for each operand, in order; an integer's is ignored.
    Values are tiles of the operation's shape, or scalars; cotangents are float32, or float64 for
    float64 results.
    Assembly matches up to white space. Without `vjp` this is a decorator. A rule that is
    registered again, or that the compiler has one for, replaces the other.
    """
    if (asm is None) == (symbol is None):
        raise TypeError("register_vjp takes either asm= or symbol=")
    if vjp is None:
        return lambda function: register_vjp(function, asm=asm, symbol=symbol)
    if not is_jit(vjp):
        kind = type(vjp).__name__
        raise TypeError(f"the rule should be a function decorated with @triton.jit, got {kind}")
    key = ("asm", _normalized(asm)) if symbol is None else ("symbol", symbol)
    _rules[key] = compilable(vjp)
    _change()
    return vjp


@dataclasses.dataclass(frozen=True)
class Site:
    """An operation of a kernel that a rule applies to: the rule and the types."""

    what: str
    rule: JITFunction
    operands: tuple
    results: tuple


@tl.core.builtin
def _apply_rule(site, _semantic=None, _generator=None):
    site = getattr(site, "value", site)

    def stand_ins(kind, types):
        return [placeholder(_semantic, f"{kind} {i}", t) for i, t in enumerate(types)]

    floats = [t for t in site.results if t.scalar.is_floating()]
    cotangents = stand_ins("cotangent", [cotangent_type(t) for t in floats])
    operands = stand_ins("operand", site.operands)
    results = stand_ins("result", site.results)
    returned = _generator.call_JitFunction(site.rule, [*cotangents, *operands, *results], {})
    gradients = checked_gradients(site.what, returned, operands, _semantic)
    call_declared(_generator, "autodiff.yield", gradients)


@triton.jit
def _kernel_of_rule(SITE: tl.constexpr):
    _apply_rule(SITE)


_STRING = r'"((?:[^"\\]|\\.)*)"'
_ASM = re.compile(rf"tt\.elementwise_inline_asm {_STRING} \{{.*?\}}(?: [^:]*: (.*?))? -> (.*)")
_EXTERN = re.compile(rf"tt\.extern_elementwise .*?symbol = {_STRING}\}} : \((.*?)\) -> (.*)")
_ELEMENTS = {
    "f16": tl.float16,
    "bf16": tl.bfloat16,
    "f32": tl.float32,
    "f64": tl.float64,
    "f8E4M3FN": tl.float8e4nv,
    "f8E5M2": tl.float8e5,
    **{f"i{n}": getattr(tl, f"int{n}") for n in (1, 8, 16, 32, 64)},
}


def _unescaped(text: str) -> str:
    """Decode a string literal of MLIR."""
    return re.sub(
        r"\\([0-9A-F]{2}|.)",
        lambda m: chr(int(m[1], 16)) if len(m[1]) == 2 else {"n": "\n", "t": "\t"}.get(m[1], m[1]),
        text,
    )


def _types(text: str | None, what: str) -> tuple:
    """Return Triton's types for a list of TTIR types."""
    types = []
    for spelled in re.findall(r"[^,<\s]+(?:<[^>]*>+)?", text or ""):
        tile = re.fullmatch(r"tensor<((?:\d+x)+)([^,>]+)(?:,.*)?>", spelled)
        element = _ELEMENTS.get(tile[2] if tile else spelled)
        if element is None:
            raise AutodiffError(f"{what}: an operand of type {spelled} is not supported")
        shape = [int(n) for n in tile[1].split("x")[:-1]] if tile else None
        types.append(tl.block_type(element, shape) if shape else element)
    return tuple(types)


def fingerprint() -> str:
    """Return a text that identifies the registered rules, in any process."""
    return str(sorted((key, rule.cache_key) for key, rule in _rules.items()))


def find_rules(ttir: str) -> dict[tuple, JITFunction]:
    """Return the registered rules that a kernel needs, by kind, text and types of operations."""
    found: dict[tuple, JITFunction] = {}
    if not _rules:
        return found
    for line in ttir.splitlines():
        line = re.sub(r"\s*loc\(.*$", "", line)
        for key, pattern in (("asm", _ASM), ("symbol", _EXTERN)):
            match = pattern.search(line)
            if match is None:
                continue
            text = _unescaped(match[1])
            rule = _rules.get((key, _normalized(text) if key == "asm" else text))
            if rule is not None:
                found[key, text, match[2], match[3]] = rule
    return found


def rules_for(ttir: str, target, options: dict) -> list[dict]:
    """Return the entries of a request for the registered rules that a kernel needs."""
    entries = []
    for (key, text, operands, results), rule in find_rules(ttir).items():
        what = f"the rule {rule.__name__!r}"
        site = Site(what, rule, _types(operands, what), _types(results, what))
        traced = trace_rule(_kernel_of_rule, site, target, options)
        entries.append({"name": rule.__name__, key: text, "ttir": traced})
    return entries


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
