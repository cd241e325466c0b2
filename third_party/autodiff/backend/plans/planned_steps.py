"""The steps of a plan: what the host does, as the compiler lists it, by stage.

A plan in which one is missing, twice or out of place is refused: a launch would do less than it
should, silently.
"""

from __future__ import annotations

from ..support.fields import get, one_of, require

STAGES = ("forward", "prepare", "launch", "finish")
STEPS = (
    *("copy", "count", "evaluate", "allocate", "launch_forward", "lay_out", "stand_in_for"),
    *("keep", "save", "make", "tally", "launch", "round", "add_up", "convert", "return"),
)
# Those that are about several operands at once.
TOGETHER = ("add_up", "keep", "save", "return")


def steps_of(data) -> dict[str, tuple]:
    """Return the steps of each stage, as pairs of a kind and what it is about."""
    stages: dict[str, list] = {stage: [] for stage in STAGES}
    for step in data:
        stage = one_of(get(step, "stage", str), STAGES, "stage")
        kind = one_of(get(step, "kind", str), STEPS, "step")
        stages[stage].append((kind, tuple(get(step, "about", list))))
    return {stage: tuple(steps) for stage, steps in stages.items()}


def _needed(plan) -> dict[tuple[str, str], list[int]]:
    """Return what the steps of a stage and kind are about: each operand once."""
    taken = {operand for kernel in plan.kernels for operand in kernel.operands}
    of_forward = set() if plan.forward is None else {*plan.forward.operands}
    saved = {n for n, buffer in enumerate(plan.buffers) if buffer.kind == "saved"}
    gradients = {g.argument: g for g in plan.gradients}
    sums = {i for i, g in gradients.items() if g.partials is not None}
    tallied = {i for i, g in gradients.items() if g.tallied is not None}
    overwritten = {i for i, g in gradients.items() if g.overwritten}
    needed = {
        ("forward", "copy"): plan.reread(),
        ("forward", "evaluate"): {n for kind, n in of_forward if kind == "size"},
        ("forward", "allocate"): saved,
        ("forward", "keep"): plan.reread(),
        ("forward", "save"): saved,
        ("prepare", "lay_out"): plan.cotangents() | overwritten,
        ("prepare", "evaluate"): range(len(plan.sizes)),
        ("prepare", "allocate"): {*range(len(plan.buffers))} - saved,
        ("prepare", "stand_in_for"): {i for i in gradients if ("rounded", i) in taken},
        ("prepare", "make"): gradients,
        ("launch", "tally"): tallied,
        ("launch", "launch"): range(len(plan.backward)),
        ("launch", "round"): tallied,
        ("finish", "add_up"): sums,
        ("finish", "convert"): gradients.keys() - sums,
        ("finish", "return"): {i for i, g in gradients.items() if g.returned},
    }
    return {of: sorted(numbers) for of, numbers in needed.items()}


def require_all(plan) -> None:
    """Require that the host does all that the kernels of a plan need, and nothing twice."""
    needed = _needed(plan)
    found: dict[tuple[str, str], list[int]] = {of: [] for of in needed}
    launches = []
    for stage, steps in plan.steps.items():
        for kind, about in steps:
            if kind == "count":
                require(plan.counting is not None, "nobody counts")
            elif kind == "launch_forward":
                launches.append((stage, about))
            else:
                is_such = len(about) == 1 or (kind in TOGETHER and about)
                is_such = is_such and all(type(number) is int for number in about)
                require((stage, kind) in needed and is_such, f"{kind!r} of {about!r} to {stage}")
                found[stage, kind] += about
    for of, numbers in needed.items():
        # In which order others are made, or added up, does not matter.
        given = found[of] if of == ("launch", "launch") else sorted(found[of])
        require(given == numbers, f"{of[1]!r} to {of[0]} is about {given}, not {numbers}")
    require(launches == [("forward", ())], "the forward launches once")
    # A backward takes what is handed on by its place: arguments, then buffers, each in their order.
    steps = plan.steps["forward"]
    behind = [(k, tuple(needed["forward", k])) for k in ("keep", "save") if needed["forward", k]]
    expected = (("launch_forward", ()), *behind)
    require(steps[-len(expected) :] == expected, f"the forward ends with {expected}")
