"""Objects that stand for a tensor: what Triton takes as one, for it has `data_ptr()` and `dtype`.

Such are Triton's `TensorWrapper` (`triton.reinterpret`), and buffers of packages with strides
of their own, negative ones, say. Where one holds the tensor whose memory it is, a view of this
tensor takes its place, through which gradients go.
"""

from __future__ import annotations

import torch
from triton._utils import type_canonicalisation_dict

from ..errors import ArgumentError
from .memory import extent, storage_span

Tensor = torch.Tensor


def stands_for_memory(value) -> bool:
    """Whether Triton takes a value that is no tensor as an address."""
    return not isinstance(value, Tensor) and hasattr(value, "data_ptr")


def _held(value) -> list[Tensor]:
    """Return the tensors that an object has as attributes, those that need a gradient first."""
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    held = [getattr(value, name, None) for name in (*getattr(value, "__dict__", {}), *names)]
    found = [tensor for tensor in held if isinstance(tensor, Tensor)]
    return sorted(found, key=lambda tensor: not tensor.requires_grad)


def _type(dtype) -> str:
    """Return Triton's name of a dtype of PyTorch or Triton."""
    name = str(dtype).rsplit(".", 1)[-1]
    return type_canonicalisation_dict.get(name, name)


def _offset(address: int, tensor: Tensor) -> int | None:
    """Return where in a tensor's storage an address is, in elements; None if it is elsewhere."""
    storage = tensor.untyped_storage()
    offset, rest = divmod(address - storage.data_ptr(), tensor.element_size())
    inside = 0 <= offset * tensor.element_size() < storage.nbytes()
    return offset if inside and not rest else None


def tensor_of(value, where: str):
    """Return a tensor in place of an object that stands for one; the object, if none is known.

    `where` names the argument. Raises `ArgumentError` for a tensor that needs a gradient, if its
    memory is taken for numbers of another type, or the object's address is elsewhere.
    """
    if isinstance(value, (Tensor, int, type(None))):
        return value
    kind, held = type(value).__name__, _held(value)
    address = value.data_ptr() if stands_for_memory(value) else -1
    places = [(t, _offset(address, t)) for t in held if t.layout is torch.strided]
    for tensor, offset in places:
        if offset is None:
            continue
        if _type(value.dtype) == _type(tensor.dtype):
            return _view(value, tensor, offset)
        if tensor.requires_grad and torch.is_grad_enabled():
            raise ArgumentError(
                f"{where} is a {kind} that takes the memory of a tensor of "
                f"{str(tensor.dtype)[6:]} for {value.dtype}: bits of floats have no derivative. "
                "Pass the tensor itself, and convert in the kernel; where no gradient is wanted, "
                "detach() it"
            )
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in held):
        raise ArgumentError(
            f"{where} is a {kind} for a tensor that requires a gradient, but its address is not in "
            "that tensor's memory: detach() it, or pass the tensor itself"
        )
    return value


def _view(value, tensor: Tensor, offset: int) -> Tensor:
    """Return a view of a tensor that begins at an element of its storage, as an object says.

    PyTorch has no negative strides. With these, or what is not inside of the storage, the view is
    the rest of the storage: a kernel reads around it, as it may (programs/around.py).
    """
    if not hasattr(value, "shape") and offset == tensor.storage_offset():
        return tensor
    shape, strides = getattr(value, "shape", None), getattr(value, "stride", None)
    size = storage_span(tensor).total
    try:
        shape, strides = tuple(shape), tuple(strides() if callable(strides) else strides)
        fits = min(strides, default=0) >= 0 and offset + extent(shape, strides) <= size
    except (TypeError, ValueError):
        fits = False
    if not fits:
        shape, strides = (size - offset,), (1,)
    same = (tensor.shape, tensor.stride(), tensor.storage_offset())
    return tensor if (shape, strides, offset) == same else tensor.as_strided(shape, strides, offset)
