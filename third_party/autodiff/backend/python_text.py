"""Lines of Python no longer than 100 columns, broken as ruff breaks them."""

from __future__ import annotations

import textwrap

COLUMNS = 100


def call(begin: str, arguments, end: str, indent: int = 0) -> str:
    """Return a call (a list, the head of a function): on a line, or with arguments on their own.

    `begin` is what there is up to the bracket that opens, `end` what there is from the one that
    closes on. An argument may have several lines.
    """
    space, arguments = " " * indent, list(arguments)
    line = f"{space}{begin}{', '.join(arguments)}{end}"
    if not arguments or (len(line) <= COLUMNS and "\n" not in line):
        return line
    inner = f"{space}    {', '.join(arguments)}"
    if len(inner) <= COLUMNS and "\n" not in inner:
        return f"{space}{begin}\n{inner}\n{space}{end}"
    many = "".join(f"{space}    {argument},\n" for argument in arguments)
    return f"{space}{begin}\n{many}{space}{end}"


def paragraph(text: str, indent: int = 0) -> str:
    """Return words in lines."""
    space = " " * indent
    return textwrap.fill(text, COLUMNS, initial_indent=space, subsequent_indent=space)
