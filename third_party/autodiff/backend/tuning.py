"""Launch options of backward kernels by measurement, on the first backward of a specialisation.

Every backward kernel is timed by itself, on the operands of the backward at hand, but in memory
that is thrown away: kernels add to gradients and use up what others have left. Then come the same
kernels with wider tiles. What was found is kept with the plan, and in Triton's cache directory.
"""

from __future__ import annotations

import hashlib
import json
import time
from typing import NamedTuple

import torch
import triton
from triton import knobs
from triton.runtime.cache import get_cache_manager
from triton.runtime.driver import driver

from .cache import put, reads_disk
from .errors import AutodiffError
from .library import native

VERSION = 1
# By what factors tiles may be wider, beside what the compiler chooses by itself.
FACTORS = (1, 2, 4)
_WARPS = (4, 8)
_MOST_STAGES = 4
# A gain that could as well be noise is none.
_NOISE = 0.98
_TUNED = ("num_stages", "num_warps")

Choice = tuple[tuple[str, int], ...]


class Entry(NamedTuple):
    """Options for each kernel of a backward, and the milliseconds that all of them take."""

    milliseconds: float
    widen: int | None
    variants: tuple[str, ...]
    choices: tuple[Choice, ...]


def measures(device) -> bool:
    """Return whether it is worthwhile, and possible right now, to measure on a device."""
    return device.type != "cpu" and not torch.cuda.is_current_stream_capturing()


def benchmark(executable, grid, operands) -> float:
    """Return the milliseconds that a launch takes."""
    run = driver.active.get_benchmarker()
    return run(lambda: executable.launch(grid, operands), warmup=5, rep=20, return_mode="median")


def candidates(executable) -> list[Choice]:
    """Return the options to try for a compiled kernel, its own first."""
    own = {name: executable.options.get(name, 1) for name in _TUNED}
    stages = [own["num_stages"]]
    # Only loops have stages.
    if "scf.for" in executable.kernel.ttir:
        stages += [n for n in (stages[0] - 1, stages[0] + 1) if 1 <= n <= _MOST_STAGES]
    tried = {"num_stages": stages, "num_warps": [own["num_warps"], *_WARPS]}
    for name in executable.chosen.keys() & tried.keys():
        tried[name] = [own[name]]
    found = [
        (("num_stages", s), ("num_warps", w))
        for s in tried["num_stages"]
        for w in tried["num_warps"]
    ]
    return list(dict.fromkeys(found))


def prepare(execution) -> None:
    """Let what the wider backwards depend on be among the facts that tell launches apart."""
    if measures(execution.facts.device):
        for factor in FACTORS:
            _widened(execution, execution.backward, factor)


def tuned(execution, backward, given, counts):
    """Return a backward of an execution with the best options; None if it cannot be told now.

    `given` and `counts` are what the backward runs on.
    """
    backward.compile()
    rankings, variants = backward.handle.rankings, _variants(backward)
    if variants not in rankings:
        device = execution.facts.device
        path = _Path(backward, device)
        ranking = path.read()
        if ranking is None:
            if not measures(device):
                return None
            ranking = _measure_all(execution, backward, given, counts)
            if ranking:
                path.write(ranking)
        rankings[variants] = ranking
    for entry in rankings[variants]:
        found = _widened(execution, backward, entry.widen)
        if found is not None and _variants(found) == entry.variants:
            launches = zip(found.launches, entry.choices, strict=True)
            return found.with_executables(
                found.handle.otherwise(own, choice) for (own, *_), choice in launches
            )
    return backward


def _variants(backward) -> tuple[str, ...]:
    """Return what identifies the kernels that suit a launch, of those that the plan has."""
    return tuple(executable.kernel.digest for executable, *_ in backward.launches)


def _widened(execution, backward, factor):
    """Return a backward with wider tiles, None if it cannot be had."""
    if factor is None:
        return backward
    try:
        return execution.widened(backward, factor)
    except AutodiffError:
        return None


def _measure_all(execution, backward, given, counts) -> list[Entry]:
    """Return the options to use, the best first."""
    start = time.perf_counter()
    found = [_measure(backward, given, counts, None)]
    seen = [_variants(backward)]
    # Whoever chose a factor has chosen.
    for factor in FACTORS if execution.state.widen is None else ():
        wider = _widened(execution, backward, factor)
        if wider is not None and _variants(wider) not in seen:
            seen.append(_variants(wider))
            found.append(_measure(wider, given, wider.count_trips(given[0], given[3]), factor))
    ranking = [entry for entry in found if entry is not None]
    ranking.sort(key=lambda entry: entry.milliseconds)
    if knobs.autotuning.print and ranking:
        best = ranking[0]
        print(
            f"Triton-Autodiff tuned the backward of kernel {backward.plan.kernel} in "
            f"{time.perf_counter() - start:.2f}s: {best.milliseconds:.3f} ms with "
            f"{[dict(choice) for choice in best.choices]}, tiles widened by {best.widen}"
        )
    return ranking


def _measure(backward, given, counts, widen) -> Entry | None:
    """Return the best options of each kernel; None if one of them does not compile at all."""
    try:
        backward.compile()
    except AutodiffError:
        return None
    # Kernels read what those before them have left.
    scratch = backward.prepare(*given, counts)
    backward.launch(scratch)
    total, choices = 0.0, []
    for (own, grid, *_), operands in zip(backward.launches, scratch.operands, strict=True):
        times = _times(backward.handle, own, grid, operands)
        first = next(iter(times))
        best = min(times, key=times.get)
        if times[best] > _NOISE * times[first]:
            best = first
        backward.handle.keep(own, best)
        total += times[best]
        choices.append(best)
    return Entry(total, widen, _variants(backward), tuple(choices))


def _times(handle, own, grid, operands) -> dict[Choice, float]:
    """Return the milliseconds of a kernel by options, its own first, as far as they fit."""
    times = {}
    for choice in candidates(own):
        executable = handle.otherwise(own, choice)
        try:
            executable.compile()
        except Exception:  # whatever is wrong with options that nobody asked for
            continue
        times[choice] = 0.0 if 0 in grid else benchmark(executable, grid, operands)
    return times


class _Path:
    """The file that keeps what was found for a backward."""

    def __init__(self, backward, device):
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
        parts = [str(VERSION), native().version(), triton.__version__, name]
        for executable, *_ in backward.launches:
            options = (executable.chosen, executable.inherited, executable.target)
            parts += [executable.kernel.digest, str(options)]
        self._manager = get_cache_manager(hashlib.sha256("\0".join(parts).encode()).hexdigest())
        self._name = f"{backward.plan.kernel[:150]}.tuning.json"

    def read(self) -> list[Entry] | None:
        """Return what was written, None if there is nothing or it is damaged."""
        path = self._manager.get_file(self._name) if reads_disk() else None
        if path is None:
            return None
        try:
            with open(path, encoding="utf-8") as file:
                return [_entry(data) for data in json.load(file)]
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def write(self, ranking) -> None:
        """Keep what was found."""
        data = [
            {**entry._asdict(), "choices": [dict(choice) for choice in entry.choices]}
            for entry in ranking
        ]
        put(self._manager, json.dumps(data), self._name)


def _entry(data) -> Entry:
    """Return an entry of a file; raises if it is damaged."""
    choices = tuple(tuple((name, int(c[name])) for name in _TUNED) for c in data["choices"])
    widen = data["widen"]
    if not (widen is None or widen in FACTORS) or any(v < 1 for c in choices for _, v in c):
        raise ValueError(f"malformed options {data!r}")
    variants = tuple(map(str, data["variants"]))
    if len(variants) != len(choices):
        raise ValueError(f"as many options as kernels are needed in {data!r}")
    return Entry(float(data["milliseconds"]), widen, variants, choices)
