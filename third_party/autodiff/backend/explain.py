"""Texts about plans: the backward's TTIR, and how each gradient is computed."""

from __future__ import annotations

from .expr import used_counters


def backward_text(plans) -> str:
    """Return the TTIR of the backward kernels of `(state, plan, execution)` triples."""
    return "\n".join(kernel.ttir for _, plan, _ in plans for kernel in plan.backward)


def _accumulation(gradient, names, atomic, exchange) -> str:
    if not gradient.returned:
        how = f"a copy in {gradient.dtype}, from which each element is taken once, atomically"
        if gradient.argument in exchange:
            how += ", because a host check on its addresses failed for these arguments"
        return f"  upstream gradient of {names[gradient.argument]}: {how}"
    if gradient.accumulate == "store":
        how = "plain stores"
        if gradient.checks:
            how += ", each element once (checked on the host)"
    else:
        how = f"atomic adds in {gradient.dtype}"
        if gradient.argument in atomic:
            how += ", because a host check on its addresses failed for these arguments"
    start = {"none": "", "zero": ", from zero", "cotangent": ", on top of the upstream gradient"}
    return f"  gradient of {names[gradient.argument]}: {how}{start[gradient.init]}"


def _size(buffer, number, plan, execution) -> str:
    if used_counters(buffer.size):
        return ", sized by a counting kernel"
    if execution is None or execution.backward.plan is not plan:
        return ""
    return f", {execution.backward.buffers[number][2].get(None)} elements"


def report(plans) -> str:
    """Return a description of `(state, plan, execution)` triples for people."""
    lines = []
    for state, plan, execution in plans:
        names = state.spec.names
        atomic, exchange = ((), ()) if execution is None else (execution.atomic, execution.exchange)
        inputs = ", ".join(names[i] for i in plan.inputs) or "nothing"
        outputs = ", ".join(names[j] for j in plan.outputs) or "nothing"
        lines.append(f"kernel {plan.kernel}: gradients of {inputs}; writes {outputs}")
        forward = "the kernel itself" if plan.forward is None else f"{plan.forward.name} (saves)"
        lines.append(f"  forward: {forward}")
        lines += [f"  backward kernel: {kernel.name}" for kernel in plan.backward]
        lines += [_accumulation(g, names, atomic, exchange) for g in plan.gradients]
        lines += [f"  {b.kind} buffer {b.name}: {b.dtype}{_size(b, n, plan, execution)}"
                  for n, b in enumerate(plan.buffers)]  # fmt: skip
        lines += [f"  {names[i]} is copied before the launch, which overwrites it"
                  for i in plan.snapshots]  # fmt: skip
        lines += [f"  {line}" for line in plan.report]
    return "\n".join(lines)
