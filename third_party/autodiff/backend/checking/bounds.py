"""Debugging with `TRITON_AUTODIFF_CHECK=1`: accesses of derived kernels are checked at run time.

The compiler adds arguments to each kernel: the addresses between which each pointer's memory lies,
and a buffer in which the first access outside of them is noted. A forward also gets memory in which
each program notes that it stores to an element, so that races are noticed. This module passes these
arguments and reads the results.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import torch

from ..errors import BoundsError, RaceError

OPERANDS = ("begin", "end", "violations", "claims")

# How CheckBounds.cpp packs an access's number and its distance in bytes from the buffer's start.
_DISTANCE_BITS = 40
_DISTANCE_OFFSET = 1 << (_DISTANCE_BITS - 1)
_NOTHING = 2**63 - 1
_ANYWHERE = (-(2**63), 2**63 - 1)
_RACE, _MIXED = "race", "mixed"


def wanted() -> bool:
    """Return whether derived kernels should check their accesses."""
    return os.environ.get("TRITON_AUTODIFF_CHECK", "0") not in ("", "0")


class Access(NamedTuple):
    """A checked access: the kernel's own argument (-1 if there are several), and its source line.

    A store has a second one, for "race". So has an atomic operation, for "mixed".
    """

    argument: int
    op: str
    position: str


def _range(tensor: torch.Tensor) -> tuple[int, int]:
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


class CheckedLaunch:
    """Launches a checked kernel, and raises an error for what it has noted."""

    def __init__(self, kernel, spec, buffers):
        self._kernel = kernel
        self._spec = spec
        self._buffers = buffers
        self._count = sum(kind not in OPERANDS for kind, _ in kernel.operands)

    @classmethod
    def of(cls, kernel, spec, plan) -> CheckedLaunch | None:
        """Return how to launch a kernel with checks; None for other kernels."""
        checks = kernel is not None and kernel.accesses is not None
        return cls(kernel, spec, plan.buffers) if checks else None

    def launch(self, executable, grid, args, tensors, device) -> None:
        """Launch on `args`, the values for the kernel without checks; `tensors` are their
        memory.
        """
        ranges = {tensor.data_ptr(): _range(tensor) for tensor in tensors}
        widths = [getattr(arg, "itemsize", 1) for arg in args]
        # Atomics without a mask access this buffer instead (CheckBounds.cpp), and so need memory.
        violations = torch.full((4,), _NOTHING, dtype=torch.int64, device=device)
        bounds = [self._bounds(arg, ranges) for arg in args]
        extra = []
        for kind, index in self._kernel.operands[self._count :]:
            if kind == "violations":
                extra.append(violations)
            elif kind == "claims":
                begin, end = bounds[index]
                elements = 1 if bounds[index] == _ANYWHERE else (end - begin) // widths[index]
                extra.append(torch.zeros(elements, dtype=torch.int64, device=device))
            else:
                extra.append(bounds[index][kind == "end"])
        executable.launch(grid, (*args, *extra))
        noted = int(violations[0])
        if noted != _NOTHING:
            self._refuse(noted, bounds, widths)

    @staticmethod
    def _bounds(arg, ranges):
        address = arg.data_ptr() if hasattr(arg, "data_ptr") else arg
        return ranges.get(address, _ANYWHERE)

    def _refuse(self, noted: int, bounds, widths):
        """Raise an error for what a kernel has noted."""
        number, distance = divmod(noted, 1 << _DISTANCE_BITS)
        access = self._kernel.accesses[number]
        where = f" at {access.position}" if access.position else ""
        distance -= _DISTANCE_OFFSET
        if access.op == _RACE:
            element = distance // widths[access.argument]
            raise RaceError(
                f"programs, or lanes of one, store different values to element {element} of the "
                f"memory of {self._name(access.argument)} of kernel {self._spec.name!r}{where}: "
                "which of them memory keeps is not defined, so there is no gradient"
            )
        if access.op == _MIXED:
            element = distance // widths[access.argument]
            raise RaceError(
                f"the atomic operation of kernel {self._spec.name!r}{where} goes to element "
                f"{element} of the memory of {self._name(access.argument)}, to which one of "
                "another kind goes, too: a sum and a maximum of one element have no gradient. Let "
                "them go to elements of their own, or use two tensors"
            )
        what = f"kernel {self._kernel.name!r}: {access.op}{where}"
        if access.argument < 0:
            raise BoundsError(f"{what} goes outside of every argument's memory")
        begin, end = bounds[access.argument]
        raise BoundsError(
            f"{what} goes {distance} bytes from the start of "
            f"{self._name(access.argument)}, which holds {end - begin} bytes"
        )

    def _name(self, argument: int) -> str:
        kind, index = self._kernel.operands[argument]
        if kind == "buffer":
            return f"buffer {self._buffers[index].name!r}"
        name = f"argument {self._spec.names[index]!r}"
        prefix = {"cotangent": "the upstream gradient of ", "gradient": "the gradient of "}
        return prefix.get(kind, "") + name
