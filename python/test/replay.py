"""Launches of tests, carried out once more in two ways: by us, and by a module to which they are
exported.

Of a launch is recorded what decides how it is carried out: layouts, and which tensors share memory;
numbers; contents of integers; the grid. Floats are drawn anew. Both ways have the same plan, so
that they differ by nothing, but where atomics meet.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import torch
from exporting import adds_atomically, module_at
from looking import REFUSALS, Seen
from torch.utils._pytree import tree_map

# Bytes of a storage that is recorded at most, and what its address is a multiple of.
LARGEST, ALIGNMENT = 1 << 20, 64
# The only reason for which a module may refuse the launch that it was made from: a test's backward
# may have been for some outputs alone (docs/host-program.md, "Where the ways differ").
UNEXPECTED = "came, for which nothing was exported"
# What another order of a sum changes, in units of a type's last place.
REORDERED = 64


class Unsuitable(Exception):
    """A launch that is not carried out again, and why."""


class Layout(NamedTuple):
    """A tensor of a launch: the number of its storage, and where it lies there."""

    storage: int
    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    requires_grad: bool


class Given(torch.autograd.Function):
    """Memory that has the history of a leaf: a kernel may overwrite it."""

    @staticmethod
    def forward(ctx, leaf, memory):
        return memory.detach()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Recording:
    """One launch, without its floats."""

    def __init__(self, launch):
        self.function, self.kernel = launch.function, launch.kernel
        self.grid = launch.grid
        # Of each storage, its bytes; the integers in it, or None for floats.
        self.storages: list[tuple[int, torch.dtype, torch.Tensor | None]] = []
        self._numbers: dict[int, int] = {}
        self.values = tree_map(self._described, launch.values)

    def _described(self, value):
        if not isinstance(value, torch.Tensor):
            if hasattr(value, "data_ptr") or hasattr(value, "base"):
                raise Unsuitable("a descriptor, or what stands for a tensor")
            return value
        is_plain = type(value) in (torch.Tensor, torch.nn.Parameter) and not value.is_nested
        if not is_plain or value.layout != torch.strided or value.device.type != "cpu":
            raise Unsuitable("a tensor of another class, layout or device")
        if value.is_conj() or value.is_neg() or value.is_inference() or value.is_quantized:
            raise Unsuitable("a tensor that is conjugate, negative, or of inference mode")
        if value.requires_grad and value._is_view():
            raise Unsuitable("a view with a history")
        storage = value.untyped_storage()
        if not 0 < storage.nbytes() <= LARGEST or storage.data_ptr() % ALIGNMENT:
            raise Unsuitable("a storage that is empty, large, or not aligned")
        number = self._numbers.setdefault(storage.data_ptr(), len(self.storages))
        if number == len(self.storages):
            integers = None
            if not value.dtype.is_floating_point:
                # They say where a kernel reads, so they are kept.
                integers = torch.empty(0, dtype=torch.uint8).set_(storage).clone()
            self.storages.append((storage.nbytes(), value.dtype, integers))
        elif self.storages[number][1] != value.dtype:
            raise Unsuitable("a storage of several types")
        return Layout(
            number, value.dtype, tuple(value.shape), value.stride(), value.storage_offset(),
            value.requires_grad,
        )  # fmt: skip

    def drawn(self):
        """Return values of parameters, tensors among them by their layouts, and their leaves."""
        source = torch.Generator().manual_seed(1)
        memories, leaves, tensors = [], {}, {}
        for nbytes, dtype, integers in self.storages:
            memory = torch.empty(nbytes + ALIGNMENT, dtype=torch.uint8)
            memory = memory[-memory.data_ptr() % ALIGNMENT :][:nbytes]
            # A storage of its own, that ends where the recorded one does.
            memory = torch.from_dlpack(torch.utils.dlpack.to_dlpack(memory))
            if integers is not None:
                memory.copy_(integers)
            else:
                count = nbytes // dtype.itemsize
                floats = torch.rand(count, generator=source) * 0.9 + 0.1
                memory[: count * dtype.itemsize].view(dtype).copy_(floats.to(dtype))
            memories.append(memory)

        def made(value):
            if not isinstance(value, Layout):
                return value
            if value not in tensors:
                storage = memories[value.storage].untyped_storage()
                tensor = torch.empty(0, dtype=value.dtype)
                tensor.set_(storage, value.offset, value.shape, value.strides)
                if value.requires_grad:
                    leaves[value] = tensor.clone().requires_grad_()
                    tensor = Given.apply(leaves[value], tensor)
                tensors[value] = tensor
            return tensors[value]

        values = tree_map(made, self.values, is_leaf=lambda value: isinstance(value, Layout))
        return values, memories, tensors, leaves


class Carried(NamedTuple):
    """What became of a launch: all memory, outputs with a history by layout, and gradients."""

    memories: list[torch.Tensor]
    outputs: list[Layout]
    gradients: list[torch.Tensor | None]


def carried_out(recording: Recording, launch) -> Carried:
    """Launch with floats drawn anew, and pull random upstream gradients back."""
    values, memories, tensors, leaves = recording.drawn()
    before = {layout: t.grad_fn for layout, t in tensors.items()}
    launch(values)
    found = [memory.clone() for memory in memories]
    outputs = [
        layout
        for layout, tensor in tensors.items()
        if tensor.requires_grad and tensor.grad_fn is not before[layout]
    ]
    source = torch.Generator().manual_seed(2)
    upstream = [torch.randn(y.shape, generator=source).to(y.dtype) for y in outputs]
    if not outputs or not leaves:
        raise Unsuitable("nothing has a history")
    gradients = torch.autograd.grad(
        [tensors[layout] for layout in outputs], list(leaves.values()), upstream, allow_unused=True
    )
    return Carried(found, outputs, list(gradients))


def _difference(name: str, ours, theirs, units: float) -> str | None:
    """Say where two tensors differ in bits, or by more than so many units."""
    if ours is None or theirs is None:
        return None if ours is theirs else f"{name}: one is None"
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{name}: {theirs.dtype} {tuple(theirs.shape)} for {ours.dtype} {tuple(ours.shape)}"
    if ours.dtype == torch.uint8:
        return None if torch.equal(ours, theirs) else f"{name}: other bytes"
    a, b = ours.double(), theirs.double()
    differs = ~((a == b) | (a.isnan() & b.isnan()))
    if units and differs.any():
        size = units * torch.finfo(ours.dtype).eps * a.nan_to_num(0, 0, 0).abs().max()
        differs &= ~((a - b).abs() <= size)
    if not differs.any():
        return None
    i = tuple(differs.nonzero()[0].tolist())
    return f"{name}{list(i)}: {b[i]:.9g} for {a[i]:.9g}; in {differs.sum()} places"


def differences(recording: Recording, state, options) -> list[str]:
    """Return what an exported module does otherwise than a launch of ours."""
    from triton.backends.autodiff import AutodiffError
    from triton.backends.autodiff.exporting.export import export
    from triton.backends.autodiff.launching import nodes
    from triton.backends.autodiff.launching.specialize import CompiledLaunch

    plans = []

    def by_us(values):
        launch = CompiledLaunch(recording.function, recording.kernel, recording.grid, values)
        plans.append(nodes.start(launch, nodes.state_of(launch, options)))

    def by_a_module(values):
        with tempfile.TemporaryDirectory() as folder:
            triple = (state, plans[0].shown.plan, plans[0])
            module = module_at(export(Path(folder) / "exported.py", [triple]))
            getattr(module, recording.function.__name__)[recording.grid](*values)

    try:
        ours = carried_out(recording, by_us)
    except AutodiffError as error:
        # It needs what is not recorded, such as the history of what a tensor is a part of.
        raise Unsuitable(f"refused: {str(error)[:60]}") from None
    plan = plans[0].backward.plan
    try:
        theirs = carried_out(recording, by_a_module)
    except AssertionError as error:
        if UNEXPECTED in str(error):
            raise Unsuitable("a gradient for which the forward did not save") from None
        return [f"the module refuses what it was made from: {error}"]
    except AutodiffError as error:
        if REFUSALS["export"].search(str(error)):
            raise Unsuitable("cannot be exported") from None
        raise
    meets = adds_atomically(plan) or "tt.atomic_rmw fadd" in state.spec.ttir
    units = REORDERED if meets else 0
    if ours.outputs != theirs.outputs:
        return [f"outputs: {theirs.outputs} for {ours.outputs}"]
    pairs = zip(ours.gradients, theirs.gradients, strict=True)
    found = [_difference(f"gradient {n}", a, b, units) for n, (a, b) in enumerate(pairs)]
    if not units:
        pairs = zip(ours.memories, theirs.memories, strict=True)
        found += [_difference(f"storage {n}", a, b, 0) for n, (a, b) in enumerate(pairs)]
    return [text for text in found if text]


class Replayer(Seen):
    """Records a launch of each new plan of a test, and carries it out again."""

    def __init__(self):
        super().__init__()
        # What became of launches, and how many became that.
        self.counts: Counter[str] = Counter()
        self._recordings: list[tuple] = []
        self._is_on = False

    def install(self) -> None:
        """See launches from now on; tests import the package late, when a driver is chosen."""
        from triton.backends.autodiff.launching import nodes
        from triton.backends.autodiff.storage import overwritten

        # Messages name the user's line that launches, which is not here.
        overwritten._is_user[self._recording.__code__.co_filename] = False
        if not hasattr(nodes.start, "is_recording"):
            nodes.start = self._recording(nodes.start)

    def _recording(self, begin):
        def start(launch, state):
            # No module launches kernels that have no function, those with tangents.
            is_known = self._is_on and hasattr(launch.kernel.src, "fn")
            recording = self._recorded(launch) if is_known else None
            execution = begin(launch, state)
            if recording and execution is not None and self.is_new(execution.backward.plan.asked):
                self._recordings.append((recording, state, state.options))
            return execution

        start.is_recording = True
        return start

    def _recorded(self, launch) -> Recording | None:
        from triton.backends.autodiff.storage.addresses import makes_pointers

        try:
            if makes_pointers(launch.kernel):
                raise Unsuitable("integers may be addresses")
            return Recording(launch)
        except Unsuitable as error:
            self.counts[str(error)] += 1
        except RuntimeError:  # of a tensor that refuses to tell where it is
            self.counts["a tensor without memory"] += 1
        return None

    def begin(self) -> None:
        """Record from now on."""
        self._is_on = True

    def end(self) -> None:
        """Record no more, and forget what was recorded."""
        self._recordings.clear()
        self._is_on = False

    def replay(self) -> list[str]:
        """Carry out what was recorded, and return what differs."""
        self._is_on = False
        found = []
        for recording, *rest in self._recordings:
            try:
                texts = differences(recording, *rest)
                self.counts["different" if texts else "same"] += 1
            except Unsuitable as error:
                self.counts[str(error)] += 1
                continue
            found += [f"kernel {recording.function.__name__!r}: {text}" for text in texts]
        return found
