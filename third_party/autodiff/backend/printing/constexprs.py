"""Writes names of constexprs for numbers in printed kernels, where only one name is possible.

The user's kernel is traced again with other values of a constexpr, and differentiated and printed
again. If a number always equals the constexpr, and depends on no other one, it is replaced by the
name.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import io
import json
import re
import tokenize
from collections.abc import Callable, Iterator

from ..errors import AutodiffError
from ..plans.cache import plan_for
from ..plans.plan import Kernel, Plan

Token = tokenize.TokenInfo
# Prints the TTIR of a kernel, traced with other constexprs, as Python beside a module's kernels.
Print = Callable[[str], str]


class Constexprs:
    """The constexprs of a launch, and its kernels for other values of them."""

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
        """Yield other values of a constexpr, and the TTIR of a kernel for them.

        Without a kernel of the plan, it is the user's kernel. Values for which tracing fails, or
        for which the plan has other kernels, are left out.
        """
        own = self.plan.kernels
        for other in self._others(name):
            found = self._traced(name, other)
            if found is None:
                continue
            ttir, plan = found
            if kernel is None:
                yield other, ttir
            elif kernel in own and len(plan.kernels) == len(own):
                yield other, plan.kernels[own.index(kernel)].ttir

    def _others(self, name: str) -> list:
        value = self.values[name]
        found = value * 2, value // 2 if type(value) is int else value / 2
        return [other for other in found if other]

    def _traced(self, name: str, other) -> tuple[str, Plan] | None:
        """Return the user's TTIR, and the plan, for another value of a constexpr."""
        key = name, other
        if key not in self._plans:
            self._plans[key] = None
            _, request, kernel = self.plan.asked
            ttir = self.spec.with_constexpr(name, other)
            with contextlib.suppress(AutodiffError):
                if ttir is not None:
                    self._plans[key] = ttir, plan_for(ttir, json.loads(request), kernel)
        return self._plans[key]


class ConstexprsOfTangents(Constexprs):
    """The constexprs of a launch, and the kernel that computes tangents for other values of them.

    `push` derives that from TTIR of the user's kernel.
    """

    def __init__(self, spec, plan: Plan, push: Callable):
        super().__init__(spec, plan)
        self._push = push

    def with_others(self, kernel, name: str) -> Iterator[tuple[object, str]]:
        """Yield other values of a constexpr, and the TTIR of the kernel for them."""
        for other in self._others(name):
            ttir = self.spec.with_constexpr(name, other)
            if ttir is not None:
                with contextlib.suppress(AutodiffError):
                    yield other, self._push(ttir).ttir


def named(text: str, constexprs: Constexprs, kernel: Kernel | None, print_: Print) -> str:
    """Return the printed text of a kernel, one statement in each line, with names of constexprs.

    These are constants at the beginning of the kernel, which a launch cannot change: other numbers
    may depend on them, too.
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
    """Return the only constexpr that a number depends on, if the number always equals it.

    For each constexpr, `effects` says what other values did to the number: nothing (None), it
    became that value (True), or another one (False).
    """
    names = [name for name, each in effects.items() if each != {None}]
    return names[0] if len(names) == 1 and effects[names[0]] == {True} else None


def _statements(text: str) -> list[list[Token]]:
    """Return the statements of a function, as lists of tokens."""
    read = (tokenize.NAME, tokenize.NUMBER, tokenize.OP, tokenize.STRING)
    rows: dict[int, list[Token]] = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in read:
            rows.setdefault(token.start[0], []).append(token)
    statements = list(rows.values())
    ends = (n for n, each in enumerate(statements) if [t.string for t in each[-2:]] == [")", ":"])
    return statements[next(ends) + 1 :]


def _numbers(statements, print_: Print, ttir: str) -> Iterator[tuple[Token, str]]:
    """Yield numbers, and their values if TTIR of another trace is printed.

    Only numbers in statements that are otherwise the same, together with all uses of their results.
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
    """Return a statement with its numbers, and those in names, left out."""
    words = (
        "0" if t.type == tokenize.NUMBER else re.sub(r"(_\d+)+$", "", t.string) for t in statement
    )
    return statement[0].start[1], *words


def _assigned(statement: list[Token]) -> set[str]:
    """Return the names that a statement assigns."""
    words = [token.string for token in statement]
    targets = set(words[: words.index("=")] if "=" in words else ()) - {","}
    return targets if all(map(str.isidentifier, targets)) else set()


def _is(literal: str, value) -> bool:
    number = ast.literal_eval(literal)
    return type(number) is type(value) and number == value
