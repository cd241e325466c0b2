"""The function of a module that launches a kernel: assertions, then the autograd node."""

from __future__ import annotations

import torch

from ..compiling.executable import inherited_options
from ..faults.table import numbers
from ..faults.unexamined import doubts
from ..plans.target import version
from ..printing.python_text import call, laid_out, tuple_of
from .arguments import is_divisible, unpacked
from .bundle import literal
from .checks import Assertions, Unwritten, refused
from .launch import ExportedLaunch

_INTEGERS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}


class Launcher:
    """Writes the function for a launch."""

    def __init__(self, of: ExportedLaunch):
        self.of = of

    def text(self) -> str:
        """Return the function that checks a launch by assertions, and applies the node."""
        params = self.of.spec.kernel.src.fn.params
        declared = [
            name
            for n, name in enumerate(self.of.parameters)
            if name in self.of.constants and not self.of.is_declared_constant(n)
        ]
        heads: list[str] = []
        may_have_default = True
        for number, name in reversed(list(enumerate(self.of.parameters))):
            default = None
            if self.of.is_declared_constant(number):
                default = literal(self.of.constants[name])
            elif params[number].has_default and name not in declared:
                default = literal(params[number].default)
            may_have_default &= default is not None
            heads.insert(0, f"{name}={default}" if may_have_default else name)
        options = self.of.names.give("options")
        head = call(f"def {self.of.launcher}(", [self.of.grid, *heads, f"**{options}"], "):")
        lines = [
            head,
            f'    """Launch `{self.of.kernel_name}`, after asserting what it was exported for."""',
            f"    {self.of.grid} = {self.of.call('three')}({self.of.grid}, locals())",
        ]
        given = inherited_options(self.of.spec.kernel.metadata)
        told = call("{", [f'"{n}": {literal(v)}' for n, v in given.items()], "}")
        lines.append(call(f"{self.of.call('require_options')}(", [options, told], indent=4))
        lines += [*unpacked(self.of), *self._of_arguments()]
        asserted = self._asserted()
        if asserted:
            name, told = self._checks, self.of.told_in(asserted, self.of.grid)
            found = f"{self.of.programs} = " if self.of.is_replaced else ""
            lines.append(call(f"{found}{name}(", told.values(), indent=4))
            head = call(f"def {name}(", told, "):")
            doc = f'    """Assert what the kernels of `{self.of.kernel_name}` are for."""'
            end = [f"    return {self.of.programs}"] if self.of.is_replaced else []
            cached = "@functools.lru_cache(1024)"
            lines = [cached, head, doc, *asserted, *end, "", "", *lines]
        arguments = [*self.of.grids, *self.of.descriptors, *self.of.variables]
        outputs = self.of.returned
        applied = call(f"{self.of.class_name}.apply(", arguments, indent=4).lstrip()
        if self.of.execution.views:
            names = tuple_of(self.of.variables[j] for j in outputs)
            aliases = self.of.names.give("aliases")
            lines.append(f"    {aliases} = {applied}")
            one = tuple_of([aliases]) if len(outputs) == 1 else aliases
            lines.append(f"    {self.of.call('graft')}({names}, {one})")
        else:
            lines.append(f"    {applied}")
        return laid_out(lines)

    @property
    def _checks(self) -> str:
        return f"_check_{self.of.kernel_name}{self.of.suffix}"

    def _asserted(self) -> list[str]:
        """Return the assertions about numbers and layouts that the kernels rely on."""
        plan = self.of.plan
        user_text = self.of.text(self.of.grid, True)
        user = Assertions(self.of, user_text, self.of.grid)
        if plan.launch is not None:
            for expr in plan.launch.assumed:
                user.not_negative(expr)
        text = self.of.text(self.of.programs, True)
        own = Assertions(self.of, text, self.of.programs)
        if self.of.is_replaced:
            axes = tuple_of(user_text.of(e) for e in plan.launch.grid)
            own.lines.append(f"    {self.of.programs} = {axes}")
        for check in plan.launch.checks if plan.launch is not None else ():
            own.check(check)
        for expr in plan.assumed:
            own.not_negative(expr)
        for i in sorted(self.of.whole):
            own.say("require_whole", f'"{self.of.spec.names[i]}"', self.of.layouts[i])
        for check in (*(c for g in plan.gradients for c in g.checks), *plan.checks):
            own.check(check)
        for *_, last in self.of.steps:
            if last.kernel.when != 1:
                condition = f"{text.of(last.kernel.when)} != 0"
                own.require(condition, "this variant of the kernels is for other sizes")
        for gradient in plan.gradients:
            if not gradient.stays_inside and gradient.confined != "all":
                self._of_reach(gradient, own)
        for hazard in plan.hazards:
            if {hazard.written, hazard.read} in [{a, b} for a, b, *_ in self.of.facts.aliasing]:
                for one, other in hazard.unless:
                    same = f"{text.of(one)} == {text.of(other)}"
                    own.require(same, f"what is written is read where {same}")
        self._of_stores(user)
        self._of_parts(user, own)
        self._of_neighbors(user)
        return list(dict.fromkeys([*user.lines, *own.lines]))

    def _of_reach(self, gradient, own: Assertions) -> None:
        """Pin values that decide how much memory contributions need, if that cannot be written."""
        for space in gradient.spaces:
            if self.of.ends_of(gradient.argument, space) is None:
                own.pin(space.used_arguments(), gradient.argument)

    def _of_parts(self, user: Assertions, own: Assertions) -> None:
        """Assert that elements around parts of tensors have no gradient, and are not stored to."""
        plan, names = self.of.plan, self.of.spec.names
        # For a graph, any tensor may be a part.
        parts = self.of.parts if self.of.knows_storage else self.of.parts | self.of.whole
        for i in sorted(parts):
            if i in self.of.loose:
                live = plan.live.get(i, (None,))
                live = () if None in live else live
                if i in self.of.scattered:
                    own.among(i, live)
                else:
                    own.say("require_dense", f'"{names[i]}"', self.of.layouts[i])
                    own.inside(i, live)
            if i in plan.cotangents():
                stores = (store.space for store in plan.stores if store.argument == i)
                user.inside(i, stores)

    def _of_neighbors(self, own: Assertions) -> None:
        """Assert that the kernel touches nothing around tensors that lie in one storage.

        Those that share memory have to begin together, as `require_meetings` asserts.
        """
        names = self.of.spec.names
        for pair in self.of.facts.aliasing if self.of.knows_storage else ():
            if not pair.together and not pair.is_around:
                raise refused(
                    self.of.kernel_name,
                    f"{names[pair.first]} and {names[pair.second]} share memory, one of them is "
                    "written, and they do not begin together",
                    "pass a clone of one",
                )
        try:
            if any(pair.is_around for pair in self.of.facts.aliasing):
                raise Unwritten("another argument lies there")
            for i in sorted({i for pair in self.of.facts.beside for i in pair}):
                for space in self.of.plan.accesses.get(i, ()):
                    if space is not None:
                        own.between_ends(i, space)
        except Unwritten as error:
            raise refused(
                self.of.kernel_name,
                f"it may read or store around a tensor that is a part of another one: {error}",
                "pass clones of the parts",
            ) from error

    def _of_stores(self, own: Assertions) -> None:
        """Assert that programs store to different elements, unless something else ensures it."""
        plan, facts = self.of.plan, self.of.execution.facts
        apart = {check.argument for check in plan.checks}
        for j in sorted(plan.cotangents() - apart):
            stores = [store for store in plan.stores if store.argument == j]
            checks = [s.check for s in stores if s.check is not None]
            holding = [c for c in checks if c.holds(facts.scalars, facts.grid)]
            for check in holding[:1]:
                own.check(check)
            if stores and not holding:
                # In the exported launch, they stored to different elements, or the same values.
                own.pin(set().union(*(store.used_arguments() for store in stores)), j)

    def _doubts(self, capability) -> dict:
        """Return what other Tritons than this one may get wrong of the kernels on this GPU."""
        if capability is None:
            return {}
        texts = [executable.text for executable in self.of.derived]
        if self.of.forward is None:
            texts.append(self.of.spec.kernel.asm["ttir"])
        return doubts(texts, capability)

    def _of_descriptors(self, own: Assertions) -> None:
        """Assert facts about descriptors that the kernels rely on, besides their types."""
        labels, values, known = self.of.spec.names, self.of.variables, self.of.facts.descriptors
        for part, value in known.known:
            value = bool(value) if self.of.spec.types[part] == "i1" else value
            own.say("require_same", f'"{labels[part]}"', values[part], str(value))
        for part in known.aligned:
            own.require(f"{values[part]} % 16 == 0", f"{labels[part]} was a multiple of 16")
        for part, first in known.same:
            words = f"{labels[part]} and {labels[first]} were the same"
            own.require(f"{values[part]} == {values[first]}", words)

    def _of_arguments(self) -> list[str]:
        """Return the assertions about specialized arguments, and about shared memory."""
        spec, facts = self.of.spec, self.of.facts
        own = Assertions(self.of, self.of.text(self.of.grid, False), self.of.grid)
        for i, (name, type_) in enumerate(zip(spec.names, spec.types, strict=True)):
            value, divisible = self.of.variables[i], is_divisible(self.of, i)
            if i in self.of.state.pointer_set:
                tensor = facts.tensors[i]
                device = f'"{facts.device.type}"'
                arguments = [f'"{name}"', value, str(tensor.dtype), device, str(divisible)]
                own.say("require_tensor", *arguments)
            elif type_ in _INTEGERS:
                more = ["16"] if divisible else []
                bits = str(_INTEGERS[type_])
                own.say("require_integer", f'"{name}"', value, bits, *more)
            elif type_ in ("fp32", "fp64", "fp16", "bf16", "u1", "i1"):
                kind = "bool" if type_ in ("u1", "i1") else "float"
                own.require(f"type({value}) is {kind}", f"{name} was a {kind}")
            else:
                raise refused(self.of.kernel_name, f"argument {name!r} is of type {type_}")
        for name, value in self.of.constants.items():
            text = literal(value)
            if text is None:
                raise refused(self.of.kernel_name, f"constant {name!r} is {value!r}")
            own.say("require_same", f'"{name}"', name, text)
        self._of_descriptors(own)
        if any("parts" in str(entry.not_negative) for step in self.of.plan.next for entry in step):
            for i in self.of.plan.outputs if facts.keeps_outputs() else ():
                own.say("require_no_part", f'"{spec.names[i]}"', self.of.variables[i])
        for i in spec.pointers:
            if facts.tensors[i].dtype.is_floating_point and i not in self.of.execution.wanted:
                # Outputs with a history may have one before.
                if i not in self.of.returned:
                    own.say("require_no_gradient", f'"{spec.names[i]}"', self.of.variables[i])
        entries = [f'"{spec.names[i]}": {self.of.variables[i]}' for i in spec.pointers]
        written = tuple_of(f'"{spec.names[i]}"' for i in self.of.plan.outputs)
        met, beside = (
            tuple_of(tuple_of([f'"{spec.names[a]}"', f'"{spec.names[b]}"']) for a, b, *_ in pairs)
            for pairs in (facts.aliasing, facts.beside)
        )
        tensors = self.of.names.give("tensors")
        own.lines.append(call(f"{tensors} = {{", entries, "}", 4))
        capability = _capability(facts.device)
        made = str(numbers(version()))
        for what, right in self._doubts(capability).items():
            arguments = [f'"{self.of.kernel_name}"', f'"{what}"', made, str(right)]
            own.say("require_triton", *arguments)
        own.say("require_one_device", tensors, str(capability))
        more = [beside] if facts.beside else []
        own.say("require_meetings", tensors, written, met, *more)
        return own.lines


def _capability(device: torch.device) -> tuple[int, int] | None:
    """Return the capability of a launch's GPU; None if it is on none."""
    return torch.cuda.get_device_capability(device) if device.type == "cuda" else None
