"""Gradients of random programs against finite differences and float64, see `fuzz`."""

import dataclasses
import os
import subprocess
import sys

import levels
import pytest
import torch
import triton
import triton.language as tl
from fuzz import batched, campaign, faults, ways
from fuzz.choices import Choices, seeded
from fuzz.differences import POISON, UNSEEN, Check, gradients_of
from fuzz.endless import is_endless
from fuzz.generate import generate, kinds, write
from fuzz.oracle import Subject
from fuzz.points import Forward, same
from fuzz.pool import Worker
from fuzz.script import script
from fuzz.worker import subjects
from triton.backends.autodiff import AutodiffError
from watched import watched

hypothesis = pytest.importorskip("hypothesis")

on_cpu = pytest.mark.parametrize("device", ["cpu"], indirect=True)

PROGRAMS = int(os.environ.get("FUZZ_PROGRAMS", "150"))
TESTS = 10
# Programs that are carried out in other ways, too.
WAYS = 8
# Programs that are run in batches.
BATCHES = 12
HALF = ("bfloat16", "float16", "float32")


@pytest.fixture(scope="module")
def worker():
    """A process of its own for the programs, so that a crash is a failure like others."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        pytest.skip("kernels are interpreted")
    process = Worker(keeps=True)
    yield process
    process.close()


def _checked(worker, program, **options):
    request = {"name": program.name, "program": dataclasses.asdict(program), "point": 0}
    request["level"] = int(os.environ.get(levels.VARIABLE, levels.USUAL))
    return next(worker.check([request | options]))


@pytest.fixture
def first(request):
    """The programs are the same in every run unless --seed asks for others, as `make fuzz` does."""
    return request.config.getoption("--seed") or 0


# They run in another process, where no launches are noted: two parts are for every Triton.
PARTS = [
    pytest.param(part, marks=[pytest.mark.every_triton] if part in (1, 3) else [])
    for part in range(TESTS)
]


@pytest.mark.cpu
@pytest.mark.parametrize("part", PARTS)
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
        # In other types, too, where rounding moves results by little.
        types = HALF[part % len(HALF)] if program.smooth else None
        result = _checked(worker, program, types=types, without=UNSEEN)
        hypothesis.note(program.source)
        assert result["status"] in ("passed", "refused", "discarded"), result["reason"]

    holds()


@pytest.mark.cpu
def test_other_ways(worker, first):
    """Exported modules and graphs have the gradients of launches, to the bit."""
    for number in range(WAYS):
        program = generate(seeded(f"ways:{first}:{number}"), "kernel")
        result = _checked(worker, program, without=UNSEEN, look=False, in_ways=True)
        assert result["status"] in ("passed", "refused", "discarded"), result["reason"]


@pytest.mark.cpu
def test_batches(worker, first):
    """A vmap does what a loop of launches does."""
    for number in range(BATCHES):
        program = generate(seeded(f"batches:{first}:{number}"), "kernel")
        result = _checked(worker, program, without=UNSEEN, look=False, in_batches=True)
        assert result["status"] in ("passed", "refused", "discarded"), result["reason"]


@on_cpu
@pytest.mark.parametrize("compared", batched.COMPARED, ids=lambda compared: compared.__name__)
def test_batches_are_compared(device, compared, tmp_path, monkeypatch):
    """Each way is there for some program. One that mixes up what examples have is seen."""
    from triton.backends.autodiff.surface import operation

    monkeypatch.setattr(batched, "COMPARED", (compared,))
    requests = [{"name": f"kernel_{n}", "seed": f"compared:{n}", "point": n} for n in range(9)]
    for subject in subjects(requests, tmp_path):
        check = Check(subject.program, subject.kernel, subject.stub, subject.seed)
        batch = batched.Batch(check)
        if batch.run is batch.op and any(pair.loop.any() for pair in compared(batch)):
            break
    assert not any(pair.difference() for pair in compared(batch))
    each = operation.for_each_example

    def reversed_examples(function, args, kwargs=None):
        return [y.flip(0) for y in each(function, args, kwargs)]

    monkeypatch.setattr(operation, "for_each_example", reversed_examples)
    assert any(pair.difference() for pair in batch.outputs())


@on_cpu
def test_ways_are_compared(device, tmp_path, monkeypatch):
    """Most programs can be carried out in each way, and a gradient that is off is seen there."""
    requests = [{"name": f"kernel_{n}", "seed": f"compared:{n}", "point": n} for n in range(9)]
    for subject in subjects(requests, tmp_path):
        check = Check(subject.program, subject.kernel, subject.stub, subject.seed)
        found = {way: ways.gradients_in(way, check) for way in ways.WAYS}
        if None not in found.values() and any(g.any() for g in check.gradients.values()):
            break
    for gradients in found.values():
        torch.testing.assert_close(gradients, check.gradients)
    assert ways.carried_out_otherwise(check) is None

    def doubled(check, folder):
        return lambda *values: [2 * y for y in check.op(*values)]

    monkeypatch.setitem(ways.WAYS, "graph", doubled)
    assert ways.carried_out_otherwise(check).status == "wrong"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.cpu] if fault.device == "cpu" else [])
        for name, fault in faults.FOUND.items()
    ],
)
def test_faults_are_mended(worker, name):
    """What was wrong once is right, or refused where there is nothing to be right about."""
    fault = faults.FOUND[name]
    if fault.device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    process = worker if fault.device == "cpu" else Worker(fault.device)
    result = _checked(process, fault.program, types=fault.types, device=fault.device)
    if process is not worker:
        process.close()
    assert result["status"] == ("refused" if fault.refused else "passed"), result["reason"]


@pytest.mark.parametrize("on_gpu", [False, True])
def test_every_kind_is_generated(on_gpu):
    """Each kind of program that may be is among a thousand, those that were wrong once, too."""
    met = set()
    for number in range(1000):
        met |= write(seeded(f"met:{number}"), "kernel", on_gpu=on_gpu).features
    missing = kinds(on_gpu=on_gpu) - met
    assert not missing
    named = {kind for fault in faults.FOUND.values() for kind in fault.kinds} - set(POISON)
    assert on_gpu or named <= met


def test_endless_loops_are_seen():
    """Triton's compiler would hang on a tile that a loop permutes and reshapes."""
    body = """
    v1 = tl.load(x1 + tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :])
    for i in range(n):
        v2 = tl.permute(v1, (1, 0))
        v3 = tl.{function}(v2 * 0.5{more})
        v1 = tl.reshape(v3, [4, 16])
    tl.store(y1, tl.sum(tl.sum(v1, 1), 0))
    """
    for function, more, endless in (("sin", "", True), ("cumsum", ", 1", False)):
        text = body.format(function=function, more=more)
        program = faults.written(text, x1=64, y1=1)
        assert is_endless(program) == endless


def test_kinds_can_be_left_out():
    """What is left out is in no program."""
    without = frozenset({"layout permuted pairs", "decay in rows of zero", "edge a view"})
    for number in range(100):
        assert without.isdisjoint(write(seeded(number), "kernel", without).features)


@pytest.mark.cpu
def test_wrong_gradients_are_caught(worker, first):
    """A gradient that is off by a thousandth in one input does not pass."""
    programs = [generate(seeded((first, i)), f"kernel_{i}") for i in range(12)]
    plain = [_checked(worker, program, without=UNSEEN)["status"] for program in programs]
    off = [_checked(worker, program, without=UNSEEN, factor=1.001) for program in programs]
    # A gradient that vanishes is never off; a worker says so. One that is small may hide once or
    # twice: what differs from zero is then in none of the elements that are looked at.
    caught = [
        result["status"] == "wrong" or result["vanishes"]
        for status, result in zip(plain, off, strict=True)
        if status == "passed"
    ]
    assert sum(caught) >= len(caught) - 2 > 0


def _subject(tmp_path, program, types, **options) -> Subject:
    request = {"name": program.name, "program": dataclasses.asdict(program), "point": 0}
    request["level"] = int(os.environ.get(levels.VARIABLE, levels.USUAL))
    return next(subjects([request | {"types": types} | options], tmp_path))


# One number in many places: its gradient is a sum of upstream gradients, which may cancel.
REPEATED = """
i = tl.arange(0, 64)
v1 = tl.load(x1).to(T)
v2 = v1 + tl.zeros([64], T)
if T == tl.float32:
    v2 = v2 * (1.0 + {error} * tl.cos(i * 3.0))
tl.store(y1 + i, v2)
"""


def _repeated(tmp_path, types, error=0.0, **options):
    return _subject(
        tmp_path, faults.written(REPEATED.format(error=error), x1=1, y1=64), types, **options
    )


def _statuses(subject, first):
    found = []
    for subject.seed in range(first, first + 10):
        found.append(subject.verdict().status)
    return found


@on_cpu
@pytest.mark.parametrize("types", HALF)
def test_cancelling_upstream_gradients_are_tolerated(device, types, first, tmp_path):
    """A sum of upstream gradients is as exact as its terms are, however small it is."""
    statuses = _statuses(_repeated(tmp_path, types), first)
    assert set(statuses) <= {"passed", "discarded"} and statuses.count("passed") > 5


@on_cpu
@pytest.mark.parametrize("types", HALF)
@pytest.mark.parametrize("error, factor", [(0.3, 1.0), (0.0, 1.1), (0.0, 0.9)])
def test_errors_in_other_types_are_caught(device, types, error, factor, first, tmp_path):
    """What rounding does hides neither arithmetic with too few bits nor a tenth too much."""
    statuses = _statuses(_repeated(tmp_path, types, error, factor=factor), first)
    # A sum that cancels may be moved by so much that nothing can be said of it.
    assert set(statuses) <= {"wrong", "forward", "discarded"} and statuses.count("discarded") < 5


@on_cpu
def test_noise_of_no_size_changes_nothing(device, first, tmp_path):
    """The program with noise is the program, if the noise is zero."""
    programs = [generate(seeded((first, number)), f"kernel_{number}") for number in range(20)]
    compared = 0
    for number, program in enumerate(programs):
        subject = _subject(tmp_path, program, "bfloat16")
        try:
            check, verdict = subject.in_float64(number)
        except AutodiffError:  # a race, or a function that is not associative
            continue
        quiet = Forward(*subject.noisy, check.inputs.values)
        pairs = list(zip(check.forward({}), quiet({}), strict=True))
        compared += 1
        assert same([y for y, _ in pairs], [y for _, y in pairs]), verdict
        if compared == 4:
            break
    assert compared == 4


HIDDEN = """
i = tl.arange(0, 8)
v1 = tl.minimum(tl.load(x2 + i), tl.load(x1))
tl.store(y1, tl.max(v1, 0))
"""


@on_cpu
@pytest.mark.parametrize("factor", [1.0, 1.1])
def test_ties_of_rounded_numbers_are_no_faults(device, factor, first, tmp_path):
    """A maximum hides a tie from differences. There, the gradient is what PyTorch's is."""

    def tied(tensors):
        if "x2" not in tensors:
            return tensors
        # Three are greater than x1, one is equal to it.
        return {**tensors, "x1": tensors["x2"].sort().values[4:5].clone()}

    subject = _subject(tmp_path, faults.written(HIDDEN, x1=1, x2=8, y1=1), None)
    given = subject.program, subject.kernel, subject.stub, first, factor
    check = Check(*given, tied)
    x1, x2 = (x.clone().requires_grad_() for x in check.inputs.values.values())
    y = torch.minimum(x1, x2).amax(0, keepdim=True)
    truth = torch.autograd.grad(y, (x1, x2), check.upstream)
    if factor == 1.0:
        for ours, theirs in zip(check.gradients.values(), truth, strict=True):
            torch.testing.assert_close(ours, theirs)
    assert check.verdict(subject.passing_nan).status == "discarded"
    # Numbers that are not rounded do not tie: there, nothing but the truth passes.
    assert Check(*given).verdict(subject.passing_nan).status in (
        ["wrong"] if factor != 1.0 else ["passed", "discarded"]
    )


@on_cpu
@pytest.mark.parametrize("what", POISON)
def test_poison_is_seen(device, what, monkeypatch, tmp_path):
    """A product with zero is not zero if the other factor is NaN."""

    def naive(op, program, values, upstream):
        found = gradients_of(op, program, values, upstream)
        zeros = {name: 0 * values[name] for name in found}
        if what == "poison elsewhere":
            zeros = {name: zero.sum() for name, zero in zeros.items()}
        return {name: gradient + zeros[name] for name, gradient in found.items()}

    monkeypatch.setattr("fuzz.differences.gradients_of", naive)
    body = "i = tl.arange(0, 8)\ntl.store(y1 + i, tl.load(x1 + i, mask=i < 5), mask=i < 5)"
    program = faults.written(body, x1=8, y1=8)
    verdict = _subject(tmp_path, program, None, without=sorted({*POISON} - {what})).verdict()
    assert verdict.status == "wrong" and what in verdict.reason


@triton.jit
def _write(y, i):
    tl.store(y + i, tl.load(y) + tl.load(y + i))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("place, where", [(4, "behind"), (-1, "before")])
def test_writes_beside_a_tensor_are_seen(device, dtype, place, where):
    """Also what adds to the numbers there, which are NaN."""
    with pytest.raises(AssertionError, match=f"{where} 4 elements, 1 to 1"), watched():
        y = torch.zeros(4, dtype=dtype, device=device)
        assert y.untyped_storage().nbytes() == 4 * dtype.itemsize
        _write[(1,)](y, place)
    with watched() as watch:
        y = watch.copy(torch.zeros(4, dtype=dtype, device=device))
        _write[(1,)](y, 3)
    assert (y == 0).all()


def test_a_shard_goes_on(tmp_path, monkeypatch):
    """What is in a shard's file is not run again."""
    ran = []

    def run(requests, jobs, report, *_):
        for request in requests[:3]:
            ran.append(request["number"])
            report(request | {"status": "passed", "reason": "", "features": []})

    monkeypatch.setattr(campaign, "run", run)
    arguments = ["campaign", "10", "--seed", "5", "--out", str(tmp_path), "--of", "2"]
    for shard, rounds in ((0, 2), (1, 2)):
        for _ in range(rounds):
            monkeypatch.setattr(sys, "argv", [*arguments, "--shard", str(shard)])
            assert campaign.main() == 0
        # A line that was not finished is a program that was not.
        path = tmp_path / f"cpu-seed5-{shard}of2.jsonl"
        path.write_text(path.read_text()[:-9])
        assert len(campaign.results_of(path)) == 4
    assert sorted(ran) == list(range(10))
    assert campaign.report(tmp_path) == 0


# As on a machine with a GPU: what is not meant for the CPU meets a driver that runs nothing.
OTHER_DEVICE = """
from triton.runtime.driver import driver
driver.set_active(type("Nothing", (), {})())
"""


@pytest.mark.parametrize("types", [None, "bfloat16"])
def test_scripts_stand_alone(types, tmp_path):
    """A script needs nothing of the tests, and shows what differs, where there is a GPU, too."""
    body = """
    i = tl.arange(0, 4)
    v1 = tl.load(x1 + i).to(T)
    v2 = c.norm(v1, 0) + tl.reduce(v1, 0, c.probabilistic_or)
    tl.store(y1 + i, v1 * v2)
    """
    program = faults.written(body, x1=4, y1=4)
    reason = "gradient of x1 is off" if types else "x1: gradient"
    text = script("about", program, {"point": 0, "reason": reason, "types": types})
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def output(text: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(OTHER_DEVICE + text)
        ran = subprocess.run(
            [sys.executable, path], capture_output=True, text=True, env=environment, check=False
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    if types:
        assert float(output(text).split("off by ")[1].split()[0]) < 0.02
    else:
        assert output(text) == ""
        assert output(text.replace("slope = (", "slope = 1 + (")).count("x1[") == 4


@pytest.mark.cpu
def test_schedules_are_reached(worker, first):
    """Among programs that share what they read, some have backward kernels of their own kind."""
    programs = [generate(seeded((first, i)), f"kernel_{i}") for i in range(100)]
    results = [_checked(worker, program, without=UNSEEN) for program in programs if program.smooth]
    passed = [result for result in results if result["status"] == "passed"]
    for schedule in ("interchanged", "persistent"):
        found = sum(schedule in result["schedules"] for result in passed)
        assert found > 1, f"{found} of {len(passed)} are {schedule}"


def test_programs_are_repeatable(first):
    """A seed determines a program."""
    first, second = (generate(seeded(first), "kernel") for _ in range(2))
    assert first == second
