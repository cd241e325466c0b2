"""How much memory the tapes of a backward may take, before they only hold checkpoints.

A tape has a loop's carried value for every iteration of every program. Beyond a limit, a backward
is requested that records about √n of n iterations and runs the others again. The limit in bytes is
what the user gave with the kernel, or `TRITON_AUTODIFF_TAPE_LIMIT`, or a quarter of the device's
memory.
"""

from __future__ import annotations

import functools
import os

import torch

from ..errors import ArgumentError, AutodiffError


def tape_bytes(buffers, counts=None) -> int:
    """Return the bytes of all tapes among `(kind, dtype, size)` triples.

    Without the counters that some depend on, only the known ones.
    """
    known = (
        dtype.itemsize * size.get(counts)
        for kind, dtype, size in buffers
        if kind == "tape" and not (size.is_counted and counts is None)
    )
    return sum(known)


def checked_limit(tape_limit) -> int | None:
    """Check a user's limit; returns it."""
    if tape_limit is not None and type(tape_limit) is not int:
        raise TypeError(f"tape_limit should be a number of bytes, got {tape_limit!r}")
    if tape_limit is not None and tape_limit < 0:
        raise ArgumentError(f"tape_limit should be a number of bytes, got {tape_limit}")
    return tape_limit


def default_limit(device: torch.device) -> int:
    """Return the default limit for the tapes of one backward, in bytes."""
    text = os.environ.get("TRITON_AUTODIFF_TAPE_LIMIT")
    if not text:
        return _memory(device) // 4
    try:
        return int(text)
    except ValueError:
        raise AutodiffError(
            f"TRITON_AUTODIFF_TAPE_LIMIT should be a number of bytes, got {text!r}"
        ) from None


@functools.cache
def _memory(device: torch.device) -> int:
    if device.type == "cpu":
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return torch.cuda.get_device_properties(device).total_memory
