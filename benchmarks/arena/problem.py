"""A case with its inputs: what it computes, and the gradients of both sides."""

from __future__ import annotations

import contextlib
import os
import traceback
from dataclasses import dataclass
from pathlib import Path

import torch
from poison import poisoned_memory

from .case import Case
from .launches import Kernels, check_graph, differentiated, first_configuration

Tensor = torch.Tensor
THEIRS, OURS = "theirs", "ours"
SEED = 2


def tensors(value):
    """The tensors of a wrapper's inputs or outputs, including those in lists."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors(part)


def mapped(change, value):
    """The same lists and dictionaries, with `change` applied to tensors."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {name: mapped(change, part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(change, part) for part in value)
    return value


def leaf(x: Tensor) -> Tensor:
    """A leaf with the same numbers, strides and requires_grad."""
    return x.detach().clone().requires_grad_(x.requires_grad)


def own(x: Tensor) -> Tensor:
    """A copy that a kernel may overwrite, through which gradients reach `x`."""
    return x.clone() if x.requires_grad else x.detach().clone()


@dataclass
class Claim:
    """One side's results: the outputs of its forward, and the gradient of each leaf."""

    outputs: list[Tensor]
    gradients: list[Tensor | None]


_NO_HISTORY = "no output depends on an input that requires a gradient"


class NoHistory(RuntimeError):
    """Our forward has no graph for an output whose gradient the authors compute."""


def told(error: BaseException) -> str:
    """An exception in one line, with the place that raised it."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {lines[0][:300]}{place}"


class TheirsEnds(RuntimeError):
    """The authors' code has crashed a process before, so it is not run again."""


def context_is_lost(error: BaseException) -> bool:
    """Whether an error means that this process cannot use the GPU any more."""
    told = "" if isinstance(error, TheirsEnds) else str(error)
    return "CUDA error" in told or "an illegal memory access" in told


def is_no_finding(error: BaseException) -> bool:
    """Whether an error says nothing about a case: it just ends the variant."""
    return isinstance(error, torch.OutOfMemoryError) or context_is_lost(error)


def eagerly():
    """Runs code that packages decorate with `torch.compile` as it is, during the context."""
    if os.environ.get("TORCHDYNAMO_DISABLE") == "1":
        return contextlib.nullcontext()
    return torch.compiler.set_stance("force_eager")


class Problem:
    """A case's inputs, the upstream gradients of its outputs, and both ways to differentiate it."""

    def __init__(self, case: Case, modules, inputs: dict, options=None, announce=None):
        """`announce(who, whole)` is called before a side computes, in case the process crashes.

        `whole`: a backward may follow the forward.
        """
        self.announce = announce or (lambda who, whole: None)
        self.case = case
        self.modules = modules
        self.inputs = inputs
        self.kernels = Kernels(options)
        self.names = [
            name if part is value else f"{name}[{n}]"
            for name, value in inputs.items()
            for n, part in enumerate(tensors(value))
            if part.requires_grad
        ]
        self.leaves = [x for x in tensors(inputs) if x.requires_grad]
        # The outputs that count, and their upstream gradients; known after the first forward.
        self.used: list[int] | None = None
        self.upstreams: list[Tensor] | None = None

    @contextlib.contextmanager
    def side(self, who: str):
        """Makes `who` differentiate the wrapper, during the context."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(eagerly())
            stack.enter_context(first_configuration())
            if who == OURS:
                stack.enter_context(differentiated(self.modules, self.kernels, self.case.constants))
            yield

    def call(self, who: str, inputs: dict, whole=False, seeded=True) -> list[Tensor]:
        """The wrapper's floating-point outputs, which may be in the inputs' memory.

        `seeded`: what it draws at random is the same in each call.
        """
        function = self.case.function
        if who == OURS and self.case.ours is not None:
            function = self.case.ours
        if seeded:
            torch.manual_seed(SEED)
        self.announce(who, whole)
        with self.side(who):
            results = function(**inputs)
        return [y for y in tensors(results) if y.is_floating_point()]

    def choose(self, outputs: list[Tensor]) -> None:
        """Choose random weights: gradients are those of the weighted sum of these outputs."""
        if self.used is not None:
            return
        places = self.case.outputs
        if places is None:
            places = [i for i, y in enumerate(outputs) if y.requires_grad]
        if not places:
            raise NoHistory(_NO_HISTORY)
        self.used = list(places)
        torch.manual_seed(SEED + 1)
        self.upstreams = [
            # A loss has weights near one: half precision has few bits for the product of a small
            # gradient.
            (torch.randn_like(y) if y.dim() else 1 + torch.rand_like(y)).detach()
            for y in (outputs[i] for i in self.used)
        ]

    def forward(self, who: str):
        """Run on new leaves; returns them, and the outputs that count, with their graph."""
        return self.forward_from(mapped(leaf, self.inputs), who)

    def forward_from(self, copies: dict, who: str):
        """The same on given leaves."""
        outputs = self.call(who, mapped(own, copies), whole=True)
        if who == OURS:
            check_graph(outputs, self.modules)
        self.choose(outputs)
        return [x for x in tensors(copies) if x.requires_grad], [outputs[i] for i in self.used]

    def backward(self, leaves, outputs, again=False, create_graph=False) -> list[Tensor | None]:
        """The gradients of leaves; an output without history contributes nothing.

        Some backwards overwrite the upstream gradients. `again` allows that, and keeps the graph.
        With `create_graph`, gradients can be differentiated.
        """
        used = [(y, g) for y, g in zip(outputs, self.upstreams, strict=True) if y.requires_grad]
        if not used:
            raise NoHistory(_NO_HISTORY)
        # A package's backward may launch autotuned kernels, too.
        with first_configuration():
            return list(
                torch.autograd.grad(
                    [y for y, _ in used],
                    leaves,
                    [g.to(y.dtype, copy=not again) for y, g in used],
                    retain_graph=again or create_graph,
                    create_graph=create_graph,
                    allow_unused=True,
                )
            )

    def claim(self, who: str, poisoned=True) -> Claim:
        """One side's outputs and gradients; `poisoned`: memory that nobody has written is NaN."""
        with poisoned_memory(poisoned):
            leaves, outputs = self.forward(who)
            values = [y.detach().clone() for y in outputs]
            return Claim(values, self.backward(leaves, outputs))

    def values(self, inputs: dict, who: str = THEIRS, seeded=True) -> list[Tensor]:
        """The outputs that count for other inputs, maybe in another dtype."""
        outputs = self.call(who, mapped(own, inputs), seeded=seeded)
        return [outputs[i].detach() for i in self.used]


def weighted(outputs, upstreams) -> float:
    """The weighted sum of outputs, in float64."""
    return sum(dot(y, g) for y, g in zip(outputs, upstreams, strict=True))


_CHUNK = 2**22


def dot(a: Tensor, b: Tensor) -> float:
    """The inner product in float64, without converting whole tensors."""
    a, b = a.reshape(-1), b.reshape(-1)
    pieces = [
        (x.double() * y.double()).sum()
        for x, y in zip(a.split(_CHUNK), b.split(_CHUNK), strict=True)
    ]
    return torch.stack(pieces).sum().item() if pieces else 0.0


def norm(a: Tensor) -> float:
    """The Euclidean norm, in float64."""
    return dot(a, a) ** 0.5
