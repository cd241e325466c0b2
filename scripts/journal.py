"""Samples of deliberate mistakes, and what has come of them: a later run goes on from there."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path


def place(seed: int, name: str) -> bytes:
    """Return where a name stands in the order of a seed: a longer sample begins with a shorter."""
    return hashlib.sha256(f"{seed} {name}".encode()).digest()


class Journal:
    """The results that are known, by the name of what was tried: lines of JSON in a file."""

    def __init__(self, path: Path):
        self.path = path
        lines = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
        self.known = {line["name"]: line for line in lines}

    def add(self, line: dict) -> None:
        """Keep a result."""
        self.known[line["name"]] = line
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
