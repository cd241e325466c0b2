"""`stop_gradient` and `custom_vjp`: functions of a kernel with a user-defined derivative.

Both leave a marker in TTIR: inline assembly that is just a comment, with the result in the
operand's register. It costs no instruction. A kernel with a `custom_vjp` marker is traced again to
be differentiated, this time with the derivative (see docs/mechanisms.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import torch
import triton
import triton.language as tl

from ..errors import AutodiffError
from ..kernels.interpreted import is_jit
from .stand_ins import parameters_of, stand_in
from .tracing import (
    CUSTOM_MARKER,
    call_declared,
    checked_gradients,
    cotangent_type,
    flatten,
    is_differentiating,
    is_float,
    placeholder,
)

# How many rules a function has been given.
_RULES = "_autodiff_rules"
Value = TypeVar("Value")
Rule = TypeVar("Rule")
Builtin = TypeVar("Builtin", bound=Callable)


class CustomVjp(Protocol):
    """A `@triton.jit` function that has, or will be given, a derivative of its own."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the function, in a kernel."""

    def defvjp(self, rule: Rule) -> Rule:
        """Set the derivative, before the first launch; returns it unchanged."""


def builtin(function: Builtin) -> Builtin:
    """Make a function to which Triton's tracer passes itself; plain Python can call it, too."""
    function.__triton_builtin__ = True
    return function


def _mark(x, name: str, semantic):
    """Return `x` through inline assembly that consists of a name in a comment."""
    scalar = x.type.scalar
    if scalar.is_fp8():
        return semantic.cast(_mark(semantic.cast(x, tl.float16), name, semantic), scalar)
    builder = semantic.builder
    registers = {16: "h", 32: "f" if scalar.is_floating() else "r", 64: "l"}
    if scalar.is_fp64():
        registers[64] = "d"
    is_hip = builder.options.backend_name == "hip"
    register = "v" if is_hip else registers[scalar.primitive_bitwidth]
    comment = ";" if is_hip else "//"
    op = builder.create_inline_asm(
        f"{comment} autodiff.{name}", f"={register},0", [x.handle], [x.type.to_ir(builder)], True, 1
    )
    return tl.tensor(op.get_result(0), x.type)


def _map(function, value):
    if isinstance(value, tl.tuple):
        return tl.tuple([_map(function, item) for item in value.values], value.type)
    return function(value)


def _mark_floats(value, name: str, semantic):
    return _map(lambda x: _mark(x, name, semantic) if is_float(x) else x, value)


@builtin
def stop_gradient(x: Value, _semantic=None) -> Value:
    """Return `x`, through which no derivative flows: for use in a kernel.

    Of a tuple, every element is stopped. Integers carry no derivative and stay as they are.
    """

    if isinstance(x, torch.Tensor):
        raise TypeError("stop_gradient is for values in a kernel: of a tensor, take x.detach()")
    if any(isinstance(leaf, tl.tensor) and leaf.type.scalar.is_ptr() for leaf in flatten(x)):
        raise TypeError("stop_gradient takes values; stop what is loaded, not the pointer")
    return x if _semantic is None else _mark_floats(x, "stop_gradient", _semantic)


@builtin
def once(x: Value, _semantic=None) -> Value:
    """Mark `x` as a value that must not be differentiated again, in a printed gradient."""
    return x if _semantic is None else _mark_floats(x, "once", _semantic)


def _check_parameters(what: str, vjp, function, cotangents: int, results: int) -> None:
    """Raise an `AutodiffError` unless a derivative has the parameters that it is called with."""
    wanted = [f"d_y{i}" for i in range(cotangents)]
    wanted += [parameter.name for parameter in function.params]
    wanted += [f"y{i}" for i in range(results)]
    needed = [p for p in vjp.params if not p.has_default]
    if not len(needed) <= len(wanted) <= len(vjp.params):
        code = vjp.fn.__code__
        raise AutodiffError(
            f"{what} ({code.co_filename}:{code.co_firstlineno}) takes {len(vjp.params)} arguments, "
            f"and is given {len(wanted)}: ({', '.join(wanted)}), the cotangents of the results, "
            "the function's own arguments, and its results"
        )


def _call_for_derivative(function, vjp, args, semantic, generator):
    """Trace a call together with its derivative, in the form that autodiff-link-rules reads."""
    name = function.__name__
    if vjp is None:
        raise AutodiffError(f"function {name!r} has no derivative: give it one with defvjp")
    operands = [
        leaf
        for parameter, argument in zip(function.params, args, strict=True)
        if not parameter.is_constexpr
        for leaf in flatten(argument)
    ]
    inputs = [x for x in operands if is_float(x)]
    inside = [_mark_floats(x, "stop_gradient", semantic) for x in args]
    result = generator.call_JitFunction(function, inside, {})
    values = [y for y in flatten(result) if is_float(y)]
    cotangents = [
        placeholder(semantic, f"cotangent {i}", cotangent_type(y.type), y)
        for i, y in enumerate(values)
    ]
    what = f"the derivative {vjp.__name__!r} of {name!r}"
    results = flatten(result)
    _check_parameters(what, vjp, function, len(values), len(results))
    returned = generator.call_JitFunction(vjp, [*cotangents, *args, *results], {})
    gradients = checked_gradients(what, returned, operands, semantic)
    names = (f"{CUSTOM_MARKER}.{name}.{n}" for n in itertools.count())
    callee = next(n for n in names if not generator.module.has_function(n))
    outer = iter(call_declared(generator, callee, [*values, *inputs, *gradients], values))
    return _map(lambda y: next(outer) if is_float(y) else y, result)


@builtin
def _call(function, vjp, *args, _semantic=None, _generator=None):
    function, vjp = (getattr(f, "value", f) for f in (function, vjp))
    if _semantic is None:
        return function(*args)
    if is_differentiating():
        return _call_for_derivative(function, vjp, args, _semantic, _generator)
    result = _generator.call_JitFunction(function, args, {})
    return _mark_floats(result, "custom_vjp", _semantic)


def custom_vjp(function: Any, vjp: Any = None) -> CustomVjp:
    """Give a `@triton.jit` function a derivative of your own.

    `vjp` is a `@triton.jit` function of the cotangents of the float results, then the function's
    own arguments, then its results (the elements of a tuple one by one). It returns one gradient
    for each argument that is no constexpr, in order; those of integers, pointers and numbers are
    ignored. It can be given later: as a decorator, the result's `defvjp` takes it. The derivative
    is not computed from the function's body, which must not read a differentiated tensor itself.
    A kernel that is not differentiated just calls it.
    """
    if not is_jit(function):
        kind = type(function).__name__
        raise TypeError(f"custom_vjp takes a function decorated with @triton.jit, got {kind}")
    # Triton takes functions of one name for one: those with other rules for a function have others.
    before = vars(function).get(_RULES, 0)
    setattr(function, _RULES, before + 1)
    scope = {
        "__name__": f"{function.fn.__module__}.custom_vjp" + (f".{before}" if before else ""),
        "_call": _call,
        "_function": function,
        "_vjp": tl.constexpr(None),
    }
    what = f"custom_vjp {function.fn.__module__}.{function.fn.__qualname__}"
    names = ("_function", "_vjp")
    plain = stand_in(what, function.__name__, parameters_of(function), names, scope)
    wrapper = triton.jit(plain)

    def defvjp(rule):
        """Set the derivative, before the first launch; returns it unchanged."""
        if not is_jit(rule):
            kind = type(rule).__name__
            raise TypeError(f"defvjp takes a function decorated with @triton.jit, got {kind}")
        scope["_vjp"] = rule
        return rule

    wrapper.defvjp = defvjp
    if vjp is not None:
        defvjp(vjp)
    return wrapper
