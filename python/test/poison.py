"""Uninitialised memory that holds NaN, so that what nobody wrote can't pass for a number."""

import contextlib

import torch


@contextlib.contextmanager
def poisoned_memory():
    """PyTorch fills new memory, which it does only in deterministic mode."""
    fill = torch.utils.deterministic.fill_uninitialized_memory
    debug = torch.get_deterministic_debug_mode()
    torch.utils.deterministic.fill_uninitialized_memory = True
    # PyTorch's reference kernels may warn about the mode.
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(debug)
        torch.utils.deterministic.fill_uninitialized_memory = fill
