"""Measures one case: the backward of ours, of PyTorch, and of the hand-written kernels."""

from __future__ import annotations

import torch
from cases import Case
from timing import Rotation, copies, gpu_time, waiting_time


def _leaves(inputs):
    return [x for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]


def _clone(inputs):
    return tuple(
        x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x
        for x in inputs
    )


def _autograd(function, inputs, upstream):
    """The backward alone: the graph is built once and kept."""
    output, leaves = function(*inputs), _leaves(inputs)
    return lambda: torch.autograd.grad(output, leaves, upstream, retain_graph=True)


def _difference(ours, theirs) -> float:
    """The largest relative L2 difference between two sets of gradients."""
    return max(
        ((a.float() - b.float()).norm() / b.float().norm().clamp_min(1e-30)).item()
        for a, b in zip(ours, theirs, strict=True)
    )


def _times(make, sets, quick):
    backward = Rotation([make(inputs, upstream) for inputs, upstream in sets])
    gradients = backward()
    return gradients, {
        "us": waiting_time(backward, quick),
        "gpu_us": gpu_time(backward, quick),
    }


def _attempt(row, who, make, sets, quick):
    """Fills ``row[who]``; a failure is its reason, and the rest of the row goes on."""
    try:
        gradients, row[who] = _times(make, sets, quick)
        return gradients
    except torch.cuda.OutOfMemoryError:
        row[who] = {"error": "out of memory"}
    except Exception as error:
        if "CUDA error" in str(error):
            raise
        row[who] = {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"}
    return None


def measure(case: Case, quick: bool, compile_reference: bool) -> dict:
    """One row of the table, in microseconds."""
    from triton.backends.autodiff import autodiff

    torch.manual_seed(0)
    inputs = case.inputs()
    with torch.no_grad():
        shape = case.reference(*inputs)
    upstream = torch.randn_like(shape)
    count = copies([*inputs, upstream])
    sets = [(inputs, upstream)]
    sets += [(_clone(inputs), upstream.clone()) for _ in range(count - 1)]
    row = {"name": case.name, "dtype": str(upstream.dtype)[6:], "rotated": count}
    op = autodiff(case.kernel, case.stub)
    ours = _attempt(row, "ours", lambda i, u: _autograd(op, i, u), sets, quick)
    theirs = _attempt(row, "pytorch", lambda i, u: _autograd(case.reference, i, u), sets, quick)
    if compile_reference:
        compiled = torch.compile(case.reference)
        _attempt(row, "compiled", lambda i, u: _autograd(compiled, i, u), sets, quick)
    if case.handwritten:

        def by_hand(inputs, upstream):
            backward = case.handwritten(*inputs)
            return lambda: backward(upstream)

        hand = _attempt(row, "handwritten", by_hand, sets, quick)
        if hand is not None and theirs is not None:
            row["handwritten"]["difference"] = _difference(hand, theirs)
    if ours is not None and theirs is not None and "dropout" not in case.name:
        row["ours"]["difference"] = _difference(ours, theirs)
    return row
