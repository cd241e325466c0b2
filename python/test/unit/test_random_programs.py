"""Gradients of random programs against finite differences, see `fuzz`."""

import dataclasses
import os

import pytest
import torch
import triton
import triton.language as tl
from fuzz.campaign import Worker
from fuzz.choices import Choices, seeded
from fuzz.generate import generate
from fuzz.oracle import DTYPES, rounded
from fuzz.program import Program

hypothesis = pytest.importorskip("hypothesis")

on_cpu = pytest.mark.parametrize("device", ["cpu"], indirect=True)

PROGRAMS = int(os.environ.get("FUZZ_PROGRAMS", "500"))
TESTS = 10


@pytest.fixture(scope="module")
def worker():
    """A process of its own for the programs, so that a crash is a failure like others."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        pytest.skip("kernels are interpreted")
    process = Worker()
    yield process
    process.close()


def _checked(worker, program, **options):
    request = {"program": dataclasses.asdict(program), "point": 0, **options}
    return next(worker.check([request]))


@pytest.fixture
def first(request):
    """The programs are the same in every run unless --seed asks for others, as `make fuzz` does."""
    return request.config.getoption("--seed") or 0


@pytest.mark.parametrize("part", range(TESTS))
def test_random_programs(worker, part, first):
    """No gradient is wrong and nothing breaks; refusals state a reason."""

    @hypothesis.seed(first * TESTS + part)
    @hypothesis.settings(
        max_examples=PROGRAMS // TESTS,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        # `make fuzz` makes what it finds smaller.
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(hypothesis.strategies.data())
    def holds(data):
        integers = hypothesis.strategies.integers
        choices = Choices(lambda bound: data.draw(integers(0, bound - 1)))
        program = generate(choices, "kernel")
        result = _checked(worker, program)
        hypothesis.note(program.source)
        assert result["status"] in ("passed", "refused", "rejected"), result["reason"]

    holds()


def test_wrong_gradients_are_caught(worker, first):
    """A gradient that is off by a thousandth in one input does not pass."""
    programs = [generate(seeded((first, i)), f"kernel_{i}") for i in range(12)]
    plain = [_checked(worker, program)["status"] for program in programs]
    off = [_checked(worker, program, factor=1.001) for program in programs]
    # A gradient that vanishes is never off; a worker says so. One that is small may hide once or
    # twice: what differs from zero is then in none of the elements that are looked at.
    caught = [
        result["status"] == "wrong" or result["vanishes"]
        for status, result in zip(plain, off, strict=True)
        if status == "passed"
    ]
    assert sum(caught) >= len(caught) - 2 > 0


@triton.jit
def _repeated(w, y, error, T: tl.constexpr, N: tl.constexpr):
    """Store one number in many places: its gradient is the sum of their upstream gradients."""
    i = tl.arange(0, N)
    factor = tl.full([N], 1, T)
    if T == tl.float32:
        # Too few bits: errors of all signs, and only where this is not the reference.
        factor += error * tl.cos(i * 3.0)
    tl.store(y + i, tl.load(w).to(T) * factor)


def _rounded(dtype, seed, size=64, units=0, **options):
    def stub(kernel, w, *, T=tl.float64, M=tl.float64, DTYPE=torch.float64):
        y = torch.empty(size, dtype=DTYPE)
        kernel[(1,)](w, y, units * torch.finfo(DTYPE).eps, T=T, N=size)
        return (y,)

    program = Program("repeated", "", [], "", {"w": 1}, ["w"])
    return rounded(_repeated, stub, program, dtype, seed, **options)


@on_cpu
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cancelling_upstream_gradients_are_tolerated(device, dtype, first):
    """A sum of upstream gradients is as exact as its terms are, however small it is."""
    for seed in range(first, first + 200):
        assert not _rounded(dtype, seed)


@on_cpu
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_errors_in_low_precision_are_caught(device, dtype, first):
    """What cancels hides neither arithmetic with too few bits nor a wrong factor."""
    seeds = range(first, first + 50)
    caught = [bool(_rounded(dtype, seed, units=256)) for seed in seeds]
    assert sum(caught) > 40
    # The terms of a gradient of one term cannot cancel.
    units = 16 * torch.finfo(dtype).eps
    assert all(_rounded(dtype, seed, size=1, factor=1 + 2 * units) for seed in seeds)


def test_schedules_are_reached(worker, first):
    """Among programs that share what they read, some have backward kernels of their own kind."""
    programs = [generate(seeded((first, i)), f"kernel_{i}") for i in range(160)]
    results = [_checked(worker, program) for program in programs if program.smooth]
    passed = [result for result in results if result["status"] == "passed"]
    for schedule in ("exchanged", "persistent"):
        found = sum(schedule in result["schedules"] for result in passed)
        assert found > 1, f"{found} of {len(passed)} are {schedule}"


def test_programs_are_repeatable(first):
    """A seed determines a program."""
    first, second = (generate(seeded(first), "kernel") for _ in range(2))
    assert first == second
