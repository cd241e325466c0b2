"""The faults of others, read from `faults.json`: one table for Python, C++ and the documentation.

It needs neither Triton nor PyTorch, so that it can be read where these are broken.
"""

from __future__ import annotations

import functools
import itertools
import json
from pathlib import Path
from typing import NamedTuple

_PATH = Path(__file__).with_name("faults.json")


class Fault(NamedTuple):
    """A fault of a program that this package works with.

    - `name`: what it is called here, and in descriptions of passes ("Fault: NAME.").
    - `of`: whose it is: Triton, ptxas, PyTorch, LLVM or CPython.
    - `what`: what goes wrong. The first sentence says it without an example.
    - `since`, `right`: the first version of `of` that has it, and the first that does not. None if
      that is not known, or not yet so. (`from` in the file.)
    - `avoided`: the first Triton whose own code does not meet it any more, if it is another's.
    - `targets`: the GPUs that it is about ("sm_90"); empty if the GPU makes no difference.
    - `noticed`, `done`: how we see it, and what we do.
    - `where`: our files and passes that are there because of it.
    - `goes`: when these may be removed.
    - `shown`: what shows it without our code: compiling (with Triton), ptxas, python, or a gpu;
      None if nothing small does.
    - `test`: the test that shows it, or else one of what is done.
    """

    name: str
    of: str
    what: str
    noticed: str
    done: str
    where: tuple[str, ...]
    goes: str
    test: str
    since: str | None = None
    right: str | None = None
    avoided: str | None = None
    targets: tuple[str, ...] = ()
    shown: str | None = None

    def affects(self, version: str | tuple[int, ...]) -> bool:
        """Return whether a version of `of` has the fault, as far as is known."""
        since, right = numbers(self.since or ""), numbers(self.right or "")
        here = numbers(version) if isinstance(version, str) else version
        return since <= here and (not right or here < right)

    def is_met(self, versions: dict[str, str], target: str | None = None) -> bool:
        """Return whether the fault is met with these versions of programs, and on this GPU.

        A program that is not named is not there. Without a GPU, faults of all GPUs count.
        """
        if self.of not in versions or not self.affects(versions[self.of]):
            return False
        if self.avoided and numbers(versions.get("Triton", "")) >= numbers(self.avoided):
            return False
        return target is None or not self.targets or target in self.targets


def numbers(version: str) -> tuple[int, ...]:
    """Return the major and the minor number of a version: (3, 6) of "3.6.0+git"."""
    parts = version.split(".")[:2] if version else []
    return tuple(int("0" + "".join(itertools.takewhile(str.isdigit, part))) for part in parts)


@functools.cache
def faults() -> tuple[Fault, ...]:
    """Return all faults, in the order of the file."""
    entries = json.loads(_PATH.read_text(encoding="utf-8"))
    return tuple(_fault_of(entry) for entry in entries)


def fault(name: str) -> Fault:
    """Return a fault by its name; raises `KeyError` if there is none."""
    found = {each.name: each for each in faults()}
    return found[name]


def _fault_of(entry: dict) -> Fault:
    entry = {"since" if key == "from" else key: value for key, value in entry.items()}
    lists = {k: tuple(v) for k, v in entry.items() if isinstance(v, list)}
    return Fault(**{**entry, **lists})
