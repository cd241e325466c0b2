"""A table of how the compiler's choices differ between devices, from recorded plans.

`python -m triton_autodiff corpus --choices FILE` counts, for each device and each kind of choice,
the kernels for which the choice differs from that for sm_90, where all of them were measured.
"""

from __future__ import annotations

import json
import re

from ..errors import AutodiffError
from ..plans.target import name_of, parse_target
from .corpus import kernels_of

BASE = "cuda:90"
_PRODUCT = re.compile(r"tt\.dot .* : (.*?)(?: loc|$)", re.MULTILINE)
_STAGES = re.compile(r"tt\.num_stages = (\d+)")


def _options(kernels, *names):
    return [[kernel.get("options", {}).get(name) for name in names] for kernel in kernels]


def choices(plan: dict) -> dict[str, list]:
    """Return a plan's choices by kind, in a form that can be compared."""
    kernels = kernels_of(plan)
    tallied = [gradient.get("tallied") for gradient in plan["gradients"]]
    return {
        "values that are saved or handed over": [(b["name"], b["dtype"]) for b in plan["buffers"]],
        "kernels and variants": [kernel["name"] for kernel in kernels],
        "products and their tiles": [_PRODUCT.findall(kernel["ttir"]) for kernel in kernels],
        "warps": _options(kernels, "num_warps", "least_warps"),
        "stages of products": _options(kernels, "num_stages"),
        "stages of other loops": [_STAGES.findall(kernel["ttir"]) for kernel in kernels],
        "programs": [kernel["grid"] for kernel in kernels],
        "iterations on an axis": [
            entry for step in plan.get("next", ()) for entry in step if entry.get("ask") == "axes"
        ],
        "when additions are counted first": [found and found["tally"]["when"] for found in tallied],
    }


def _plan(stored, target: str) -> dict | None:
    answer = stored.answers.get(target, {})
    return json.loads(answer["plan"]) if "plan" in answer else None


def table(corpus) -> str:
    """Return the table for stored plans, in Markdown."""
    corpus = list(corpus)
    targets = [t for t in (corpus[0].answers if corpus else ()) if t != BASE]
    if not corpus or BASE not in corpus[0].answers or not targets:
        raise AutodiffError(f"choices are compared with those for {BASE}, and others: record both")
    counts: dict[str, dict[str, int]] = {"any of these": dict.fromkeys(targets, 0)}
    for stored in corpus:
        plans = {target: _plan(stored, target) for target in (BASE, *targets)}
        if None in plans.values():
            continue
        base = choices(plans[BASE])
        for target in targets:
            own = choices(plans[target])
            other = [kind for kind in base if own[kind] != base[kind]]
            for kind in base:
                counts.setdefault(kind, dict.fromkeys(targets, 0))
                counts[kind][target] += kind in other
            counts["any of these"][target] += bool(other)
    names = [name_of(parse_target(target)) for target in targets]
    lines = [f"| {len(corpus)} kernels | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for kind, found in counts.items():
        lines.append(f"| {kind} | {' | '.join(str(found[t]) for t in targets)} |")
    return "\n".join([*lines[:2], *lines[3:], lines[2]])
