"""Finds the argument because of which Triton, or the driver, refused a launch."""

from __future__ import annotations

import ast
import difflib
import inspect

import torch
from triton.compiler.errors import CompilationError
from triton.runtime.driver import driver

from ..errors import ArgumentError, AutodiffError
from ..faults import table
from ..kernels.wrappers import Differentiable
from ..plans.cache import is_of_cache, unusable
from ..storage.tensors import are_plain, fault_of, lacks_address
from ..support.places import named
from .options import KEYWORDS, REQUESTED

Tensor = torch.Tensor
_REFUSED = "failed to specialize argument of type"
# The compile options of a launch.
_COMPILE_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


def _tensor_fault(value, error) -> str | None:
    """Return why a kernel cannot take a tensor, None if it can."""
    fault = fault_of(value)
    if fault is not None:
        return fault
    if "cannot be accessed from Triton" in str(error):
        device = driver.active.get_active_torch_device().type
        if value.device.type != device:
            return f"is on {value.device}, but the kernel runs on {device}: move it there"
    dtype = str(value.dtype)[6:]
    if isinstance(error, KeyError) and error.args == (dtype,):
        return f"has dtype {dtype}, which Triton has no type for"
    return None


def _odd_leaf(value):
    """Return what is neither a number, a string, None nor a tensor in nested tuples, if any."""
    if isinstance(value, tuple):
        return next((odd for odd in map(_odd_leaf, value) if odd is not None), None)
    plain = value is None or isinstance(value, (bool, int, float))
    known = hasattr(value, "data_ptr") and hasattr(value, "dtype")
    return None if plain or known else value


def _names_at(error) -> set[str]:
    """Return the names in the expression of the kernel that a `CompilationError` is about."""
    node = getattr(error, "node", None)
    nodes = ast.walk(node) if isinstance(node, ast.AST) else ()
    return {part.id for part in nodes if isinstance(part, ast.Name)}


def _misread(name, value, error) -> str | None:
    """Return what is wrong with an argument that the kernel uses as another type."""
    text, named = str(error), name in _names_at(error)
    if isinstance(value, Tensor):
        # A parameter named `n` may be a number; a tensor of one element may be meant as its value.
        if "pointer<" in text and (value.dim() == 0 or (named and value.numel() == 1)):
            way_out = "tl.load it in the kernel"
            if not value.requires_grad:
                way_out = f"pass its item(), or {way_out}"
            else:
                way_out += ", for its item() has no gradient"
            shape = "without dimensions" if value.dim() == 0 else "of one element"
            return f"is a tensor {shape}, which the kernel receives as a pointer: {way_out}"
    elif value is None and "'NoneType' object" in text:
        return "is None, but the kernel uses it: pass a tensor or a number"
    elif named and isinstance(value, (int, float)) and "Unsupported ptr type" in text:
        return f"is the number {value!r}, but the kernel takes it for a pointer: pass a tensor"
    return None


def _fault(name, value, constant: bool, error) -> str | None:
    """Return what is wrong with an argument, if it explains `error`."""
    if isinstance(value, Tensor):
        if constant:
            return "is a tl.constexpr and should be a number, got a tensor"
        fault = _misread(name, value, error) if isinstance(error, CompilationError) else None
        return fault or _tensor_fault(value, error)
    if isinstance(error, CompilationError):
        return None if constant else _misread(name, value, error)
    if not constant and (_REFUSED in str(error) or isinstance(error, AttributeError)):
        odd = _odd_leaf(value)
        if odd is not None:
            way_out = ": pass its item()" if getattr(odd, "ndim", None) == 0 else ""
            return (
                "should be a tensor, a number, None or a tuple of these, got "
                f"{type(odd).__name__} {odd!r:.60}{way_out}"
            )
    if isinstance(error, OverflowError) and isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            return f"is {value}, which no integer type of Triton holds"
    return None


def _recursed(error) -> bool:
    """Return whether a chain of errors is Triton's for a function that calls itself.

    Its result type is not known yet when the recursive call is compiled.
    """
    silent = error.error_message is None
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__
    return isinstance(error, RecursionError) or (silent and isinstance(error, KeyError))


def named_values(function, args, kwargs):
    """Return pairs of parameters' names and what they are given."""
    return (*zip(function.arg_names, args, strict=False), *kwargs.items())


def is_batch(gradient) -> bool:
    """Whether a gradient is a batch of them, by PyTorch's vmap."""
    if gradient is None:
        return False
    functorch = torch._C._functorch
    wrapped = functorch.is_functorch_wrapped_tensor(gradient)
    return wrapped or functorch.is_legacy_batchedtensor(gradient)


def refuse_batch(what: str, error=None) -> None:
    """Raise `ArgumentError` for a batch of gradients of `what`."""
    raise ArgumentError(
        f"the upstream gradient of {what} is a batch of gradients (is_grads_batched=True, or vmap "
        "over a backward), which a kernel cannot take: call the backward once for each"
    ) from error


def _null(value):
    """Return a tensor in an argument that has elements but no memory; None if there is none."""
    if isinstance(value, Tensor):
        return value if lacks_address(value) else None
    if value is None or isinstance(value, (int, float, str)):
        return None
    if isinstance(value, tuple):
        return next((null for null in map(_null, value) if null is not None), None)
    # A tensor descriptor, or another object with a `base`.
    base = getattr(value, "base", None)
    return _null(base) if isinstance(base, Tensor) else None


def refuse_null(function, args, kwargs) -> None:
    """Raise `ArgumentError` for a tensor without memory.

    Triton's launchers pass its address, 0, to the kernel. To read there breaks the GPU's context.
    """
    values = (*args, *kwargs.values())
    if are_plain(values):
        tensors = [value for value in values if isinstance(value, Tensor)]
        if not any(map(lacks_address, tensors)):
            return
    for name, value in named_values(function, args, kwargs):
        null = _null(value)
        if null is not None:
            raise ArgumentError(
                f"argument {name!r} of kernel {function.__name__!r} {fault_of(null)}"
            )


def _foreign_keyword(function, kwargs) -> str | None:
    """Return what is wrong with a keyword that is no parameter of the kernel, if that is known."""
    for name, value in kwargs.items():
        if name in function.arg_names:
            continue
        if name in KEYWORDS or name in REQUESTED:
            given = {name: value} if name in KEYWORDS else {"backward": {name: value}}
            ((option, content),) = given.items()
            return (
                f"{name!r} is an option of the kernel's backward, and is not given at the launch: "
                f"differentiable(kernel, {option}={content!r})"
            )
        known = (*function.arg_names, *_COMPILE_OPTIONS)
        near = [] if name in known else difflib.get_close_matches(name, known, 1)
        if near:
            return f"it has no parameter {name!r}; did you mean {near[0]!r}?"
        if name in _COMPILE_OPTIONS and value is not None and not isinstance(value, int):
            return f"{name} should be an integer, got {value!r}"
    return None


def _blame_call(function, kwargs, error) -> None:
    """Raise `ArgumentError` if a call does not match a kernel's parameters."""
    kernel = f"kernel {function.__name__!r}"
    parameters = f"its parameters: {', '.join(function.arg_names)}"
    misfits = isinstance(error, TypeError) and "dynamic_func()" in str(error)
    unknown = isinstance(error, KeyError) and "was specified but unrecognised" in str(error)
    foreign = None
    if misfits or unknown or isinstance(error, TypeError):
        foreign = _foreign_keyword(function, kwargs)
    if foreign is not None:
        raise ArgumentError(f"{kernel}: {foreign}; {parameters}") from None
    if misfits:
        message = str(error).replace("dynamic_func()", kernel)
        raise ArgumentError(f"{message}; {parameters}") from None
    if unknown:
        raise ArgumentError(f"{kernel}: {error.args[0]}; {parameters}") from None


def _blame_source(function, error) -> None:
    """Raise `AutodiffError` if a kernel calls something that kernels cannot call."""
    known = inspect.getclosurevars(function.fn)
    kernel = f"kernel {named(function.fn)}"
    for name, value in {**known.globals, **known.nonlocals}.items():
        if isinstance(value, Differentiable):
            raise AutodiffError(
                f"{kernel} calls {name!r}, which is differentiable: that is for what is launched. "
                "A function that a kernel calls has @triton.jit alone"
            ) from error
    if isinstance(error, RuntimeError) and "Unsupported function referenced" in str(error):
        raise AutodiffError(
            f"{kernel} calls what is no function of Triton: {error}. In a kernel, use those of "
            "triton.language, and your own with @triton.jit"
        ) from error


def blame(resolver, args, kwargs, error) -> None:
    """Raise `ArgumentError` for the argument because of which a launch was refused."""
    function = resolver.function
    kernel = f"kernel {function.__name__!r}"
    _blame_call(function, kwargs, error)
    if isinstance(error, CompilationError) and _recursed(error):
        raise AutodiffError(
            f"{kernel} calls itself, directly or through others, without an end that is known "
            f"when it is compiled: write a loop. {error}"
        ) from error
    if isinstance(error, RuntimeError) and "PassManager::run failed" in str(error):
        raise AutodiffError(
            f"Triton's own passes fail for {kernel}, which nothing of ours has touched yet: it "
            "does not run without differentiable() either. One cause, before Triton "
            f"{table.fault('sums-as-products').right}: of "
            "tl.sum(a[:, :, None] * b[None, :, :], 1) it makes a product, which it cannot compile "
            "in half precision; with the factors in the other order it makes none. "
            f"MLIR_ENABLE_DIAGNOSTICS=errors shows what fails: {error}"
        ) from error
    # Triton does not check the files of its cache.
    if is_of_cache(error):
        raise unusable(repr(error)) from error
    _blame_source(function, error)
    constants = {p.name for p in function.params if p.is_constexpr}
    for name, value in named_values(function, args, kwargs):
        fault = _fault(name, value, name in constants, error)
        if fault is not None:
            raise ArgumentError(f"argument {name!r} of {kernel} {fault}") from error
