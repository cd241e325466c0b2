"""Start a program many times on a busy machine, and count how it ends.

    python scripts/starts.py docs/pytorch.md FOLDER [--starts N] [--jobs N] [--seconds N]

Of a page, the first block of Python is started. FOLDER gets the caches, and what starts leave that
did not end well: output and cores. The exit status is 1 if there are any.

Starts differ. Some are new processes. Others are forks of one that has imported PyTorch, Triton
and Inductor: what runs then is the program, and the process's end. That end is whole, or quick,
which takes half the time: what was there before the fork is not taken down. Caches are kept, empty,
empty and filled by several starts at once, or kept with files that were cut off. Some starts have
one core, and some (of new processes) have threads that are always late.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import faulthandler
import gc
import importlib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
# What most of a start's time goes into.
IMPORTED = (
    "torch._dynamo",
    "torch._functorch.aot_autograd",
    "torch._inductor.async_compile",
    "torch._inductor.codegen.cpp",
    "torch._inductor.codegen.cpp_wrapper_cpu",
    "torch._inductor.codegen.triton",
    "torch._inductor.compile_fx",
    "torch._dynamo.repro.after_dynamo",
    "torch.export._trace",
    "triton.language",
    "triton_autodiff.api",
    "triton_autodiff.graphs.operator",
)
# Seconds until a start is ended: a hang is no good end.
PATIENCE = 300

# What makes Inductor start fewer processes: compilers beside its own, and one that reads headers.
CHEAPER = {
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
}


class Start(NamedTuple):
    """One start, and what is special about it."""

    number: int
    way: str  # "new", "fork" or "quick"
    caches: str
    is_late: bool
    has_one_core: bool
    folder: Path  # of its caches
    begin: float

    @property
    def kind(self) -> str:
        special = (" late threads" * self.is_late, " one core" * self.has_one_core)
        return f"{self.way}, caches {self.caches}{''.join(special)}"


def program_of(path: Path) -> str:
    """Return the text of a program, or of the first one on a page."""
    text = path.read_text()
    if path.suffix != ".md":
        return text
    return re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]


def weighted(text: str) -> list[str]:
    """Return the names in "a:3,b:1", each as often as its number says."""
    pairs = (part.split(":") for part in text.split(","))
    return [name for name, count in pairs for _ in range(int(count))]


def late_threads(folder: Path) -> Path | None:
    """Return the library that makes threads late, None if there is no C compiler."""
    library = folder / "late_threads.so"
    command = ["cc", "-O1", "-fPIC", "-shared", "-o", library, HERE / "late_threads.c", "-ldl"]
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return library


def cut_off(folder: Path) -> None:
    """Shorten some files of Triton's cache, as a full disk does."""
    for path in (folder / "triton").rglob("*"):
        if path.is_file() and random.random() < 0.3:
            os.truncate(path, random.randrange(path.stat().st_size + 1))


class Starts:
    """Starts of one program, several at a time."""

    def __init__(self, options):
        self.folder = options.folder.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.program = self.folder / "program.py"
        self.program.write_text(program_of(options.program))
        self.ways, self.caches = weighted(options.ways), weighted(options.caches)
        self.jobs = options.jobs
        self.late = late_threads(self.folder)
        self.process = os.getpid()
        self.running: dict[int, Start] = {}
        self.ends = collections.Counter()
        self.bad = 0

    def run(self, count: int, seconds: float) -> None:
        """Start the program so many times, nothing after so many seconds."""
        if {"fork", "quick"} & set(self.ways):
            os.environ.update(CHEAPER)
            for name in IMPORTED:
                importlib.import_module(name)
            # What a process asks once: what the processor can do, and whose files a cache holds.
            from torch._inductor import codecache, cpu_vec_isa
            from triton.runtime.cache import triton_key

            cpu_vec_isa.pick_vec_isa()
            codecache.torch_key()
            triton_key()
            gc.collect()
        end = time.monotonic() + seconds
        number = 0
        while (number < count and time.monotonic() < end) or self.running:
            if len(self.running) < self.jobs and number < count and time.monotonic() < end:
                number += 1
                self._begin(number)
            else:
                self._wait()

    def report(self) -> None:
        """Print how starts of each kind have ended."""
        for kind, count in sorted(self.ends.items()):
            print(f"{count:6} {kind}")
        print(f"{sum(self.ends.values())} starts, {self.bad} that did not end well")
        if self.running:
            print(f"{len(self.running)} are still running")

    def _work(self, start: Start) -> Path:
        return self.folder / f"start{start.number}"

    def _begin(self, number: int) -> None:
        caches, way = random.choice(self.caches), random.choice(self.ways)
        names = {"kept": "kept", "shared": f"shared{number // (2 * self.jobs)}"}
        late = way == "new" and self.late is not None and random.random() < 0.5
        folder = self.folder / names.get(caches, f"caches{number}")
        now = time.monotonic()
        start = Start(number, way, caches, late, random.random() < 0.3, folder, now)
        self._work(start).mkdir()
        seed = random.randrange(1 << 30)
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            random.seed(seed)
            self._become(start)
        self.running[child] = start

    def _become(self, start: Start) -> None:
        """Be a start; does not return."""
        os.setpgid(0, 0)
        os.chdir(self._work(start))
        output = os.open("output", os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if start.caches == "cut":
            # Others may write there.
            with contextlib.suppress(OSError):
                shutil.copytree(self.folder / "kept", start.folder)
            cut_off(start.folder)
        if start.has_one_core:
            os.sched_setaffinity(0, {random.choice(sorted(os.sched_getaffinity(0)))})
        os.environ["TRITON_CACHE_DIR"] = str(start.folder / "triton")
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(start.folder / "inductor")
        if start.way == "new":
            for name in CHEAPER:
                os.environ.pop(name, None)
            if start.is_late:
                os.environ["LD_PRELOAD"] = str(self.late)
            os.execv(sys.executable, [sys.executable, "-X", "faulthandler", str(self.program)])
        if start.way == "quick":
            gc.freeze()
        faulthandler.enable()
        space = {"__name__": "__main__", "__file__": str(self.program)}
        exec(compile(self.program.read_text(), str(self.program), "exec"), space)
        # As at the end of a program: `Starts.run` goes no further.
        sys.exit()

    def _wait(self) -> None:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child:
            self._end(self.running.pop(child), os.waitstatus_to_exitcode(status))
            return
        for process, start in self.running.items():
            if time.monotonic() - start.begin > PATIENCE:
                os.killpg(process, signal.SIGKILL)
        time.sleep(0.01)

    def _end(self, start: Start, code: int) -> None:
        work = self._work(start)
        how = signal.Signals(-code).name if code < 0 else f"status {code}"
        self.ends[f"{start.kind}: {how}"] += 1
        if code or any(work.glob("core*")):
            self.bad += 1
            output = (work / "output").read_text(errors="replace")
            print(f"start {start.number} ({start.kind}): {how}\n{output[-3000:]}", flush=True)
        else:
            shutil.rmtree(work)
        if start.caches in ("cut", "empty"):
            shutil.rmtree(start.folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path, help="a program, or a page with one")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--starts", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=3 * len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start nothing later")
    parser.add_argument("--ways", default="new:1,fork:3,quick:12")
    parser.add_argument("--caches", default="kept:5,shared:2,empty:1,cut:2")
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))
    starts = Starts(options)
    # Who is stopped says what has come of it, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        starts.run(options.starts, options.seconds)
    finally:
        if os.getpid() == starts.process:
            starts.report()
    sys.exit(starts.bad > 0)


if __name__ == "__main__":
    main()
