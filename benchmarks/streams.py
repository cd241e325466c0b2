"""Reads the output of other processes."""

from __future__ import annotations

import queue
import threading


def lines_of(stream) -> queue.Queue:
    """The stream's lines as they come, then None."""
    lines: queue.Queue = queue.Queue()

    def read():
        for line in stream:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines
