"""Finds the files that this package has written to Triton's cache directory.

A folder there is named after a hash of what its contents depend on. Plans, measured choices and
generated kernels, as Triton's passes leave them, are known by their file names. Any other text of a
generated kernel is in the folder that is named after its own hash. Code for the CPU is always ours.
Kernels that Triton has compiled for a GPU are Triton's, even those that we gave it.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import hashlib
import re
import shutil
from pathlib import Path

_NAMED = {
    "plans": re.compile(r".*\.plan\.json"),
    "measurements": re.compile(r".*\.tuning\.json"),
    "generated kernels": re.compile(r"[0-9a-f]{64}\.accepted\.ttir"),
    "objects for the CPU": re.compile(r".*\.cpu_object"),
    "kernels assembled anew": re.compile(r"[0-9a-f]{64}\.assembled\.cubin"),
}
_TEXTS = (".ttir", ".ttgir")


@dataclasses.dataclass
class Leftover:
    """A file of ours, or a folder with only such files."""

    kind: str
    path: Path
    size: int


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _kind(file: Path) -> str | None:
    """Return the kind of a file, None if it is not ours."""
    for kind, pattern in _NAMED.items():
        if pattern.fullmatch(file.name):
            return kind
    if file.suffix not in _TEXTS:
        return None
    digest = base64.b32encode(hashlib.sha256(file.read_bytes()).digest()).decode().rstrip("=")
    return "generated kernels" if digest == file.parent.name else None


def find(directory) -> list[Leftover]:
    """Return our files in a cache directory; raises `OSError` if it cannot be read."""
    found = []
    for folder in sorted(Path(directory).iterdir()) if Path(directory).is_dir() else ():
        if folder.is_symlink() or not folder.is_dir():
            continue
        files = [file for file in folder.iterdir() if file.is_file() and not file.is_symlink()]
        # Triton's group file of a kernel that was compiled for the CPU.
        if any(f.suffix == ".obj" and f.with_suffix(".json") in files for f in files):
            found.append(Leftover("code for the CPU", folder, _size(folder)))
            continue
        for file in files:
            kind = _kind(file)
            if kind is not None:
                found.append(Leftover(kind, file, _size(file)))
    return found


def remove(leftovers) -> None:
    """Delete files, and folders that are empty then. Another process may delete the same."""
    for leftover in leftovers:
        with contextlib.suppress(FileNotFoundError):
            if leftover.path.is_dir():
                shutil.rmtree(leftover.path)
                continue
            leftover.path.unlink()
            if not any(leftover.path.parent.iterdir()):
                leftover.path.parent.rmdir()


def totals(leftovers) -> dict[str, tuple[int, int]]:
    """Return the number and the bytes of each kind."""
    found: dict[str, tuple[int, int]] = {}
    for leftover in leftovers:
        count, size = found.get(leftover.kind, (0, 0))
        found[leftover.kind] = count + 1, size + leftover.size
    return found
