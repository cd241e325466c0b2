"""Logs work that takes time, on the logger `triton_autodiff`.

`TRITON_AUTODIFF_LOG=info` sends all of it to stderr, with seconds. Without the variable, only work
that takes more than two seconds is announced, and only if stderr is a terminal.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
import threading
import time

from ..errors import AutodiffError

# A level between INFO and WARNING, for a person who waits.
NOTICE = 25
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "notice": NOTICE, "off": None}
# Seconds until work is announced, and until it is announced again.
_PATIENCE, _AGAIN = 2.0, 10.0

logger = logging.getLogger("triton_autodiff")
_here = threading.local()


class _Stderr(logging.StreamHandler):
    """Writes to the current stderr, unless the program has its own handlers."""

    def emit(self, record):
        """Write a record."""
        if not logging.getLogger().handlers:
            self.stream = sys.stderr
            super().emit(record)


@functools.lru_cache
def start() -> None:
    """Configure logging by TRITON_AUTODIFF_LOG; raises an `AutodiffError` for unknown values."""
    given = os.environ.get("TRITON_AUTODIFF_LOG", "")
    if given.lower() not in ("", *LEVELS):
        raise AutodiffError(f"TRITON_AUTODIFF_LOG={given} should be one of {', '.join(LEVELS)}")
    level = LEVELS[given.lower() or ("notice" if sys.stderr and sys.stderr.isatty() else "off")]
    if level is not None:
        logging.addLevelName(NOTICE, "NOTICE")
        handler = _Stderr()
        handler.setFormatter(logging.Formatter("triton_autodiff: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(level)


def _announce(what: str, done: threading.Event) -> None:
    begin, patience = time.monotonic(), _PATIENCE
    while not done.wait(patience):
        logger.log(NOTICE, "still %s (%.0f s)", what, time.monotonic() - begin)
        patience = _AGAIN


def _announcer(what: str, done: threading.Event) -> threading.Thread | None:
    """Start a thread that announces; returns None if there can be no more threads."""
    thread = threading.Thread(target=_announce, args=(what, done), daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread


@contextlib.contextmanager
def work(what: str):
    """Log work that may take long: `what`, like "compiling kernel 'k'", with its seconds."""
    start()
    if not logger.isEnabledFor(NOTICE):
        yield
        return
    # Work that is part of other work is not announced.
    is_part, _here.busy = getattr(_here, "busy", False), True
    done = threading.Event()
    begin = time.monotonic()
    announcer = None if is_part else _announcer(what, done)
    try:
        yield
    finally:
        done.set()
        if announcer is not None:
            # A thread that lived on would be cut off where the interpreter ends.
            announcer.join()
        _here.busy = is_part
        seconds = time.monotonic() - begin
        is_slow = seconds > _PATIENCE and not is_part
        logger.log(NOTICE if is_slow else logging.INFO, "%s: %.2f s", what, seconds)
