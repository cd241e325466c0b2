"""The picture of the page: ours over theirs, every case, sorted, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

_WIDTH, _HEIGHT = 960, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 20, 44, 40
# How many points have names, at either end.
_NAMED = 4
_SLOWER, _FASTER, _INK, _FAINT = "#b5482f", "#2f6db5", "#333", "#ccc"


class Point(NamedTuple):
    """A case, and its ratio."""

    name: str
    ratio: float
    # Whether it takes so little time that the ratio is not meaningful.
    short: bool


def _text(x: float, y: float, text: str, anchor="start", size=12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
        f'fill="{_INK}">{text}</text>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, color: str, dashes="") -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}"{dashed}/>'
    )


def picture(points: Sequence[Point], title: str) -> str:
    """All points in the order of their ratios, on a logarithmic axis."""
    points = sorted(points, key=lambda p: p.ratio)
    logs = [math.log2(p.ratio) for p in points] or [0.0]
    low, high = min(-1, math.floor(min(logs))), max(1, math.ceil(max(logs)))
    wide, tall = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def down(log: float) -> float:
        return _TOP + tall * (high - log) / (high - low)

    def along(index: int) -> float:
        return _LEFT + wide * (index + 0.5) / max(len(points), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="sans-serif">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        _text(_LEFT, 20, title, size=14),
    ]
    for log in range(low, high + 1):
        y = down(log)
        parts.append(_line(_LEFT, y, _WIDTH - _RIGHT, y, _INK if log == 0 else _FAINT))
        label = f"{2**log}×" if log >= 0 else f"1/{2**-log}×"
        parts.append(_text(_LEFT - 8, y + 4, label, "end"))
    limit = down(math.log2(1.25))
    parts.append(_line(_LEFT, limit, _WIDTH - _RIGHT, limit, _SLOWER, "4 4"))
    for index, (point, log) in enumerate(zip(points, logs, strict=False)):
        color = _SLOWER if point.ratio > 1.25 else _FASTER
        inside = "white" if point.short else color
        parts.append(
            f'<circle cx="{along(index):.1f}" cy="{down(log):.1f}" r="3" fill="{inside}" '
            f'stroke="{color}"><title>{point.name}: {point.ratio:.2f}</title></circle>'
        )
    for index, point in enumerate(points):
        if index < _NAMED:
            parts.append(_text(along(index) + 8, down(logs[index]) + 4, point.name, size=10))
        elif index >= len(points) - _NAMED:
            parts.append(_text(along(index) - 8, down(logs[index]) + 4, point.name, "end", 10))
    legend = "above 1: ours takes longer; dashed: 1.25; hollow: less than 30 µs"
    parts += [_text(_LEFT, _HEIGHT - 12, legend), "</svg>"]
    return "\n".join(parts) + "\n"
