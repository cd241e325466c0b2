"""Docstrings for printed kernels: what they are for."""

from __future__ import annotations

import ast

from ..errors import AutodiffError
from ..plans.cache import Pushed
from ..plans.remarks import place
from .explain import loops_of
from .expr_source import Text
from .python_text import paragraph

_INDENT = 4
_PROGRAMS = [f"program_{axis}" for axis in range(3)]
_ZERO = "grid[0] - grid[0]"
_ZERO_IS = (
    "zero, which Triton's compiler must not know: added to a sum between two loops, it lets the "
    "products of the second one overlap"
)
# How to read comments in kernels.
_LEGEND = (
    "A comment is the statement of the forward whose gradient comes next, and the rule for it, in "
    "which x̄ is the gradient of an operand x, and ȳ that of the result."
)
# How programs add to gradients; most store what they alone have.
_HOW = {
    "partial": "Each program stores a part of {}: the parts are added up afterwards.",
    "atomic": "Programs add to {} atomically.",
}


def docstring(spec, plan, kernel, parameters, called: dict[str, str]) -> list[str]:
    """Return the docstring of a printed kernel, in lines.

    `kernel` is a kernel of the plan for the launch `spec`, with these parameters, or its kernel
    with tangents, or None for the user's own. `called` has the names of the plan's kernels where
    they are printed.
    """
    about = f"`{spec.name}`, for these types and constants."
    said: list[str] = []
    if isinstance(kernel, Pushed):
        about = f"`{spec.name}`, which computes tangents, too."
        said += _tangents(spec, plan, kernel, parameters)
        operands = []
    elif kernel is not None:
        operands = list(zip(kernel.operands, parameters, strict=True))
        if kernel is plan.forward:
            about = f"`{spec.name}`, which leaves to its backward what that needs."
        else:
            about = f"A backward kernel of `{spec.name}`."
            said += [*_computed(operands), _programs(spec, plan, kernel)]
        said += _gradients(plan, operands)
        said += _memory(plan, kernel, operands, called)
        said += [_LEGEND] if kernel is not plan.forward else []
    if not said:
        return [f'    """{about}"""']
    lines = paragraph(" ".join(said), indent=_INDENT).split("\n")
    lines += _sizes(spec, plan, operands)
    return [f'    """{about}', "", *lines, '    """']


def with_docstring(text: str, lines: list[str]) -> str:
    """Add a docstring to a function whose statements are on lines of their own."""
    first = ast.parse(text).body[0].body[0].lineno - 1
    own = text.split("\n")
    # Comments above a statement belong to it.
    while own[first - 1].lstrip().startswith("#"):
        first -= 1
    return "\n".join([*own[:first], *lines, *own[first:]])


def _listed(names) -> str:
    return _enumerated(f"`{name}`" for name in names)


def _enumerated(words) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _of(operands, kind: str) -> list[str]:
    return [name for (of, _), name in operands if of == kind]


def _computed(operands) -> list[str]:
    gradients, upstream = _of(operands, "gradient"), _of(operands, "cotangent")
    if not gradients:
        return []
    source = f", from {_listed(upstream)}" if upstream else ""
    return [f"It computes {_listed(gradients)}{source}."]


def _tangents(spec, plan, kernel: Pushed, parameters) -> list[str]:
    """Return what a kernel with tangents computes from what."""
    own = list(zip(kernel.tangents, parameters[len(spec.types) :], strict=True))
    computed = [name for i, name in own if plan.arguments[i].stored]
    given = [name for i, name in own if plan.arguments[i].loaded]
    source = f", from {_listed(given)}" if given else ""
    said = [f"It computes {_listed(computed)}{source}."] if computed else []
    return [*said, "`t_x` is the tangent of `x`, or a part of it."]


def _programs(spec, plan, kernel) -> str:
    if kernel.grid is None:
        return "A program does the backward of one program of the forward."
    if loops := loops_of(spec.names, plan, kernel):
        lines = " and ".join(dict.fromkeys(map(place, loops)))
        return (
            f"A program is an iteration of the loop at {lines}, and sums over the programs of the "
            "forward that run it."
        )
    return "A program does the backward of several programs of the forward."


def _gradients(plan, operands) -> list[str]:
    how = {gradient.argument: gradient.accumulate for gradient in plan.gradients}
    said = []
    for way, text in _HOW.items():
        names = [name for (kind, i), name in operands if kind == "gradient" and how.get(i) == way]
        said += [text.format(_listed(names))] if names else []
    return said


def _memory(plan, kernel, operands, called) -> list[str]:
    """Return sentences on which kernels fill buffers, and which read them."""
    kernels = [k for k in (plan.forward, *plan.backward) if k is not None]
    from_, to = {}, {}
    for operand, name in operands:
        if operand[0] != "buffer":
            continue
        users = [k for k in kernels if operand in k.operands]
        place_ = next((n for n, k in enumerate(users) if kernel is k or kernel in k.variants), None)
        if place_ is None:
            continue
        if place_:
            from_.setdefault(_who(plan, users[0], called), []).append(name)
        elif others := tuple(_who(plan, k, called) for k in users[1:]):
            to.setdefault(others, []).append(name)
    said = [f"It leaves {_listed(names)} to {_enumerated(those)}." for those, names in to.items()]
    return said + [
        f"It reads {_listed(names)}, which {it} has left." for it, names in from_.items()
    ]


def _who(plan, kernel, called) -> str:
    """Return what a kernel of the plan is called where kernels are printed.

    A variant may be printed in its place, and the forward need not be printed at all.
    """
    for one in (kernel, *kernel.variants):
        if one.name in called:
            return f"`{called[one.name]}`"
    return "the augmented forward" if kernel is plan.forward else f"`{kernel.name}`"


def _sizes(spec, plan, operands) -> list[str]:
    """Return what the host passes on as sizes."""
    names = spec.names.__getitem__
    known = {
        "arg": names,
        "element": names,
        "extent": lambda i: f"extent({names(i)})",
        "processors": lambda: "processors",
    }
    text = Text(known, "grid", _PROGRAMS, lambda name: name)
    lines = []
    for (kind, i), name in operands:
        if kind != "size":
            continue
        try:
            value = text.of(plan.sizes[i])
        except AutodiffError:
            # What else is known of tensors, a launch says.
            continue
        if value == _ZERO:
            value = _ZERO_IS
        lines += paragraph(f"- {name}: {value}", indent=_INDENT).split("\n")
    if not lines:
        return []
    where = ["`grid` being the forward's"]
    if any("extent(" in line for line in lines):
        where.append("`extent` the elements from a tensor's first to its last")
    if any("processors" in line for line in lines):
        where.append("`processors` those of the GPU")
    head = paragraph(f"The host passes on, {', '.join(where)}:", _INDENT)
    return ["", *head.split("\n"), *lines]
