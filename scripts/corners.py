"""A smoke test of the wheel for combinations of Python, PyTorch and Triton.

    python scripts/corners.py [--wheels DIR] [--keep] [CORNER…]

A corner is PYTHON-TORCH-TRITON, like 3.12-2.13.0-3.9.0; without any, those of what is supported
(see README.md). Each gets a virtual environment in build/corners, a wheel (of DIR, or built), and
runs `python -m triton_autodiff doctor` and an example. An environment may take 5 GB: it is deleted
before the next one is made, unless it is to be kept.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "corners"
NEWEST = "newest"
# Triton 3.9 has no wheel for Python 3.10.
NEWEST_TRITON = {"3.10": "3.8.0", "3.14": "3.9.0"}
# The ends of what is supported, and of what lies between, one thing at a time.
CORNERS = [
    "-".join((python, torch, triton))
    for python, newest in NEWEST_TRITON.items()
    for torch in ("2.11.0", NEWEST)
    for triton in ("3.6.0", newest)
]
CORNERS += [f"{python}-{NEWEST}-3.9.0" for python in ("3.11", "3.12", "3.13")]
CORNERS += [f"3.12-{NEWEST}-{triton}" for triton in ("3.7.1", "3.8.0")]


class Missing(Exception):
    """There is no such interpreter here."""


def interpreter(version):
    """The path of a Python, which may be one of pyenv's."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    paths = [f"python{version}", *sorted(root.glob(f"versions/{version}.*/bin/python"))]
    for path in paths:
        try:
            command = [path, "-c", "import sys; print(*sys.version_info[:2], sep='.')"]
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError:
            continue
        if done.returncode == 0 and done.stdout.strip() == version:
            return path
    raise Missing(f"no python{version}")


def run(log, *command, **variables):
    """Run a command, with its output in a file."""
    environment = {**os.environ, **variables}
    print("$", *command, file=log, flush=True)
    subprocess.run(command, stdout=log, stderr=log, cwd=ROOT, env=environment, check=True)


def examine(corner, wheels, log):
    """Install a corner and try it."""
    version, torch, triton = corner.split("-")
    venv, python = PLACE / corner, PLACE / corner / "bin" / "python"
    shutil.rmtree(venv, ignore_errors=True)
    run(log, interpreter(version), "-m", "venv", venv)
    run(log, python, "-m", "pip", "install", "torch" if torch == NEWEST else f"torch=={torch}")
    # PyTorch asks for a Triton of its own, which need not be this one.
    run(log, python, "-m", "pip", "install", "--no-deps", f"triton=={triton}")
    run(log, python, "-m", "pip", "install", "numpy", "setuptools>=77", "wheel", "pybind11>=2.12")
    tag = "cp" + version.replace(".", "")
    if not list(wheels.glob(f"triton_autodiff-*-{tag}-{tag}-*.whl")):
        options = ["--no-deps", "--no-build-isolation", "-w", wheels]
        run(log, python, "-m", "pip", "wheel", *options, ROOT)
    (wheel,) = wheels.glob(f"triton_autodiff-*-{tag}-{tag}-*.whl")
    run(log, python, "-m", "pip", "install", "--no-deps", wheel)
    cache = {"TRITON_CACHE_DIR": str(venv / "cache")}
    run(log, python, "-m", "triton_autodiff", "doctor", **cache)
    run(log, python, ROOT / "python" / "examples" / "quickstart.py", **cache)


def main():
    parser = argparse.ArgumentParser(description="A smoke test for each supported corner.")
    parser.add_argument("corners", nargs="*", default=CORNERS, help=f"of {', '.join(CORNERS)}")
    parser.add_argument("--wheels", type=Path, default=PLACE / "wheels", help="with wheels, if any")
    parser.add_argument("--keep", action="store_true", help="the virtual environments")
    options = parser.parse_args()
    options.wheels.mkdir(parents=True, exist_ok=True)
    failed = missing = 0
    for corner in options.corners:
        begin, path = time.monotonic(), PLACE / f"{corner}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as log:
            try:
                examine(corner, options.wheels.resolve(), log)
                outcome = "ok"
            except Missing as error:
                missing += 1
                outcome = f"not run: {error}"
            except subprocess.CalledProcessError:
                failed += 1
                outcome = f"failed, see {path}"
        print(f"{corner}: {outcome} ({time.monotonic() - begin:.0f} s)", flush=True)
        if not options.keep:
            shutil.rmtree(PLACE / corner, ignore_errors=True)
    tried = len(options.corners) - missing
    print(f"{tried - failed} of {tried} corners are fine, {missing} not run")
    return 1 if failed or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
