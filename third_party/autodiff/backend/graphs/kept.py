"""What a backward needs of its forward, if a graph cannot know the plan of a launch.

The forward is an eager launch. Of the tensors that its autograd node saves, the graph holds the
launch's own. The rest becomes one tensor of bytes, whose length only the run knows. A table has the
facts of the run. The run's number in the table is passed on as the size of a tensor without
elements, which the host knows without waiting for the device.
"""

from __future__ import annotations

import itertools
import math
import threading
from types import SimpleNamespace
from typing import NamedTuple

import torch
from torch._guards import detect_fake_mode
from torch._library.fake_impl import allocate_size

from ..errors import AutodiffError
from ..launching.execution import Left
from ..storage.memory import ALIGNMENT

Tensor = torch.Tensor
# The most runs in the table: so many launches of an operator may wait for their backward.
_MOST = 1 << 14


class Run(NamedTuple):
    """How a launch ran: its numbers, the arguments whose whole storage was saved, and shapes and
    types of tensors that only the run has.
    """

    execution: object
    scalars: tuple
    surrounded: tuple
    layouts: tuple


class Runs:
    """The latest runs of one operator, by number."""

    def __init__(self, name: str):
        self._name = name
        self._lock = threading.Lock()
        self._count = itertools.count(1)
        self._numbers: dict[Run, int] = {}
        self._runs: dict[int, Run] = {}

    def number(self, run: Run) -> int:
        """Return the number of a run."""
        with self._lock:
            number = self._numbers.pop(run, None) or next(self._count)
            self._numbers[run], self._runs[number] = number, run
            while len(self._numbers) > _MOST:
                oldest = next(iter(self._numbers))
                del self._runs[self._numbers.pop(oldest)]
            return number

    def run(self, number: int) -> Run:
        """Return the run that has a number."""
        with self._lock:
            run = self._runs.get(number)
            if run is not None:
                # The latest run is moved to the end.
                self._numbers[run] = self._numbers.pop(run)
        if run is None:
            raise AutodiffError(
                f"kernel {self._name!r} has been launched in {_MOST} other ways since the forward "
                "of this backward: run backwards sooner"
            )
        return run


class Held(NamedTuple):
    """The numbers of tensors that a graph keeps for a backward: as they were, and as written."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    @classmethod
    def of(cls, plan, places: dict[int, int]) -> Held:
        """Return the tensors that the backward of a plan reads; another plan may need more, or
        fewer.
        """
        pointers, outputs = plan.reread(), {*plan.outputs}
        after = (pointers & outputs) - {*plan.snapshots}
        return cls(*(tuple(sorted(places[i] for i in s)) for s in (pointers - after, after)))


def has_numbers_of_runs(tensors) -> bool:
    """Whether a graph of these tensors may contain numbers that only the run knows.

    AOTAutograd's graphs may. Dynamo traces a launch before that, and cannot handle such numbers.
    """
    functional = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FUNCTIONAL)
    mode = detect_fake_mode(list(tensors))
    return functional is not None and mode is not None and mode.shape_env is not None


def faked(device) -> list[Tensor]:
    """Return the result of `keep` while nothing runs: sizes are symbols."""
    sizes = [allocate_size(torch.library.get_ctx()._shape_env) for _ in range(2)]
    return [
        torch.empty(sizes[0], dtype=torch.uint8, device=device),
        torch.empty((sizes[1], 0), device=device),
    ]


def keep(operator, node, held: Held, device) -> list[Tensor]:
    """Return what a launch's node has saved and the graph does not hold: bytes, and the run's
    number. Without a node, the launch has written to nothing.
    """
    if node is None:
        number = operator.runs.number(Run(None, (), (), ()))
        return [torch.empty(0, dtype=torch.uint8, device=device), _numbered(number, device)]
    execution, saved = node.execution, node.saved_tensors
    arguments = len(execution.kept) + len(execution.copied)
    sources = _sources(operator, execution, held, node.left.surrounded)
    parts = [
        tensor.clone(memory_format=torch.contiguous_format)
        for tensor, source in zip(saved, sources, strict=False)
        if source is None
    ]
    parts += saved[arguments:]
    layouts = tuple((tuple(part.shape), part.dtype) for part in parts)
    number = operator.runs.number(
        Run(execution, node.left.scalars, tuple(node.left.surrounded.items()), layouts)
    )
    return [_joined(parts, device), _numbered(number, device)]


def _numbered(number: int, device) -> Tensor:
    return torch.empty((number, 0), device=device)


def gradients(operator, upstream: dict, before: dict, after: dict, kept) -> dict:
    """Return gradients by tensor number, given those of the outputs.

    `before` and `after` have the tensors that the graph holds, by number; `kept` is the result of
    `keep`.
    """
    run = operator.runs.run(kept[1].shape[0])
    if run.execution is None:
        return with_passed_on({}, upstream, ())
    execution, places = run.execution, operator.places(run.execution.state)
    own, surrounded = iter(_parts(kept[0], run.layouts)), dict(run.surrounded)
    held = Held(tuple(before), tuple(after))
    known = {"before": before, "after": after}
    saved = [
        next(own) if source is None else known[source[0]][source[1]]
        for source in _sources(operator, execution, held, surrounded)
    ]
    buffers = list(own)
    shapes = [*execution.saved_shapes(surrounded), *(buffer.shape for buffer in buffers)]
    saved += buffers
    # The tensors have other addresses now.
    left = Left(None, [], run.scalars, (), (), surrounded, b"", shapes)
    context = SimpleNamespace(left=left)
    given: list = [None] * len(execution.position)
    for j, position in execution.position.items():
        given[position] = upstream[places[j]]
    found = execution.run_backward(context, saved, given)
    own = {places[i]: g for i, g in zip(execution.slots, found, strict=False)}
    outputs = execution.backward.plan.outputs
    return with_passed_on(own, upstream, {places[j] for j in outputs})


def with_passed_on(gradients: dict, upstream: dict, written) -> dict:
    """Return a launch's gradients with those of tensors that only other launches of the operator
    write to: what this one leaves as it was has the upstream gradient. All are by tensor number.
    """
    for place, gradient in upstream.items():
        if gradient is not None and place not in written:
            own = gradients.get(place)
            gradients[place] = gradient.clone() if own is None else own + gradient
    return gradients


def _sources(operator, execution, held: Held, surrounded) -> list[tuple[str, int] | None]:
    """Return, for each argument that a node saves, where the graph holds it: when, and which
    number.
    """
    places = operator.places(execution.state)
    wanted = [(i, "after" if places[i] in operator.outputs else "before") for i in execution.kept]
    wanted += [(i, "before") for i in execution.copied]
    return [
        # A graph does not hold the elements around a tensor.
        (when, places[i]) if places[i] in getattr(held, when) and i not in surrounded else None
        for i, when in wanted
    ]


def _joined(parts, device) -> Tensor:
    """Return the bytes of contiguous tensors, one after the other."""
    flat = [part.reshape(-1).view(torch.uint8) for part in parts]
    if len(flat) == 1:
        return flat[0]
    ends = list(itertools.accumulate(_room(part.numel()) for part in flat))
    whole = torch.empty(ends[-1] if ends else 0, dtype=torch.uint8, device=device)
    for part, begin in zip(flat, [0, *ends], strict=False):
        whole[begin : begin + part.numel()] = part
    return whole


def _parts(whole: Tensor, layouts) -> list[Tensor]:
    """Return tensors from their bytes."""
    found, begin = [], 0
    for shape, dtype in layouts:
        size = math.prod(shape) * dtype.itemsize
        found.append(whole[begin : begin + size].view(dtype).view(shape))
        begin += _room(size)
    return found


def _room(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
