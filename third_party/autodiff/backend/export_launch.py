"""One launch and its backward as Python: an `autograd.Function`, and what asserts and applies it.

What runs is what `Execution` and `Backward` do for launches that share their facts. Here it is
written out: expressions become Python, and facts that another launch may not have are asserted.
"""

from __future__ import annotations

import ast
from functools import cached_property
from textwrap import dedent

import torch
from triton.compiler.compiler import make_backend

from .backward import DTYPES
from .bundle import literal, private
from .errors import DoesNotFit
from .executable import Executable, inherited_options
from .export_checks import Assertions, refused
from .expr import named
from .expr_source import Text, simplified
from .memory import is_dense
from .python_text import call, laid_out, paragraph, tuple_of

_INTEGERS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}
# Options that always stand in a launch.
_SAID = ("num_warps", "num_stages")
_USER_GRID = [["grid", axis] for axis in range(3)]


class Names:
    """Gives names of which no two are equal."""

    def __init__(self, taken=()):
        self._taken = set(taken)

    def give(self, wanted: str) -> str:
        """Return the name, or with a number if something has it."""
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
        self.options = _said(options, target)

    def launch(self, grid: str, arguments, indent: int) -> str:
        """Return the line that launches it."""
        options = [f"{name}={literal(value)}" for name, value in self.options.items()]
        return call(f"{self.name}[{grid}](", [*arguments, *options], ")", indent)


def _said(options: dict, target) -> dict:
    """Return the options of a launch that are not what Triton takes anyway."""
    usual = make_backend(target).parse_options({})
    return {
        name: value
        for name, value in options.items()
        if name in _SAID or (hasattr(usual, name) and getattr(usual, name) != value)
    }


class ExportedLaunch:
    """Writes a launch: `state` is that of its kernel, `execution` how it and its backward run.

    `suffix` tells it from other launches of the kernel in the module. Raises an `AutodiffError`
    for what no module can do.
    """

    def __init__(self, state, execution, suffix: str):
        self.state, self.execution = state, execution
        self.spec = spec = state.spec
        self.backward = execution.shown
        self.plan = self.backward.plan
        self.facts = self.backward.facts
        self.suffix = suffix
        self.kernel_name = spec.name
        self.calls: set[str] = set()
        self._refuse()
        self.backward.compile()
        self.steps = self._steps()
        self._refuse_mended()
        self.names = Names(self._parameters)
        self.grid = self.names.give("grid")
        self.ctx = self.names.give("ctx")

    # --------------------------------------------------------------------------------------
    # What cannot be written
    # --------------------------------------------------------------------------------------

    def _refuse(self) -> None:
        """Raise for plans of which a module would only be half."""
        spec, plan, facts = self.spec, self.plan, self.facts
        nested = [name for name, path in zip(spec.names, spec.paths, strict=True) if len(path) > 1]
        reserved = {"torch", "triton", "tl", "math", "functools", "os"} & set(self._parameters)
        opaque = [spec.names[i] for i in spec.pointers if not facts.tensors[i].is_tensor]
        part = next((spec.names[i] for i in self._parts & self._loose if not self._is_dense(i)), "")
        for holds, why in (
            (nested, f"argument {nested[:1]} is part of a tuple or of a descriptor"),
            (reserved, f"a parameter is called as a module is, {sorted(reserved)}"),
            (opaque, f"argument {opaque[:1]} is no tensor"),
            (plan.counting is not None, "iterations of a loop are counted before its backward"),
            (any(s.is_tallied for s in self.backward.shadows), "additions are counted first"),
            (any(k.accesses is not None for k in plan.kernels), "TRITON_AUTODIFF_CHECK is set"),
            (part, f"argument {part!r} has gaps or repeats elements, and its gradient is added up"),
            (self.backward.around, "a gradient belongs to what is around a tensor"),
            (self.execution.spills, "it stores around a tensor"),
            (self.execution._races, "programs store to one element"),
        ):
            if holds:
                raise refused(self.kernel_name, why)
        for hazard in plan.hazards:
            if {hazard.written, hazard.read} in [{a, b} for a, b, *_ in facts.aliasing]:
                raise refused(self.kernel_name, "arguments share memory that it writes and reads")

    def _is_dense(self, i: int) -> bool:
        tensor = self.facts.tensors[i]
        return is_dense(tensor.shape, tensor.strides)

    def _steps(self) -> list[list[Executable]]:
        """Return the backward kernels in order: of each all variants that there are, the best first.

        Only one of them, if it was measured to be the best.
        """
        steps = []
        for bound in self.backward.launches:
            chosen = bound.executable
            for own in self.backward.handle.backward:
                if chosen in (*own.variants, own):
                    steps.append([e for e in (*own.variants, own) if _fits(e)])
                    break
            else:
                steps.append([chosen])
        return steps

    @property
    def executables(self) -> list[Executable]:
        """All backward kernels."""
        return [executable for step in self.steps for executable in step]

    def _refuse_mended(self) -> None:
        for executable in self.executables:
            if executable.is_mended:
                raise refused(
                    self.kernel_name,
                    f"Triton compiles {executable.kernel.name!r} wrongly, which is mended after it",
                    "use a newer Triton, or keep calling it through this package",
                )

    @cached_property
    def _loose(self) -> set[int]:
        """The arguments whose gradients may reach beyond a tensor, as far as checks tell."""
        return {g.argument for g in self.plan.gradients if not g.stays_inside}

    @cached_property
    def whole(self) -> set[int]:
        """The arguments that are all that their storage holds, where that matters."""
        matter = self._loose | self.plan.cotangents()
        return {i for i in matter if self.facts.tensors[i].is_whole}

    @cached_property
    def _parts(self) -> set[int]:
        """The arguments that are parts of what their storage holds, where that matters."""
        return (self._loose | self.plan.cotangents()) - self.whole

    # --------------------------------------------------------------------------------------
    # Arguments
    # --------------------------------------------------------------------------------------

    @cached_property
    def _parameters(self) -> list[str]:
        return list(self.spec.kernel.src.signature)

    @cached_property
    def constants(self) -> dict[str, object]:
        """Values that the kernel was compiled for, by parameter."""
        constants = self.spec.kernel.src.constants
        return {
            name: constants.get((n,), constants.get(n))
            for n, (name, type_) in enumerate(self.spec.kernel.src.signature.items())
            if type_ == "constexpr"
        }

    def _is_declared_constant(self, number: int) -> bool:
        return self.spec.kernel.src.fn.params[number].is_constexpr

    @cached_property
    def _scalars(self) -> list[int]:
        return [i for i in range(len(self.spec.names)) if i not in self.state.pointer_set]

    @cached_property
    def _described(self) -> list[int]:
        """Tensors of which the backward needs to know where elements are."""
        needed = {g.argument for g in self.plan.gradients} | self.plan.cotangents()
        return sorted(needed | self._seen_by_sizes | {*self.execution.kept})

    @cached_property
    def _seen_by_sizes(self) -> set[int]:
        kernels = [executable.kernel for executable in self.executables]
        exprs = [*self.plan.sizes, *(b.size for b in self.plan.buffers)]
        exprs += [e for kernel in kernels for e in (*(kernel.grid or ()), kernel.when)]
        known = ("extent", "pitch", "span", "lead")
        return set().union(*(named(e, operator) for e in exprs for operator in known))

    @cached_property
    def layouts(self) -> dict[int, str]:
        """Names for where elements of tensors are, by argument."""
        return {i: self.names.give(f"like_{_stem(self.spec.names[i])}") for i in self._described}

    # --------------------------------------------------------------------------------------
    # Expressions
    # --------------------------------------------------------------------------------------

    @cached_property
    def is_replaced(self) -> bool:
        """Whether the kernels are for other programs than the user's."""
        launch = self.plan.launch
        return launch is not None and [simplified(e) for e in launch.grid] != _USER_GRID

    @cached_property
    def programs(self) -> str:
        """The name of the grid that the kernels are for."""
        return self.names.give("programs") if self.is_replaced else self.grid

    @cached_property
    def _pids(self) -> list[str]:
        """Names for the numbers of a program."""
        return [self.names.give(f"program_{axis}") for axis in range(3)]

    def _call(self, name: str) -> str:
        """Return what a function that modules have is called there."""
        self.calls.add(name)
        return private(name)

    def _text(self, grid: str, in_backward: bool) -> Text:
        names, plan = self.spec.names, self.plan
        margins = {g.argument: g.margin for g in plan.gradients if g.confined != "none"}

        def size(i):
            if in_backward:
                return f"{self.layouts[i]}.size"
            return f"{self._call('extent')}({names[i]}.shape, {names[i]}.stride())"

        def span(i):
            if in_backward:
                return f"{self.layouts[i]}.span"
            return f"{self._call('storage_span')}({names[i]})"

        def pitch(i, length):
            tensor = self.layouts[i] if in_backward else names[i]
            strides = f"{tensor}.strides" if in_backward else f"{tensor}.stride()"
            return f"{self._call('pitch')}({tensor}.shape, {strides}, {length})"

        def processors():
            device = names[plan.outputs[0]]
            if in_backward:
                device = self.layouts[plan.gradients[0].argument]
            return f"{self._call('processors')}({device}.device)"

        return Text(
            {
                "arg": lambda i: names[i],
                "extent": size,
                "span": lambda i: f"{span(i)}.widened({margins.get(i, 0)}).total",
                "lead": lambda i: f"{span(i)}.widened({margins.get(i, 0)}).lead",
                "pitch": pitch,
                "processors": processors,
                "shared": lambda: str(int(bool(self.facts.aliasing))),
                "parts": lambda: str(int(not self.facts.keeps_outputs())),
            },
            grid,
            self._pids,
            self._call,
        )

    # --------------------------------------------------------------------------------------
    # Assertions
    # --------------------------------------------------------------------------------------

    def _assertions(self) -> list[str]:
        """Return the lines that assert what the kernels are for."""
        plan, names = self.plan, self.spec.names
        given = names, self._call, self.names.give
        user_text = self._text(self.grid, False)
        user = Assertions(self.kernel_name, user_text, self.grid, *given)
        self._of_arguments(user)
        if plan.launch is not None:
            for expr in plan.launch.assumed:
                user.not_negative(expr)
        text = self._text(self.programs, False)
        own = Assertions(self.kernel_name, text, self.programs, *given)
        if self.is_replaced:
            axes = ", ".join(user_text.of(e) for e in plan.launch.grid)
            own.lines.append(f"    {self.programs} = ({axes})")
        for check in plan.launch.checks if plan.launch is not None else ():
            own.check(check)
        for expr in plan.assumed:
            own.not_negative(expr)
        for check in (*(c for g in plan.gradients for c in g.checks), *plan.checks):
            own.check(check)
        for *_, last in self.steps:
            if last.kernel.when != 1:
                condition = f"{text.of(last.kernel.when)} != 0"
                own.require(condition, "this variant of the kernels is for other sizes")
        for gradient in plan.gradients:
            if not gradient.stays_inside and gradient.confined == "none":
                own.inside("storage", names[gradient.argument], gradient.reach)
        self._of_stores(user)
        self._of_parts(user, own)
        return list(dict.fromkeys([*user.lines, *own.lines]))

    def _of_parts(self, user: Assertions, own: Assertions) -> None:
        """Assert that what is around parts of tensors has no gradient, and is not stored to."""
        plan, names = self.plan, self.spec.names
        for i in sorted(self._parts):
            if i in self._loose:
                own.say("require_dense", f'"{names[i]}"', names[i])
                live = plan.live.get(i, (None,))
                own.inside("tensor", names[i], () if None in live else live)
            if i in plan.cotangents():
                stores = (store.space for store in plan.stores if store.argument == i)
                user.inside("tensor", names[i], stores)

    def _of_stores(self, own: Assertions) -> None:
        """Assert that programs store apart where nothing else says so."""
        plan, facts = self.plan, self.execution.facts
        apart = {check.argument for check in plan.checks}
        for j in sorted(plan.cotangents() - apart):
            stores = [store for store in plan.stores if store.argument == j]
            checks = [s.check for s in stores if s.check is not None]
            holding = [c for c in checks if c.holds(facts.scalars, facts.grid)]
            if stores and not holding:
                raise refused(self.kernel_name, f"programs may meet in {self.spec.names[j]!r}")
            for check in holding[:1]:
                own.check(check)

    def _of_arguments(self, own: Assertions) -> None:
        """Assert what the kernel was compiled for, and how tensors lie in memory."""
        spec, facts = self.spec, self.facts
        attributes = spec.kernel.src.attrs
        for i, (name, type_) in enumerate(zip(spec.names, spec.types, strict=True)):
            place = (spec.parameters[i],)
            divisible = any(a[0] == "tt.divisibility" for a in attributes.get(place, ()))
            if i in self.state.pointer_set:
                tensor = facts.tensors[i]
                device = f'"{facts.device.type}"'
                arguments = [f'"{name}"', name, str(tensor.dtype), device, str(divisible)]
                own.say("require_tensor", *arguments)
            elif type_ in _INTEGERS:
                more = ["16"] if divisible else []
                bits = str(_INTEGERS[type_])
                own.say("require_integer", f'"{name}"', name, bits, *more)
            elif type_ in ("fp32", "fp64", "fp16", "bf16", "u1", "i1"):
                kind = "bool" if type_ in ("u1", "i1") else "float"
                own.require(f"type({name}) is {kind}", f"{name} was a {kind}")
            else:
                raise refused(self.kernel_name, f"argument {name!r} is of type {type_}")
        for name, value in self.constants.items():
            text = literal(value)
            if text is None:
                raise refused(self.kernel_name, f"constant {name!r} is {value!r}")
            own.say("require_same", f'"{name}"', name, text)
        for i in sorted(self.whole):
            own.say("require_whole", f'"{spec.names[i]}"', spec.names[i])
        if any("parts" in str(entry.not_negative) for step in self.plan.next for entry in step):
            for i in self.plan.outputs if facts.keeps_outputs() else ():
                own.say("require_no_part", f'"{spec.names[i]}"', spec.names[i])
        for i in spec.pointers:
            if facts.tensors[i].dtype.is_floating_point and i not in self.execution.wanted:
                if i not in self.plan.outputs:
                    own.say("require_no_gradient", f'"{spec.names[i]}"', spec.names[i])
        entries = [f'"{spec.names[i]}": {spec.names[i]}' for i in spec.pointers]
        written = tuple_of(f'"{spec.names[i]}"' for i in self.plan.outputs)
        met = [
            tuple_of([f'"{spec.names[a]}"', f'"{spec.names[b]}"']) for a, b, *_ in facts.aliasing
        ]
        tensors = self.names.give("tensors")
        own.lines.append(call(f"{tensors} = {{", entries, "}", 4))
        capability = "None"
        if facts.device.type == "cuda":
            capability = str(torch.cuda.get_device_capability(facts.device))
        own.say("require_one_device", tensors, capability)
        own.say("require_meetings", tensors, written, tuple_of(met))

    # --------------------------------------------------------------------------------------
    # The function that is called
    # --------------------------------------------------------------------------------------

    @property
    def launcher(self) -> str:
        """The name of the function that asserts and applies."""
        return f"_launch_{self.kernel_name}{self.suffix}"

    @property
    def class_name(self) -> str:
        """The name of the `autograd.Function`."""
        return "".join(p.capitalize() for p in self.kernel_name.split("_") if p) + self.suffix

    def launch_text(self) -> str:
        """Return the function that asserts what a launch has to be, and applies the node."""
        params = self.spec.kernel.src.fn.params
        declared = [
            name
            for n, name in enumerate(self._parameters)
            if name in self.constants and not self._is_declared_constant(n)
        ]
        heads: list[str] = []
        may_have_default = True
        for number, name in reversed(list(enumerate(self._parameters))):
            default = None
            if self._is_declared_constant(number):
                default = literal(self.constants[name])
            elif params[number].has_default and name not in declared:
                default = literal(params[number].default)
            may_have_default &= default is not None
            heads.insert(0, f"{name}={default}" if may_have_default else name)
        options = self.names.give("options")
        head = call(f"def {self.launcher}(", [self.grid, *heads, f"**{options}"], "):")
        lines = [
            head,
            f'    """Launch `{self.kernel_name}`, after asserting what it was exported for."""',
            f"    {self.grid} = {self._call('three')}({self.grid}, locals())",
        ]
        given = inherited_options(self.spec.kernel.metadata)
        told = call("{", [f'"{n}": {literal(v)}' for n, v in given.items()], "}")
        lines.append(call(f"{self._call('require_options')}(", [options, told], indent=4))
        lines += self._assertions()
        arguments = [*self._grids, *self.spec.names]
        outputs = self._returned
        applied = call(f"{self.class_name}.apply(", arguments, indent=4).lstrip()
        if self.execution.views:
            names = tuple_of(self.spec.names[j] for j in outputs)
            aliases = self.names.give("aliases")
            lines.append(f"    {aliases} = {applied}")
            one = tuple_of([aliases]) if len(outputs) == 1 else aliases
            lines.append(f"    {self._call('graft')}({names}, {one})")
        else:
            lines.append(f"    {applied}")
        return laid_out(lines)

    @cached_property
    def _returned(self) -> tuple[int, ...]:
        """The outputs that have gradients."""
        tensors = self.facts.tensors
        return tuple(j for j in self.plan.outputs if tensors[j].dtype.is_floating_point)

    # --------------------------------------------------------------------------------------
    # The autograd.Function
    # --------------------------------------------------------------------------------------

    def class_text(self, forward: Printed, backward: list[Printed]) -> str:
        """Return the `autograd.Function`, which launches these kernels."""
        names = self.spec.names
        inputs = ", ".join(f"`{names[i]}`" for i in self.plan.inputs)
        outputs = ", ".join(f"`{names[j]}`" for j in self._returned)
        words = f"Takes the grid and the arguments, returns what it writes: {outputs}. Their "
        words += f"gradients become those of {inputs}."
        self._name_operands(backward)
        computed = self._computed(backward)
        self._told = self._needed("\n".join(computed))
        head = f"class {self.class_name}(torch.autograd.Function):"
        doc = f'    """One launch of `{self.kernel_name}`.'
        return laid_out(
            [
                head,
                doc,
                "",
                paragraph(words, 4),
                '    """',
                "",
                *self._forward(forward),
                "",
                *self._backward(),
                *computed,
            ]
        )

    def _needed(self, text: str) -> dict[str, str]:
        """Return what the backward needs to be told of the launch, and how the forward says it."""
        names, tree = self.spec.names, ast.parse(dedent(text).replace("return ", "_ = "))
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        told = {grid: grid for grid in self._grids}
        told |= {names[i]: names[i] for i in self._scalars}
        layout = f"{private('Layout')}.of"
        told |= {like: f"{layout}({names[i]})" for i, like in self.layouts.items()}
        return {name: value for name, value in told.items() if name in used}

    @property
    def _grids(self) -> list[str]:
        return [self.grid, *([self.programs] if self.is_replaced else [])]

    def _name_operands(self, backward: list[Printed]) -> None:
        """Give a name to all that kernels get: as they call it, where they agree."""
        self.operands: dict[tuple[str, int], str] = {}
        for i, name in enumerate(self.spec.names):
            self.operands["argument", i] = name
        for executable, printed in zip(self.executables, backward, strict=True):
            for operand, name in zip(executable.kernel.operands, printed.parameters, strict=True):
                kind, index = operand
                operand = ("gradient", index) if kind == "rounded" else operand
                if operand not in self.operands:
                    self.operands[operand] = self.names.give(name)
        for j in self.plan.cotangents():
            self._operand("cotangent", j)

    def _operand(self, kind: str, index: int) -> str:
        """Return the name of an operand."""
        key = ("gradient" if kind == "rounded" else kind, index)
        if key not in self.operands:
            buffer = kind == "buffer"
            wanted = (
                self.plan.buffers[index].name if buffer else f"d_{_stem(self.spec.names[index])}"
            )
            self.operands[key] = self.names.give(wanted)
        return self.operands[key]

    def _saved(self) -> list[tuple[str, str]]:
        """Return the names of what is kept, and of what it is in the backward."""
        execution, names = self.execution, self.spec.names
        kept = [(names[i], names[i]) for i in execution.kept]
        kept += [(self._copies[i], names[i]) for i in execution.copied]
        return kept + [(self._operand("buffer", n),) * 2 for n in self.backward.saved]

    @cached_property
    def _copies(self) -> dict[int, str]:
        return {i: self.names.give(f"{self.spec.names[i]}_before") for i in self.execution.copied}

    def _forward(self, printed: Printed) -> list[str]:
        names, plan, execution = self.spec.names, self.plan, self.execution
        lines = [
            "    @staticmethod",
            call("def forward(", [self.ctx, *self._grids, *names], "):", 4),
            '        """Launch the kernel, and keep what the backward reads."""',
        ]
        for i in execution.copied:
            lines.append(f"        {self._copies[i]} = {self._call('snapshot')}({names[i]})")
        text = self._text(self.programs, False)
        device = f"{names[plan.outputs[0]]}.device"
        for n in self.backward.saved:
            buffer = plan.buffers[n]
            arguments = [text.of(buffer.size), f"dtype={DTYPES[buffer.dtype]}", f"device={device}"]
            name = self._operand("buffer", n)
            lines.append(call(f"{name} = torch.empty(", arguments, indent=8))
        if plan.forward is None:
            lines.append(printed.launch(self.grid, names, 8))
        else:
            operands = []
            for kind, index in plan.forward.operands:
                if kind == "size":
                    operands.append(text.of(plan.sizes[index]))
                else:
                    operands.append(self._operand(kind, index))
            grid = self._grid_of(plan.forward, text, lines, 8)
            lines.append(printed.launch(grid, operands, 8))
        floats = [names[j] for j in self._returned]
        changed = [names[j] for j in plan.outputs if j not in self._returned]
        if execution.views:
            changed += floats
        for name in changed:
            lines.append(f"        torch.autograd.graph.increment_version({name})")
        lines.append(f"        {self.ctx}.set_materialize_grads(False)")
        kept = {a: a for a, _ in self._saved()}
        if execution.views:
            aliases = {name: self.names.give(f"{name}_written") for name in floats}
            for name, alias in aliases.items():
                lines.append(f"        {alias} = {name}.detach()")
            kept |= {name: alias for name, alias in aliases.items() if name in kept}
            floats = list(aliases.values())
        else:
            lines.append(call(f"{self.ctx}.mark_dirty(", floats, indent=8))
        lines.append(call(f"{self.ctx}.save_for_backward(", kept.values(), indent=8))
        self._call("Layout")
        told = list(self._told.values())
        lines.append(f"        {self.ctx}.launch = {tuple_of(told)}")
        lines.append(f"        return {', '.join(floats)}")
        return lines

    def _grid_of(self, kernel, text: Text, lines: list[str], indent: int) -> str:
        """Return the grid of a kernel, which gets a name if it is computed."""
        if kernel.grid is None:
            return self.programs
        axes = [simplified(e) for e in kernel.grid]
        while len(axes) > 1 and axes[-1] == 1:
            axes.pop()
        grid = tuple_of(map(text.of, axes))
        if len(axes) == 1 and text.of(axes[0]).isidentifier():
            return grid
        name = self.names.give("blocks")
        lines.append(f"{' ' * indent}{name} = {grid}")
        return name

    def _backward(self) -> list[str]:
        """Return how the backward begins."""
        upstream = [self._operand("cotangent", j) for j in self._returned]
        told = ", ".join(self.spec.names[i] for i in self.plan.inputs)
        lines = [
            "    @staticmethod",
            "    @torch.autograd.function.once_differentiable",
            call("def backward(", [self.ctx, *upstream], "):", 4),
            f'        """Return the gradients of {told}."""',
        ]
        kept = [name for _, name in self._saved()]
        for names, attribute in ((kept, "saved_tensors"), (list(self._told), "launch")):
            if names:
                comma = "," if len(names) == 1 else ""
                lines.append(f"        {', '.join(names)}{comma} = {self.ctx}.{attribute}")
        return lines

    def _computed(self, printed: list[Printed]) -> list[str]:
        """Return what the backward does with what was kept."""
        names, text = self.spec.names, self._text(self.programs, True)
        lines = [
            f"        {names[i]} = {self.layouts[i]}.restored({names[i]})"
            for i in self.execution.kept
        ]
        lines += self._memory(text)
        kernels = iter(printed)
        for step in self.steps:
            lines += self._step(step, [next(kernels) for _ in step], text)
        return [*lines, *self._results(text)]

    def _step(self, step, printed: list[Printed], text: Text) -> list[str]:
        """Return the lines that launch the first variant of a kernel that suits the sizes."""
        lines = []
        indent = 8 if len(step) == 1 else 12
        for place, (executable, kernel) in enumerate(zip(step, printed, strict=True)):
            if place + 1 < len(step):
                word = "elif" if place else "if"
                lines.append(f"        {word} {text.of(executable.kernel.when)}:")
            elif place:
                lines.append("        else:")
            grid = self._grid_of(executable.kernel, text, lines, indent)
            operands = [self._operand(kind, index) for kind, index in executable.kernel.operands]
            lines.append(kernel.launch(grid, operands, indent))
        return lines

    def _memory(self, text: Text) -> list[str]:
        """Return the lines that make what the kernels read and write besides arguments."""
        plan = self.plan
        lines = []
        upstream = {j: self._operand("cotangent", j) for j in self._returned}
        for j, name in upstream.items():
            if j in plan.cotangents():
                lines.append(f"        {name} = {self.layouts[j]}.upstream({name})")
            elif self.execution.planned is not None and j not in self.execution.planned:
                words = f"a gradient of {self.spec.names[j]} came, for which nothing was exported"
                lines.append(
                    call(f"{self._call('require')}(", [f"{name} is None", f'"{words}"'], indent=8)
                )
        for index, size in enumerate(plan.sizes):
            if ("size", index) in self.operands:
                name = self.operands["size", index]
                lines.append(f"        {name} = {text.of(size)}")
                text.call(size, name)
        device = f"{self.layouts[plan.gradients[0].argument]}.device" if plan.gradients else ""
        for n, buffer in enumerate(plan.buffers):
            if buffer.kind != "saved":
                make = "zeros" if buffer.kind == "tally" else "empty"
                size = text.of(buffer.size)
                arguments = [size, f"dtype={DTYPES[buffer.dtype]}", f"device={device}"]
                lines.append(
                    call(f"{self._operand('buffer', n)} = torch.{make}(", arguments, indent=8)
                )
        for gradient, shadow in zip(plan.gradients, self.backward.shadows, strict=True):
            like = self.layouts[gradient.argument]
            name = self._operand("gradient", gradient.argument)
            dtype = str(shadow.dtype)
            if gradient.partials is not None:
                count = text.of(gradient.partials)
                made = f"{like}.sums({count}, {dtype})"
            elif shadow.zero:
                margin = f", {gradient.margin}" if gradient.confined != "none" else ""
                made = f"{like}.zeros({dtype}{margin})"
            else:
                made = f"{like}.empty({dtype})"
            if gradient.init == "cotangent":
                made += f".copy_({self._operand('cotangent', gradient.argument)})"
            lines.append(f"        {name} = {made}")
        return lines

    def _results(self, text: Text) -> list[str]:
        """Return the lines that finish gradients and return them."""
        plan, lines = self.plan, []
        groups: dict[str, list[int]] = {}
        for gradient in plan.gradients:
            if gradient.partials is not None:
                count = text.of(gradient.partials)
                groups.setdefault(count, []).append(gradient.argument)
        for arguments in groups.values():
            sums = ", ".join(self._operand("gradient", i) for i in arguments)
            likes = ", ".join(self.layouts[i] for i in arguments)
            begin = sums if len(arguments) > 1 else f"({sums},)"
            lines.append(f"        {begin} = {self._call('added_up')}([{likes}], [{sums}])")
        results = []
        summed = {i for group in groups.values() for i in group}
        shadows = {s.argument: s for s in self.backward.shadows}
        for i in range(len(self.spec.names)):
            if i not in plan.inputs or i not in self.execution.slots:
                results.append("None")
                continue
            name = self._operand("gradient", i)
            rounded = i in summed or shadows[i].dtype == shadows[i].result
            results.append(name if rounded else f"{name}.to({shadows[i].result})")
        results = ["None"] * len(self._grids) + results
        trailing = 0
        while results[-1] == "None":
            results.pop()
            trailing += 1
        more = ["None"] * trailing if trailing < 3 else [f"*[None] * {trailing}"]
        lines.append(call("return ", [*results, *more], "", 8))
        return lines


def _fits(executable: Executable) -> bool:
    """Return whether a kernel fits on the chip; compiles it."""
    try:
        executable.compile()
    except DoesNotFit:
        return False
    return True


def _stem(name: str) -> str:
    return name.removesuffix("_ptr")
