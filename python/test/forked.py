"""Programs that run as `python FILE` does, in a process that has imported PyTorch and Triton.

Importing both takes longer than most programs of the documentation run. So one process imports
them, and each program is a fork of it: with modules, threads and a memory of its own, but for what
these imports have left there. No program has used a GPU before it. What the two read of the
environment when they are imported is that of the tests.

    python -m forked        reads requests, a line of JSON each, and answers with statuses
"""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import json
import os
import runpy
import selectors
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
_PR_SET_PDEATHSIG = 1


class Parent:
    """The process that has imported both."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "forked"],
            cwd=HERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, request: dict, timeout: float) -> int:
        """Run a program and return its status; raises `TimeoutExpired`.

        After any exception, the process and all that it has started are gone.
        """
        try:
            return self._answer(request, timeout)
        except BaseException:
            _parent.cache_clear()
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise

    def _answer(self, request: dict, timeout: float) -> int:
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(timeout):
                raise subprocess.TimeoutExpired(request["file"], timeout)
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"what forks programs ended while {request['file']} ran")
        return int(answer)


@functools.cache
def _parent() -> Parent:
    return Parent()


def run(file, timeout: float = 600.0) -> subprocess.CompletedProcess:
    """Run a file of Python with this environment; returns its status and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        printed = [str(Path(folder, name)) for name in ("out", "errors")]
        request = {
            "file": str(file),
            "folder": os.getcwd(),
            "environment": dict(os.environ),
            "printed": printed,
        }
        status = _parent().run(request, timeout)
        texts = [Path(name).read_text() for name in printed]
    return subprocess.CompletedProcess([str(file)], status, *texts)


def _end_with_parent() -> None:
    """Let this process end when the one that started it does, however it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _become(file, folder, environment, printed) -> None:
    """Be the program, in a process of its own."""
    _end_with_parent()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, name in zip((1, 2), printed, strict=True):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    faulthandler.enable()
    sys.argv = [file]
    sys.path[0] = str(Path(file).parent)
    runpy.run_path(file, run_name="__main__")


def main() -> None:
    """Fork a program for each request."""
    _end_with_parent()
    import torch  # noqa: F401
    import triton  # noqa: F401

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                _become(**json.loads(line))
            except SystemExit:
                raise
            except BaseException:
                traceback.print_exc()
                sys.exit(1)
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
