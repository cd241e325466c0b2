"""Gradients of random programs against finite differences, see `fuzz`."""

import dataclasses
import os

import pytest
from fuzz.campaign import Worker
from fuzz.choices import Choices, seeded
from fuzz.generate import generate

hypothesis = pytest.importorskip("hypothesis")

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
    # A gradient that vanishes is never off; a worker says so.
    caught = [
        result["status"] == "wrong" or result["vanishes"]
        for status, result in zip(plain, off, strict=True)
        if status == "passed"
    ]
    assert caught and all(caught)


def test_schedules_are_reached(worker, first):
    """Among programs that share what they read, many have backward kernels of their own kind."""
    programs = [generate(seeded((first, i)), f"kernel_{i}") for i in range(60)]
    results = [_checked(worker, program) for program in programs if program.smooth]
    for schedule in ("exchanged", "persistent"):
        found = sum(schedule in result["schedules"] for result in results)
        assert found > len(results) / 12, f"{found} of {len(results)} are {schedule}"


def test_programs_are_repeatable(first):
    """A seed determines a program."""
    first, second = (generate(seeded(first), "kernel") for _ in range(2))
    assert first == second
