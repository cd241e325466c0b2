"""Kernels as Triton Python."""

from __future__ import annotations

from .library import native

# What has no form in Python is written with operations that have one.
_LEGALIZE = "builtin.module(tt.func(autodiff-legalize-source,canonicalize))"


def python_of(ttir: str, name: str = "<ttir>") -> str:
    """Return a module of Triton Python with the kernel of some TTIR.

    `ttir` is what Triton, or this package, has made of a kernel; `name` stands for its file in
    messages. Types and divisibility of arguments are comments. Triton compiles the result to the
    PTX that it makes of the TTIR, except in rare kernels, where the order of instructions differs.

    Raises an `AutodiffError` that names the operation for what has no form in Python: descriptors,
    calls of functions that are not inlined, block-scaled products, and what a `while` loop computes
    in several lines before it goes on.
    """
    return native().print_source(native().run_pipeline(ttir, _LEGALIZE, name), name)
