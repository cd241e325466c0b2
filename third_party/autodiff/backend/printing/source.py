"""Kernels as Triton Python."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Sequence

import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend

from ..library import native
from ..plans.cache import Pushed
from .constexprs import Constexprs, ConstexprsOfTangents, named
from .kernel_docs import docstring, with_docstring
from .python_text import laid_out
from .tangent_names import with_tangent_names

# Operations that cannot be written in Python are replaced. This has been done for device functions,
_LEGALIZE = "autodiff-legalize-source,"
# and also for operations that Triton's frontend refuses.
_FIT = "autodiff-fit-frontend{{least-sums={sums}}},canonicalize"
# The separator of MLIR's tools between modules in a file.
_BETWEEN = "\n// -----\n"


# The separator of functions in a Python module.
_BETWEEN_FUNCTIONS = "\n\n\n"


def python_of(
    ttir: str | Iterable[str],
    name: str = "<ttir>",
    origins: Sequence = (),
    target: GPUTarget | None = None,
) -> str:
    """Return a module of Triton Python with the kernel of some TTIR, or those of several.

    `ttir` is the TTIR of a kernel, by Triton or this package; `name` stands for its file in
    messages. Types and divisibility of arguments are comments. Triton compiles the result to the
    same PTX as the TTIR, except in rare kernels, where the order of instructions differs. A kernel
    whose name is taken gets a number.

    `origins` has a pair for each kernel: the `Constexprs` of its launch, whose names replace the
    numbers that they explain, and the kernel of the plan, or that with tangents, or None for the
    user's. `target` is the device that Triton's frontend will compile for, by default an NVIDIA
    GPU.

    Raises an `AutodiffError` that names an operation that cannot be written in Python: recursive
    functions, and a condition of a `while` loop that takes several lines.
    """
    texts = [ttir] if isinstance(ttir, str) else list(ttir)
    passes = _LEGALIZE + _fit(shortest_product(target or GPUTarget("cuda", 90, 32)))

    def legalized(text: str) -> str:
        return native().run_pipeline(text, f"builtin.module(tt.func({passes}))", name)

    legal = [legalized(text) for text in texts]
    parts = _functions(legal, name)
    first = len(parts) - len(legal)
    heads = [ast.parse(part).body[0] for part in parts[first:]] if origins else []
    called: dict = {}
    for (constexprs, kernel), head in zip(origins, heads, strict=True):
        if kernel is not None:
            called.setdefault(id(constexprs), {})[kernel.name] = head.name
    for number, (constexprs, kernel) in enumerate(origins):

        def others(text, number=number):
            with_other = [*legal[:number], legalized(text), *legal[number + 1 :]]
            return _functions(with_other, name)[number - len(legal)]

        text = named(parts[first + number], constexprs, kernel, others)
        if isinstance(kernel, Pushed):
            text = with_tangent_names(text, len(kernel.tangents))
        parameters = [parameter.arg for parameter in ast.parse(text).body[0].args.args]
        spec, plan = constexprs.spec, constexprs.plan
        lines = docstring(spec, plan, kernel, parameters, called.get(id(constexprs), {}))
        parts[first + number] = with_docstring(text, lines)
    return laid_out(_BETWEEN_FUNCTIONS.join(parts).split("\n"))


@functools.cache
def shortest_product(target: GPUTarget) -> Callable:
    """Return Triton's function for the shortest sum of `tl.dot` for two types."""
    backend = make_backend(target)
    return backend.get_codegen_implementation(backend.parse_options({}))["min_dot_size"]


def _fit(shortest: Callable) -> str:
    # The shortest sums of `tl.dot` for elements of 8, 16, 32 and 64 bits.
    types = (tl.int8, tl.float16, tl.float32, tl.float64)
    return _FIT.format(sums=",".join(str(shortest(of, of)[2]) for of in types))


def _functions(legal: list[str], name: str) -> list[str]:
    """Return the contents of a module: imports, functions that kernels call, then the kernels.

    They are not broken into lines yet.
    """
    text = native().print_source(_BETWEEN.join(legal), name)
    return text.split(_BETWEEN_FUNCTIONS)


def printed(legal: str, name: str, shortest: Callable) -> str:
    """Return TTIR as Python; all its operations can be written in Python.

    `shortest` is `shortest_product` of the target.
    """
    fit = native().run_pipeline(legal, f"builtin.module(tt.func({_fit(shortest)}))", name)
    return laid_out(native().print_source(fit, name).split("\n"))


def jvp_source(launches) -> str:
    """Return kernels with tangents as Triton Python.

    `launches` are triples of a state, a plan, and the arguments whose tangents are given.
    """
    kernels, origins = [], []
    for state, plan, arguments in launches:
        push = state.pushing(arguments)
        kernels.append(push(state.spec.ttir))
        origins.append((ConstexprsOfTangents(state.spec, plan, push), kernels[-1]))
    texts = [kernel.ttir for kernel in kernels]
    return python_of(texts, origins=origins, target=launches[0][0].spec.target)


def backward_source(plans) -> str:
    """Return the backward kernels of `(state, plan, execution)` triples as Triton Python."""
    kernels, origins = [], []
    for state, plan, _ in plans:
        constexprs = Constexprs(state.spec, plan)
        kernels += [kernel.ttir for kernel in plan.backward]
        origins += [(constexprs, kernel) for kernel in plan.backward]
    return python_of(kernels, origins=origins, target=plans[0][0].spec.target)
