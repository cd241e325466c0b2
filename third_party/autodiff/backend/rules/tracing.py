"""Traces rules with Triton's tracer: their arguments, their results, and their TTIR."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

import triton.language as tl
from triton._C.libtriton import ir
from triton.compiler.compiler import ASTSource, make_backend

from ..errors import AutodiffError
from ..kernels.interpreted import compilable, compiling

# Markers that functions with a user-defined derivative leave in TTIR (custom.py).
CUSTOM_MARKER = "autodiff.custom_vjp"
STOP_MARKER = "autodiff.stop_gradient"
# What names of calls start with that have a way forward, and exact derivatives; those of others
# start with the marker.
BOTH_WAYS_CALL = "autodiff.custom_jvp"
EXACT_CALL = "autodiff.custom_exact"

Builtin = TypeVar("Builtin", bound=Callable)
_state = threading.local()


def builtin(function: Builtin) -> Builtin:
    """Make a function to which Triton's tracer passes itself; plain Python can call it, too."""
    function.__triton_builtin__ = True
    return function


def is_differentiating() -> bool:
    """Whether a kernel is being traced for its derivative, and not to be run."""
    return getattr(_state, "differentiating", False)


@contextlib.contextmanager
def _differentiating():
    before = is_differentiating()
    _state.differentiating = True
    try:
        yield
    finally:
        _state.differentiating = before


def _trace(source: ASTSource, target, options: dict):
    """Return the module of a traced source, and the backend for it."""
    backend = make_backend(target)
    options = backend.parse_options({**options, **source.parse_options()})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    functions = backend.get_codegen_implementation(options)
    module = source.make_ir(target, options, functions, backend.get_module_map(), context)
    stages = {}
    backend.add_stages(stages, options, source.language)
    return module, stages, {"target": target, **options.__dict__}


def traced(source: ASTSource, target, options: dict) -> str:
    """Return the TTIR that Triton makes of a function, as it does before a launch."""
    module, stages, metadata = _trace(source, target, options)
    return str(stages["ttir"](module, metadata))


def _root(error: BaseException) -> BaseException:
    """Return the original error in Triton's chain of call errors."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def trace_for_derivative(kernel, target, options: dict, constexprs=None) -> str:
    """Return the TTIR of a compiled kernel with its user-defined derivatives.

    `constexprs` has other values for some constexprs, by name.
    """
    source = kernel.src
    if constexprs:
        constants = {**source.constants, **constexprs}
        source = ASTSource(source.fn, source.signature, constants, source.attrs)
    try:
        with compiling(source.fn), _differentiating():
            return traced(source, target, options)
    except Exception as error:
        raise AutodiffError(f"{_root(error)}; {error}") from None


def is_float(value) -> bool:
    """Whether a value of a kernel is a float or a tile of floats."""
    return isinstance(value, tl.tensor) and value.type.scalar.is_floating()


def flatten(value) -> list:
    """Return the tensors and constants in a (nested) tuple."""
    if isinstance(value, (tuple, list, tl.tuple)):
        return [leaf for item in value for leaf in flatten(item)]
    return [value]


def cotangent_type(type_):
    """Return the type of a float value's cotangent: float32 at least."""
    element = tl.float64 if type_.scalar.is_fp64() else tl.float32
    return tl.block_type(element, type_.shape) if type_.is_block() else element


def placeholder(semantic, name: str, type_, like=None):
    """Return a value of a type, as a placeholder for a value that differentiation inserts."""
    if like is None and type_.is_block():
        like = semantic.full(type_.shape, 0, tl.int32)
    handles = [] if like is None else [like.handle]
    constraints = "=r" if like is None else "=r,r"
    builder = semantic.builder
    op = builder.create_inline_asm(
        f"// autodiff.{name}", constraints, handles, [type_.to_ir(builder)], False, 1
    )
    return tl.tensor(op.get_result(0), type_)


def call_declared(generator, name: str, values, results=()) -> list:
    """Call a function that is only declared, with arguments `values`; returns its results."""
    builder = generator.builder
    types = [value.type.to_ir(builder) for value in values]
    signature = builder.get_function_ty(types, [r.type.to_ir(builder) for r in results])
    # A separate builder, without insertion point, so that the declaration is in no function.
    declaring = ir.builder(generator.context)
    declaring.set_loc(generator.file_name or "", generator.begin_line or 0, 0)
    function = declaring.get_or_insert_function(generator.module, name, signature, "private", False)
    generator.module.push_back(function)
    call = builder.call(function, [value.handle for value in values])
    return [tl.tensor(call.get_result(i), r.type) for i, r in enumerate(results)]


def placeholders(semantic, kind: str, values) -> list:
    """Return what stands for the cotangents or tangents of floats."""
    return [
        placeholder(semantic, f"{kind} {i}", cotangent_type(value.type), value)
        for i, value in enumerate(values)
    ]


def trace_call(target, kernel, site, function) -> str:
    """Return the TTIR of a kernel with one call of a function."""
    source = _source_of_site(kernel, site)
    with compiling(function), _differentiating():
        return str(_trace(source, target, {})[0])


def trace_call_inside(generator, kernel, site, function) -> str:
    """The same, for the device and options of a kernel that is being traced."""
    builder = generator.builder
    context = ir.context()
    ir.load_dialects(context)
    with compiling(function), _differentiating():
        return str(
            _source_of_site(kernel, site).make_ir(
                None, builder.options, builder.codegen_fns, builder.module_map, context
            )
        )


def _source_of_site(kernel, site) -> ASTSource:
    return ASTSource(compilable(kernel), {"SITE": "constexpr"}, {"SITE": site})


def trace_rule(kernel_of_rule, site, what: str, target, options: dict) -> str:
    """Return the TTIR of a rule for one combination of types; `what` is its name for errors."""
    source = _source_of_site(kernel_of_rule, site)
    try:
        with compiling(site.rule):
            module, _, _ = _trace(source, target, options)
    except Exception as error:
        reason = _root(error)
        if isinstance(reason, AutodiffError):
            raise reason from None
        raise AutodiffError(f"{what} cannot be compiled: {reason}") from None
    return str(module)
