"""The package's two names, and `import triton` where something is wrong with the package."""

import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import triton
import triton_autodiff

pytestmark = pytest.mark.every_triton

PACKAGE = Path(triton_autodiff.__file__).parent


def run_python(code, folder=None, **variables):
    """Run `code` in a fresh interpreter that finds the modules in `folder` before all others."""
    environment = {**os.environ, **variables}
    if folder is not None:
        rest = os.environ.get("PYTHONPATH", "")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), rest]))
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd="/", env=environment
    )


def output_of(*args, **kwargs):
    """What such a run prints; it has to succeed."""
    done = run_python(*args, **kwargs)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "first, second",
    [
        ("triton_autodiff.api", "triton.backends.autodiff.api"),
        ("triton.backends.autodiff.api", "triton_autodiff.api"),
        ("triton_autodiff.driver", "triton.backends.autodiff.driver"),
        ("triton.backends.autodiff._native", "triton_autodiff._native"),
    ],
)
def test_both_names_are_one_module(first, second):
    """Whichever comes first, with or without Triton before it."""
    code = f"""
import importlib, sys
a, b = importlib.import_module("{first}"), importlib.import_module("{second}")
assert a is b and a.__spec__.name == a.__name__ and a.__name__.startswith("triton_autodiff.")
import triton, triton_autodiff, triton.backends.autodiff as other
assert other is triton_autodiff is triton.backends.autodiff
assert getattr(other, a.__name__.rpartition(".")[2]) is a
files = [m.__file__ for m in set(sys.modules.values()) if "autodiff" in getattr(m, "__name__", "")]
assert len(files) == len(set(files)), files
print(triton.backends.backends["autodiff"].driver.__name__)
"""
    assert output_of(code) == "CPUDriver"


def test_pickles_of_either_name():
    from triton.backends.autodiff.errors import AutodiffError

    assert AutodiffError is triton_autodiff.AutodiffError
    text = pickle.dumps(AutodiffError, protocol=0)
    assert b"triton_autodiff.errors" in text
    older = text.replace(b"triton_autodiff.errors", b"triton.backends.autodiff.errors")
    assert pickle.loads(text) is pickle.loads(older) is AutodiffError


def test_completion_offers_the_public_names():
    for module in (triton_autodiff, sys.modules["triton.backends.autodiff"]):
        assert [n for n in dir(module) if not n.startswith("__")] == sorted(module.__all__)
        assert "__version__" in dir(module)
        assert all(getattr(module, name).__doc__ for name in module.__all__)


def test_unknown_submodule():
    with pytest.raises(ModuleNotFoundError, match="triton.backends.autodiff.nothing"):
        import triton.backends.autodiff.nothing  # noqa: F401


def test_a_triton_that_hides_the_other(tmp_path):
    """That of a virtual environment, in front of the system's that we are installed beside."""
    theirs = Path(triton.__file__).parent
    (tmp_path / "triton" / "backends").mkdir(parents=True)
    for folder in ("", "backends"):
        for path in (theirs / folder).iterdir():
            if path.name not in ("backends", "autodiff", "__pycache__"):
                (tmp_path / "triton" / folder / path.name).symlink_to(path)
    code = """
import triton
from triton.backends.autodiff import differentiable
print(triton.__file__, differentiable.__module__)
"""
    file, module = output_of(code, tmp_path).split()
    assert file.startswith(str(tmp_path)) and module == "triton_autodiff.api"


@pytest.mark.parametrize(
    "file, text, reason",
    [
        ("compiler.py", "x = (", "SyntaxError"),
        ("compiler.py", None, "FileNotFoundError"),
        ("driver.py", "from triton.backends.driver import NotYetInvented", "ImportError"),
        (
            "driver.py",
            "from triton.backends.driver import DriverBase\nclass D(DriverBase): pass",
            "ImportError: Triton .* wants of a backend",
        ),
    ],
)
def test_a_broken_package_is_left_out(tmp_path, file, text, reason):
    """`import triton` works as without us; who uses the package gets the reason."""
    ours = tmp_path / "triton_autodiff"
    shutil.copytree(PACKAGE, ours, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (ours / file).unlink()
    if text is not None:
        (ours / file).write_text(text)
    code = """
import warnings
warnings.simplefilter("error")
import triton, triton_autodiff
assert triton_autodiff.__file__.startswith(FOLDER), triton_autodiff.__file__
ours = triton.backends.backends["autodiff"]
assert "Absent" in (ours.compiler.__name__, ours.driver.__name__)
cpu = triton.backends.compiler.GPUTarget("cpu", "x", 1)
assert not (ours.compiler.supports_target(cpu) and ours.driver.is_active())
try:
    from triton.backends.autodiff import differentiable
except ImportError as error:
    print(error)
"""
    message = output_of(code.replace("FOLDER", repr(str(tmp_path))), tmp_path)
    assert re.search(f"cannot be used \\({reason}", message), message
    assert f"triton_autodiff.{file[:-3]}" in message and "doctor" in message


def test_backends_of_tritons_folder_alone():
    """Where Triton is told to look for no entry points, importing us makes us a backend."""
    code = """
import triton
before = "autodiff" in triton.backends.backends
import triton_autodiff
from triton.backends.autodiff import differentiable
print(before, "autodiff" in triton.backends.backends)
"""
    assert output_of(code, TRITON_BACKENDS_IN_TREE="1") == "False True"
