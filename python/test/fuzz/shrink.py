"""Smaller kernels that still fail: lines taken out, blocks unwrapped, expressions replaced.

Of each candidate only what its stores and loops need is left, and one that lacks a definition is
none: most of what is tried can be judged without running it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

ASSIGNMENT = re.compile(r"( *)(v\d+) = (.*)")
VARIABLE = re.compile(r"\bv\d+\b")
NAME = re.compile(r"(?<![\w.])[a-zA-Z]+\d+\b")
DEFINITION = re.compile(r" *([a-z]+\d+(?:, [a-z]+\d+)*) ([+-]?)= (.*)")
BLOCK = re.compile(r" *(for|while|if|else)\b.*:")


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _end(lines: list[str], start: int) -> int:
    """Return where the statement that begins in a line ends, with its block."""
    end = start + 1
    while end < len(lines) and _depth(lines[end]) > _depth(lines[start]):
        end += 1
    return end


def _targets(line: str) -> set[str]:
    """Return the names that a line assigns."""
    found = DEFINITION.fullmatch(line)
    return set(found[1].split(", ")) if found else set()


def _used(line: str) -> set[str]:
    """Return the names that a line reads, but for what it adds to a variable."""
    found = DEFINITION.fullmatch(line)
    return set(NAME.findall(found[3] if found else line))


def _without_empty_blocks(lines: list[str]) -> list[str]:
    """Return the lines without loops and branches that do nothing."""
    kept: list[str] = []
    for line in reversed(lines):
        empty = not kept or _depth(kept[-1]) <= _depth(line)
        if BLOCK.fullmatch(line) and empty:
            if kept and kept[-1].lstrip() == "else:" and _depth(kept[-1]) == _depth(line):
                kept += [" " * _depth(line) + "    pass", line]
            continue
        if line.strip() != "pass":
            kept.append(line)
    return kept[::-1]


def pruned(lines: list[str]) -> list[str]:
    """Return the lines without definitions that nothing reads."""
    while True:
        parts = [(line, _targets(line), _used(line)) for line in lines]

        def read(targets: set[str], parts=parts) -> bool:
            # A variable that only its own updates read is not read.
            return any(targets & use and not targets >= own > set() for _, own, use in parts)

        kept = [line for line, targets, _ in parts if not targets or read(targets)]
        kept = _without_empty_blocks(kept)
        if kept == lines:
            return lines
        lines = kept


def defined(lines: list[str], known: set[str]) -> bool:
    """Return whether all names are defined somewhere before they are read."""
    known = set(known)
    for line in lines:
        known.update(re.findall(r"^ *for (\w+) in", line))
        if not _used(line) <= known:
            return False
        known |= _targets(line)
    return True


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
    if not found:
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


def shrink(
    lines: list[str], fails: Callable[[list[str]], bool], seconds: float, known: set[str]
) -> list[str]:
    """Return a small body of a kernel for which `fails` holds, found in so many seconds.

    `known` are the names of the kernel's arguments.
    """
    end = time.monotonic() + seconds
    seen = {tuple(lines)}

    def smaller(lines, size, start):
        for candidate in _candidates(lines, size, start):
            if time.monotonic() > end:
                raise _TimeOut
            candidate = pruned(candidate)
            if candidate and tuple(candidate) not in seen:
                seen.add(tuple(candidate))
                if defined(candidate, known) and fails(candidate):
                    return candidate
        return None

    try:
        size = max(len(lines) // 2, 1)
        while True:
            before = lines
            start = len(lines) - size
            while start >= 0:
                # What is used late is taken out first, so that what it used can follow.
                found = smaller(lines, size, start) if start + size <= len(lines) else None
                if found is None:
                    start -= size
                else:
                    lines = found
            if size == 1 and lines == before:
                break
            size = max(size // 2, 1)
    except _TimeOut:
        pass
    return lines
