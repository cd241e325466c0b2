"""Derivatives of a launch that PyTorch traces, of every order: one operator.

The launch is a function of tensors without memory, a `Values` of `launching/pure.py`. What that
asks a launch to compute is an operator in the graph. It names tensors by number, so that the graph
has all that it needs, and nothing else keeps anything.
"""

from __future__ import annotations

import torch
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

from ..launching import nodes
from ..launching.func_transforms import example, refuse_around
from ..launching.pure import PureLaunch, Values
from ..storage.memory import is_dense
from .gradient import gradient_like, room_for_gradient

Tensor = torch.Tensor


def schema(numbers: str) -> str:
    """Return the schema of the operator, given that of a launch's numbers."""
    return (
        f"(Tensor?[] tensors, Tensor[] cotangents, {numbers}, str along, int[] returned, "
        "int[] wanted, int[] upstream) -> Tensor[]"
    )


class TracedLaunch:
    """A launch of an operator, as `Values` uses a `PureLaunch`. Tensors are numbers.

    With tangents, it has further tensors. There are more of them than the kernel may need, which
    depends on the run: of all that the launch writes, and of those that move, which are the last of
    `along`.
    """

    def __init__(self, operator, numbers):
        self.operator, self.along = operator, ()
        # Integers, floats and grids.
        self._numbers = numbers
        self.slots = tuple(range(len(operator.dtypes)))
        self.floats = frozenset(n for n in self.slots if operator.dtypes[n].is_floating_point)
        self.written, self.tangents = tuple(operator.outputs), ()
        self.directions = dict.fromkeys(self.slots, 0)
        # Of each tensor, one of the launch that has its layout.
        self.root = dict(zip(self.slots, self.slots, strict=True))

    def with_tangents(self, moving: frozenset[int]) -> TracedLaunch:
        """Return the launch that computes tangents, too, from those of some tensors."""
        found = TracedLaunch(self.operator, self._numbers)
        found.along = (*self.along, tuple(sorted(moving)))
        found.tangents = tuple(sorted(moving | self.floats.intersection(self.written)))
        new = dict(enumerate(found.tangents, len(self.slots)))
        bit = 1 << len(self.along)
        found.slots = (*self.slots, *new)
        found.floats = self.floats.union(new)
        found.written = (*self.written, *(n for n, of in new.items() if of in self.written))
        found.directions = self.directions | {n: self.directions[of] | bit for n, of in new.items()}
        found.root = self.root | {n: self.root[of] for n, of in new.items()}
        return found

    def place(self, number: int) -> int | None:
        """Return the number of a tensor's tangent; None if it has none."""
        if number not in self.tangents:
            return None
        return len(self.slots) - len(self.tangents) + self.tangents.index(number)

    def evaluate(self, returned, wanted, tensors, cotangents: dict[int, Tensor]) -> list[Tensor]:
        """Return contents of written tensors, then gradients; see `PureLaunch.evaluate`."""
        along = ";".join(",".join(map(str, moving)) for moving in self.along)
        given = list(tensors), list(cotangents.values()), *map(list, self._numbers)
        return self.operator.derivative(*given, along, *map(list, (returned, wanted, cotangents)))

    def on(self, launch: PureLaunch, tensors, returned, wanted, cotangents) -> list[Tensor | None]:
        """Have a launch with memory evaluate this; None is a derivative that is zero."""
        # Its arguments by number, None where it has no tangent.
        own: dict[int, int | None] = dict.fromkeys(self.slots)
        own |= {n: i for i, n in self.operator.places(launch.state).items()}
        pushed = TracedLaunch(self.operator, self._numbers)
        for moving in self.along:
            pushed = pushed.with_tangents(frozenset(moving))
            found = frozenset(own[n] for n in moving if own[n] is not None)
            if found:
                launch = launch.with_tangents(found)
                own |= {pushed.place(n): launch.place(own[n]) for n in pushed.tangents}
        given = {own[n]: t for n, t in enumerate(tensors)}
        cotangents = {own[n]: u for n, u in cotangents.items() if own[n] is not None}
        asked = [tuple(own[n] for n in ns if own[n] is not None) for ns in (returned, wanted)]
        found = iter(launch.evaluate(*asked, [given.get(i) for i in launch.slots], cotangents))
        return [None if own[n] is None else next(found) for n in (*returned, *wanted)]


def differentiable(operator, tensors, *numbers) -> list[Tensor]:
    """Return what a launch leaves in the tensors that it writes, with derivatives of all orders."""
    launch = TracedLaunch(operator, numbers)
    with temporarily_clear_interpreter_stack():
        changing = operator.meeting([example(t) for t in tensors], *numbers)
    # What the results depend on is not what is about to change.
    changing = changing.union(launch.written)
    tensors = [_copy(t) if n in changing else t for n, t in enumerate(tensors)]
    return list(Values.apply(launch, launch.written, (), (), None, *tensors))


def _copy(tensor: Tensor) -> Tensor:
    """Return a copy of a tensor, which may be wrapped, with the same strides."""
    if is_dense(tensor.shape, tensor.stride()):
        return tensor.clone()
    return tensor.new_empty_strided(tensor.shape, tensor.stride()).copy_(tensor)


def _launch(operator, numbers, along: str) -> TracedLaunch:
    """Return the launch that `TracedLaunch.evaluate` has described."""
    launch = TracedLaunch(operator, numbers)
    for moving in along.split(";") if along else ():
        launch = launch.with_tangents(frozenset(map(int, moving.split(","))))
    return launch


def evaluate(
    operator, tensors, cotangents, ints, floats, grids, along, returned, wanted, upstream
) -> list[Tensor]:
    """Compute contents and gradients of a launch, as its operator does."""
    numbers = ints, floats, grids
    launch = _launch(operator, numbers, along)
    given = tensors[: len(operator.dtypes)]
    with torch.cuda.device_of(given[0]):
        resolved = operator.resolved(given, *numbers)
        state = nodes.state_of(resolved, operator.kernel._resolver.options)
        leaves = state.spec.flatten(resolved.values)
        own = PureLaunch(nodes.start, state, resolved.grid, leaves)
        refuse_around(own, leaves)
        cotangents = dict(zip(upstream, cotangents, strict=True))
        # Below autograd, where graphs run, PyTorch's operations would have no history.
        with torch.enable_grad(), nodes.recording_history(), torch.no_grad():
            found = launch.on(own, tensors, returned, wanted, cotangents)
    layouts = (tensors[launch.root[n]] for n in (*returned, *wanted))
    return [gradient_like(t, value) for t, value in zip(layouts, found, strict=True)]


def again(
    operator, tensors, cotangents, ints, floats, grids, along, returned, wanted, upstream
) -> list[Tensor]:
    """Return what `evaluate` does, with derivatives of all orders."""
    launch = _launch(operator, (ints, floats, grids), along)
    asked = map(tuple, (returned, wanted, upstream))
    return list(Values.apply(launch, *asked, None, *tensors, *cotangents))


def rooms(
    operator, tensors, cotangents, ints, floats, grids, along, returned, wanted, upstream
) -> list[Tensor]:
    """Return memory for what `evaluate` returns, where nothing runs."""
    numbers = ints, floats, grids
    root = _launch(operator, numbers, along).root
    return [room_for_gradient(tensors[root[n]]) for n in (*returned, *wanted)]
