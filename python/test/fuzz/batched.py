"""Whether a program under `torch.func.vmap` does what a loop of its launches does.

A batch has some inputs, in some dimension, and its examples share the others. Now and then there is
a batch of batches. Outputs are compared, and one of these: gradients that are taken inside of the
vmap, or outside of it by `torch.func` or by autograd; or tangents. The program is an operation,
whose stub runs for each example, or its stub launches a bare kernel under vmap.

All are equal to the bit, but where contributions meet in atomics, which add them up in any order.
The gradient of what examples share is a sum over them, in any order, too.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from exporting import adds_atomically
from torch.func import grad, jvp, vmap
from watched import Watch, watched

from . import higher
from .differences import Check, Verdict
from .points import apart
from .ways import REORDERED

Tensor = torch.Tensor
# Examples of a batch, and of a batch of batches, which one program in so many has.
SIZES, NESTED = (3, 2), 4
# What transforms of torch.func refuse, and a launch does not: they know nothing of what is around,
# and a table that is written, as of tickets, is made of no input.
REFUSED = re.compile(
    r"is a part of a tensor, and the kernel may touch what is around it"
    r"|argument 't\d+' of kernel '\w+' is written by the kernel, and is the same tensor for all"
)
# What a stub makes of an input belongs to an example only if that does.
MADE = re.compile(r"(\w+)\.(?:new_full|new_zeros|clone)\(")


class Pair(NamedTuple):
    """A result of the loop and of the vmap, which may differ by so much."""

    what: str
    loop: Tensor
    batch: Tensor
    allowed: float

    def difference(self) -> str | None:
        """Say what differs, None if nothing does."""
        i = apart(self.loop, self.batch, self.allowed)
        if i is None:
            return None
        ours, theirs = self.loop.flatten()[i].item(), self.batch.flatten()[i].item()
        return f"{self.what}[{i}] is {theirs:.17g}, in a loop {ours:.17g}"


class Batch:
    """A program whose inputs are stacked.

    `dims` has, for each input, its dimension for each vmap, from outside; None where examples share
    it.
    """

    def __init__(self, check: Check):
        from triton.backends.autodiff import autodiff

        self.program, self.upstream, self.source = (
            check.program,
            check.upstream,
            check.inputs.source,
        )
        self.sizes = SIZES[: 2 if self._is_one_of(NESTED) else 1]
        self.indices = list(itertools.product(*map(range, self.sizes)))
        self.compared = COMPARED[self._below(len(COMPARED))]
        stub, is_bare = check.op.stub, self._is_one_of(2)

        # An example may have gaps, of which the kernel knows nothing.
        def dense(kernel, *values):
            return stub(kernel, *(x.contiguous() for x in values))

        self.op = autodiff(check.op.kernel, dense, **check.request)
        self.run = (lambda *values: dense(self.op.kernel, *values)) if is_bare else self.op
        self.about = "a bare kernel" if is_bare else "an operation"
        inputs = self.program.inputs
        own = {next(iter(inputs))}
        if is_bare or self.compared in (Batch.inside, Batch.tangents):
            own |= set(MADE.findall(self.program.stub))
        self.dims = {name: self._dims(name in own) for name in inputs}
        self.watch = Watch()
        self.values = self._stacked(inputs, check.inputs.spaced)
        self.along = self._stacked(self.program.wanted, check.inputs.normal)
        # Of what it computes itself, and of its gradients.
        adds = any("tl.atomic" in line for line in self.program.body)
        meets = any(adds_atomically(found.backward.plan) for _, _, found in check.launches)
        self.forward = REORDERED if adds else 0.0
        self.backward = REORDERED if adds or meets else 0.0

    def _below(self, bound: int) -> int:
        return int(torch.randint(bound, (), generator=self.source))

    def _is_one_of(self, count: int) -> bool:
        return self._below(count) == 0

    def _dims(self, is_own: bool) -> tuple[int | None, ...]:
        """Draw the dimensions of an input: the example has one, and each vmap one more."""
        dims: list[int | None] = []
        rank = 1
        for _ in self.sizes:
            if not is_own and self._is_one_of(3):
                dims.insert(0, None)
                continue
            rank += 1
            dims.insert(0, self._below(2 * rank) - rank)
        return tuple(dims)

    def _stacked(self, names, draw) -> dict[str, Tensor]:
        def stacked(size: int, dims, counts) -> Tensor:
            if not dims:
                return draw(size)
            if dims[0] is None:
                return stacked(size, dims[1:], counts[1:])
            parts = [stacked(size, dims[1:], counts[1:]) for _ in range(counts[0])]
            return torch.stack(parts, dims[0])

        made = {n: stacked(self.program.inputs[n], self.dims[n], self.sizes) for n in names}
        return {name: self.watch.copy(x) for name, x in made.items()}

    def example(self, name: str, batch: Tensor, index) -> Tensor:
        """Return the part of an input's batch that one example has."""
        for dim, n in zip(self.dims[name], index, strict=True):
            batch = batch if dim is None else batch.select(dim, n)
        return batch

    def examples(self, index) -> dict[str, Tensor]:
        """Return the inputs of one example."""
        return {name: self.example(name, x, index) for name, x in self.values.items()}

    def batched(self, function: Callable, names) -> Callable:
        """Return a function of examples of some inputs as one of their batches."""
        for level in reversed(range(len(self.sizes))):
            function = vmap(function, tuple(self.dims[name][level] for name in names))
        return function

    def of_wanted(self, function: Callable, values) -> Callable:
        """Return a function of all inputs as one of those whose gradient is wanted."""
        wanted = self.program.wanted
        return lambda *given: function(
            *{**values, **dict(zip(wanted, given, strict=True))}.values()
        )

    def loss(self, outputs) -> Tensor:
        """Return the sum of outputs, where something is stored, times upstream gradients."""
        pairs = zip(outputs, self.upstream, strict=True)
        return sum((y.masked_fill(y.isnan(), 0.0) * u).sum() for y, u in pairs)

    def total(self, *values) -> Tensor:
        """Return the loss of all examples."""
        return self.loss(self.batched(self.run, self.values)(*values))

    def by_autograd(self, function, values) -> list[Tensor]:
        """Return the gradients of a function of all inputs."""
        wanted = self.program.wanted
        leaves = {name: x.detach().requires_grad_(name in wanted) for name, x in values.items()}
        loss, by = function(*leaves.values()), [leaves[name] for name in wanted]
        found = [None] * len(by)
        if loss.requires_grad:
            found = torch.autograd.grad(loss, by, allow_unused=True)
        return [torch.zeros_like(x) if g is None else g for g, x in zip(found, by, strict=True)]

    def by_transform(self, function, values) -> tuple[Tensor, ...]:
        """Return the same by `torch.func`."""
        wanted = self.program.wanted
        numbers = tuple(range(len(wanted)))
        return grad(self.of_wanted(function, values), numbers)(*(values[n] for n in wanted))

    def looped(self) -> dict[tuple, list[Tensor]]:
        """Return the gradients of each example."""

        def one(*values):
            return self.loss(self.op(*values))

        return {index: self.by_autograd(one, self.examples(index)) for index in self.indices}

    def each(self, what: str, names, truths, found, reordered: float) -> Iterator[Pair]:
        """Yield what each example has: `truths` are by index, `found` are batches."""
        for index, parts in truths.items():
            for name, truth, batch in zip(names, parts, found, strict=True):
                allowed = reordered * truth.norm().item()
                yield Pair(f"{what} {name} of {index}", truth, batch[index], allowed)

    def outputs(self) -> Iterator[Pair]:
        """Outputs, without a gradient."""
        found = self.batched(self.run, self.values)(*self.values.values())
        truths = {index: self.op(*self.examples(index).values()) for index in self.indices}
        yield from self.each("output", self.program.outputs, truths, found, self.forward)

    def inside(self) -> Iterator[Pair]:
        """Gradients of each example."""

        def gradients(*values):
            given = dict(zip(self.values, values, strict=True))
            return self.by_transform(lambda *values: self.loss(self.run(*values)), given)

        found = self.batched(gradients, self.values)(*self.values.values())
        wanted = self.program.wanted
        yield from self.each("gradient of", wanted, self.looped(), found, self.backward)

    def tangents(self) -> Iterator[Pair]:
        """Tangents of each example."""
        from triton.backends.autodiff.inspecting.higher_check import pushed

        wanted = self.program.wanted
        names = [*self.values, *wanted]

        def tangents(*values):
            given = dict(zip(self.values, values, strict=False))
            run = self.of_wanted(lambda *values: tuple(self.run(*values)), given)
            return jvp(run, tuple(given[n] for n in wanted), values[len(given) :])[1]

        found = self.batched(tangents, names)(*self.values.values(), *self.along.values())
        places = {name: n for n, name in enumerate(self.values)}
        truths = {}
        for index in self.indices:
            along = {places[n]: self.example(n, v, index) for n, v in self.along.items()}
            pairs = pushed(self.op, self.examples(index).values(), along)
            truths[index] = [torch.zeros_like(y) if t is None else t for y, t in pairs]
        yield from self.each("tangent of", self.program.outputs, truths, found, self.forward)

    def outside(self) -> Iterator[Pair]:
        """Gradients of the sum over examples, by `torch.func`."""
        yield from self.summed(self.by_transform(self.total, self.values))

    def around(self) -> Iterator[Pair]:
        """Gradients of the sum over examples, by autograd."""
        yield from self.summed(self.by_autograd(self.total, self.values))

    def summed(self, found) -> Iterator[Pair]:
        """Yield gradients of all examples."""
        parts = self.looped()
        for n, (name, gradient) in enumerate(zip(self.program.wanted, found, strict=True)):
            truth, terms = torch.zeros_like(gradient), torch.zeros_like(gradient)
            for index in self.indices:
                self.example(name, truth, index).add_(parts[index][n])
                self.example(name, terms, index).add_(parts[index][n].abs())
            reordered = REORDERED if None in self.dims[name] else self.backward
            yield Pair(f"gradient of {name}", truth, gradient, reordered * terms.norm().item())


COMPARED = (Batch.inside, Batch.outside, Batch.around, Batch.tangents)


def judged(check: Check) -> Verdict | None:
    """Return the first difference between a vmap and a loop as a verdict; None if there is none."""
    from triton.backends.autodiff import AutodiffError

    # Which of several programs stores last may be another one in a loop.
    if check.program.races:
        return None
    batch = Batch(check)
    for compared in (Batch.outputs, batch.compared):
        way = f"vmap of {batch.about}, {compared.__name__}"
        try:
            with watched():
                found = [pair.difference() for pair in compared(batch)]
        except AutodiffError as error:
            refused = [REFUSED, higher.REFUSED] if compared is Batch.tangents else [REFUSED]
            if not any(refusal.search(str(error)) for refusal in refused):
                raise
            continue
        for reason in filter(None, found):
            return Verdict("wrong", f"{way}: {reason}\ndims: {batch.dims}")
    return None
