"""Gradients in other types, and on a GPU, against float64 on the CPU.

How far a right gradient may be off is measured, not assumed. The program is written once more,
with noise (`noise`): in float64, it gives the true gradient without any, and with noise as large
as what rounding does, of several samples, how far rounding moves it. Where that is so far that a
gradient off by a tenth would not be seen, nothing is said about the program at this point.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from watched import Watch

from .differences import FATAL, Verdict, gradients_of
from .noise import QUIET
from .points import Tensors, same
from .program import Program

# How many units in the last place of its largest elements a gradient may be off by, how many of
# those of the type in which programs add to it, and how many times as far as noise moves it in the
# mean square.
UNITS, SUMS, MOVES = 2, 16, 4
# The same for one element; what noise moves it by is known less well.
MOVES_OF_ONE = 24
# More than that of a gradient's size is too much: one that is off by a tenth has to be seen.
MOST = 0.08
SAMPLES, MORE = 8, 48
# Why nothing is said of a program whose plain kernel gives other numbers on the device.
THEIRS = "Triton computes the forward otherwise"


@dataclass(frozen=True)
class Types:
    """Types that a program runs in: see `program.OPTIONS`."""

    T: torch.dtype
    M: torch.dtype
    A: torch.dtype
    F: torch.dtype
    P: str = "ieee"

    def rounded(self, program: Program, point: Tensors) -> Tensors:
        """Return numbers as memory holds them, in float64."""
        return {n: x.to(self.of(program, n)).double() for n, x in point.items()}

    def held(self, program: Program, point: Tensors) -> Tensors:
        """Return numbers as memory can hold them, in float64: NaN for what is infinite and has no
        place there; what is finite stays so.
        """
        held = {}
        for name, x in point.items():
            dtype = self.of(program, name)
            most = torch.finfo(dtype).max
            finite = torch.where(x.isinf(), x, x.clamp(-most, most))
            if not _has_infinity(dtype):
                finite = finite.masked_fill(x.isinf(), torch.nan)
            held[name] = finite
        return held

    def of(self, program: Program, buffer: str) -> torch.dtype:
        """Return the type of a buffer's elements."""
        return getattr(self, program.types[buffer])

    @property
    def options(self) -> dict:
        """Return the arguments of a stub."""
        return {name: getattr(self, name) for name in ("T", "M", "A", "F", "P")}

    def noise(self) -> tuple[float, ...]:
        """Return what rounding may make of results, conversions to M, A and F, and operands."""
        results = 2 * torch.finfo(self.T).eps
        operands = 2.0**-11 if self.P == "tf32" and self.T == torch.float32 else results
        conversions = (torch.finfo(dtype).eps / 2 for dtype in (self.M, self.A, self.F))
        return (results, *(max(size, results) for size in conversions), operands)


def _has_infinity(dtype: torch.dtype) -> bool:
    """Return whether a type of floats holds infinity; others have their largest number for it."""
    return bool(torch.tensor(torch.inf).to(dtype).double().isinf())


TYPES = {
    "bfloat16": Types(torch.float32, torch.bfloat16, torch.float16, torch.float8_e5m2),
    "float16": Types(torch.float32, torch.float16, torch.float32, torch.float8_e4m3fn),
    "float32": Types(torch.float32, torch.float32, torch.bfloat16, torch.float8_e5m2),
    "tf32": Types(torch.float32, torch.float32, torch.float16, torch.float8_e4m3fn, "tf32"),
    "float64": Types(torch.float64, torch.float64, torch.float32, torch.float8_e5m2),
}


class Trial:
    """A program in some types on a device, and its noisy form in float64, at one point."""

    def __init__(
        self, program, kernel, stub, noisy, noisy_stub, types, device, point, upstream, request=None
    ):
        """`request` is what the backward in float64 is asked for."""
        self.program, self.types, self.device, self.request = program, types, device, request
        self.kernel, self.stub, self.noisy, self.noisy_stub = kernel, stub, noisy, noisy_stub
        self.point, self.upstream = types.held(program, point), upstream

    def run(
        self, kernel, stub, values, options, upstream=None, request=None
    ) -> dict[str, torch.Tensor]:
        """Return outputs and gradients, by what they are called in reports."""
        from triton.backends.autodiff import autodiff

        found: dict[str, torch.Tensor] = {}

        def kept(kernel, *given):
            outputs = stub(kernel, *given, **options)
            for name, y in zip(self.program.outputs, outputs, strict=True):
                found[f"output {name}"] = y.detach().double().cpu()
            return outputs

        upstream = self.upstream if upstream is None else upstream
        op = autodiff(kernel, kept, **request or {})
        gradients = gradients_of(op, self.program, values, upstream)
        return found | {f"gradient of {name}": g for name, g in gradients.items()}

    def values(self) -> Tensors:
        """Return the inputs in their types on the device."""
        of = self.types.of
        return {n: x.to(self.device, of(self.program, n)) for n, x in self.point.items()}

    def forward(self) -> tuple[torch.Tensor, ...]:
        """Run the plain kernel: what Triton cannot compile says nothing about gradients."""
        watch = Watch()
        inputs = [watch.copy(x) for x in self.values().values()]
        outputs = self.stub(self.kernel, *inputs, **self.types.options)
        if self.device == "cuda":
            torch.cuda.synchronize()
        return outputs

    def typed(self) -> dict[str, torch.Tensor]:
        """Return what the program computes in its types on the device."""
        return self.run(self.kernel, self.stub, self.values(), self.types.options)

    def true(self, noise=QUIET, upstream=None) -> dict[str, torch.Tensor]:
        """Return what it computes in float64 on the CPU, with some noise."""
        noisy, options = (self.noisy, self.noisy_stub), {"noise": noise}
        return self.run(*noisy, self.point, options, upstream, self.request)

    def moved(self, first: int, count: int) -> list[dict[str, torch.Tensor]]:
        """Return what it computes with noise of several samples.

        A kernel's noise is the same in programs that compute the same. What each of them adds to a
        gradient is rounded by itself, though; so noise comes with the upstream gradients, too.
        """
        sizes = self.types.noise()
        # Gradients are summed in float32, but for those of float64.
        double = all(self.types.of(self.program, n).itemsize == 8 for n in self.program.wanted)
        size = max(sizes[0], torch.finfo(torch.float64 if double else torch.float32).eps)
        found = []
        for sample in range(first, first + count):
            source = torch.Generator().manual_seed(sample)
            upstream = [
                g * (1 + size * (torch.rand(g.shape, generator=source) - 0.5))
                for g in self.upstream
            ]
            found.append(self.true((*sizes, 0.618 * sample), upstream))
        return found

    def verdict(self, on_cpu, factor: float = 1.0) -> Verdict:
        """Compare outputs and gradients; `on_cpu` is a context in which kernels run there."""
        try:
            self.forward()
        except Exception as error:
            if FATAL.search(str(error)):
                raise
            return Verdict("discarded", f"Triton: {type(error).__name__}")
        ours = self.typed()
        ours[f"gradient of {self.program.wanted[0]}"] *= factor
        with on_cpu():
            right, moved = self.true(), self.moved(0, SAMPLES)
            verdict = self.worst(ours, right, moved)
            if verdict.status in ("wrong", "forward"):
                # A mask that flips rarely moves much, in few samples.
                verdict = self.worst(ours, right, moved + self.moved(SAMPLES, MORE))
        if verdict.status == "forward" and self.device != "cpu" and self.is_plain(ours):
            return Verdict("discarded", f"{THEIRS}: {verdict.reason.split(' is ')[0]}")
        return verdict

    def is_plain(self, ours) -> bool:
        """Return whether the plain kernel computes the same outputs: then they are Triton's."""
        own = [ours[f"output {name}"] for name in self.program.outputs]
        return same(own, [y.double().cpu() for y in self.forward()])

    def worst(self, ours, right, moved) -> Verdict:
        """Return what is wrong first; without a gradient that can be judged, nothing is said."""
        verdicts = {}
        for name, truth in right.items():
            kind, buffer = name.split()[0], name.split()[-1]
            # What nothing is stored to, in float64 or in other types.
            places = ~(truth.isnan() & ours[name].isnan()) if kind == "output" else ...
            others = [other[name][places] for other in moved]
            dtype = self.types.of(self.program, buffer)
            # What a first turn has stored, a second one adds to: it is rounded in between.
            turns = kind == "gradient" and "product with itself" in self.program.features
            # Programs add to an output in its own type, in any order.
            added = dtype if kind == "output" and self.program.adds_to(buffer) else torch.float32
            numbers = (ours[name][places], truth[places], others)
            found = judged(name, *numbers, dtype, added, turns)
            if found is not None and found.status == "wrong":
                return Verdict("forward", found.reason) if kind == "output" else found
            verdicts[name] = found
        gradients = [found for name, found in verdicts.items() if name.startswith("gradient")]
        if all(gradients):
            return gradients[0]
        return Verdict("passed")


def judged(
    name: str,
    ours,
    right,
    moved: list,
    dtype: torch.dtype,
    added_in: torch.dtype = torch.float32,
    turns: bool = False,
) -> Verdict | None:
    """Return what is wrong with a tensor in memory of a type, given how noise moves it.

    What programs add up is rounded to `added_in`, or to float64 for a tensor of those. In `turns`,
    what is added up may cancel.
    """
    if not right.numel():
        return None
    info = torch.finfo(dtype)
    added = SUMS * torch.finfo(torch.float64 if dtype == torch.float64 else added_in).eps
    squares = sum((other - right).square() for other in moved) / len(moved)
    furthest = max((other - right).norm().item() for other in moved)
    typical, size = squares.sum().item() ** 0.5, right.norm().item()
    least = info.smallest_normal * info.eps * right.numel() ** 0.5
    within = (UNITS * info.eps + added) * size + max(MOVES * typical, 2 * furthest) + least
    if not within <= MOST * size + least or not right.abs().max() < info.max / 4:
        return Verdict("discarded", f"rounding moves gradients by more than {MOST}")
    error = ours - right
    off = error.norm().item()
    # A NaN must not compare as near.
    if not off <= within:
        return Verdict("wrong", f"{name} is off by {off:.3g} of {size:.3g}, {within:.3g} expected")
    each = UNITS * info.eps * right.abs() + least
    each = each + added * (right.abs() + size / right.numel() ** 0.5)
    if turns:
        each = each + UNITS * info.eps * size / max(right.count_nonzero().item(), 1) ** 0.5
    each = each + MOVES_OF_ONE * (squares.sqrt() + typical / right.numel() ** 0.5)
    over = error.abs() > each
    if over.any():
        i = over.nonzero()[0].item()
        text = f"{ours[i]:.6g} for {right[i]:.6g}, {each[i]:.3g} expected"
        return Verdict("wrong", f"{name}[{i}] is {text}; wrong in {over.sum()} places")
    return None
