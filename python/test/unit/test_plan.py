"""Plans: loading, expressions and host checks."""

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.backends.autodiff.checks import BijectiveCheck
from triton.backends.autodiff.errors import CheckError, PlanError
from triton.backends.autodiff.expr import evaluate, validate
from triton.backends.autodiff.plan import load

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
}
PLAN = {
    "version": 1,
    "kernel": "k",
    "arguments": [
        {"type": "ptr<f16>", "loaded": True, "stored": False},
        {"type": "ptr<f16>", "loaded": False, "stored": True},
        {"type": "i32"},
    ],
    "inputs": [0],
    "outputs": [1],
    "snapshots": [],
    "buffers": [{"name": "tape0", "kind": "tape", "dtype": "f32", "size": ["arg", 2]}],
    "gradients": [
        {
            "argument": 0,
            "dtype": "f16",
            "init": "none",
            "accumulate": "store",
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
    "forward": None,
    "backward": [KERNEL],
    "report": ["stores"],
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
    assert plan.used_arguments() == {2}
    assert plan.gradients[0].covers_tensor
    assert plan.backward[0].grid is None
    assert plan.has_same_forward(plan)


@pytest.mark.parametrize(
    "path, value",
    [
        (["version"], 2),
        (["kernel"], None),
        (["arguments"], {}),
        (["arguments", 0], "ptr<f16>"),
        (["inputs"], [2]),
        (["inputs"], [7]),
        (["inputs"], [True]),
        (["inputs"], [1]),
        (["outputs"], ["1"]),
        (["buffers", 0, "kind"], "scratch"),
        (["buffers", 0, "dtype"], "float"),
        (["buffers", 0, "size"], ["arg", 9]),
        (["buffers", 0, "size"], ["pid", 0]),
        (["buffers", 0, "size"], 1.5),
        (["gradients", 0, "init"], "one"),
        (["gradients", 0, "accumulate"], "add"),
        (["gradients", 0, "checks", 0, "kind"], "disjoint"),
        (["gradients", 0, "checks", 0, "argument"], 5),
        (["gradients", 0, "checks", 0, "dims", 0, "digits", 0], [1]),
        (["gradients", 0, "checks", 0, "dims", 0, "stride"], None),
        (["backward", 0, "grid"], [1, 1]),
        (["backward", 0, "grid"], "dual"),
        (["backward", 0, "operands", 0, "index"], 3),
        (["backward", 0, "operands", 2, "index"], 1),
        (["backward", 0, "operands", 4, "index"], 1),
        (["backward", 0, "operands", 0, "kind"], "output"),
        (["backward", 0, "ttir"], None),
        (["forward"], KERNEL),
    ],
)
def test_malformed_plans_are_refused(path, value):
    with pytest.raises(PlanError):
        load(changed(path, value))


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


def test_max_over_programs_spans_all_axes_mentioned():
    expr = ["maxpids", ["sub", ["mul", ["pid", 0], 10], ["rem", ["pid", 2], ["arg", 0]]]]
    grid = (3, 1000, 4)
    expected = max(10 * x - z % 3 for x in range(3) for z in range(4))
    assert evaluate(expr, [3], grid) == expected
    assert evaluate(["maxpids", 7], [], grid) == 7


def test_max_over_many_programs():
    expr = ["maxpids", ["min", ["add", ["mul", ["pid", 1], 3000], ["pid", 0]], 4_000_000]]
    assert evaluate(expr, [], (3000, 1000, 1)) == 2_999_999


@pytest.mark.parametrize("expr", [["div", 1, ["arg", 0]], ["maxpids", ["rem", ["pid", 0], 0]]])
def test_division_by_zero(expr):
    with pytest.raises(CheckError):
        evaluate(expr, [0], (2, 1, 1))


def test_a_float_is_no_integer():
    with pytest.raises(CheckError):
        evaluate(["arg", 0], [1.5], (1, 1, 1))


@pytest.mark.parametrize("expr", [True, "1", [], ["pow", 1, 2], ["add", 1], ["grid", 3], ["arg"]])
def test_invalid_expressions(expr):
    with pytest.raises(PlanError):
        validate(expr, 1)


def brute_force(check, shape, strides):
    """Enumerate every access and compare with the elements of the tensor, by definition."""
    offsets = [check["offset"]]
    for dim in check["dims"]:
        digits = [range(extent) for _, extent in dim["digits"]]
        indices = [
            sum(s * v for (s, _), v in zip(dim["digits"], values, strict=True))
            for values in itertools.product(*digits)
        ]
        if sorted(indices) != list(range(len(indices))):
            return None
        if dim["bound"] is not None:
            indices = [i for i in indices if i < dim["bound"]]
        offsets = [o + dim["stride"] * i for o in offsets for i in indices]
    elements = [
        sum(i * s for i, s in zip(index, strides, strict=True))
        for index in itertools.product(*map(range, shape))
    ]
    return sorted(offsets) == sorted(elements) and len(set(offsets)) == len(offsets)


@st.composite
def cases(draw):
    """A check, and a tensor that it often, but not always, holds for."""
    dims, shape, strides = [], [], []
    stride = draw(st.integers(1, 2))
    for _ in range(draw(st.integers(0, 3))):
        extents = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
        digits, total = [], 1
        for extent in extents:
            digits.append([draw(st.sampled_from([total] * 8 + [total + 1])), extent])
            total *= extent
        bound = draw(st.sampled_from([None, total, total - 1, total + 2]))
        dims.append({"stride": stride, "digits": draw(st.permutations(digits)), "bound": bound})
        length = total if bound is None else min(total, bound)
        shape.append(draw(st.sampled_from([length] * 8 + [length + 1])))
        strides.append(draw(st.sampled_from([stride] * 8 + [stride + 1])))
        stride = max(1, stride * length + draw(st.sampled_from([0, 0, 0, 1, -1])))
    order = draw(st.permutations(range(len(shape))))
    offset = draw(st.sampled_from([0] * 9 + [1]))
    check = {"kind": "bijective", "argument": 0, "offset": offset, "dims": dims}
    return check, [shape[i] for i in order], [strides[i] for i in order]


@settings(max_examples=500, deadline=None)
@given(cases())
def test_bijective_check_is_sound(case):
    data, shape, strides = case
    check = BijectiveCheck.from_json(data, 1)
    if check.holds(shape, strides, [None], (1, 1, 1)):
        assert brute_force(data, shape, strides)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_bijective_check_accepts_dense_tensors(data):
    shape = data.draw(st.lists(st.integers(1, 5), max_size=4))
    strides, total = [], 1
    for size in shape:
        strides.append(total)
        total *= size
    dims = [
        {"stride": s, "digits": [[1, 1], [1, n]], "bound": None}
        for n, s in zip(shape, strides, strict=True)
    ]
    check = {"kind": "bijective", "argument": 0, "offset": 0, "dims": dims}
    assert brute_force(check, shape, strides)
    assert BijectiveCheck.from_json(check, 1).holds(shape, strides, [None], (1, 1, 1))
    # Any other view of the same memory does as well.
    assert BijectiveCheck.from_json(check, 1).holds([total], [1], [None], (1, 1, 1))


def test_check_without_a_value_fails():
    dims = [{"stride": 1, "digits": [[1, ["div", 4, ["arg", 0]]]], "bound": None}]
    check = BijectiveCheck.from_json({"argument": 0, "offset": 0, "dims": dims}, 1)
    assert check.holds([4], [1], [1], (1, 1, 1))
    assert not check.holds([4], [1], [0], (1, 1, 1))
