"""Facts about a launch that PyTorch traces: its tensors have sizes, but no memory.

A size may be a symbol. The plan is then chosen for the value with which it is traced.
"""

from __future__ import annotations

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.multiprocessing.reductions import StorageWeakRef

from ..storage.memory import extent

Tensor = torch.Tensor


class Unforeseen(Exception):
    """A size or a plan depends on data, so nothing is known of a launch before it runs."""


def hint(number):
    """Return the value that a symbol is traced with; raises `Unforeseen` if there is none."""
    if not isinstance(number, (torch.SymInt, torch.SymFloat)):
        return number
    if free_unbacked_symbols(number) or number.node.hint is None:
        raise Unforeseen
    return number.node.hint


def hints(numbers) -> tuple:
    """Return the values that symbols are traced with."""
    return tuple(map(hint, numbers))


def memory_of(tensor: Tensor) -> StorageWeakRef:
    """Return a key that is equal for traced tensors that share memory."""
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
    """Stands for a traced tensor: its layout, type and device, and a unique address.

    It fills its storage. It need not be aligned: traced kernels are text, which PyTorch compiles
    for the alignment that it knows.
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
        """Return a unique address, for comparisons."""
        return self._address

    def untyped_storage(self):
        """Return an object that has the size of the storage."""
        return _Storage(self._bytes)

    def _is_view(self) -> bool:
        return False


def trial(tensor: Tensor) -> Tensor:
    """Return zeros for a launch that is only measured."""
    size = extent(hints(tensor.shape), hints(tensor.stride()))
    flat = torch.zeros(size, dtype=tensor.dtype, device=tensor.device)
    return flat.as_strided(hints(tensor.shape), hints(tensor.stride()))
