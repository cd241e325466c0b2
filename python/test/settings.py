"""Settings that a test leaves changed: every later test of its process would meet them."""

from __future__ import annotations

import os

from triton import knobs

# Variables of Triton, of its libraries and of ours.
_PREFIXES = ("TRITON", "MLIR", "LLVM")
# Chosen anew for each test (levels.py).
_CHOSEN = "TRITON_AUTODIFF_CPU_LEVEL"
_GROUPS = [group for group in vars(knobs).values() if isinstance(group, knobs.base_knobs)]


def settings() -> dict[str, object]:
    """Return the variables and Triton's knobs that somebody has set."""
    found: dict[str, object] = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(_PREFIXES) and name != _CHOSEN
    }
    for group in _GROUPS:
        found |= {f"{type(group).__name__}.{name}": value for name, value in vars(group).items()}
    return found


def changed(before: dict[str, object]) -> list[str]:
    """Return what differs from then, in words."""
    now = settings()
    pairs = ((name, before.get(name), now.get(name)) for name in sorted({*before, *now}))
    return [f"{name} was {old!r}, is {new!r}" for name, old, new in pairs if old != new]
