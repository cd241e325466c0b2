"""Python in lines no longer than 100 columns, broken as ruff breaks them.

Code is written with each statement on a line of its own, however long; `laid_out` breaks it.
"""

from __future__ import annotations

import textwrap

COLUMNS = 100
_OPEN, _CLOSE = "([{", ")]}"
# Where a text without commas comes apart, what binds least first.
_JOINTS = ((" for ",), (" or ",), (" and ",), (" + ", " - "), (" * ", " // ", " / "))


def laid_out(statements) -> str:
    """Return statements, each a line that may be too long, in lines."""
    lines = []
    for line in statements:
        # Words are in lines already.
        if "\n" in line or '"""' in line:
            lines.append(line)
        else:
            text = line.lstrip(" ")
            lines += _lines(text, len(line) - len(text)) if text else [""]
    return "\n".join(lines)


def call(begin: str, arguments, end: str = ")", indent: int = 0) -> str:
    """Return a call, a list, or the head of a function, with its arguments."""
    return f"{' ' * indent}{begin}{', '.join(arguments)}{end}"


def tuple_of(parts) -> str:
    """Return a tuple as Python."""
    parts = list(parts)
    return f"({', '.join(parts)}{',' * (len(parts) == 1)})"


def paragraph(text: str, indent: int = 0, ends: int = 0) -> str:
    """Return words in lines; at the end of the last one there is room for so many characters."""
    space = " " * indent
    filled = textwrap.fill(
        text + "x" * ends, COLUMNS, initial_indent=space, subsequent_indent=space
    )
    return filled[: len(filled) - ends]


def _lines(text: str, indent: int) -> list[str]:
    """Return a statement, or a part of one, in lines: what is in its last brackets on its own."""
    space = " " * indent
    if indent + len(text) <= COLUMNS:
        return [space + text]
    if text.startswith("return ") and len(_split(text, (", ",))) > 1:
        return [f"{space}return (", *_each(text[7:], indent + 4), f"{space})"]
    begin, sign, rest = text.partition(" = ")
    if sign and len(_split(begin, (", ",))) > 1:
        return [f"{space}(", *_each(begin, indent + 4), f"{space}) = {rest}"]
    brackets = _last_brackets(text)
    if brackets is None:
        if not sign or text.startswith("#"):
            return [space + text]
        return [f"{space}{begin} = (", *_parts(rest, indent + 4), f"{space})"]
    first, last = brackets
    inside = _parts(text[first + 1 : last], indent + 4)
    return [space + text[: first + 1], *inside, space + text[last:]]


def _parts(text: str, indent: int) -> list[str]:
    """Return what is between brackets in lines: one, or one for each of its parts."""
    if indent + len(text) <= COLUMNS and not text.endswith(","):
        return [" " * indent + text]
    parts = _split(text, (", ",))
    if len(parts) > 1 or text.endswith(","):
        return _each(text, indent)
    for joints in _JOINTS:
        parts = _split(text, joints)
        if len(parts) > 1:
            return [line for part in parts for line in _lines(part, indent)]
    return _lines(text, indent)


def _each(text: str, indent: int) -> list[str]:
    """Return what is between commas in lines of its own."""
    parts = (part.removesuffix(",") for part in _split(text, (", ",)))
    return [line for part in parts for line in _lines(f"{part},", indent)]


def _split(text: str, joints) -> list[str]:
    """Return the parts of a text between joints that are in no brackets.

    Joints that are operators begin the part that comes after them.
    """
    parts, start, in_head = [], 0, False
    for place, depth in _places(text):
        # The parameters of a lambda are no parts.
        in_head = text.startswith("lambda ", place) or (in_head and text[place] != ":")
        if depth or in_head:
            continue
        joint = next((j for j in joints if text.startswith(j, place)), None)
        if joint is not None:
            parts.append(text[start:place])
            start = place + len(joint) if joint == ", " else place + 1
    return [*parts, text[start:]]


def _places(text: str):
    """Yield the places of a text that are in no string, and in how many brackets they are."""
    depth, quote = 0, ""
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote and text[place - 1] != "\\" else quote
            continue
        if character in "\"'":
            quote = character
        depth -= character in _CLOSE
        yield place, depth
        depth += character in _OPEN


def _last_brackets(text: str) -> tuple[int, int] | None:
    """Return where the last brackets that are in no others open and close; None without any.

    Nothing but a colon, a comma, or an attribute may come after them.
    """
    last = first = None
    for place, depth in _places(text):
        if depth == 0 and text[place] in _OPEN:
            first = place
        if depth == 0 and text[place] in _CLOSE:
            last = place
    if last is None or first is None or " " in text[last:]:
        return None
    return (first, last) if last > first + 1 else None
