"""Operations one after the other, as many as Triton compiles: no stack is too short, no time grows
with the square of their number."""

import json
import time

import pytest
import torch
import triton
import triton.language as tl
from cpu_backend import on_cpu  # noqa: F401
from triton.backends.autodiff import differentiable
from triton.backends.autodiff._native import compile_cpu, differentiate, run_pipeline
from triton.backends.autodiff.errors import AutodiffError

TILE, POINTERS = "tensor<256xf32>", "tensor<256x!tt.ptr<f32>>"
STEPS = {
    "products": f"%v{{next}} = arith.mulf %v{{now}}, %half : {TILE}",
    "sines": f"%v{{next}} = math.sin %v{{now}} : {TILE}",
    "shared": f"%v{{next}} = arith.mulf %v{{now}}, %v{{before}} : {TILE}",
}
# Each with a condition of its own: they do not become one.
BRANCH = f"""%c{{now}} = arith.constant {{now}} : i32
%is{{now}} = arith.cmpi sgt, %n, %c{{now}} : i32
%v{{next}} = scf.if %is{{now}} -> ({TILE}) {{{{
  %s{{now}} = math.sin %v{{now}} : {TILE}
  scf.yield %s{{now}} : {TILE}
}}}} else {{{{
  scf.yield %v{{now}} : {TILE}
}}}}"""

HALF = f"%v{{next}} = arith.addf %v{{now}}, %half : {TILE}"


def chain(step, length, between=HALF):
    """Return TTIR that takes every second step, and another one between them."""
    lines = [
        "tt.func public @chain(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {",
        "%i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>",
        f"%half = arith.constant dense<0.5> : {TILE}",
    ]
    for name in "xy":
        lines.append(f"%{name}s = tt.splat %{name} : !tt.ptr<f32> -> {POINTERS}")
        lines.append(f"%{name}p = tt.addptr %{name}s, %i : {POINTERS}, tensor<256xi32>")
    lines.append(f"%v0 = tt.load %xp : {POINTERS}")
    for now in range(length):
        text = step if now % 2 else between
        lines.append(text.format(before=max(0, now - 1), now=now, next=now + 1))
    return "\n".join([*lines, f"tt.store %yp, %v{length} : {POINTERS}", "tt.return", "}"])


def derive(text):
    """Return the plan for the CPU."""
    return json.loads(differentiate(text, json.dumps({"target": "cpu"})))


def growth(function, short, long):
    """Return how many times as long the function takes: the least of three, for a machine's pace
    changes."""

    def seconds(argument):
        begin = time.process_time()
        function(argument)
        return time.process_time() - begin

    seconds(short)
    return min(seconds(long) / seconds(short) for _ in range(3))


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_derivation(step):
    """Ten times the operations take about ten times as long, not a hundred times."""
    assert growth(derive, chain(step, 400), chain(step, 4000)) < 20


def test_branches():
    """Eight times the branches take at most the square of that as long: each may leave a value as
    it is."""
    assert growth(derive, chain(BRANCH, 50, BRANCH), chain(BRANCH, 400, BRANCH)) < 64


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_code(step):
    """Four times the operations take about four times as long, not sixteen times."""

    def compile_both(text):
        for kernel in (text, derive(text)["backward"][0]["ttir"]):
            compile_cpu(kernel, "{}")

    assert growth(compile_both, chain(step, 300), chain(step, 1200)) < 8


def test_no_stack_is_too_short():
    """Tens of thousands of operations took more than the eight megabytes that a thread has."""
    text = chain(STEPS["shared"], 20000)
    (backward,) = derive(text)["backward"]
    assert backward["ttir"].count("arith.mulf") > 20000
    assert run_pipeline(text, "cse").count("arith.mulf") == 10000
    compile_cpu(text, "{}")


def test_too_long():
    with pytest.raises(AutodiffError, match="too long: 32 MiB of TTIR.*static_range"):
        derive(chain(STEPS["sines"], 10) + " " * (32 << 20))


@triton.jit
def steps_kernel(x_ptr, w_ptr, y_ptr, LENGTH: tl.constexpr):
    i = tl.arange(0, 16)
    x = tl.load(x_ptr + i)
    for j in tl.static_range(LENGTH):
        x = tl.sin(x) * tl.load(w_ptr + j) + x * 0.5
    tl.store(y_ptr + i, x)


def test_gradients():
    """Values in between that are stored, 256 operations apart, are right."""
    x, w = torch.randn(16, requires_grad=True), torch.randn(600, requires_grad=True)
    y = torch.full((16,), float("nan"))
    differentiable(steps_kernel)[(1,)](x, w, y, 600)
    expected = x.double()
    for weight in w.double():
        expected = expected.sin() * weight + expected * 0.5
    torch.testing.assert_close(y.double(), expected)
    up = torch.randn(16)
    ours = torch.autograd.grad(y, (x, w), up)
    theirs = torch.autograd.grad(expected, (x, w), up.double())
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our, their, rtol=1e-3, atol=1e-4)
