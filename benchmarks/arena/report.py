"""The page of the arena, from the rows of its runs: a summary with a picture, then the table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from .judge import AGREE, NEITHER, OURS_RIGHT, THEIRS_RIGHT, UNDECIDED
from .packages import installed, plugins
from .picture import Point, picture
from .rows import JUDGED, TIMED, key, read

# For shorter times, the number of launches is all that matters.
SHORT_US = 30.0
_MUCH = 1.25
_WORDS = {
    AGREE: "agree",
    OURS_RIGHT: "ours right",
    THEIRS_RIGHT: "theirs right",
    NEITHER: "neither",
    UNDECIDED: "undecided",
}
_FAILED, _REFUSED = "ours failed", "refused"
_TITLES = {
    THEIRS_RIGHT: "Theirs is right, ours is off",
    NEITHER: "Both are off",
    UNDECIDED: "Undecided",
    OURS_RIGHT: "Ours is right, theirs is off",
}

_ABOUT = Path(__file__).with_name("about.md")


def verdict(row: dict) -> str:
    """A row's verdict in two words."""
    if "failed" in row:
        return _REFUSED if row["failed"] == row.get("refused") else _FAILED
    return _WORDS[row["verdict"]]


def name(row: dict) -> str:
    """The name of a case on the page."""
    return f"{row['package'].split('_')[0]} {row['case']}"


def where(row: dict) -> str:
    """The name of a variant."""
    return f"{name(row)}, {row['size']} {row['dtype']}"


def ratio(row: dict) -> float | None:
    """Our time divided by theirs."""
    times = row.get("us", {})
    if min(times.get("ours", 0), times.get("theirs", 0)) <= 0:
        return None
    return times["ours"] / times["theirs"]


def both(row: dict | None, what: str) -> tuple[float, float] | None:
    """A measurement of the first call, for both sides."""
    row = row or {}
    first = row.get("first") or row.get("again") or {}
    sides = [first.get(who, {}) for who in ("theirs", "ours")]
    if any(what not in side for side in sides):
        return None
    return sides[0][what], sides[1][what]


def _mean(ratios: Iterable[float]) -> str:
    logs = [math.log(r) for r in ratios]
    return f"{math.exp(sum(logs) / len(logs)):.2f}" if logs else "–"


def _table(header: list[str], lines: list[list[str]]) -> list[str]:
    rows = [header, ["---"] * len(header), *lines]
    return ["| " + " | ".join(cells) + " |" for cells in rows] + [""]


def _listed(title: str, items: list[str]) -> list[str]:
    """A list under a title, or a line that it is empty."""
    return (
        [f"{title}:", "", *(f"- {item}" for item in items), ""]
        if items
        else [f"{title}: none.", ""]
    )


def _evidence(row: dict, word: str) -> str:
    """The errors of gradients."""
    parts = []
    for gradient in row["gradients"]:
        if gradient["verdict"] == word:
            evidence = gradient.get("evidence", [])
            off = [max((abs(e[side]) for e in evidence), default=0.0) for side in (1, 2, 3)]
            parts.append("{} (theirs {:.2g}, ours {:.2g}, ± {:.0g})".format(gradient["name"], *off))
    return f"{', '.join(parts)}; by {row.get('judge', 'nothing')}"


class Page:
    """The page, made from existing rows."""

    def __init__(self, judged: dict, timed: dict):
        self.judged = judged
        self.timed = timed
        self.variants = sorted({k[2:] for k in judged}, reverse=True)
        # For each case, the row of times that counts: half precision where possible.
        self.main: dict[tuple, dict] = {}
        for row in timed.values():
            case = key(row)[:2]
            if ratio(row) and (case not in self.main or self.main[case]["dtype"] == "float32"):
                self.main[case] = row

    def write(self) -> str:
        """The page as markdown."""
        parts = [self._about(), self._verdicts(), self._costs(), self._differences()]
        parts += [self._judge(), self._left_out(), self._rows()]
        return (
            "\n".join(["# The arena", "", *(line for part in parts for line in part)]).rstrip()
            + "\n"
        )

    def points(self) -> list[Point]:
        """The points of the picture."""
        return [
            Point(name(row), ratio(row), max(row["us"].values()) < SHORT_US)
            for row in self.main.values()
        ]

    def _about(self) -> list[str]:
        rows = [*self.judged.values(), *self.timed.values()]
        machines = sorted({tuple(row["machine"].items()) for row in rows})
        told = [
            ", ".join(value if k == "device" else f"{k} {value}" for k, value in machine)
            for machine in machines
        ]
        cases = len({k[:2] for k in self.judged})
        return [_ABOUT.read_text().format(cases=cases, machines="; ".join(told) or "nothing")]

    def _verdicts(self) -> list[str]:
        words = [*_WORDS.values(), _FAILED, _REFUSED]
        lines = []
        for variant in self.variants:
            rows = [row for k, row in self.judged.items() if k[2:] == variant]
            counts = Counter(map(verdict, rows))
            lines.append([", ".join(variant), str(len(rows)), *(str(counts[w]) for w in words)])
        left = self._count_left()
        said = [
            "A case is judged by the worst of its gradients. *Neither* means that both are off. "
            "*Refused* means that the package raises an error here, and ours raises the same one.",
            "",
        ]
        if left:
            said += [f"{left} variants of cases have not been run.", ""]
        return ["## Verdicts", "", *said, *_table(["size, dtype", "cases", *words], lines)]

    def _count_left(self) -> int:
        """How many variants of installed packages have no row."""
        return sum(
            (package, case.name, *variant) not in self.judged
            for package, plugin in plugins().items()
            if installed(plugin)
            for case in plugin.cases()
            for variant in case.variants()
        )

    def _costs(self) -> list[str]:
        lines = ["## What it costs", ""]
        if not self.main:
            return [*lines, "Not measured yet.", ""]
        ratios = [p.ratio for p in self.points()]
        long = [p.ratio for p in self.points() if not p.short]
        kept = [pair for row in self.main.values() if (pair := both(row, "kept")) and pair[0] > 0]
        more = sum(ours > _MUCH * theirs for theirs, ours in kept)
        above = sum(r > _MUCH for r in ratios)
        said = (
            "The ratio of a case is our GPU time over theirs, of the backward at users' sizes. "
            "Where their forward makes the gradients, it is of forward and backward together. The "
            f"geometric mean is {_mean(ratios)} over {len(ratios)} cases, and {_mean(long)} over "
            f"the {len(long)} that take at least {SHORT_US:.0f} µs. {above} ratios are above "
            f"{_MUCH}. After the forward, ours keeps more than {_MUCH} times the memory in {more} "
            f"of {len(kept)} cases."
        )
        return [*lines, said, "", "![ours over theirs, every case](arena.svg)", ""]

    def _differences(self) -> list[str]:
        rows = self.judged.values()
        said = (
            "A line has a case, and those of its gradients on which the verdict rests. In brackets "
            "stands how far each side is off at most along one direction, relative to the "
            "gradient, and after ± the error of the slope. The last words say where slopes come "
            "from."
        )
        lines = ["## Where they differ", "", said, ""]
        for word, title in _TITLES.items():
            found = [row for row in rows if row.get("verdict") == word]
            lines += _listed(title, [f"{where(row)}: {_evidence(row, word)}" for row in found])
        failed = [row for row in rows if verdict(row) == _FAILED]
        return lines + _listed("Ours failed", [f"{where(row)}: {row['failed']}" for row in failed])

    def _judge(self) -> list[str]:
        rows = [row for row in self.judged.values() if "spoilt" in row]
        made = sum(row["spoilt"]["made"] for row in rows)
        missed = [f"{where(row)}: {what}" for row in rows for what in row["spoilt"]["missed"]]
        notes = [(row, note) for row in self.judged.values() for note in row.get("notes", ())]
        found = [f"{where(r)}: {n}" for r, n in notes if "nobody wrote" in n or "finite" in n]
        said = (
            "The judge has to find gradients that are wrong on purpose. In place of theirs, and of "
            "ours, each gradient is replaced by three: scaled by 1.02, without its last tile, and "
            f"with the sign of a tile swapped. {made} made, in {len(rows)} rows."
        )
        lines = ["## The judge, judged", "", said, "", *_listed("Not found", missed)]
        return lines + _listed("Found besides", found)

    def _left_out(self) -> list[str]:
        lines = [
            f"{plugin.MODULES[0]}: {what}: {why}"
            for plugin in plugins().values()
            for what, why in plugin.EXCLUDED.items()
        ]
        refused: dict[str, dict] = {}
        for row in self.judged.values():
            if "refused" in row:
                refused.setdefault(row["refused"], {})[name(row)] = None
        return [
            "## Left out",
            "",
            *_listed("No cases", lines),
            *_listed(
                "The package raises an error here; ours is judged alone, if the forward runs",
                [f"{', '.join(names)}: {why}" for why, names in refused.items()],
            ),
        ]

    def _rows(self) -> list[str]:
        header = ["package", "case", *map(" ".join, self.variants)]
        header += ["theirs, µs", "ours, µs", "ratio", "theirs, MB", "ours, MB"]
        header += ["theirs, first s", "ours, first s"]
        cases = list(dict.fromkeys(k[:2] for k in self.judged))
        cases.sort(key=lambda case: -ratio(self.main[case]) if case in self.main else 0.0)
        said = (
            "The largest ratio comes first. In brackets stands how far the two gradients are apart "
            "(relative L2, of the leaf that differs most; a leaf is an input with a gradient). "
            "Memory is what is left after the forward, outputs included. The last two columns are "
            "the first gradient with an empty cache: their backward; our forward and backward, "
            "once the plain forward is compiled."
        )
        table = _table(header, [self._line(case) for case in cases])
        return ["## The table", "", said, "", *table]

    def _line(self, case: tuple) -> list[str]:
        rows = [row for k, row in self.judged.items() if k[:2] == case]
        cells = {key(row)[2:]: _cell(row) for row in rows}
        line = [case[0].split("_")[0], case[1], *(cells.get(v, "") for v in self.variants)]
        timed = self.main.get(case)
        times = ["", "", ""]
        if timed:
            times = [f"{timed['us'][who]:.0f}" for who in ("theirs", "ours")]
            times.append(f"{ratio(timed):.2f}")
        first = next((row for row in rows if "first" in row), None)
        forward, backward = both(first, "forward_s"), both(first, "backward_s")
        seconds = (backward[0], forward[1] + backward[1]) if forward and backward else None
        kept = both(timed, "kept") or both(first, "kept")
        megabytes = kept and tuple(x / 2**20 for x in kept)
        return [*line, *times, *_numbers(megabytes, "{:.0f}"), *_numbers(seconds, "{:.1f}")]


def _cell(row: dict) -> str:
    worst = max((g["difference"] for g in row.get("gradients", ())), default=None)
    return verdict(row) + ("" if worst is None else f" ({worst:.0e})")


def _numbers(pair, shown: str) -> list[str]:
    return ["", ""] if pair is None else [shown.format(x) for x in pair]


def write(folders: Iterable[Path], page: Path) -> None:
    """Write the page, and the picture beside it."""
    folders = list(folders)
    made = Page(read(folders, JUDGED), read(folders, TIMED))
    page.write_text(made.write())
    points = made.points()
    title = f"GPU time of the backward, ours over theirs: {len(points)} cases"
    page.with_suffix(".svg").write_text(picture(points, title))
