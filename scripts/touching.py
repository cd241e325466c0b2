"""A pytest plugin that notes which functions of the package each test runs, and for how long.

    PYTHONPATH=scripts python -m pytest -p touching --touched FILE [--cases N] [tests…]

FILE gets a line of JSON for each test that passes; a test that is in it is not run again. What a
test runs in other processes is not seen.
"""

from __future__ import annotations

import collections
import json
import re
import sys
import threading
import time
from pathlib import Path

import pytest


def name_of(code, package: str) -> str | None:
    """Return "room/module:Class.function" for code of the package, None for other code.

    Lambdas and comprehensions belong to the function around them.
    """
    file = code.co_filename.removeprefix(f"{package}/")
    if file == code.co_filename or not file.endswith(".py"):
        return None
    names = [n for n in code.co_qualname.split(".") if not n.startswith("<")]
    return f"{file.removesuffix('.py')}:{'.'.join(names)}"


def read(path: Path) -> dict[str, tuple[float, frozenset[str]]]:
    """Return the seconds and the functions of each test in a file of these notes."""
    lines = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return {line["test"]: (line["seconds"], frozenset(line["touched"])) for line in lines}


class Touching:
    """Traces calls while a test runs."""

    def __init__(self, path: Path, cases: int | None):
        self.path, self.cases = path, cases
        self.touched: set = set()
        self.package = ""

    def trace(self, frame, event, argument):
        """Note a call; lines are not traced."""
        self.touched.add(frame.f_code)

    def pytest_collection_modifyitems(self, items):
        """Keep the tests that are not known, and of each function so many cases as asked for."""
        known, counts, kept = read(self.path), collections.Counter(), []
        for item in items:
            cases = getattr(item, "callspec", None)
            if cases is not None and cases.params.get("device") == "cuda":
                continue
            function = item.nodeid.partition("[")[0]
            counts[function] += 1
            if item.nodeid not in known and counts[function] <= (self.cases or len(items)):
                kept.append(item)
        items[:] = kept

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Trace a test, its fixtures too."""
        import triton_autodiff

        self.package = str(Path(triton_autodiff.__file__).parent)
        self.touched.clear()
        self.passed = True
        began = time.monotonic()
        threading.settrace(self.trace)
        sys.settrace(self.trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            if self.passed:
                self.note(item.nodeid, time.monotonic() - began)

    def pytest_runtest_logreport(self, report):
        """What is skipped, or fails, shows nothing."""
        self.passed &= report.passed

    def note(self, test: str, seconds: float) -> None:
        """Write the line of a test."""
        touched = sorted({name_of(code, self.package) for code in self.touched} - {None})
        line = {"test": test, "seconds": round(seconds, 2), "touched": touched}
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")


class LeavingOut:
    """Leaves out the tests in whose names, or cases, one of some words stands."""

    def __init__(self, words: str):
        self.words = set(words.split(","))

    def pytest_collection_modifyitems(self, items):
        items[:] = [i for i in items if self.words.isdisjoint(re.split(r"[^\w]+", i.nodeid))]


def pytest_addoption(parser):
    """Add this plugin's options."""
    parser.addoption("--touched", type=Path, help="the file for what each test runs")
    parser.addoption("--cases", type=int, help="run so many cases of each test function")
    parser.addoption("--leave-out", default="", help="words in the names of tests, with commas")


def pytest_configure(config):
    """Do what the options ask for."""
    if (path := config.getoption("--touched")) is not None:
        path = path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        config.pluginmanager.register(Touching(path, config.getoption("--cases")))
    if words := config.getoption("--leave-out"):
        config.pluginmanager.register(LeavingOut(words))
