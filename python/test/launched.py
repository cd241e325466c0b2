"""Which tests launch kernels that another Triton compiles to something else.

A run with one Triton notes what each test launches: how Triton was asked to compile a kernel, the
TTIR that it made, and what was derived from that. A run with another Triton compiles the kernels of
a test again, without running them. If everything is equal, so is what the test would see.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import io
import json
import pickle
import sys
from pathlib import Path
from typing import NamedTuple

import triton


class Kernel(NamedTuple):
    """What Triton was asked to compile; `forward` and `plans` are digests of what came of it."""

    # The function, the arguments of `ASTSource`, a target and options, pickled.
    source: bytes
    forward: str
    # By the request.
    plans: tuple[tuple[str, str], ...]


# What a plan says for people, where in the source it stands, and what it was asked.
_ASIDE = ("report", "position", "asked")


class Unreachable(Exception):
    """A function that no module has under its name."""


def _digest(value) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()


def _plain(value):
    """Return a plan, or a part of one, without what does not count: see `canonical`."""
    from triton.backends.autodiff.inspecting.differences import canonical

    if dataclasses.is_dataclass(value):
        names = (field.name for field in dataclasses.fields(value))
        return [(name, _plain(getattr(value, name))) for name in names if name not in _ASIDE]
    if isinstance(value, dict):
        return sorted((repr(key), _plain(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(repr(item) for item in value)
    return canonical(value) if isinstance(value, str) and "tt.func" in value else repr(value)


class _Pickler(pickle.Pickler):
    """Kernels and functions that they call are found again by their names."""

    def persistent_id(self, thing):
        from triton.backends.autodiff.kernels.wrappers import is_jit

        if not is_jit(thing):
            return None
        name = (thing.__module__, thing.__qualname__)
        if _reached(*name) is not thing:
            raise Unreachable(".".join(name))
        return name


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name):
        return _reached(*name)


def _reached(module: str, path: str):
    """Return the function of a name, under all of its wrappers."""
    from triton.backends.autodiff.kernels.wrappers import chain

    try:
        found = sys.modules.get(module) or importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
        return chain(found)[-1]
    except Exception as error:
        raise Unreachable(f"{module}.{path}: {error}") from None


def _pickled(value) -> bytes:
    file = io.BytesIO()
    _Pickler(file).dump(value)
    return file.getvalue()


class Notes:
    """What each test of a process has launched."""

    def __init__(self):
        # The kernels of each test that ran; None stands for one that cannot be found again.
        self.tests: dict[str, set[str | None]] = {}
        self.kernels: dict[str, Kernel] = {}

    def note(self, test: str, states) -> None:
        """Note the states of the kernels that a test has launched."""
        self.tests.setdefault(test, set()).update(map(self._key, states))

    def _key(self, state) -> str | None:
        spec = state.spec
        source = spec.kernel.src
        try:
            pickled = _pickled(
                (
                    source.fn,
                    _digest(source.fn.src),
                    source.signature,
                    source.constants,
                    source.attrs,
                    spec.target,
                    spec.options,
                )
            )
        except (Unreachable, pickle.PicklingError, TypeError, AttributeError):
            return None
        plans = tuple(
            sorted((made.plan.asked[1], made.plan) for made in state._executable_plans.values())
        )
        key = _digest((pickled, [asked for asked, _ in plans]))
        if key not in self.kernels:
            digests = tuple((asked, _digest(_plain(plan))) for asked, plan in plans)
            self.kernels[key] = Kernel(pickled, _digest(_plain(spec.ttir)), digests)
        return key

    def write(self, folder: Path, worker: str) -> None:
        """Write the notes of a process into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        data = (triton.__version__, self.tests, self.kernels)
        (folder / f"{worker}.pickle").write_bytes(pickle.dumps(data))


class Others:
    """What tests have launched in a run with another Triton."""

    def __init__(self, folder: Path):
        self.version, self._tests, self._kernels = None, {}, {}
        for path in sorted(folder.glob("*.pickle")):
            self.version, tests, kernels = pickle.loads(path.read_bytes())
            self._tests.update(tests)
            self._kernels.update(kernels)
        if not self._tests:
            raise FileNotFoundError(f"no notes of launches in {folder}")
        self._same: dict[str, bool] = {}

    def ran(self, test: str) -> bool:
        """Return whether a test ran with the other Triton."""
        return test in self._tests

    def differs(self, test: str) -> bool:
        """Return whether one of a test's kernels, or what is derived from it, is another here, or
        cannot be found again.
        """
        return not all(key and self._is_same(key) for key in self._tests[test])

    def _is_same(self, key: str) -> bool:
        if key not in self._same:
            self._same[key] = _is_same(self._kernels[key])
        return self._same[key]


def _is_same(kernel: Kernel) -> bool:
    from triton.backends.autodiff.plans.cache import plan_for
    from triton.backends.autodiff.rules.tracing import CUSTOM_MARKER, traced

    try:
        function, text, signature, constants, attrs, target, options = _Unpickler(
            io.BytesIO(kernel.source)
        ).load()
    except Unreachable:
        # The other run had made its module, such as that of a random program.
        return False
    if _digest(function.src) != text:
        return False
    here = {"triton": triton.__version__}
    try:
        source = triton.compiler.ASTSource(function, signature, constants, attrs)
        ttir = traced(source, target, options)
        return (
            CUSTOM_MARKER not in ttir
            and _digest(_plain(ttir)) == kernel.forward
            and all(
                _digest(_plain(plan_for(ttir, json.loads(asked) | here, function.__name__)))
                == digest
                for asked, digest in kernel.plans
            )
        )
    except Exception:
        # The test will say what is wrong.
        return False
