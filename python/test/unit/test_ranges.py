"""What programs touch where each has places of its own, against all elements one by one."""

import itertools

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.backends.autodiff.checking.checks import BijectiveCheck, DistinctCheck
from triton.backends.autodiff.checking.contents import Contents
from triton.backends.autodiff.checking.ranges import Ranges
from triton.backends.autodiff.errors import CheckError, PlanError


class Table:
    """Contents of an argument, as a launch finds them."""

    def __init__(self, *numbers):
        self.numbers = numpy.array(numbers, dtype=numpy.int64)

    def at(self, places):
        places = numpy.asarray(places)
        if places.size and not 0 <= places.min() <= places.max() < len(self.numbers):
            raise CheckError("beyond the end")
        return self.numbers[places]


def elements(dims, offsets, programs):
    """Return the elements that each program touches, as often as it does."""
    touched = []
    for program in range(programs):
        start = sum(stride * int(values[program]) for stride, values in offsets)
        steps = [[stride * n for n in range(lengths[program])] for stride, lengths in dims]
        touched += [start + sum(step) for step in itertools.product(*steps)]
    return touched


@st.composite
def boxes(draw):
    programs = draw(st.integers(1, 6))
    numbers = st.lists(st.integers(0, 5), min_size=programs, max_size=programs)
    strides = st.sampled_from([1, 2, 6, 12, 60])
    dims = draw(st.lists(st.tuples(strides, numbers.map(numpy.array)), max_size=3))
    offsets = draw(st.lists(st.tuples(strides, numbers.map(numpy.array)), max_size=3))
    return dims, offsets, programs


@given(boxes())
@settings(max_examples=400, deadline=None)
def test_distinct_ranges_are(case):
    """What is proved distinct is; boxes count all elements, and none is beyond their ends."""
    dims, offsets, programs = case
    ranges = Ranges(dims, offsets, numpy.ones(programs, dtype=bool))
    touched = elements(dims, offsets, programs)
    assert ranges.count() == len(touched)
    assert (ranges.ends() is None) == (not touched)
    if touched:
        first, last = ranges.ends()
        assert first <= min(touched) and max(touched) <= last
    if ranges.are_distinct():
        assert len(set(touched)) == len(touched)


def test_sequences_are_found_distinct():
    """Rows of sequences of any lengths, for two heads; an empty one touches nothing."""
    starts, lengths = numpy.array([0, 3, 3, 8] * 2), numpy.array([3, 0, 5, 2] * 2)
    heads = numpy.array([0] * 4 + [1] * 4)
    everyone = numpy.ones(8, dtype=bool)
    dims = [(8, lengths), (1, numpy.full(8, 4))]
    ranges = Ranges(dims, [(8, starts), (4, heads)], everyone)
    assert ranges.are_distinct() and ranges.count() == 80
    assert not Ranges(dims, [(8, starts)], everyone).are_distinct()


def check(kind, dims, **more):
    kinds = {"bijective": BijectiveCheck, "distinct": DistinctCheck}
    data = {"kind": kind, "argument": 0, "offset": 0, "dims": dims, "moves": True, **more}
    return kinds[kind].from_json(data, 3)


START, NEXT = ["element", 1, ["pid", 0]], ["element", 1, ["add", ["pid", 0], 1]]
SEGMENTS = [
    {"stride": 1, "digits": [[1, 16]], "bound": ["sub", NEXT, START]},
    {"stride": 1, "digits": [[1, ["pids", START]]], "bound": None},
]


@pytest.mark.parametrize(
    ("starts", "fills"),
    [((0, 5, 5, 12), True), ((0, 5, 11), False), ((1, 5, 12), False), ((0, 8, 4, 12), False)],
)
def test_segments(starts, fills):
    """They fill a tensor of 12 elements; or some are left out, or touched twice."""
    args, grid = [None, Table(*starts), None], (len(starts) - 1, 1, 1)
    assert (check("bijective", SEGMENTS).objection((12,), (1,), args, grid) is None) == fills
    apart = list(starts) == sorted(starts)
    assert check("distinct", SEGMENTS).holds(args, grid) == apart


def test_programs_that_share_segments():
    """Those of a second axis do not, unless they are summed."""
    args = [None, Table(0, 5, 12), None]
    assert not check("distinct", SEGMENTS).holds(args, (2, 2, 1))
    summed = check("bijective", SEGMENTS, programs=[["pid", 1], ["pid", 0]], summed=1)
    assert summed.objection((12,), (1,), args, (2, 2, 1)) is None


def test_trips_of_each_program():
    """Iterations of a tile of four each."""
    each = ["each", ["element", 1, ["pid", 0]]]
    dims = [
        {"stride": 1, "digits": [[1, 4], [4, each]], "bound": None},
        {"stride": 16, "digits": [[1, ["pids", ["pid", 0]]]], "bound": None},
    ]
    assert check("distinct", dims).holds([None, Table(4, 0, 3), None], (3, 1, 1))
    assert not check("distinct", dims).holds([None, Table(5, 1, 3), None], (3, 1, 1))
    gaps = [{"stride": 1, "digits": [[1, 4], [5, each]], "bound": None}]
    assert not check("distinct", gaps).holds([None, Table(2), None], (1, 1, 1))


def test_what_cannot_be_read():
    """A place beyond the end, or contents that nobody tells, object."""
    for table in (Table(0, 5), None):
        args = [None, table, None]
        assert check("bijective", SEGMENTS).objection((5,), (1,), args, (2, 1, 1)) is not None
        assert not check("distinct", SEGMENTS).holds(args, (2, 1, 1))


def test_places_that_a_tensor_does_not_have():
    """Neither before its first element nor beyond its last one is an integer read."""
    tensor = torch.tensor([4, 5, 6])
    contents = Contents(tensor)
    assert contents.at([2, 0]).tolist() == [6, 4] and contents.at(numpy.zeros(0, int)).size == 0
    for places in ([0, 3], [-1, 1], 3, -1):
        with pytest.raises(CheckError, match="beyond a tensor's end"):
            contents.at(places)


@pytest.mark.parametrize(
    "dim",
    [
        {"stride": 1, "digits": [[1, ["each"]]], "bound": None},
        {"stride": 1, "digits": [[1, ["pids", START]]], "bound": 4},
        {"stride": 1, "digits": [[1, ["element", 7, 0]]], "bound": None},
        {"stride": 1, "digits": [[1, ["element", 1]]], "bound": None},
    ],
)
def test_malformed(dim):
    with pytest.raises(PlanError):
        check("distinct", [dim])
