"""Host programs: what the host does in a backward, as data that can be read."""

import re
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from gradients import random_tensor
from kernels import normalization
from triton.backends.autodiff import autodiff, differentiable
from triton_autodiff.plans.planned_steps import STEPS
from triton_autodiff.programs import host_program, host_steps

pytestmark = pytest.mark.usefixtures("needs_gradients")
PAGE = Path(__file__).parents[3] / "docs" / "host-program.md"


def described(kernel) -> str:
    """The steps of a kernel's last forward and backward."""
    (state, plan, execution), *_ = kernel._plans((), {})
    backward = execution.used
    steps = [*execution.forward.program, *(step for stage in backward.stages for step in stage)]
    return host_program.described(steps, backward.plan, state.spec.names)


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_the_page_has_layer_norm_s(device, page):
    x, w, b = (random_tensor(*shape, device=device) for shape in ((37, 50), (50,), (50,)))
    op = autodiff(normalization.layer_norm_kernel, normalization.layer_norm)
    op(x, w, b).sum().backward()
    assert re.search(r"```text\n(.*?)\n```", page, re.S)[1] == described(op.kernel)


def test_the_page_has_all_kinds(page):
    """With what each is: linear, waiting, and what a batch makes of it."""
    _, _, table = page.partition("| step | what it does | in a batch |\n|---|---|---|\n")
    rows = [row.strip("| ").split(" | ") for row in table.partition("\n\n")[0].splitlines()]
    assert {
        verb: ("(linear)" in what, "the host waits" in what, batch) for verb, what, batch in rows
    } == {kind.verb: (kind.linear, kind.waits, kind.batch) for kind in host_program.KINDS.values()}


def test_the_compiler_knows_all_kinds():
    kinds = {*host_program.KINDS}
    assert kinds == {*STEPS}
    include = PAGE.parents[1] / "third_party" / "autodiff" / "include" / "autodiff"
    text = (include / "Dialect" / "PlanAttributes.td").read_text(encoding="utf-8")
    _, _, listed = text.partition('"StepKind", "what the host does", [')
    assert kinds == {*re.findall(r'\d+, "(\w+)"', listed.partition("]>")[0])}


@triton.jit
def collatz_kernel(x_ptr, n_ptr, y_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x, n = tl.load(x_ptr + i), tl.load(n_ptr + tl.program_id(0))
    while n > 1:
        x = tl.sin(x)
        n -= 1
    tl.store(y_ptr + i, x)


def test_what_waits(device):
    """It says so: a count is read by the host."""
    x, n = random_tensor(32, device=device), torch.tensor([3, 5], device=device, dtype=torch.int32)
    y = torch.empty_like(x)
    kernel = differentiable(collatz_kernel)
    kernel[(2,)](x, n, y, N=16)
    y.sum().backward()
    lines = described(kernel).splitlines()
    assert [line for line in lines if "waits" in line] == [
        "count          collatz_kernel_count (waits)"
    ]


def test_linear_steps(device):
    """Of a sum of contents, a linear step makes the sum of what it makes of each."""
    x, w, b = (
        random_tensor(*shape, device=device, dtype=torch.float64)
        for shape in ((37, 50), (50,), (50,))
    )
    op = autodiff(normalization.layer_norm_kernel, normalization.layer_norm)
    op(x, w, b).sum().backward()
    ((_, _, execution), *_) = op.kernel._plans((), {})
    backward = execution.used
    steps = [step for stage in backward.stages for step in stage]
    kinds = set()

    def filled() -> host_steps.Registers:
        shape = execution.facts.tensors[2].shape
        upstream = {j: torch.randn(shape, device=device).double() for j in backward.cotangents}
        registers = host_steps.Registers([None] * 99, (), upstream, None)
        for step in steps:
            if isinstance(step, host_steps.MakeGradient):
                step.bind(backward)(registers)
        for made in filter(torch.is_tensor, registers.tensors):
            made.normal_()
        return registers

    def added(one, other) -> host_steps.Registers:
        upstream = {j: one.upstream[j] + other.upstream[j] for j in one.upstream}
        registers = host_steps.Registers([None] * 99, (), upstream, None)
        pairs = zip(one.tensors, other.tensors, strict=True)
        registers.tensors = [None if a is None else a + b for a, b in pairs]
        return registers

    def check(run, *given) -> None:
        given += (added(*given),)
        for registers in given:
            run(registers)
        for of in ("tensors", "handed", "gradients"):
            one, other, both = (getattr(registers, of) for registers in given)
            for key in both if of == "gradients" else range(len(both)):
                if both[key] is not None:
                    torch.testing.assert_close(both[key], one[key] + other[key])

    def random() -> host_steps.Registers:
        registers = host_steps.Registers([None] * 99, (), {}, None)
        registers.tensors = [torch.randn(3).double() for _ in range(99)]
        return registers

    # A step that has nothing to do in a run is bound to nothing.
    for step in (step for step in steps if step.linear):
        if run := step.bind(backward):
            kinds.add(step.verb)
            check(run, filled(), filled())
    for step in execution.forward.program:
        if step.linear and (run := step.bind(execution.forward)):
            kinds.add(step.verb)
            check(run, random(), random())
    assert kinds == {"lay out", "add up", "convert", "save"}
