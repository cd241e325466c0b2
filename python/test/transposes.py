"""Both ways of a rule as kernels, and the identity ⟨u, J v⟩ = ⟨Jᵀ u, v⟩ of what they compute."""

import json
import re

import torch
from triton.backends.autodiff import _native
from triton.backends.autodiff.checking.expr import evaluate
from ttir import SIZE, count_inputs, kernel, launch

SWAPS = "tt.func(autodiff-{}-swaps)"
PUSH = (
    f"autodiff-normalize,{SWAPS.format('raise')},autodiff-push-tangents,"
    f"tt.func(autodiff-narrow-zeros),autodiff-write-markers,{SWAPS.format('lower')}"
)
DTYPES = {"f32": torch.float32, "f64": torch.float64}
NAN = float("nan")


def push(text: str) -> tuple[str, list[int]]:
    """Return the kernel that computes tangents, too, and the arguments that have them."""
    both = _native.run_pipeline(text, PUSH).replace("tt.func public @k(", "tt.func private @k(")
    pushed = _native.run_pipeline(both, "symbol-dce,canonicalize,cse")
    moving = [int(i) for i in re.findall(r"autodiff.tangent = (\d+)", pushed)]
    # Nothing but Triton's own dialects is compiled.
    return re.sub(r"( attributes)? \{autodiff\.[^}]*\}", "", pushed), moving


def derive(text: str) -> dict:
    """Return a plan for one program, in which no fact about stores is taken for granted."""
    plan = json.loads(_native.differentiate(text, '{"schedules": []}'))
    request = {"schedules": [], "repeated": [check["argument"] for check in plan["checks"]]}
    return json.loads(_native.differentiate(text, json.dumps(request)))


def pull(text: str, plan: dict, arguments: list, cotangents: dict) -> dict:
    """Return the gradients of the arguments that are loaded, by the plan's kernels."""
    gradients = {}
    for gradient in plan["gradients"]:
        i, dtype = gradient["argument"], DTYPES[gradient["dtype"]]
        source = cotangents[i] if gradient["init"] == "cotangent" else torch.zeros(SIZE)
        gradients[i] = source.to(dtype, copy=True)
    after = [a.clone() for a in arguments]
    pools = {
        "argument": after,
        "cotangent": {i: t.clone() for i, t in cotangents.items()},
        "gradient": gradients,
        "size": [evaluate(size, arguments, (1, 1, 1)) for size in plan["sizes"]],
        # As many elements as any tape here has.
        "buffer": [torch.zeros(4096, dtype=torch.float64) for _ in plan["buffers"]],
    }

    def run(step):
        launch(step["ttir"], [pools[o["kind"]][o["index"]] for o in step["operands"]])

    if plan["forward"]:
        run(plan["forward"])
    else:
        launch(text, after)
    for i in plan["snapshots"]:
        after[i] = arguments[i].clone()
    for step in plan["backward"]:
        run(step)
    return gradients


def check(text: str, arguments: list) -> None:
    """Check the identity, and that the values beside the tangents are the kernel's own."""
    dtype = arguments[0].dtype
    pushed, moving = push(text)
    plan = derive(text)

    def random(numbers):
        return {i: torch.randn(SIZE, dtype=torch.float64).to(dtype) for i in numbers}

    u = random(plan["outputs"])
    gradients = pull(text, plan, arguments, u)
    v = random(gradients)
    # Nobody reads what is stored first.
    tangents = {
        i: v[i].clone() if i in v else torch.full((SIZE,), NAN, dtype=dtype) for i in moving
    }
    values = [a.clone() for a in arguments]
    launch(pushed, [*values, *tangents.values()])

    left = [u[i].double() * tangents[i].double() for i in u]
    right = [gradients[i].double() * v[i].double() for i in v]
    difference = sum(t.sum() for t in left) - sum(t.sum() for t in right)
    scale = sum(t.abs().sum() for t in [*left, *right])
    assert scale > 0
    assert difference.abs() <= 64 * torch.finfo(dtype).eps * scale

    plain = [a.clone() for a in arguments]
    launch(text, plain)
    torch.testing.assert_close(values, plain, rtol=1e-6, atol=1e-6, equal_nan=True)


def check_body(body: str, element: str, low: float = 0.4, high: float = 1.4, change=None) -> None:
    """Check a body, on inputs between these, which `change` may change."""
    count = count_inputs(body)
    inputs = torch.rand(count, SIZE, dtype=torch.float64) * (high - low) + low
    if change:
        change(inputs)
    output = torch.full((SIZE,), NAN, dtype=DTYPES[element])
    check(kernel(body, element, count), [*inputs.to(DTYPES[element]), output])
