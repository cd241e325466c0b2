"""Smaller kernels that still fail: lines taken out, blocks unwrapped, expressions replaced."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

ASSIGNMENT = re.compile(r"( *)(v\d+) = (.*)")
VARIABLE = re.compile(r"\bv\d+\b")


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _end(lines: list[str], start: int) -> int:
    """Return where the statement that begins in a line ends, with its block."""
    end = start + 1
    while end < len(lines) and _depth(lines[end]) > _depth(lines[start]):
        end += 1
    return end


def _unwrapped(lines: list[str], start: int):
    """Yield the lines with a block in place of its statement, or with its condition true."""
    line, end = lines[start], _end(lines, start)
    if end > start + 1:
        yield [*lines[:start], *(inner[4:] for inner in lines[start + 1 : end]), *lines[end:]]
    if line.lstrip().startswith("if ") and not line.endswith("if True:"):
        yield [*lines[:start], " " * _depth(line) + "if True:", *lines[start + 1 :]]


def _replaced(lines: list[str], start: int):
    """Yield the lines with a float expression replaced by one of its operands."""
    found = ASSIGNMENT.fullmatch(lines[start])
    # What a mask hides must stay behind its `where`.
    if not found or found[3].startswith("tl.where(m"):
        return
    for operand in dict.fromkeys(VARIABLE.findall(found[3])):
        if operand not in (found[2], found[3]):
            yield [*lines[:start], f"{found[1]}{found[2]} = {operand}", *lines[start + 1 :]]


def _candidates(lines: list[str], size: int, start: int):
    yield lines[:start] + lines[_end(lines, start + size - 1) :]
    if size == 1:
        yield from _unwrapped(lines, start)
        yield from _replaced(lines, start)


class _TimeOut(Exception):
    pass


def shrink(lines: list[str], fails: Callable[[list[str]], bool], seconds: float) -> list[str]:
    """Return a small body of a kernel for which `fails` holds, found in so many seconds."""
    end = time.monotonic() + seconds
    seen = {tuple(lines)}

    def smaller(lines, size, start):
        for candidate in _candidates(lines, size, start):
            if time.monotonic() > end:
                raise _TimeOut
            if candidate and tuple(candidate) not in seen:
                seen.add(tuple(candidate))
                if fails(candidate):
                    return candidate
        return None

    try:
        size = max(len(lines) // 2, 1)
        before = None
        while size > 1 or lines != before:
            before = lines
            start = len(lines) - size
            while start >= 0:
                # What is used late is taken out first, so that what it used can follow.
                found = smaller(lines, size, start) if start + size <= len(lines) else None
                if found is None:
                    start -= size
                else:
                    lines = found
            size = max(size // 2, 1)
    except _TimeOut:
        pass
    return lines
