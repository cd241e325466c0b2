"""Results: lines of JSON, one for each variant of a case, that runs append to and resume from."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from pathlib import Path

JUDGED, TIMED, ORDERS = "judged.jsonl", "timed.jsonl", "orders.jsonl"
ATOMICS = "atomics.jsonl"
# Errors that may not happen again in a later run.
_TRANSIENT = ("out of memory", "no result within")


def key(row: dict) -> tuple[str, str, str, str]:
    """The package, case, size and dtype of a row."""
    return row["package"], row["case"], row["size"], row["dtype"]


def read(paths: Iterable[Path], name: str) -> dict[tuple, dict]:
    """The rows of files of this name in these folders; a later row of a variant replaces others.

    The last line of a run that was killed may be cut off.
    """
    found, machine = {}, {}
    for folder in paths:
        file = Path(folder) / name
        if not file.exists():
            continue
        for line in file.read_text().splitlines():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue
            if "machine" in row:
                machine = row["machine"]
            else:
                found[key(row)] = {**row, "machine": machine}
    return found


def settled(row: dict, retry: bool) -> bool:
    """Whether a variant need not run again."""
    failed = row.get("failed")
    return failed is None or not (retry or any(words in failed for words in _TRANSIENT))


class Sink:
    """A file to which rows are appended at once: a killed run only loses the row in flight."""

    def __init__(self, folder: Path, name: str, machine: dict):
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / name).open("a")
        self._lock = threading.Lock()
        self.write({"machine": machine})

    def write(self, row: dict) -> None:
        """Append a row."""
        with self._lock:
            self._file.write(json.dumps(row) + "\n")
            self._file.flush()
