"""A plan bound to the facts of a launch: the backward as flat lists, ready to run."""

from __future__ import annotations

import copy
from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple

import torch

from .around import Around
from .bounds import CheckedLaunch
from .counting import Counting, Size
from .errors import DoesNotFit
from .executable import Executable
from .facts import Facts
from .memory import allocate, gradient_of, is_non_overlapping, lay_out
from .partials import Finish, SumOfPartials
from .plan import Plan, Tallied
from .together import compile_all

DTYPES = {
    "i1": torch.bool,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E4M3FNUZ": torch.float8_e4m3fnuz,
    "f8E5M2": torch.float8_e5m2,
    "f8E5M2FNUZ": torch.float8_e5m2fnuz,
}


# The key of a base's gradient is (BASE, argument).
BASE = "base"


class Handle:
    """A plan with its kernels' executables, which are compiled when first launched.

    `chosen` are compile options of the backward kernels that replace the forward's and the plan's.
    """

    def __init__(self, plan: Plan, target, options: dict, chosen: dict):
        def executable(kernel, chosen=None):
            return None if kernel is None else Executable(kernel, target, options, chosen)

        self.plan = plan
        self.forward = executable(plan.forward)
        self.backward = tuple(executable(kernel, chosen) for kernel in plan.backward)
        self.counting = executable(plan.counting)
        self.tallied = {
            g.argument: Tallied(*(executable(kernel, chosen) for kernel in g.tallied))
            for g in plan.gradients
            if g.tallied is not None
        }
        # The best options that were measured, by the variants that a launch allows; see tuning.py.
        self.measured: dict = {}
        self._others: dict = {}

    def otherwise(self, own: Executable, choice) -> Executable:
        """Return a backward kernel compiled with other options, a tuple of pairs."""
        if dict(choice).items() <= own.options.items():
            return own
        found = self._others.get((own, choice))
        if found is None:
            chosen = {**own.chosen, **dict(choice)}
            found = Executable(own.kernel, own.target, own.inherited, chosen)
            self._others[own, choice] = found
        return found

    def with_gradients(self, gradients) -> Handle:
        """Return it with `gradients` in place of those of the same arguments."""
        handle = copy.copy(self)
        handle.plan = self.plan.with_gradients(gradients)
        return handle

    def keep(self, variants, own: Executable, choice) -> None:
        """Forget all compiled variants of a backward kernel but `own` with these options."""
        keys = [key for key in self._others if key[0] in variants and key != (own, choice)]
        for key in keys:
            del self._others[key]


def _places(arguments: int, buffers: int) -> dict[str, int]:
    """Return where operands of each kind start in the pool, the list of all operands."""
    kinds = ("argument", "cotangent", "gradient", "rounded", "buffer")
    starts = {kind: n * arguments for n, kind in enumerate(kinds)}
    return {**starts, "size": starts["buffer"] + buffers}


class _Operands:
    """Picks a kernel's operands from the pool; `starts` are where each kind begins."""

    def __init__(self, operands, starts: dict[str, int]):
        indices = [starts[kind] + index for kind, index in operands if kind in starts]
        pick = itemgetter(*indices) if indices else None
        # itemgetter returns a bare value for one index.
        self.pick = (lambda pool: (pick(pool),)) if len(indices) == 1 else pick or (lambda _: ())


class _Shadow:
    """How to make the gradient buffer of one argument, and the gradient from it."""

    __slots__ = ("argument", "shape", "strides", "span", "dtype", "init", "result", "zero", "plain",
                 "returned", "partials", "is_tallied")  # fmt: skip

    def __init__(self, gradient, facts, has_surroundings: bool):
        self.argument = gradient.argument
        tensor = facts.tensors[self.argument]
        self.shape, self.strides, self.result = tensor.shape, tensor.strides, tensor.dtype
        self.dtype = DTYPES[gradient.dtype]
        self.init, self.returned = gradient.init, gradient.returned
        self.span = tensor.own if gradient.stays_inside else facts.span(gradient.argument)
        # Elements that may not be written, and those around the tensor, have gradient zero.
        self.zero = gradient.init == "zero" or not gradient.fills_tensor or has_surroundings
        tallied = gradient.tallied
        self.is_tallied = tallied is not None and bool(facts.evaluate(tallied.tally.when))
        rounded = self.is_tallied or self.dtype == self.result
        self.plain = rounded and is_non_overlapping(self.shape, self.strides)
        self.partials = None
        if gradient.partials is not None:
            count = facts.evaluate(gradient.partials)
            layout = (self.shape, self.strides, self.dtype, self.result)
            self.partials = SumOfPartials(count, tensor.own.total, *layout)

    def make(self, cotangents, device):
        """Return the initialised gradient buffer."""
        if self.partials is not None:
            return self.partials.make(device)
        zero = self.zero and not self.is_tallied
        shadow = allocate(self.shape, self.strides, self.span, self.dtype, device, zero)
        if self.init == "cotangent":
            upstream = cotangents.get(self.argument)
            if upstream is not None:
                shadow.copy_(upstream)
            elif not self.zero:
                shadow.zero_()
        return shadow

    def make_rounded(self, device):
        """Return memory for the gradient in the tensor's dtype, if sums are in a wider type."""
        return allocate(self.shape, self.strides, self.span, self.result, device, True)

    def finish(self, shadow):
        """Return the gradient of the tensor, or its partial sums if these are added up later."""
        return shadow if self.plain else gradient_of(shadow, self.result)


def buffer_sizes(plan: Plan, facts: Facts) -> tuple:
    """Return `(kind, dtype, size)` of each buffer of a plan."""
    return tuple(
        (b.kind, DTYPES[b.dtype], Size(b.size, facts, f"buffer {b.name!r} of {plan.kernel!r}"))
        for b in plan.buffers
    )


def grid_of(kernel, facts: Facts) -> tuple[int, int, int]:
    """Return the grid extents of a generated kernel."""
    if kernel.grid is None:
        return facts.grid
    return tuple(facts.evaluate(e) for e in kernel.grid)


class Prepared(NamedTuple):
    """The pool of operands of a backward's kernels, and the memory behind it."""

    pool: list
    sums: list[torch.Tensor]  # of the gradients, or what they are rounded to
    memory: tuple[torch.Tensor, ...]


class Bound(NamedTuple):
    """A kernel of a backward at a launch: its grid, how to pick its operands, and its checks."""

    executable: Executable
    grid: tuple[int, int, int]
    pick: Callable
    checked: CheckedLaunch | None


class Backward:
    """The backward of one plan at launches that share their facts.

    `executables` are its kernels; by default, those that suit the launch.
    """

    def __init__(self, handle: Handle, facts: Facts, spec, executables=None):
        plan = handle.plan
        self.handle = handle
        self.plan = plan
        self.facts, self.spec = facts, spec
        self.device = facts.device
        self.cotangents = plan.cotangents()
        self.buffers = buffer_sizes(plan, facts)
        self._starts = _places(len(plan.arguments), len(self.buffers))
        self.saved = tuple(n for n, b in enumerate(self.buffers) if b[0] == "saved")
        self.sizes = tuple(Size(e, facts, f"a size of {plan.kernel!r}") for e in plan.sizes)
        own = [size for kind, _, size in self.buffers if kind != "saved"]
        self._counts = any(size.is_counted for size in (*own, *self.sizes))
        self.counting = None
        if plan.counting is not None:
            self.counting = Counting(plan, handle.counting, facts, spec)
        checks = any(kernel.accesses is not None for kernel in plan.kernels)
        arounds = (Around.of(g, plan, facts, spec, checks) for g in plan.gradients)
        self.around = {a.argument: a for a in arounds if a is not None}
        self.shadows = tuple(_Shadow(g, facts, g.argument in self.around) for g in plan.gradients)
        partials = {s.argument: s.partials for s in self.shadows if s.partials is not None}
        self.finish = Finish(partials, facts.device) if partials else None
        self.layouts = {
            j: (facts.tensors[j].shape, facts.tensors[j].strides, facts.tensors[j].dtype,
                facts.tensors[j].span)
            for j in self.cotangents
        }  # fmt: skip
        self.pointers = tuple(sorted(plan.reread()))
        tallied = [handle.tallied[s.argument] for s in self.shadows if s.is_tallied]
        self._before = self._bound(kernel for t in tallied for kernel in (t.tally, t.clear))
        self._after = self._bound(t.round for t in tallied)
        self.launches = self._suited() if executables is None else self._bound(executables)

    def give_to(self, based) -> Backward:
        """Return this backward with gradients for the bases of these arguments.

        These are gradients of the elements around them. Those of other arguments have to be zero.
        """
        for around in self.around.values():
            if around.argument not in based:
                around.base = None
        return self

    def bind(self, executable: Executable) -> Bound:
        """Return how a kernel, or another variant of it, is launched."""
        kernel = executable.kernel
        pick = _Operands(kernel.operands, self._starts).pick
        checked = CheckedLaunch.of(kernel, self.spec, self.plan)
        return Bound(executable, grid_of(kernel, self.facts), pick, checked)

    def _bound(self, executables) -> tuple[Bound, ...]:
        return tuple(self.bind(executable) for executable in executables)

    def _suited(self) -> tuple[Bound, ...]:
        return self._bound(executable.suited(self.facts) for executable in self.handle.backward)

    @property
    def sequence(self) -> tuple[Bound, ...]:
        """All kernels in order, with those that count contributions, clear and round gradients."""
        return (*self._before, *self.launches, *self._after)

    def _kernels(self):
        """Yield every kernel that is launched and has to be compiled."""
        if self._counts:
            yield self.handle.counting
        for executable, *_ in self.sequence:
            yield executable
        if self.finish is not None:
            yield from self.finish.kernels

    def compile(self) -> None:
        """Compile the kernels; if a variant does not fit on the device, the next one is used."""
        while True:
            try:
                compile_all(self._kernels())
                return
            except DoesNotFit:
                before = [executable for executable, *_ in self.launches]
                self.launches = self._suited()
                if before == [executable for executable, *_ in self.launches]:
                    raise

    def spanned(self) -> set[int]:
        """Return the arguments for which the range of their storage matters."""
        loose = {g.argument for g in self.plan.gradients if not g.stays_inside}
        return loose | self.cotangents

    def count_trips(self, arguments, tensors):
        """Run the counting kernel and return the counters; None if no size depends on them."""
        return self.counting.run(arguments, tensors) if self._counts else None

    def with_executables(self, executables) -> Backward:
        """Return this backward with differently compiled kernels."""
        based = {i for i, around in self.around.items() if around.base is not None}
        return Backward(self.handle, self.facts, self.spec, executables).give_to(based)

    def run(self, arguments, saved, upstream, tensors, counts) -> dict:
        """Run the backward kernels; returns the gradients by argument. See `prepare`."""
        self.compile()
        prepared = self.prepare(arguments, saved, upstream, tensors, counts)
        self.launch(prepared)
        return self._finish(prepared.sums)

    def prepare(self, arguments, saved, upstream, tensors, counts) -> Prepared:
        """Make the memory that the backward kernels need.

        `arguments` are the TTIR function's arguments, pointers as tensors or addresses; `saved`
        the saved buffers in order; `upstream` the gradients of outputs, absent ones zero;
        `tensors` the memory behind the first two, for checks; `counts` come from `count_trips`.
        """
        device = self.device
        cotangents = {}
        for j, (shape, strides, dtype, span) in self.layouts.items():
            gradient = upstream.get(j)
            if gradient is None:
                cotangents[j] = allocate(shape, strides, span, dtype, device, True)
            else:
                cotangents[j] = lay_out(gradient, shape, strides, dtype, span)
        shadows = [shadow.make(cotangents, device) for shadow in self.shadows]
        starts = self._starts
        sizes = [size.get(counts) for size in self.sizes]
        pool = [*arguments, *(None,) * (starts["size"] - len(arguments)), *sizes]
        for j, tensor in cotangents.items():
            pool[starts["cotangent"] + j] = tensor.data_ptr()
        for shadow, tensor in zip(self.shadows, shadows, strict=True):
            pool[starts["gradient"] + shadow.argument] = tensor.data_ptr()
        held, sums = [], list(shadows)
        for n, shadow in enumerate(self.shadows):
            if shadow.is_tallied:
                held.append(shadows[n])
                sums[n] = shadow.make_rounded(device)
            # Without a tally, nothing is stored in this memory.
            pool[starts["rounded"] + shadow.argument] = sums[n].data_ptr()
        for n, (kind, dtype, size) in enumerate(self.buffers):
            if kind != "saved":
                make = torch.zeros if kind == "tally" else torch.empty
                buffer = make(size.get(counts), dtype=dtype, device=device)
                held.append(buffer)
                pool[starts["buffer"] + n] = buffer.data_ptr()
        for n, buffer in zip(self.saved, saved, strict=True):
            pool[starts["buffer"] + n] = buffer.data_ptr()
        return Prepared(pool, sums, (*tensors, *cotangents.values(), *sums, *held))

    def launch(self, prepared: Prepared) -> None:
        """Launch the backward kernels."""
        for executable, grid, pick, checked in self.sequence:
            operands = pick(prepared.pool)
            if checked is None:
                executable.launch(grid, operands)
            else:
                checked.launch(executable, grid, operands, prepared.memory, self.device)

    def _finish(self, shadows) -> dict:
        """Return the gradients by argument; those of bases have the key `(BASE, argument)`."""
        made = tuple(zip(self.shadows, shadows, strict=True))
        around = self.around
        gradients = {
            shadow.argument: shadow.finish(tensor)
            for shadow, tensor in made
            if shadow.returned and shadow.partials is None and shadow.argument not in around
        }
        if around:
            buffers = {shadow.argument: tensor for shadow, tensor in made}
            for argument, apart in around.items():
                own, rest = apart.split(buffers[argument])
                gradients |= {argument: own, (BASE, argument): rest}
        if self.finish is not None:
            partials = {s.argument: tensor for s, tensor in made if s.partials is not None}
            gradients.update(self.finish.run(partials))
        return gradients
