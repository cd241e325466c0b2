"""Gradients that meet in atomic operations: kernel and argument, and why no plan has stores.

    PYTHONPATH=benchmarks python -m arena atomics --out FOLDER [--sizes users]

A pair of a kernel and an argument counts once, whatever launches it. So does an upstream gradient
that is copied, so that each element is taken once.
"""

from __future__ import annotations

from collections.abc import Iterable

from .problem import OURS, Problem

_GRADIENT, _UPSTREAM = "  gradient of ", "  upstream gradient of "


def found_in(explained: str) -> list[dict]:
    """The gradients in what `explain()` says that are added or taken atomically, with reasons."""
    found: list[dict] = []
    kernel, last = "", None
    for line in explained.splitlines():
        if line.startswith("kernel "):
            kernel, last = line.split()[1].rstrip(":"), None
        elif line.startswith((_GRADIENT, _UPSTREAM)):
            what, _, how = line.partition(": ")
            last = None
            if "atomic" in how:
                last = {"kernel": kernel, "argument": what.split()[-1], "how": how, "why": []}
                last["upstream"] = line.startswith(_UPSTREAM)
                found.append(last)
        elif last is not None and ": no: " in line:
            last["why"].append(line.strip())
        elif not line.startswith("    "):
            last = None
    return found


def atomics(problem: Problem) -> dict:
    """The row of one variant: what meets in atomics in a forward and a backward of ours."""
    problem.backward(*problem.forward(OURS))
    return {"atomics": found_in(problem.kernels.explain())}


def summary(rows: Iterable[dict]) -> str:
    """Each pair of kernel and argument, with the wrappers that launch it."""
    pairs: dict[tuple, set] = {}
    for row in rows:
        for one in row.get("atomics", ()):
            key = (one["kernel"], one["argument"], one["upstream"])
            pairs.setdefault(key, set()).add(row["case"])
    lines = [
        f"{kernel}\t{argument}{' (upstream)' if upstream else ''}\t{', '.join(sorted(cases))}"
        for (kernel, argument, upstream), cases in sorted(pairs.items())
    ]
    return "\n".join([*lines, f"{len(pairs)} pairs of kernel and argument meet in atomics"])
