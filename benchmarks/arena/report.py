"""The page of the arena, from the rows of its runs: a summary with a picture, then the table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from .judge import AGREE, NEITHER, OURS, THEIRS, UNDECIDED
from .packages import plugins
from .picture import Point, picture
from .rows import JUDGED, TIMED, key, read

# Below this, a launch more or less is all there is to see.
_SHORT_US = 30.0
_MUCH = 1.25
_WORDS = {
    AGREE: "agree",
    OURS: "ours right",
    THEIRS: "theirs right",
    NEITHER: "neither",
    UNDECIDED: "undecided",
}
_FAILED, _REFUSED = "ours failed", "theirs refused"


def verdict(row: dict) -> str:
    """A row in two words."""
    if "failed" in row:
        return "refused" if "refused" in row and row["failed"] == row["refused"] else _FAILED
    return _WORDS[row["verdict"]]


def _mean(ratios: Iterable[float]) -> str:
    logs = [math.log(r) for r in ratios]
    return f"{math.exp(sum(logs) / len(logs)):.2f}" if logs else "–"


def _ratio(row: dict | None) -> float | None:
    """Our time over theirs."""
    times = (row or {}).get("us", {})
    if times.get("ours", 0) > 0 and times.get("theirs", 0) > 0:
        return times["ours"] / times["theirs"]
    return None


def _share(row: dict | None, what: str) -> tuple[float, float] | None:
    """What both sides took at their first call."""
    first = (row or {}).get("first") or (row or {}).get("again") or {}
    sides = [first.get(who, {}) for who in ("theirs", "ours")]
    if any(what not in side for side in sides):
        return None
    return sides[0][what], sides[1][what]


def _name(row: dict) -> str:
    return f"{row['package'].split('_')[0]} {row['case']}"


def _table(header: list[str], lines: list[list[str]]) -> list[str]:
    rows = [header, ["---"] * len(header), *lines]
    return ["| " + " | ".join(cells) + " |" for cells in rows] + [""]


class Page:
    """What the page says, from the rows that there are."""

    def __init__(self, judged: dict, timed: dict):
        self.judged = list(judged.values())
        self.timed = list(timed.values())
        self.by_key = judged
        machines = {tuple(sorted(row["machine"].items())) for row in [*self.judged, *self.timed]}
        self.machines = [dict(m) for m in sorted(machines)]
        self.variants = sorted({(r["size"], r["dtype"]) for r in self.judged}, reverse=True)

    def write(self) -> str:
        """The page as markdown."""
        lines = ["# The arena", "", *self._intro(), *self._verdicts(), *self._costs()]
        lines += [*self._differences(), *self._judge(), *self._left_out(), *self._rows()]
        return "\n".join(lines).rstrip() + "\n"

    def _intro(self) -> list[str]:
        machines = "; ".join(
            ", ".join([m["device"], *(f"{k} {v}" for k, v in m.items() if k != "device")])
            for m in self.machines
        )
        cases = len({key(row)[:2] for row in self.judged})
        return [
            f"{cases} wrappers of public packages, each differentiated twice: by the backward "
            "that its authors wrote, and by ours of the same forward. Where the two differ by "
            "more than rounding, slopes of the forward say who is right: differences of the "
            "forward along the difference of the gradients, in float64 where the size allows it, "
            "or the gradients of a reference in plain PyTorch in float64. Memory that nobody "
            "wrote holds NaN.",
            "",
            f"Run on {machines or 'nothing yet'}. `make arena` runs it, and "
            "`python -m arena report FOLDER …` in `benchmarks/` writes this page. No kernel is "
            "tuned, on either side: the first configuration of each autotuner is taken.",
            "",
        ]

    def _verdicts(self) -> list[str]:
        lines = []
        for size, dtype in self.variants:
            rows = [r for r in self.judged if (r["size"], r["dtype"]) == (size, dtype)]
            counts = Counter(verdict(row) for row in rows)
            names = [*_WORDS.values(), _FAILED, "refused"]
            lines.append([f"{size}, {dtype}", str(len(rows)), *(str(counts[n]) for n in names)])
        header = ["size, dtype", "cases", *_WORDS.values(), _FAILED, "refused"]
        return ["## Verdicts", "", *_table(header, lines)]

    def _ratios(self) -> dict[tuple, float]:
        found = {key(row): _ratio(row) for row in self.timed}
        return {name: ratio for name, ratio in found.items() if ratio is not None}

    def _main_ratios(self) -> dict[tuple, float]:
        """Of each case the first dtype at users' sizes: half precision where there is one."""
        found = {}
        for name, ratio in self._ratios().items():
            other = next((k for k in found if k[:3] == name[:3]), None)
            if other is None or other[3] == "float32":
                found.pop(other, None)
                found[name] = ratio
        return found

    def _costs(self) -> list[str]:
        ratios = self._main_ratios()
        times = {key(row): row["us"] for row in self.timed if "us" in row}
        long = {k: r for k, r in ratios.items() if max(times[k].values()) >= _SHORT_US}
        lines = ["## What it costs", ""]
        if not ratios:
            return [*lines, "Not measured yet.", ""]
        above = sum(r > _MUCH for r in ratios.values())
        memory = [s for s in (_share(self.by_key.get(k), "kept") for k in ratios) if s and s[0] > 0]
        more = sum(ours > _MUCH * theirs for theirs, ours in memory)
        return [
            *lines,
            f"GPU time of the backward (of forward and backward, where their forward makes the "
            f"gradients), ours over theirs, at users' sizes: geometric mean {_mean(ratios.values())} "
            f"over {len(ratios)} cases, {_mean(long.values())} over the {len(long)} that take at "
            f"least {_SHORT_US:.0f} µs; {above} are above {_MUCH}. After the forward, ours keeps "
            f"more than {_MUCH} times the memory in {more} of {len(memory)}.",
            "",
            "![ours over theirs, every case](arena.svg)",
            "",
        ]

    def _differences(self) -> list[str]:
        lines = ["## Where they differ", ""]
        titles = {
            OURS: "Ours is right, theirs is off",
            THEIRS: "Theirs is right, ours is off",
            NEITHER: "Both are off",
            UNDECIDED: "Undecided",
        }
        for word, title in titles.items():
            rows = [row for row in self.judged if row.get("verdict") == word]
            if word != OURS or rows:
                lines += [f"{title}: {'none.' if not rows else ''}", ""]
            for row in rows:
                lines.append(
                    f"- {_name(row)}, {row['size']} {row['dtype']}: {_evidence(row, word)}"
                )
            lines += [""] if rows else []
        failed = [row for row in self.judged if verdict(row) == _FAILED]
        if failed:
            lines += ["Ours failed:", ""]
            lines += [
                f"- {_name(row)}, {row['size']} {row['dtype']}: {row['failed']}" for row in failed
            ]
            lines.append("")
        return lines

    def _judge(self) -> list[str]:
        spoilt = [(row, row["spoilt"]) for row in self.judged if "spoilt" in row]
        made = sum(s["made"] for _, s in spoilt)
        lines = [
            "## The judge",
            "",
            "Gradients scaled by 1.02, without their last tile, or with the sign of a tile swapped, "
            f"in place of a right one: {made} made, in {len(spoilt)} rows, "
            f"{sum(len(s['missed']) for _, s in spoilt)} not named wrong.",
            "",
        ]
        for row, s in spoilt:
            for missed in s["missed"]:
                lines.append(f"- {_name(row)}, {row['size']} {row['dtype']}: {missed}")
        notes = [(row, note) for row in self.judged for note in row.get("notes", ())]
        told = [(row, note) for row, note in notes if "nobody wrote" in note or "finite" in note]
        if told:
            lines += ["", "Found besides:", ""]
            lines += [f"- {_name(r)}, {r['size']} {r['dtype']}: {note}" for r, note in told]
        return [*lines, ""]

    def _left_out(self) -> list[str]:
        lines = ["## Left out", ""]
        for plugin in plugins().values():
            package = plugin.MODULES[0]
            lines += [f"- {package}: {name}: {why}" for name, why in plugin.EXCLUDED.items()]
        refused: dict[str, list[str]] = {}
        for row in self.judged:
            if "refused" in row:
                names = refused.setdefault(row["refused"], [])
                names += [_name(row)] if _name(row) not in names else []
        if refused:
            lines += [
                "",
                "Refused by the package here; ours is judged alone, if its forward runs:",
                "",
            ]
            lines += [f"- {', '.join(names)}: {why}" for why, names in refused.items()]
        return [*lines, ""]

    def _rows(self) -> list[str]:
        header = ["package", "case", *(f"{size} {dtype}" for size, dtype in self.variants)]
        header += ["theirs µs", "ours µs", "ratio", "kept MB, theirs", "ours"]
        header += ["first s, theirs", "ours"]
        times = {k: row for row in self.timed for k in [key(row)]}
        main = {k[:2]: k for k in self._main_ratios()}
        lines = []
        for package, case in dict.fromkeys(key(row)[:2] for row in self.judged):
            found = {key(r)[2:]: r for r in self.judged if key(r)[:2] == (package, case)}
            line = [package.split("_")[0], case]
            line += [_cell(found.get(variant)) for variant in self.variants]
            chosen = main.get((package, case))
            line += _time_cells(times.get(chosen))
            measured = [r for r in found.values() if "first" in r]
            row = self.by_key.get(chosen) or (measured[0] if measured else None)
            line += _pair_cells(_share(row, "kept"), 2**-20, "{:.0f}")
            first = next((r for r in measured), None)
            theirs, ours = _share(first, "backward_s"), _share(first, "forward_s")
            both = (theirs[0], theirs[1] + ours[1]) if theirs and ours else None
            lines.append(line + _pair_cells(both, 1.0, "{:.1f}"))
        order = {k[:2]: -r for k, r in self._main_ratios().items()}
        keys = list(dict.fromkeys(key(row)[:2] for row in self.judged))
        lines = [
            line
            for _, line in sorted(zip(keys, lines, strict=True), key=lambda p: order.get(p[0], 0))
        ]
        return [
            "## The table",
            "",
            "Slowest first. In brackets, by how much the gradients differ (relative L2, the worst "
            "leaf). Memory is what the forward leaves. The first gradient, with an empty cache: their "
            "backward; our forward and backward, after the plain forward was compiled.",
            "",
            *_table(header, lines),
        ]


def _evidence(row: dict, word: str) -> str:
    """By how much which gradients are off."""
    parts = []
    for gradient in row["gradients"]:
        if gradient["verdict"] != word:
            continue
        evidence = gradient.get("evidence", [])
        theirs, ours = (max((abs(e[i]) for e in evidence), default=0.0) for i in (1, 2))
        error = max((e[3] for e in evidence), default=0.0)
        parts.append(f"{gradient['name']} (theirs {theirs:.2g}, ours {ours:.2g}, ± {error:.1g})")
    return ", ".join(parts) + f"; by {row.get('judge', 'nothing')}"


def _cell(row: dict | None) -> str:
    if row is None:
        return ""
    worst = max((g["difference"] for g in row.get("gradients", ())), default=None)
    return verdict(row) + ("" if worst is None else f" ({worst:.0e})")


def _time_cells(row: dict | None) -> list[str]:
    ratio = _ratio(row)
    if ratio is None:
        return ["", "", ""]
    return [f"{row['us']['theirs']:.0f}", f"{row['us']['ours']:.0f}", f"{ratio:.2f}"]


def _pair_cells(pair, scale: float, shown: str) -> list[str]:
    return ["", ""] if pair is None else [shown.format(x * scale) for x in pair]


def write(folders: Iterable[Path], page: Path) -> None:
    """Write the page, and the picture beside it."""
    folders = list(folders)
    made = Page(read(folders, JUDGED), read(folders, TIMED))
    page.write_text(made.write())
    times = {key(row): row["us"] for row in made.timed if "us" in row}
    points = [
        Point(name[1], ratio, max(times[name].values()) < _SHORT_US)
        for name, ratio in made._main_ratios().items()
    ]
    title = f"GPU time of the backward, ours over theirs: {len(points)} cases"
    page.with_suffix(".svg").write_text(picture(points, title))
