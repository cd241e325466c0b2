"""Chooses variants and options of backward kernels by measurement, in a specialisation's first
backward.

Every backward kernel is timed by itself, on the operands of the present backward, but in separate
memory: kernels add to gradients and overwrite what others have left. First its variants (other tile
sizes) are timed, then the best of them with other launch options. The result is kept with the plan,
and in Triton's cache directory.
"""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import suppress
from typing import NamedTuple

import torch
import triton
from triton import knobs
from triton.runtime.driver import driver

from ..library import native
from ..plans.cache import manager_for, put, read_text
from ..support.waiting import work
from .together import compile_all

VERSION = 2
_WARPS = (4, 8)
_MOST_STAGES = 4
# How many variants of a kernel are measured with other options.
_REFINED = 2
# A smaller gain counts as noise.
_NOISE = 0.98
_TUNED = ("num_stages", "num_warps")

Choice = tuple[tuple[str, int], ...]


class Entry(NamedTuple):
    """The best variant of a kernel, its options, and its time in milliseconds."""

    variant: str  # its digest
    choice: Choice
    milliseconds: float


def measures(device) -> bool:
    """Return whether measuring on a device is worthwhile, and possible now."""
    return device.type != "cpu" and not torch.cuda.is_current_stream_capturing()


def benchmark(executable, grid, operands) -> float:
    """Return the milliseconds of a launch."""
    run = driver.active.get_benchmarker()
    return run(lambda: executable.launch(grid, operands), warmup=5, rep=20, return_mode="median")


def _own(executable) -> Choice:
    return tuple((name, executable.options.get(name, 1)) for name in _TUNED)


def candidates(executable, configs=()) -> list[Choice]:
    """Return the options to try for a compiled kernel, its own first.

    `configs` are further ones, from an autotuned forward.
    """
    (_, own_stages), (_, own_warps) = _own(executable)
    # Stages only matter for loops.
    loops = "scf.for" in executable.kernel.ttir
    near = [n for n in (own_stages - 1, own_stages + 1) if loops and 1 <= n <= _MOST_STAGES]
    pairs = [(s, w) for s in (own_stages, *near) for w in (own_warps, *_WARPS)]
    pairs += [(stages if loops else own_stages, warps) for stages, warps in configs]
    # Options that somebody chose are not varied.
    fixed = executable.chosen
    return list(
        dict.fromkeys(
            tuple((name, fixed.get(name, n)) for name, n in zip(_TUNED, pair, strict=True))
            for pair in pairs
        )
    )


def tuned(execution, backward, given, counts):
    """Return a backward of an execution with the best kernels; None if they cannot be measured now.

    `given` and `counts` are the arguments of the backward.
    """
    backward.compile()
    executable_plan, device = backward.executable_plan, execution.facts.device
    offered = tuple(executable.suitable(backward.facts) for executable in executable_plan.backward)
    key = tuple(executable.kernel.digest for variants in offered for executable in variants)
    entries = executable_plan.measured.get(key)
    if entries is None:
        path = _Path(backward.plan.kernel, offered, device)
        entries = path.read()
        if entries is None:
            if not measures(device):
                return None
            try:
                with work(f"measuring the backward of kernel {backward.plan.kernel!r}"):
                    entries = _measure_all(execution, backward, offered, given, counts)
            except torch.OutOfMemoryError:
                # There is no memory for a second backward.
                return backward
            path.write(entries)
        executable_plan.measured[key] = entries
    chosen = []
    for variants, entry in zip(offered, entries, strict=True):
        own = next(v for v in variants if v.kernel.digest == entry.variant)
        chosen.append(executable_plan.otherwise(own, entry.choice))
    return backward.with_executables(chosen)


def _measure_all(execution, backward, offered, given, counts) -> list[Entry]:
    """Return the best variant of each kernel."""
    start = time.perf_counter()
    # Kernels read what earlier ones have left.
    prepared = backward.prepare(*given, counts)
    backward.launch(prepared)
    configs = execution.state.forward_configs
    found = [_measure(backward, variants, prepared, configs) for variants in offered]
    if knobs.autotuning.print:
        total = sum(entry.milliseconds for entry in found)
        names = {v.kernel.digest: v.kernel.name for variants in offered for v in variants}
        best = {names[entry.variant]: dict(entry.choice) for entry in found}
        print(
            f"Triton-Autodiff tuned the backward of kernel {backward.plan.kernel} in "
            f"{time.perf_counter() - start:.2f}s: {total:.3f} ms with {best}"
        )
    return found


def _measure(backward, variants, prepared, configs) -> Entry:
    """Return the best of a kernel's variants: the compiler's choice unless it is clearly slower."""
    times: dict = {}
    _time_all(backward, [(own, _own(own)) for own in variants], prepared, times)
    best = [own for own, _ in sorted(times, key=times.get)[:_REFINED]]
    refined = [(own, choice) for own in best for choice in candidates(own, configs)]
    _time_all(backward, refined, prepared, times)
    first, best = next(iter(times)), min(times, key=times.get)
    if times[best] > _NOISE * times[first]:
        best = first
    own, choice = best
    backward.executable_plan.keep(variants, own, choice)
    return Entry(own.kernel.digest, choice, times[best])


def _time_all(backward, pairs, prepared, times) -> None:
    """Time variants with options, unless they were timed before."""
    pairs = [pair for pair in pairs if pair not in times]
    with suppress(Exception):  # which the one that has it meets again
        compile_all(backward.executable_plan.otherwise(*pair) for pair in pairs)
    for own, choice in pairs:
        _time(backward, own, choice, prepared, times)


def _time(backward, own, choice, prepared, times) -> None:
    """Time a kernel with some options, if it fits on the device that way."""
    executable = backward.executable_plan.otherwise(own, choice)
    try:
        executable.compile()
    except Exception:  # whatever is wrong with options that nobody asked for
        return
    # It may only fit with smaller options.
    choice = _own(executable)
    if (own, choice) not in times:
        bound = backward.bind(executable)
        empty = 0 in bound.grid
        operands = bound.pick(prepared.values)
        times[own, choice] = 0.0 if empty else benchmark(executable, bound.grid, operands)


class _Path:
    """The file with the measurements for a backward."""

    def __init__(self, kernel, offered, device):
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
        self._offered = offered
        parts = [str(VERSION), native().version(), triton.__version__, name]
        for variants in offered:
            for executable in variants:
                options = (executable.chosen, executable.inherited, executable.target)
                parts += [executable.kernel.digest, str(options)]
        self._manager = manager_for(hashlib.sha256("\0".join(parts).encode()).hexdigest())
        self._name = f"{kernel[:150]}.tuning.json"

    def read(self) -> list[Entry] | None:
        """Return the stored entries, None if there are none or they are damaged."""
        text = read_text(self._manager, self._name)
        if text is None:
            return None
        try:
            pairs = zip(json.loads(text), self._offered, strict=True)
            return [_entry(data, variants) for data, variants in pairs]
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def write(self, entries) -> None:
        """Store entries."""
        data = [{**entry._asdict(), "choice": dict(entry.choice)} for entry in entries]
        put(self._manager, json.dumps(data), self._name)


def _entry(data, variants) -> Entry:
    """Return an entry of a file; raises if it is damaged."""
    choice = tuple((name, int(data["choice"][name])) for name in _TUNED)
    known = {executable.kernel.digest for executable in variants}
    if data["variant"] not in known or any(value < 1 for _, value in choice):
        raise ValueError(f"malformed choice {data!r}")
    return Entry(data["variant"], choice, float(data["milliseconds"]))
