"""Names for tangents in printed kernels: `t_x` is the tangent of `x`.

Locations say of a tangent only which value it belongs to. That it is one is seen in the text: it
is computed from a tangent, and values never are.
"""

from __future__ import annotations

import ast
import re


def with_tangent_names(text: str, count: int) -> str:
    """Return the printed text of a kernel, whose last `count` parameters are tangents, in which
    names say what is one.
    """
    function = ast.parse(text).body[0]
    parameters = [argument.arg for argument in function.args.args]
    tangents = _computed_from(function, {*parameters[len(parameters) - count :]})
    places = [(n.lineno, n.col_offset, n.id) for n in ast.walk(function) if isinstance(n, ast.Name)]
    places += [(n.lineno, n.col_offset, n.arg) for n in function.args.args]
    taken, names = {name for *_, name in places} - tangents, {}
    for *_, name in sorted(places):
        if name in tangents and name not in names:
            names[name] = _free(f"t_{re.sub(r'(_[0-9]+)+$', '', name)}", taken)
    for results in _results_of_branches(function):
        _keep_sorted(results, names, taken)
    lines = text.split("\n")
    for number, column, name in sorted(places, reverse=True):
        if name in names:
            line = lines[number - 1].encode()
            end = column + len(name.encode())
            lines[number - 1] = (line[:column] + names[name].encode() + line[end:]).decode()
    # What is said of parameters is above the function.
    return "\n".join(_about(line, names) for line in lines)


def _computed_from(function: ast.FunctionDef, tangents: set[str]) -> set[str]:
    """Return the names of tangents, and of what is computed from them, in loops, too."""
    pairs = [pair for n in ast.walk(function) if isinstance(n, ast.Assign) for pair in _pairs(n)]
    found, before = set(tangents), None
    while before != len(found):
        before = len(found)
        found |= {target for target, value in pairs if not found.isdisjoint(_names(value))}
    return found


def _pairs(assign: ast.Assign):
    """Yield names that are assigned, and what each is computed from.

    Where several are, as by a reduction of pairs, each is computed from the operand in its place.
    """
    (target,), value = assign.targets, assign.value
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple):
        if isinstance(value, ast.Call) and value.args:
            value = value.args[0]
        if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
            pairs = zip(target.elts, value.elts, strict=True)
            yield from ((name.id, of) for name, of in pairs if isinstance(name, ast.Name))


def _results_of_branches(function: ast.FunctionDef):
    """Yield the names of the results of each branch that has several."""
    for node in ast.walk(function):
        last = node.body[-1] if isinstance(node, ast.If) else None
        if isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Tuple):
            yield [target.id for target in last.targets[0].elts]


def _keep_sorted(results: list[str], names: dict[str, str], taken: set[str]) -> None:
    """Give results of a branch names in their order: Triton sorts them by name."""
    given = [names.get(name, name) for name in results]
    if given == sorted(given):
        return
    for number, (name, current) in enumerate(zip(results, given, strict=True)):
        # As the printer does: a_, b_, …, za_.
        prefix = "z" * (number // 25) + chr(ord("a") + number % 25) + "_"
        taken.discard(current)
        mark = "t_" if name in names else ""
        names[name] = _free(f"{prefix}{mark}{name.removeprefix(prefix)}", taken)


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _free(wanted: str, taken: set[str]) -> str:
    """Return a name that is not taken, and take it."""
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name


def _about(line: str, names: dict[str, str]) -> str:
    told = re.match(r"# (\w+): ", line)
    return line if told is None else f"# {names.get(told[1], told[1])}: {line[told.end() :]}"
