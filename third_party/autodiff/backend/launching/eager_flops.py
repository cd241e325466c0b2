"""Counts operations of eager launches and their backwards for PyTorch's counter, which only sees
operators.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from ..errors import AutodiffError
from .flops import of_backward, of_launch, of_program


def is_counting() -> bool:
    """Whether PyTorch's counter of operations is active."""
    return torch._C._len_torch_dispatch_stack() > 0 and bool(_counters())


def _counters() -> list:
    module = sys.modules.get("torch.utils.flop_counter")
    if module is None:
        return []
    modes = _get_current_dispatch_mode_stack()
    return [mode.counter for mode in modes if isinstance(mode, module._FlopCounterMode)]


def count_launch(state, grid, leaves) -> None:
    """Count the operations of a launch of the user's kernel."""
    spec = state.spec
    _add(spec.name, lambda: of_launch(spec, grid, leaves))


def count_backward(backward, leaves) -> None:
    """Count the operations of a backward, for a launch with these arguments."""
    _add(f"{backward.spec.name}_backward", lambda: of_backward(backward, leaves))


def count_dual(dual, programs, leaves) -> None:
    """Count the operations of these programs of a plan that is run with tangents."""
    name = dual.backward.spec.name
    for program in programs:
        what = "jvp" if program is dual.forward else "backward_jvp"
        _add(f"{name}_{what}", lambda program=program: of_program(program, leaves))


def _add(name: str, operations: Callable[[], int]) -> None:
    try:
        count = operations()
    except AutodiffError as error:
        warnings.warn(f"missing in the operations counted: {error}", stacklevel=2)
        return
    for counter in _counters():
        for module in set(counter.mod_tracker.parents):
            counter.flop_counts[module][f"triton_autodiff.{name}"] += count
