"""A process that checks programs, so that one which crashes or hangs takes nothing along.

Reads requests from standard input, one JSON list a line, and answers each request with a line. A
request names the seed of a program, or holds the program.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from .choices import seeded
from .generate import generate, module
from .oracle import check
from .program import Program


def load(text: str, path: Path):
    """Write a module and import it; Triton reads the source of kernels from the file."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def program_of(request: dict) -> Program:
    """Return the program that a request is about."""
    if "program" in request:
        return Program(**request["program"])
    return generate(seeded(request["seed"]), request["name"])


def answer(requests: list[dict], folder: Path):
    """Yield what came of each program."""
    programs = [program_of(request) for request in requests]
    loaded = load(module(programs), folder / f"programs_{time.monotonic_ns()}.py")
    for request, program in zip(requests, programs, strict=True):
        kernel, stub = (getattr(loaded, program.name + end) for end in ("", "_stub"))
        begin = time.process_time()
        verdict = check(program, kernel, stub, request["point"], request.get("factor", 1.0))
        yield {
            "status": verdict.status,
            "reason": verdict.reason,
            "vanishes": verdict.vanishes,
            "features": program.features,
            "schedules": verdict.schedules,
            "seconds": time.process_time() - begin,
        }


def main() -> None:
    """Serve until standard input ends."""
    import torch

    torch.set_num_threads(1)
    replies = os.fdopen(os.dup(1), "w")
    # What libraries print must not come between the replies.
    os.dup2(2, 1)
    for line in sys.stdin:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TRITON_CACHE_DIR"] = folder
            for result in answer(json.loads(line), Path(folder)):
                print(json.dumps(result), file=replies, flush=True)


if __name__ == "__main__":
    main()
