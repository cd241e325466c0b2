"""Kernels as Triton Python."""

from __future__ import annotations

from collections.abc import Iterable

from .library import native
from .python_text import laid_out

# What has no form in Python is written with operations that have one.
_LEGALIZE = "builtin.module(tt.func(autodiff-legalize-source,canonicalize))"
# What MLIR's tools have between the parts of a file.
_BETWEEN = "\n// -----\n"


def python_of(ttir: str | Iterable[str], name: str = "<ttir>") -> str:
    """Return a module of Triton Python with the kernel of some TTIR, or those of several.

    `ttir` is what Triton, or this package, has made of a kernel; `name` stands for its file in
    messages. Types and divisibility of arguments are comments. Triton compiles the result to the
    PTX that it makes of the TTIR, except in rare kernels, where the order of instructions differs.
    A kernel with the name of another one gets a number.

    Raises an `AutodiffError` that names the operation for what has no form in Python: functions
    that call themselves, and what a `while` loop computes in several lines before it goes on.
    """
    texts = [ttir] if isinstance(ttir, str) else ttir
    legal = [native().run_pipeline(text, _LEGALIZE, name) for text in texts]
    return printed(_BETWEEN.join(legal), name)


def printed(legal: str, name: str) -> str:
    """Return TTIR that has a form in Python, several modules of it if need be, in that form."""
    return laid_out(native().print_source(legal, name).split("\n"))


def backward_source(plans) -> str:
    """Return the backward kernels of `(state, plan, execution)` triples as Triton Python."""
    return python_of(kernel.ttir for _, plan, _ in plans for kernel in plan.backward)
