"""How two plans differ, field by field.

Names of values and locations in TTIR do not count, nor where constants stand: two texts are equal
if they have the same operations in the same order.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from typing import NamedTuple

# Keys that identify the items of a list, if every item has a different value.
_IDENTITIES = ("name", "argument", "buffer")
_LONGEST_VALUE = 160
_STRING = r'"(?:[^"\\]|\\.)*"'
_VALUE = re.compile(rf"{_STRING}|%[\w$.-]+")
_PARENTHESIS = re.compile(rf"{_STRING}|\bloc\(|[()]")
_CONSTANT = re.compile(r"\s*(%[\w$.-]+) = arith\.constant (.*)")
_RESULTS = re.compile(r'\s*%[^="(]* = ')


class Difference(NamedTuple):
    """A field that differs, `backward[k_bwd].ttir`, and how, in lines."""

    field: str
    lines: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The field without names of kernels, buffers or arguments: `backward.ttir`."""
        return re.sub(r"\[[^]]*\]", "", self.field)


# --------------------------------------------------------------------------------------------
# TTIR
# --------------------------------------------------------------------------------------------


def _without_locations(line: str) -> str:
    kept, begin, depth = [], 0, 0
    for token in _PARENTHESIS.finditer(line):
        text = token.group()
        if depth:
            depth += {"(": 1, "loc(": 1, ")": -1}.get(text, 0)
            begin = token.end()
        elif text == "loc(":
            kept.append(line[begin : token.start()].rstrip())
            depth = 1
    return "".join((*kept, line[begin:])).rstrip()


def canonical(ttir: str) -> list[str]:
    """Return the lines of TTIR without locations, and values numbered as they are defined.

    A constant is written where it is used.
    """
    names: dict[str, str] = {}
    count = 0
    lines = []
    for line in ttir.splitlines():
        if line.startswith("#loc"):
            continue
        line = _without_locations(line)
        if constant := _CONSTANT.match(line):
            names[constant[1]] = f"<{constant[2]}>"
            continue
        results = _RESULTS.match(line)
        last_result = results.end() if results else 0
        defines_all = line.lstrip().startswith(("tt.func", "func.func", "^"))

        def renamed(token, line=line, last_result=last_result, defines_all=defines_all):
            nonlocal count
            name = token.group()
            if name[0] == '"':
                return name
            is_new = defines_all or token.start() < last_result or line[token.end() :][:3] == " = "
            # Sibling regions may use the same name for values of their own.
            if is_new or name not in names:
                names[name] = f"%{count}"
                count += 1
            return names[name]

        lines.append(_VALUE.sub(renamed, line))
    return lines


def _values(line: str) -> list[str]:
    return [name for name in _VALUE.findall(line) if name[0] == "%"]


def _blind(lines) -> list[str]:
    return [_VALUE.sub(lambda m: m.group() if m.group()[0] == '"' else "%", s) for s in lines]


def _ttir_difference(before: str, after: str) -> list[str]:
    """Return a unified diff, empty if the texts mean the same.

    Values of `before` are named as in `after` where lines correspond. So one operation more or less
    does not change all later lines.
    """
    old, new = canonical(before), canonical(after)
    if old == new:
        return []
    names: dict[str, str] = {}
    taken = set()
    matcher = difflib.SequenceMatcher(None, _blind(old), _blind(new))
    for i, j, length in matcher.get_matching_blocks():
        for a, b in zip(old[i : i + length], new[j : j + length], strict=True):
            for x, y in zip(_values(a), _values(b), strict=True):
                if x not in names and y not in taken:
                    names[x] = y
                    taken.add(y)

    def renamed(token):
        name = token.group()
        return name if name[0] == '"' else names.get(name, f"%old{name[1:]}")

    old = [_VALUE.sub(renamed, line) for line in old]
    return list(difflib.unified_diff(old, new, "before", "after", n=2, lineterm=""))


# --------------------------------------------------------------------------------------------
# Everything else
# --------------------------------------------------------------------------------------------


def _text(value) -> str:
    # Python's equality would take `true` for 1.
    return json.dumps(value, sort_keys=True)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _replaced(before: str, after: str) -> tuple[str, str]:
    same = len(os.path.commonprefix((before, after))) - _LONGEST_VALUE // 4
    if same > 0:
        before, after = f"…{before[same:]}", f"…{after[same:]}"
    return f"- {_short(before)}", f"+ {_short(after)}"


def _records(value) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _by_identity(items: list) -> dict[str, dict] | None:
    """Return the items by what identifies them, None if nothing does."""
    if not items:
        return {}
    for identity in _IDENTITIES:
        if all(identity in item for item in items):
            what = "" if identity == "name" else f"{identity} "
            found = {f"{what}{item[identity]}": item for item in items}
            return found if len(found) == len(items) else None
    return None


def _walk(field: str, before, after):
    if _text(before) == _text(after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            inner = f"{field}.{key}" if field else key
            if key not in after:
                yield Difference(inner, (f"- {_short(_text(before[key]))}",))
            elif key not in before:
                yield Difference(inner, (f"+ {_short(_text(after[key]))}",))
            elif key == "ttir":
                if lines := _ttir_difference(before[key], after[key]):
                    yield Difference(inner, tuple(lines))
            else:
                yield from _walk(inner, before[key], after[key])
        return
    if _records(before) and _records(after):
        old, new = _by_identity(before), _by_identity(after)
        if old is not None and new is not None:
            yield from _walk_named(field, old, new)
            return
        if len(before) == len(after):
            for number, (a, b) in enumerate(zip(before, after, strict=True)):
                yield from _walk(f"{field}[{number}]", a, b)
            return
        texts = ([_text(item) for item in items] for items in (before, after))
        lines = difflib.unified_diff(*texts, "before", "after", n=0, lineterm="")
        yield Difference(field, tuple(map(_short, lines)))
        return
    yield Difference(field, _replaced(_text(before), _text(after)))


def _walk_named(field: str, old: dict, new: dict):
    for key, value in old.items():
        if key not in new:
            yield Difference(f"{field}[{key}]", (f"- {_short(_text(value))}",))
        else:
            yield from _walk(f"{field}[{key}]", value, new[key])
    for key, value in new.items():
        if key not in old:
            yield Difference(f"{field}[{key}]", (f"+ {_short(_text(value))}",))
    orders = [[key for key in these if key in others] for these, others in ((old, new), (new, old))]
    if orders[0] != orders[1]:
        lines = (f"{sign} {', '.join(order)}" for sign, order in zip("-+", orders, strict=True))
        yield Difference(f"{field}.order", tuple(lines))


def compare(before: dict, after: dict) -> list[Difference]:
    """Return how two answers differ, each a `plan`, or the text of an `error` in place of one."""
    if "plan" in before and "plan" in after:
        return list(_walk("", before["plan"], after["plan"]))
    old, new = (f"{kind}: {value}" for kind, value in map(_outcome, (before, after)))
    return [] if old == new else [Difference("error", (f"- {old}", f"+ {new}"))]


def _outcome(answer: dict) -> tuple[str, str]:
    return ("error", answer["error"]) if "error" in answer else ("plan", answer["plan"]["kernel"])
