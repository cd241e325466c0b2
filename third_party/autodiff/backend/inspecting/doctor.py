"""`doctor`: versions, devices and caches; what is wrong with them, and how to repair it."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .. import __version__, entry_point
from ..faults import table
from ..support import leftovers

PYTHON = ((3, 10), (3, 14))
TORCH = ((2, 11), None)
TRITON = ((3, 6), (3, 9))
# With less memory, a first backward may fail.
_ROOM = 200 << 20
# Whose faults there may be, by module.
_PROGRAMS = {"triton": "Triton", "torch": "PyTorch"}
# What a machine without a GPU is taken for, as its kernels may be compiled for one.
_HOPPER = 90
# Environment variables that change behaviour, and how.
_VARIABLES = {
    "TRITON_ALWAYS_COMPILE": "nothing is taken from the caches: every process compiles again",
    "TRITON_INTERPRET": "Triton interprets kernels, which is slow; those we derive are compiled",
    "TRITON_BACKENDS_IN_TREE": "Triton knows this package only after `import triton_autodiff`",
    "TRITON_DEFAULT_BACKEND": "Triton does not look for a device by itself",
    "TRITON_AUTODIFF_CHECK": "every access of a generated kernel is checked, which is slow",
    "TRITON_AUTODIFF_RECORD": "every request for a plan leaves a file in that folder",
    "MLIR_ENABLE_DUMP": "compilers print the IR, and plans in the cache are not used",
}


@dataclasses.dataclass
class Finding:
    """A fact, whether it is "ok", a "note" or "wrong", and how to repair it."""

    mark: str
    text: str
    mend: str = ""

    def __str__(self):
        return f"{self.mark:5} {self.text}" + (f"\n      -> {self.mend}" if self.mend else "")


def _range(least, most) -> str:
    text = ".".join(map(str, least))
    return f"{text} to {'.'.join(map(str, most))}" if most else f"{text} and later"


def _supported(what: str, version: str, least, most, mend: str) -> Finding:
    numbers = table.numbers(version)
    if numbers >= least and (most is None or numbers <= most):
        return Finding("ok", f"{what} {version}")
    return Finding("wrong", f"{what} {version}: {_range(least, most)} is supported", mend)


def _reason(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:300]


def _package() -> Iterator[Finding]:
    folder = Path(entry_point.__file__).parent
    yield Finding("ok", f"triton-autodiff {__version__} in {folder}")
    again = "pip install --force-reinstall --no-deps triton-autodiff"
    try:
        installed = importlib.metadata.version("triton-autodiff")
    except importlib.metadata.PackageNotFoundError:
        yield Finding(
            "note",
            "it is not installed by pip: Triton finds it only after `import triton_autodiff`",
            again,
        )
    else:
        if installed != __version__:
            yield Finding("wrong", f"its metadata is of {installed}: two versions mixed", again)
    for module, fault in entry_point.faults.items():
        yield Finding("wrong", f"{module} cannot be imported: {_reason(fault)}", again)
    try:
        version = importlib.import_module(f"{entry_point.PACKAGE}._native").version()
    except Exception as error:
        mend = f"install a wheel for this Python ({platform.python_version()}) again: {again}"
        yield Finding("wrong", f"the native library cannot be loaded: {_reason(error)}", mend)
    else:
        same = version.split("+")[0] == __version__
        yield Finding("ok" if same else "wrong", f"native library {version}", "" if same else again)


def _python() -> Iterator[Finding]:
    least, most = PYTHON
    text = f"{platform.python_version()} ({sys.executable})"
    yield _supported("Python", text, least, most, "install it into another Python")
    if sys.platform != "linux" or platform.machine() != "x86_64":
        yield Finding("wrong", f"{platform.platform()}: Linux on x86-64 is supported")


def _torch() -> Iterator[Finding]:
    try:
        import torch
    except Exception as error:
        yield Finding(
            "wrong", f"PyTorch cannot be imported: {_reason(error)}", "pip install 'torch>=2.11'"
        )
        return
    yield _supported("PyTorch", torch.__version__, *TORCH, "pip install 'torch>=2.11'")
    if not torch.cuda.is_available():
        built = torch.version.cuda or torch.version.hip
        yield Finding(
            "note",
            "no GPU that PyTorch can use: kernels run on the CPU",
            "" if not built else "where there should be one, `nvidia-smi` has to show it",
        )
        return
    for n in range(torch.cuda.device_count()):
        major, minor = torch.cuda.get_device_capability(n)
        name = f"GPU {n}: {torch.cuda.get_device_name(n)}, sm_{major}{minor}"
        yield Finding("ok", name)


def _triton() -> Iterator[Finding]:
    least, most = TRITON
    mend = f"pip install 'triton>=3.6,<{most[0]}.{most[1] + 1}'"
    try:
        import triton
        from triton.backends import backends
    except Exception as error:
        yield Finding("wrong", f"Triton cannot be imported: {_reason(error)}", mend)
        return
    text = f"{triton.__version__} in {Path(triton.__file__).parent}"
    yield _supported("Triton", text, least, most, mend)
    yield Finding("ok" if "autodiff" in backends else "wrong", f"backends: {', '.join(backends)}")
    older = Path(triton.__file__).parent / "backends" / "autodiff"
    if older.exists():
        yield Finding("wrong", f"{older} is left of an older version", f"delete {older}")


def _capabilities() -> set[int]:
    """Return the capabilities of the GPUs: 90 of an H100."""
    try:
        import torch

        found = map(torch.cuda.get_device_capability, range(torch.cuda.device_count()))
        return {10 * major + minor for major, minor in found}
    except Exception:
        return set()  # which PyTorch's own lines say


def _faults() -> Iterator[Finding]:
    """Yield the faults of others that are met here, or on any GPU if there is none here."""
    versions = {"CPython": platform.python_version()}
    for name in ("triton", "torch"):
        with contextlib.suppress(Exception):
            versions[_PROGRAMS[name]] = importlib.import_module(name).__version__
    met = {}
    for capability in _capabilities() or {None}:
        with contextlib.suppress(Exception):
            from triton.backends.nvidia.compiler import get_ptxas

            versions["ptxas"] = get_ptxas(capability or _HOPPER).version
        target = capability and f"sm_{capability}"
        met |= {f: versions[f.of] for f in table.faults() if f.is_met(versions, target)}
    for fault, version in met.items():
        sentence = fault.what.partition(". ")[0].rstrip(".")
        yield Finding("note", f"fault {fault.name} of {fault.of} {version}: {sentence}")


def _require_writable(folder: Path) -> None:
    """Raise `OSError` unless files can be written to a folder; makes the folder if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


@contextlib.contextmanager
def _some_cache() -> Iterator[None]:
    """Give Triton a temporary cache if the user's is unusable, which is a finding of its own.

    GPU drivers compile a launcher into the cache.
    """
    from triton import knobs

    try:
        _require_writable(Path(knobs.cache.dir))
    except OSError:
        with tempfile.TemporaryDirectory() as folder, knobs.cache.scope():
            knobs.cache.dir = folder
            yield
    else:
        yield


def _driver() -> Iterator[Finding]:
    try:
        import triton
    except Exception:
        return  # which Triton's own lines say
    try:
        with _some_cache():
            target = triton.runtime.driver.active.get_current_target()
    except Exception as error:
        yield Finding("wrong", f"Triton has no driver: {_reason(error)}", "see the lines above")
    else:
        yield Finding("ok", f"kernels are compiled for {target.backend} {target.arch}")


def _caches() -> Iterator[Finding]:
    try:
        from triton import knobs
    except Exception:
        return  # which Triton's own lines say
    mend = "set TRITON_CACHE_DIR to a folder that can be written to and has room"
    folder = Path(knobs.cache.dir)
    try:
        _require_writable(folder)
        found = leftovers.totals(leftovers.find(folder))
    except OSError as error:
        yield Finding("wrong", f"cache directory {folder}: {_reason(error)}", mend)
        return
    free = shutil.disk_usage(folder).free
    text = f"cache directory {folder}, {free >> 20} MiB free"
    yield Finding("ok", text) if free > _ROOM else Finding("wrong", text, mend)
    parts = [f"{count} {kind} ({size >> 10} KiB)" for kind, (count, size) in found.items()]
    yield Finding("ok", "of this package there: " + (", ".join(parts) or "nothing"))


def _environment() -> Iterator[Finding]:
    for name, effect in _VARIABLES.items():
        if os.environ.get(name, "0") not in ("", "0"):
            yield Finding("note", f"{name}={os.environ[name]}: {effect}")


def _gradient() -> Iterator[Finding]:
    begin = time.monotonic()
    try:
        from .example import gradient_is_right

        with _some_cache():
            device, right = gradient_is_right()
    except Exception as error:
        yield Finding("wrong", f"a small kernel fails: {_reason(error)}", "see the lines above")
        return
    text = f"a small kernel's gradient on {device}: {'right' if right else 'wrong'}"
    text += f" ({time.monotonic() - begin:.1f} s)"
    yield (
        Finding("ok", text)
        if right
        else Finding(
            "wrong", text, "run again with TRITON_ALWAYS_COMPILE=1; if that helps, `cache clear`"
        )
    )


SECTIONS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _package,
    _python,
    _torch,
    _triton,
    _faults,
    _environment,
    _caches,
    _driver,
    _gradient,
)


def examine() -> Iterator[Finding]:
    """Yield findings; an error in one of them does not keep the others from being examined."""
    for section in SECTIONS:
        yield from section()
