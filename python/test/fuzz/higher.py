"""Whether a program's tangents and second derivatives are right, without a reference.

J is right if ⟨u, J v⟩ = ⟨Jᵀ u, v⟩, where Jᵀ u has been compared with finite differences. The
derivative of the gradient along v is a difference of gradients, H v, and H is symmetric. Some
numbers in u and v are exactly zero: what they are multiplied by has derivatives there, too.
"""

from __future__ import annotations

import re

import torch

from .differences import Check, Verdict, gradients_of

# What has a gradient, but no tangent.
REFUSED = re.compile(
    r"no forward-mode rule|there is only a pullback|is not associative|derivative lost"
    r"|cannot be differentiated again|do not go from program to program|which program comes first"
    r"|is a part of a tensor|not known to be the same"
)
# Of the sizes of both sides, what rounding changes.
ROUNDED = 1e-9
# Steps of differences of gradients, and what two of them may differ by.
STEPS = (1e-5, 1e-6)
SMOOTH, EXACT = 1e-4, 1e-5


def _sparse(check: Check, shape) -> torch.Tensor:
    """Return random numbers of which a quarter is zero."""
    drawn = check.inputs.normal(shape)
    return drawn * (check.inputs.normal(shape).abs() > 0.3)


def _directions(check: Check) -> dict[str, torch.Tensor]:
    return {name: _sparse(check, check.inputs.values[name].shape) for name in check.program.wanted}


def wrong_tangents(check: Check) -> str | None:
    """Say what is wrong with tangents of a launch, None if nothing is."""
    from triton.backends.autodiff.inspecting.higher_check import fresh, pushed

    along = _directions(check)
    by_place = {n: along[name] for n, name in enumerate(check.inputs.values) if name in along}
    found = pushed(check.op, fresh(check.inputs.values.values(), ()), by_place)
    left = scale = 0.0
    for (_, t), u, written in zip(found, check.upstream, check.written, strict=True):
        if t is not None:
            terms = (t * u)[written]
            left, scale = left + terms.sum().item(), scale + terms.abs().sum().item()
    right = 0.0
    for name, v in along.items():
        terms = check.gradients[name] * v
        right, scale = right + terms.sum().item(), scale + terms.abs().sum().item()
    if not abs(left) + abs(right) + scale < float("inf"):
        return None
    if abs(left - right) <= ROUNDED * (scale + 1):
        return None
    return f"tangents: ⟨u, J v⟩ is {left:.12g}, and ⟨Jᵀ u, v⟩ {right:.12g}"


def _gradients(check: Check, upstream, along, step: float):
    values = {
        name: value + step * along[name] if name in along else value
        for name, value in check.inputs.values.items()
    }
    return gradients_of(check.op, check.program, values, upstream)


def _second(check: Check, upstream, along) -> dict[str, torch.Tensor]:
    """Return the derivative of the gradients along `along`, by autograd."""
    from triton.backends.autodiff.inspecting import higher_check

    leaves = {
        name: value.clone().requires_grad_(name in check.program.wanted)
        for name, value in check.inputs.values.items()
    }
    outputs = check.op(*leaves.values())
    weights = [
        u.masked_fill(y.detach().isnan(), 0.0) for y, u in zip(outputs, upstream, strict=True)
    ]
    wanted = [leaves[name] for name in along]
    found = higher_check.along(outputs, weights, wanted, list(along.values()))
    pairs = zip(along, found, wanted, strict=True)
    return {name: torch.zeros_like(x) if f is None else f for name, f, x in pairs}


def wrong_second(check: Check) -> str | None:
    """Say what is wrong with second derivatives, None if nothing is, or nothing can be said."""
    along = _directions(check)
    upstream = [_sparse(check, u.shape) for u in check.upstream]
    found = _second(check, upstream, along)
    slopes, here = [], _gradients(check, upstream, along, 0.0)
    for step in STEPS:
        ahead, behind = (_gradients(check, upstream, along, s) for s in (step, -step))
        slopes.append({name: (ahead[name] - behind[name]) / (2 * step) for name in along})
    # The gradient may have a kink here, as rounded numbers tie.
    kinks = {n: (ahead[n] + behind[n] - 2 * here[n]).abs() / STEPS[-1] for n in along}
    size = max((g.abs().max().item() for g in check.gradients.values() if g.numel()), default=0.0)
    for name in along:
        coarse, truth, ours = slopes[0][name], slopes[1][name], found[name]
        noise = 1e-8 * (size + 1)
        is_smooth = (coarse - truth).abs() <= SMOOTH * truth.abs() + noise
        is_smooth &= kinks[name] <= SMOOTH * truth.abs() + noise
        off = is_smooth & ~((ours - truth).abs() <= EXACT * truth.abs() + 2 * noise)
        # One kink moves all that depends on it.
        if is_smooth.float().mean() < 0.9 or not off.any():
            continue
        i = off.nonzero()[0].item()
        return (
            f"{name}[{i}]: second derivative {ours[i]:.9g}, differences of gradients "
            f"{truth[i]:.9g}; wrong in {int(off.sum())} places"
        )
    return None


def judged(check: Check, is_drawn: bool) -> Verdict | None:
    """Return what is wrong; second derivatives are looked at where that `is_drawn`."""
    from triton.backends.autodiff import AutodiffError

    for wrong in (wrong_tangents, wrong_second) if is_drawn else (wrong_tangents,):
        try:
            reason = wrong(check)
        except AutodiffError as error:
            if not REFUSED.search(str(error)):
                raise
            return None
        if reason is not None:
            return Verdict("wrong", reason)
    return None
