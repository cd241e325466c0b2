"""Launches that get tensors as addresses alone, of which autograd sees nothing."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import warnings

import torch

from ..errors import ArgumentError
from ..support.places import named
from .tensor_likes import stands_for_memory
from .tensors import are_plain

Tensor = torch.Tensor
_SEEN = "_autodiff_makes_pointers"
# What is smaller is no address, unless it is in the heap.
_LOWEST = 1 << 32


@functools.cache
def _low_heap() -> int | None:
    """Return where the heap begins, if it is low, as in a Python that is not relocatable."""
    with contextlib.suppress(OSError), open("/proc/self/maps") as maps:
        for line in maps:
            if line.rstrip().endswith("[heap]"):
                begin = int(line.partition("-")[0], 16)
                return begin if begin < _LOWEST else None
    return None


def _may_be_address(value) -> bool:
    if type(value) is not int or value >= _LOWEST:
        return type(value) is int
    begin = _low_heap()
    if begin is None or value < begin:
        return False
    end = ctypes.CDLL(None).sbrk
    end.restype, end.argtypes = ctypes.c_void_p, [ctypes.c_ssize_t]
    return value < (end(0) or 0)


def makes_pointers(kernel) -> bool:
    """Whether a compiled kernel makes pointers of integers."""
    found = getattr(kernel, _SEEN, None)
    if found is None:
        found = "tt.int_to_ptr" in kernel.asm.get("ttir", "")
        setattr(kernel, _SEEN, found)
    return found


def _parts(values):
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _parts(value)
        elif isinstance(base := getattr(value, "base", None), Tensor):
            yield base
        else:
            yield value


def refuse_addresses(kernel, function, values) -> None:
    """Raise `ArgumentError` if a launch without a gradient, of which autograd may want one, gets no
    tensor of floats, but addresses; warn if it gets both.
    """
    if not torch.is_grad_enabled() or (are_plain(values) and not makes_pointers(kernel)):
        return
    values = list(_parts(values))
    objects = [value for value in values if stands_for_memory(value)]
    if not objects and not makes_pointers(kernel):
        return
    numbers = [value for value in values if _may_be_address(value)]
    what = f"as a {type(objects[0]).__name__}" if objects else "as a number, x.data_ptr()"
    way_out = (
        "Pass the tensors themselves; where no gradient is wanted, launch under torch.no_grad()"
    )
    if not any(isinstance(value, Tensor) and value.is_floating_point() for value in values):
        raise ArgumentError(
            f"kernel {named(function.fn)} gets tensors of floats by their addresses alone "
            f"({what}): autograd sees no tensor, so nothing that it writes has a gradient. "
            f"{way_out}"
        )
    if objects or numbers:
        warnings.warn(
            f"kernel {named(function.fn)} gets a tensor by its address ({what}), of which autograd "
            f"sees nothing: no gradient goes there. {way_out}",
            stacklevel=2,
        )
