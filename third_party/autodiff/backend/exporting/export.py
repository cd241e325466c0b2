"""Kernels and their gradients as a Python module that needs PyTorch and Triton, and not us.

It contains the forward kernel (with the stores for the backward, if any), the backward kernels, an
`autograd.Function`, and what users call: `kernel[grid](…)`, or the operation.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

from ..checking import coverage, facts
from ..compiling.executable import inherited_options
from ..errors import ArgumentError, AutodiffError
from ..launching import grafts
from ..library import native
from ..plans.target import name_of
from ..printing.constexprs import Constexprs
from ..printing.python_text import paragraph
from ..printing.source import python_of
from ..storage import memory
from ..support import arithmetic
from ..support.whole_files import put
from . import exported
from .arguments import numbers_that_may_be_one, operands_of, with_types
from .bundle import Bundle, private, text_of
from .checks import refused
from .launch import ExportedLaunch, Names, Printed
from .launcher import Launcher
from .node import Node

# The code below this line is the same in all modules.
_RULE = "# Assertions, memory, and sums of gradients."
_FUNCTION = re.compile(r'(tt\.func public @)"?(\w+)"?(?=\()')


def export(path, launches, stub=None) -> Path:
    """Write a module for `(state, plan, execution)` triples, the launches that `stub` makes.

    Without a stub, they are launches of one kernel. Returns the path. The file is written
    completely or not at all. Raises an `AutodiffError` if a module is not possible, or the file
    cannot be written.
    """
    path = Path(path)
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise ArgumentError(
            f"export to a file whose name is that of a module, like layer.py, not {path.name!r}"
        )
    _write(path, module_of(launches, stub))
    return path


def _write(path: Path, text: str) -> None:
    try:
        put(path, text.encode())
    except OSError as error:
        raise AutodiffError(f"cannot export to {path}: {error.strerror or error}") from error


def module_of(launches, stub=None) -> str:
    """Return the text of the module that `export` writes."""
    launches = list(launches)
    for state, _, execution in launches:
        if execution is None:
            raise refused(
                state.spec.name,
                "no gradient was wanted of its launch",
                "export it with arguments that require gradients",
            )
    if len({state.spec.name for state, _, _ in launches}) > 1:
        raise refused(
            launches[0][0].spec.name, "its wrapper launches others, too", "export what it wraps"
        )
    suffixes = [f"_{n}" for n in range(1, len(launches) + 1)] if len(launches) > 1 else [""]
    written = [
        ExportedLaunch(execution, execution.used, suffix)
        for (_, _, execution), suffix in zip(launches, suffixes, strict=True)
    ]
    return Module(written, stub).text()


class Module:
    """Puts the parts of a module together."""

    def __init__(self, launches: list[ExportedLaunch], stub, is_for_readers: bool = True):
        self._launches = launches
        self._stub = stub
        # Readers want names of constexprs for numbers, which take time to find.
        self._is_for_readers = is_for_readers
        self._kernel = launches[0].kernel_name
        self.nodes: list[Node] = []

    def text(self) -> str:
        """Return the module."""
        printed, kernels = self._kernels()
        parts = []
        calls: set[str] = {"Kernel"}
        for launch, (forward, *backward) in zip(self._launches, printed, strict=True):
            node = Node(launch, forward, backward)
            self.nodes.append(node)
            parts += [node.text(), Launcher(launch).text()]
            calls |= launch.calls
        launchers = ", ".join(launch.launcher for launch in self._launches)
        last = f"{self._kernel} = {private('Kernel')}({launchers})"
        own = {name for launch in self._launches for name in (launch.launcher, launch.class_name)}
        own |= {kernel.name for made in printed for kernel in made} | {self._kernel}
        bundle = Bundle(own)
        for module, name in ((functools, None), (torch, None), (triton, None), (tl, "tl")):
            bundle.need(module, name)
        if self._stub is not None:
            bundle.add(self._stub, without_kernel(self._stub, self._kernel), {self._kernel})
        user = [*_together(bundle.constants), kernels, *parts, *bundle.definitions]
        constants, definitions = len(bundle.constants), len(bundle.definitions)
        for module in (exported, arithmetic, coverage, facts, grafts, memory):
            for name, value in vars(module).items():
                if name in calls and getattr(value, "__module__", None) == module.__name__:
                    bundle.add(value)
        helpers = [*_together(bundle.constants[constants:]), *bundle.definitions[definitions:]]
        sections = [*user, f"{_RULE}\n\n\n{helpers[0]}", *helpers[1:], last]
        # As ruff formats it: constants directly below imports, two blank lines elsewhere.
        space = "\n\n" if constants else "\n\n\n"
        return self._head(bundle) + space + "\n\n\n".join(sections) + "\n"

    def _kernels(self) -> tuple[list[list[Printed]], str]:
        """Return the kernels of each launch, the forward first, and the text of all of them."""
        taken = Names([self._kernel, *(launch.launcher for launch in self._launches)])
        texts, origins, made = [], [], []
        for launch in self._launches:
            spec, plan = launch.spec, launch.plan
            forward = plan.forward
            first = spec.kernel.asm["ttir"] if forward is None else forward.ttir
            options = inherited_options(spec.kernel.metadata)
            if forward is not None:
                first, options = launch.forward.text, launch.forward.options
            taking = [i for i, _ in operands_of(launch)]
            if forward is not None:
                taking = _arguments(forward)
            given = [(f"{launch.kernel_name}_fwd", first, options, taking, forward)]
            given += [
                (e.kernel.name, e.text, e.options, _arguments(e.kernel), e.kernel)
                for e in launch.executables
            ]
            constexprs = Constexprs(spec, plan)
            names = []
            for wanted, text, options, taken_by_kernel, kernel in given:
                name = taken.give(wanted)
                texts.append(_FUNCTION.sub(rf"\g<1>{name}", text, count=1))
                origins.append((constexprs, kernel))
                names.append((name, launch, options, taken_by_kernel))
            made.append(names)
        target = self._launches[0].spec.target
        source = python_of(texts, self._kernel, origins if self._is_for_readers else (), target)
        body = source.split("\n\n\n", 1)[1].rstrip()
        functions = {
            node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)
        }
        printed = []
        for names in made:
            printed.append([])
            for name, launch, options, taking in names:
                parameters = [argument.arg for argument in functions[name].args.args]
                kernel = Printed(name, parameters, options, launch.spec.target)
                printed[-1].append(kernel)
                typed = numbers_that_may_be_one(functions[name], launch, taking)
                body = with_types(body, {name: typed})
        return printed, body

    def _head(self, bundle: Bundle) -> str:
        """Return the docstring and the imports."""
        launch, version = self._launches[0], native().version().partition("+")[0]
        target = name_of(launch.spec.target)
        name = self._stub.__name__ if self._stub is not None else self._kernel
        about = f"`{name}` with its gradients, as Triton kernels."
        lines = [f'"""{about}', ""]
        lines.append(
            paragraph(
                f"Made by Triton-Autodiff {version} from the kernel `{self._kernel}`, "
                f"with Triton {triton.__version__} for {target}. It was made for launches that are "
                "like the one that it was exported from; whatever is not is an AssertionError:"
            )
        )
        lines.append("")
        for one in self._launches:
            lines += _said_of(one)
        lines += ['"""', "", "from __future__ import annotations", ""]
        standard, others = [], []
        for line in bundle.imports:
            module = line.split()[1].partition(".")[0]
            installed = module in sys.stdlib_module_names
            (standard if installed else others).append(line)
        groups = [sorted(g, key=_import_order) for g in (standard, others) if g]
        return "\n".join(lines) + "\n" + "\n\n".join("\n".join(g) for g in groups)


def _arguments(kernel) -> list[int | None]:
    """Return the argument number for each parameter of a kernel; None for other operands."""
    return [index if kind == "argument" else None for kind, index in kernel.operands]


def _together(lines: list[str]) -> list[str]:
    """Join lines into one section, if there are any."""
    return ["\n".join(lines)] if lines else []


def _import_order(line: str):
    """Return ruff's sort key for imports: whole modules first, then names from them."""
    return line.startswith("from"), line.split()[1].lower()


def _said_of(launch: ExportedLaunch) -> list[str]:
    """Describe a launch for the head of a module."""
    spec, facts = launch.spec, launch.facts
    lines = []
    for i, (name, type_) in enumerate(zip(spec.names, spec.types, strict=True)):
        if i in launch.state.pointer_set:
            tensor = facts.tensors[i]
            kind = f"{str(tensor.dtype)[6:]}, {facts.device.type}"
            kind += ", all of its storage" if i in launch.whole else ""
            lines.append(f"- `{name}`: a tensor ({kind})")
        else:
            lines.append(f"- `{name}`: {type_}")
    lines += [f"- `{name}` = {value!r}" for name, value in launch.constants.items()]
    inputs = ", ".join(f"`{spec.names[i]}`" for i in launch.plan.inputs)
    upstream = ", ".join(f"`{spec.names[j]}`" for j in sorted(launch.plan.cotangents()))
    lines.append(f"- gradients of {inputs}, from those of {upstream}")
    return lines


def without_kernel(stub, kernel: str) -> str:
    """Return a stub's source without its first parameter, replaced by the name `kernel`."""
    if not inspect.isfunction(stub):
        raise AutodiffError(
            f"stub {stub!r} is a {type(stub).__name__}: give autodiff a function, written with def"
        )
    text = text_of(stub)
    function = ast.parse(text).body[0]
    arguments = [*function.args.posonlyargs, *function.args.args]
    if not arguments:
        raise AutodiffError(f"stub {stub.__name__!r} takes no kernel as its first parameter")
    own = arguments[0]
    others = [a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)][1:]
    if kernel in others:
        raise AutodiffError(
            f"parameter {kernel!r} of stub {stub.__name__!r} is called as the kernel is: rename it"
        )
    lines = text.split("\n")
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None:
        first = function.body[1] if len(function.body) > 1 else None
    if own.arg != kernel and first is not None:
        indent = " " * first.col_offset
        lines.insert(first.lineno - 1, f"{indent}{own.arg} = {kernel}")
    return "\n".join(_cut_parameter(lines, own))


def _cut_parameter(lines: list[str], own) -> list[str]:
    """Return lines without a parameter of a function."""
    line = lines[own.lineno - 1].encode()
    end = own.end_col_offset
    rest = line[end:].decode()
    rest = rest.lstrip()
    if rest.startswith(","):
        rest = rest[1:].lstrip()
    lines[own.lineno - 1] = line[: own.col_offset].decode() + rest
    if not lines[own.lineno - 1].strip():
        del lines[own.lineno - 1]
    return lines
