"""Constexprs of a launch in the Python of its kernels: by name, where one alone explains a number.

Tracing shows that: the user's kernel is traced with other values of a constexpr, and the same is
asked of it. A number that is always the value in what is printed then, and changes with no other
constexpr, is written as this one.
"""

from __future__ import annotations

import ast
import difflib
import io
import json
import re
import tokenize
from collections.abc import Callable, Iterator

from .cache import plan_for
from .errors import AutodiffError
from .plan import Kernel, Plan
from .tracing import trace_for_derivative

Token = tokenize.TokenInfo
# Given the TTIR of a kernel that is traced otherwise: it as Python, beside the others of a module.
Print = Callable[[str], str]


class Constexprs:
    """The numbers that a launch has for constexprs, and its kernels with others."""

    def __init__(self, spec, plan: Plan):
        self.spec, self.plan = spec, plan
        self._plans: dict[tuple, tuple[str, Plan] | None] = {}
        declared = {param.name for param in spec.kernel.src.fn.params if param.is_constexpr}
        self.values = {
            name: value
            for name, value in spec.constants.items()
            if name in declared and type(value) in (int, float) and value > 0
        }
        if plan.asked is None:
            self.values.clear()

    def with_others(self, kernel: Kernel | None, name: str) -> Iterator[tuple[object, str]]:
        """Yield other values of a constexpr, and what becomes of a kernel's TTIR.

        Without a kernel of the plan, that is the user's. Values that the kernel is not made for, or
        that have other kernels, are left out.
        """
        value, own = self.values[name], self.plan.kernels
        for other in (value * 2, value // 2 if type(value) is int else value / 2):
            found = self._traced(name, other) if other else None
            if found is None:
                continue
            ttir, plan = found
            if kernel is None:
                yield other, ttir
            elif kernel in own and len(plan.kernels) == len(own):
                yield other, plan.kernels[own.index(kernel)].ttir

    def _traced(self, name: str, other) -> tuple[str, Plan] | None:
        """Return the user's TTIR, and the plan, where a constexpr has another value."""
        key = name, other
        if key not in self._plans:
            spec = self.spec
            _, request, kernel = self.plan.asked
            try:
                ttir = trace_for_derivative(spec.kernel, spec.target, spec.options, {name: other})
                self._plans[key] = ttir, plan_for(ttir, json.loads(request), kernel)
            except AutodiffError:
                self._plans[key] = None
        return self._plans[key]


def named(text: str, constexprs: Constexprs, kernel: Kernel | None, print_: Print) -> str:
    """Return the printed text of a kernel, a statement a line, with names of constexprs.

    These are constants at its beginning, which a launch cannot change: other numbers may depend on
    them in other ways.
    """
    lines, statements = text.split("\n"), _statements(text)
    taken = {token.string for statement in statements for token in statement}
    effects: dict[Token, dict[str, set]] = {}
    for name, value in constexprs.values.items():
        for other, ttir in constexprs.with_others(kernel, name) if name not in taken else ():
            for token, number in _numbers(statements, print_, ttir):
                is_own = _is(token.string, value) and _is(number, other)
                effect = None if token.string == number else is_own
                effects.setdefault(token, {}).setdefault(name, set()).add(effect)
    found = {token: _explaining(of) for token, of in effects.items()}
    for token in sorted(found, key=lambda token: token.start, reverse=True):
        if name := found[token]:
            (row, start), (_, end) = token.start, token.end
            lines[row - 1] = lines[row - 1][:start] + name + lines[row - 1][end:]
    begin = statements[0][0].start[0] - 1
    lines[begin:begin] = (
        f"    {name}: tl.constexpr = {value!r}"
        for name, value in constexprs.values.items()
        if name in found.values()
    )
    return "\n".join(lines)


def _explaining(effects: dict[str, set]) -> str | None:
    """Return the one constexpr that a number changes with, if it is always its value.

    Effects are by constexpr what other values did: nothing (None), the same (True), or not.
    """
    names = [name for name, each in effects.items() if each != {None}]
    return names[0] if len(names) == 1 and effects[names[0]] == {True} else None


def _statements(text: str) -> list[list[Token]]:
    """Return what the statements of a function consist of."""
    read = (tokenize.NAME, tokenize.NUMBER, tokenize.OP, tokenize.STRING)
    rows: dict[int, list[Token]] = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in read:
            rows.setdefault(token.start[0], []).append(token)
    statements = list(rows.values())
    ends = (n for n, each in enumerate(statements) if [t.string for t in each[-2:]] == [")", ":"])
    return statements[next(ends) + 1 :]


def _numbers(statements, print_: Print, ttir: str) -> Iterator[tuple[Token, str]]:
    """Yield numbers, and what they are where TTIR is printed that comes of another trace.

    Those of the statements that are alike, where all that uses what they assign is.
    """
    try:
        others = _statements(print_(ttir))
    except AutodiffError:
        return
    alike = difflib.SequenceMatcher(
        None, [*map(_form, statements)], [*map(_form, others)], autojunk=False
    )
    pairs, unlike = [], set(range(len(statements)))
    for block in alike.get_matching_blocks():
        pairs += [(block.a + n, block.b + n) for n in range(block.size)]
        unlike -= set(range(block.a, block.a + block.size))
    unsure = {token.string for n in unlike for token in statements[n]}
    for own, other in pairs:
        if unsure.isdisjoint(_assigned(statements[own])):
            for token, there in zip(statements[own], others[other], strict=True):
                if token.type == tokenize.NUMBER:
                    yield token, there.string


def _form(statement: list[Token]) -> tuple:
    """Return a statement without what its numbers are, and without those in names."""
    words = (
        "0" if t.type == tokenize.NUMBER else re.sub(r"(_\d+)+$", "", t.string) for t in statement
    )
    return statement[0].start[1], *words


def _assigned(statement: list[Token]) -> set[str]:
    """Return the names that a statement gives values."""
    words = [token.string for token in statement]
    targets = set(words[: words.index("=")] if "=" in words else ()) - {","}
    return targets if all(map(str.isidentifier, targets)) else set()


def _is(literal: str, value) -> bool:
    number = ast.literal_eval(literal)
    return type(number) is type(value) and number == value
