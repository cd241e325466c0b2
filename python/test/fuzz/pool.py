"""Worker processes that check programs, many at a time, started again where one is lost."""

from __future__ import annotations

import json
import os
import queue
import select
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

CHUNK = 20
# A program that takes so many seconds hangs; a busy machine may take long to start one.
PATIENCE = {"cpu": 600, "cuda": 120}
# A worker that serves so many chunks is replaced: what it has compiled takes memory.
CHUNKS = 25


class Worker:
    """A worker process, started again after it crashed or hung.

    What it compiles goes with the process. With `keeps`, it stays in Triton's cache: for programs
    that are the same in each run.
    """

    def __init__(self, device: str = "cpu", keeps: bool = False):
        self.device, self.keeps = device, keeps
        self.process = None
        self.folder = None
        self.served = 0
        self.errors = tempfile.TemporaryFile()

    def start(self) -> None:
        """Start a process, in place of one that may still run."""
        self.close()
        # Programs of a grid run one after the other: results are the same each time.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TRITON_AUTODIFF_CPU_THREADS": "1"}
        self.folder = tempfile.TemporaryDirectory()
        if not self.keeps:
            # Launchers are compiled once for many programs.
            environment["TRITON_CACHE_DIR"] = self.folder.name
        if self.device == "cpu":
            environment["CUDA_VISIBLE_DEVICES"] = ""
        # The tests' modules, and the package that the tests have.
        paths = [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        self.served = 0
        self.process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-m", "fuzz.worker", self.folder.name],
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
            self.folder.cleanup()

    def lost(self, hung: bool) -> str:
        """Return how the process ended, and its last words."""
        self.close()
        size = self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(size - 2000, 0))
        return f"{'hung' if hung else 'crashed'}\n{self.errors.read().decode(errors='replace')}"

    def check(self, requests: list[dict]):
        """Yield what came of each program."""
        while requests:
            if self.process is None or self.process.poll() is not None or self.served > CHUNKS:
                self.start()
            self.served += 1
            self.process.stdin.write(json.dumps(requests).encode() + b"\n")
            self.process.stdin.flush()
            for i, request in enumerate(requests):
                ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE[self.device])
                line = self.process.stdout.readline() if ready else b""
                result = json.loads(line) if line else {
                    "status": "crashed", "reason": self.lost(not ready), "features": [],
                }  # fmt: skip
                yield {**request, **result}
                if result["status"] == "crashed":
                    # The process ends, or has ended.
                    self.close()
                    requests = requests[i + 1 :]
                    break
            else:
                return


def run(requests: list[dict], jobs: int, report, device: str = "cpu", seconds=None) -> None:
    """Check programs on so many workers; `report` is called with each result.

    No program is begun after so many seconds.
    """
    end = None if seconds is None else time.monotonic() + seconds
    chunks: queue.SimpleQueue = queue.SimpleQueue()
    size = max(min(CHUNK, len(requests) // (4 * jobs)), 1)
    for i in range(0, len(requests), size):
        chunks.put(requests[i : i + size])
    lock = threading.Lock()

    def work():
        worker = Worker(device)
        while end is None or time.monotonic() < end:
            try:
                chunk = chunks.get_nowait()
            except queue.Empty:
                break
            for result in worker.check(chunk):
                with lock:
                    report(result)
                if end is not None and time.monotonic() > end:
                    break
        worker.close()

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
