"""Measures one case: the backward of ours, of PyTorch, and of others."""

from __future__ import annotations

import gc
import json
import statistics
import time
from collections.abc import Callable

import torch
from cases import Case
from timing import Compilations, Rotation, copies, gpu_time, synchronize, waiting_time


def _listed(value) -> list:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _leaves(inputs):
    return [x for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]


def _clone(inputs):
    return tuple(
        x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x
        for x in inputs
    )


def _upstream(output) -> list[torch.Tensor]:
    """A gradient for every output: random, but one for a loss."""
    return [torch.randn_like(y) if y.dim() else torch.ones_like(y) for y in _listed(output)]


def _differentiated(function, inputs, upstream, whole: bool) -> Callable:
    """The function to be timed: the backward of a graph that is built once, or forward and
    backward.
    """
    leaves = _leaves(inputs)
    if whole:
        return lambda: torch.autograd.grad(_listed(function(*inputs)), leaves, upstream)
    outputs = _listed(function(*inputs))
    return lambda: torch.autograd.grad(outputs, leaves, upstream, retain_graph=True)


def _difference(ours, theirs) -> float:
    """The largest relative L2 difference between two sets of gradients."""
    distances = [
        (a.float() - b.float()).norm() / b.float().norm().clamp_min(1e-30)
        for a, b in zip(ours, theirs, strict=True)
    ]
    # Python's max may ignore NaN.
    return torch.stack(distances).max().item()


def _saved_bytes(function, inputs) -> int | None:
    """Bytes that a forward saves for its backward, besides inputs and outputs."""
    if not torch.cuda.is_available():
        return None
    gc.collect()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    outputs = _listed(function(*inputs))
    kept = torch.cuda.memory_allocated() - before
    given = {x.untyped_storage().data_ptr() for x in inputs if isinstance(x, torch.Tensor)}
    made = {y.untyped_storage().data_ptr(): y.untyped_storage().nbytes() for y in outputs}
    return kept - sum(size for pointer, size in made.items() if pointer not in given)


def _first_calls(function, inputs, upstream) -> tuple[list, dict]:
    """The gradients of the first backward, and how long the first calls and compilers took."""
    with Compilations() as forward:
        synchronize()
        start = time.perf_counter()
        outputs = _listed(function(*inputs))
        synchronize()
        first_forward = time.perf_counter() - start
    with Compilations() as backward:
        start = time.perf_counter()
        gradients = torch.autograd.grad(outputs, _leaves(inputs), upstream)
        synchronize()
        first_backward = time.perf_counter() - start
    return [g.clone() for g in gradients], {
        "first_forward_ms": 1e3 * first_forward,
        "first_backward_ms": 1e3 * first_backward,
        "compile_forward_ms": forward.milliseconds(),
        "compile_backward_ms": backward.milliseconds(),
    }


def _contender(function, case: Case, inputs, upstream, quick: bool):
    """The first gradients of a function, and its entry in the row."""
    # Some backwards overwrite their arguments.
    gradients, entry = _first_calls(function, _clone(inputs), [u.clone() for u in upstream])
    entry["saved_bytes"] = _saved_bytes(function, _clone(inputs))
    backward = Rotation(
        [
            _differentiated(function, _clone(inputs), [u.clone() for u in upstream], case.whole)
            for _ in range(copies([*inputs, *upstream]))
        ]
    )
    entry["us"] = waiting_time(backward, quick)
    entry["gpu_us"] = gpu_time(backward, quick)
    return gradients, entry


def _attempt(load, case: Case, inputs, upstream, quick: bool):
    """As `_contender`; if it fails, the entry is the reason."""
    try:
        function = load()
    except ImportError as error:
        return None, {"absent": str(error)}
    try:
        return _contender(function, case, inputs, upstream, quick)
    except torch.cuda.OutOfMemoryError:
        return None, {"error": "out of memory"}
    except Exception as error:
        if "CUDA error" in str(error):
            raise
        lines = str(error).strip().splitlines() or [""]
        return None, {"error": f"{type(error).__name__}: {lines[0]}"}


def _compiled(function):
    """The function under torch.compile, for these shapes only."""
    torch.compiler.reset()
    # The graph is used several times here.
    torch._functorch.config.donated_buffer = False
    return torch.compile(function, dynamic=False)


def _differentiate_ms(op) -> float:
    """Milliseconds that our passes take for the backward of the last launch."""
    from triton_autodiff import _native
    from triton_autodiff.launching.state import PlanRequest

    execution = op.kernel._launches[-1][1]
    ttir = execution.state.spec.ttir
    request = json.dumps(PlanRequest(execution.wanted).to_json())
    times = []
    for _ in range(3):
        start = time.perf_counter()
        _native.differentiate(ttir, request, "<ttir>")
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def _bytes_needed(case: Case, inputs, upstream) -> int:
    """The least bytes that a backward has to read and write."""
    moved = [*upstream, *_leaves(inputs)]
    if case.streams == "inputs":
        moved += [x for x in inputs if isinstance(x, torch.Tensor)]
    return sum(t.numel() * t.element_size() for t in moved)


def measure(case: Case, quick: bool, compile_reference: bool, tune: bool) -> dict:
    """One row of the table: times in microseconds, memory in bytes."""
    from triton_autodiff import autodiff

    torch.manual_seed(0)
    inputs = case.inputs()
    op = autodiff(case.kernel, case.stub)
    contenders = {"ours": lambda: op}
    if tune:
        contenders["tuned"] = lambda: autodiff(case.kernel, case.stub, autotune=True)
    if case.reference is not None:
        contenders["pytorch"] = lambda: case.reference
    if compile_reference and case.compiles:
        contenders["compiled"] = lambda: _compiled(case.reference)
    contenders |= case.rivals
    with torch.no_grad():
        upstream = _upstream(op(*inputs))
    row = {"name": case.name, "family": case.family, "dtype": str(_leaves(inputs)[0].dtype)[6:]}
    if case.streams:
        row["bytes"] = _bytes_needed(case, inputs, upstream)
    found = {}
    for who, load in contenders.items():
        found[who], row[who] = _attempt(load, case, inputs, upstream, quick)
        gc.collect()
    if found["ours"] is not None:
        row["ours"]["differentiate_ms"] = _differentiate_ms(op)
    reference = "pytorch" if "pytorch" in found else next(iter(case.rivals), "ours")
    theirs = found.get(reference)
    for who, gradients in found.items():
        if who != reference and case.comparable and None not in (gradients, theirs):
            row[who]["difference"] = _difference(gradients, theirs)
    return row
