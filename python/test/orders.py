"""Tangents and second derivatives, in every numeric test that is drawn: PyTorch in float64 is the
truth, as it is for first ones.
"""

from __future__ import annotations

import torch
from torch.autograd import forward_ad
from triton.backends.autodiff import AutodiffError, autodiff
from triton.backends.autodiff.surface.operation import Op

# Why there is no tangent, and what a test without one says.
_REFUSED = ("of which there is only a pullback", "do not go from program to program")
# What a test's error may be, in multiples of PyTorch's own.
FACTOR = 4.0


def _directions(tensors):
    return [torch.randn_like(t) for t in tensors]


def _duals(inputs, wanted, along):
    tangents = {id(x): v for x, v in zip(wanted, along, strict=True)}
    return [forward_ad.make_dual(x, tangents[id(x)]) if id(x) in tangents else x for x in inputs]


def tangents(function, inputs, wanted, along) -> list:
    """Return the tangent of each output of floats; zeros for one that has none."""
    with torch.no_grad(), forward_ad.dual_level():
        outputs = function(*_duals(inputs, wanted, along))
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        found = [forward_ad.unpack_dual(y) for y in outputs if y.is_floating_point()]
        return [torch.zeros_like(p) if t is None else t for p, t in found]


def second(function, inputs, wanted, upstreams, along) -> list:
    """Return derivatives of ⟨gradients, along⟩ by the inputs, and by upstream gradients; zeros for
    those that do not count.
    """
    outputs = function(*inputs)
    outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    used = [(y, u) for y, u in zip(outputs, upstreams, strict=True) if u is not None]
    given = [u.detach().to(y.dtype).requires_grad_() for y, u in used]
    gradients = torch.autograd.grad([y for y, _ in used], wanted, given, create_graph=True)
    pairs = [(g, v.to(g.dtype)) for g, v in zip(gradients, along, strict=True) if g.requires_grad]
    by = [*wanted, *given]
    if not pairs:
        return [torch.zeros_like(x) for x in by]
    found = torch.autograd.grad([g for g, _ in pairs], by, [v for _, v in pairs], allow_unused=True)
    return [torch.zeros_like(x) if f is None else f for f, x in zip(found, by, strict=True)]


def results(function, inputs, upstreams, along, copy, dtype) -> list:
    """Return both, on copies of the inputs in a dtype; None for the inputs as they are."""
    given = [copy(x, dtype) for x in inputs] if copy else list(inputs)
    wanted = [x for x in given if isinstance(x, torch.Tensor) and x.requires_grad]
    along = [v.to(x.dtype) for v, x in zip(along, wanted, strict=True)]
    pushed = tangents(function, given, wanted, along)
    return [*pushed, *second(function, given, wanted, upstreams, along)]


def assert_orders_close(op, reference, inputs, upstreams, copy, floor) -> None:
    """Compare tangents and second derivatives with those of `reference` in float64."""
    wanted = [x for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]
    # PyTorch neither draws nor adds up numbers of eight bits.
    if any(x.element_size() == 1 for x in inputs if isinstance(x, torch.Tensor)):
        return
    along = _directions(wanted)
    try:
        truths = results(reference, inputs, upstreams, along, copy, torch.float64)
        baselines = results(reference, inputs, upstreams, along, copy, None)
    except (NotImplementedError, RuntimeError):
        # PyTorch has no second derivative of some of its operations.
        return
    try:
        found = results(op, inputs, upstreams, along, None, None)
    except AutodiffError as error:
        if any(reason in str(error) for reason in _REFUSED) or not isinstance(op, Op):
            return
        if "order=2" not in str(error):
            raise
        op = autodiff(op.kernel, op.stub, order=2)
        found = results(op, inputs, upstreams, along, None, None)
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
