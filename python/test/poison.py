"""Uninitialised memory that holds NaN, so that what nobody wrote can't pass for a number."""

import contextlib

import torch


@contextlib.contextmanager
def poisoned_memory(poisoned=True):
    """New memory holds NaN meanwhile, or whatever was there.

    PyTorch fills it in deterministic mode only, in which its reference kernels may warn.
    """
    fill = torch.utils.deterministic.fill_uninitialized_memory
    debug = torch.get_deterministic_debug_mode()
    torch.utils.deterministic.fill_uninitialized_memory = poisoned
    if poisoned:
        torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(debug)
        torch.utils.deterministic.fill_uninitialized_memory = fill
