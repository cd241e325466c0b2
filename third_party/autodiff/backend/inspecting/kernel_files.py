"""Kernels in files: what is said of their gradients, and their text as Triton Python."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from ..library import native
from ..plans.cache import plan_for
from ..plans.recording import read_one
from ..plans.target import parse_target
from ..printing.explain import backward_text, report
from ..printing.source import python_of
from . import corpus, stored_plans


def explained(file: str, target: str, ir: bool, verbose: bool) -> str:
    """Return what `explain()` says of a kernel that is not launched, or its backward as `ir`."""
    asked = read_one(Path(file))
    # Errors in the file name the file; a plan would only name a text in Triton's cache.
    native().run_pipeline(asked.ttir, "", file)
    request = stored_plans.request_on(asked, parse_target(target))
    plan = plan_for(asked.ttir, request, asked.name)
    names = corpus.argument_names(asked.ttir, plan.kernel, len(plan.arguments))
    # Of what no launch has run, nothing more is known.
    state = SimpleNamespace(spec=SimpleNamespace(names=names), higher=None)
    plans = [(state, plan, None)]
    return backward_text(plans) if ir else report(plans, verbose)


def as_python(file: str) -> str:
    """Return a kernel as Triton Python."""
    return python_of(read_one(Path(file)).ttir, file)
