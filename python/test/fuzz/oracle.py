"""Whether a program's gradient is that of its values: finite differences in float64."""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch

from .program import LARGEST

# Central differences at a step and half of it. The first pair is the more exact one, the second
# is less likely to have a kink within its step.
STEPS = (1e-4, 1e-6)
# What two rules of differencing may differ by, and then what the gradient may be off by.
SMOOTH, EXACT = 1e-4, 2e-6
ELEMENTS = 6
# What backwards are asked for, by turns: the compiler's choice, or that these schedules, and no
# others, are used wherever they apply.
REQUESTS = (
    None,
    {"schedules": []},
    {"schedules": ["exchange"]},
    None,
    {"schedules": ["unravel", "persist"]},
    {"schedules": ["batch", "unravel"]},
    {"schedules": ["exchange", "merge", "persist"]},
)
# In the names of kernels.
SCHEDULE = re.compile(r"_(exchanged|persistent)")


@dataclass(frozen=True)
class Verdict:
    """What came of checking a program.

    The status is "passed", "refused" (no gradient, for a stated reason), "rejected" (not smooth
    where it was looked at), "wrong", or "broken" (an exception).
    """

    status: str
    reason: str = ""
    # Whether the first wanted gradient is zero.
    vanishes: bool = False
    # What became of the loops and the grid in the backward: "exchanged", "persistent", "spread".
    schedules: tuple[str, ...] = ()


class Inputs:
    """Random inputs of a program and upstream gradients of its outputs."""

    def __init__(self, sizes: dict[str, int], seed: int):
        self.source = torch.Generator().manual_seed(seed)
        self.values = {name: self.spaced(size) for name, size in sizes.items()}

    def spaced(self, size: int) -> torch.Tensor:
        """Return numbers of at most LARGEST in random order that keep their distance."""
        order = torch.randperm(size, generator=self.source).double()
        jitter = torch.rand(size, generator=self.source, dtype=torch.float64) * 0.8 + 0.1
        return ((order + jitter) / size * 2 - 1) * LARGEST

    def normal(self, shape) -> torch.Tensor:
        """Return normally distributed numbers."""
        return torch.randn(shape, generator=self.source, dtype=torch.float64)


class Check:
    """One program at one point."""

    def __init__(self, program, kernel, stub, seed: int, factor: float):
        self.program, self.kernel, self.stub, self.factor = program, kernel, stub, factor
        self.inputs = Inputs(program.inputs, seed)
        self.request = REQUESTS[seed // len(DTYPES) % len(REQUESTS)]
        outputs = self.forward({})
        # What is not written has no upstream gradient; a NaN that is read there would show.
        self.upstream = [self.inputs.normal(y.shape) for y in outputs]
        self.written = [~y.isnan() for y in outputs]
        for y, g, written in zip(outputs, self.upstream, self.written, strict=True):
            if y.isinf().any():
                raise ArithmeticError("an output is infinite")
            g[~written] = float("nan")
        self.scale = sum(
            (y[w] * g[w]).abs().sum().item()
            for y, g, w in zip(outputs, self.upstream, self.written, strict=True)
        )
        self.schedules: set[str] = set()
        self.gradients = self.backward()

    def forward(self, changed: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Run the plain kernel, with some inputs changed."""
        return self.stub(self.kernel, *(self.inputs.values | changed).values())

    def loss(self, name: str, value: torch.Tensor) -> float:
        """Return the sum of outputs times upstream gradients with one input changed."""
        outputs = self.forward({name: value})
        return sum(
            torch.dot(y[w], g[w]).item()
            for y, g, w in zip(outputs, self.upstream, self.written, strict=True)
        )

    def backward(self) -> dict[str, torch.Tensor]:
        """Return the gradients of the wanted inputs."""
        from triton.backends.autodiff import autodiff

        leaves = {
            name: value.clone().requires_grad_(name in self.program.wanted)
            for name, value in self.inputs.values.items()
        }
        op = autodiff(self.kernel, self.stub, backward=self.request)
        outputs = op(*leaves.values())
        wanted = [leaves[name] for name in self.program.wanted]
        used = [(y, g) for y, g in zip(outputs, self.upstream, strict=True) if y.requires_grad]
        if not used:
            return {name: torch.zeros_like(leaves[name]) for name in self.program.wanted}
        gradients = torch.autograd.grad(
            [y for y, _ in used], wanted, [g for _, g in used], allow_unused=True
        )
        for _, _, execution in op.kernel._plans((), {}):
            launch = execution.backward.plan.launch
            if launch is not None:
                kinds = {"batched": launch.batched, "unraveled": launch.unraveled}
                self.schedules.update([k for k, has in kinds.items() if has] or ["spread"])
            for kernel in execution.backward.plan.backward:
                self.schedules.update(SCHEDULE.findall(kernel.name))
        found = {
            name: torch.zeros_like(leaves[name]) if g is None else g
            for name, g in zip(self.program.wanted, gradients, strict=True)
        }
        found[self.program.wanted[0]] *= self.factor
        return found

    def difference(self, name, direction, step) -> tuple[float, float]:
        """Return a derivative by central differences, and how far it may be off."""
        value = self.inputs.values[name]
        slopes = []
        for h in (step, step / 2):
            ahead = self.loss(name, value + h * direction)
            behind = self.loss(name, value - h * direction)
            slopes.append((ahead - behind) / (2 * h))
        return (4 * slopes[1] - slopes[0]) / 3, abs(slopes[1] - slopes[0])

    def compare(self, name, direction) -> tuple[str, float, float]:
        """Return "passed", "rejected" or "wrong", and ours and the true derivative."""
        gradient = self.gradients[name]
        ours = torch.dot(gradient, direction).item()
        size = gradient.nan_to_num().norm().item()
        verdict = "rejected", ours, float("nan")
        for step in STEPS:
            truth, doubt = self.difference(name, direction, step)
            noise = 1e-14 * (self.scale + 1) / step
            within = abs(truth) + size
            if not doubt <= SMOOTH * within + noise:
                continue
            # A NaN of ours must not compare as near.
            if abs(ours - truth) <= EXACT * within + doubt + noise:
                return "passed", ours, truth
            verdict = "wrong", ours, truth
        return verdict

    def directions(self, name: str):
        """Yield a random direction and some single elements of an input."""
        size = self.program.inputs[name]
        yield "", self.inputs.normal(size)
        order = torch.randperm(size, generator=self.inputs.source)[:ELEMENTS]
        for i in order.tolist():
            yield f"[{i}]", self.unit(size, i)

    @staticmethod
    def unit(size: int, i: int) -> torch.Tensor:
        """Return a unit vector."""
        return torch.zeros(size, dtype=torch.float64).index_fill_(0, torch.tensor([i]), 1.0)

    def elements(self, name: str) -> list[str]:
        """Describe the elements of an input whose gradient is wrong."""
        lines = []
        for i in range(self.program.inputs[name]):
            result, ours, truth = self.compare(name, self.unit(self.program.inputs[name], i))
            if result == "wrong":
                lines.append(f"  {name}[{i}]: gradient {ours:.9g}, differences {truth:.9g}")
        return lines[:12]

    def verdict(self) -> Verdict:
        """Compare all wanted gradients."""
        rejected = 0
        for name in self.program.wanted:
            for where, direction in self.directions(name):
                result, ours, truth = self.compare(name, direction)
                rejected += result == "rejected"
                if result == "wrong":
                    reason = f"{name}{where}: gradient {ours:.9g}, differences {truth:.9g}"
                    return Verdict("wrong", "\n".join([reason, *self.elements(name)]))
        # One kink among all the directions is no reason to look elsewhere.
        status = "rejected" if rejected > 1 + len(self.program.wanted) else "passed"
        vanishes = self.gradients[self.program.wanted[0]].norm().item() < 1e-6
        return Verdict(status, "", vanishes, tuple(sorted(self.schedules)))


DTYPES = (torch.float32, torch.float16, torch.bfloat16)
# How many units in the last place of its largest elements a gradient may be off by, and how many
# times as far as it moves with data that are off by one.
UNITS, MOVES = 8, 4
# Of so many random ways in which all data are off.
SAMPLES = 8


def rounded(kernel, stub, program, dtype: torch.dtype, seed: int, factor: float = 1.0) -> str:
    """Say what is wrong with gradients in another dtype, compared with those in float64.

    No computation in a dtype is nearer to the truth than the gradient's condition times a unit in
    the last place. Its data are the inputs, in which it may be anything, and the upstream
    gradients, in which it is linear: a sum whose terms may cancel. With each datum off by a unit,
    up or down at random, an element moves in the mean square by the root of the sum of squares of
    what each datum alone moves it by. The mean over samples estimates that, whatever cancels.
    """
    import triton.language as tl
    from triton.backends.autodiff import autodiff

    inputs = Inputs(program.inputs, seed)
    eps = torch.finfo(dtype).eps
    point = {name: x.to(dtype).double() for name, x in inputs.values.items()}
    shapes = [y.shape for y in stub(kernel, *point.values())]
    upstream = [inputs.normal(shape).to(dtype) for shape in shapes]
    types = {"T": tl.float32, "M": getattr(tl, str(dtype)[6:]), "DTYPE": dtype}

    def gradients(values, upstream, **types):
        leaves = {n: x.clone().requires_grad_(n in program.wanted) for n, x in values.items()}
        outputs = autodiff(kernel, lambda kernel, *given: stub(kernel, *given, **types))(
            *leaves.values()
        )
        used = [(y, g.to(y.dtype)) for y, g in zip(outputs, upstream, strict=True)]
        used = [(y, g.masked_fill(y.detach().isnan(), float("nan"))) for y, g in used]
        used = [(y, g) for y, g in used if y.requires_grad]
        if not used:
            return []
        wanted = [leaves[name] for name in program.wanted]
        ys, gs = zip(*used, strict=True)
        found = torch.autograd.grad(ys, wanted, gs, allow_unused=True)
        return [
            torch.zeros_like(leaf, dtype=torch.float64) if g is None else g.double()
            for g, leaf in zip(found, wanted, strict=True)
        ]

    def off_by_a_unit(x):
        return x.double() * (1 + eps * inputs.normal(x.shape).sign())

    ours = gradients({name: x.to(dtype) for name, x in point.items()}, upstream, **types)
    truth = gradients(point, [g.double() for g in upstream])
    moved = [
        gradients(
            {n: off_by_a_unit(x) for n, x in point.items()}, [off_by_a_unit(g) for g in upstream]
        )
        for _ in range(SAMPLES)
    ]
    for i, (mine, right) in enumerate(zip(ours, truth, strict=True)):
        squares = [(other[i] - right).square().sum().item() for other in moved]
        within = UNITS * eps * right.norm().item() + MOVES * (sum(squares) / SAMPLES) ** 0.5
        off = (factor * mine - right).norm().item()
        # A NaN must not compare as near.
        if not off <= within:
            return (
                f"{program.wanted[i]}: gradient in {str(dtype)[6:]} is off by {off:.3g} of "
                f"{right.norm().item():.3g}, {within:.3g} expected"
            )
    return ""


# How a refusal to differentiate begins; any other exception is a fault.
REFUSAL = re.compile(r"cannot differentiate kernel '\w+': *")


def reason_of(text: str) -> str:
    """Return a message without what differs from program to program."""
    text = re.sub(r"\S*\.(py|ttir):\d+(:\d+)?:?", "", text.splitlines()[0])
    return re.sub(r"\d+", "#", text).strip()


def check(program, kernel, stub, seed: int = 0, factor: float = 1.0) -> Verdict:
    """Check a program at a random point, and at others if it is not smooth there.

    The first wanted gradient is multiplied by `factor`, for tests of the oracle itself.
    """
    from triton.backends.autodiff import AutodiffError

    verdict = Verdict("rejected")
    for attempt in range(3):
        try:
            verdict = Check(program, kernel, stub, seed + 7919 * attempt, factor).verdict()
            if program.smooth and verdict.status == "passed":
                dtype = DTYPES[seed % len(DTYPES)]
                reason = rounded(kernel, stub, program, dtype, seed)
                if reason:
                    verdict = Verdict("wrong", reason)
        except Exception as error:
            text = str(error).strip() or repr(error)
            refusal = REFUSAL.match(text)
            if isinstance(error, AutodiffError) and refusal:
                return Verdict("refused", reason_of(text[refusal.end() :]))
            # The last line says most, but for the notes and marks that come after it.
            lines = [
                line for line in text.splitlines() if line.strip(" ^") and "note: " not in line
            ]
            reason = reason_of(lines[-1] if lines else text)
            return Verdict("broken", f"{type(error).__name__}: {reason}\n{text}")
        if verdict.status != "rejected":
            return verdict
    return verdict
