"""Remarks: which schedules the compiler tried for a plan, and why each was not possible.

Passes make remarks while they decide (docs/mechanisms.md), but only if they are asked for: for a
cached plan, the passes run again.
"""

from __future__ import annotations

import functools
import json
import os
from typing import NamedTuple

from ..errors import AutodiffError
from ..library import native

# The name of remarks that say why a backward cannot be deterministic.
_REFUSED = "deterministic"


class Remark(NamedTuple):
    """What became of one schedule: whether it was used, where, for which gradient, and why."""

    schedule: str
    taken: bool
    kernel: str
    position: str
    reason: str
    argument: int | None

    def line(self) -> str:
        """Return the remark as a line of text."""
        where = f" at {place(self.position)}" if self.position else f" of {self.kernel}"
        return f"{self.schedule}{where}: {'yes' if self.taken else 'no'}: {self.reason}"


def place(position: str) -> str:
    """Return "file:line" of a position, without the directory."""
    path, *rest = position.rsplit(":", 2)
    return ":".join([os.path.basename(path), *rest[:1]]) if position else "an unknown line"


@functools.lru_cache(maxsize=64)
def remarks_for(asked: tuple[str, str, str]) -> tuple[Remark, ...]:
    """Return the remarks of the passes that answer a request, in order."""
    ttir, request, name = asked
    explain = json.dumps({**json.loads(request), "explain": True}, sort_keys=True)
    answer = native().differentiate(ttir, explain, file_name=f"<ttir of {name}>")
    return tuple(
        Remark(
            entry["schedule"],
            entry["taken"],
            entry["kernel"],
            entry["position"],
            entry["reason"],
            entry.get("argument"),
        )
        for entry in json.loads(answer)
    )


def unchecked(asked: tuple[str, str, str]) -> tuple[str, str, str]:
    """Return a request as it was before checks of addresses failed at a launch."""
    ttir, request, name = asked
    known = {**json.loads(request), "atomic": [], "repeated": []}
    return ttir, json.dumps(known, sort_keys=True), name


def refusal(asked: tuple[str, str, str]) -> str:
    """Return the reasons why a deterministic backward was refused, as lines.

    Empty if something else was refused.
    """
    try:
        remarks = remarks_for(asked)
    except AutodiffError:  # a text or a request that no pass has seen
        return ""
    refused = {r.argument for r in remarks if r.schedule == _REFUSED}
    return _lines(r for r in remarks if r.argument in refused)


def in_the_way(plan, arguments) -> str:
    """Return the reasons against other schedules for the gradients of arguments, as lines."""
    remarks = () if plan.asked is None else remarks_for(plan.asked)
    return _lines(r for r in remarks if r.argument in arguments)


def _lines(remarks) -> str:
    why = [r for r in remarks if not r.taken and r.schedule != _REFUSED]
    lines = dict.fromkeys(f"\n  {remark.line()}" for remark in why)
    return "\nWhat stands in the way:" + "".join(lines) if lines else ""
