"""Show that a test notices deliberate mistakes in the runtime's Python.

First learn which functions each test runs (touching.py), an hour for some cases of each; then make
a sample of mistakes, each in a copy of the installed package:

    PYTHONPATH=scripts python -m pytest -p touching --touched build/touched.jsonl --cases 4
    python scripts/runtime_mutation.py --sample 200 --seed 1 [--only TEXT] [--seconds N]

For each mistake, tests that run its function follow one another until one fails: the quick ones
first, and those that run little else; then all cases of these tests. Where none is known to run
the function, files of tests that name it have their turn. The journal gets a line for each mistake.
A later run goes on from there, so that a sample can be made in parts. The exit status is 1 if a
mistake survives.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import runtime_mistakes
import touching
from journal import Journal

ROOT = Path(__file__).resolve().parents[1]
# What the tests of one mistake may take, by the notes, how much longer they really may, and what
# all cases of these tests may take together.
PATIENCE, SLACK, CASES = 25, 5, 40
# Mistakes that change nothing, and why.
EQUIVALENT = {
    "driver:CPUDriver.map_python_to_cpp_type:guard lost:0": "Triton asks GPUs' drivers only",
    "printing/explain:_cut:limit shifted:0": "an address may be a character longer",
    "launching/compiled_autograd:put_into_graph:alias in place of a copy:4": (
        "PyTorch's operators take tuples, too"
    ),
    "graphs/kernels:InlinedLaunch.check:check dropped:0": "what memory decides is unforeseen",
    "graphs/operator:LaunchOperator._gradient:context lost:0": "only with several GPUs",
    "graphs/stubs:_example:operand dropped:0": "all of Dynamo's variables have the method",
    "kernels/interpreted:_captured:context lost:0": "methods of tl.tensor have no empty cells",
    "storage/memory:snapshot:flag flipped:0": "all of the copy is written then",
    "faults/miscompiled:mended:other elements:1": "only GPUs have such code",
    "faults/omitted:_live:first left out:0": "PTX begins with its version, which reads no register",
    "programs/partials:tile_of:stride lost:3": "only GPUs have warps",
    "inspecting/reference:Reference._record:context lost:0": "only with several GPUs",
    "operators/registered:_own:key part lost:1": "PyTorch's gradients have their tensors' types",
    "launching/nodes:recording_history:guard lost:0": "a short way out",
    "checking/spaces:Space.places:stride lost:2": "fewer places are compared",
    "rules/tracing:_trace:call dropped:1": "TTIR has nothing of a device's own dialects",
}


def package() -> Path:
    """Return the folder of the package that Python finds."""
    return Path(importlib.util.find_spec("triton_autodiff").origin).parent


def lay_out(site: Path, changed: dict[str, bytes]) -> None:
    """Lay the installed package into a folder, with other texts of some of its files."""
    installed = package()
    folder = site / installed.name
    for path in installed.rglob("*"):
        name = path.relative_to(installed)
        if path.is_file() and path.parent.name != "__pycache__":
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if str(name) not in changed:
                (folder / name).symlink_to(path.resolve())
    for name, text in changed.items():
        (folder / name).write_bytes(text)
    # Triton finds its backends by what is said of distributions.
    for path in installed.parent.glob("triton_autodiff-*.dist-info"):
        (site / path.name).symlink_to(path.resolve())


def tests_of(functions, notes) -> list[str]:
    """Return tests that run one of some functions, those first that will show it soon."""
    found = [
        (seconds * len(touched), seconds, test)
        for test, (seconds, touched) in notes.items()
        if not touched.isdisjoint(functions)
    ]
    chosen, spent = [], 0.0
    for _, seconds, test in sorted(found):
        if spent + seconds <= PATIENCE:
            spent += seconds
            chosen.append(test)
    return chosen


def functions_of(mistake, notes) -> set[str]:
    """Return the function of a mistake; for what a module or class does at first, all in it."""
    where = f"{mistake.module}:{mistake.function}"
    every = set().union(*(touched for _, touched in notes.values()))
    inner = {name for name in every if name.startswith(where.removesuffix(":") + ":")}
    inner |= {name for name in every if name.startswith(where + ".")}
    is_run = where in every and mistake.function
    return {where} if is_run else inner


def files_about(mistake) -> list[str]:
    """Return the test files that name a mistake's function or module most often."""
    words = {mistake.module.rpartition("/")[2], mistake.function.rpartition(".")[2]} - {""}
    counts = {}
    for path in sorted((ROOT / "python" / "test" / "unit").glob("test_*.py")):
        text = path.read_text()
        counts[str(path.relative_to(ROOT))] = sum(
            len(re.findall(rf"\b{word}\b", text)) for word in words
        )
    return sorted((path for path in counts if counts[path]), key=lambda path: -counts[path])[:3]


def run_tests(tests: list[str], site: Path, limit: float) -> tuple[str, str]:
    """Run tests with the package in `site` until one fails; returns the verdict and what failed."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(
                [str(site), str(ROOT / "scripts"), os.environ.get("PYTHONPATH", "")]
            ),
            "TRITON_CACHE_DIR": cache,
        }
        options = "-x -q -p no:cacheprovider -p no:xdist --device=cpu".split()
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return "noticed", "hangs"
    if process.returncode == 0:
        return "survived", ""
    if process.returncode == 5:
        return "untested", ""
    if "ERROR: not found" in output:
        sys.exit("the notes of tests name some that are no longer there: make them again")
    failed = re.search(r"^FAILED (.*)", output, re.MULTILINE)
    lines = [line for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("E ")] or lines
    return "noticed", failed.group(1) if failed else f"{process.returncode}: {errors[-1]}"[:200]


def judge(mistake, notes) -> dict:
    """Make a mistake, and return what came of it."""
    source = (package() / f"{mistake.module}.py").read_bytes()
    line = {
        "name": mistake.name,
        "line": source[: mistake.begin].count(b"\n") + 1,
        "was": source[mistake.begin : mistake.end].decode(),
        "is": mistake.text,
    }
    tests = tests_of(functions_of(mistake, notes), notes)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as site:
        lay_out(Path(site), {f"{mistake.module}.py": mistake.made_in(source)})
        limit = 60 + SLACK * sum(notes[test][0] for test in tests)
        verdict, by = run_tests(tests, Path(site), limit) if tests else ("untested", "")
        if verdict != "noticed":
            # The notes are of some cases of each test, and of one process.
            every = list(dict.fromkeys(test.partition("[")[0] for test in tests))
            if every := every or files_about(mistake):
                verdict, by = run_tests(every, Path(site), CASES if tests else 3 * CASES)
            if by == "hangs":
                verdict, by = "survived", "for lack of time"
    seconds = round(time.monotonic() - began, 1)
    return line | {"verdict": verdict, "by": by, "tests": len(tests), "seconds": seconds}


def main() -> int:
    """Parse the command line, and make the mistakes that are left."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=200, help="how many mistakes")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--only", default="", help="those whose names hold this text")
    parser.add_argument("--again", action="store_true", help="make those again that survived")
    parser.add_argument("--touched", type=Path, default=ROOT / "build" / "touched.jsonl")
    parser.add_argument("--journal", type=Path, default=ROOT / "build" / "runtime-mutation.jsonl")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin nothing after so long"
    )
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    notes = touching.read(options.touched)
    if not notes:
        sys.exit(f"{options.touched} has no notes of tests: see the head of {__file__}")
    journal = Journal(options.journal)
    drawn = runtime_mistakes.draw(package(), options.sample, options.seed)
    names = [mistake.name for mistake in drawn if options.only in mistake.name]
    known = journal.known.items()
    done = {name for name, line in known if not options.again or line["verdict"] == "noticed"}
    for mistake in drawn:
        if mistake.name not in names or mistake.name in done or time.monotonic() > end:
            continue
        journal.add(line := judge(mistake, notes))
        print(f"{line['verdict']:9} {mistake.name}  {line['by'][:80]}", flush=True)
    made = [journal.known[name] for name in names if name in journal.known]
    left = [
        line for line in made if line["verdict"] != "noticed" and line["name"] not in EQUIVALENT
    ]
    print(f"{len(made)} of {len(names)} mistakes made, {len(left)} not noticed:")
    for line in left:
        print(f"  {line['verdict']} {line['name']} (line {line['line']}): {line['was']!r}")
    return int(bool(left) or len(made) < len(names))


if __name__ == "__main__":
    sys.exit(main())
