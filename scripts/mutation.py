"""Show that a test notices each deliberate mistake in the compiler and the CPU backend.

The compiler is built with TAD_MUTATION, which lets an environment variable break one rule (sign,
factor, a dropped or transposed contribution, the wrong operand, a mask) or one step of a pass. All
tests run once to learn which mistakes each of them could notice. Then every mistake is made in a
process of its own, which runs those tests, the fastest first, until one fails. Mistakes that none
notices, and rules that none exercises, are printed as survivors, and the exit status is 1.

    python scripts/mutation.py [--jobs N] [--only TEXT] [--sample N --seed S] [--installed]
                               [--journal PATH] [tests…]

On a machine without MLIR, --installed takes the compiler of the installed wheel, which `make
mutation-wheel` has made with the mistakes in it. With a journal, a run that was stopped goes on
where it was.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import itertools
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from journal import place

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "python" / "test" / "unit"
BUILD = ROOT / "build" / "mutation"
VARIABLE = "TAD_MUTATION"
# A test that takes this long does not come to an end, and what the tests of so long do not notice
# survives.
SECONDS, PATIENCE = 120, 200
# Tests that one process traces.
SHARE = 8
# Mistakes of the CPU backend. The others change no kernel whose text is the same.
IN_KERNELS = "cpu-"
# What these test is neither the derivative nor the CPU backend, or takes long.
LEFT_OUT = (
    "bad_input",
    "corpus",
    "docs",
    "examples",
    "fla",
    "install",
    "liger",
    "mutation",
    "random_programs",
)

# Mistakes that change nothing, and why.
EQUIVALENT = {
    "arith.addf:0:swap": "both operands receive the same",
    "arith.addf:1:swap": "both operands receive the same",
    "cpu-code:booleans as bits": "a boolean's byte in memory is 0 or 1",
    "cpu-loop:tiles that others still read": "bufferization copies what is still read",
    "cpu-parts:views as buffers of their own": "they do not overlap; a lit test looks at it",
    "cpu-placement:effects once per use": "the frontend has no functions with effects",
    "cpu-placement:volatile loads anywhere": "between the same effects, one load is one load",
    "cpu-stores:in any order": "LLVM breaks few kernels; a lit test looks at it",
    "dot:the forward's precision": "only matrix units round to TF32; a lit test looks at it",
    "forward-stores:lanes that share an address": "only in a race; a lit test looks at it",
    "handover:maximum without its elements": "only GPUs round otherwise; a lit test looks at it",
    "lower-accumulates:masked lanes as they are": "only GPUs have these; a lit test looks at it",
    "normalizers:of some stores": "rows without a sum are NaN otherwise; a lit test looks at it",
    "place-maxima:none": "only GPUs have layouts; a lit test looks at it",
    "source:NaN is not less": "kernels rarely have such a comparison; a lit test looks at it",
    "source:bounds in few bits": "numbers are small; a lit test looks at it",
    "source:no load is volatile": "the CPU reads memory each time; a lit test looks at it",
    "source:rounds to nearest": "kernels rarely cut numbers; a lit test looks at it",
    "source:sums from any zero": "only the sign of a zero changes; a lit test looks at it",
}
EQUIVALENT |= {
    f"tt.extern_elementwise({name}):1:{kind}": "the derivative by the sign is zero"
    for name in ("__nv_copysign", "__nv_copysignf")
    for kind in ("drop", "factor", "sign")
}


def build() -> Path:
    """Build the compiler with its mistakes; returns the library."""
    options = ["-DCMAKE_BUILD_TYPE=Debug", "-DTAD_MUTATION=ON"]
    subprocess.run(["cmake", "-G", "Ninja", "-S", ROOT, "-B", BUILD, *options], check=True)
    subprocess.run(["ninja", "-C", BUILD, "triton_autodiff"], check=True)
    return BUILD / "lib" / "libtriton_autodiff.so"


def installed() -> Path:
    """Return the library that Python has."""
    import triton_autodiff

    return Path(triton_autodiff.__file__).with_name("libtriton_autodiff.so")


def load(library: Path) -> None:
    """Make Python use this library: the linker takes what is loaded under its name already."""
    if VARIABLE.encode() not in library.read_bytes():
        sys.exit(f"{library} was built without {VARIABLE}")
    ctypes.CDLL(str(library))
    from triton_autodiff import _native

    assert str(library.resolve()) in Path("/proc/self/maps").read_text(), _native


class Job:
    """A forked process that runs tests and reports the results as lines of JSON."""

    def __init__(self, name, work):
        self.name = name
        self.lines: list = []
        self.status = None
        self.began = time.monotonic()
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(read)
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            try:
                with os.fdopen(write, "w", buffering=1) as pipe:
                    work(lambda line: pipe.write(json.dumps(line) + "\n"))
            finally:
                os._exit(0)
        os.close(write)
        self.pipe = os.fdopen(read)

    def finish(self) -> None:
        """Read what is left and wait for the end."""
        self.lines = [json.loads(line) for line in self.pipe]
        self.pipe.close()
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.seconds = time.monotonic() - self.began


def run_jobs(makers, count):
    """Run jobs, `count` at a time; yields each as it ends."""
    makers, waiting = iter(makers), selectors.DefaultSelector()
    for make in itertools.islice(makers, count):
        job = make()
        waiting.register(job.pipe, selectors.EVENT_READ, job)
    running = len(waiting.get_map())
    while running:
        for key, _ in waiting.select():
            job = key.data
            waiting.unregister(job.pipe)
            job.finish()
            running -= 1
            yield job
            for make in itertools.islice(makers, 1):
                following = make()
                waiting.register(following.pipe, selectors.EVENT_READ, following)
                running += 1


@contextlib.contextmanager
def empty_cache():
    """Let Triton find no kernel that was compiled before."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        yield


def sampled(names: list[str], count: int | None, seed: int) -> list[str]:
    """Return `count` of some names, all for None. A larger sample holds the smaller one."""
    return sorted(sorted(names, key=lambda name: place(seed, name))[:count])


def outcome(item) -> str:
    """Run one test; returns "passed", "skipped" or the first line of why it failed."""
    from _pytest.runner import runtestprotocol

    for report in runtestprotocol(item, nextitem=None, log=False):
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            return "failed: " + (crash.message if crash else str(report.longrepr))[:200]
        if report.skipped:
            return "skipped"
    return "passed"


class Journal:
    """What is known of tests and mistakes, also from earlier runs: lines of JSON in a file."""

    def __init__(self, path: Path | None):
        self.path = path
        self.known: dict[tuple, list] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                kind, name, *rest = json.loads(line)
                self.known[kind, name] = rest

    def add(self, kind: str, name: str, *rest) -> None:
        self.known[kind, name] = list(rest)
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps([kind, name, *rest]) + "\n")


class Mutation:
    """A pytest plugin that runs the collected tests against every mistake."""

    def __init__(self, options):
        self.options = options
        self.journal = Journal(options.journal)
        self.end = time.monotonic() + options.seconds
        self.survivors: list[str] = []

    def pytest_collection_modifyitems(self, items):
        """Keep the tests on the CPU."""

        def on_cpu(item):
            parameters = item.callspec.params if hasattr(item, "callspec") else {}
            return "cuda" not in item.fixturenames and parameters.get("device") != "cuda"

        items[:] = filter(on_cpu, items)

    def pytest_runtestloop(self, session):
        """Trace the tests, then make the mistakes."""
        from triton_autodiff.plans import cache

        # Plans depend on the mistake; kernels are kept under a hash of their text.
        assert hasattr(cache, "reads_disk")
        cache.reads_disk = lambda: False
        tests = self.trace(session.items)
        if tests is None:
            session.testsfailed = 1
            return True
        mistakes: dict[str, list] = {}
        for item, seconds, names in sorted(tests, key=lambda test: test[1]):
            for name in names:
                mistakes.setdefault(name, []).append((item, seconds))
        self.report_unexercised(mistakes)
        names = [n for n in mistakes if self.options.only in n and n not in EQUIVALENT]
        names = sampled(names, self.options.sample, self.options.seed)
        left = [name for name in names if ("mistake", name) not in self.journal.known]
        makers = [lambda name=name: self.mutant(name, mistakes[name]) for name in left]
        for job in run_jobs(self.in_time(makers), self.options.jobs):
            self.judge(job)
        verdicts = [self.journal.known.get(("mistake", name)) for name in names]
        survived = [
            name for name, verdict in zip(names, verdicts, strict=True) if verdict == [False]
        ]
        self.survivors += survived
        unknown = verdicts.count(None)
        print(f"{len(names) - len(survived) - unknown} of {len(names)} mistakes noticed, ", end="")
        print(f"{len(self.survivors)} survivors, {unknown} not made yet: {self.survivors}")
        session.testsfailed = len(self.survivors) + unknown
        return True

    def in_time(self, makers):
        """Yield what can be begun before the time is up."""
        return itertools.takewhile(lambda _: time.monotonic() < self.end, makers)

    def trace(self, items):
        """Run the tests without a mistake.

        Returns (test, seconds, mistakes it could notice), or None if time was up.
        """
        known = self.journal.known
        unknown = [item for item in items if ("test", item.nodeid) not in known]
        shares = [unknown[n : n + SHARE] for n in range(0, len(unknown), SHARE)]
        makers = [
            lambda n=n: Job(n, lambda tell: self.trace_share(shares[n], tell))
            for n in range(len(shares))
        ]
        for job in run_jobs(self.in_time(makers), self.options.jobs):
            for item, line in zip(shares[job.name], job.lines, strict=False):
                self.journal.add("test", item.nodeid, *line)
            for item in shares[job.name][len(job.lines) :]:
                self.journal.add(
                    "test", item.nodeid, "failed: it, or one before it, crashes", 0, []
                )
        found, missing = [], 0
        for item in items:
            result, seconds, names = known.get(("test", item.nodeid), ("unknown", 0, []))
            missing += result == "unknown"
            if result == "passed":
                found.append((item, seconds, names))
            elif result.startswith("failed"):
                print(f"LEFT OUT {item.nodeid}, which fails as it is: {result}")
        print(f"{len(found)} tests, {missing} to be looked at", flush=True)
        return None if missing else found

    def trace_share(self, items, tell):
        from triton_autodiff.launching import state
        from triton_autodiff.plans import cache

        for number, item in enumerate(items):
            # A test notices what is derived for an earlier one, too: derive everything again.
            cache._plans.clear()
            state._ATTRIBUTE = f"_autodiff_state_{number}"
            with tempfile.NamedTemporaryFile("r") as log, empty_cache():
                os.environ[VARIABLE] = f"trace:{log.name}"
                began = time.monotonic()
                result = outcome(item)
                tell((result, time.monotonic() - began, log.read().splitlines()))

    def first_failure(self, tests):
        """Run tests; returns the name of the first that fails, and why, or None."""
        began = time.monotonic()
        for item, _ in tests:
            if time.monotonic() - began > PATIENCE:
                break
            signal.alarm(SECONDS)
            result = outcome(item)
            if result.startswith("failed"):
                return item.nodeid, result
        return None

    def mutant(self, name, tests):
        """Start a process that makes one mistake and runs tests until one fails."""

        def work(tell):
            os.environ[VARIABLE] = name
            with empty_cache() if name.startswith(IN_KERNELS) else contextlib.nullcontext():
                tell(self.first_failure(tests))

        return Job(name, work)

    def judge(self, job):
        """Print what came of a mutant."""
        survived = job.lines == [None]
        self.journal.add("mistake", job.name, not survived)
        if job.lines and not survived:
            test, why = job.lines[0]
        else:
            test = "-" if survived else "(crash)"
            why = "hangs" if job.status == -signal.SIGALRM else f"exit status {job.status}"
        verdict = "SURVIVED" if survived else "noticed "
        place = test.removeprefix("python/test/unit/")
        reason = "" if survived else why.splitlines()[0][:60]
        print(f"{verdict} {job.name:55} {job.seconds:5.1f} s  {place}  {reason}", flush=True)

    def report_unexercised(self, mistakes):
        """Count rules without a single mistake as survivors: no test reached them."""
        from triton_autodiff import _native

        reached = {name.split(":")[0].split("(")[0] for name in mistakes}
        for line in _native.rules_markdown().splitlines():
            # Of the functions' own table, the operation that calls them is the rule.
            row = re.fullmatch(r"\| `(\w+\.\w+)` \| .+ \| (.+) \|", line)
            if row is None:
                continue
            operation, kind = row.groups()
            if kind != "constant" and operation not in reached and self.options.only in operation:
                self.survivors.append(operation)
                print(f"SURVIVED {operation}: no test exercises this rule")


def main() -> int:
    """Parse the command line, build, and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="the mistakes whose names hold this text")
    parser.add_argument("--sample", type=int, help="that many of these, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--installed", action="store_true", help="take the installed library")
    parser.add_argument("--library", type=Path, help="a library that was built with TAD_MUTATION")
    parser.add_argument("--journal", type=Path, help="keep what is learnt here, and go on from it")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin nothing after so long"
    )
    parser.add_argument("tests", nargs="*", help="test files; by default all about derivatives")
    options = parser.parse_args()
    began = time.monotonic()
    load(installed() if options.installed else options.library or build())
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import torch

    # Threads do not survive a fork.
    torch.set_num_threads(1)
    tests = options.tests or [
        str(path)
        for path in sorted(TESTS.glob("test_*.py"))
        if not path.stem.removeprefix("test_").startswith(LEFT_OUT)
    ]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--device=cpu", "-s"]
        status = pytest.main([*arguments, *tests], plugins=[Mutation(options)])
    print(f"{time.monotonic() - began:.0f} s")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
