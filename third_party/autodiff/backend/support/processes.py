"""Runs tasks that may crash or hang, each in its own process."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import time
from typing import NamedTuple

from ..entry_point import PACKAGE


class End(NamedTuple):
    """The last event of a task: why its process did not end by itself (or None), and the time."""

    reason: str | None
    seconds: float


def _child(connection, work, task):
    """Entry point of a task's process."""
    # Compilers may print; that is no output of the task.
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    work(connection.send, *task)
    connection.send(None)


class _Running:
    """A task and its process."""

    def __init__(self, context, work, task):
        self.task = task
        self.start = time.monotonic()
        self.connection, other = context.Pipe(duplex=False)
        self.process = context.Process(target=_child, args=(other, work, task))
        self.process.start()
        other.close()

    def next_event(self):
        """Receive one event; if the stream ends before the last one, the process has crashed."""
        try:
            event = self.connection.recv()
        except EOFError:
            self.process.join()
            return self.end(f"the process ended with {self.process.exitcode} (a crash)")
        return self.end() if event is None else event

    def end(self, reason: str | None = None) -> End:
        """End the process, by force if there is a reason."""
        if self.process.is_alive() and reason is not None:
            self.process.kill()
        self.process.join()
        self.connection.close()
        return End(reason, time.monotonic() - self.start)


def run_each(tasks, work, workers=2, timeout=600.0, start_method="forkserver"):
    """Call `work(send, *task)` for every task; yields pairs of a task and what it has sent.

    The last for each task is an `End`. None must not be sent. `tasks` are taken from their iterator
    when a process is free.
    """
    context = multiprocessing.get_context(start_method)
    context.set_forkserver_preload(["triton", f"{PACKAGE}._native", f"{PACKAGE}.__main__"])
    waiting, running, more = iter(tasks), [], True
    try:
        while more or running:
            while more and len(running) < workers:
                task = next(waiting, None)
                more = task is not None
                if more:
                    running.append(_Running(context, work, task))
            ready = multiprocessing.connection.wait([r.connection for r in running], timeout=1.0)
            for one in list(running):
                if one.connection in ready:
                    event = one.next_event()
                elif time.monotonic() - one.start > timeout:
                    event = one.end(f"took more than {timeout:g} s")
                else:
                    continue
                if isinstance(event, End):
                    running.remove(one)
                yield one.task, event
    finally:
        for one in running:
            one.end("nobody waits for it")
