"""Which argument explains why Triton, or the driver, refused a launch."""

from __future__ import annotations

import torch
from torch.autograd import forward_ad
from triton.compiler.errors import CompilationError

from .cache import is_of_cache, unusable
from .errors import ArgumentError, AutodiffError
from .facts import describe, without_memory

Tensor = torch.Tensor
_REFUSED = "failed to specialize argument of type"


def _tensor_fault(value, error) -> str | None:
    """Return what keeps a kernel from taking a tensor, None if nothing does."""
    if torch._C._functorch.is_functorch_wrapped_tensor(value):
        return "belongs to a torch.func transform (vmap, grad, …), which cannot see into a kernel"
    odd = value.layout is not torch.strided or value.is_quantized or value.is_nested
    if odd or value.is_complex() or value.device.type == "meta":
        return f"should be a dense real tensor with memory, got {describe(value)}"
    if not torch._C._has_storage(value):
        return f"has no memory that a kernel could address: a {type(value).__name__}"
    if _null(value) is not None:
        return without_memory(value)
    dtype = str(value.dtype)[6:]
    if isinstance(error, KeyError) and error.args == (dtype,):
        return f"has dtype {dtype}, which Triton has no type for"
    return None


def _odd_leaf(value):
    """Return what is neither a number, a string, None nor a tensor in nested tuples, if any."""
    if isinstance(value, tuple):
        return next((odd for odd in map(_odd_leaf, value) if odd is not None), None)
    plain = value is None or isinstance(value, (bool, int, float))
    return None if plain or hasattr(value, "data_ptr") else value


def _fault(value, constant: bool, error) -> str | None:
    """Return what is wrong with an argument that explains `error`."""
    text = str(error)
    if isinstance(value, Tensor):
        if constant:
            return "is a tl.constexpr and should be a number, got a tensor"
        if isinstance(error, CompilationError) and value.dim() == 0 and "pointer<" in text:
            return (
                "is a tensor without dimensions, which the kernel receives as a pointer: pass its "
                "item(), or tl.load it in the kernel"
            )
        return _tensor_fault(value, error)
    if isinstance(error, CompilationError):
        if value is None and not constant and "'NoneType' object" in text:
            return "is None, but the kernel uses it: pass a tensor or a number"
        return None
    if _REFUSED in text and not constant:
        odd = _odd_leaf(value)
        if odd is not None:
            return (
                "should be a tensor, a number, None or a tuple of these, got "
                f"{type(odd).__name__} {odd!r:.60}"
            )
    if isinstance(error, OverflowError) and isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            return f"is {value}, which no integer type of Triton holds"
    return None


def _recursed(error) -> bool:
    """Return whether a chain of errors is what Triton makes of a function that calls itself.

    If the call looks like one that is being compiled, it has no entry for its result yet.
    """
    silent = error.error_message is None
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__
    return isinstance(error, RecursionError) or (silent and isinstance(error, KeyError))


def _named(function, args, kwargs):
    return (*zip(function.arg_names, args, strict=False), *kwargs.items())


def refuse_tangents(function, args, kwargs) -> None:
    """Raise `ArgumentError` for a forward-mode dual tensor, whose tangent would be lost."""
    for name, value in _named(function, args, kwargs):
        if isinstance(value, Tensor) and forward_ad.unpack_dual(value).tangent is not None:
            raise ArgumentError(
                f"argument {name!r} of kernel {function.__name__!r} has a forward-mode "
                "tangent; kernels are differentiated in reverse mode only"
            )


def _null(value):
    """Return a tensor in an argument that has elements, but no address; None if there is none."""
    if isinstance(value, Tensor):
        try:
            address = value.data_ptr()
        except RuntimeError:  # one that refuses to tell
            return value
        return None if address or not value.numel() else value
    if value is None or isinstance(value, (int, float, str)):
        return None
    if isinstance(value, tuple):
        return next((null for null in map(_null, value) if null is not None), None)
    # A descriptor of a tensor, or another that stands for one.
    base = getattr(value, "base", None)
    return _null(base) if isinstance(base, Tensor) else None


def refuse_null(function, args, kwargs) -> None:
    """Raise `ArgumentError` for a tensor without memory.

    Triton's launchers pass on its address, 0. To read there is the end of a GPU's context.
    """
    for name, value in _named(function, args, kwargs):
        null = _null(value)
        if null is not None:
            fault = _tensor_fault(null, None)
            raise ArgumentError(f"argument {name!r} of kernel {function.__name__!r} {fault}")


def blame(resolver, args, kwargs, error) -> None:
    """Raise `ArgumentError` for an argument that explains why a launch was refused."""
    function = resolver.function
    kernel = f"kernel {function.__name__!r}"
    parameters = f"its parameters: {', '.join(function.arg_names)}"
    if isinstance(error, TypeError) and "dynamic_func()" in str(error):
        message = str(error).replace("dynamic_func()", kernel)
        raise ArgumentError(f"{message}; {parameters}") from None
    if isinstance(error, KeyError) and "was specified but unrecognised" in str(error):
        raise ArgumentError(f"{kernel}: {error.args[0]}; {parameters}") from None
    if isinstance(error, CompilationError) and _recursed(error):
        raise AutodiffError(
            f"{kernel} calls itself, directly or through others, without an end that is known "
            f"when it is compiled: write a loop. {error}"
        ) from error
    if isinstance(error, RuntimeError) and "PassManager::run failed" in str(error):
        raise AutodiffError(
            f"Triton's own passes fail for {kernel}, which nothing of ours has touched yet: it "
            "does not run without differentiable() either. One cause, up to Triton 3.7: of "
            "tl.sum(a[:, :, None] * b[None, :, :], 1) it makes a product, which it cannot compile "
            "in half precision; with the factors in the other order it makes none. "
            f"MLIR_ENABLE_DIAGNOSTICS=errors shows what fails: {error}"
        ) from error
    # Triton trusts the files of its cache.
    if is_of_cache(error):
        raise unusable(repr(error)) from error
    constants = {p.name for p in function.params if p.is_constexpr}
    for name, value in _named(function, args, kwargs):
        fault = _fault(value, name in constants, error)
        if fault is not None:
            raise ArgumentError(f"argument {name!r} of {kernel} {fault}") from error
