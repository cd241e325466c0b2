"""`stop_gradient`, `custom_vjp` and `custom_jvp`: functions of a kernel with their own derivative.

They leave a marker in TTIR: inline assembly that is just a comment, with the result in the
operand's register. It costs no instruction. A kernel with a `custom_vjp` marker is traced again to
be differentiated, this time with the derivative (see docs/mechanisms.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload

import torch
import triton
import triton.language as tl

from ..errors import AutodiffError
from ..kernels.interpreted import is_jit
from .linear import LinearRule, derivatives
from .stand_ins import parameters_of, stand_in
from .tracing import (
    BOTH_WAYS_CALL,
    CUSTOM_MARKER,
    EXACT_CALL,
    builtin,
    call_declared,
    flatten,
    is_differentiating,
    is_float,
    placeholders,
)
from .user_rules import Rules

# How many rules a function has been given.
_RULES = "_autodiff_rules"
Value = TypeVar("Value")
Rule = TypeVar("Rule")


class CustomFunction(Protocol):
    """A `@triton.jit` function that has, or will be given, a derivative of its own."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the function, in a kernel."""

    @overload
    def defvjp(self, rule: Rule, *, exact: bool = False) -> Rule: ...

    @overload
    def defvjp(self, rule: None = None, *, exact: bool = False) -> Callable[[Rule], Rule]: ...

    def defvjp(self, rule=None, *, exact=False):
        """Set the rule for gradients, before the first launch; returns it unchanged. Without a
        rule, this is a decorator.
        """

    @overload
    def defjvp(self, rule: Rule, *, exact: bool = False) -> Rule: ...

    @overload
    def defjvp(self, rule: None = None, *, exact: bool = False) -> Callable[[Rule], Rule]: ...

    def defjvp(self, rule=None, *, exact=False):
        """Set the rule for tangents; see `defvjp`."""


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


def _check_parameters(rule: LinearRule, names, given: str) -> None:
    """Raise an `AutodiffError` unless a rule has the parameters that it is called with."""
    parameters = rule.rule.params
    needed = [p for p in parameters if not p.has_default]
    if not len(needed) <= len(names) <= len(parameters):
        code = rule.rule.fn.__code__
        raise AutodiffError(
            f"{rule.what} ({code.co_filename}:{code.co_firstlineno}) takes {len(parameters)} "
            f"arguments, and is given {len(names)}: ({', '.join(names)}), {given}, the "
            "function's own arguments, and its results"
        )


def _call_for_derivative(function, rules: Rules, args, *tracer):
    """Trace a call together with its rules, in the form that autodiff-link-rules reads."""
    semantic, generator = tracer
    name = function.__name__
    if rules.vjp is None and rules.jvp is None:
        raise AutodiffError(
            f"function {name!r} has no derivative: give it one with defvjp or defjvp"
        )
    operands = [
        leaf
        for parameter, argument in zip(function.params, args, strict=True)
        if not parameter.is_constexpr
        for leaf in flatten(argument)
    ]
    inputs = [x for x in operands if is_float(x)]
    inside = [_mark_floats(x, "inside", semantic) for x in args]
    result = generator.call_JitFunction(function, inside, {})
    results = flatten(result)
    values = [y for y in results if is_float(y)]
    given = [*args, *results]
    own = [*(p.name for p in function.params), *(f"y{i}" for i in range(len(results)))]

    def rule_of(rule, of, likes, noun, like, names, given_first):
        if rule is None:
            return None
        what = f"the derivative {rule.__name__!r} of {name!r}"
        found = LinearRule(what, rule, of, given, likes, noun, like)
        _check_parameters(found, [*names, *own], given_first)
        return found

    back = [f"d_y{i}" for i in range(len(values))]
    pull = rule_of(
        rules.vjp, values, operands, "gradient", "operand", back, "the cotangents of the results"
    )
    forth = [f"t_x{i}" for i in range(len(inputs))]
    push = rule_of(
        rules.jvp, inputs, results, "tangent", "result", forth, "the tangents of the arguments"
    )
    gradients = derivatives(pull, push, placeholders(semantic, "cotangent", values), *tracer)
    tangents = []
    if rules.go_forward:
        tangents = derivatives(push, pull, placeholders(semantic, "tangent", inputs), *tracer)
    kind = EXACT_CALL if rules.is_exact else BOTH_WAYS_CALL if tangents else CUSTOM_MARKER
    names = (f"{kind}.{name}.{n}" for n in itertools.count())
    callee = next(n for n in names if not generator.module.has_function(n))
    outer = iter(
        call_declared(generator, callee, [*values, *inputs, *gradients, *tangents], values)
    )
    return _map(lambda y: next(outer) if is_float(y) else y, result)


@builtin
def _call(function, vjp, jvp, exact, *args, _semantic=None, _generator=None):
    function, vjp, jvp, exact = (getattr(f, "value", f) for f in (function, vjp, jvp, exact))
    if _semantic is None:
        return function(*args)
    if is_differentiating():
        return _call_for_derivative(function, Rules(vjp, jvp, exact), args, _semantic, _generator)
    result = _generator.call_JitFunction(function, args, {})
    return _mark_floats(result, "custom_vjp", _semantic)


def _with_rules(maker: str, function) -> Any:
    """Return a function that calls another, and can be given rules."""
    if not is_jit(function):
        kind = type(function).__name__
        raise TypeError(f"{maker} takes a function decorated with @triton.jit, got {kind}")
    # Triton takes functions of one name for one: those with other rules for a function have others.
    before = vars(function).get(_RULES, 0)
    setattr(function, _RULES, before + 1)
    scope = {
        "__name__": f"{function.fn.__module__}.{maker}" + (f".{before}" if before else ""),
        "_call": _call,
        "_function": function,
        "_vjp": tl.constexpr(None),
        "_jvp": tl.constexpr(None),
        "_exact": tl.constexpr(False),
    }
    what = f"{maker} {function.fn.__module__}.{function.fn.__qualname__}"
    names = ("_function", "_vjp", "_jvp", "_exact")
    plain = stand_in(what, function.__name__, parameters_of(function), names, scope)
    wrapper = triton.jit(plain)
    said: dict[str, bool] = {}

    def set_rule(key, rule, exact):
        if rule is None:
            return lambda given: set_rule(key, given, exact)
        if not is_jit(rule):
            kind = type(rule).__name__
            raise TypeError(f"def{key[1:]} takes a function decorated with @triton.jit, got {kind}")
        scope[key] = rule
        said[key] = exact
        scope["_exact"] = tl.constexpr(all(said.values()))
        return rule

    def defvjp(rule=None, *, exact=False):
        """Set the rule for gradients, before the first launch; returns it unchanged."""
        return set_rule("_vjp", rule, exact)

    def defjvp(rule=None, *, exact=False):
        """Set the rule for tangents, before the first launch; returns it unchanged."""
        return set_rule("_jvp", rule, exact)

    wrapper.defvjp, wrapper.defjvp = defvjp, defjvp
    return wrapper


def _refuse_early(maker: str, rule, exact: bool) -> None:
    if exact and rule is None:
        name = maker.removeprefix("custom_")
        raise TypeError(f"{maker}: exact=True is said of a rule: def{name}(rule, exact=True)")


def custom_vjp(function: Any, vjp: Any = None, *, exact: bool = False) -> CustomFunction:
    """Give a `@triton.jit` function a derivative of your own.

    `vjp` is a `@triton.jit` function of the cotangents of the float results, then the function's
    own arguments, then its results (the elements of a tuple one by one). It returns one gradient
    for each argument that is no constexpr, in order; those of integers, pointers and numbers are
    ignored. It can be given later: as a decorator, the result's `defvjp` takes it. The derivative
    is not computed from the function's body, which must not read a differentiated tensor itself.
    A kernel that is not differentiated just calls it.

    `exact` says that `vjp` is linear in the cotangents, and the derivative of the function. Only
    then are there tangents without a `defjvp`, and second derivatives.
    """
    wrapper = _with_rules("custom_vjp", function)
    _refuse_early("custom_vjp", vjp, exact)
    if vjp is not None:
        wrapper.defvjp(vjp, exact=exact)
    return wrapper


def custom_jvp(function: Any, jvp: Any = None, *, exact: bool = False) -> CustomFunction:
    """Give a `@triton.jit` function tangents of your own.

    `jvp` is a `@triton.jit` function of the tangents of the float arguments (the elements of a
    tuple one by one), then the function's own arguments, then its results. It returns one tangent
    for each result, in order; those of integers are ignored. It has to be linear in the tangents:
    gradients come of its transpose, unless `defvjp` gives them. It can be given later: as a
    decorator, the result's `defjvp` takes it. `exact` is as for `custom_vjp`.
    """
    wrapper = _with_rules("custom_jvp", function)
    _refuse_early("custom_jvp", jvp, exact)
    if jvp is not None:
        wrapper.defjvp(jvp, exact=exact)
    return wrapper
