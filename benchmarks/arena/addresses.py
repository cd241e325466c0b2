"""Authors' kernels to which ptxas gives wrong addresses: they are refused, since they would end the
process.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from triton import knobs
from triton_autodiff.faults.misaddressed import has_wrong_addresses


class WrongAddresses(RuntimeError):
    """ptxas has given products of a kernel wrong addresses (`faults.misaddressed`)."""


def _check(module, function, name, files, hash):
    stages = {Path(file).suffix: Path(path) for file, path in files.items()}
    if ".cubin" not in stages or ".ptx" not in stages:
        return
    if has_wrong_addresses(stages[".ptx"].read_text(), stages[".cubin"].read_bytes()):
        raise WrongAddresses(f"ptxas gives products of kernel {name!r} wrong addresses")


@contextlib.contextmanager
def right_addresses_only():
    """Within it, loading a kernel with wrong addresses raises `WrongAddresses`."""
    knobs.runtime.kernel_load_start_hook.add(_check)
    try:
        yield
    finally:
        knobs.runtime.kernel_load_start_hook.remove(_check)
