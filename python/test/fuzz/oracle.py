"""What is to be said of a program: of its gradient in float64, and in other types elsewhere."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import Any

from . import batched, higher
from .differences import ELEMENTS, FATAL, Check, Verdict
from .precision import TYPES, Trial
from .program import Program
from .ways import carried_out_otherwise

# How a refusal to differentiate begins; any other exception is a fault.
REFUSAL = re.compile(r"cannot differentiate kernel '\w+': *|kernel '\w+' has(?= nothing to )")
POINTS = 3
# Of so many programs, one has its second derivatives looked at.
SECOND = 10


@dataclass
class Subject:
    """A program, loaded, and how it is to be checked."""

    program: Program
    kernel: Any
    stub: Any
    # The same, but for maxima that pass NaN on.
    passing_nan: tuple[Any, Any]
    # The same with noise, and the types to run in on a device, if float64 on the CPU is not all.
    noisy: tuple[Any, Any] | None = None
    types: str | None = None
    device: str = "cpu"
    seed: int = 0
    # By which the first gradient is multiplied, for tests of the oracle itself.
    factor: float = 1.0
    # What is not looked for, of `differences.POISON`.
    without: frozenset[str] = frozenset()
    # Whether to look at how it is derived, and to carry it out in other ways, too.
    look: bool = True
    in_ways: bool = False
    # Whether to compare a batch of it with a loop.
    in_batches: bool = False

    def in_float64(self, seed: int) -> tuple[Check, Verdict]:
        """Compare with finite differences; for a GPU, the program that has noise stands for it.

        Such a program is looked at in one direction only: many others are on the CPU.
        """
        kernel, stub, elements = self.kernel, self.stub, ELEMENTS
        rounded = None
        if self.types:
            types = TYPES[self.types]
            rounded = lambda tensors: types.rounded(self.program, tensors)  # noqa: E731
        if self.device != "cpu":
            (kernel, stub), elements = self.noisy, 0
        factor = self.factor if self.types is None else 1.0
        with on_cpu():
            elsewhere = self.device != "cpu"
            check = Check(self.program, kernel, stub, seed, factor, rounded, elements, elsewhere)
            verdict = check.verdict(self.passing_nan, self.without, self.look)
            if verdict.status == "passed" and factor == 1.0:
                verdict = higher.judged(check, seed % SECOND == 0) or verdict
            if self.in_batches and verdict.status == "passed":
                verdict = batched.judged(check) or verdict
            if self.in_ways and verdict.status == "passed":
                verdict = carried_out_otherwise(check) or verdict
            return check, verdict

    def verdict(self) -> Verdict:
        """Check at a random point, and at others if nothing can be said there."""
        verdict = Verdict("discarded")
        first = self.seed
        for attempt in range(POINTS):
            self.seed = first + 7919 * attempt
            check, verdict = self.in_float64(self.seed)
            if verdict.status != "discarded":
                break
        if verdict.status != "passed" or self.types is None:
            return verdict
        trial = Trial(
            self.program, self.kernel, self.stub, *self.noisy, TYPES[self.types], self.device,
            check.poisoned, check.upstream,
            # The truth is what was compared with differences, where that was the noisy form.
            None if self.device == "cpu" else check.request,
        )  # fmt: skip
        found = trial.verdict(on_cpu, self.factor)
        return Verdict(found.status, found.reason, verdict.vanishes, verdict.schedules)


@contextlib.contextmanager
def on_cpu():
    """Let kernels run on the CPU backend."""
    from triton.backends.autodiff.driver import CPUDriver
    from triton.runtime.driver import driver

    active = driver._active
    driver.set_active(CPUDriver())
    try:
        yield
    finally:
        driver._active = active


def reason_of(text: str) -> str:
    """Return a message without what differs from program to program."""
    text = re.sub(r"\S*\.(py|ttir):\d+(:\d+)?:?", "", text.splitlines()[0])
    return re.sub(r"\d+", "#", text).strip()


def check(subject: Subject) -> Verdict:
    """Check a program; an exception is a verdict, too."""
    from triton.backends.autodiff.errors import AutodiffError, RaceError

    try:
        return subject.verdict()
    except Exception as error:
        text = str(error).strip() or repr(error)
        refusal = REFUSAL.match(text)
        if isinstance(error, AutodiffError) and refusal:
            return Verdict("refused", reason_of(text[refusal.end() :]))
        if isinstance(error, RaceError) and subject.program.races:
            return Verdict("refused", reason_of(text))
        if isinstance(error, AssertionError) and text.startswith(("memory beside", "history of")):
            return Verdict("wrong", text)
        # The last line says most, but for the notes and marks that come after it.
        lines = [line for line in text.splitlines() if line.strip(" ^") and "note: " not in line]
        reason = reason_of(lines[-1] if lines else text)
        status = "crashed" if FATAL.search(text) else "broken"
        return Verdict(status, f"{type(error).__name__}: {reason}\n{text}")
