"""Why a kernel cannot take a tensor, in words, with a way out.

A kernel gets an address, and reads numbers there. A tensor may have no memory, or memory that
contains something else.
"""

from __future__ import annotations

import sys

import torch

from .memory import has_memory

Tensor = torch.Tensor
_UNINITIALIZED = torch.nn.parameter.UninitializedTensorMixin


# Arguments of these types never carry a gradient.
PLAIN = frozenset((int, float, bool, str, type(None)))
TENSORS = (Tensor, torch.nn.Parameter)


def are_plain(values) -> bool:
    """Return whether all are tensors, numbers or strings, so that nothing stands for a tensor."""
    for value in values:
        if type(value) not in TENSORS and type(value) not in PLAIN:
            return False
    return True


def tensors_in(value):
    """Yield the tensors in nested containers."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(tuple(value.values()))


def flattened(values) -> list:
    """Return what is in nested lists and tuples.

    Operators take no other containers; PyTorch's `tree_flatten` takes longer, and leaves garbage.
    """
    found: list = []
    for value in values:
        if isinstance(value, (tuple, list)):
            found += flattened(value)
        else:
            found.append(value)
    return found


def rebuilt(values, leaves):
    """Return nested lists and tuples like others, with the following of an iterator's `leaves`."""
    parts = [
        rebuilt(value, leaves) if isinstance(value, (tuple, list)) else next(leaves)
        for value in values
    ]
    return parts if isinstance(values, list) else tuple(parts)


def describe(tensor: Tensor) -> str:
    """Describe a tensor in a few words, for messages."""
    layout = "" if tensor.layout is torch.strided else f" {str(tensor.layout)[6:]}"
    quantized = " quantized" if tensor.is_quantized else ""
    return f"a{quantized}{layout} tensor of {str(tensor.dtype)[6:]} on {tensor.device}"


def is_of(value, module: str, name: str) -> bool:
    """Whether a value is of a class of PyTorch that may not have been imported."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(value, kind)


def _kept_elsewhere(value) -> str | None:
    """Return what is wrong with a tensor that is a wrapper of others; None if it is none."""
    kind = type(value).__name__
    if isinstance(value, _UNINITIALIZED):
        return f"is an {kind}, which has no shape yet: call the lazy module once before"
    if torch._C._functorch.is_batchedtensor(value):
        return (
            "is a batch of a torch.func transform (vmap), and a kernel takes one tensor: launch "
            "outside of it, for the whole batch, or register the operation "
            "(autodiff(…).register), which vmap calls for each of the batch"
        )
    if torch._C._functorch.is_functorch_wrapped_tensor(value):
        return (
            "belongs to a torch.func transform (grad, vjp, …), which cannot see into a kernel: "
            "launch outside of it, and differentiate with backward() or torch.autograd.grad"
        )
    if is_of(value, "torch.distributed.tensor", "DTensor"):
        return (
            "is a DTensor, a tensor that is spread over devices, and a kernel runs on one: "
            "register the operation with its shard= (docs/pytorch.md), pass its to_local(), or "
            "let torch.distributed.tensor.experimental.local_map call the function that launches"
        )
    if is_of(value, "torch._subclasses.fake_tensor", "FakeTensor"):
        return "is a FakeTensor, which has no memory: launch with real tensors"
    if is_of(value, "torch.masked", "MaskedTensor"):
        return "is a MaskedTensor, which has no memory of its own: pass its get_data()"
    return None


def fault_of(value: Tensor) -> str | None:
    """Return why no kernel can take a tensor, None if one can."""
    fault = _kept_elsewhere(value)
    if fault is not None:
        return fault
    if value.is_nested:
        return "is a nested tensor, which has no strides: pass its values(), or a padded tensor"
    if value.layout is not torch.strided:
        return f"should be a dense tensor, got {describe(value)}: pass its to_dense()"
    if value.is_quantized:
        return f"should be a plain tensor, got {describe(value)}: pass its dequantize()"
    if value.is_complex():
        return f"should be real, got {describe(value)}: pass torch.view_as_real() of it"
    if value.device.type == "meta":
        return f"should have memory, got {describe(value)}: make it on a real device"
    return _missing_memory(value)


def lacks_address(value: Tensor) -> bool:
    """Whether a tensor with elements has no address, or has no strides."""
    try:
        return value.is_nested or (not value.data_ptr() and value.numel() > 0)
    except (RuntimeError, ValueError):  # one that refuses to tell
        return True


def _missing_memory(value: Tensor) -> str | None:
    """Return what is wrong with the memory of a tensor, None if nothing is."""
    if torch._C._has_storage(value) and not lacks_address(value) and has_memory(value):
        return None
    kind = type(value)
    if kind.__torch_dispatch__ is not Tensor.__torch_dispatch__:
        held = value.__tensor_flatten__()[0] if hasattr(value, "__tensor_flatten__") else ()
        parts = f" ({', '.join(held)})" if held else ""
        return (
            f"is a {kind.__name__}, a tensor without memory of its own: pass what it holds{parts}"
        )
    if torch._is_functional_tensor(value):
        return "has no memory, for it was made while a graph was traced: launch outside of that"
    return (
        f"is a tensor of shape {tuple(value.shape)} without the memory for it: its storage was "
        "freed or resized"
    )
