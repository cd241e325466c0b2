"""Arguments of an exported launch with components: tuples, and tensor descriptors.

The autograd node takes the components, since autograd only sees tensors that are arguments.
"""

from __future__ import annotations

import ast
import re

from ..kernels.descriptors import block_of
from ..printing.python_text import call, targets
from .bundle import literal
from .checks import refused
from .launch import ExportedLaunch


def unpacked(of: ExportedLaunch) -> list[str]:
    """Return the lines that unpack arguments, after asserting their types."""
    lines: list[str] = []
    names = dict(zip(of.spec.paths, of.variables, strict=True))
    for number, (name, type_) in enumerate(of.spec.kernel.src.signature.items()):
        _unpack(of, names, (number,), name, type_, lines)
    return lines


def _unpack(of: ExportedLaunch, names, path, name: str, type_, lines: list[str]) -> None:
    label = f'"{of.parameters[path[0]]}{"".join(f"[{i}]" for i in path[1:])}"'
    if isinstance(type_, (tuple, list)):
        found = [(*path, place) for place in range(len(type_))]
        parts = [names.get(p) or of.described.get(p) or of.part(name, p[-1]) for p in found]
        arguments = [label, name, str(len(parts))]
        lines.append(_assigned(parts, call(f"{of.call('parts')}(", arguments)))
        for part, inner, own in zip(parts, type_, found, strict=True):
            _unpack(of, names, own, part, inner, lines)
    elif path in of.described:
        parts = [variable for p, variable in names.items() if _within(p, path)]
        arguments = [label, name, str(block_of(type_))]
        lines.append(_assigned(parts, call(f"{of.call('described')}(", arguments)))
    elif type_ == "constexpr" and len(path) > 1:
        value = of.spec.kernel.src.constants[path]
        text = literal(value)
        if text is None:
            raise refused(of.kernel_name, f"constant {label} is {value!r}")
        lines.append(call(f"{of.call('require_same')}(", [label, name, text], indent=4))


def _within(path, whole) -> bool:
    return path[: len(whole)] == whole


def _assigned(parts: list[str], value: str) -> str:
    """Return the line that names all components of a value."""
    return f"    {targets(parts)} = {value}" if parts else f"    {value}"


def operands_of(of: ExportedLaunch) -> list[tuple[int, str]]:
    """Return the operands of the user's own kernel, by argument; descriptors stay whole."""
    operands = []
    for i, (path, variable) in enumerate(zip(of.spec.paths, of.variables, strict=True)):
        if path[-1] == "base":
            operands.append((i, of.described[path[:-1]]))
        elif not any(_within(path, whole) for whole in of.described):
            operands.append((i, variable))
    return operands


def may_be_one(of: ExportedLaunch, i: int) -> bool:
    """Return whether another launch may have 1 for this integer of 32 bits or less.

    Longer ones are annotated, and Triton does not specialize them.
    """
    known = of.facts.descriptors
    divisible = is_divisible(of, i) or i in known.aligned
    return of.spec.types[i] in ("i8", "i16", "i32") and not divisible


def is_divisible(of: ExportedLaunch, i: int) -> bool:
    """Return whether the kernel was compiled for multiples of 16 in this argument."""
    attributes = of.spec.kernel.src.attrs.get(of.spec.paths[i], ())
    return any(name == "tt.divisibility" for name, _ in attributes)


def numbers_that_may_be_one(function: ast.FunctionDef, of: ExportedLaunch, operands) -> list[str]:
    """Return the parameters of a kernel that Triton may replace by the Python number 1.

    The text uses them as values of the language. `operands` has an argument number for each
    parameter, or None.
    """
    bare = set()
    for node in ast.walk(function):
        used = [node.value] if isinstance(node, ast.Attribute) else getattr(node, "args", [])
        if isinstance(node, (ast.Attribute, ast.Call)):
            bare |= {part.id for part in used if isinstance(part, ast.Name)}
    pairs = zip(function.args.args, operands, strict=True)
    return [p.arg for p, i in pairs if p.arg in bare and i is not None and may_be_one(of, i)]


# A parameter of a printed kernel with its type: in a line of its own, or of a short header, in a
# comment.
_PARAMETER = re.compile(
    r"(?: +(\w+)(?:: tl\.\w+)?,  # |# (\w+): )(tl\.(?:u?int|b?float)\d+)(?:,.*)?$"
)


def with_types(text: str, kernels: dict) -> str:
    """Return a module whose kernels convert numbers to the types that they were compiled for.

    `kernels` has the parameters concerned, by kernel name; None means all. Triton passes an integer
    1 as a Python number, and Inductor passes floats as float64.
    """
    lines = text.split("\n")
    for function in reversed(ast.parse(text).body):
        if isinstance(function, ast.FunctionDef) and function.name in kernels:
            wanted = kernels[function.name]
            begin = 1 if ast.get_docstring(function) is not None else 0
            first = function.body[begin].lineno - 1
            above = function.decorator_list[0].lineno - 1
            while lines[above - 1].startswith("#"):
                above -= 1
            found = filter(None, map(_PARAMETER.match, lines[above:first]))
            pairs = [(m[1] or m[2], m[3]) for m in found]
            lines[first:first] = [
                f"    {name} = tl.cast({name}, {type_})"
                for name, type_ in pairs
                if wanted is None or name in wanted
            ]
    return "\n".join(lines)
