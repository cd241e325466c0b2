"""Loops of which Triton's compiler does not come to an end.

`v = tl.reshape(tl.permute(v, (1, 0)), v.shape)`: if a loop makes a tile of itself like that, and
does nothing else than take it element by element, Triton 3.6 looks for its layout for ever.
"""

from __future__ import annotations

import re

from .program import Program

LOOP = re.compile(r"( *)(?:for \w+ in range\(|while )")
ASSIGNMENT = re.compile(r" *((?:[vsm]\d+)(?:, \w+)*) ([+*-]?)= (.*)")
NAME = re.compile(r"\b[vsm]\d+\b")
PERMUTES = re.compile(r"tl\.(?:permute|trans)\(|\.T\b")
RESHAPES = re.compile(r"tl\.reshape\(")
# What gives its result a layout of its own.
SETTLES = re.compile(
    r"tl\.(?:sum|max|min|argmax|argmin|reduce|cumsum|cumprod|associative_scan|gather|sort|dot|load"
    r"|split|map_elementwise)\("
)


def is_endless(program: Program) -> bool:
    """Whether a loop of the program is such a one."""
    lines = program.body
    return any(
        _turns(_body(lines[number + 1 :], found[1]))
        for number, line in enumerate(lines)
        if (found := LOOP.match(line))
    )


def _body(lines: list[str], indent: str) -> list[str]:
    """Return the lines of a block that begins here."""
    ends = (n for n, line in enumerate(lines) if not line.startswith(indent + " "))
    return lines[: next(ends, len(lines))]


def _turns(body: list[str]) -> bool:
    """Whether a tile comes back to itself permuted and reshaped."""
    made: dict[str, list] = {}
    for line in body:
        found = ASSIGNMENT.match(line)
        if not found or SETTLES.search(found[3]):
            continue
        targets = NAME.findall(found[1])
        how = bool(PERMUTES.search(found[3])), bool(RESHAPES.search(found[3]))
        for source in {*NAME.findall(found[3]), *(targets if found[2] else ())}:
            made.setdefault(source, []).extend((target, how) for target in targets)
    return any(_comes_back(start, made) for start in made)


def _comes_back(start: str, made: dict[str, list]) -> bool:
    seen = {(start, False, False)}
    pending = list(seen)
    while pending:
        name, *so_far = pending.pop()
        for target, how in made.get(name, ()):
            reached = (target, so_far[0] or how[0], so_far[1] or how[1])
            if reached == (start, True, True):
                return True
            if reached not in seen:
                seen.add(reached)
                pending.append(reached)
    return False
