"""Tangents and second derivatives, in every numeric test that is drawn: PyTorch in float64 is the
truth, as it is for first ones.
"""

from __future__ import annotations

import re

import torch
from triton.backends.autodiff import AutodiffError, autodiff
from triton.backends.autodiff.inspecting import higher_check
from triton.backends.autodiff.surface.operation import Op

# What PyTorch says of a function of its own that has no tangent, or no second derivative.
_PYTORCH_HAS_NONE = re.compile(
    r"forward AD (with|for)|derivative for \S+ is not implemented"
    r"|must implement the jvp function for custom autograd.Function"
)
# What we say of a kernel that has a gradient, but no tangent, or no second derivative. Whatever
# else we refuse is a failure.
_WE_HAVE_NONE = re.compile(
    r"of which there is only a pullback|no forward-mode rule for 'tl\.atomic_(max|min|xchg)"
    r"|derivatives do not go from program to program"
)
# What a test's error may be, in multiples of PyTorch's own.
FACTOR = 4.0


def _has_eight_bits(value) -> bool:
    """Whether a value is a tensor, or a type, of numbers of eight bits."""
    dtype = getattr(value, "dtype", value)
    return isinstance(dtype, torch.dtype) and dtype.itemsize == 1


def _directions(tensors):
    return [torch.randn_like(t) for t in tensors]


def results(function, inputs, upstreams, directions, copy, dtype) -> list:
    """Return tangents of outputs of floats, then derivatives of ⟨gradients, directions⟩ by inputs
    and by upstream gradients; zeros for those that there are none of.

    They are those of copies of the inputs in a dtype; None for the inputs as they are.
    """
    given = [copy(x, dtype) for x in inputs] if copy else list(inputs)
    places = [n for n, x in enumerate(given) if isinstance(x, torch.Tensor) and x.requires_grad]
    wanted = [given[n] for n in places]
    directions = [v.to(x.dtype) for v, x in zip(directions, wanted, strict=True)]
    pushes = higher_check.pushed(function, given, dict(zip(places, directions, strict=True)))
    pushes = [(y, t) for y, t in pushes if y.is_floating_point()]
    outputs = higher_check.tensors_of(function(*given))
    weights = [
        None if u is None else u.detach().to(y.dtype).requires_grad_()
        for y, u in zip(outputs, upstreams, strict=True)
    ]
    others = [u for u in weights if u is not None]
    found = higher_check.along(outputs, weights, wanted, directions, others)
    pairs = [*pushes, *zip((*wanted, *others), found, strict=True)]
    return [torch.zeros_like(x) if d is None else d for x, d in pairs]


def _found(op, inputs, upstreams, along) -> list | None:
    """Return what an operation has; None if it is right that it refuses."""
    try:
        return results(op, inputs, upstreams, along, None, None)
    except AutodiffError as error:
        if _WE_HAVE_NONE.search(str(error)):
            return None
        if "order=2" not in str(error):
            raise
        # A function that calls an operation has no such option.
        if not isinstance(op, Op):
            return None
    again = autodiff(op.kernel, op.stub, order=2)
    return results(again, inputs, upstreams, along, None, None)


def assert_orders_close(op, reference, inputs, upstreams, copy, floor) -> None:
    """Compare tangents and second derivatives with those of `reference` in float64."""
    wanted = [x for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]
    # PyTorch neither draws nor adds up numbers of eight bits. Directions have more.
    if any(_has_eight_bits(x) for x in inputs):
        return
    along = _directions(wanted)
    try:
        truths = results(reference, inputs, upstreams, along, copy, torch.float64)
        baselines = results(reference, inputs, upstreams, along, copy, None)
    except (NotImplementedError, RuntimeError) as error:
        if isinstance(error, AutodiffError) or not _PYTORCH_HAS_NONE.search(str(error)):
            raise
        return
    found = _found(op, inputs, upstreams, along)
    if found is None:
        return
    # What cancels has the error of what it consists of.
    largest = max((t.norm().item() for t in truths), default=0.0)
    for n, (value, baseline, truth) in enumerate(zip(found, baselines, truths, strict=True)):
        if not truth.isfinite().all() or not baseline.double().isfinite().all():
            continue
        assert value.double().isfinite().all(), f"derivative {n}: not finite"
        scale = max(truth.norm().item(), 0.05 * largest) or 1.0
        ours = (value.double() - truth).norm().item() / scale
        theirs = (baseline.double() - truth).norm().item() / scale
        bound = FACTOR * theirs + 4 * floor(value.dtype, 32)
        assert ours <= bound, f"derivative {n}: relative error {ours:.3e} exceeds {bound:.3e}"
