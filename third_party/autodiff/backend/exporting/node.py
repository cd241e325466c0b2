"""The autograd node of an exported launch: an `autograd.Function` as text."""

from __future__ import annotations

from functools import cached_property

from ..printing.expr_source import Text, simplified
from ..printing.python_text import call, laid_out, paragraph, targets, tuple_of
from ..programs.host_program import HostProgram
from ..programs.host_steps import HandOn
from .arguments import operands_of
from .bundle import literal
from .launch import ExportedLaunch, Printed, stem


class Node:
    """Writes the node for a launch, with one forward and several backward kernels."""

    def __init__(self, of: ExportedLaunch, forward: Printed, backward: list[Printed]):
        self.of = of
        self._printed = forward
        self._kernels = dict(zip(of.executables, backward, strict=True))

    @property
    def launched(self) -> list[str]:
        """The names of the kernels."""
        return [self._printed.name, *(kernel.name for kernel in self._kernels.values())]

    def text(self) -> str:
        """Return the `autograd.Function`."""
        names = self.of.spec.names
        inputs = ", ".join(f"`{names[i]}`" for i in self.of.plan.inputs)
        outputs = [f"`{names[j]}`" for j in self.of.returned]
        words = f"Takes the grid and the arguments, returns what it writes: {', '.join(outputs)}. "
        upstream = [f"`{names[j]}`" for j in self.of.returned if j in self.of.plan.cotangents()]
        refused = [f"`{names[j]}`" for j in self.of.returned if self.of.has_no_backward_for(j)]
        source = f"those of {', '.join(upstream)}" if upstream else "nothing that it writes"
        words += f"The gradients of {inputs} come from {source}." if inputs else ""
        if self.of.without_influence:
            zeros = ", ".join(f"`{names[i]}`" for i in sorted(self.of.without_influence))
            words += f" No gradient reaches {zeros}: zeros are returned."
        if refused:
            words += f" A gradient of {', '.join(refused)} is an AssertionError."
        self._name_operands()
        computed = self._computed()
        self.told = self.of.told_in(computed, *self.of.grids)
        head = f"class {self.of.class_name}(torch.autograd.Function):"
        doc = f'    """One launch of `{self.of.kernel_name}`.'
        return laid_out(
            [
                head,
                doc,
                "",
                paragraph(words, 4),
                '    """',
                "",
                *self._forward(),
                "",
                *self._backward(),
                *computed,
            ]
        )

    def _name_operands(self) -> None:
        """Name all operands of the kernels: as the kernels do, where they agree."""
        self.operands: dict[tuple[str, int], str] = {}
        for i, name in enumerate(self.of.variables):
            self.operands["argument", i] = name
        for executable, printed in self._kernels.items():
            for operand, name in zip(executable.kernel.operands, printed.parameters, strict=True):
                if operand[0] == "counters":
                    continue
                if operand not in self.operands:
                    self.operands[operand] = self.of.names.give(name)
        for j in self.of.plan.cotangents():
            self.operand("cotangent", j)

    def operand(self, kind: str, index: int) -> str:
        """Return the name of an operand."""
        key = (kind, index)
        if key not in self.operands:
            buffer = kind == "buffer"
            wanted = (
                self.of.plan.buffers[index].name
                if buffer
                else f"d_{stem(self.of.variables[index])}"
            )
            self.operands[key] = self.of.names.give(wanted)
        return self.operands[key]

    @cached_property
    def handed(self) -> list[tuple[str, str]]:
        """Pairs of names: in the forward, and in the backward after it was saved."""
        steps = HostProgram.of(self.of.execution.plan).forward
        return [pair for s in steps if isinstance(s, HandOn) for pair in s.names(self)]

    @cached_property
    def copies(self) -> dict[int, str]:
        """The names of what arguments held before the launch."""
        return {
            i: self.of.names.give(f"{self.of.variables[i]}_before")
            for i in self.of.execution.copied
        }

    def _forward(self) -> list[str]:
        names, plan, execution = self.of.variables, self.of.plan, self.of.execution
        untouched = [*self.of.grids, *self.of.descriptors]
        lines = [
            "    @staticmethod",
            call("def forward(", [self.of.ctx, *untouched, *names], "):", 4),
            '        """Launch the kernel, and keep what the backward reads."""',
        ]
        self.text = self.of.text(self.of.programs, False)
        self.device = f"{names[plan.outputs[0]]}.device"
        self.plan = execution.plan
        for step in HostProgram.of(self.plan).forward:
            if step.is_needed(execution):
                lines += step.write(self)
        floats = [names[j] for j in self.of.returned]
        changed = [names[j] for j in plan.outputs if j not in self.of.returned]
        if execution.views:
            changed += floats
        for name in changed:
            lines.append(f"        torch.autograd.graph.increment_version({name})")
        lines.append(f"        {self.of.ctx}.set_materialize_grads(False)")
        kept = {a: a for a, _ in self.handed}
        if execution.views:
            aliases = {name: self.of.names.give(f"{name}_written") for name in floats}
            for name, alias in aliases.items():
                lines.append(f"        {alias} = {name}.detach()")
            kept |= {name: alias for name, alias in aliases.items() if name in kept}
            floats = list(aliases.values())
        else:
            lines.append(call(f"{self.of.ctx}.mark_dirty(", floats, indent=8))
        lines.append(call(f"{self.of.ctx}.save_for_backward(", kept.values(), indent=8))
        self.of.call("Layout")
        told = list(self.told.values())
        lines.append(f"        {self.of.ctx}.launch = {tuple_of(told)}")
        lines.append(f"        return {', '.join(floats)}")
        return lines

    def launch_forward(self) -> list[str]:
        """Return the lines that launch the forward."""
        plan, lines = self.plan, []
        if plan.forward is None:
            taken = [name for _, name in operands_of(self.of)]
            return [self._printed.launch(self.of.grid, taken, 8)]
        operands = [
            self.text.of(plan.sizes[n]) if kind == "size" else self.operand(kind, n)
            for kind, n in plan.forward.operands
        ]
        grid = self._grid_of(plan.forward, self.text, lines, 8)
        return [*lines, self._printed.launch(grid, operands, 8)]

    def _grid_of(self, kernel, text: Text, lines: list[str], indent: int) -> str:
        """Return the grid of a kernel; a computed one gets a name."""
        if kernel.grid is None:
            return self.of.programs
        axes = [simplified(e) for e in kernel.grid]
        while len(axes) > 1 and axes[-1] == 1:
            axes.pop()
        grid = tuple_of(map(text.of, axes))
        if len(axes) == 1 and text.of(axes[0]).isidentifier():
            return grid
        name = self.of.names.give("blocks")
        lines.append(f"{' ' * indent}{name} = {grid}")
        return name

    def _backward(self) -> list[str]:
        """Return the first lines of the backward."""
        upstream = [self.operand("cotangent", j) for j in self.of.returned]
        arguments = sorted({*self.of.plan.inputs} | self.of.without_influence)
        told = ", ".join(self.of.spec.names[i] for i in arguments)
        own = f"{self.of.class_name}.gradients"
        given = [literal(self.of.kernel_name), own, self.of.ctx, "upstream"]
        lines = [
            "    @staticmethod",
            f"    def backward({self.of.ctx}, *upstream):",
            '        """Return the gradients, which cannot be differentiated again."""',
            call(f"return {self.of.call('first_order')}(", given, indent=8),
            "",
            "    @staticmethod",
            call("def gradients(", [self.of.ctx, *upstream], "):", 4),
            f'        """Return the gradients of {told}."""',
        ]
        kept = [name for _, name in self.handed]
        for names, attribute in ((kept, "saved_tensors"), (list(self.told), "launch")):
            if names:
                lines.append(f"        {targets(names)} = {self.of.ctx}.{attribute}")
        return lines

    def _computed(self) -> list[str]:
        """Return the lines of the backward that use what was saved."""
        self.text = self.of.text(self.of.programs, True)
        gradients = self.of.plan.gradients
        self.device = f"{self.of.layouts[gradients[0].argument]}.device" if gradients else ""
        names = self.of.variables
        lines = []
        for i in self.of.execution.reread:
            if i in self.of.backward.pointers:
                more = ["around=True"] if i in self.of.read_around else []
                made = call(f"{self.of.layouts[i]}.restored(", [names[i], *more])
                lines.append(f"        {names[i]} = {made}")
        for j in self.of.returned:
            if self.of.has_no_backward_for(j):
                name = self.operand("cotangent", j)
                came = f"a gradient of {self.of.spec.names[j]} came, for which nothing was exported"
                arguments = [f"{name} is None", f'"{came}"']
                lines.append(call(f"{self.of.call('require')}(", arguments, indent=8))
        # The gradients of arguments, as expressions.
        self.results: dict[int, str] = {}
        self.plan = self.of.plan
        for steps in self.of.backward.stages:
            for step in steps:
                lines += step.write(self)
        return [*lines, *self._returned()]

    def is_tallied(self, argument: int) -> str:
        """Return the condition, as a number for the backward kernels, under which additions are
        counted first.
        """
        return self.text.of(["min", 1, self.of.tallied[argument].tally.kernel.when])

    def launch(self, executable, indent: int) -> list[str]:
        """Return the lines that launch a kernel of the backward."""
        lines: list[str] = []
        grid = self._grid_of(executable.kernel, self.text, lines, indent)
        operands = [
            self.of.counts if kind == "counters" else self.operand(kind, index)
            for kind, index in executable.kernel.operands
        ]
        return [*lines, self._kernels[executable].launch(grid, operands, indent)]

    def _returned(self) -> list[str]:
        """Return the line that returns the gradients."""
        plan, results = self.of.plan, []
        for i in range(len(self.of.spec.names)):
            if i in self.of.without_influence:
                results.append(f"{self.of.layouts[i]}.zeros()")
            elif i in plan.inputs and i in self.of.execution.slots:
                results.append(self.results[i])
            else:
                results.append("None")
        untouched = len(self.of.grids) + len(self.of.descriptors)
        results = ["None"] * untouched + results
        trailing = 0
        while results and results[-1] == "None":
            results.pop()
            trailing += 1
        more = ["None"] * trailing if trailing < 3 else [f"*[None] * {trailing}"]
        return [call("return ", [*results, *more], "", 8)]
