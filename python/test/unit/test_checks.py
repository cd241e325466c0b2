"""Host checks of plans: sound, and true where a launch is as they assume."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.backends.autodiff.checking.checks import BijectiveCheck, DistinctCheck
from triton.backends.autodiff.checking.expr import evaluate
from triton.backends.autodiff.errors import PlanError


def within(dim, indices):
    """The indices that a dimension's bound and start let through."""
    bound, start = dim["bound"], dim.get("start")
    return [i for i in indices if (bound is None or i < bound) and (start is None or i >= start)]


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
        offsets = [o + dim["stride"] * i for o in offsets for i in within(dim, indices)]
    elements = [
        sum(i * s for i, s in zip(index, strides, strict=True))
        for index in itertools.product(*map(range, shape))
    ]
    return sorted(offsets) == sorted(elements) and len(set(offsets)) == len(offsets)


@st.composite
def cases(draw):
    """A check, and a tensor that it often, but not always, holds for."""
    dims, shape, strides, back = [], [], [], 0
    stride = draw(st.integers(1, 2))
    for _ in range(draw(st.integers(0, 3))):
        extents = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
        digits, total = [], 1
        for extent in extents:
            digits.append([draw(st.sampled_from([total] * 8 + [total + 1])), extent])
            total *= extent
        bound = draw(st.sampled_from([None, total, total - 1, total + 2]))
        start = draw(st.sampled_from([None] * 4 + [-1, 0, 1, total - 1]))
        dim = {"stride": stride, "digits": draw(st.permutations(digits)), "bound": bound}
        dims.append(dim if start is None else {**dim, "start": start})
        last = (total if bound is None else min(total, bound)) - 1
        first = 0 if start is None else max(start, 0)
        length = max(last - first + 1, 0)
        if draw(st.integers(0, 3)) == 0:
            dims[-1]["stride"] = -stride
            back += stride * last
        else:
            back -= stride * first
        shape.append(draw(st.sampled_from([length] * 8 + [length + 1])))
        strides.append(draw(st.sampled_from([stride] * 8 + [stride + 1])))
        stride = max(1, stride * length + draw(st.sampled_from([0, 0, 0, 1, -1])))
    order = draw(st.permutations(range(len(shape))))
    offset = draw(st.sampled_from([0] * 9 + [1]))
    check = {"kind": "bijective", "argument": 0, "offset": offset + back, "dims": dims}
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


@settings(max_examples=300, deadline=None)
@given(cases(), st.data())
def test_digits_may_count_down(case, data):
    """Programs in descending order, loops from the end: the same elements, from the last one on."""
    check, shape, strides = case
    down = {**check, "dims": []}
    for dim in check["dims"]:
        digits, back = [], 0
        for stride, extent in dim["digits"]:
            turned = data.draw(st.booleans())
            digits.append([-stride if turned else stride, extent])
            back += stride * (extent - 1) if turned else 0
        cuts = {k: dim[k] - back for k in ("bound", "start") if dim.get(k) is not None}
        down["dims"].append({**dim, "digits": digits, **cuts})
        down["offset"] += dim["stride"] * back
    grid = (1, 1, 1)
    assert sorted(accesses(down, grid)) == sorted(accesses(check, grid))
    holds = [
        BijectiveCheck.from_json(c, 1).holds(shape, strides, [None], grid) for c in (check, down)
    ]
    assert holds[0] == holds[1]


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_places_in_chunks(data):
    """The first digits are below a bound of their own, and the others go on from there."""
    inner, lanes = [], 1
    for extent in data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=2)):
        inner.append([lanes, extent])
        lanes *= extent
    limit = data.draw(st.integers(0, lanes + 1))
    chunk = data.draw(st.sampled_from([limit] * 4 + [lanes, limit + 1]))
    outer = [[chunk, data.draw(st.integers(1, 4))]]
    bound = data.draw(st.integers(0, chunk * outer[0][1] + 1))
    first = [len(inner), limit]
    dims = [{"stride": 1, "digits": inner + outer, "bound": bound, "chunk": first}]
    places = [
        number + chunk * i
        for number in range(min(lanes, limit))
        for i in range(outer[0][1])
        if number + chunk * i < bound
    ]
    check = {"argument": 0, "offset": 0, "dims": dims}
    grid = (1, 1, 1)
    for length in {len(places), len(places) + 1}:
        whole = BijectiveCheck.from_json({**check, "kind": "bijective"}, 1)
        holds = whole.holds([length], [1], [None], grid)
        assert not holds or sorted(places) == list(range(length))
        # Chunks as long as the limit leave no gaps.
        assert holds or chunk != limit or limit > lanes or length != len(places) or not places
    apart = DistinctCheck.from_json({**check, "kind": "distinct"}, 1)
    assert not apart.holds([None], grid) or len(set(places)) == len(places)


@pytest.mark.parametrize("chunk", [[0, 4], [2, 4], [1], 3, ["a", 4], [1, ["arg", 9]]])
def test_malformed_chunk(chunk):
    dims = [{"stride": 1, "digits": [[1, 4], [4, 2]], "bound": 8, "chunk": chunk}]
    check = {"kind": "bijective", "argument": 0, "offset": 0, "dims": dims}
    with pytest.raises(PlanError):
        BijectiveCheck.from_json(check, 1)


def test_what_must_not_be_negative():
    check = {"kind": "bijective", "argument": 0, "offset": 0, "dims": [dimension(1, [[1, 4]])]}
    check = BijectiveCheck.from_json({**check, "notNegative": [["arg", 0]]}, 1)
    assert check.holds([4], [1], [0], (1, 1, 1))
    assert not check.holds([4], [1], [-1], (1, 1, 1))


def test_check_without_a_value_fails():
    dims = [{"stride": 1, "digits": [[1, ["div", 4, ["arg", 0]]]], "bound": None}]
    check = {"kind": "bijective", "argument": 0, "offset": 0, "dims": dims}
    check = BijectiveCheck.from_json(check, 1)
    assert check.holds([4], [1], [1], (1, 1, 1))
    assert not check.holds([4], [1], [0], (1, 1, 1))


def in_program(expr, pids):
    """An expression with the program ids filled in."""
    if isinstance(expr, int):
        return expr
    if expr[0] == "pid":
        return pids[expr[1]]
    return [expr[0], *(in_program(e, pids) for e in expr[1:])]


def accesses(check, grid):
    """The offsets of all accesses, by definition: every program, every digit, within bounds."""
    offsets = []
    for pids in itertools.product(*map(range, grid)):
        found = [check["offset"]]
        for dim in check["dims"]:
            values = [
                [stride * evaluate(in_program(extent[1], pids), [], grid)]
                if isinstance(extent, list)
                else [stride * value for value in range(extent)]
                for stride, extent in dim["digits"]
            ]
            indices = map(sum, itertools.product(*values))
            indices = within(dim, indices)
            found = [offset + dim["stride"] * i for offset in found for i in indices]
        offsets += found
    return offsets


@st.composite
def program_cases(draw):
    """A check whose digits programs choose, as a tile order does, and the grid."""
    inner, outer, other = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    grid = (inner * outer - draw(st.sampled_from([0, 0, 0, 1])), other, 1)
    width = draw(st.sampled_from([inner] * 6 + [inner + 1]))
    parts = [
        ["rem", ["pid", 0], width],
        ["div", ["pid", 0], width],
        draw(
            st.sampled_from([["pid", 1]] * 4 + [["sub", 1, ["pid", 1]], 0, ["mul", 2, ["pid", 1]]])
        ),
    ]
    if draw(st.sampled_from([False] * 6 + [True])):
        parts.pop(draw(st.integers(0, 2)))
    extents = {0: inner, 1: outer, 2: other}
    digits = [(["pids", part], extents.get(n, 1)) for n, part in enumerate(parts)]
    digits += [(n, n) for n in draw(st.lists(st.integers(0, 3), max_size=2))]
    dims, stride = [], draw(st.sampled_from([1] * 6 + [-1, 2]))
    shuffled = draw(st.permutations(digits))
    while shuffled:
        count = draw(st.integers(1, len(shuffled)))
        taken, shuffled = shuffled[:count], shuffled[count:]
        pairs, total = [], 1
        for extent, size in taken:
            pairs.append([draw(st.sampled_from([total] * 8 + [total + 1, -1])), extent])
            total *= max(size, 1)
        bound = draw(st.sampled_from([None, None, None, total, total - 1, 0]))
        dims.append({"stride": stride, "digits": draw(st.permutations(pairs)), "bound": bound})
        length = total if bound is None else min(total, bound)
        stride = stride * max(1, length) + draw(st.sampled_from([0, 0, 0, 1, -1]))
    return {"argument": 0, "offset": 0, "dims": draw(st.permutations(dims))}, grid


@settings(max_examples=1000, deadline=None)
@given(program_cases())
def test_checks_over_programs_are_sound(case):
    data, grid = case
    offsets = accesses(data, grid)
    if DistinctCheck.from_json({"kind": "distinct", **data}, 1).holds([None], grid):
        assert len(set(offsets)) == len(offsets)
    check = BijectiveCheck.from_json({"kind": "bijective", **data}, 1)
    if check.holds([len(offsets)], [1], [None], grid):
        assert sorted(offsets) == list(range(len(offsets)))


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 3), st.data())
def test_checks_accept_every_order_of_tiles(rows, columns, batches, data):
    # Programs visit the tiles of a matrix column by column, or in groups of rows, as a matrix
    # product does to keep its operands in the cache. The last group may be smaller.
    group = data.draw(st.integers(1, rows))
    pid, width = ["pid", 0], group * columns
    first = ["mul", ["div", pid, width], group]
    size = ["min", ["sub", rows, first], group]
    row = ["add", first, ["rem", ["rem", pid, width], size]]
    column = ["div", ["rem", pid, width], size]
    height, length = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    m = rows * height - data.draw(st.integers(0, height - 1))
    n = columns * length - data.draw(st.integers(0, length - 1))
    dims = [
        {"stride": n, "digits": [[1, height], [height, ["pids", row]]], "bound": m},
        {"stride": 1, "digits": [[1, length], [length, ["pids", column]]], "bound": n},
        {"stride": m * n, "digits": [[1, ["pids", ["pid", 2]]]], "bound": None},
    ]
    grid = (rows * columns, 1, batches)
    check = {"argument": 0, "offset": 0, "dims": dims}
    assert sorted(accesses(check, grid)) == list(range(batches * m * n))
    bijective = BijectiveCheck.from_json({"kind": "bijective", **check}, 1)
    assert bijective.holds([batches, m, n], [m * n, n, 1], [None], grid)
    assert not bijective.holds([batches, m, n + 1], [m * n + m, n + 1, 1], [None], grid)
    distinct = DistinctCheck.from_json({"kind": "distinct", **check}, 1)
    assert distinct.holds([None], grid)
    # A second launch axis that the addresses do not mention repeats them all.
    again = (rows * columns, 2, batches)
    assert not distinct.holds([None], again)
    assert not bijective.holds([batches, m, n], [m * n, n, 1], [None], again)


def dimension(stride, digits, bound=None):
    return {"stride": stride, "digits": digits, "bound": bound}


GAPS = [[4, ["grid", 0]], [1, 2]]


@pytest.mark.parametrize(
    "dims, expected",
    [
        ([dimension(1, [[1, 8], [8, ["grid", 0]]])], True),
        ([dimension(1, [[1, 8], [8, ["grid", 0]]]), dimension(0, [[1, ["grid", 1]]])], True),
        ([dimension(1, [[1, 8]])], True),
        ([dimension(1, [[1, 8]]), dimension(0, [[1, ["grid", 0]]])], False),
        ([dimension(1, GAPS)], True),
        ([dimension(1, GAPS), dimension(20, [[1, 3]])], True),
        ([dimension(1, GAPS), dimension(9, [[1, 3]])], False),
        ([dimension(1, GAPS, 5), dimension(9, [[1, 3]])], False),
        ([dimension(1, [[2, 4], [1, 3]])], False),
        ([dimension(-1, [[1, 4]])], True),
        ([dimension(-1, [[1, 1]])], True),
        ([dimension(0, [[1, 4]], 1)], True),
        ([dimension(0, [[1, 4]]), dimension(1, [[1, 4]], 0)], True),
        ([dimension(0, [[1, 4]]), dimension(1, [[3, -1]])], True),
        ([dimension(1, [[1, ["pids", ["mul", 3, ["pid", 0]]]]])], True),
        ([dimension(1, [[1, ["pids", ["sub", ["pid", 0], 1]]]])], False),
        ([dimension(1, [[1, ["grid", 0]]]), dimension(8, [[1, ["sub", ["arg", 0], 2]]])], True),
        ([dimension(["div", 4, ["sub", ["arg", 0], 2]], [[1, ["grid", 0]]])], False),
        ([dimension(1, [[1, 4]]), dimension(4, [[1, ["pids", ["div", 4, ["pid", 0]]]]])], False),
    ],
)
def test_distinct_check(dims, expected):
    check = {"kind": "distinct", "argument": 0, "offset": 3, "dims": dims}
    check = DistinctCheck.from_json(check, 1)
    several = any(isinstance(e, list) for d in dims for _, e in d["digits"])
    assert check.holds([2], (5 if several else 1, 1, 1)) is expected
    # Programs along an axis that no digit names repeat all accesses.
    assert not check.holds([2], (5, 1, 2))


def test_too_many_programs_fail():
    dims = [dimension(1, [[1, ["pids", ["pid", 0]]]])]
    check = DistinctCheck.from_json(
        {"kind": "distinct", "argument": 0, "offset": 0, "dims": dims}, 1
    )
    assert check.holds([None], (1 << 10, 1, 1))
    assert not check.holds([None], (1 << 30, 1, 1))
    assert check.holds([None], (0, 1, 1))


@pytest.mark.parametrize("grid", [(0, 1, 1), (0, 4, 1), (4, 0, 1)])
def test_no_programs_touch_nothing(grid):
    """However many numbers a program would have."""
    numbers = [["pid", 1], ["rem", ["pid", 0], 3], ["div", ["pid", 0], 3]]
    digits = [[3**n, ["pids", number]] for n, number in enumerate(numbers)]
    data = {"argument": 0, "offset": 0, "dims": [dimension(1, digits)]}
    assert DistinctCheck.from_json({"kind": "distinct", **data}, 1).holds([None], grid)
    check = BijectiveCheck.from_json({"kind": "bijective", **data}, 1)
    assert check.objection([1], [1], [None], grid) == "it reaches no element"


@pytest.mark.parametrize(
    ("programs", "grid", "holds"),
    [
        ([["pid", 1], ["pid", 0]], (4, 3, 1), True),
        ([["pid", 0]], (4, 1, 1), True),
        ([["pid", 0]], (4, 3, 1), False),  # programs along axis 1 do the same again
        ([["div", ["pid", 0], 3], ["rem", ["pid", 0], 3]], (12, 1, 1), True),
        ([["div", ["pid", 0], 3], ["rem", ["pid", 0], 3]], (11, 1, 1), False),  # a place is empty
        ([["div", ["pid", 0], 3]], (12, 1, 1), False),  # three programs share a place
        ([["sub", ["pid", 0], 1], ["pid", 1]], (4, 3, 1), False),  # below zero
    ],
)
def test_sum_over_programs(programs, grid, holds):
    """What the programs have in common is summed: they must fill the box of their numbers."""
    data = {
        "kind": "bijective", "argument": 0, "offset": 0, "programs": programs,
        "dims": [{"stride": 1, "digits": [[1, 8]], "bound": None}],
    }  # fmt: skip
    assert BijectiveCheck.from_json(data, 1).holds((8,), (1,), (None,), grid) is holds
