"""Tensor descriptors in code that Dynamo reads: made directly, or from a tensor.

Dynamo has no addresses, but a descriptor looks at its tensor's address when it is made. On a GPU
with descriptors, Dynamo treats `TensorDescriptor.from_tensor` as an object for Triton kernels,
without attributes.
"""

from __future__ import annotations

import functools
import sys

import torch
from triton.tools.tensor_descriptor import TensorDescriptor

# Importing Dynamo takes time, so it is not imported here.
_VARIABLES = "torch._dynamo.variables.functions"


class _Aligned:
    """Stands for a tensor whose address is not known yet; the launch checks it."""

    def __init__(self, dtype):
        self.dtype = dtype

    def data_ptr(self) -> int:
        return 0


def _of_traced(plain):
    @functools.wraps(plain)
    def __post_init__(self):
        if not torch.compiler.is_dynamo_compiling():
            return plain(self)
        base = self.base
        self.base = _Aligned(base.dtype)
        plain(self)
        self.base = base

    return __post_init__


TensorDescriptor.__post_init__ = _of_traced(TensorDescriptor.__post_init__)


def teach_dynamo() -> None:
    """Give Dynamo's `TensorDescriptor.from_tensor(…)` the attributes of a descriptor."""
    functions = sys.modules.get(_VARIABLES)
    made = getattr(functions, "TMADescriptorStableVariable", None)
    if made is None or "var_getattr" in vars(made):
        return
    from torch._dynamo.exc import RestartAnalysis
    from torch._dynamo.variables import ConstantVariable

    create = functions.CreateTMADescriptorStableVariable
    plain = create.call_function

    def call_function(self, tx, args, kwargs):
        descriptor = plain(self, tx, args, kwargs)
        padding = kwargs.get("padding", args[2] if len(args) > 2 else None)
        descriptor.padding = ConstantVariable.create("zero") if padding is None else padding
        return descriptor

    def var_getattr(self, tx, name):
        if not hasattr(self, "padding"):
            raise RestartAnalysis(restart_reason="a descriptor was made before this was known")
        if name in ("base", "block_shape", "padding"):
            return self.tensor if name == "base" else getattr(self, name)
        if name == "strides":
            return self.tensor.call_method(tx, "stride", [], {})
        return self.tensor.var_getattr(tx, name)

    create.call_function = call_function
    made.var_getattr = var_getattr
    made.python_type = lambda self: TensorDescriptor


# Dynamo calls the function while it reads a launch.
teach_dynamo._dynamo_marked_constant = True
teach_dynamo()
