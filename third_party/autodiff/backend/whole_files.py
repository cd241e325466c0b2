"""Files that are written whole or not at all, whatever happens meanwhile."""

from __future__ import annotations

import os
import threading
from pathlib import Path


def put(path: Path, data: bytes) -> None:
    """Put bytes in place of a file; who reads it finds the old ones or the new ones.

    Raises an `OSError` if it cannot be written.
    """
    # Of writers that come together, whoever is last has the file.
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        unfinished.write_bytes(data)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
