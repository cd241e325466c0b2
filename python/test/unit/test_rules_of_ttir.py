"""Rules of operations that Triton's language seldom or never emits, from TTIR text.

The kernels are differentiated, compiled and run through the native library alone.
"""

import json

import pytest
import torch
from triton.backends.autodiff import _native
from ttir import SIZE, count_inputs, kernel, launch


def check(body: str, element: str, reference, inputs) -> None:
    """Compare a body and its gradients with PyTorch's, in the precision of the inputs."""
    text = kernel(body, element, len(inputs))
    y = torch.full((SIZE,), float("nan"), dtype=inputs[0].dtype)
    launch(text, [*inputs, y])
    leaves = [x.double().requires_grad_() for x in inputs]
    expected = reference(*leaves)
    upstream = torch.randn(SIZE, dtype=torch.float64)
    wanted = torch.autograd.grad(expected, leaves, upstream)
    plan = json.loads(_native.differentiate(text, '{"save": false}'))
    assert plan["forward"] is None and not plan["buffers"]
    gradients = {i: torch.zeros_like(x) for i, x in enumerate(inputs)}
    pools = {
        "argument": [*inputs, y],
        "cotangent": {len(inputs): upstream.to(y.dtype)},
        "gradient": gradients,
    }
    for step in plan["backward"]:
        launch(step["ttir"], [pools[o["kind"]][o["index"]] for o in step["operands"]])
    tolerance = 64 * torch.finfo(y.dtype).eps
    for value, truth in zip([y, *gradients.values()], [expected, *wanted], strict=True):
        torch.testing.assert_close(
            value.double(), truth, rtol=tolerance, atol=tolerance, equal_nan=True
        )


RULES = {
    "arith.negf": ("%y = arith.negf %x0 : TILE", torch.neg),
    "arith.remf": ("%y = arith.remf %x0, %x1 : TILE", torch.fmod),
    "arith.maximumf": ("%y = arith.maximumf %x0, %x1 : TILE", torch.maximum),
    "arith.minimumf": ("%y = arith.minimumf %x0, %x1 : TILE", torch.minimum),
    "arith.maxnumf": ("%y = arith.maxnumf %x0, %x1 : TILE", torch.fmax),
    "arith.minnumf": ("%y = arith.minnumf %x0, %x1 : TILE", torch.fmin),
    "math.exp2": ("%y = math.exp2 %x0 : TILE", torch.exp2),
    "math.tanh": ("%y = math.tanh %x0 : TILE", torch.tanh),
    "math.fma": (
        "%y = math.fma %x0, %x1, %x2 : TILE",
        lambda x, w, b: x * w + b,
    ),
    "tt.precise_sqrt": (
        "%r1 = tt.precise_sqrt %x1 : TILE\n%y = arith.mulf %r1, %x0 : TILE",
        lambda x, w: x * w.sqrt(),
    ),
    "tt.precise_divf": ("%y = tt.precise_divf %x0, %x1 : TILE", torch.div),
    "tt.clampf": (
        "%y = tt.clampf %x0, %x1, %x2, propagateNan = none : TILE",
        lambda x, low, high: x.maximum(low).minimum(high),
    ),
    "tt.join, tt.split": (
        f"""%j = tt.join %x0, %x1 : TILE -> tensor<{SIZE}x2xELEMENT>
%q = arith.mulf %j, %j : tensor<{SIZE}x2xELEMENT>
%l, %h = tt.split %q : tensor<{SIZE}x2xELEMENT> -> TILE
%h3 = arith.mulf %h, %x1 : TILE
%y = arith.subf %h3, %l : TILE""",
        lambda x, w: w**3 - x**2,
    ),
    "half of a tt.split": (
        f"""%j = tt.join %x0, %x1 : TILE -> tensor<{SIZE}x2xELEMENT>
%q = arith.mulf %j, %j : tensor<{SIZE}x2xELEMENT>
%l, %h = tt.split %q : tensor<{SIZE}x2xELEMENT> -> TILE
%y = arith.mulf %l, %x1 : TILE""",
        lambda x, w: x**2 * w,
    ),
    "tt.reshape, an odd number": (
        """%q = tt.reshape %x0 : TILE -> tensor<4x4xELEMENT>
%t = tt.trans %q {order = array<i32: 1, 0>} : tensor<4x4xELEMENT> -> tensor<4x4xELEMENT>
%h = tt.reshape %t : tensor<4x4xELEMENT> -> tensor<2x8xELEMENT>
%u = tt.trans %h {order = array<i32: 1, 0>} : tensor<2x8xELEMENT> -> tensor<8x2xELEMENT>
%f = tt.reshape %u : tensor<8x2xELEMENT> -> TILE
%y = arith.mulf %f, %x1 : TILE""",
        lambda x, w: x.view(4, 4).t().reshape(2, 8).t().reshape(-1) * w,
    ),
    "tt.unsplat": (
        f"""%s = "tt.reduce"(%x0) <{{axis = 0 : i32}}> ({{
^bb0(%a: ELEMENT, %b: ELEMENT):
  %c = arith.addf %a, %b : ELEMENT
  tt.reduce.return %c : ELEMENT
}}) : (TILE) -> ELEMENT
%one = tt.splat %s : ELEMENT -> tensor<1xELEMENT>
%two = arith.mulf %one, %one : tensor<1xELEMENT>
%u = tt.unsplat %two : tensor<1xELEMENT>
%t = tt.splat %u : ELEMENT -> tensor<{SIZE}xELEMENT>
%y = arith.mulf %t, %x1 : TILE""",
        lambda x, w: x.sum() ** 2 * w,
    ),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype, element", [(torch.float32, "f32"), (torch.float64, "f64")])
def test_rule(rule, dtype, element):
    body, reference = RULES[rule]
    x = torch.randn(SIZE, dtype=dtype)
    # Positive, and never where a comparison is tied or a quotient jumps.
    w = torch.rand(SIZE, dtype=dtype) + 0.4
    b = w + torch.rand(SIZE, dtype=dtype) + 0.1
    inputs = [x, w, b][: count_inputs(body)]
    check(body, element, reference, inputs)


@pytest.mark.parametrize("wins", ["maximumf", "minimumf", "maxnumf", "minnumf"])
def test_ties_share(wins):
    """Both operands get half, as with PyTorch."""
    x = torch.randn(SIZE, dtype=torch.float64)
    reference = torch.maximum if wins.startswith("max") else torch.minimum
    check(f"%y = arith.{wins} %x0, %x1 : TILE", "f64", reference, [x, x.clone()])


EXTREMA = {
    "maximumf": torch.maximum,
    "minimumf": torch.minimum,
    "maxnumf": torch.fmax,
    "minnumf": torch.fmin,
}


@pytest.mark.parametrize("operation", EXTREMA)
def test_nan_in_extrema(operation):
    """A NaN that propagates gets the gradient, as does the number that wins against one."""
    x, w = torch.randn(2, SIZE, dtype=torch.float64)
    x[::4] = w[1::4] = float("nan")
    check(f"%y = arith.{operation} %x0, %x1 : TILE", "f64", EXTREMA[operation], [x, w])


@pytest.mark.parametrize("propagate", ["none", "all"])
def test_corners_of_clamp(propagate):
    """At a bound, between bounds that are the wrong way round, and of NaN."""

    def reference(x, low, high):
        y = x.clamp(low, high)
        return y if propagate == "all" else torch.where(x.isnan(), low, y)

    x, low, high = torch.randn(3, SIZE, dtype=torch.float64)
    x[0], x[1] = low[0], high[1]
    low[2], high[3] = 9, -9  # the wrong way round
    x[4:6] = float("nan")
    high[4] = low[4] + 1
    high[5] = low[5] + 1
    body = f"%y = tt.clampf %x0, %x1, %x2, propagateNan = {propagate} : TILE"
    check(body, "f64", reference, [x, low, high])


def test_exponents_are_piecewise_constant():
    """Scales that are powers of two, taken out of the bits, as microscaled formats have them."""
    body = f"""%up = arith.constant dense<0x7fffff> : tensor<{SIZE}xi32>
%c23 = arith.constant dense<23> : tensor<{SIZE}xi32>
%c254 = arith.constant dense<254> : tensor<{SIZE}xi32>
%bits = tt.bitcast %x0 : TILE -> tensor<{SIZE}xi32>
%above = arith.addi %bits, %up : tensor<{SIZE}xi32>
%e = arith.shrui %above, %c23 : tensor<{SIZE}xi32>
%n = arith.subi %c254, %e : tensor<{SIZE}xi32>
%m = arith.shli %n, %c23 : tensor<{SIZE}xi32>
%s = tt.bitcast %m : tensor<{SIZE}xi32> -> TILE
%y = arith.mulf %x0, %s : TILE"""
    check(body, "f32", lambda x: x * torch.exp2(-x.log2().ceil()), [torch.rand(SIZE) + 0.01])


def test_rounding_to_fewer_bits_lets_gradients_through():
    body = f"""%h = tt.fp_to_fp %x0, rounding = rtne : TILE -> tensor<{SIZE}xf8E5M2>
%h2 = tt.fp_to_fp %h, rounding = rtne : tensor<{SIZE}xf8E5M2> -> tensor<{SIZE}xf8E4M3FN>
%f = tt.fp_to_fp %h2 : tensor<{SIZE}xf8E4M3FN> -> TILE
%y = arith.mulf %f, %x1 : TILE"""
    # Exact in eight bits, so that finite arithmetic agrees with the derivative of the identity.
    x = torch.randint(-4, 5, (SIZE,)).float()
    check(body, "f32", torch.mul, [x, torch.randn(SIZE)])
