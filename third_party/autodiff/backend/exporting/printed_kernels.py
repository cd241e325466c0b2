"""Printed kernels as functions of Triton."""

from __future__ import annotations

import ast
import hashlib

from ..printing.source import backward_source
from ..rules.stand_ins import compile_text
from .arguments import with_types


def scope_of(text: str, name: str) -> dict:
    """Run the text of a module for a kernel of this name, and return its definitions."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    scope = {"__name__": f"{__name__}.{name}"}
    compile_text(text, f"<{name} {digest}>", scope)
    return scope


def backward_kernels(plans) -> dict:
    """Return the backward kernels of `(state, plan, execution)` triples as functions, by name.

    They are in the order in which they run.
    """
    text = backward_source(plans)
    functions = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    # Functions that kernels call precede the kernels.
    kernels = functions[-sum(len(plan.backward) for _, plan, _ in plans) :]
    scope = scope_of(with_types(text, dict.fromkeys(kernels)), plans[0][0].spec.name)
    return {name: scope[name] for name in kernels}
