"""The one comparison that every numeric test makes: float64 PyTorch is the truth."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence

import orders
import torch
from watched import Watch, watched

# Set by --forward-only: launch the plain kernels and compare outputs only.
FORWARD_ONLY = False
ORDERS = bool(os.environ.get("TAD_ORDERS"))

# Ours may be this many times as far from float64 as PyTorch autograd in the same precision.
FACTOR = 2.0
# The part of a number that is cut off in tf32, which has ten bits behind the point, at most.
TF32 = 2.0**-10


def differentiated(kernel, stub, **options) -> Callable:
    """The operation ``stub`` makes of ``kernel``: ``autodiff(kernel, stub, **options)``."""
    if FORWARD_ONLY:
        return lambda *args, **kwargs: stub(kernel, *args, **kwargs)
    from triton.backends.autodiff import autodiff

    return autodiff(kernel, stub, **options)


def relative_error(value: torch.Tensor, truth: torch.Tensor) -> float:
    """Relative L2 distance from a float64 ``truth``; absolute where the truth is zero."""
    value, truth = value.detach().double(), truth.detach().double()
    scale = truth.norm().item()
    error = (value - truth).norm().item()
    return error / scale if scale else error


def floor(dtype: torch.dtype, roundings: int = 8, updates: int = 0) -> float:
    """The error that is always allowed.

    In half precision that of a correctly rounded result, to which as many as `updates` numbers,
    rounded, too, are added in memory. In float32, where PyTorch's own result
    may be exact by luck, half a unit in the last place for each of the `roundings` that follow one
    another; a few in a short computation. In float64, where PyTorch's error is zero by definition,
    what another order of operations may make of a short computation.
    """
    eps = torch.finfo(dtype).eps
    half = (1 + 2 * updates) * eps / 2
    return {torch.float32: roundings * eps / 2, torch.float64: 1e-12}.get(dtype, half)


def _as_tuple(value) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _copy(value, dtype: torch.dtype | None):
    """A contiguous leaf with the same numbers, in ``dtype`` when it is a float tensor."""
    if not isinstance(value, torch.Tensor):
        return value
    if not value.is_floating_point():
        return value.detach()
    copy = value.detach().to(dtype or value.dtype, memory_format=torch.contiguous_format, copy=True)
    return copy.requires_grad_(value.requires_grad)


def _evaluate(function, inputs, upstreams, dtype):
    """Outputs of ``function`` on copies in ``dtype``, and the gradients of the wanted inputs."""
    inputs = [_copy(value, dtype) for value in inputs]
    wanted = [x for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]
    outputs = _as_tuple(function(*inputs))
    if FORWARD_ONLY:
        return outputs, ()
    return outputs, _backward(outputs, upstreams, wanted)


def _backward(outputs, upstreams, wanted):
    """The gradients of ``wanted``; an output whose upstream gradient is None is not used."""
    used = [i for i, g in enumerate(upstreams) if g is not None]
    return torch.autograd.grad(
        [outputs[i] for i in used],
        wanted,
        [upstreams[i].to(outputs[i].dtype) for i in used],
    )


def assert_close(
    name: str, value, baseline, truth, roundings: int = 8, updates: int = 0, theirs: float = 0.0
) -> None:
    """``value`` is as near to ``truth`` as ``baseline`` is, or to ``theirs``, times FACTOR."""
    assert value is not None, f"{name}: no value"
    assert value.shape == truth.shape, f"{name}: shape {value.shape}, expected {truth.shape}"
    assert value.dtype == baseline.dtype, f"{name}: {value.dtype}, expected {baseline.dtype}"
    finite = value.double().isfinite()  # which is not implemented for 8 bits
    assert finite.all(), f"{name}: {(~finite).sum()} elements are not finite"
    ours, theirs = relative_error(value, truth), max(theirs, relative_error(baseline, truth))
    bound = FACTOR * theirs + floor(value.dtype, roundings, updates)
    assert ours <= bound, (
        f"{name}: relative error {ours:.3e} exceeds {bound:.3e} (PyTorch: {theirs:.3e}); "
        f"largest difference {(value.double() - truth).abs().max().item():.3e}"
    )


def assert_gradients_close(
    op: Callable,
    reference: Callable,
    inputs: Sequence,
    upstreams: Sequence[torch.Tensor | None] | None = None,
    roundings: int = 8,
    updates: int = 0,
    watches: bool = True,
    theirs: float = 0.0,
) -> None:
    """Compare outputs and all wanted gradients of ``op`` with ``reference`` in float64.

    ``op`` gets ``inputs`` as they are, strides and all. ``reference`` is plain PyTorch and runs
    twice on contiguous copies: in float64 for the truth, in the inputs' precision for the error
    that PyTorch itself makes. Float tensors that require gradients are compared. ``upstreams``
    are the gradients of the outputs (random by default, None for an output that is not used).
    `roundings` says how many follow one another on the way to a gradient, and `updates` how many
    are added to one in memory, see `floor`; `theirs` is an error of gradients that another
    backward would have, too. What the backward allocates is watched, which CUDA graphs do not
    stand: they have memory of their own.
    """
    wanted = [
        (i, x) for i, x in enumerate(inputs) if isinstance(x, torch.Tensor) and x.requires_grad
    ]
    outputs = _as_tuple(op(*inputs))
    if upstreams is None:
        upstreams = [torch.randn_like(y) if y.is_floating_point() else None for y in outputs]
    truths, true_gradients = _evaluate(reference, inputs, upstreams, torch.float64)
    baselines, base_gradients = _evaluate(reference, inputs, upstreams, None)
    for i, (output, baseline, truth) in enumerate(zip(outputs, baselines, truths, strict=True)):
        assert_close(f"output {i}", output, baseline, truth, roundings)
    if FORWARD_ONLY:
        return
    # Around what the backward allocates is NaN, and stays as it is.
    with watched() if watches else contextlib.nullcontext():
        gradients = _backward(outputs, upstreams, [x for _, x in wanted])
    for (i, x), gradient, baseline, truth in zip(
        wanted, gradients, base_gradients, true_gradients, strict=True
    ):
        assert gradient is not None and gradient.dtype == x.dtype, f"input {i}: no gradient"
        name = f"gradient of input {i}"
        assert_close(name, gradient, baseline, truth, roundings, updates, theirs)
    if ORDERS:
        orders.assert_orders_close(op, reference, inputs, upstreams, _copy, floor)


def assert_gradcheck(op: Callable, inputs: Sequence, **options) -> None:
    """Finite differences in float64 agree with the analytic gradient."""
    if FORWARD_ONLY:
        op(*inputs)
        return
    tolerances = {"rtol": 1e-5, "atol": 1e-7, "nondet_tol": 1e-12, **options}
    assert torch.autograd.gradcheck(op, tuple(inputs), **tolerances)


# Of the tensors that a test was given; a fixture makes it anew, and looks at what became of it.
WATCH = Watch()


def random_tensor(*shape, device, dtype=torch.float32, scale=1.0, shift=0.0, grad=True):
    """A normal random leaf, in memory around which everything is NaN."""
    value = torch.randn(*shape, device=device, dtype=torch.float64) * scale + shift
    return WATCH.copy(value.to(dtype)).requires_grad_(grad)


def assert_compiles(op: Callable, inputs: Sequence) -> None:
    """Triton compiles what is derived of ``op`` for a GPU, whether or not there is one."""
    if FORWARD_ONLY:
        return
    import hopper

    ((state, *_),) = op.preview(inputs, {})
    hopper.assert_backward_compiles(state.spec.ttir)
