"""The steps of host programs: what the host does to carry out a plan.

Each kind of step says what it is twice, side by side: `bind` makes a function of it for launches
whose facts are known, `write` writes it as Python, for modules and graphs. Memory and numbers are
called as kernels call them: by a kind and an index, such as the gradient of argument 3.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import torch

from ..compiling.device_launch import launch
from ..plans.plan import Plan
from ..printing.python_text import call, targets
from ..storage.memory import allocating, gradient_of, is_non_overlapping, laying_out, snapshot
from ..support.dtypes import DTYPES

# The key of a base's gradient is (BASE, argument).
BASE = "base"


class Registers:
    """What the steps of one run read and write.

    `values` are the kernels' operands: numbers, and addresses, or tensors in a forward; `tensors`
    has the memory behind those that the run made. `live` has the launch's own, `upstream` the
    gradients that arrived, `counts` the trip counts of loops, `call` the launch of the user's own
    kernel. Steps leave what the backward gets in `handed`, and the results in `gradients`.
    """

    __slots__ = (
        "values", "tensors", "live", "upstream", "counts", "call", "handed", "gradients",
    )  # fmt: skip

    def __init__(self, values, live, upstream, counts):
        self.values, self.tensors = values, [None] * len(values)
        self.live, self.upstream, self.counts = live, upstream, counts
        self.handed: list[torch.Tensor] = []
        self.gradients: dict = {}

    def memory(self) -> list[torch.Tensor]:
        """Return all memory that kernels may access."""
        return [t for t in (*self.live, *self.tensors) if isinstance(t, torch.Tensor)]


def _making(place: int, make: Callable) -> Callable:
    """Return what a step does that makes memory for an operand: `make(registers)`."""

    def run(registers: Registers) -> None:
        made = make(registers)
        registers.tensors[place] = made
        registers.values[place] = made.data_ptr()

    return run


class Step:
    """One thing that the host does: to the operands of a `kind` that have these indices.

    A step that `waits` needs a result of the device, so that no CUDA graph can record it. One that
    is `linear` makes memory of memory, and is its own derivative: of a sum of contents it makes, up
    to rounding, the sum of what it makes of each. In a `batch` of launches, memory has one more
    axis, and the grid of a kernel one more digit; other steps are the same for all, and done once.
    """

    verb: ClassVar[str]
    kind: ClassVar[str]
    waits: ClassVar[bool] = False
    linear: ClassVar[bool] = False
    batch: ClassVar[str] = "axis"

    def __init__(self, *indices: int):
        self.indices = indices

    @property
    def index(self) -> int:
        """The index of its only operand."""
        (index,) = self.indices
        return index

    def operands(self, plan: Plan) -> list[tuple[str, object]]:
        """Return what it is about, as pairs of a kind and an index; kernels are called by names."""
        return [(self.kind, index) for index in self.indices]

    def is_needed(self, of) -> bool:
        """Whether there is something to do at the launches of a `Binding`."""
        return True

    def bind(self, of):
        """Return a function of `Registers` for the launches of a `Binding`; None if nothing is left
        to do in a run.
        """
        raise NotImplementedError

    def write(self, node) -> list[str]:
        """Return the lines of an exported forward or backward."""
        raise NotImplementedError


class LayOut(Step):
    """Give the gradient of an output the output's addressing. One that did not come is zero."""

    verb = "lay out"
    kind = "cotangent"
    linear = True

    def is_needed(self, of) -> bool:
        return self.index in of.cotangents

    def bind(self, of):
        j, place = self.index, of.place("cotangent", self.index)
        t = of.facts.tensors[j]
        lay = laying_out(t.shape, t.strides, t.dtype, t.span, of.device)
        return _making(place, lambda registers: lay(registers.upstream.get(j)))

    def write(self, node) -> list[str]:
        if self.index not in node.of.returned:
            return []
        name = node.operand("cotangent", self.index)
        return [f"        {name} = {node.of.layouts[self.index]}.upstream({name})"]


class Copy(Step):
    """Copy an argument that the kernel may change, and whose old contents the backward reads."""

    verb = "copy"
    kind = "argument"
    linear = True

    def is_needed(self, of) -> bool:
        return self.index in of.copied

    def bind(self, of):
        i, place = self.index, of.place("before", self.index)

        def run(registers):
            registers.tensors[place] = snapshot(registers.values[i])

        return run

    def write(self, node) -> list[str]:
        name, copy = node.of.variables[self.index], node.copies[self.index]
        return [f"        {copy} = {node.of.call('snapshot')}({name})"]


class Count(Step):
    """Run the kernel that counts how often loops run, and read what it has found."""

    verb = "count"
    batch = "grid"
    waits = True

    def operands(self, plan):
        return [("kernel", plan.counting.name)]

    def bind(self, of):
        return of.count

    def write(self, node) -> list[str]:
        of, counts = node.of, node.of.counts
        arguments = [str(max(of.plan.counters()) + 1), "dtype=torch.int32", f"device={node.device}"]
        return [
            call(f"{counts} = torch.zeros(", arguments, indent=8),
            *node.launch(of.counting, 8),
            f"        {counts} = {counts}.tolist()",
        ]


class Evaluate(Step):
    """Compute a number that kernels take."""

    verb = "evaluate"
    batch = "once"
    kind = "size"

    def bind(self, of):
        size, place = of.sizes[self.index], of.place("size", self.index)
        if not size.is_counted:
            of.constants[place] = size.get(None)
            return None

        def run(registers):
            registers.values[place] = size.get(registers.counts)

        return run

    def write(self, node) -> list[str]:
        size = node.plan.sizes[self.index]
        name = node.operands.get(("size", self.index))
        if name is None:
            return []
        line = f"        {name} = {node.text.of(size)}"
        node.text.call(size, name)
        return [line]


class Allocate(Step):
    """Make a buffer, of zeros if it is a tally."""

    verb = "allocate"
    kind = "buffer"

    def bind(self, of):
        place, device = of.place("buffer", self.index), of.device
        kind, dtype, size = of.buffers[self.index]
        make = partial(torch.zeros if kind == "tally" else torch.empty, dtype=dtype, device=device)
        return _making(place, lambda registers: make(size.get(registers.counts)))

    def write(self, node) -> list[str]:
        buffer = node.plan.buffers[self.index]
        make = "zeros" if buffer.kind == "tally" else "empty"
        size = node.text.of(buffer.size)
        arguments = [size, f"dtype={DTYPES[buffer.dtype]}", f"device={node.device}"]
        name = node.operand("buffer", self.index)
        return [call(f"{name} = torch.{make}(", arguments, indent=8)]


class Stand(Step):
    """Make memory for a rounded gradient that is none in this run: kernels take an address."""

    verb = "stand in for"
    kind = "rounded"

    def bind(self, of):
        # A module decides at each launch whether additions are counted, so it has this in any case.
        if self.index in of.tallied:
            return None
        place, device = of.place("rounded", self.index), of.device
        dtype = of.facts.tensors[self.index].dtype
        return _making(place, lambda _: torch.empty(1, dtype=dtype, device=device))

    def write(self, node) -> list[str]:
        name, result = node.operand("rounded", self.index), node.of.result(self.index)
        arguments = ["1", f"dtype={result}", f"device={node.device}"]
        return [call(f"{name} = torch.empty(", arguments, indent=8)]


class MakeGradient(Step):
    """Make the memory of a gradient, or of its partial sums, with what it holds at first: nothing,
    zeros, or the gradient of an output that the kernel changes in place.
    """

    verb = "make"
    kind = "gradient"

    def bind(self, of):
        i, place, device = self.index, of.place("gradient", self.index), of.device
        gradient, tensor = of.gradients[i], of.facts.tensors[i]
        shape, strides, dtype = tensor.shape, tensor.strides, DTYPES[gradient.dtype]
        if gradient.partials is not None:
            make = partial(of.sums[i].make, device)
        else:
            span = tensor.own if gradient.stays_inside else of.facts.span(i)
            zero = self._is_zero(of) and i not in of.tallied
            make = allocating(shape, strides, span, dtype, device, zero)
        if gradient.init != "cotangent" or gradient.partials is not None:
            return _making(place, lambda _: make())
        cotangent = of.place("cotangent", i)
        return _making(place, lambda registers: make().copy_(registers.tensors[cotangent]))

    def _is_zero(self, of) -> bool:
        """Elements that may not be written, and those around the tensor, have gradient zero."""
        gradient = of.gradients[self.index]
        is_whole = gradient.fills_tensor and self.index not in of.around
        return gradient.init == "zero" or not is_whole

    def write(self, node) -> list[str]:
        i, of = self.index, node.of
        gradient = of.backward.gradients[i]
        like, name, dtype = of.layouts[i], node.operand("gradient", i), str(DTYPES[gradient.dtype])
        content, is_zero = [], self._is_zero(of.backward)
        if gradient.init == "cotangent":
            # Nobody gives a gradient for what has no history, although it is stored.
            if i in of.returned and i in of.plan.cotangents():
                content.append(node.operand("cotangent", i))
            else:
                is_zero = True
        if gradient.partials is not None:
            made = f"{like}.sums({node.text.of(gradient.partials)}, {dtype})"
        elif gradient.stays_inside and not is_zero:
            made = f"{like}.empty({dtype})"
        else:
            zero = f"{node.is_tallied(i)} == 0" if i in of.tallied else str(is_zero)
            made = call(f"{like}.room(", [dtype, of.span_of(i), zero, *content])
        return [f"        {name} = {made}"]


class LaunchForward(Step):
    """Launch the user's kernel, or in its place the one that leaves something to the backward."""

    verb = "launch forward"
    batch = "grid"

    def operands(self, plan):
        return [("kernel", plan.kernel if plan.forward is None else plan.forward.name)]

    def bind(self, of):
        if of.executable_plan.forward is None:
            return lambda registers: launch(*registers.call)
        return of.starting(of.bind(of.executable_plan.forward))

    def write(self, node) -> list[str]:
        return node.launch_forward()


class HandOn(Step):
    """Hand memory on to the backward."""

    linear = True

    def _made(self, of) -> list[int]:
        """Return where what the forward has made for that is in `Registers`."""
        raise NotImplementedError

    def bind(self, of):
        places = self._made(of)

        def run(registers):
            registers.handed += [registers.tensors[place] for place in places]

        return run if places else None

    def write(self, node) -> list[str]:
        # Autograd saves all of it at once.
        return []

    def names(self, node) -> list[tuple[str, str]]:
        """Return pairs of names of what a module hands on: in its forward, and in its backward."""
        raise NotImplementedError


class Keep(HandOn):
    """Hand on arguments that the backward reads again: themselves, or copies from before."""

    verb = "keep"
    kind = "argument"

    def _made(self, of):
        return [of.place("before", i) for i in of.copied]

    def names(self, node):
        execution, names = node.of.execution, node.of.variables
        kept = [(names[i], names[i]) for i in execution.kept]
        return kept + [(node.copies[i], names[i]) for i in execution.copied]


class Save(HandOn):
    """Hand on buffers that the forward has filled."""

    verb = "save"
    kind = "buffer"

    def _made(self, of):
        return [of.place("buffer", n) for n in self.indices]

    def names(self, node):
        return [(node.operand("buffer", n),) * 2 for n in self.indices]


class LaunchKernel(Step):
    """Launch a backward kernel: the first of its variants that suits the launch."""

    verb = "launch"
    batch = "grid"

    def operands(self, plan):
        return [("kernel", plan.backward[self.index].name)]

    def bind(self, of):
        return of.starting(of.launches[self.index])

    def write(self, node) -> list[str]:
        lines, variants = [], node.of.steps[self.index]
        for place, executable in enumerate(variants):
            if place + 1 < len(variants):
                word = "elif" if place else "if"
                lines.append(f"        {word} {node.text.of(executable.kernel.when)}:")
            elif place:
                lines.append("        else:")
            lines += node.launch(executable, 8 if len(variants) == 1 else 12)
        return lines


class Tally(Step):
    """Count what is added to each block of a gradient, and clear those with several additions."""

    verb = "tally"
    batch = "grid"
    kind = "gradient"

    def is_needed(self, of) -> bool:
        return self.index in of.tallied

    def bind(self, of):
        i, place, device = self.index, of.place("rounded", self.index), of.device
        tensor, span = of.facts.tensors[i], of.facts.span(i)
        tallied = of.executable_plan.tallied[i]
        make = allocating(tensor.shape, tensor.strides, span, tensor.dtype, device, True)
        make_rounded = _making(place, lambda _: make())
        tally, clear = (of.starting(of.bind(k)) for k in (tallied.tally, tallied.clear))

        def run(registers):
            make_rounded(registers)
            tally(registers)
            clear(registers)

        return run

    def write(self, node) -> list[str]:
        i, of = self.index, node.of
        made = call(f"{of.layouts[i]}.room(", [str(of.result(i)), of.span_of(i), "True"])
        return [
            f"        if {node.is_tallied(i)}:",
            f"            {node.operand('rounded', i)} = {made}",
            *node.launch(of.tallied[i].tally, 12),
            *node.launch(of.tallied[i].clear, 12),
        ]


class Round(Step):
    """Round the blocks of a gradient that several additions went to; the others are rounded."""

    verb = "round"
    batch = "grid"
    kind = "gradient"

    def is_needed(self, of) -> bool:
        return self.index in of.tallied

    def bind(self, of):
        round_ = of.starting(of.bind(of.executable_plan.tallied[self.index].round))
        rounded, place = (of.place(kind, self.index) for kind in ("rounded", "gradient"))

        def run(registers):
            round_(registers)
            registers.tensors[place] = registers.tensors[rounded]

        return run

    def write(self, node) -> list[str]:
        i = self.index
        names = node.operand("gradient", i), node.operand("rounded", i)
        return [
            f"        if {node.is_tallied(i)}:",
            *node.launch(node.of.tallied[i].round, 12),
            f"            {names[0]} = {names[1]}",
        ]


class AddUp(Step):
    """Add up partial sums of gradients, as many for each, in an order that is always the same."""

    verb = "add up"
    kind = "gradient"
    linear = True

    def bind(self, of):
        total = of.total(self.indices)
        places = [(i, of.place("gradient", i)) for i in self.indices]

        def run(registers):
            gradients = total.run([registers.tensors[place] for _, place in places])
            registers.gradients |= {i: g for (i, _), g in zip(places, gradients, strict=True)}

        return run

    def write(self, node) -> list[str]:
        names = [node.operand("gradient", i) for i in self.indices]
        likes = ", ".join(node.of.layouts[i] for i in self.indices)
        made = f"{node.of.call('added_up')}([{likes}], [{', '.join(names)}])"
        node.results |= dict(zip(self.indices, names, strict=True))
        return [f"        {targets(names)} = {made}"]


class Convert(Step):
    """Make of a gradient's memory the gradient of a tensor, in its type; of elements around the
    tensor, too, if they have one.
    """

    verb = "convert"
    kind = "gradient"
    linear = True

    def is_needed(self, of) -> bool:
        return of.gradients[self.index].returned or self.index in of.around

    def bind(self, of):
        i, place = self.index, of.place("gradient", self.index)
        if i in of.around:
            return self._splitting(of.around[i], place)
        tensor = of.facts.tensors[i]
        is_rounded = i in of.tallied or DTYPES[of.gradients[i].dtype] == tensor.dtype
        is_plain = is_rounded and is_non_overlapping(tensor.shape, tensor.strides)

        def run(registers):
            made = registers.tensors[place]
            registers.gradients[i] = made if is_plain else gradient_of(made, tensor.dtype)

        return run

    def _splitting(self, around, place: int):
        def run(registers):
            own, rest = around.split(registers.tensors[place])
            registers.gradients |= {self.index: own, (BASE, self.index): rest}

        return run

    def write(self, node) -> list[str]:
        # A module for launches that read around a tensor is refused.
        i, of = self.index, node.of
        name = node.operand("gradient", i)
        # It may be a part of its memory.
        value = f"{of.layouts[i]}.view_of({name})" if i in of.loose else name
        if i in of.scattered:
            value = f"{of.call('gradient_of')}({value}, {of.result(i)})"
        elif DTYPES[of.backward.gradients[i].dtype] != of.result(i):
            value += f".to({of.result(i)})"
        node.results[i] = value
        return []


class Return(Step):
    """Return gradients, which autograd takes by argument; others were parts of these."""

    verb = "return"
    kind = "gradient"
    linear = True

    def bind(self, of):
        return None

    def write(self, node) -> list[str]:
        # With `None` for arguments that have none.
        return []
