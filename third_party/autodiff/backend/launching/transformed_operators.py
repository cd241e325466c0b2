"""Operators of PyTorch under transforms of `torch.func`.

PyTorch would call an operator's own kernels, one transform at a time. They know nothing of a
transform's derivatives. So an operator says here what it is as a function that all transforms see
through.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter

from .batches import for_each_example

_TransformType = torch._C._functorch.TransformType


def under_transforms(library, name: str, operator, function: Callable) -> None:
    """Have an operator call a function of the same arguments, where a transform differentiates.

    A `vmap` calls the operator for each example.
    """
    call = functools.partial(_transformed, operator, function)
    library.impl(name, call, "FuncTorchDynamicLayerFrontMode")


def _transformed(operator, function, *args, **kwargs):
    interpreter = retrieve_current_functorch_interpreter()
    if interpreter.key() == _TransformType.Vmap:
        return for_each_example(operator, args, kwargs)
    if interpreter.key() == _TransformType.Functionalize:
        from torch._subclasses.functional_tensor import FunctorchFunctionalizeAPI

        functional = FunctorchFunctionalizeAPI(interpreter)
        args, kwargs = functional.unwrap_tensors((args, kwargs))
        with functional.redispatch_to_next():
            results = operator(*args, **kwargs)
        return functional.wrap_tensors(results)
    return function(*args, **kwargs)
