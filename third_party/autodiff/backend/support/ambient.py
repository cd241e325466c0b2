"""What surrounds a run of a stub: autocast, which graphs switch off, and random numbers, which a
run that only tells shapes must not draw.
"""

from __future__ import annotations

import contextlib
import random
import sys

import torch
from torch.utils._python_dispatch import _disable_current_modes


def autocast_of(tensors) -> str:
    """Return where autocast is on, of the devices of tensors and the CPU, as text; "" for
    nowhere.
    """
    if not torch._C._is_any_autocast_enabled():
        return ""
    devices = sorted({"cpu", *(t.device.type for t in tensors)} - {"meta"})
    found = ((d, torch.get_autocast_dtype(d)) for d in devices if torch.is_autocast_enabled(d))
    return " ".join(f"{device}={dtype}".replace("torch.", "") for device, dtype in found)


def autocast(text: str, tensors):
    """Return a context that switches autocast on and off as `autocast_of` has said."""
    return contextlib.nullcontext() if text == autocast_of(tensors) else _switched(text, tensors)


@contextlib.contextmanager
def _switched(text: str, tensors):
    given = dict(part.split("=") for part in text.split())
    with contextlib.ExitStack() as stack:
        for device in sorted({"cpu", *given, *(t.device.type for t in tensors)} - {"meta"}):
            dtype = getattr(torch, given[device]) if device in given else None
            stack.enter_context(torch.autocast(device, dtype, enabled=device in given))
        yield


@contextlib.contextmanager
def undrawn():
    """Restore the generators of Python, NumPy and PyTorch (on the CPU) afterwards."""
    of_python = random.getstate()
    numpy = sys.modules.get("numpy.random")
    of_numpy = None if numpy is None else numpy.get_state()
    with _disable_current_modes():
        of_torch = torch.default_generator.get_state()
    try:
        yield
    finally:
        random.setstate(of_python)
        if of_numpy is not None:
            numpy.set_state(of_numpy)
        with _disable_current_modes():
            torch.default_generator.set_state(of_torch)
