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
from triton_autodiff import host_program, host_steps
from triton_autodiff.host_program import lower_forward

pytestmark = pytest.mark.usefixtures("needs_gradients")
PAGE = Path(__file__).parents[3] / "docs" / "host-program.md"


def described(kernel) -> str:
    """The steps of a kernel's last forward and backward."""
    (state, plan, execution), *_ = kernel._plans((), {})
    backward = execution.used
    steps = (*lower_forward(plan, execution.copied), *backward.program.steps)
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
    kinds = {kind.verb for kind in host_steps.Step.__subclasses__()}
    _, _, table = page.partition("| step | what it does |\n|---|---|\n")
    rows = table.partition("\n\n")[0].splitlines()
    assert kinds == {row.split(" | ")[0].removeprefix("| ") for row in rows}


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
