"""What has come of deliberate mistakes: lines of JSON in a file, from which a later run goes on."""

from __future__ import annotations

import json
from pathlib import Path


class Journal:
    """The results that are known, by the name of what was tried."""

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
