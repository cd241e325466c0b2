"""A plan bound to the facts of a launch: its backward, ready to run."""

from __future__ import annotations

from ..checking.facts import Facts
from ..compiling.executable import Executable
from ..compiling.executable_plan import ExecutablePlan
from ..compiling.together import compile_all
from ..errors import DoesNotFit
from ..support.dtypes import DTYPES
from .around import Around
from .binding import Binding
from .host_program import HostProgram
from .host_steps import Registers
from .partials import SumOfPartials, Sums


class Backward(Binding):
    """The backward of one plan at launches that share their facts: a host program, bound to them.

    `executables` are its kernels; by default, those that suit the launch.
    """

    def __init__(self, executable_plan: ExecutablePlan, facts: Facts, spec, executables=None):
        super().__init__(executable_plan, facts, spec)
        plan = self.plan
        self.cotangents = plan.cotangents()
        own = [size for kind, _, size in self.buffers if kind != "saved"]
        self.counts_trips = any(size.is_counted for size in (*own, *self.sizes))
        checks = any(kernel.accesses is not None for kernel in plan.kernels)
        arounds = (Around.of(g, plan, facts, spec, checks) for g in plan.gradients)
        self.around = {a.argument: a for a in arounds if a is not None}
        self.gradients = {g.argument: g for g in plan.gradients}
        self.tallied = self._tallied()
        self.sums = {g.argument: self._sum(g) for g in plan.gradients if g.partials is not None}
        self.pointers = tuple(sorted(plan.reread()))
        _, *stages = HostProgram.of(plan)
        self.stages = tuple(map(self.needed, stages))
        if executables is None:
            executables = self._suited()
        self.launches = tuple(map(self.bind, executables))
        self._bind_program()

    def _tallied(self) -> frozenset[int]:
        """Return the gradients whose additions are counted, so that some are rounded at once."""
        return frozenset(
            i
            for i, g in self.gradients.items()
            if g.tallied is not None and self.facts.evaluate(g.tallied.tally.when)
        )

    def _sum(self, gradient) -> SumOfPartials:
        tensor = self.facts.tensors[gradient.argument]
        count = self.facts.evaluate(gradient.partials)
        layout = (tensor.shape, tensor.strides, DTYPES[gradient.dtype], tensor.dtype)
        return SumOfPartials(count, tensor.own.total, *layout)

    def _bind_program(self) -> None:
        """Make functions of the steps."""
        self._forget()
        self._is_compiled = False
        # What adds up partial sums.
        self.totals: list[Sums] = []
        self._prepare, self._launch, self._finish = map(self.functions_of, self.stages)
        self._steps = (*self._prepare, *self._launch, *self._finish)
        self._rest = self.known()

    def total(self, arguments) -> Sums:
        """Return what adds up partial sums of these arguments' gradients."""
        self.totals.append(Sums([self.sums[i] for i in arguments], self.device))
        return self.totals[-1]

    def give_to(self, based) -> Backward:
        """Return this backward with gradients for the bases of these arguments.

        These are gradients of the elements around them. Those of other arguments have to be zero.
        """
        for around in self.around.values():
            if around.argument not in based:
                around.base = None
        return self

    def _suited(self) -> list[Executable]:
        return [executable.suited(self.facts) for executable in self.executable_plan.backward]

    def _kernels(self):
        """Yield every kernel that is launched and has to be compiled."""
        if self.counts_trips:
            yield self.executable_plan.counting
        for executable, *_ in self.sequence:
            yield executable
        yield from (total for total in self.totals if total.is_kernel)

    def compile(self) -> None:
        """Compile the kernels; if a variant does not fit on the device, the next one is used."""
        while not self._is_compiled:
            try:
                compile_all(self._kernels())
                self._is_compiled = True
            except DoesNotFit:
                before = [executable for executable, *_ in self.launches]
                suited = self._suited()
                if before == suited:
                    raise
                self.launches = tuple(map(self.bind, suited))
                self._bind_program()

    def spanned(self) -> set[int]:
        """Return the arguments for which the range of their storage matters."""
        loose = {g.argument for g in self.plan.gradients if not g.stays_inside}
        return loose | self.cotangents

    # The choice of a backward has needed the counts already.
    count = None

    def count_trips(self, arguments, live):
        """Run the counting kernel and return the counters; None if no size depends on them."""
        return self.counting.run(arguments, live) if self.counts_trips else None

    def with_executables(self, executables) -> Backward:
        """Return this backward with differently compiled kernels."""
        based = {i for i, around in self.around.items() if around.base is not None}
        return Backward(self.executable_plan, self.facts, self.spec, executables).give_to(based)

    def run(self, arguments, buffers, upstream, live, counts) -> dict:
        """Run the backward; returns the gradients by argument.

        `arguments` are the TTIR function's arguments, pointers as tensors or addresses; `buffers`
        the saved buffers in order; `upstream` the gradients of outputs, absent ones zero; `live`
        the memory behind the first two, for checks; `counts` come from `count_trips`.
        """
        if not self._is_compiled:
            self.compile()
        registers = self._registers(arguments, buffers, upstream, live, counts)
        for step in self._steps:
            step(registers)
        return registers.gradients

    def prepare(self, arguments, buffers, upstream, live, counts) -> Registers:
        """Make the memory that the backward kernels need, to measure these; see `run`."""
        registers = self._registers(arguments, buffers, upstream, live, counts)
        for prepare in self._prepare:
            prepare(registers)
        return registers

    def _registers(self, arguments, buffers, upstream, live, counts) -> Registers:
        values = [*arguments, *self._rest]
        if self.saved:
            for n, buffer in zip(self.saved, buffers, strict=True):
                values[self.place("buffer", n)] = buffer.data_ptr()
        return Registers(values, live, upstream, counts)

    def launch(self, registers: Registers) -> None:
        """Launch the backward kernels, to measure them."""
        for launch in self._launch:
            launch(registers)
