"""The installed package: what it owns, what it links to, what importing it costs."""

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = "triton.backends.autodiff"


def installed_files():
    """Paths of the distribution's files, relative to site-packages."""
    try:
        return importlib.metadata.files("triton-autodiff")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("triton-autodiff is not installed as a distribution")


def locate(name):
    """The installed file called `name` (a glob)."""
    (path,) = [file for file in installed_files() if file.match(name)]
    return Path(path.locate())


def run_python(code, *flags):
    """Run `code` in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, *flags, "-c", code], check=True, capture_output=True, text=True, cwd="/"
    )


def test_owns_nothing_of_triton():
    owned = {"/".join(file.parts[:3]) for file in installed_files()}
    ours = {path for path in owned if path.startswith("triton/")}
    assert ours == {"triton/backends/autodiff"}
    assert all(".dist-info" in path for path in owned - ours)


def test_import_is_lean():
    code = (
        "import triton, sys, json;"
        "from triton.backends import backends;"
        "print(json.dumps([sorted(sys.modules), sorted(backends)]))"
    )
    modules, backends = json.loads(run_python(code).stdout)
    assert "autodiff" in backends
    assert "torch" not in modules
    assert f"{PACKAGE}._native" not in modules


def test_import_time():
    """Triton imports our compiler and driver; everything they add counts."""

    def measure():
        log = run_python("import triton", "-X", "importtime").stderr
        lines = re.findall(r"import time:\s*\d+ \|\s*(\d+) \|\s*(\S+)", log)
        cumulative = {name: int(microseconds) for microseconds, name in lines}
        return sum(cumulative[f"{PACKAGE}{part}"] for part in ("", ".compiler", ".driver"))

    run_python("import triton")  # byte code is written once
    assert min(measure() for _ in range(5)) < 5000


@pytest.mark.skipif(not shutil.which("ldd"), reason="needs ldd")
@pytest.mark.parametrize("name", ["libtriton_autodiff.so", "_native*.so"])
def test_links_no_shared_llvm(name):
    output = subprocess.run(["ldd", locate(name)], check=True, capture_output=True, text=True)
    assert not re.search(r"libMLIR|libLLVM|not found", output.stdout)


@pytest.mark.skipif(not shutil.which("nm"), reason="needs nm")
def test_exports_only_the_c_interface():
    output = subprocess.run(
        ["nm", "-D", "--defined-only", locate("libtriton_autodiff.so")],
        check=True,
        capture_output=True,
        text=True,
    )
    symbols = [line.split()[-1] for line in output.stdout.splitlines()]
    assert symbols
    assert all(symbol.startswith("tad") for symbol in symbols)


def test_loads_beside_torch():
    """Two LLVMs and torch in one process, whichever comes first."""
    for order in (f"torch, triton, {PACKAGE}._native", f"{PACKAGE}._native, torch, triton"):
        run_python(f"import {order}; triton.backends.autodiff._native.version()")


def test_version_names_the_build():
    from triton.backends.autodiff import _native

    assert re.fullmatch(r"\d+\.\d+\.\d+\+[0-9a-f]{40}", _native.version())
