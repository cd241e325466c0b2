"""Every way to look at what is derived, for the kernels that tests and random programs launch.

Ways to look are `explain`, the IR, the source, kernels as functions, an exported module, and the
commands. What they show is tested elsewhere. Here none may fail, but with an error that says what
cannot be shown, and why.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import triton

# These are for each plan; the others, which take time, for each kind.
QUICK = ("explain", "verbose", "ir", "plain source")
# What a way may refuse, in its words.
NO_FORM = r"no form in Python|cannot be (written|printed)"
REFUSALS = {
    "source": re.compile(NO_FORM),
    "plain source": re.compile(NO_FORM),
    "kernels": re.compile(NO_FORM),
    "source of tangents": re.compile(rf"{NO_FORM}|no forward-mode rule"),
    "export": re.compile(rf"cannot be exported|{NO_FORM}"),
}


def ways(plans, folder: Path) -> dict[str, Callable]:
    """Return the ways to look at the `(state, plan, execution)` of launches, by name."""
    from triton.backends.autodiff.exporting.export import export
    from triton.backends.autodiff.exporting.printed_kernels import backward_kernels
    from triton.backends.autodiff.printing.explain import backward_text, report
    from triton.backends.autodiff.printing.source import backward_source, jvp_source

    # Names of constexprs are what takes time: kernels are traced and printed again for them.
    plain = [(state, replace(plan, asked=None), execution) for state, plan, execution in plans]
    found = {
        "explain": lambda: report(plans),
        "verbose": lambda: report(plans, verbose=True),
        "ir": lambda: backward_text(plans),
        "plain source": lambda: backward_source(plain),
        "source": lambda: backward_source(plans),
        "kernels": lambda: backward_kernels(plans),
        "explain command": lambda: command(plans[0], folder, "explain", "--verbose"),
        "ir command": lambda: command(plans[0], folder, "explain", "--ir"),
        "source command": lambda: command(plans[0], folder, "source"),
    }
    pushed = [(state, plan, frozenset(plan.inputs)) for state, plan, _ in plans if plan.inputs]
    if pushed:
        found["source of tangents"] = lambda: jvp_source(pushed)
    # On a GPU, each variant of each kernel would be compiled.
    if all(execution and state.spec.target.backend == "cpu" for state, _, execution in plans):
        found["export"] = lambda: export(folder / "exported.py", plans).read_text()
    return found


def command(launch, folder: Path, name: str, *options: str) -> str:
    """Return what a command prints of a recorded request, or of the user's kernel; or says."""
    from triton.backends.autodiff import __main__ as commands

    state, plan, _ = launch
    if plan.asked is None:
        file = folder / "kernel.ttir"
        file.write_text(state.spec.ttir, encoding="utf-8")
    else:
        ttir, request, kernel = plan.asked
        file = folder / "kernel.json"
        asked = {"name": kernel, "ttir": ttir, "request": json.loads(request)}
        file.write_text(json.dumps(asked), encoding="utf-8")
    printed, refused = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(refused):
        status = commands.main([name, str(file), *options])
    # Warnings may come before the error.
    assert status == 0 or re.search(r"^error: ", refused.getvalue(), re.M), refused.getvalue()
    return printed.getvalue() or refused.getvalue()


def failures(plans, among=None) -> Iterator[str]:
    """Look in every way, or in those `among` them, and yield what fails and why."""
    from triton.backends.autodiff import AutodiffError

    with tempfile.TemporaryDirectory() as folder:
        for name, way in ways(plans, Path(folder)).items():
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


def kind_of(plans) -> tuple:
    """Return what two launches have in common if the same is to be said of both."""
    return tuple(_kind_of(*launch) for launch in plans)


def _kind_of(state, plan, execution) -> tuple:
    facts = execution and execution.facts
    return (
        bool(facts and facts.aliasing),
        bool(facts and facts.beside),
        plan.forward is not None,
        plan.counting is not None,
        plan.launch is not None,
        bool(plan.backward) and plan.backward[0].grid is None,
        len(plan.backward) > 1,
        sorted({buffer.kind for buffer in plan.buffers}),
        any(gradient.tallied for gradient in plan.gradients),
        state.spec.target.backend,
    )


class Seen:
    """What has been seen; processes with the same `folder` share it."""

    def __init__(self):
        self._keys: set[str] = set()
        self._folder: Path | None = None

    def share(self, folder: Path) -> None:
        """Share with other processes that have the same folder."""
        folder.mkdir(exist_ok=True)
        self._folder = folder

    def is_new(self, subject) -> bool:
        """Whether nobody has asked so before."""
        key = digest(subject)
        if key in self._keys:
            return False
        self._keys.add(key)
        if self._folder is not None:
            try:
                (self._folder / key).touch(exist_ok=False)
            except FileExistsError:
                return False
        return True


def digest(subject) -> str:
    """Return a key that is the same in other processes."""
    return hashlib.sha256(repr(subject).encode()).hexdigest()


def is_chosen(each: int, subject) -> bool:
    """Whether this is the one of so many subjects that is chosen, the same in each process."""
    return int(digest(subject)[:8], 16) % each == 0


@functools.cache
def _code() -> str:
    """Return a key of all code that ways to look depend on."""
    from triton.backends.autodiff.compiler import sources_hash
    from triton.backends.autodiff.library import native

    here = Path(__file__).read_text(encoding="utf-8")
    return digest((triton.__version__, native().version(), sources_hash(), here))


class Looker(Seen):
    """Looks at launches that nobody has looked at: quickly, and in every way if the kind is new.

    Where nothing failed, a file in Triton's cache says so: with the same code, later runs do not
    look again.
    """

    def look(self, plans) -> list[str]:
        """Return what fails."""
        from triton.backends.autodiff.plans.cache import reads_disk

        asked = [plan.asked for _, plan, _ in plans]
        if not self.is_new(asked):
            return []
        is_first = self.is_new(kind_of(plans))
        kept = self._kept((asked, is_first))
        if reads_disk() and kept.exists():
            return []
        found = list(failures(plans, None if is_first else QUICK))
        if not found:
            # A test may have made the cache one that cannot be written to.
            with contextlib.suppress(OSError):
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.touch()
        return found

    def _kept(self, subject) -> Path:
        """Return the file which says that nothing failed when this was looked at."""
        return Path(triton.knobs.cache.dir) / f"looked-{_code()}" / digest(subject)


class Observer:
    """Notes the launches of differentiable kernels, so that they can be looked at afterwards."""

    def __init__(self):
        self.notes = True
        self._installed = False
        self._launches: list[tuple] = []
        self._looker = Looker()

    def share(self, folder: Path) -> None:
        """Look at nothing that another process with the same folder has looked at."""
        self._looker.share(folder)

    def install(self) -> None:
        """Note launches from now on; tests import the package late, when a driver is chosen."""
        if self._installed:
            return
        self._installed = True
        from triton.backends.autodiff.surface.kernel import DifferentiableKernel

        remember, launches = DifferentiableKernel._keep_for_explain, self._launches

        def noting(kernel, compiled, execution, function, *more):
            if self.notes and execution is not None:
                launches.append((compiled, execution, function, kernel._resolver.options))
            return remember(kernel, compiled, execution, function, *more)

        DifferentiableKernel._keep_for_explain = noting

    def clear(self) -> None:
        """Forget what was launched."""
        self._launches.clear()

    def look(self) -> None:
        """Look at what was launched since; raises an `AssertionError` that says what fails."""
        for state, execution, function in self._known():
            plan = execution.shown.plan
            found = self._looker.look([(state, plan, execution)])
            assert not found, f"kernel {function.__name__!r} cannot be looked at: {found}"

    def states(self) -> list:
        """Return the states of the kernels that were launched since."""
        return list(dict.fromkeys(state for state, _, _ in self._known()))

    def _known(self) -> Iterator[tuple]:
        from triton.backends.autodiff.launching.state import KernelState

        for compiled, execution, function, options in self._launches:
            state = KernelState.existing(compiled, options)
            # A rule that was registered since may have changed the plan.
            if state is not None:
                yield state, execution, function
