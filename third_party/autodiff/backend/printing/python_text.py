"""Formats Python code in lines of at most 100 columns, broken as ruff breaks them.

Code is written with each statement on one line, however long; `laid_out` breaks it.
"""

from __future__ import annotations

import textwrap

COLUMNS = 100
_OPEN, _CLOSE = "([{", ")]}"
# Where a text without commas may be broken, lowest precedence first.
_JOINTS = ((" for ",), (" or ",), (" and ",), (" + ", " - "), (" * ", " // ", " / "))


def laid_out(statements) -> str:
    """Break statements, each of which is a line, into lines of allowed length."""
    lines = []
    for line in statements:
        # Docstrings are in lines already.
        if "\n" in line or '"""' in line:
            lines.append(line)
        else:
            text = line.lstrip(" ")
            lines += _lines(text, len(line) - len(text)) if text else [""]
    return "\n".join(lines)


def call(begin: str, arguments, end: str = ")", indent: int = 0) -> str:
    """Return a call, a list, or the head of a function, with its arguments."""
    return f"{' ' * indent}{begin}{', '.join(arguments)}{end}"


def targets(names) -> str:
    """Return names as the left-hand side of an assignment."""
    names = list(names)
    return f"({names[0]},)" if len(names) == 1 else ", ".join(names)


def tuple_of(parts) -> str:
    """Return a tuple as Python."""
    parts = list(parts)
    return f"({', '.join(parts)}{',' * (len(parts) == 1)})"


def paragraph(text: str, indent: int = 0, ends: int = 0) -> str:
    """Break words into lines; the last line leaves room for `ends` characters."""
    space = " " * indent
    filled = textwrap.fill(
        text + "x" * ends, COLUMNS, initial_indent=space, subsequent_indent=space
    )
    return filled[: len(filled) - ends]


def _lines(text: str, indent: int, is_inside: bool = False) -> list[str]:
    """Break a statement, or a part of one inside of brackets, into lines."""
    space = " " * indent
    if indent + len(text) <= COLUMNS or text.startswith("#"):
        return [space + text]
    if text.startswith("return ") and len(_split(text, (", ",))) > 1:
        return [f"{space}return (", *_each(text[7:], indent + 4), f"{space})"]
    begin, sign, rest = ("", "", text) if is_inside else text.partition(" = ")
    if sign and len(_split(begin, (", ",))) > 1:
        if len(_split(rest, (", ",))) > 1 and indent + len(begin) + 4 <= COLUMNS:
            return [f"{space}{begin} = (", *_each(rest, indent + 4), f"{space})"]
        return [f"{space}(", *_each(begin, indent + 4), f"{space}) = {rest}"]
    terms = _terms(rest)
    if len(terms) > 1 and is_inside:
        return [line for term in terms for line in _lines(term, indent, True)]
    # Of two terms, the first or the last one may end in brackets that are broken; not in an index.
    is_whole = len(terms) == 2 and rest[0] not in _OPEN and rest[-1] not in ")}"
    brackets = None if sign and (len(terms) > 2 or is_whole) else _brackets(text, indent)
    if brackets is None and sign:
        return [f"{space}{begin} = (", *_parts(rest, indent + 4), f"{space})"]
    if brackets is None:
        return [space + text]
    first, last = brackets
    # The arguments of a call may be on one line, the elements of a collection may not.
    is_call = first > 0 and (text[first - 1].isalnum() or text[first - 1] in "_)]")
    parts = _parts if is_call or len(_split(text[first + 1 : last], (", ",))) == 1 else _each
    return [
        space + text[: first + 1],
        *parts(text[first + 1 : last], indent + 4),
        space + text[last:],
    ]


def _parts(text: str, indent: int) -> list[str]:
    """Return the text between brackets in lines: one, or one for each element."""
    if indent + len(text) <= COLUMNS and not text.endswith(","):
        return [" " * indent + text]
    if len(_split(text, (", ",))) > 1 or text.endswith(","):
        return _each(text, indent)
    return [line for term in _terms(text) for line in _lines(term, indent, True)]


def _each(text: str, indent: int) -> list[str]:
    """Return each element between commas in lines of its own."""
    parts = (part.removesuffix(",") for part in _split(text, (", ",)))
    return [line for part in parts for line in _lines(f"{part},", indent, True)]


def _terms(text: str) -> list[str]:
    """Split an expression at its operators of lowest precedence."""
    for joints in _JOINTS:
        terms = _split(text, joints)
        if len(terms) > 1:
            return terms
    return [text]


def _split(text: str, joints) -> list[str]:
    """Split a text at joints that are not in brackets.

    A joint that is an operator begins the part behind it.
    """
    parts, start, in_head = [], 0, False
    for place, depth in _places(text):
        # Commas between the parameters of a lambda do not split.
        in_head = text.startswith("lambda ", place) or (in_head and text[place] != ":")
        if depth or in_head:
            continue
        joint = next((j for j in joints if text.startswith(j, place)), None)
        if joint is not None:
            parts.append(text[start:place])
            start = place + len(joint) if joint == ", " else place + 1
    return [*parts, text[start:]]


def _places(text: str):
    """Yield the positions of a text that are not in a string, and their depth of brackets."""
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


def _brackets(text: str, indent: int) -> tuple[int, int] | None:
    """Return the positions of the outermost brackets that are not empty.

    The last ones for which the text before them fits on a line; None if there are none.
    """
    found, opened = None, 0
    for place, depth in _places(text):
        if depth == 0 and text[place] in _OPEN:
            opened = place
        fits = indent + opened < COLUMNS
        if depth == 0 and text[place] in _CLOSE and place > opened + 1 and fits:
            found = opened, place
    return found
