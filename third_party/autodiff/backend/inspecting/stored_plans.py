"""Plans of a corpus in a file, to compare them with those of another compiler.

The file is compressed JSON, one line each: a header, then a request with the answers by target. It
has all that is needed to derive the plans again, and only depends on the corpus and the compiler.
"""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import NamedTuple

from ..errors import AutodiffError
from ..library import native
from ..plans.recording import Asked, asked_from_json
from ..plans.target import described, parse_target
from ..support.processes import End, run_each
from ..support.whole_files import put
from .differences import Difference, compare

VERSION = 2
TARGETS = ("cuda:80", "cuda:89", "cuda:90", "cuda:100", "cuda:120", "hip:gfx942", "cpu")


class Stored(NamedTuple):
    """A request, and by target the answer: its `plan` (JSON as text) or its `error`."""

    asked: Asked
    answers: dict[str, dict[str, str]]


class Found(NamedTuple):
    """How the plan of a kernel for one target differs from the stored one, if it does."""

    key: str
    target: str
    differences: list[Difference]


# --------------------------------------------------------------------------------------------
# Deriving, each kernel in a process of its own
# --------------------------------------------------------------------------------------------


def request_on(asked: Asked, target) -> dict:
    """Return the request for another device (Triton's `GPUTarget`)."""
    given = described(target)
    # TTIR has the syntax of the Triton version that printed it.
    return {**asked.request, **given, "triton": asked.request.get("triton", given["triton"])}


def derive(asked: Asked, target: str) -> dict[str, str]:
    """Return the answer of the compiler for a target."""
    try:
        text = json.dumps(request_on(asked, parse_target(target)), sort_keys=True)
        name = f"<ttir of {asked.name}>"
        return {"plan": native().differentiate(asked.ttir, text, file_name=name)}
    except AutodiffError as error:
        return {"error": str(error)}


def _derive_each(send, asked, targets):
    for target in targets:
        send((target, derive(asked, target)))


def _compare_each(send, asked, targets, before):
    for target in targets:
        send((target, _differences(before[target], derive(asked, target))))


def _differences(before, after) -> list[Difference]:
    if before == after:
        return []
    answers = (
        {**answer, "plan": json.loads(answer["plan"])} if "plan" in answer else answer
        for answer in (before, after)
    )
    return compare(*answers)


def _run(work, tasks, crashed, workers, timeout):
    """Yield each request, with the result of `work` by target.

    If a process dies, that target's result is `crashed(task, reason)`, and the others are tried
    once more.
    """
    results: dict[str, dict] = {}
    while tasks:
        again = []
        for task, event in run_each(tasks, work, workers, timeout):
            asked, targets, *more = task
            result = results.setdefault(asked.key, {})
            if not isinstance(event, End):
                result.update([event])
                continue
            missing = [target for target in targets if target not in result]
            if missing:
                result[missing[0]] = crashed(task, missing[0], event.reason)
                if missing[1:]:
                    again.append((asked, missing[1:], *more))
                    continue
            yield asked, results.pop(asked.key)
        tasks = again


# --------------------------------------------------------------------------------------------
# The file
# --------------------------------------------------------------------------------------------


def _packed(data) -> bytes:
    return gzip.compress(f"{json.dumps(data)}\n".encode(), compresslevel=6, mtime=0)


def record(path, corpus, targets=TARGETS, workers=2, timeout=600.0, progress=None):
    """Derive all plans of a corpus, and write them to a file; returns how many, and how many
    failed.

    `progress(key)` is called for each request.
    """
    targets = list(dict.fromkeys(targets))
    for target in targets:
        parse_target(target)
    # Checked now, not after minutes of work.
    if not Path(path).absolute().parent.is_dir():
        raise AutodiffError(f"{path} cannot be written: there is no such folder")
    blocks, plans, errors = {}, 0, 0
    tasks = [(asked, targets) for asked in corpus]

    def crashed(task, target, reason):
        return {"error": reason}

    for asked, answers in _run(_derive_each, tasks, crashed, workers, timeout):
        ordered = {target: answers[target] for target in targets}
        blocks[asked.key] = _packed({**asked._asdict(), "answers": ordered})
        failed = sum("error" in answer for answer in answers.values())
        plans, errors = plans + len(answers) - failed, errors + failed
        if progress:
            progress(asked.key)
    header = {"version": VERSION, "count": len(blocks)}
    put(Path(path), b"".join((_packed(header), *(blocks[key] for key in sorted(blocks)))))
    return plans, errors


def _lines(path):
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)
    except (EOFError, ValueError, zlib.error, gzip.BadGzipFile) as error:
        raise AutodiffError(f"{path} is damaged, or no file of plans: {error}") from error


def _checked(line, path) -> Stored:
    asked = asked_from_json(line, path)
    answers = line.get("answers")
    kinds = [set(answer) for answer in answers.values()] if isinstance(answers, dict) else [None]
    if not all(kind in ({"plan"}, {"error"}) for kind in kinds):
        raise AutodiffError(f"{path} is damaged: {asked.name} has no answers")
    return Stored(asked, answers)


def read(path):
    """Yield the stored plans of a file; raises an `AutodiffError` if it is damaged."""
    lines = _lines(path)
    header = next(lines, None)
    if not isinstance(header, dict) or "count" not in header:
        raise AutodiffError(f"{path} is no file of plans: make one with corpus DIR --record")
    if header.get("version") != VERSION:
        raise AutodiffError(
            f"{path} is of version {header.get('version')}, this package reads {VERSION}: make it "
            "again with corpus DIR --record"
        )
    count = 0
    for line in lines:
        yield _checked(line, path)
        count += 1
    if count != header["count"]:
        raise AutodiffError(f"{path} is damaged: it has {count} of {header['count']} requests")


def compare_with(path, workers=2, timeout=600.0, progress=None) -> list[Found]:
    """Derive the plans of a file again; returns the comparison for each, in order."""
    tasks = ((asked, list(answers), answers) for asked, answers in read(path))
    found = []

    def crashed(task, target, reason):
        return _differences(task[2][target], {"error": reason})

    for asked, differences in _run(_compare_each, tasks, crashed, workers, timeout):
        found += (Found(asked.key, target, these) for target, these in differences.items())
        if progress:
            progress(asked.key)
    return sorted(found, key=lambda f: (f.key, f.target))
