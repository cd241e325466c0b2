"""Plans: loading, expressions and host checks."""

import copy
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from triton.backends.autodiff.checking.expr import (
    evaluate,
    substitute,
    used_counters,
    validate,
    values_of_programs,
)
from triton.backends.autodiff.checking.facts import TensorFacts
from triton.backends.autodiff.errors import CheckError, PlanError
from triton.backends.autodiff.plans.plan import load

KERNEL = {
    "name": "k_bwd",
    "ttir": "module {}",
    "grid": "primal",
    "operands": [
        {"kind": "argument", "index": 0},
        {"kind": "cotangent", "index": 1},
        {"kind": "gradient", "index": 0},
        {"kind": "argument", "index": 2},
        {"kind": "buffer", "index": 0},
    ],
    "writes": [{"operand": 2, "inside": "check"}, {"operand": 4, "inside": "proof"}],
}
PLAN = {
    "version": 5,
    "kernel": "k",
    "arguments": [
        {"type": "ptr<f16>", "loaded": True, "stored": False},
        {"type": "ptr<f16>", "loaded": False, "stored": True},
        {"type": "i32"},
        {"type": "i32"},
    ],
    "inputs": [0],
    "outputs": [1],
    "history": [{"argument": 1, "inputs": [0]}],
    "snapshots": [],
    "buffers": [{"name": "tape0", "kind": "tape", "dtype": "f32", "size": ["arg", 2]}],
    "gradients": [
        {
            "argument": 0,
            "dtype": "f16",
            "init": "none",
            "accumulate": "store",
            "returned": True,
            "checks": [
                {
                    "kind": "bijective",
                    "argument": 0,
                    "offset": 0,
                    "dims": [
                        {
                            "stride": 1,
                            "digits": [[1, 128], [128, ["grid", 0]]],
                            "bound": ["arg", 2],
                        }
                    ],
                }
            ],
        }
    ],
    "checks": [
        {
            "kind": "distinct",
            "argument": 1,
            "offset": ["arg", 0],
            "dims": [
                {
                    "stride": ["arg", 3],
                    "digits": [[1, ["pids", ["rem", ["pid", 0], ["arg", 2]]]]],
                    "bound": None,
                }
            ],
        }
    ],
    "assumed": [["sub", ["pid", 0], ["arg", 2]]],
    "forward": None,
    "backward": [KERNEL],
    "steps": [
        {"stage": "forward", "kind": "copy", "about": [0]},
        {"stage": "forward", "kind": "launch_forward", "about": []},
        {"stage": "forward", "kind": "keep", "about": [0]},
        {"stage": "prepare", "kind": "lay_out", "about": [1]},
        {"stage": "prepare", "kind": "allocate", "about": [0]},
        {"stage": "prepare", "kind": "make", "about": [0]},
        {"stage": "launch", "kind": "launch", "about": [0]},
        {"stage": "finish", "kind": "convert", "about": [0]},
        {"stage": "finish", "kind": "return", "about": [0]},
    ],
    "report": {"gradients": []},
}


def changed(path, value):
    """A copy of the plan with one place changed."""
    plan = json.loads(json.dumps(PLAN))
    *parents, last = path
    place = plan
    for key in parents:
        place = place[key]
    place[last] = value
    return json.dumps(plan)


def test_load():
    plan = load(json.dumps(PLAN))
    assert plan.arguments[0].is_pointer and not plan.arguments[2].is_pointer
    assert plan.cotangents() == {1}
    assert plan.used_arguments() == {2, 3}
    assert plan.gradients[0].stays_inside and plan.gradients[0].returned
    assert plan.checks[0].argument == 1
    assert plan.backward[0].grid is None
    assert plan.has_same_forward(plan)


@pytest.mark.parametrize(
    "least, grid, holds",
    [(0, (9, 1, 1), True), (1, (9, 1, 1), False), (-3, (1, 1, 1), True), (0, (0, 1, 1), False)],
)
def test_assumed(least, grid, holds):
    """What is assumed not to be negative is so in all programs."""
    plan = load(json.dumps(PLAN))
    assert plan.grid_of([None, None, least, 1], grid) == (grid if holds else None)


LAUNCH = {
    "grid": [["max", ["arg", 2], 0], ["grid", 1], ["grid", 2]],
    "assumed": [["sub", ["grid", 0], 1], ["sub", 65535, ["arg", 2]]],
    "checks": [
        {
            "kind": "distinct",
            "argument": 1,
            "offset": 0,
            "dims": [{"stride": ["arg", 3], "digits": [[1, ["grid", 0]]], "bound": None}],
        }
    ],
}


@pytest.mark.parametrize(
    "n, stride, programs, expected",
    [
        (9, 4, 2, (9, 1, 1)),
        (0, 4, 2, (0, 1, 1)),
        (-1, 4, 2, (0, 1, 1)),
        (9, 4, 0, None),  # no program runs an iteration
        (65536, 4, 2, None),
        (9, 0, 2, None),  # all store to one place
        (1, 0, 2, (1, 1, 1)),
    ],
)
def test_launch(n, stride, programs, expected):
    """The grid in place of the user's, unless they would not do the same."""
    plan = load(json.dumps({**PLAN, "assumed": [], "launch": LAUNCH}))
    assert plan.grid_of([None, None, n, stride], (programs, 1, 1)) == expected
    assert plan.used_arguments() == {2, 3}


@pytest.mark.parametrize(
    "path, value",
    [
        (["version"], 1),
        (["next"], [{}]),
        (["next"], [[{"fails": "luck", "ask": "assume", "value": False}]]),
        (["next"], [[{"fails": "gradient", "ask": "atomic", "value": [0]}]]),
        (["next"], [[{"fails": "launch", "argument": 0, "ask": "assume", "value": False}]]),
        (["next"], [[{"ask": "assume", "value": 0}]]),
        (["next"], [[{"ask": "wanted", "value": [0]}]]),
        (["next"], [[{"ask": "confine", "value": [4]}]]),
        (["next"], [[{"ask": "axes", "value": [["pid", 0]]}]]),
        (["next"], [[{"value": True}]]),
        (["next"], [[{"notNegative": [["arg", 9]], "ask": "axes", "value": None}]]),
        (["kernel"], None),
        (["arguments"], {}),
        (["arguments", 0], "ptr<f16>"),
        (["inputs"], [2]),
        (["inputs"], [7]),
        (["inputs"], [True]),
        (["inputs"], [1]),
        (["outputs"], ["1"]),
        (["history"], []),
        (["history"], [{"argument": 1}]),
        (["history", 0, "argument"], 0),
        (["history", 0, "inputs"], [4]),
        (["buffers", 0, "kind"], "scratch"),
        (["buffers", 0, "dtype"], "float"),
        (["buffers", 0, "size"], ["arg", 9]),
        (["buffers", 0, "size"], ["pid", 0]),
        (["buffers", 0, "size"], 1.5),
        (["assumed"], ["pid", 0]),
        (["assumed"], [["pid", 3]]),
        (["launch"], []),
        (["launch"], {**LAUNCH, "grid": [1, 1]}),
        (["launch"], {**LAUNCH, "grid": [["pid", 0], 1, 1]}),
        (["launch"], {**LAUNCH, "assumed": [["pid", 0]]}),
        (["launch"], {**LAUNCH, "checks": [{"kind": "bijective"}]}),
        (["gradients", 0, "init"], "one"),
        (["gradients", 0, "accumulate"], "add"),
        (["gradients", 0, "checks", 0, "kind"], "disjoint"),
        (["gradients", 0, "checks", 0, "argument"], 5),
        (["gradients", 0, "checks", 0, "dims", 0, "digits", 0], [1]),
        (["gradients", 0, "checks", 0, "dims", 0, "stride"], None),
        (["gradients", 0, "checks", 0, "kind"], "injective"),
        (["gradients", 0, "returned"], False),
        (["gradients", 0, "returned"], 1),
        (["checks", 0], "distinct"),
        (["checks", 0, "kind"], "disjoint"),
        (["checks", 0, "dims", 0, "stride"], ["pids", 1]),
        (["checks", 0, "dims", 0, "digits", 0, 1], ["pids"]),
        (["checks", 0, "dims", 0, "digits", 0, 1], ["pids", ["maxpids", 1]]),
        (["checks", 0, "dims", 0, "digits", 0, 1], ["pid", 0]),
        (["backward", 0, "grid"], [1, 1]),
        (["backward", 0, "grid"], "dual"),
        (["backward", 0, "operands", 0, "index"], 4),
        (["backward", 0, "operands", 2, "index"], 1),
        (["backward", 0, "operands", 4, "index"], 1),
        (["backward", 0, "operands", 0, "kind"], "output"),
        (["backward", 0, "writes"], None),
        (["backward", 0, "writes", 0, "inside"], "luck"),
        (["backward", 0, "writes", 0, "operand"], 5),
        (["backward", 0, "ttir"], None),
        (["forward"], KERNEL),
        (["counting"], KERNEL),
        (["sizes"], 3),
        (["sizes"], [["arg", 9]]),
        (["sizes"], [["isqrt", 1, 2]]),
        (["buffers", 0, "size"], ["counted", 0]),
        (["buffers", 0, "size"], ["counted", -1]),
        (["buffers", 0, "size"], ["maxpids", ["counted", 0]]),
    ],
)
def test_malformed_plans_are_refused(path, value):
    with pytest.raises(PlanError):
        load(changed(path, value))


@pytest.mark.parametrize("number", range(len(PLAN["steps"])))
def test_plans_without_a_step_are_refused(number):
    """Or with one twice, or at another time: a launch would do less than it should, silently."""
    steps = PLAN["steps"]
    elsewhere = {**steps[number], "stage": "launch" if number > 6 else "finish"}
    for changed_steps in (
        steps[:number] + steps[number + 1 :],
        [*steps, steps[number]],
        [*steps[:number], elsewhere, *steps[number + 1 :]],
        [*steps[:number], {**steps[number], "about": [7]}, *steps[number + 1 :]],
        [*steps[:number], {**steps[number], "kind": "count"}, *steps[number + 1 :]],
    ):
        with pytest.raises(PlanError):
            load(changed(["steps"], changed_steps))


@pytest.mark.parametrize("text", ["", "[]", "nul", '"plan"', "{}"])
def test_what_is_no_plan_is_refused(text):
    with pytest.raises(PlanError):
        load(text)


@given(st.integers(-50, 50), st.integers(-9, 9).filter(bool))
def test_division_is_that_of_c(a, b):
    quotient = evaluate(["div", ["arg", 0], ["arg", 1]], [a, b], (1, 1, 1))
    assert quotient == int(a / b)
    assert evaluate(["rem", a, b], [], (1, 1, 1)) == a - b * quotient
    assert evaluate(["floordiv", a, b], [], (1, 1, 1)) == a // b
    assert evaluate(["ceildiv", a, b], [], (1, 1, 1)) == -(-a // b)
    # The same on arrays: program ids are one.
    shifted = ["div", ["sub", a, ["pid", 0]], b]
    values = [int((a - pid) / b) for pid in range(5)]
    assert evaluate(["maxpids", shifted], [], (5, 1, 1)) == max(values)


@given(st.integers(-3, 70), st.integers(-3, 90))
def test_the_coarsest_step_that_meets_a_range(a, b):
    expr = ["coarsest", a, b]
    if not 0 < a <= b:
        with pytest.raises(CheckError):
            evaluate(expr, [], (1, 1, 1))
        return
    steps = [1 << k for k in range(8) if b // (1 << k) * (1 << k) >= a]
    assert evaluate(expr, [], (1, 1, 1)) == max(steps)
    least = evaluate(["coarsest", a, ["sub", ["mul", 2, a], 1]], [], (1, 1, 1))
    assert least // 2 < a <= least and least.bit_count() == 1


def test_max_over_programs_spans_all_axes_mentioned():
    expr = ["maxpids", ["sub", ["mul", ["pid", 0], 10], ["rem", ["pid", 2], ["arg", 0]]]]
    grid = (3, 1000, 4)
    expected = max(10 * x - z % 3 for x in range(3) for z in range(4))
    assert evaluate(expr, [3], grid) == expected
    assert evaluate(["maxpids", 7], [], grid) == 7


def test_max_over_many_programs():
    expr = ["maxpids", ["min", ["add", ["mul", ["pid", 1], 3000], ["pid", 0]], 4_000_000]]
    assert evaluate(expr, [], (3000, 1000, 1)) == 2_999_999


def test_values_of_many_programs():
    exprs = [["pid", 0], ["add", ["pid", 1], ["arg", 0]], 7]
    values = values_of_programs(exprs, [5], (3000, 400, 2))
    assert values.shape == (3, 2_400_000)
    # The first axis of the grid runs fastest.
    assert values[:, 3001].tolist() == [1, 6, 7] and values[:, -1].tolist() == [2999, 404, 7]


def test_values_beyond_64_bits():
    with pytest.raises(CheckError):
        values_of_programs([["mul", ["arg", 0], ["arg", 0]]], [1 << 40], (1, 1, 1))


@pytest.mark.parametrize("expr", [["div", 1, ["arg", 0]], ["maxpids", ["rem", ["pid", 0], 0]]])
def test_division_by_zero(expr):
    with pytest.raises(CheckError):
        evaluate(expr, [0], (2, 1, 1))


def test_a_float_is_no_integer():
    with pytest.raises(CheckError):
        evaluate(["arg", 0], [1.5], (1, 1, 1))


@pytest.mark.parametrize("expr", [
    *(True, "1", [], ["pow", 1, 2], ["add", 1], ["grid", 3], ["arg"], ["span", 1], ["lead", True]),
    *(["coarsest", 1], ["maxpids", ["coarsest", 1, 2]], ["shared", 0], ["maxpids", ["parts"]]),
    *(["extent"], ["pitch", 0], ["pitch", 0, -1], ["pitch", 0, ["arg", 0]]),
    *([["maxpids", [name, 0, *more]] for name, *more in (["span"], ["pitch", 8])]),
])  # fmt: skip
def test_invalid_expressions(expr):
    with pytest.raises(PlanError):
        validate(expr, 1)


def test_counted_sizes():
    """A counter's value stands in for it once it is known; before, it is an error."""
    size = ["mul", ["add", ["isqrt", ["counted", 1]], 1], ["arg", 0]]
    assert used_counters(size) == {1}
    assert evaluate(substitute(size, {"counted": [0, 35].__getitem__}), [10], (1, 1, 1)) == 60
    assert evaluate(substitute(size, {"counted": [0, 36].__getitem__}), [10], (1, 1, 1)) == 70
    with pytest.raises(CheckError, match="counted"):
        evaluate(size, [10], (1, 1, 1))


def test_counting_plan():
    plan = json.loads(changed(["buffers", 0, "size"], ["counted", 2]))
    operands = [{"kind": "argument", "index": 0}, {"kind": "counters", "index": 0}]
    writes = [{"operand": 1, "inside": "proof"}]
    plan["counting"] = {**KERNEL, "operands": operands, "writes": writes}
    loaded = load(json.dumps(plan))
    assert loaded.counters() == {2}
    assert loaded.kernels[0] is loaded.counting


@pytest.mark.parametrize("step, bound, offset, expected", [
    (1, None, 0, (0, 64)),  # behind the last element
    (1, ["arg", 2], 0, (0, 40)),  # below a bound
    (-1, None, 39, (24, 64)),  # before the first one
    (1, None, 5, (0, 69)),
    (1, None, 1 << 20, None),  # far away
])  # fmt: skip
def test_memory_covers_what_is_stored(step, bound, offset, expected):
    """Where elements may be left out, the check says how far stores reach."""
    plan = copy.deepcopy(PLAN)
    dims = [{"stride": step, "digits": [[1, 16], [16, ["pids", ["pid", 0]]]], "bound": bound}]
    plan["gradients"][0]["checks"][0] |= {"offset": offset, "dims": dims}
    (gradient,) = load(json.dumps(plan)).gradients
    tensor = TensorFacts(torch.empty(40))
    args, grid = (None, None, 40, 0), (4, 1, 1)
    assert gradient.span(tensor, args, grid) == (0, 40)
    assert gradient.keeps_inside("check") == "check"
    loose = gradient.leaving_out()
    assert loose.span(tensor, args, grid) == expected
    assert loose.keeps_inside("check") == "room"
    # With nothing to run, nothing is stored.
    assert loose.span(tensor, args, (0, 1, 1)) == (0, 40)
