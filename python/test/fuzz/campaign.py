"""Many random programs on many workers: what came of them, and failures made small.

python -m fuzz.campaign 10000 --jobs 16 --seed 3 --failures failures
python -m fuzz.campaign --only 1234 77 --seed 3
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import json
import os
import queue
import re
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from .choices import seeded
from .generate import generate, module
from .program import Program
from .shrink import shrink

CHUNK = 20
# A program that takes so many seconds hangs; a busy machine may take long to start one.
PATIENCE = 600
FAILURES = ("wrong", "broken", "crashed")

SCRIPT = """

if __name__ == "__main__":
    from fuzz.oracle import check
    from fuzz.program import Program

    program = Program("{name}", "", [], "", {inputs}, {wanted}, [], {smooth})
    print(check(program, {name}, {name}_stub, {point}))
"""


class Worker:
    """A worker process, started again after it crashed or hung."""

    def __init__(self):
        self.process = None
        self.errors = tempfile.TemporaryFile()

    def start(self) -> None:
        """Start a process, in place of one that may still run."""
        self.close()
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])
        self.process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-m", "fuzz.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=environment,
        )

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def lost(self, hung: bool) -> str:
        """Return how the process ended, and its last words."""
        self.close()
        size = self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(size - 2000, 0))
        return f"{'hung' if hung else 'crashed'}\n{self.errors.read().decode(errors='replace')}"

    def check(self, requests: list[dict]):
        """Yield what came of each program."""
        while requests:
            if self.process is None:
                self.start()
            self.process.stdin.write(json.dumps(requests).encode() + b"\n")
            self.process.stdin.flush()
            for i, request in enumerate(requests):
                ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
                line = self.process.stdout.readline() if ready else b""
                if not line:
                    reason = self.lost(not ready)
                    yield {**request, "status": "crashed", "reason": reason, "features": []}
                    requests = requests[i + 1 :]
                    break
                yield {**request, **json.loads(line)}
            else:
                return


def requests_of(seed: int, numbers) -> list[dict]:
    """Return the programs of these numbers."""
    return [{"name": f"kernel_{n}", "seed": f"{seed}:{n}", "point": n} for n in numbers]


def run(seed: int, numbers: list[int], jobs: int, report) -> None:
    """Check programs on so many workers; `report` is called with each result."""
    chunks: queue.SimpleQueue = queue.SimpleQueue()
    for i in range(0, len(numbers), CHUNK):
        chunks.put(numbers[i : i + CHUNK])
    lock = threading.Lock()

    def work():
        worker = Worker()
        while True:
            try:
                chunk = chunks.get_nowait()
            except queue.Empty:
                break
            for result in worker.check(requests_of(seed, chunk)):
                with lock:
                    report(result)
        worker.close()

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def kind(result: dict) -> tuple[str, str]:
    """Return what a smaller program has to share with a failing one."""
    lines = result["reason"].splitlines()
    # Of a crash, what it was; of an error, what it says.
    fatal = [line for line in lines if line.startswith("Fatal Python error")]
    first = (fatal or lines or [""])[0]
    if result["status"] == "wrong":
        # Which input's gradient, and whether it is a number.
        first = re.split(r"[\[:]", first)[0] + " nan" * ("nan" in first)
        return "wrong", first
    return result["status"], re.sub(r"\d+", "#", first)


def minimised(result: dict, seconds: float) -> Program:
    """Return a small program that fails in the same way."""
    program = generate(seeded(result["seed"]), result["name"])
    worker = Worker()

    def fails(body):
        smaller = dataclasses.replace(program, body=body)
        try:
            ast.parse(smaller.source)
        except SyntaxError:
            return False
        fields = dataclasses.asdict(smaller)
        request = {"name": program.name, "program": fields, "point": result["point"]}
        return kind(next(worker.check([request]))) == kind(result)

    body = shrink(program.body, fails, seconds)
    worker.close()
    return dataclasses.replace(program, body=body)


def script(result: dict, program: Program) -> str:
    """Return a program to run by itself that shows a failure."""
    comment = "\n".join(f"# {line}" for line in result["reason"].splitlines()[:20])
    about = f"# {result['seed']}: {result['status']}\n{comment}\n"
    tail = SCRIPT.format(
        name=program.name,
        inputs=program.inputs,
        wanted=program.wanted,
        smooth=program.smooth,
        point=result["point"],
    )
    return about + module([program]) + tail


class Summary:
    """Counts results and prints them."""

    def __init__(self):
        self.statuses, self.refusals = Counter(), Counter()
        self.used, self.refused, self.schedules = Counter(), Counter(), Counter()
        self.failures: list[dict] = []
        self.seconds = 0.0
        self.begin = time.monotonic()

    def add(self, result: dict) -> None:
        status = result["status"]
        self.statuses[status] += 1
        self.seconds += result.get("seconds", 0.0)
        self.used.update(result["features"])
        self.schedules.update(result.get("schedules", ()))
        if status == "refused":
            self.refusals[result["reason"]] += 1
            self.refused.update(result["features"])
        if status in FAILURES:
            self.failures.append(result)
            print(
                f"{result['seed']}: {status}: {result['reason'].splitlines()[0][:150]}", flush=True
            )

    def print(self) -> None:
        """Print what was found."""
        total = max(sum(self.statuses.values()), 1)
        print(f"\n{total} programs in {time.monotonic() - self.begin:.0f} s, ", end="")
        print(f"{self.seconds / total:.2f} s of CPU each: {dict(self.statuses)}")
        print(f"  backward kernels are {dict(self.schedules)}")
        for reason, count in self.refusals.most_common():
            print(f"  refused {count:5}: {reason[:160]}")
        share = sum(self.refused.values()) / max(sum(self.used.values()), 1)
        for feature, count in self.refused.most_common():
            if count > 3 and count > 1.5 * share * self.used[feature]:
                print(f"  refused {count:5} of {self.used[feature]:5} with: {feature}")


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=500)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3), "little"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", type=int, nargs="+", help="numbers of programs to run again")
    parser.add_argument("--failures", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--shrink", type=float, default=60, help="seconds for each failure")
    parser.add_argument("--most", type=int, default=10, help="how many failures are made small")
    options = parser.parse_args()
    numbers = options.only or list(range(options.count))
    print(f"--seed {options.seed}", flush=True)
    summary = Summary()
    run(options.seed, numbers, options.jobs, summary.add)
    summary.print()
    for result in summary.failures[: options.most]:
        options.failures.mkdir(parents=True, exist_ok=True)
        path = options.failures / f"seed{options.seed}_{result['name']}.py"
        path.write_text(script(result, minimised(result, options.shrink)))
        print(f"{path}: {result['status']}")
    return bool(summary.failures)


if __name__ == "__main__":
    sys.exit(main())
