"""Worker processes: one that hangs or crashes only costs the variant in flight."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from streams import lines_of

from . import ROOT
from .problem import THEIRS
from .worker import MARK, Request

# Seconds until a process has imported packages and begins.
_START = 300.0


class Pool:
    """Runs requests until they are done or time is up, and passes each row to `write`."""

    def __init__(self, jobs: int, write: Callable[[dict], None], limit: float, seconds: float):
        self.jobs = jobs
        self.write = write
        self.limit = limit
        self.deadline = time.monotonic() + seconds

    def run(self, requests: Iterable[Request]) -> int:
        """Run all requests; returns how many tasks there was no time for."""
        with ThreadPoolExecutor(self.jobs) as threads:
            return sum(threads.map(self._finish, requests))

    def _left(self) -> float:
        return self.deadline - time.monotonic()

    def _finish(self, request: Request) -> int:
        """Run one request, in as many processes as necessary."""
        tasks, lost = list(request.tasks), []
        while tasks and self._left() > 0:
            with tempfile.TemporaryFile("w+") as errors:
                self._run(request._replace(tasks=tasks, lost=lost), tasks, lost, errors)
        return len(tasks)

    def _run(self, request: Request, tasks: list, lost: list, errors) -> None:
        """Run a process; removes finished tasks from `tasks`, and adds crashed ones to `lost`."""
        environment = {
            **os.environ,
            # Kernels are compared, not what torch.compile makes of the code around them.
            "TORCHDYNAMO_DISABLE": "1",
            "ARENA_REQUEST": json.dumps(request._asdict()),
            "PYTHONPATH": os.pathsep.join(
                filter(None, [str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH")])
            ),
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "arena.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
        )
        lines, limit, who = lines_of(process.stdout), max(_START, self.limit), None
        try:
            while tasks:
                patience = min(limit, self._left())
                try:
                    line = lines.get(timeout=max(patience, 0.0))
                except queue.Empty:
                    if self._left() > 0:
                        self._give_up(tasks, f"no result within {limit:.0f} s")
                    return
                if line is None:
                    if self._left() > 0:
                        self._end(tasks, lost, who, self._ending(process, errors))
                    return
                message = json.loads(line[len(MARK) :]) if line.startswith(MARK) else {}
                limit = self.limit if message else limit
                who = message.get("who", None if "begin" in message else who)
                if "lost" in message:
                    self._end(tasks, lost, who, message["lost"])
                    return
                if "row" in message:
                    tasks.pop(0)
                    self.write(message["row"])
        finally:
            process.kill()
            process.wait()

    def _end(self, tasks: list, lost: list, who: str | None, how: str) -> None:
        """Note once whose code has ended a process; the second time, the variant is given up."""
        if who == THEIRS and tasks[0] not in [task for task, _ in lost]:
            lost.append((tasks[0], how))
        else:
            self._give_up(tasks, how)

    def _give_up(self, tasks: list, reason: str) -> None:
        package, case, size, dtype = tasks.pop(0)
        row = {"package": package, "case": case, "size": size, "dtype": dtype, "failed": reason}
        self.write(row)

    @staticmethod
    def _ending(process, errors) -> str:
        """How a process ended that has not reported it."""
        status = process.wait()
        errors.seek(0)
        last = [line for line in errors.read().splitlines() if line.strip()][-3:]
        how = f"signal {-status}" if status < 0 else f"status {status}"
        return f"the process ended ({how}): {' | '.join(last)[-400:]}"


def threads_of_each(jobs: int) -> None:
    """Divide the machine's cores among workers; otherwise each would use all of them."""
    share = str(max(1, (os.cpu_count() or 1) // jobs))
    for name in ("OMP_NUM_THREADS", "TRITON_AUTODIFF_CPU_THREADS"):
        os.environ.setdefault(name, share)


def default_cache() -> Path:
    """The cache of compiled kernels for all runs, with a folder for each case."""
    return ROOT / "build" / "arena-cache"
