"""LLVM's level for the CPU backend: 0 takes half the time of 2, which is what users have.

Tests of gradients run at level 0. Tests of the CPU backend itself run at level 2, and so does a
tenth of the others: another tenth at each commit.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

VARIABLE = "TRITON_AUTODIFF_CPU_LEVEL"
FAST, USUAL = 0, 2
# Files of tests of the CPU backend, and of modules that name the level.
OF_THE_BACKEND = ("test_cpu_", "test_assembly", "test_examples")
CHOSEN = os.environ.get(VARIABLE)
# Of so many tests or programs, one is for the usual level.
EACH = 10


def use(level: int) -> None:
    """Compile kernels at a level from now on, those that are compiled already, too."""
    from triton.backends.autodiff.driver import DEVICE, CPUDriver

    os.environ[VARIABLE] = str(level)
    # Triton keeps compiled kernels by device.
    CPUDriver.get_current_device = lambda driver: DEVICE - (USUAL - level)


def of(file: str, test: str, commit: str) -> int:
    """Return the level for a test, by its file and name; what the environment says is for all."""
    if CHOSEN is not None:
        return int(CHOSEN)
    digest = hashlib.sha256(f"{commit} {test}".encode()).digest()
    return USUAL if file.startswith(OF_THE_BACKEND) or digest[0] % EACH == 0 else FAST


def commit() -> str:
    """Return the commit that is tested, "" if it is not known."""
    folder = Path(__file__).parent
    command = ["git", "rev-parse", "HEAD"]
    try:
        found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return found.stdout.strip()
