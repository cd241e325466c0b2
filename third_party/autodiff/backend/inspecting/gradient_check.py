"""`check`: an operation's gradients against finite differences in float64.

The reference is the operation itself, evaluated in float64 on the CPU (see `reference.py`), so the
differences have no rounding to speak of, whatever precision the kernel computes in. Some elements
of each input are moved one by one, and all of them together along random directions, which sees
an error in an element that was not looked at. A direction that disagrees is bisected until the
element is found.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from ..errors import ArgumentError, GradientCheckError
from ..storage.memory import shares_memory, snapshot
from ..support.waiting import work
from .higher_check import STEP, along, fresh, inner, pushed, tensors_of
from .reference import Reference, in_double

Tensor = torch.Tensor

# How far a right gradient may be from the true one, relative to the terms that it is a sum of. In
# half precision, several units in the last place, since intermediate values are rounded. In
# float32, the error of TF32 products and of approximate functions on GPUs; on a CPU, that of long
# sums. In float64, the error of finite differences.
TOLERANCES = {
    torch.float64: 1e-6,
    torch.float32: 1e-3,
    torch.float16: 10 * torch.finfo(torch.float16).eps,
    torch.bfloat16: 10 * torch.finfo(torch.bfloat16).eps,
}
_FLOAT32_ON_CPU = 1e-4
_FLOAT8_TOLERANCE = 0.5
# Units in the last place by which outputs may be off, and derivatives in proportion to them.
_UNITS = 16
# Users draw inputs from generators, too: with the same seed, upstream gradients would equal inputs.
_OTHER_SEED = 0x5BD1E995
# Two step sizes, relative to the size of a typical element: they distinguish kinks from curvature.
_STEPS = (2.0**-13, 2.0**-16)


@dataclass
class Mismatch:
    """A gradient, or an output, that is wrong."""

    name: str
    where: str
    expected: float
    got: float
    tolerance: float

    def __str__(self):
        return (
            f"{self.name}{self.where}: expected {self.expected:.6g}, got {self.got:.6g} "
            f"(tolerance {self.tolerance:.2g})"
        )


@dataclass
class InputReport:
    """The comparisons of one input's gradient."""

    name: str
    size: int
    elements: int = 0
    directions: int = 0
    largest: float = 0.0  # error, relative to the tolerance
    not_smooth: list[str] = field(default_factory=list)

    def __str__(self):
        line = (
            f"{self.name}: {self.elements} of {self.size} elements and {self.directions} "
            f"directions compared; the largest error is {self.largest:.2g} of what is tolerated"
        )
        if self.not_smooth:
            line += f"; {len(self.not_smooth)} not smooth: " + "; ".join(self.not_smooth[:3])
        return line


@dataclass
class GradientReport:
    """What `check` has compared, and the mismatches."""

    operation: str
    rtol: float
    reason: str
    inputs: list[InputReport] = field(default_factory=list)
    mismatches: list[Mismatch] = field(default_factory=list)
    user_rules: dict[str, list[str]] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return not self.mismatches

    def __bool__(self):
        return self.passed

    def __str__(self):
        verdict = "are right" if self.passed else f"are wrong in {len(self.mismatches)} places"
        lines = [
            f"gradients of {self.operation} {verdict} (tolerance {self.rtol:.2g}: {self.reason})"
        ]
        lines += [f"  {mismatch}" for mismatch in self.mismatches]
        lines += [f"  {checked}" for checked in self.inputs]
        if not self.passed:
            lines += [
                f"  kernel {name!r} has derivatives that you gave it ({', '.join(rules)}): what "
                "they say is wrong here if it is not the derivative of what the kernel computes"
                for name, rules in self.user_rules.items()
            ]
        return "\n".join(lines)


@dataclass
class _Slopes:
    """Difference quotients of the loss in one direction.

    A slope is a sum over the outputs' elements. `terms` is the size of these terms (the root of
    the sum of their squares), and `values` that of the loss's terms, of which they are the slopes.
    """

    central: float
    low: float
    high: float
    smooth: bool
    terms: float
    values: float


class _Loss:
    """The sum of outputs times fixed upstream gradients, in float64, as a function of inputs."""

    def __init__(self, reference: Reference, inputs):
        self._reference = reference
        self._point = [in_double(value) for value in inputs]
        self.outputs = reference.evaluate(self._copies())
        self.weights: list = [None] * len(self.outputs)

    def _copies(self):
        return [snapshot(v) if isinstance(v, Tensor) else v for v in self._point]

    def start(self, weights) -> None:
        """Set the upstream gradients, None for outputs that do not count."""
        self.weights = weights
        self._terms = self._weighted(self.outputs)
        self._magnitude = self._terms.abs().sum().item()

    def _weighted(self, outputs) -> Tensor:
        """Return the terms of the loss."""
        pairs = zip(outputs, self.weights, strict=True)
        return torch.cat([(y.double() * w).flatten() for y, w in pairs if w is not None])

    def size(self, n: int) -> float:
        """Return the size of a typical element of input `n`."""
        return self._point[n].square().mean().sqrt().item() or 1.0

    def _at(self, n: int, places, change) -> Tensor:
        inputs = self._copies()
        moved = inputs[n].flatten()
        moved[places] += change
        inputs[n].copy_(moved.view(inputs[n].shape))
        return self._weighted(self._reference.evaluate(inputs))

    def slopes(self, n: int, places, direction) -> _Slopes:
        """Return the slopes when elements `places` of input `n` move together in `direction`."""
        gaps = []
        for step in _STEPS:
            step *= self.size(n)
            above = self._at(n, places, step * direction)
            below = self._at(n, places, -step * direction)
            up = (above - self._terms).sum().item()
            down = (self._terms - below).sum().item()
            gaps.append(abs(up - down) / step)
        # At a kink, the one-sided slopes stay different as the step gets smaller.
        apart = gaps[1] > gaps[0] / 2 and gaps[1] > 4 * self.noise(n) + 1e-6 * abs(up + down) / step
        smooth = math.isfinite(gaps[1]) and not apart
        low, high = sorted((up / step, down / step))
        terms = (above - below).norm().item() / (2 * step)
        values = self._terms[above != below].norm().item()
        return _Slopes((up + down) / (2 * step), low, high, smooth, terms, values)

    def curvature(self, n: int, one: Tensor, other: Tensor) -> tuple[float, bool]:
        """Return the second derivative of the loss along two directions of input `n`, and whether
        differences at two steps agree about it.
        """
        found = []
        everything = torch.arange(one.numel(), device="cpu")
        for step in (STEP * self.size(n), STEP * self.size(n) / 2):
            corners = [
                a * b * self._at(n, everything, step * (a * one + b * other)).sum().item()
                for a in (1, -1)
                for b in (1, -1)
            ]
            found.append(sum(corners) / (4 * step * step))
        apart = abs(found[0] - found[1])
        return found[1], math.isfinite(apart) and apart <= 1e-3 * abs(found[1]) + self.bend(n)

    def bend(self, n: int) -> float:
        """Return the error that rounding may cause in a second derivative."""
        step = STEP * self.size(n) / 2
        return 8 * torch.finfo(torch.float64).eps * self._magnitude / step**2

    def noise(self, n: int) -> float:
        """Return the error that rounding may cause in a slope."""
        return 8 * torch.finfo(torch.float64).eps * self._magnitude / (_STEPS[1] * self.size(n))


def check(
    op: Callable[..., Any],
    inputs: Any,
    *,
    elements: int = 32,
    directions: int = 2,
    rtol: float | None = None,
    seed: int = 0,
    order: int = 1,
    mode: str = "reverse",
    raise_exception: bool = True,
) -> GradientReport:
    """Compare the gradients of `op(*inputs)` with finite differences in float64.

    `op` is an operation made by `autodiff`, or any function that launches `differentiable`
    kernels, with PyTorch code around them. It runs on `inputs` as they are; the inputs that
    require a gradient are checked. The reference is `op` evaluated in float64 on the CPU: give it
    small inputs, for it runs four times for each of the `elements` and `directions` compared.

    With `mode="forward"` tangents are compared, too: ⟨u, J v⟩ for each input, along `directions` v.
    With `order=2` so are second derivatives by each input: ⟨w, H v⟩ for two directions.

    `rtol` is relative to the size of a typical element of the gradient; by default it follows the
    coarsest dtype among inputs and outputs, see `TOLERANCES`. Returns a report; one with
    mismatches is raised as `GradientCheckError`, unless `raise_exception` is false. Rules for
    DTensors that an operation was registered with are tried out, too; a wrong one is raised.
    """
    if mode not in ("reverse", "forward"):
        raise ArgumentError(f"mode should be 'reverse' or 'forward', got {mode!r}")
    if order not in (1, 2):
        raise ArgumentError(f"order should be 1 or 2, got {order!r}")
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    checker = _Checker(op, inputs, rtol, seed)
    checker.compare_outputs()
    for n in checker.wanted:
        with work(f"checking the gradient of {checker.names[n]}"):
            checker.compare_gradient(n, elements, directions)
            for _ in range(directions):
                if mode == "forward":
                    checker.compare_tangent(n)
                if order == 2:
                    checker.compare_second(n)
    if raise_exception and not checker.report.passed:
        raise GradientCheckError(checker.report)
    for sharding in getattr(op, "_shardings", ()):
        sharding.try_out(inputs)
    return checker.report


class _Checker:
    """One check: the operation's own outputs and gradients, the reference, the report."""

    def __init__(self, op, inputs, rtol, seed):
        self.op, self.inputs = op, inputs
        self.names = _names(op, len(inputs))
        self.wanted = [n for n, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
        if not self.wanted:
            raise ArgumentError("no input requires a gradient: nothing to check")
        for n in self.wanted:
            if shares_memory(inputs[n].shape, inputs[n].stride()):
                raise ArgumentError(
                    f"elements of {self.names[n]} share memory (it is an expanded tensor, say), "
                    "so they have no gradients of their own to check: give a clone"
                )
        # The operation may change its inputs.
        self._given = [x.detach().clone() if isinstance(x, Tensor) else x for x in inputs]
        reference = Reference(op, seed)
        before = [in_double(value) for value in inputs]
        with torch.enable_grad():
            self.outputs = reference.run(inputs)
        self.differentiable = [y.requires_grad for y in self.outputs]
        if not any(self.differentiable):
            raise ArgumentError("no output depends on an input that requires a gradient")
        # Comparisons are done in host memory, whatever PyTorch's default device is.
        self.generator = torch.Generator("cpu").manual_seed(seed ^ _OTHER_SEED)
        upstream = [self._upstream(y) if d else None for y, d in self._outputs()]
        self._weights = upstream
        used = [n for n, d in enumerate(self.differentiable) if d]
        self.gradients = dict(
            zip(
                self.wanted,
                torch.autograd.grad(
                    [self.outputs[n] for n in used],
                    [inputs[n] for n in self.wanted],
                    [upstream[n] for n in used],
                    allow_unused=True,
                ),
                strict=True,
            )
        )
        self.loss = _Loss(reference, before)
        self.loss.start([u if u is None else u.double().cpu() for u in upstream])
        name = getattr(op, "__name__", type(op).__name__)
        given, reason = self._tolerance()
        self._unit = _UNITS * torch.finfo(self._coarsest()).eps
        self.report = GradientReport(
            name,
            given if rtol is None else rtol,
            reason if rtol is None else "as given",
            user_rules=reference.user_rules,
        )

    def _outputs(self):
        return zip(self.outputs, self.differentiable, strict=True)

    def _upstream(self, output):
        values = torch.randn(output.shape, generator=self.generator, device="cpu")
        return values.to(output.device, output.dtype)

    def _signs(self, count: int) -> Tensor:
        """Return a random direction."""
        signs = torch.randint(0, 2, (count,), generator=self.generator, device="cpu")
        return signs * 2.0 - 1

    def _compared(self) -> list[Tensor]:
        """Return the inputs and outputs that derivatives are about."""
        return [*(self.inputs[n] for n in self.wanted), *(y for y, d in self._outputs() if d)]

    def _coarsest(self):
        return max((t.dtype for t in self._compared()), key=lambda dtype: torch.finfo(dtype).eps)

    def _tolerance(self) -> tuple[float, str]:
        """Return what is tolerated, and why."""
        coarsest = self._coarsest()
        reason = f"{str(coarsest)[6:]} is the coarsest dtype of inputs and outputs"
        if coarsest == torch.float32 and all(t.device.type == "cpu" for t in self._compared()):
            return _FLOAT32_ON_CPU, f"{reason}, on a CPU"
        return TOLERANCES.get(coarsest, _FLOAT8_TOLERANCE), reason

    def _rounding(self, n: int, slope: _Slopes) -> float:
        """Return what rounding may change a gradient by, apart from what is typical of others.

        The terms that a gradient is a sum of may cancel: they are rounded, not the sum. So are
        values inside of a kernel, which may be as large as those of the outputs.
        """
        terms = max(abs(slope.central), slope.terms)
        return self.report.rtol * terms + self._unit * slope.values / self.loss.size(n)

    def compare_outputs(self) -> None:
        """Compare outputs: the reference is only valid if it computes the same as the operation."""
        pairs = zip(self.outputs, self.loss.outputs, self.differentiable, strict=True)
        for n, (output, truth, differentiable) in enumerate(pairs):
            if not differentiable or not truth.numel():
                continue
            error = (output.detach().double().cpu() - truth).abs()
            tolerance = self.report.rtol * (truth.abs() + truth.square().mean().sqrt())
            place = (error - tolerance).nan_to_num(nan=math.inf).argmax().item()
            if not error.flatten()[place] <= tolerance.flatten()[place]:
                self.report.mismatches.append(
                    Mismatch(
                        f"output {n}, against its evaluation in float64, ",
                        _index(truth, place),
                        truth.flatten()[place].item(),
                        output.detach().flatten()[place].item(),
                        tolerance.flatten()[place].item(),
                    )
                )

    def compare_gradient(self, n: int, elements: int, directions: int) -> None:
        """Compare the gradient of input `n` with slopes of the loss."""
        x, gradient = self.inputs[n], self.gradients[n]
        found = InputReport(self.names[n], x.numel())
        self.report.inputs.append(found)
        if not x.numel():
            return
        if gradient is None:
            gradient = torch.zeros_like(x)
        got = gradient.detach().double().cpu().flatten()
        places = self._sample(got, elements)
        slopes = {p: self.loss.slopes(n, [p], 1.0) for p in places}
        smooth = [self._rounding(n, s) for s in slopes.values() if s.smooth]
        typical = math.sqrt(sum(s * s for s in smooth) / len(smooth)) if smooth else 0.0
        before = len(self.report.mismatches)
        for place, slope in slopes.items():
            self._compare(n, found, _index(x, place), slope, got[place].item(), typical)
        found.elements = len(places)
        for _ in range(directions):
            everything = torch.arange(x.numel(), device="cpu")
            direction = self._signs(x.numel())
            if self._agrees(n, found, everything, direction, got, typical):
                continue
            if len(self.report.mismatches) == before:
                place = self._bisect(n, everything, direction, got, typical)
                slope = self.loss.slopes(n, [place], 1.0)
                self._compare(n, found, _index(x, place), slope, got[place].item(), typical)
            if len(self.report.mismatches) == before:
                self._blame_direction(n, everything, direction, got, typical)
            break
        found.directions = directions

    def _directions(self, n: int, count: int) -> list[Tensor]:
        """Return random directions of input `n`."""
        return [self._signs(self.inputs[n].numel()) for _ in range(count)]

    def _like(self, n: int, direction: Tensor) -> Tensor:
        x = self.inputs[n]
        return direction.view(x.shape).to(x.device, x.dtype)

    def compare_tangent(self, n: int) -> None:
        """Compare the tangent of the outputs along a direction of input `n`."""
        (v,) = self._directions(n, 1)
        everything = torch.arange(v.numel(), device="cpu")
        slope = self.loss.slopes(n, everything, v)
        found = pushed(self.op, fresh(self._given, ()), {n: self._like(n, v)})
        got, size = inner([tangent for _, tangent in found], self._weights)
        allowed = self._rounding(n, slope) + self.report.rtol * size + self.loss.noise(n)
        self._note(f"tangent along {self.names[n]}", slope.smooth, slope.central, got, allowed)

    def compare_second(self, n: int) -> None:
        """Compare the second derivative along two directions of input `n`."""
        v, w = self._directions(n, 2)
        expected, is_smooth = self.loss.curvature(n, v, w)
        given = fresh(self._given, {n})
        outputs = tensors_of(self.op(*given))
        found = along(outputs, self._weights, [given[n]], [self._like(n, v)])
        got, size = inner(found, [self._like(n, w)])
        # A second derivative has the error of a first one four times.
        allowed = 4 * self.report.rtol * (size + abs(expected)) + self.loss.bend(n)
        self._note(f"second derivative by {self.names[n]}", is_smooth, expected, got, allowed)

    def _note(self, name: str, is_smooth: bool, expected: float, got: float, allowed: float):
        if is_smooth and not abs(got - expected) <= allowed:
            self.report.mismatches.append(
                Mismatch(name, " in a random direction", expected, got, allowed)
            )

    def _sample(self, got, elements: int) -> list[int]:
        """Return the elements to compare: all of them, or the largest gradients and random ones."""
        if got.numel() <= elements:
            return list(range(got.numel()))
        size = got.abs().nan_to_num(nan=math.inf)
        largest = size.topk(elements // 4).indices.tolist()
        others = torch.randperm(got.numel(), generator=self.generator, device="cpu").tolist()
        return list(dict.fromkeys([*largest, *others]))[:elements]

    def _compare(self, n, found, where, slope, got, typical) -> None:
        if slope.smooth:
            expected = slope.central
        else:
            expected = min(max(got, slope.low), slope.high)
            found.not_smooth.append(f"{where} has slopes {slope.low:.4g} … {slope.high:.4g}")
            if not (math.isfinite(slope.low) and math.isfinite(slope.high)):
                return
        allowed = max(self._rounding(n, slope), self.report.rtol * abs(expected))
        tolerance = allowed + typical + self.loss.noise(n)
        error = abs(got - expected)
        if error <= tolerance:
            found.largest = max(found.largest, error / tolerance if tolerance else 0.0)
            return
        shown = expected if slope.smooth else slope.central
        self.report.mismatches.append(Mismatch(found.name, where, shown, got, tolerance))

    def _miss(self, n, places, direction, got, typical):
        """Return a direction's slope, what the gradient says it is, and the tolerance.

        `typical` is what is tolerated of one element.
        """
        slope = self.loss.slopes(n, places, direction)
        terms = got[places] * direction
        tolerance = self.report.rtol * (abs(slope.central) + terms.norm().item())
        tolerance += typical * math.sqrt(len(places))
        return slope, terms.sum().item(), tolerance + self.loss.noise(n)

    def _agrees(self, n, found, places, direction, got, typical) -> bool:
        slope, sum_, tolerance = self._miss(n, places, direction, got, typical)
        if not slope.smooth:
            found.not_smooth.append("a direction over all elements")
            return True
        error = abs(sum_ - slope.central)
        if error <= tolerance:
            found.largest = max(found.largest, error / tolerance if tolerance else 0.0)
        return error <= tolerance

    def _bisect(self, n, places, direction, got, typical) -> int:
        """Return the element that is responsible for a wrong slope in a direction."""
        while len(places) > 1:
            middle = len(places) // 2
            halves = ((places[:middle], direction[:middle]), (places[middle:], direction[middle:]))
            missed = []
            for half in halves:
                slope, sum_, tolerance = self._miss(n, *half, got, typical)
                error = abs(sum_ - slope.central)
                missed.append(error / tolerance if error == error else math.inf)
            places, direction = halves[missed[1] > missed[0]]
        return int(places[0])

    def _blame_direction(self, n, places, direction, got, typical) -> None:
        slope, sum_, tolerance = self._miss(n, places, direction, got, typical)
        self.report.mismatches.append(
            Mismatch(self.names[n], " along a random direction", slope.central, sum_, tolerance)
        )


def _names(op, count: int) -> list[str]:
    """Return names for inputs: the number, and the parameter's name if it is known."""
    stub = getattr(op, "stub", None)
    try:
        names = list(inspect.signature(stub or op).parameters)[stub is not None :]
    except (TypeError, ValueError):
        names = []
    return [f"input {n}" + (f" ({names[n]})" if n < len(names) else "") for n in range(count)]


def _index(tensor, place: int) -> str:
    index = []
    for size in reversed(tensor.shape):
        place, inner = divmod(place, size)
        index.insert(0, str(inner))
    return f"[{', '.join(index)}]"
