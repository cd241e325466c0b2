"""The forward of one plan at launches that share their facts: a host program, bound to them."""

from __future__ import annotations

import torch

from ..checking.facts import Facts
from ..compiling.device_launch import load, prepared_launch
from .binding import Binding
from .host_program import HostProgram
from .host_steps import Registers


class Forward(Binding):
    """The launch that a user asks for, and what it copies before and leaves for the backward.

    `copied` are the arguments that it may change, and whose old contents the backward reads.
    """

    def __init__(self, executable_plan, facts: Facts, spec, copied):
        super().__init__(executable_plan, facts, spec)
        self.copied = copied
        self.program = self.needed(HostProgram.of(self.plan).forward)
        self._steps = self.functions_of(self.program)
        self._rest = self.known()
        # Whether it is the user's own launch, and nothing else.
        self._is_plain = executable_plan.forward is None and len(self._steps) == 1
        # What a plain one is launched by, once it has been.
        self.launch = None

    def count(self, registers: Registers) -> None:
        """Count how often loops run."""
        tensors = [value for value in registers.live if isinstance(value, torch.Tensor)]
        registers.counts = self.counting.run(registers.live, tensors)

    def compile(self, kernel) -> None:
        """Compile the forward; `kernel` is the user's own, if that is launched."""
        if self.executable_plan.forward is not None:
            self.executable_plan.forward.compile()
        elif 0 not in self.facts.grid:
            load(kernel)

    def _kernels(self):
        """Yield every kernel of ours that is launched."""
        return (executable for executable, *_ in self.sequence)

    def run(self, kernel, grid, values, leaves) -> list[torch.Tensor]:
        """Launch; returns copies of arguments, and what the forward leaves."""
        if self._is_plain:
            self.launch = prepared_launch(kernel, grid, self.device)
            self.launch(values)
            return []
        registers = Registers([*leaves, *self._rest], leaves, None, None)
        registers.call = (kernel, grid, values)
        for step in self._steps:
            step(registers)
        return registers.handed
