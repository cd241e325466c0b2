"""Run GPU tests under compute-sanitizer: no kernel touches memory that it was not given.

    python scripts/sanitize.py [--seconds N] [--jobs N] [--journal PATH] [--tool NAME] [tests…]

Each process runs a few tests. With a journal, a run that was stopped, or whose seconds were over,
goes on where it was; tests with errors are run again. The exit status is 1 if there are errors, 2
if tests are left.

Memory is taken from CUDA itself, a piece for each tensor with a gap behind it: in PyTorch's own
pools, what is beside a tensor belongs to another one, and no access would be wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

import torch

ROOT = Path(__file__).resolve().parents[1]
UNIT = ROOT / "python" / "test" / "unit"
# One of each kind: schedules, memory, streams, and what the compiler makes of addresses.
CHOSEN = (
    "api attention bounded_sums cross_entropy descriptors devices every_schedule group_norm "
    "in_place loops masks matmul memory_access memory_contract normalization packed_sequences "
    "partials pointers reductions runs scans segments softmax strides_and_graph tiles touched "
    "turns while windows wrappers"
).split()
# What a sanitizer cannot be under: graphs need PyTorch's pools; tuning measures.
LEFT_OUT = " and ".join(
    f"not {part}" for part in ("cuda_graph", "a_graph", "captur", "tuned", "tuning")
)
# Tests of one process, and how long these may take together.
SHARE, PATIENCE = 12, 300
ERRORS = 86
SUMMARY = re.compile(r"ERROR SUMMARY: (\d+) error")


def command(tool: str, tests) -> list[str]:
    """Return what runs tests under the sanitizer."""
    sanitizer = ["compute-sanitizer", "--tool", tool, "--error-exitcode", str(ERRORS)]
    if tool == "memcheck":
        sanitizer += ["--padding", "512"]
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    return [*sanitizer, *pytest, *tests]


def collect(arguments) -> list[str]:
    """Return the names of the tests that need a GPU."""
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:xdist",
         "--device=cuda", "-k", LEFT_OUT, *arguments],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    names = [line for line in found.stdout.splitlines() if "::" in line]
    if not names:
        sys.exit(found.stdout + found.stderr)
    # Tests without a device have no kernels on a GPU, nor have those on the CPU.
    on_cpu = re.compile(r"\[(.*-)?cpu(-.*)?\]$")
    return [name for name in names if not on_cpu.search(name)]


class Verdict(NamedTuple):
    """What became of a few tests."""

    verdict: str  # "clean", "errors", "failed" or "too slow"
    seconds: float
    output: str


def run(tool: str, tests) -> Verdict:
    """Run tests in a process of their own."""
    start = time.monotonic()
    process = subprocess.Popen(
        command(tool, tests),
        cwd=ROOT,
        env={**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return Verdict("too slow", PATIENCE, process.communicate()[0])
    seconds = round(time.monotonic() - start, 1)
    counted = SUMMARY.findall(output)
    if not counted:
        # The sanitizer itself did not come to its end.
        return Verdict("failed", seconds, output)
    if any(map(int, counted)) or process.returncode == ERRORS:
        return Verdict("errors", seconds, output)
    return Verdict("clean" if process.returncode in (0, 5) else "failed", seconds, output)


def read(journal: Path | None) -> dict[str, str]:
    """Return the verdicts of an earlier run, by test."""
    if journal is None or not journal.exists():
        return {}
    lines = (json.loads(line) for line in journal.read_text().splitlines())
    return {test: line["verdict"] for line in lines for test in line["tests"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start nothing later")
    parser.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1))
    parser.add_argument("--journal", type=Path)
    parser.add_argument(
        "--tool", default="memcheck", choices=["memcheck", "racecheck", "initcheck"]
    )
    options, arguments = parser.parse_known_args()
    if shutil.which("compute-sanitizer") is None:
        sys.exit("there is no compute-sanitizer on the PATH")
    if not torch.cuda.is_available():
        sys.exit("no GPU here")
    end = time.monotonic() + options.seconds
    known = read(options.journal)
    tests = collect(arguments or [str(UNIT / f"test_{name}.py") for name in CHOSEN])
    left = [test for test in tests if known.get(test) != "clean"]
    shares = [left[n : n + SHARE] for n in range(0, len(left), SHARE)]
    verdicts: dict[str, int] = {"clean": len(tests) - len(left)}

    def work(share):
        return share, run(options.tool, share) if time.monotonic() < end else None

    with ThreadPoolExecutor(options.jobs) as pool:
        for future in as_completed([pool.submit(work, share) for share in shares]):
            share, found = future.result()
            verdict = "left" if found is None else found.verdict
            verdicts[verdict] = verdicts.get(verdict, 0) + len(share)
            if found is None:
                continue
            print(f"{verdict}, {found.seconds:.0f} s: {share[0]} … {share[-1]}", flush=True)
            if verdict != "clean":
                print(found.output[-6000:], flush=True)
            if options.journal is not None:
                with options.journal.open("a") as file:
                    record = {"tests": share, "verdict": verdict, "seconds": found.seconds}
                    file.write(json.dumps(record) + "\n")
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.items() if count))
    bad = sum(count for verdict, count in verdicts.items() if verdict not in ("clean", "left"))
    sys.exit(1 if bad else 2 if verdicts.get("left") else 0)


if __name__ == "__main__":
    main()
