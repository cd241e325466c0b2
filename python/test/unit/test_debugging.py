"""Kernels that call Python functions under the interpreter: these run, and gradients are right."""

import os
import subprocess
import sys
from pathlib import Path

import gradients
import pytest

HELPERS = '''
import triton.language as tl
calls = []

def test_pid_conds(conds, pid_0=[0]):
    pid = pid_0.handle.data.item() if hasattr(pid_0, "handle") else pid_0[0]
    for condition in conds.replace(" ", "").split(","):
        if condition and not eval(f"{pid} {condition}"):
            return False
    return True

def print_if(text, conds, pid_0=[0]):
    """Prints a text if a condition on the program holds."""
    if test_pid_conds(conds, pid_0):
        print(text)

def breakpoint_if(conds, pid_0=[0]):
    if test_pid_conds(conds, pid_0):
        calls.append("breakpoint")

def sneaky(pointers, values):
    nested = lambda: tl.store(pointers, values)
    nested()

def doubled(x):
    return x * 2
'''

KERNELS = """
import sys
import torch
import triton
import triton.language as tl
import helpers
from helpers import breakpoint_if, doubled, print_if, sneaky
from triton.backends.autodiff import AutodiffError, differentiable

seen = []

@triton.jit
def squared(x):
    print_if("callee", "")
    return x * x

@triton.jit
def kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    print_if(f"pid = {pid} | x = {x}", "== 1", pid)
    helpers.print_if(
        f"π = {x[None, :]}",
        "> 5",
        pid,
    ); y = squared(x)
    if n > 3:
        breakpoint_if("== 0", pid)
    print(f"in place: {tl.load(y_ptr + i, mask=i < n)}")
    seen.append(1)
    y = tl.load(y_ptr + i, mask=i < n) + y * tl.load(w_ptr + i, mask=i < n)
    tl.store(y_ptr + i, y, mask=i < n)
"""

RIGHT = (
    KERNELS
    + """
tuned = triton.autotune([triton.Config({"BLOCK": 8})], key=["n"], restore_value=["y_ptr"])(kernel)
for made, block in ((kernel, {"BLOCK": 8}), (tuned, {})):
    helpers.calls.clear(), seen.clear()
    x, w, start = (torch.randn(20, requires_grad=True) for _ in range(3))
    held = torch.cat([start, torch.zeros(4)])
    y = held[:20] * 1
    differentiable(made)[(3,)](x, w, y, 20, **block)
    upstream = torch.randn(20)
    found = torch.autograd.grad(y, (x, w, start), upstream)
    torch.testing.assert_close(y, start + w * x * x)
    for one, other in zip(found, (2 * x * w * upstream, x * x * upstream, upstream)):
        torch.testing.assert_close(one, other)
    # The interpreter ran it, once in each program.
    assert helpers.calls == ["breakpoint"] and len(seen) == 3, (helpers.calls, seen)
    y = torch.zeros(20)
    differentiable(made)[(3,)](x.detach(), w.detach(), y, 20, **block)
    torch.testing.assert_close(y, (w * x * x).detach())
print("right")
"""
)

REFUSED = (
    KERNELS
    + """
@triton.jit
def uses(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, doubled(tl.load(x_ptr + i)))

@triton.jit
def hides(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    sneaky(y_ptr + i, tl.load(x_ptr + i))

@triton.jit
def bits(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    print_if(
        "two lines",
        "")
    x = tl.load(x_ptr + i).to(tl.int32, bitcast=True) & 7
    tl.store(y_ptr + i, x.to(tl.float32, bitcast=True))

def message(kernel):
    x, y = torch.rand(8, requires_grad=True), torch.empty(8)
    try:
        differentiable(kernel)[(1,)](x, y, BLOCK=8)
        y.sum().backward()
    except AutodiffError as error:
        return str(error)

assert "'uses' calls the Python function 'doubled', whose result it uses" in message(uses)
assert "'hides' calls the Python function 'sneaky', which writes to memory" in message(hides)
line = next(n for n, text in enumerate(open(__file__), 1) if "x.to(tl.float32" in text)
assert f"program.py:{line}:" in message(bits), message(bits)
# The interpreter itself runs them.
y = torch.empty(8)
differentiable(uses)[(1,)](torch.ones(8), y, BLOCK=8)
assert (y == 2).all()
print("right")
"""
)


@pytest.mark.parametrize("program", [RIGHT, REFUSED], ids=["right", "refused"])
def test_debugging(tmp_path, program):
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")
    (tmp_path / "helpers.py").write_text(HELPERS)
    script = tmp_path / "program.py"
    script.write_text(program)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    paths = str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True
    )
    assert done.stdout.endswith("right\n"), done.stderr
    if program is RIGHT:
        assert "pid = [1]" in done.stdout or "pid = 1" in done.stdout
        assert "in place" in done.stdout and "callee" in done.stdout and "π" not in done.stdout
