"""What is known of a launch where PyTorch traces: its tensors have sizes, and no memory.

A size may be a symbol. What a plan is chosen by is then the size that is traced with.
"""

from __future__ import annotations

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.multiprocessing.reductions import StorageWeakRef

from .memory import extent

Tensor = torch.Tensor


class Unforeseen(Exception):
    """Nothing is known of a launch before it runs: a size or a plan depends on data."""


def hint(number):
    """Return the number that a symbol is traced with; raises `Unforeseen` if there is none."""
    if not isinstance(number, (torch.SymInt, torch.SymFloat)):
        return number
    if free_unbacked_symbols(number) or number.node.hint is None:
        raise Unforeseen
    return number.node.hint


def hints(numbers) -> tuple:
    """Return the numbers that symbols are traced with."""
    return tuple(map(hint, numbers))


def memory_of(tensor: Tensor) -> StorageWeakRef:
    """Return what is equal for traced tensors that share memory."""
    from torch._subclasses.functional_tensor import FunctionalTensor

    if isinstance(tensor, FunctionalTensor):
        torch._sync(tensor)
        tensor = torch._from_functional_tensor(tensor.elem)
    return StorageWeakRef(tensor.untyped_storage())


class _Storage:
    def __init__(self, nbytes: int):
        self._nbytes = nbytes

    def nbytes(self) -> int:
        return self._nbytes


class StandIn(Tensor):
    """What a tensor will be: layout, type and device, and an address that no other has.

    It is all that its storage holds. That it is aligned is no promise: what is traced is text,
    which PyTorch compiles for the alignment that it knows of.
    """

    @staticmethod
    def __new__(cls, tensor: Tensor, number: int):
        shape, strides = hints(tensor.shape), hints(tensor.stride())
        made = Tensor._make_wrapper_subclass(
            cls, shape, strides=strides, dtype=tensor.dtype, device=tensor.device
        )
        made._bytes = extent(shape, strides) * tensor.element_size()
        made._address = number + 1 << 44
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, operator, types, args=(), kwargs=None):
        raise Unforeseen

    def data_ptr(self) -> int:
        """Return an address, for what compares addresses."""
        return self._address

    def untyped_storage(self):
        """Return something that knows how long the storage is."""
        return _Storage(self._bytes)

    def _is_view(self) -> bool:
        return False


def trial(tensor: Tensor) -> Tensor:
    """Return memory of zeros for a launch that is only to be measured."""
    size = extent(hints(tensor.shape), hints(tensor.stride()))
    flat = torch.zeros(size, dtype=tensor.dtype, device=tensor.device)
    return flat.as_strided(hints(tensor.shape), hints(tensor.stride()))
