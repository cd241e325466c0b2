"""One launch and its backward as Python: an `autograd.Function`, and what checks and applies it.

The text does what `Execution` and `Backward` do for launches that share their facts. Expressions
become Python, and facts that another launch may not have become assertions.
"""

from __future__ import annotations

import ast
from functools import cached_property
from textwrap import dedent

import torch
from triton.compiler.compiler import make_backend

from ..checking.expr import named
from ..checking.spaces import are_inside, bounds
from ..compiling.executable import Executable
from ..errors import DoesNotFit
from ..plans.plan import Tallied
from ..printing.expr_source import Text, simplified
from ..printing.python_text import call
from ..storage.memory import is_dense
from .bundle import literal, names_of, private
from .checks import Unwritten, ends_of, parts_of, refused

# Options that are always written in a launch.
_SAID = ("num_warps", "num_stages")
_USER_GRID = [["grid", axis] for axis in range(3)]


class Names:
    """Makes names unique."""

    def __init__(self, taken=()):
        self._taken = set(taken)

    def give(self, wanted: str) -> str:
        """Return the name, with a number if it is taken."""
        name, number = wanted, 0
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name


class Printed:
    """A kernel of a module: its name there, its parameters, the options of its launches."""

    def __init__(self, name: str, parameters, options: dict, target):
        self.name = name
        self.parameters = tuple(parameters)
        self.options = said_options(options, target)

    def launch(self, grid: str, arguments, indent: int) -> str:
        """Return the line that launches it."""
        options = [f"{name}={literal(value)}" for name, value in self.options.items()]
        return call(f"{self.name}[{grid}](", [*arguments, *options], ")", indent)


def said_options(options: dict, target) -> dict:
    """Return the options of a launch that differ from Triton's defaults."""
    usual = make_backend(target).parse_options({})
    return {
        name: value
        for name, value in options.items()
        if name in _SAID or (hasattr(usual, name) and getattr(usual, name) != value)
    }


class ExportedLaunch:
    """Writes a launch: `execution` is how it runs, `backward` how its backward does.

    `suffix` distinguishes it from other launches of the kernel in the module. A graph does not know
    whether a tensor fills its storage. Raises an `AutodiffError` for what no module can do.
    """

    def __init__(self, execution, backward, suffix: str, knows_storage: bool = True):
        self.state, self.execution = execution.state, execution
        self.spec = spec = self.state.spec
        self.backward = backward
        self.plan = self.backward.plan
        self.facts = self.backward.facts
        self.suffix, self.knows_storage = suffix, knows_storage
        self.kernel_name = spec.name
        self.calls: set[str] = set()
        self._refuse()
        self.backward.compile()
        if self.counting is not None:
            self.counting.compile()
        self.steps = self._steps()
        self._refuse_mended()
        self.names = Names(self.parameters)
        self.grid = self.names.give("grid")
        self.ctx = self.names.give("ctx")
        self._held: dict[int, str] = {}
        self.counts = self.names.give("counts")

    # --------------------------------------------------------------------------------------
    # What cannot be written
    # --------------------------------------------------------------------------------------

    def _refuse(self) -> None:
        """Raise an error for plans that a module could only partly do."""
        spec, plan, facts = self.spec, self.plan, self.facts
        reserved = {"torch", "triton", "tl", "math", "functools", "os"} & set(self.parameters)
        opaque = [spec.names[i] for i in spec.pointers if not facts.tensors[i].is_tensor]
        for holds, why in (
            (reserved, f"a parameter is called as a module is, {sorted(reserved)}"),
            (opaque, f"argument {opaque[:1]} is no tensor"),
            (not plan.outputs, "it writes to no tensor of floats, so that no gradients come"),
            (any(k.accesses is not None for k in plan.kernels), "TRITON_AUTODIFF_CHECK is set"),
        ):
            if holds:
                raise refused(self.kernel_name, why)
        for objection in self.execution.races.values():
            raise refused(self.kernel_name, objection, "then export it")
        around = {i: "reads around it, where there are gradients" for i in self.backward.around}
        spills = self.execution.spills.items()
        around |= {j: f"stores around it{s.where}, where gradients may come" for j, s in spills}
        for i, does in around.items():
            raise refused(
                self.kernel_name,
                f"argument {spec.names[i]!r} is a part of a larger tensor, and the kernel {does}, "
                "of which a module knows nothing",
                "pass the whole tensor, and where its part begins as a number",
            )

    def _steps(self) -> list[list[Executable]]:
        """Return the backward kernels in order, each as a list of variants, the best first.

        If one was measured to be the best, it is the only one.
        """
        steps = []
        for bound in self.backward.launches:
            chosen = bound.executable
            for own in self.backward.executable_plan.backward:
                if chosen in (*own.variants, own):
                    steps.append([e for e in (*own.variants, own) if _fits(e)])
                    break
            else:
                steps.append([chosen])
        return steps

    @property
    def executables(self) -> list[Executable]:
        """All backward kernels, preceded by the counting kernel if there is one."""
        counting = [] if self.counting is None else [self.counting]
        own = (executable for step in self.steps for executable in step)
        return [*counting, *own, *(e for tallied in self.tallied.values() for e in tallied)]

    @cached_property
    def tallied(self) -> dict[int, Tallied]:
        """By argument, the kernels that count additions first, and clear and round the gradient."""
        tallied = self.backward.executable_plan.tallied
        return {i: tallied[i] for i in self.backward.gradients if i in self.backward.tallied}

    def result(self, argument: int) -> torch.dtype:
        """Return the type of an argument's gradient."""
        return self.facts.tensors[argument].dtype

    @property
    def counting(self) -> Executable | None:
        """The kernel that counts iterations, if memory depends on them."""
        return self.backward.executable_plan.counting

    @property
    def forward(self) -> Executable | None:
        """The kernel that stores for the backward, None if it is the user's own kernel."""
        return None if self.plan.forward is None else self.backward.executable_plan.forward

    @property
    def derived(self) -> list[Executable]:
        """All derived kernels."""
        return [*([] if self.forward is None else [self.forward]), *self.executables]

    def _refuse_mended(self) -> None:
        for executable in self.derived:
            executable.compile()
            if executable.is_mended:
                raise refused(
                    self.kernel_name,
                    f"Triton compiles {executable.kernel.name!r} wrongly, which is mended after it",
                    "use a newer Triton, or keep calling it through this package",
                )

    @cached_property
    def loose(self) -> set[int]:
        """The arguments whose gradients may be outside of the tensor, as far as checks tell."""
        return {g.argument for g in self.plan.gradients if not g.stays_inside}

    @cached_property
    def whole(self) -> set[int]:
        """The arguments that must fill their storage."""
        matter = self.loose | self.plan.cotangents()
        return {i for i in matter if self.facts.tensors[i].is_whole}

    @cached_property
    def parts(self) -> set[int]:
        """The arguments that are parts of their storage, where that matters."""
        return (self.loose | self.plan.cotangents()) - self.whole

    @cached_property
    def scattered(self) -> set[int]:
        """Those of them whose gradients are added up, and that have gaps or repeated elements."""
        tensors = ((i, self.facts.tensors[i]) for i in self.parts & self.loose)
        return {i for i, tensor in tensors if not is_dense(tensor.shape, tensor.strides)}

    @cached_property
    def read_around(self) -> set[int]:
        """The parts of larger tensors that the exported launch may read around."""
        facts = self.execution.facts
        tensors = ((i, facts.tensors[i]) for i in self.execution.reread)
        parts = {i: tensor.own.total for i, tensor in tensors if not tensor.is_whole}
        return {i for i, size in parts.items() if not self._stays_inside(i, size, facts)}

    def _stays_inside(self, argument: int, size: int, facts) -> bool:
        """Return whether the exported launch touches only elements of an argument's tensor."""
        ends = bounds(self.plan.accesses.get(argument, ()), facts.scalars, facts.grid)
        return are_inside(ends, size)

    # --------------------------------------------------------------------------------------
    # Arguments
    # --------------------------------------------------------------------------------------

    @cached_property
    def parameters(self) -> list[str]:
        return list(self.spec.kernel.src.signature)

    @cached_property
    def variables(self) -> list[str]:
        """The names of arguments in the module: parameters, and components of these."""
        return [
            self.parameters[first] if not rest else self.part(self.parameters[first], *rest)
            for first, *rest in self.spec.paths
        ]

    def part(self, name: str, *path) -> str:
        """Return a name for a component of a tuple or descriptor."""
        return self.names.give("_".join(map(str, (name, *path))))

    @property
    def descriptors(self) -> list[str]:
        """The parameters, or components of them, that the forward takes as tensor descriptors."""
        return [] if self.plan.forward is not None else list(self.described.values())

    @cached_property
    def described(self) -> dict[tuple, str]:
        """The names of tensor descriptors in the module, by path."""
        found = (path[:-1] for path in self.spec.paths if path[-1] == "base")
        return {
            path: self.part(self.parameters[path[0]], *path[1:])
            if len(path) > 1
            else self.parameters[path[0]]
            for path in found
        }

    @cached_property
    def constants(self) -> dict[str, object]:
        """The values that the kernel was specialized for, by parameter."""
        return self.spec.constants

    def is_declared_constant(self, number: int) -> bool:
        return self.spec.kernel.src.fn.params[number].is_constexpr

    @cached_property
    def scalars(self) -> list[int]:
        return [i for i in range(len(self.spec.names)) if i not in self.state.pointer_set]

    @cached_property
    def _described(self) -> list[int]:
        """The tensors whose layout the backward needs, or what is asserted of them."""
        needed = {g.argument for g in self.plan.gradients} | self.plan.cotangents()
        launch = self.plan.launch
        checks = (*self.plan.checks, *(launch.checks if launch is not None else ()))
        needed |= {check.argument for check in checks} | self.without_influence
        needed |= {i for pair in self.facts.beside for i in pair}
        return sorted(needed | self._seen_by_sizes | {*self.execution.reread})

    @cached_property
    def _seen_by_sizes(self) -> set[int]:
        kernels = [executable.kernel for executable in self.executables]
        exprs = [*self.plan.sizes, *(b.size for b in self.plan.buffers)]
        exprs += [e for kernel in kernels for e in (*(kernel.grid or ()), kernel.when)]
        known = ("extent", "pitch", "span", "lead")
        return set().union(*(named(e, operator) for e in exprs for operator in known))

    @cached_property
    def layouts(self) -> dict[int, str]:
        """Names for the layouts of tensors, by argument."""
        return {i: self.names.give(f"like_{stem(self.variables[i])}") for i in self._described}

    def told_in(self, lines: list[str], *grids: str) -> dict[str, str]:
        """Return the names of facts of a launch that some lines use, and the expressions for them.

        These are its grids, its numbers, and the layouts of its tensors.
        """
        names, layout = self.variables, f"{self.call('Layout')}.of"
        told = {grid: grid for grid in grids}
        told |= {names[i]: names[i] for i in self.scalars}
        told |= {held: self._integers(i) for i, held in self._held.items()}
        told |= {like: f"{layout}({names[i]})" for i, like in self.layouts.items()}
        used = names_of(ast.parse(dedent("\n".join(lines)).replace("return ", "_ = ")))
        return {name: value for name, value in told.items() if name in used}

    # --------------------------------------------------------------------------------------
    # Expressions
    # --------------------------------------------------------------------------------------

    @cached_property
    def is_replaced(self) -> bool:
        """Whether the kernels are for another grid than the user's."""
        launch = self.plan.launch
        return launch is not None and [simplified(e) for e in launch.grid] != _USER_GRID

    @cached_property
    def programs(self) -> str:
        """The name of the grid that the kernels are for."""
        return self.names.give("programs") if self.is_replaced else self.grid

    @cached_property
    def pids(self) -> list[str]:
        """Names for program ids."""
        return [self.names.give(f"program_{axis}") for axis in range(3)]

    def call(self, name: str) -> str:
        """Return the name in the module of a function from `exported.py`."""
        self.calls.add(name)
        return private(name)

    def has_no_backward_for(self, output: int) -> bool:
        """Return whether an output may have a gradient for which no backward was exported."""
        planned = self.execution.planned
        if planned is not None and output not in planned:
            return True
        return output in self.execution.backward.cotangents - self.backward.cotangents

    def ends_of(self, argument: int, space) -> tuple | None:
        """Return the first and the last element that contributions touch, as expressions.

        None if they cannot be written, or would take more memory than the launch needs.
        """
        try:
            ends = ends_of(space)
        except Unwritten:
            return None
        span = self.facts.span(argument)
        return ends if span.covering(*map(self.facts.evaluate, ends)) == span else None

    def span_of(self, i: int) -> str:
        """Return the range of memory for the gradient of an argument, as Python in a backward."""
        like = self.layouts[i]
        gradient = next((g for g in self.plan.gradients if g.argument == i), None)
        if gradient is None or gradient.stays_inside:
            return f"{self.call('Span')}(0, {like}.size)"
        span = f"{like}.span"
        if gradient.margin:
            span += f".widened({gradient.margin})"
        if gradient.confined == "all":
            return span
        text = self.text(self.programs, True)
        for space in gradient.spaces:
            # Otherwise the values of this launch are used and asserted.
            ends = self.ends_of(i, space) or space.ends(self.facts.scalars, self.facts.grid)
            span += "" if ends is None else f".covering({', '.join(map(text.of, ends))})"
        for check in gradient.checks:
            if check.moves and check.kind == "distinct":
                parts = parts_of(check, text, self.call)
                span += f".covering(*{self.call('ends_of_parts')}({parts}))"
        return span

    def held(self, i: int) -> str:
        """Return the name for the integers of a tensor, as a tuple."""
        if i not in self._held:
            self._held[i] = self.names.give(f"{self.variables[i]}_held")
        return self._held[i]

    def _integers(self, i: int) -> str:
        return f"{self.call('integers_of')}({self.variables[i]})"

    def text(self, grid: str, in_backward: bool) -> Text:
        names, plan = self.variables, self.plan

        def size(i):
            if in_backward:
                return f"{self.layouts[i]}.size"
            return f"{self.call('extent')}({names[i]}.shape, {names[i]}.stride())"

        def span(i):
            return self.span_of(i)

        def pitch(i, length):
            tensor = self.layouts[i] if in_backward else names[i]
            strides = f"{tensor}.strides" if in_backward else f"{tensor}.stride()"
            return f"{self.call('pitch')}({tensor}.shape, {strides}, {length})"

        def processors():
            device = names[plan.outputs[0]]
            if in_backward:
                device = self.layouts[plan.gradients[0].argument]
            return f"{self.call('processors')}({device}.device)"

        return Text(
            {
                "arg": lambda i: names[i],
                "extent": size,
                "span": lambda i: f"{span(i)}.total",
                "lead": lambda i: f"{span(i)}.lead",
                "pitch": pitch,
                "processors": processors,
                "element": self.held if in_backward else self._integers,
                "counted": lambda n: f"{self.counts}[{n}]",
                "shared": lambda: str(int(bool(self.facts.aliasing))),
                "parts": lambda: str(int(not self.facts.keeps_outputs())),
            },
            grid,
            self.pids,
            self.call,
        )

    @property
    def launcher(self) -> str:
        """The name of the function that asserts and applies."""
        return f"_launch_{self.kernel_name}{self.suffix}"

    @property
    def class_name(self) -> str:
        """The name of the `autograd.Function`."""
        return "".join(p.capitalize() for p in self.kernel_name.split("_") if p) + self.suffix

    @cached_property
    def returned(self) -> tuple[int, ...]:
        """The outputs that have a history."""
        return tuple(j for j in self.plan.outputs if j in self.execution.position)

    @cached_property
    def without_influence(self) -> set[int]:
        """The arguments that require a gradient, and have zeros."""
        return {*self.execution.wanted} - {*self.plan.inputs}

    @property
    def grids(self) -> list[str]:
        return [self.grid, *([self.programs] if self.is_replaced else [])]


def _fits(executable: Executable) -> bool:
    """Return whether a kernel fits on the device; compiles it."""
    try:
        executable.compile()
    except DoesNotFit:
        return False
    return True


def stem(name: str) -> str:
    """Return a pointer parameter's name without "_ptr" and the like."""
    return name.removesuffix("_ptr")
