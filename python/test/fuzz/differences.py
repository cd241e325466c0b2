"""Whether a program's gradient is that of its values: finite differences in float64."""

from __future__ import annotations

import contextlib
import itertools
import random
import re
from dataclasses import dataclass, field
from functools import partial

import torch
from looking import Looker
from watched import watched

from .points import UNTOUCHED, Forward, Inputs, Tensors, poisoned, same, stored, without_effect

# Central differences at a step and half of it. The first pair is the more exact one, the second
# is less likely to have a kink within its step.
STEPS = (1e-4, 1e-6)
# What two rules of differencing may differ by, and then what the gradient may be off by.
SMOOTH, EXACT = 1e-4, 2e-6
ELEMENTS = 6
# How far from a point, and at how many places, a gradient is looked at again.
NEAR, BESIDE = 1e-7, 3
# What backwards are asked for, by turns: the compiler's choice, or that these schedules, and no
# others, are used wherever they apply.
REQUESTS = (
    None,
    {"schedules": []},
    {"schedules": ["interchange"]},
    None,
    {"schedules": ["unravel", "persist"]},
    {"schedules": ["batch", "unravel"]},
    {"schedules": ["interchange", "merge", "persist"]},
)
# What is wrong if elements that have no effect are NaN: the gradient there, or that of others.
POISON = ("poison in its place", "poison elsewhere")
# Of random programs, the gradient of what is NaN itself is not looked at: it may be NaN, too, where
# a loop that reads it does not run, or no program of the launch stores what is made of it.
UNSEEN = POISON[:1]
# Looks at programs in every way there is.
LOOKER = Looker()
# After such an error a process is of no more use.
FATAL = re.compile(r"CUDA error|illegal memory access|device-side assert", re.IGNORECASE)
# In the names of kernels.
SCHEDULE = re.compile(r"_(interchanged|persistent)")


@dataclass(frozen=True)
class Verdict:
    """What came of checking a program.

    The status is "passed", "refused" (no gradient, for a stated reason), "discarded" (nothing can
    be said at this point: not smooth, or rounding moves too much), "wrong", or "broken" (an
    exception, or a forward that does not do what it should).
    """

    status: str
    reason: str = ""
    # Whether the first wanted gradient is zero.
    vanishes: bool = False
    # What became of the loops and the grid in the backward: "interchanged", "persistent", "spread".
    schedules: tuple[str, ...] = ()
    # Elements of inputs that nothing depends on, if they matter.
    poison: dict[str, list[int]] = field(default_factory=dict)


def gradients_of(op, program, values: Tensors, upstream, watches: bool = True) -> Tensors:
    """Return the gradients of the wanted inputs, computed in memory that is watched.

    Dynamo makes no graph of operations whose memory is.
    """
    with watched() if watches else contextlib.nullcontext() as watch:
        copy = watch.copy if watches else torch.clone
        leaves = {
            name: copy(value).requires_grad_(name in program.wanted)
            for name, value in values.items()
        }
        outputs = op(*leaves.values())
        for name, y in zip(program.outputs, outputs, strict=True):
            # A mask that is known to be false may leave it as it was.
            is_stored = y.requires_grad or not y.detach().isnan().all()
            inputs = program.histories.get(name, ()) if is_stored else ()
            reached = any(i in program.wanted for i in inputs)
            if name in program.histories and y.requires_grad != reached:
                raise AssertionError(f"history of {name}: {y.requires_grad}, not {reached}")
        wanted = [leaves[name] for name in program.wanted]
        # Where nothing is stored there is no upstream gradient; a NaN that is read would show.
        used = [
            (y, g.to(y.device, y.dtype).masked_fill(y.detach().isnan(), float("nan")))
            for y, g in zip(outputs, upstream, strict=True)
            if y.requires_grad
        ]
        found = [None] * len(wanted)
        if used:
            ys, gs = zip(*used, strict=True)
            found = torch.autograd.grad(ys, wanted, gs, allow_unused=True)
        if any(value.device.type == "cuda" for value in values.values()):
            torch.cuda.synchronize()
    return {
        name: (torch.zeros_like(leaves[name]) if g is None else g).double().cpu()
        for name, g in zip(program.wanted, found, strict=True)
    }


class Drawn:
    """A program as a registered operation, whose stub draws a number by which it scales outputs.

    The number is its last output. If the stub ran again for the gradient, that would be for
    another number.
    """

    count = itertools.count()

    def __init__(self, kernel, stub, inputs: int):
        from triton.backends.autodiff import autodiff

        def drawing(kernel, *given):
            factor = 1 + random.random() + torch.rand(()).item()
            return [
                *(y * factor for y in stub(kernel, *given)),
                torch.tensor(factor, dtype=torch.float64),
            ]

        names = ", ".join(f"Tensor x{n}" for n in range(inputs))
        name = f"fuzz::drawn_{next(self.count)}"
        self._op = autodiff(kernel, drawing).register(name, schema=f"({names}) -> Tensor[]")

    def __call__(self, *values):
        *outputs, self.factor = self._op(*values)
        return outputs

    def wrong(self, gradients: Tensors, program, values: Tensors, upstream) -> str | None:
        """Say what is wrong if gradients are not the given ones, times what was drawn for them."""
        found = gradients_of(self, program, values, upstream)
        factor = self.factor.double().item()
        for name, gradient in gradients.items():
            truth = factor * gradient
            right = torch.isclose(found[name], truth, rtol=1e-5, atol=1e-9, equal_nan=True)
            if not right.all():
                i = (~right).nonzero()[0].item()
                return (
                    f"{name}[{i}]: registered, the gradient is {found[name][i]:.9g}, and "
                    f"{truth[i]:.9g} for the numbers that the forward drew"
                )
        return None


class Check:
    """One program at one point."""

    def __init__(
        self, program, kernel, stub, seed: int, factor: float = 1.0, rounded=None,
        elements: int = ELEMENTS, elsewhere: bool = False,
    ):  # fmt: skip
        """`rounded` returns tensors, by the names of buffers, as other types hold them.

        Of each input, so many elements are looked at, beside a random direction. `elsewhere`: the
        inputs are for another device, too.
        """
        from triton.backends.autodiff import AutodiffError, autodiff

        self.program, self.inputs = program, Inputs(program.inputs, seed)
        self.elements, self.elsewhere = elements, elsewhere
        self.are_rounded = rounded is not None
        rounded = rounded or (lambda tensors: tensors)
        self.inputs.values = rounded(self.inputs.values)
        self.forward = Forward(kernel, stub, self.inputs.values)
        self.written = stored(self.forward)
        upstream = [self.inputs.normal(place.shape) for place in self.written]
        upstream = rounded(dict(zip(program.outputs, upstream, strict=True)))
        self.upstream = list(upstream.values())
        outputs = self.forward({})
        terms = [
            (y[w] * g[w]) for y, g, w in zip(outputs, self.upstream, self.written, strict=True)
        ]
        self.scale = sum(term.abs().sum().item() for term in terms)
        self.here = sum(term.sum().item() for term in terms)
        # What the backward is asked for.
        self.request = {"backward": REQUESTS[seed // 3 % len(REQUESTS)]}
        given = self.inputs.values, self.upstream
        self.op = autodiff(kernel, stub, **self.request)
        if "programs of tiles" in program.features and seed % 2:
            request = {**self.request, "deterministic": True}
            op = autodiff(kernel, stub, **request)
            # Where contributions meet in atomics, there is no such backward.
            with contextlib.suppress(AutodiffError):
                gradients_of(op, program, *given)
                self.op, self.request = op, request
        self.gradients = gradients_of(self.op, program, *given)
        self.gradients[program.wanted[0]] *= factor
        # A registered operator stays as long as the process.
        self.drawn = Drawn(kernel, stub, len(self.inputs.values)) if seed % 8 == 0 else None
        # A launch of which no output depends on an input has no plan.
        plans = self.op.kernel._plans((), {})
        self.launches = [found for found in plans if found[-1] is not None]
        self.schedules = self.chosen()
        self.poisoned = self.inputs.values

    def chosen(self) -> tuple[str, ...]:
        """Return what became of the loops and the grid in the backward."""
        found: set[str] = set()
        for _, _, execution in self.launches:
            launch = execution.backward.plan.launch
            if launch is not None:
                kinds = {"batched": launch.batched, "unraveled": launch.unraveled}
                found.update([k for k, has in kinds.items() if has] or ["spread"])
            for kernel in execution.backward.plan.backward:
                found.update(SCHEDULE.findall(kernel.name))
        return tuple(sorted(found))

    def loss(self, name: str, value: torch.Tensor) -> float:
        """Return the sum of outputs times upstream gradients with one input changed."""
        outputs = self.forward({name: value})
        return sum(
            torch.dot(y[w], g[w]).item()
            for y, g, w in zip(outputs, self.upstream, self.written, strict=True)
        )

    def difference(self, name, direction, step) -> tuple[float, float, float]:
        """Return a derivative by central differences, how far it may be off, and a kink.

        That is half of what the slopes of both sides differ by. Where inputs are rounded, maxima
        have ties: the value is in the middle of a kink, for which central differences are sure.
        """
        value = self.inputs.values[name]
        slopes = []
        for h in (step, step / 2):
            ahead = self.loss(name, value + h * direction)
            behind = self.loss(name, value - h * direction)
            slopes.append((ahead - behind) / (2 * h))
        kink = abs(ahead + behind - 2 * self.here) / (2 * h)
        return (4 * slopes[1] - slopes[0]) / 3, abs(slopes[1] - slopes[0]), kink

    def compare(self, name, direction) -> tuple[str, float, float]:
        """Return "passed", "discarded", "tied" or "wrong", and ours and the true derivative."""
        gradient = self.gradients[name]
        ours = torch.dot(gradient, direction).item()
        size = gradient.nan_to_num().norm().item()
        verdict = "discarded", ours, float("nan")
        for step in STEPS:
            truth, doubt, kink = self.difference(name, direction, step)
            noise = 1e-14 * (self.scale + 1) / step
            within = abs(truth) + size
            if not max(doubt, kink) <= SMOOTH * within + noise:
                continue
            # A NaN of ours must not compare as near.
            if abs(ours - truth) <= EXACT * within + doubt + noise:
                return "passed", ours, truth
            at_tie = self.are_rounded and self.changes_beside(name, direction, truth, within)
            verdict = "tied" if at_tie else "wrong", ours, truth
        return verdict

    def changes_beside(self, name, direction, truth: float, within: float) -> bool:
        """Return whether the gradient jumps at this point, and is right on all sides of it.

        Rounded numbers tie. Where a minimum of two ties below a maximum that others reach, as in
        max(min(x, c), c), the value is smooth and central differences see nothing. The gradient
        there is a product of shares, in PyTorch as here, which is no derivative.
        """
        if not all(gradient.isfinite().all() for gradient in self.gradients.values()):
            return False
        for _ in range(BESIDE):
            values = {
                n: x + NEAR * self.inputs.normal(x.shape) for n, x in self.inputs.values.items()
            }
            found = gradients_of(self.op, self.program, values, self.upstream)[name]
            if not abs(torch.dot(found, direction).item() - truth) <= SMOOTH * within:
                return False
        return True

    def directions(self, name: str):
        """Yield a random direction and some single elements of an input."""
        size = self.program.inputs[name]
        yield "", self.inputs.normal(size)
        order = torch.randperm(size, generator=self.inputs.source)[: self.elements]
        for i in order.tolist():
            yield f"[{i}]", self.unit(size, i)

    @staticmethod
    def unit(size: int, i: int) -> torch.Tensor:
        """Return a unit vector."""
        return torch.zeros(size, dtype=torch.float64).index_fill_(0, torch.tensor([i]), 1.0)

    def wrong(self, name: str) -> list[str]:
        """Describe the elements of an input whose gradient is wrong."""
        lines = []
        for i in range(self.program.inputs[name]):
            result, ours, truth = self.compare(name, self.unit(self.program.inputs[name], i))
            if result == "wrong":
                lines.append(f"  {name}[{i}]: gradient {ours:.9g}, differences {truth:.9g}")
        return lines[:12]

    def with_poison(self, passing_nan, without: frozenset[str]) -> Verdict | None:
        """Return what is wrong with gradients where all that has no effect is NaN or infinite.

        They are what they are elsewhere, and zero for what has no effect.
        """
        # A copy is a result, too, which nobody looks at here.
        if any(feature.startswith("copy in ") for feature in self.program.features):
            return None
        inputs = self.inputs.values
        places = without_effect(
            # NaN that is stored is not what nothing is stored to.
            partial(self.forward, fill=UNTOUCHED),
            inputs,
            # What is not wanted has no gradient that tells.
            {n: self.gradients.get(n, torch.zeros_like(x)) == 0 for n, x in inputs.items()},
        )
        found = self.poisoned_in(places, without)
        if found is not None or self.elsewhere:
            # What a maximum passes over, or a later store, is in no lane that is left out. Which
            # numbers the greatest one of NaN and others is found among depends on the device.
            forward = partial(Forward(*passing_nan, inputs), fill=UNTOUCHED)
            places = without_effect(forward, inputs, places)
            found = self.poisoned_in(places, without)
        return found

    def poisoned_in(self, places: Tensors, without: frozenset[str]) -> Verdict | None:
        """Return what is wrong with gradients where these elements are NaN or infinite."""
        if not any(place.any() for place in places.values()):
            return None
        inputs = self.inputs.values
        values = poisoned(inputs, places, self.inputs.source)
        # Each is without effect where all others hold the same; some together may have one.
        if not same(self.forward({}, fill=UNTOUCHED), self.forward(values, fill=UNTOUCHED)):
            return None
        found = gradients_of(self.op, self.program, values, self.upstream)
        wrong = False
        for name, gradient in found.items():
            right = self.gradients[name]
            off = ~((gradient - right).abs() <= 1e-9 * (right.abs().max() + right.abs()))
            wrong |= off.any().item()
            for what, where in zip(POISON, (places[name], ~places[name]), strict=True):
                if what in without or not (off & where).any():
                    continue
                i = (off & where).nonzero()[0].item()
                reason = (
                    f"{name}, {what}: gradient [{i}] is {gradient[i]:.9g}, without poison "
                    f"{right[i]:.9g}; wrong in {off.sum()} places"
                )
                poison = {n: m.nonzero().flatten().tolist() for n, m in places.items() if m.any()}
                return Verdict("wrong", reason, schedules=self.schedules, poison=poison)
        self.poisoned = inputs if wrong else values
        return None

    def verdict(
        self, passing_nan, without: frozenset[str] = frozenset(), look: bool = True
    ) -> Verdict:
        """Compare all wanted gradients; some kinds of faults are not looked for.

        First, look at how they are derived.
        """
        unseen = LOOKER.look(self.launches) if look and self.launches else []
        if unseen:
            return Verdict("broken", f"it cannot be looked at: {unseen}", schedules=self.schedules)
        discarded, tied = 0, False
        for name in self.program.wanted:
            for where, direction in self.directions(name):
                result, ours, truth = self.compare(name, direction)
                discarded += result in ("discarded", "tied")
                tied |= result == "tied"
                if result == "wrong":
                    reason = f"{name}{where}: gradient {ours:.9g}, differences {truth:.9g}"
                    return Verdict("wrong", "\n".join([reason, *self.wrong(name)]))
        # One kink among all the directions is no reason to look elsewhere. A tie is one: elements
        # without a gradient may have a share in it, and poison takes that away.
        if tied or discarded > 1 + len(self.program.wanted):
            return Verdict("discarded", "not smooth", schedules=self.schedules)
        found = self.with_poison(passing_nan, without)
        if found is not None:
            return found
        if self.drawn is not None:
            given = self.gradients, self.program, self.inputs.values, self.upstream
            if (reason := self.drawn.wrong(*given)) is not None:
                return Verdict("wrong", reason)
        vanishes = self.gradients[self.program.wanted[0]].norm().item() < 1e-6
        return Verdict("passed", "", vanishes, self.schedules)
