"""The installed package: what it owns, what it links to, what importing it costs."""

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import triton

pytestmark = pytest.mark.every_triton

PACKAGE = "triton_autodiff"


def installed_files():
    """Paths of the distribution's files, relative to site-packages."""
    site = str(Path(triton.__file__).parents[1])
    found = importlib.metadata.Distribution.discover(name="triton-autodiff", path=[site])
    for distribution in found:
        return distribution.files
    pytest.skip("triton-autodiff is not installed as a distribution beside Triton")


def locate(name):
    """The installed file called `name` (a glob)."""
    (path,) = [file for file in installed_files() if file.match(name)]
    return Path(path.locate())


def run_python(code):
    """Run `code` in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd="/"
    )


def test_owns_nothing_of_triton():
    owned = {file.parts[0] for file in installed_files()}
    assert PACKAGE in owned
    assert all(folder.endswith(".dist-info") for folder in owned - {PACKAGE})


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


IMPORT_TIMER = f"""
import importlib, time
original, spent = importlib.import_module, 0.0

def timed(name, package=None):
    global spent
    begin = time.process_time()
    module = original(name, package)
    if name.startswith("{PACKAGE}"):
        spent += time.process_time() - begin
    return module

importlib.import_module = timed
import triton
print(spent * 1e3)
"""


def test_import_time():
    """Triton imports our compiler and driver; everything that they pull in counts."""
    milliseconds = [float(run_python(IMPORT_TIMER).stdout) for _ in range(6)]
    assert 0 < min(milliseconds) < 5


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


@pytest.mark.skipif(not shutil.which("objdump"), reason="needs objdump")
@pytest.mark.parametrize("name", ["libtriton_autodiff.so", "_native*.so"])
def test_runs_with_old_libraries(name):
    """glibc 2.28 is enough, whatever was there when it was built, and no C++ runtime is needed."""
    output = subprocess.run(
        ["objdump", "-p", locate(name)], check=True, capture_output=True, text=True
    ).stdout
    versions = [tuple(map(int, found)) for found in re.findall(r"GLIBC_(\d+)\.(\d+)", output)]
    assert versions and max(versions) <= (2, 28)
    assert "libstdc++" not in output


# Allocations fail soon after the call begins, and after the stack for a long kernel
# (DeepStack.cpp); what the compiler had is given back only at exit.
OUT_OF_MEMORY = f"""
import resource
from {PACKAGE} import _native, errors
lines = "".join(f"    %{{i}} = math.exp %x : f32\\n" for i in range(60_000))
ttir = "tt.func public @kernel(%x: f32) {{\\n" + lines + "    tt.return\\n}}"
_native.run_pipeline("module {{}}")
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
stack = (64 << 20) + 128 * len(ttir)
resource.setrlimit(resource.RLIMIT_AS, (used + stack + (24 << 20), resource.RLIM_INFINITY))
try:
    _native.run_pipeline(ttir)
except (errors.AutodiffError, MemoryError) as error:
    print(type(error).__name__, error)
_native.version()
"""


def test_survives_a_lack_of_memory():
    """No exception of the library's own C++ runtime leaves it, and it does not abort."""
    assert "AutodiffError error: the compiler gave up" in run_python(OUT_OF_MEMORY).stdout


def test_loads_beside_torch():
    """Two LLVMs and torch in one process, whichever comes first."""
    for order in (f"torch, triton, {PACKAGE}._native", f"{PACKAGE}._native, torch, triton"):
        run_python(f"import {order}; triton_autodiff._native.version()")


def test_version_names_the_build():
    """The package, its metadata and its library are of one version. Then come the library's build,
    and its code that lowers kernels for the CPU.
    """
    from triton_autodiff import __version__, _native

    assert re.fullmatch(r"\d+\.\d+\.\d+\+[0-9a-f]{40}\.[0-9a-f]{32}", _native.version())
    assert _native.version().startswith(f"{__version__}+")
    assert importlib.metadata.version("triton-autodiff") == __version__
