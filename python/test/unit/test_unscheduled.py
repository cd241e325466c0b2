"""Plans as they are derived, without schedules: one backward, which differentiates again."""

import itertools
import json
import math

import pytest
import torch
import triton
from triton.backends.autodiff import _native

ROWS, COLUMNS, STRIDE = 5, 64, 80

LAYER_NORM = """
tt.func public @layer_norm(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %stride: i32) {
  %eps = arith.constant 1.0e-05 : f32
  %length = arith.constant 6.4e+01 : f32
  %row = tt.get_program_id x : i32
  %start = arith.muli %row, %stride : i32
  %lanes = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %rowx = tt.addptr %px, %start : !tt.ptr<f32>, i32
  %rowy = tt.addptr %py, %start : !tt.ptr<f32>, i32
  %bx = tt.splat %rowx : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %by = tt.splat %rowy : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %bw = tt.splat %pw : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %ax = tt.addptr %bx, %lanes : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %ay = tt.addptr %by, %lanes : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %aw = tt.addptr %bw, %lanes : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %x = tt.load %ax : tensor<64x!tt.ptr<f32>>
  %w = tt.load %aw : tensor<64x!tt.ptr<f32>>
  %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<64xf32>) -> f32
  %mean = arith.divf %sum, %length : f32
  %means = tt.splat %mean : f32 -> tensor<64xf32>
  %centred = arith.subf %x, %means : tensor<64xf32>
  %square = arith.mulf %centred, %centred : tensor<64xf32>
  %squares = "tt.reduce"(%square) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<64xf32>) -> f32
  %variance = arith.divf %squares, %length : f32
  %shifted = arith.addf %variance, %eps : f32
  %rstd = math.rsqrt %shifted : f32
  %scale = tt.splat %rstd : f32 -> tensor<64xf32>
  %normal = arith.mulf %centred, %scale : tensor<64xf32>
  %y = arith.mulf %normal, %w : tensor<64xf32>
  tt.store %ay, %y : tensor<64x!tt.ptr<f32>>
  tt.return
}
"""

# y[i] = h after n times h <- h * w[t] + x[i]: the backward has a tape.
RECURRENCE = """
tt.func public @recurrence(%px: !tt.ptr<f32>, %pw: !tt.ptr<f32>, %py: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %id = tt.get_program_id x : i32
  %ax = tt.addptr %px, %id : !tt.ptr<f32>, i32
  %ay = tt.addptr %py, %id : !tt.ptr<f32>, i32
  %x = tt.load %ax : !tt.ptr<f32>
  %y = scf.for %t = %c0 to %n step %c1 iter_args(%h = %x) -> (f32) : i32 {
    %aw = tt.addptr %pw, %t : !tt.ptr<f32>, i32
    %w = tt.load %aw : !tt.ptr<f32>
    %hw = arith.mulf %h, %w : f32
    %next = arith.addf %hw, %x : f32
    scf.yield %next : f32
  }
  tt.store %ay, %y : !tt.ptr<f32>
  tt.return
}
"""


def layer_norm(x, w):
    rows = x[:, :COLUMNS]
    centred = rows - rows.mean(1, keepdim=True)
    return centred * torch.rsqrt((centred**2).mean(1, keepdim=True) + 1e-5) * w


def recurrence(x, w):
    h = x
    for each in w:
        h = h * each + x
    return h


CASES = {
    "layer norm": (LAYER_NORM, layer_norm, (ROWS, STRIDE), (COLUMNS,), ROWS, STRIDE),
    "recurrence": (RECURRENCE, recurrence, (ROWS,), (4,), ROWS, 4),
}


def plan_of(text, **request):
    return json.loads(_native.differentiate(text, json.dumps(request), "k.ttir"))


def evaluate(expression, grid, integers):
    """What an expression is."""
    if isinstance(expression, int):
        return expression
    kind, *operands = expression
    if kind == "grid":
        return grid[operands[0]]
    if kind == "arg":
        return integers[operands[0]]
    a, b = (evaluate(each, grid, integers) for each in operands)
    return {"mul": a * b, "add": a + b, "sub": a - b, "max": max(a, b), "min": min(a, b)}[kind]


class Runner:
    """Runs plans whose tensors are all contiguous and of f32."""

    def __init__(self, folder, device, grid):
        self.folder, self.device, self.grid = folder, device, grid
        self.numbers = itertools.count()

    def scratch(self, plan, arguments):
        """Buffers of a plan, in which nothing has been written."""
        sizes = [evaluate(each["size"], self.grid, arguments) for each in plan["buffers"]]
        return [torch.full((size,), math.nan, device=self.device) for size in sizes]

    def launch(self, kernel, given):
        """Compile and run a kernel."""
        assert kernel["grid"] == "primal" and "variants" not in kernel
        path = self.folder / f"{kernel['name']}{next(self.numbers)}.ttir"
        path.write_text(kernel["ttir"])
        values = [given[each["kind"]][each["index"]] for each in kernel["operands"]]
        triton.compile(str(path))[self.grid](*values)

    def run(self, plan, arguments, cotangents):
        """Run forward and backward; return the gradients by argument."""
        gradients = {
            each["argument"]: torch.full_like(
                arguments[each["argument"]], 0.0 if each["init"] == "zero" else math.nan
            )
            for each in plan["gradients"]
        }
        given = {
            "argument": list(arguments),
            "cotangent": cotangents,
            "gradient": gradients,
            "buffer": self.scratch(plan, arguments),
            "size": [evaluate(each, self.grid, arguments) for each in plan["sizes"]],
        }
        before = {n: arguments[n].clone() for n in plan["snapshots"]}
        if plan["forward"]:
            self.launch(plan["forward"], given)
        for n, content in before.items():
            given["argument"][n] = content
        (kernel,) = plan["backward"]
        self.launch(kernel, given)
        return gradients


@pytest.mark.parametrize("name", CASES)
def test_unscheduled_backward_and_its_derivative(device, tmp_path, name):
    """First and second derivatives of kernels as text, by plans that nothing has scheduled."""
    text, reference, *shapes, rows, number = CASES[name]
    x, w = (torch.randn(shape, device=device) for shape in shapes)
    runner = Runner(tmp_path, device, (rows, 1, 1))

    # It saves nothing: all that the backward needs is an argument of it.
    first = plan_of(text, wanted=[0, 1], atomic=[1], scheduled=False, save=False)
    assert [each["argument"] for each in first["gradients"]] == [0, 1]
    truth = [each.double().requires_grad_() for each in (x, w)]
    y = reference(*truth)
    upstream = torch.randn(y.shape, dtype=torch.float64, device=device)
    # As the kernel lays its output out: rows with the input's stride.
    dy = torch.zeros_like(x)
    dy[..., : y.shape[-1]] = upstream
    arguments = [x, w, torch.empty_like(x), number]
    gradients = runner.run(first, arguments, {2: dy})
    cotangent = upstream.clone().requires_grad_()
    expected = torch.autograd.grad(y, truth, cotangent, create_graph=True)
    width = y.shape[-1]
    assert_alike(gradients[0][..., :width], expected[0][..., :width])
    assert_alike(gradients[1], expected[1])

    # Its backward is a kernel with the same arguments, and some more.
    (kernel,) = first["backward"]
    places = {(each["kind"], each["index"]): n for n, each in enumerate(kernel["operands"])}
    inputs = [places["argument", 0], places["argument", 1], places["cotangent", 2]]
    outputs = [places["gradient", 0], places["gradient", 1]]
    second = plan_of(
        kernel["ttir"], wanted=inputs, cotangents=outputs, atomic=[inputs[1]], scheduled=False
    )
    assert {each["argument"] for each in second["gradients"] if each["returned"]} == set(inputs)
    given = {("argument", n): each for n, each in enumerate(arguments)}
    given |= {("gradient", n): each for n, each in gradients.items()}
    given["cotangent", 2] = dy
    given |= {("buffer", n): memory for n, memory in enumerate(runner.scratch(first, arguments))}
    arguments = [given[each["kind"], each["index"]] for each in kernel["operands"]]
    directions = [torch.randn_like(each) for each in (x, w)]
    ours = runner.run(
        second, arguments, dict(zip(outputs, [each.clone() for each in directions], strict=True))
    )
    hessian = torch.autograd.grad(
        expected, (*truth, cotangent), [each.double() for each in directions]
    )
    assert_alike(ours[inputs[0]][..., :width], hessian[0][..., :width])
    assert_alike(ours[inputs[1]], hessian[1])
    assert_alike(ours[inputs[2]][..., :width], hessian[2])


def assert_alike(ours, truth):
    """In float32, up to some roundings."""
    error = (ours.double() - truth).norm() / truth.norm()
    assert error < 64 * torch.finfo(torch.float32).eps, error


@pytest.mark.parametrize("wanted", [None, [0], [1]])
def test_nothing_is_scheduled(wanted):
    """One backward with the forward's grid and options; no offers of other plans."""
    plan = plan_of(LAYER_NORM, wanted=wanted, scheduled=False)
    (kernel,) = plan["backward"]
    assert kernel["grid"] == "primal" and kernel["name"] == "layer_norm_bwd"
    assert not {"launch", "batch", "unravel"} & plan.keys()
    scheduled = plan_of(LAYER_NORM, wanted=[1])
    assert any(each["grid"] != "primal" for each in scheduled["backward"])
