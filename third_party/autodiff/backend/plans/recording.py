"""Keeps requests for plans in a folder: a corpus of launches.

With `TRITON_AUTODIFF_RECORD=FOLDER`, every request for a plan is written to a file there, whether
the plan is cached or not. A request that exists already is not written again, so that many runs and
processes may share a folder.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import NamedTuple

from ..errors import AutodiffError
from ..support.whole_files import put

VARIABLE = "TRITON_AUTODIFF_RECORD"
# All gradients of a kernel.
REQUEST = {"wanted": None, "cotangents": None, "atomic": [], "save": True, "reload": True}


class Asked(NamedTuple):
    """A kernel's name and text, and a request for it (docs/plan.md)."""

    name: str
    ttir: str
    request: dict

    @property
    def key(self) -> str:
        """A name that identifies the request."""
        text = "\0".join((self.name, self.ttir, json.dumps(self.request, sort_keys=True)))
        return f"{self.name[:80]}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def note(ttir: str, request: dict, name: str) -> None:
    """Write a request to the folder that the variable names, if it is set."""
    given = os.environ.get(VARIABLE)
    if not given:
        return
    asked = Asked(name, ttir, request)
    folder = Path(given)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{asked.key}.json"
        if not path.exists():
            # If another process writes the same file, the contents are equal.
            put(path, json.dumps(asked._asdict()).encode())
    except OSError as error:
        raise AutodiffError(f"{VARIABLE}={given} cannot be written to: {error}") from error


def read_one(path: Path) -> Asked:
    """Return the request in a file; for a kernel in TTIR, one for all gradients."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ttir":
        import triton

        return Asked(path.stem, text, {**REQUEST, "triton": triton.__version__})
    try:
        data = json.loads(text)
    except ValueError as error:
        raise AutodiffError(f"{path} is damaged: {error}") from error
    return asked_from_json(data, path)


def asked_from_json(data, where) -> Asked:
    """Return a request from JSON, which is in the file `where`."""
    for field, kind in (("name", str), ("ttir", str), ("request", dict)):
        if not isinstance(data, dict) or not isinstance(data.get(field), kind):
            raise AutodiffError(f"{where} holds no request for a plan: it has no {field!r}")
    return Asked(*(data[field] for field in Asked._fields))


def files(folder) -> list[Path]:
    """Return the files of a corpus, in order of their names."""
    folder = Path(folder)
    if not folder.is_dir():
        return [folder]
    return sorted(path for kind in ("json", "ttir") for path in folder.rglob(f"*.{kind}"))


def read(folder) -> list[Asked]:
    """Return the requests in a folder, in order of the keys.

    `*.json` are recorded requests, `*.ttir` kernels for which all gradients are requested.
    """
    found = {asked.key: asked for asked in map(read_one, files(folder))}
    if not found:
        raise AutodiffError(f"{folder} holds no *.json or *.ttir")
    return [found[key] for key in sorted(found)]
