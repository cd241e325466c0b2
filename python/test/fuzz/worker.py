"""A process that checks programs, so that one which crashes or hangs takes nothing along.

Reads requests from standard input, one JSON list a line, and answers each request with a line. A
request has a `name` and a `point` (the seed of the inputs), names the `seed` of a program or holds
the `program`, and says what else is to be done: `types` (see `precision.TYPES`), a `device`,
kinds to do `without`, a `factor` by which to falsify a gradient, whether to `look`, to carry it out
in other ways (`in_ways`) and in batches (`in_batches`), and LLVM's `level`. The one argument is a
folder for the programs.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from unittest import mock

import levels
from looking import digest

from .differences import Verdict
from .generate import module, program_of
from .noise import with_noise
from .oracle import Subject, check
from .propagation import passing_nan

# How names of modules of programs begin.
PROGRAMS = "programs_"


def load(text: str, path: Path):
    """Write a module and import it; Triton reads the source of kernels from the file."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    # Dynamo imports the modules of functions by name.
    sys.modules[path.stem] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def subjects(requests: list[dict], folder: Path):
    """Write the programs of some requests into a module, and yield each, loaded."""
    programs = [program_of(request) for request in requests]
    noisy = [with_noise(p) for p, r in zip(programs, requests, strict=True) if r.get("types")]
    passing = [passing_nan(program) for program in programs]
    text = module(programs + noisy + passing)
    # The name is in the TTIR, under which plans are kept: the same programs have the same one.
    loaded = load(text, folder / f"{PROGRAMS}{digest(text)[:16]}.py")

    def functions(name: str):
        return getattr(loaded, name), getattr(loaded, f"{name}_stub")

    for request, program in zip(requests, programs, strict=True):
        types = request.get("types")
        yield Subject(
            program,
            *functions(program.name),
            functions(f"{program.name}_nan"),
            functions(f"{program.name}_noisy") if types else None,
            types,
            request.get("device", "cpu"),
            request["point"],
            request.get("factor", 1.0),
            frozenset(request.get("without", ())),
            request.get("look", True),
            request.get("in_ways", False),
            request.get("in_batches", False),
        )


def nothing_ahead():
    """Have no backward compiled that only may be needed: for a program of several outputs, it often
    is not.
    """
    from triton.backends.autodiff.launching.execution import Execution

    return mock.patch.object(Execution, "_compile_ahead", lambda execution: None)


def judged(subject: Subject, request: dict, folder: Path) -> Verdict:
    """Check a program; one that races may be found out by its accesses alone.

    So it is where data decide whether a program stores.
    """
    verdict = check(subject)
    if verdict.status != "wrong" or not subject.program.races:
        return verdict
    # It is read when a kernel is first differentiated: the program is loaded once more.
    with mock.patch.dict(os.environ, TRITON_AUTODIFF_CHECK="1"):
        found = check(next(subjects([request], folder)))
    return found if found.status == "refused" else verdict


def answer(requests: list[dict], folder: Path):
    """Yield what came of each program."""
    for name in [name for name in sys.modules if name.startswith(PROGRAMS)]:
        del sys.modules[name]
    for subject, request in zip(subjects(requests, folder), requests, strict=True):
        begin = time.process_time()
        levels.use(request.get("level", levels.USUAL))
        with contextlib.nullcontext() if subject.look else nothing_ahead():
            verdict = judged(subject, request, folder)
        yield {
            "status": verdict.status,
            "reason": verdict.reason,
            "vanishes": verdict.vanishes,
            "poison": verdict.poison,
            "point": subject.seed,
            "features": subject.program.features,
            "schedules": verdict.schedules,
            "seconds": round(time.process_time() - begin, 2),
        }


def main() -> None:
    """Serve until standard input ends, or a device is of no more use."""
    import torch

    torch.set_num_threads(1)
    replies = os.fdopen(os.dup(1), "w")
    # What libraries print must not come between the replies.
    os.dup2(2, 1)
    folder = Path(sys.argv[1])
    for line in sys.stdin:
        for result in answer(json.loads(line), folder):
            print(json.dumps(result), file=replies, flush=True)
            if result["status"] == "crashed":
                return


if __name__ == "__main__":
    main()
