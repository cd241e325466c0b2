"""Objects of the CPU backend are kept as long as nothing changes that they depend on."""

import importlib.util
import itertools
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from cpu_backend import on_cpu  # noqa: F401
from triton_autodiff import compiler
from triton_autodiff.cpu import objects as cpu_objects
from triton_autodiff.errors import AutodiffError
from triton_autodiff.support import leftovers

ROOT = Path(__file__).resolve().parents[3]
KERNEL = '''
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, y_ptr):
    """Doubles."""
    x = tl.load(x_ptr)
    tl.store(y_ptr, 2 * x)
'''
CHECKED = KERNEL.replace("    tl.store", "    tl.device_assert(x > 0, 'too small')\n    tl.store")


class Native:
    """The native library, which counts what it compiles, and may have another version."""

    def __init__(self, library):
        self.library, self.count = library, 0
        self.text = library.version()

    def version(self):
        return self.text

    def compile_cpu(self, *args):
        self.count += 1
        return self.library.compile_cpu(*args)


@pytest.fixture
def native(monkeypatch, tmp_path):
    """What `cpu_objects` takes for the library; Triton's cache is empty."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    made = Native(cpu_objects.native())
    monkeypatch.setattr(cpu_objects, "native", lambda: made)
    return made


@pytest.fixture
def run(native, tmp_path):
    """Runs a kernel as a new process would; returns what it stores, and how many were compiled."""
    numbers = itertools.count()

    def run(text, x=3.0, **options):
        # Python would take the bytecode of the text before for that of this one.
        path = tmp_path / str(next(numbers)) / "kernels.py"
        path.parent.mkdir()
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("kernels", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        x, y = torch.tensor([x]), torch.zeros(1)
        native.count = 0
        module.kernel[(1,)](x, y, debug="assert" in text, **options)
        return y.item(), native.count

    return run


def test_what_is_said_about_a_kernel_changes_nothing(run, native, monkeypatch):
    assert run(KERNEL) == (6, 1)
    assert run(KERNEL) == (6, 0)
    assert run(KERNEL.replace("Doubles", "Makes it twice as much")) == (6, 0)
    assert run("# Lines move.\n\n" + KERNEL) == (6, 0)
    assert run(KERNEL.replace("2 * x)", "2 * x)  # again")) == (6, 0)
    # A Python file of this package, or another part of the library.
    monkeypatch.setattr(compiler, "sources_hash", lambda: "other")
    assert run(KERNEL) == (6, 0)
    release, _, code = native.text.rpartition(".")
    native.text = f"{release}0.{code}"
    assert run(KERNEL) == (6, 0)


def test_what_it_computes_changes_it(run):
    assert run(KERNEL) == (6, 1)
    assert run(KERNEL.replace("2 * x", "3 * x")) == (9, 1)


def test_what_compiles_it_changes_it(run, native, monkeypatch):
    assert run(KERNEL) == (6, 1)
    for level in (0, 1):
        assert run(KERNEL, opt_level=level) == (6, 1)
    with monkeypatch.context() as other:
        other.setattr(cpu_objects, "host_arch", lambda: "without AVX")
        other.setattr(compiler, "sources_hash", lambda: "other")
        assert run(KERNEL) == (6, 1)
    # The code of the backend, LLVM's version in it.
    monkeypatch.setattr(native, "text", native.text[:-1] + "x")
    monkeypatch.setattr(compiler, "sources_hash", lambda: "another")
    assert run(KERNEL) == (6, 1)


def test_an_assertion_names_its_line(run):
    """Its line is in the object, so it is compiled again where lines move."""
    assert run(CHECKED) == (6, 1)
    moved = "\n\n" + CHECKED
    line = moved.split("\n").index("    tl.device_assert(x > 0, 'too small')") + 1
    with pytest.raises(AutodiffError, match=rf"kernels\.py:{line}: .*too small"):
        run(moved, x=-1.0)


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-9], bytes.swapcase])
def test_a_damaged_object_is_none(run, tmp_path, damage):
    assert run(KERNEL) == (6, 1)
    (path,) = (tmp_path / "cache").glob("*/*.cpu_object")
    path.write_bytes(damage(path.read_bytes()))
    assert run("# Triton has it no more.\n" + KERNEL) == (6, 1)
    assert run("# Nor this.\n\n" + KERNEL) == (6, 0)


def test_what_is_dumped_is_compiled(run, tmp_path, monkeypatch):
    assert run(KERNEL) == (6, 1)
    with monkeypatch.context() as always:
        always.setenv("TRITON_ALWAYS_COMPILE", "1")
        assert run(KERNEL) == (6, 1)
    path = tmp_path / "kernel.ll"
    monkeypatch.setenv("TRITON_AUTODIFF_DUMP_LLVM", str(path))
    assert run("# Dumped.\n" + KERNEL) == (6, 1)
    assert "define" in path.read_text()


def test_the_cache_command_knows_objects(run, tmp_path):
    run(KERNEL)
    found = leftovers.find(tmp_path / "cache")
    assert "objects for the CPU" in leftovers.totals(found)
    leftovers.remove(found)
    assert not list((tmp_path / "cache").glob("*/*.cpu_object"))


# ------------------------------------------------------------------------ the hash of the code

PARTS = {
    "backend/a.c": "int helper(int); int compile(int x) { return helper(x) + 1; }",
    "lib/b.c": "int helper(int x) { return 2 * x; }",
    "lib/c.c": "int derive(int x) { return x; }",
}


@pytest.fixture
def code_hash(tmp_path):
    """Returns the hash for the sources of three files, the first of which is the backend."""
    clang = shutil.which("cc") or shutil.which("clang") or shutil.which("clang-22")
    nm = shutil.which("nm") or shutil.which("llvm-nm-22")
    if clang is None or nm is None:
        pytest.skip("no C compiler")

    def code_hash(version="22", **changed):
        objects = []
        for name, text in PARTS.items():
            source = tmp_path / name
            source.parent.mkdir(exist_ok=True)
            source.write_text(changed.get(source.stem, text))
            objects.append(source.with_suffix(".o"))
            subprocess.run([clang, "-c", source, "-o", objects[-1]], check=True, cwd=tmp_path)
        listing, output = tmp_path / "objects.txt", tmp_path / "hash.c"
        listing.write_text("\n".join(map(str, objects)))
        script = ROOT / "cmake" / "code_hash.py"
        subprocess.run(
            [sys.executable, script, output, listing, nm, version, "backend/"], check=True
        )
        return output.read_text()

    return code_hash


def test_the_hash_is_that_of_the_code(code_hash):
    """Of the backend, of what it calls, and of LLVM; not of comments, and not of the rest."""
    first = code_hash()
    assert code_hash(a="// A comment.\n" + PARTS["backend/a.c"]) == first
    assert code_hash(c="int derive(int x) { return -x; }") == first
    others = [
        code_hash(a=PARTS["backend/a.c"].replace("1", "2")),
        code_hash(b=PARTS["lib/b.c"].replace("2", "3")),
        code_hash(version="23"),
    ]
    assert len({first, *others}) == 4
