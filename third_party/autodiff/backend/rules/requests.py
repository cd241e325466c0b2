"""Registered rules in requests: traced for the types of each operation that they apply to."""

from __future__ import annotations

import dataclasses
import re

import triton
import triton.language as tl
from triton.runtime.jit import JITFunction

from ..errors import AutodiffError
from .linear import LinearRule, derivatives
from .tracing import call_declared, cotangent_type, is_float, placeholder, trace_rule
from .user_rules import Rules, find_rules


@dataclasses.dataclass(frozen=True)
class Site:
    """An operation of a kernel that rules apply to, which way they are asked for, and the types."""

    rules: Rules
    is_forward: bool
    operands: tuple
    results: tuple

    @property
    def rule(self) -> JITFunction:
        """The rule that is asked, or whose transpose is."""
        vjp, jvp = self.rules.vjp, self.rules.jvp
        return (jvp or vjp) if self.is_forward else (vjp or jvp)


@tl.core.builtin
def _apply_rule(site, _semantic=None, _generator=None):
    site = getattr(site, "value", site)
    tracer = _semantic, _generator

    def stand_ins(kind, types):
        return [placeholder(_semantic, f"{kind} {i}", t) for i, t in enumerate(types)]

    def floats(values):
        return [value for value in values if is_float(value)]

    def rule_of(rule, of, likes, noun, like):
        if rule is None:
            return None
        what = f"the rule {rule.__name__!r}"
        return LinearRule(what, rule, of, [*operands, *results], likes, noun, like)

    operands = stand_ins("operand", site.operands)
    results = stand_ins("result", site.results)
    pull = rule_of(site.rules.vjp, floats(results), operands, "gradient", "operand")
    push = rule_of(site.rules.jvp, floats(operands), results, "tangent", "result")
    if site.is_forward:
        types = [cotangent_type(x.type) for x in floats(operands)]
        returned = derivatives(push, pull, stand_ins("tangent", types), *tracer)
    else:
        types = [cotangent_type(y.type) for y in floats(results)]
        returned = derivatives(pull, push, stand_ins("cotangent", types), *tracer)
    call_declared(_generator, "autodiff.yield", returned)


@triton.jit
def _kernel_of_rule(SITE: tl.constexpr):
    _apply_rule(SITE)


_ELEMENTS = {
    "f16": tl.float16,
    "bf16": tl.bfloat16,
    "f32": tl.float32,
    "f64": tl.float64,
    "f8E4M3FN": tl.float8e4nv,
    "f8E5M2": tl.float8e5,
    **{f"i{n}": getattr(tl, f"int{n}") for n in (1, 8, 16, 32, 64)},
}


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


def rules_for(ttir: str, target, options: dict) -> list[dict]:
    """Return the entries of a request for the registered rules that a kernel needs."""
    entries = []
    for (kind, text, operands, results), rules in find_rules(ttir).items():
        name = (rules.vjp or rules.jvp).__name__
        what = f"the rule {name!r}"
        types = _types(operands, what), _types(results, what)
        for is_forward in (False, True) if rules.go_forward else (False,):
            site = Site(rules, is_forward, *types)
            traced = trace_rule(_kernel_of_rule, site, what, target, options)
            entry = {"name": name, kind: text, "ttir": traced}
            # What is false is not said: requests of first derivatives stay as they were.
            entry |= {"forward": True} if is_forward else {}
            entry |= {"exact": True} if rules.is_exact else {}
            entries.append(entry)
    return entries
