"""A process that runs variants of cases and prints a row for each.

Lines that begin with MARK are for the parent: which variant is next, whose code runs, and the
results. Other output of packages and compilers is not. A process whose GPU context is lost ends: if
the authors' code was running, another process judges ours alone.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import torch

from .atomics import atomics
from .case import Variant
from .measure import first_calls, times, warm_up
from .orders import looked_at
from .packages import plugins
from .problem import THEIRS, TheirsEnds, context_is_lost, told
from .trial import judged, make_problem

MARK = "\x1earena "
BROKEN = 17  # the exit status of a process that can't go on


class Request(NamedTuple):
    """A request to a worker: `tasks` are (package, case, size, dtype).

    `lost` has pairs of such a task and how a process ended that ran the authors' code for it.
    """

    job: str  # "judge", "orders", "atomics", "warm" or "time"
    device: str
    tasks: list
    exact: str
    spoil: bool
    options: dict
    cache: str = ""
    lost: tuple | list = ()


def tell(**message) -> None:
    """Print a line for the parent."""
    print(MARK + json.dumps(message), file=sys.__stdout__, flush=True)


def _end_with_parent() -> None:
    """End when the parent does: its end of our input is closed then."""

    def wait():
        sys.stdin.buffer.read()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def on_cpu_backend() -> None:
    """Run kernels on the CPU, even if there is a GPU."""
    from triton.runtime import driver
    from triton_autodiff.driver import CPUDriver

    driver.set_active(CPUDriver())


def _row(request: Request, plugin, case, variant: Variant, fresh: bool, lost: str | None) -> dict:
    found = {}

    def announce(who, whole):
        # Slopes of their forward may still judge our gradients.
        if who == THEIRS and whole and lost is not None:
            raise TheirsEnds(lost)
        tell(who=who)

    def make(**options):
        options |= request.options
        return make_problem(plugin, case, variant, request.device, options, announce)

    if request.job == "orders":
        return looked_at(make(order=2))
    if request.job == "atomics":
        return atomics(make())
    if request.job != "judge" or fresh:
        problem = make()
        found["first" if fresh else "again"] = first_calls(problem)
        if request.job == "time":
            found["us"] = times(problem)
        del problem
    if request.job == "judge":
        # At users' sizes, float64 takes too long on the CPU. Testing the judge, which is done at
        # the small size, would take hundreds of forwards for each gradient.
        is_small = variant.size == "small"
        exact = request.exact if is_small else "never"
        spoil = request.spoil and is_small
        found |= judged(make(), exact, spoil)
    return found


def _is_fresh(cache: Path) -> bool:
    """Whether nothing has been compiled for this case before."""
    return not (cache.is_dir() and any(cache.iterdir()))


def run(request: Request) -> int:
    """Run the tasks and return the exit status."""
    from triton import knobs

    warnings.simplefilter("ignore")
    torch.set_float32_matmul_precision("highest")
    if request.device == "cpu":
        on_cpu_backend()
    warm_up(request.device)
    known = plugins()
    lost = {tuple(task): why for task, why in request.lost}
    for package, name, size, dtype in request.tasks:
        tell(begin=[package, name, size, dtype])
        plugin = known[package]
        case = next(case for case in plugin.cases() if case.name == name)
        cache = Path(request.cache, f"{package}-{name}".replace("/", "_"))
        fresh, knobs.cache.dir = _is_fresh(cache), str(cache)
        row = {"package": package, "case": name, "family": case.family, "size": size}
        row |= {"dtype": dtype, "whole": case.whole}
        begin = time.process_time()
        try:
            why = lost.get((package, name, size, dtype))
            row |= _row(request, plugin, case, Variant(size, dtype), fresh, why)
        except torch.OutOfMemoryError:
            row["failed"] = "out of memory"
        except Exception as error:
            if context_is_lost(error):
                tell(lost=told(error))
                return BROKEN
            row["failed"] = told(error)
        row["cpu_s"] = time.process_time() - begin
        tell(row=row)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return 0


def main() -> None:
    """Read the request from the environment and run it."""
    _end_with_parent()
    status = run(Request(**json.loads(os.environ["ARENA_REQUEST"])))
    sys.stdout.flush()
    # Without destructors, since the context may be lost.
    os._exit(status)


if __name__ == "__main__":
    main()
