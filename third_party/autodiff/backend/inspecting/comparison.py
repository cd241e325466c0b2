"""Reports differences of plans, except those that are accepted with a reason."""

from __future__ import annotations

import collections
import fnmatch
import json
from pathlib import Path
from typing import NamedTuple

from ..errors import AutodiffError
from .differences import Difference
from .stored_plans import Found


class Accepted(NamedTuple):
    """Accepted differences: patterns of kernels, targets and fields, and the reason."""

    kernel: str
    target: str
    field: str
    reason: str

    def covers(self, found: Found, difference: Difference) -> bool:
        """Return whether it accepts a difference."""
        pairs = (
            (found.key, self.kernel),
            (found.target, self.target),
            (difference.kind, self.field),
        )
        return all(fnmatch.fnmatchcase(text, pattern) for text, pattern in pairs)


def read_accepted(path) -> list[Accepted]:
    """Read a file of accepted differences, with lines `KERNEL TARGET FIELD: reason`; `*` matches
    any text.
    """
    accepted = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        # Targets contain a colon, too, but without a space behind it.
        patterns, _, reason = line.partition(": ")
        words = patterns.split()
        if len(words) != 3 or not reason.strip():
            raise AutodiffError(
                f"{path}:{number}: expected KERNEL TARGET FIELD: reason, got {line.strip()!r}"
            )
        accepted.append(Accepted(*words, reason.strip()))
    return accepted


class Report:
    """Differences sorted into those that are accepted and others."""

    def __init__(self, found: list[Found], accepted: list[Accepted]):
        self.plans = len(found)
        self.others: list[Found] = []
        self.agreed: list[tuple[Found, list[str]]] = []
        used = set()
        for one in found:
            left, reasons = [], []
            for difference in one.differences:
                by = next((a for a in accepted if a.covers(one, difference)), None)
                if by is None:
                    left.append(difference)
                else:
                    used.add(by)
                    reasons.append(by.reason)
            if left:
                self.others.append(one._replace(differences=left))
            elif reasons:
                self.agreed.append((one, list(dict.fromkeys(reasons))))
        self.unused = [a for a in accepted if a not in used]

    def as_json(self) -> str:
        """Return the differences that are not accepted, as a JSON list."""
        return json.dumps(
            [
                {"kernel": f.key, "target": f.target, "field": d.field, "lines": d.lines}
                for f in self.others
                for d in f.differences
            ],
            indent=1,
        )

    def text(self, most: int) -> str:
        """Return a text for people, with at most so many lines for a field (0: all)."""
        groups: dict = {}
        for one in self.others:
            groups.setdefault((one.key, tuple(one.differences)), []).append(one.target)
        lines = []
        for (key, differences), targets in groups.items():
            kinds = ", ".join(dict.fromkeys(d.kind for d in differences))
            lines.append(f"{key} ({', '.join(targets)}): {kinds}")
            for difference in differences:
                shown = difference.lines[: most or None]
                lines.append(f"  {difference.field}")
                lines += [f"    {line}" for line in shown]
                if more := len(difference.lines) - len(shown):
                    lines.append(f"    … {more} more lines")
        for one, reasons in self.agreed:
            lines.append(f"{one.key} ({one.target}): accepted, {'; '.join(reasons)}")
        for a in self.unused:
            lines.append(f"nothing is {a.kernel} {a.target} {a.field}: {a.reason}")
        counts = collections.Counter(
            kind for one in self.others for kind in {d.kind for d in one.differences}
        )
        same = self.plans - len(self.others) - len(self.agreed)
        lines.append(
            f"{self.plans} plans: {same} the same, {len(self.agreed)} accepted, "
            f"{len(self.others)} different"
        )
        lines += [f"{count:6} {kind}" for kind, count in sorted(counts.items())]
        return "\n".join(lines)
