"""Every way to look at what is derived, for each kind of kernel that tests launch.

Ways to look are `explain`, the IR, the source, kernels as functions, an exported module, and the
commands. What they show is tested elsewhere. Here none may fail, but with an error that says what
cannot be shown, and why.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

# What a way may refuse, in its words.
REFUSALS = {
    "source": re.compile(r"no form in Python|cannot be (written|printed)"),
    "kernels": re.compile(r"no form in Python|cannot be (written|printed)"),
    "export": re.compile(r"cannot be exported|no form in Python|cannot be (written|printed)"),
}


def ways(plans, folder: Path) -> dict[str, Callable]:
    """Return the ways to look at `(state, plan, execution)` triples of one launch each, by name."""
    from triton.backends.autodiff.explain import backward_text, report
    from triton.backends.autodiff.export import export
    from triton.backends.autodiff.printed_kernels import backward_kernels
    from triton.backends.autodiff.source import backward_source

    found = {
        "explain": lambda: report(plans),
        "verbose": lambda: report(plans, verbose=True),
        "ir": lambda: backward_text(plans),
        "source": lambda: backward_source(plans),
        "kernels": lambda: backward_kernels(plans),
        "explain command": lambda: command(plans[0], folder, "explain", "--verbose"),
        "ir command": lambda: command(plans[0], folder, "explain", "--ir"),
        "source command": lambda: command(plans[0], folder, "source"),
    }
    if all(execution is not None for _, _, execution in plans):
        found["export"] = lambda: export(folder / "exported.py", plans).read_text()
    return found


def command(launch, folder: Path, name: str, *options: str) -> str:
    """Return what a command prints of the user's kernel, or of what it refuses."""
    from triton.backends.autodiff import __main__ as commands

    state, _, _ = launch
    file = folder / "kernel.ttir"
    file.write_text(state.spec.kernel.asm["ttir"], encoding="utf-8")
    printed, refused = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(refused):
        status = commands.main([name, str(file), *options])
    assert status == 0 or refused.getvalue().startswith("error: "), refused.getvalue()
    return printed.getvalue() or refused.getvalue()


def look(plans, folder: Path, among=None) -> Iterator[str]:
    """Look in every way, or in those `among` them, and yield what fails and why."""
    from triton.backends.autodiff import AutodiffError

    for name, way in ways(plans, folder).items():
        if among is not None and name not in among:
            continue
        try:
            if not way():
                yield f"{name}: nothing to see"
        except AutodiffError as error:
            if not (name in REFUSALS and REFUSALS[name].search(str(error))):
                yield f"{name}: {error}"
        except Exception as error:
            yield f"{name}: {type(error).__name__}: {error}"
