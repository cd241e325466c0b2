"""Writes files completely or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path


def put(path: Path, data: bytes) -> None:
    """Replace a file's contents; readers find either the old or the new ones.

    Raises an `OSError` if it cannot be written.
    """
    # If several processes write the file, the last one wins.
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        unfinished.write_bytes(data)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
