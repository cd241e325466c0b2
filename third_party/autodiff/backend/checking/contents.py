"""Integers in memory that a launch needs: where sequences or segments begin and end.

They are read at every launch of a kernel whose checks ask for them, since a kernel may have changed
them without notice. So such a launch waits for the device.
"""

from __future__ import annotations

import weakref

import numpy
import torch

from ..errors import CheckError
from ..storage.memory import tensor_span

# The longest table that a launch waits for.
_MOST = 4096


def read(tensor: torch.Tensor) -> numpy.ndarray | None:
    """Return the integers from a tensor's first element on in memory, as int64.

    None if they are no integers, or too many, or if a CUDA graph records the launch: the graph has
    to be right for other contents, too.
    """
    count = tensor_span(tensor).total
    if tensor.dtype not in (torch.int32, torch.int64) or not 0 < count <= _MOST:
        return None
    if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
        return None
    numbers = tensor.detach().as_strided((count,), (1,)).cpu()
    return numbers.numpy().astype(numpy.int64)


def fingerprint(tensor: torch.Tensor) -> bytes | None:
    """Return a hashable form of a tensor's contents; None if they are not read."""
    numbers = read(tensor)
    return None if numbers is None else numbers.tobytes()


class Contents:
    """The integers behind one argument of one launch, read once somebody asks."""

    def __init__(self, tensor: torch.Tensor):
        self._tensor = weakref.ref(tensor)
        self._numbers = None

    def at(self, places) -> numpy.ndarray:
        """Return the integers at `places`, counted from the tensor's first element.

        Raises `CheckError` if they cannot be read.
        """
        if self._numbers is None:
            tensor = self._tensor()
            self._numbers = None if tensor is None else read(tensor)
            if self._numbers is None:
                raise CheckError("what the kernel loads there is not read at the launch")
        places = numpy.asarray(places)
        if places.size and not 0 <= places.min() <= places.max() < len(self._numbers):
            raise CheckError("the kernel may load integers beyond a tensor's end")
        return self._numbers[places]
