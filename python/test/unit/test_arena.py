"""The arena's instruments: slopes with noise, the judge, results that survive crashes, the page."""

import dataclasses
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import arena_plugin
import pytest
import torch
from arena import ROOT, orders, picture, rows
from arena.case import Maker, Variant
from arena.judge import AGREE, NEITHER, OURS_RIGHT, THEIRS_RIGHT, UNDECIDED, Judge, tolerance
from arena.launches import Bypassed, first_configuration
from arena.problem import dot, norm
from arena.slopes import Slope, exact_slope, noise, slope
from arena.spoil import spoilt
from arena.trial import Trial, judged, make_problem
from arena.truth import Differences, Truth
from triton.runtime.autotuner import Autotuner

# --------------------------------------------------------------------------------------------
# Slopes
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("curve", [0.0, 3.0])
@pytest.mark.parametrize("spread", [1e-9, 1e-6, 1e-4])
def test_a_slope_is_within_its_error(spread, curve):
    """But for few in a thousand; of 2000, chance takes no more than 12 beyond."""
    generator = torch.Generator().manual_seed(torch.initial_seed() % 2**32)

    def noisy(t):
        value = math.exp(1 + curve * t) if curve else t
        return value + spread * torch.randn(1, generator=generator).item()

    truth = curve * math.e if curve else 1.0
    found = [slope(noisy, 0.1) for _ in range(2000)]
    assert sum(abs(s.value - truth) > s.error for s in found) <= 12
    assert all(s.error < 2000 * spread + 1e-3 for s in found)


def test_noise_is_what_no_cubic_explains():
    smooth = [1 + t - 2 * t**2 + 3 * t**3 for t in range(9)]
    assert noise(smooth) < 1e-9
    generator = torch.Generator().manual_seed(0)
    off = (0.01 * torch.randn(9, generator=generator)).tolist()
    assert 0.002 < noise([a + b for a, b in zip(smooth, off, strict=True)]) < 0.05


def test_an_exact_slope_converges():
    found = exact_slope(math.sin, 1e-3)
    assert abs(found.value - 1) < 1e-12 and found.error < 1e-6


def test_no_slope_where_there_are_no_numbers():
    assert slope(lambda t: math.nan, 0.1).error == math.inf
    assert exact_slope(lambda t: math.inf, 0.1).error == math.inf


# --------------------------------------------------------------------------------------------
# The judge
# --------------------------------------------------------------------------------------------


class Known(Truth):
    """A gradient that is known, up to an error that is claimed."""

    exact = True

    def __init__(self, gradient, error=0.0):
        self.gradient = gradient
        self.error = error

    def slope(self, index, direction, estimate):
        return Slope(dot(self.gradient, direction), self.error * norm(self.gradient))


DTYPES = [torch.bfloat16, torch.float16, torch.float32]


def verdict(theirs, ours, truth, dtype, error=0.0, alone=False):
    judge = Judge(Known(truth, error), tolerance(dtype, "cpu"))
    return judge.finding(0, "x", theirs, ours, truth, alone).verdict


@pytest.fixture(params=DTYPES, ids=str)
def dtype(request):
    return request.param


@pytest.fixture
def truth():
    """A gradient with parts of very different size."""
    return torch.randn(5, 33, 24) * torch.logspace(0, -0.9, 33)[:, None]


def rounded(x, dtype):
    """As it leaves a kernel that has rounded once on the way."""
    return (x * (1 + torch.finfo(dtype).eps / 4 * torch.randn_like(x))).to(dtype)


def test_rounding_is_no_mistake(truth, dtype):
    assert verdict(rounded(truth, dtype), rounded(truth, dtype), truth, dtype) == AGREE


def test_every_small_mistake_is_named(truth, dtype):
    theirs, ours = rounded(truth, dtype), rounded(truth, dtype)
    for mistake, copy in spoilt(ours):
        assert verdict(theirs, copy, truth, dtype) == THEIRS_RIGHT, mistake
        assert verdict(copy, ours, truth, dtype) == OURS_RIGHT, mistake
        assert verdict(copy, copy, truth, dtype, alone=True) == NEITHER, mistake


def test_a_mistake_beside_a_large_one_is_named(truth, dtype):
    for mistake, copy in spoilt(rounded(truth, dtype)):
        assert verdict(truth + torch.randn_like(truth), copy, truth, dtype) == NEITHER, mistake


def test_numbers_that_are_none(truth, dtype):
    broken = rounded(truth, dtype)
    broken[1, 2, 3] = math.nan
    whole = rounded(truth, dtype)
    assert verdict(whole, broken, truth, dtype) == THEIRS_RIGHT
    assert verdict(broken, whole, truth, dtype) == OURS_RIGHT
    assert verdict(broken, broken, truth, dtype) == NEITHER


def test_numbers_beyond_half_precision(truth):
    """They are infinite, where the truth is as large."""
    exact = truth.clone()
    exact[1, 2, 3], exact[4, 0, 7] = 7e4, -9e4
    claim = rounded(exact, torch.float16)
    assert claim.isinf().sum() == 2

    def judged(theirs, ours, truth=exact, **options):
        return verdict(theirs, ours, truth, torch.float16, **options)

    turned, broken, within = claim.clone(), claim.clone(), exact.clone()
    turned[1, 2, 3], broken[1, 2, 3], within[1, 2, 3] = -math.inf, math.nan, 7.0
    assert judged(claim, claim) == AGREE
    assert judged(claim, claim, alone=True) == AGREE
    for wrong in (turned, broken):
        assert judged(claim, wrong) == THEIRS_RIGHT
        assert judged(wrong, claim) == OURS_RIGHT
    assert judged(claim, rounded(within, torch.float16), within) == OURS_RIGHT
    assert judged(claim, claim, error=0.5) == UNDECIDED
    assert judged(claim.float(), claim) == OURS_RIGHT


def test_no_gradient_is_zero(truth, dtype):
    assert verdict(truth, None, truth, dtype) == THEIRS_RIGHT
    assert verdict(None, None, torch.zeros(3), dtype) == AGREE


def test_an_uncertain_slope_decides_nothing(truth, dtype):
    assert verdict(truth, 1.02 * truth, truth, dtype, error=0.05) == UNDECIDED
    assert verdict(truth, 1.02 * truth, truth, dtype, error=math.inf) == UNDECIDED
    assert verdict(truth, 3 * truth, truth, dtype, error=0.05) == THEIRS_RIGHT


def test_both_may_be_as_far_off_where_it_is_hard(dtype):
    truth = torch.randn(4000)
    limit = tolerance(dtype, "cpu").rounding
    apart = [truth * (1 + 1.4 * limit * torch.randn_like(truth)) for _ in range(2)]
    assert verdict(*apart, truth, dtype) == AGREE


def test_what_is_spoilt():
    names = [name for name, _ in spoilt(torch.tensor([1.0]))]
    assert len(names) == 3 and not list(spoilt(torch.zeros(9)))
    gradient = torch.randn(64)
    gradient[-40:] = 0  # there is nothing to drop
    assert all((copy - gradient).norm() > 0.01 * gradient.norm() for _, copy in spoilt(gradient))


# --------------------------------------------------------------------------------------------
# A plug-in's cases
# --------------------------------------------------------------------------------------------


def trial_of(name, dtype, device, exact="first"):
    case = next(case for case in arena_plugin.cases() if case.name == name)
    problem = make_problem(arena_plugin, case, Variant("small", str(dtype)[6:]), device)
    return Trial(problem, exact)


@pytest.mark.parametrize("exact", ["first", "never"])
def test_a_wrong_package(dtype, device, exact):
    """By a reference, and by differences of the forward alone."""
    trial = trial_of("scaled", dtype, device, exact)
    assert trial.run()["verdict"] == OURS_RIGHT, trial.findings
    assert not trial.judge_the_judge()["missed"]


@pytest.mark.parametrize("exact", ["first", "last", "never"])
def test_a_right_package(dtype, device, exact):
    trial = trial_of("right", dtype, device, exact)
    assert trial.run()["verdict"] == AGREE, trial.findings
    made = trial.judge_the_judge()
    assert made["made"] == 6 and not made["missed"], made


def test_a_package_that_refuses(dtype, device):
    trial = trial_of("refuses", dtype, device)
    row = trial.run()
    assert row["verdict"] == AGREE and "not for this device" in row["refused"]
    assert row["judge"] == "the forward in float64", row["notes"]


def test_a_backward_of_theirs_in_ours_is_an_error(device):
    """A Function applied by a name that was bound before would be compared with itself."""
    with pytest.raises(Bypassed, match="Scaled.apply was called by another name"):
        trial_of("bound", torch.float32, device).run()


def test_names_for_apply_are_seen(device, monkeypatch):
    """`f = Function.apply` in a module of the package is no way past us."""
    monkeypatch.setattr(arena_plugin, "scaled", arena_plugin.Scaled.apply, raising=False)
    monkeypatch.setattr("arena.launches._ALIASES", {})
    trial = trial_of("right", torch.float32, device)
    case = dataclasses.replace(trial.problem.case, function=lambda x: arena_plugin.scaled(x))
    trial.problem.case = case
    assert trial.run()["verdict"] == OURS_RIGHT
    assert arena_plugin.scaled == arena_plugin.Scaled.apply


def test_memory_that_nobody_wrote_is_a_finding(device):
    if device == "cuda":
        pytest.skip("what new memory holds there is the allocator's affair")
    trial = trial_of("empty", torch.float32, device)
    row = trial.run()
    assert row["verdict"] == AGREE and "nobody wrote" in row["notes"][0]


def test_a_forward_that_is_another_function_judges_nothing(device):
    trial = trial_of("right", torch.float32, device)
    trial.run()
    trial.problem.case = next(case for case in arena_plugin.cases() if case.name == "refuses")
    claim = trial.claims["ours"]
    claim.outputs = [2 * y for y in claim.outputs]
    with pytest.raises(RuntimeError, match="outputs are off by"):
        Differences(trial.problem, claim, None)


def test_the_first_configuration(device):
    """Nothing is measured, and afterwards everything is as it was."""
    before = Autotuner.prune_configs, Autotuner._bench
    with first_configuration():
        assert Autotuner._bench(None, config=None) == [0.0, 0.0, 0.0]
    assert before == (Autotuner.prune_configs, Autotuner._bench)


def test_no_backward_is_tuned(device, monkeypatch):
    """The package's own backward launches kernels with autotuners, too."""
    bench, met = Autotuner._bench, []
    gradient = arena_plugin.Silu.gradient

    def watched(x, dy):
        met.append(Autotuner._bench)
        return gradient(x, dy)

    monkeypatch.setattr(arena_plugin.Silu, "gradient", watched)
    trial_of("right", torch.float32, device).run()
    assert met and bench not in met


class Lopsided(torch.autograd.Function):
    """x² · w, and what is no gradient: its derivative is not symmetric."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * x * w

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        return dy * x * w, dy * x * x


def test_orders_are_compared(device, monkeypatch, dtype):
    problem = trial_of("right", dtype, device).problem
    row = orders.looked_at(problem)
    assert row["verdict"] == orders.RIGHT, row
    found = orders._tangents
    monkeypatch.setattr(orders, "_tangents", lambda *args: [1.2 * t for t in found(*args)])
    row = orders.looked_at(problem)
    assert row["tangents"]["verdict"] == row["verdict"] == orders.WRONG, row
    inputs = {"w": torch.randn(6, 40, device=device, dtype=dtype, requires_grad=True)}
    problem.inputs |= inputs
    problem.leaves.append(inputs["w"])
    problem.case = dataclasses.replace(problem.case, function=lambda x, w: Lopsided.apply(x, w))
    problem.used = None
    row = orders.looked_at(problem)
    assert row["tangents"]["verdict"] == orders.REFUSED, row
    assert row["second"]["verdict"] == row["verdict"] == orders.WRONG, row


def test_orders_beyond_numbers(device, monkeypatch, dtype):
    """Of float16, what is not finite is not compared; of others, it is wrong."""
    problem = trial_of("right", dtype, device).problem
    monkeypatch.setattr(orders, "_tangents", lambda *_: [math.nan * y for y in problem.upstreams])
    row = orders.looked_at(problem)
    expected = orders.BEYOND if dtype == torch.float16 else orders.WRONG
    assert row["tangents"]["verdict"] == row["verdict"] == expected, row
    assert row["second"]["verdict"] == orders.RIGHT, row


@pytest.mark.cpu
def test_orders_are_a_run(tmp_path):
    options = ["--device", "cpu", "--out", str(tmp_path / "out"), "--dtypes", "float32"]
    arena("orders", *options, "--only", "right,scaled,crashes", folder=tmp_path)
    found = {key[1]: row for key, row in rows.read([tmp_path / "out"], rows.ORDERS).items()}
    assert found["right"]["verdict"] == found["scaled"]["verdict"] == orders.RIGHT, found
    assert "signal 11" in found["crashes"]["failed"], found["crashes"]


def test_inputs_are_the_same_in_every_run(device):
    first, second = (trial_of("right", torch.float32, device).problem for _ in range(2))
    assert torch.equal(first.inputs["x"], second.inputs["x"])
    assert (
        Maker({"rows": 3}, torch.float32, device)
        .unit(3, 4)
        .norm(dim=-1)
        .allclose(torch.ones(3, device=device))
    )


# --------------------------------------------------------------------------------------------
# Runs
# --------------------------------------------------------------------------------------------


def arena(*arguments, folder):
    """A command of the arena, with the plug-in of this test."""
    environment = {
        **os.environ,
        "ARENA_PLUGINS": "arena_plugin",
        "PYTHONPATH": os.pathsep.join(str(ROOT / p) for p in ("benchmarks", "python/test")),
    }
    command = [sys.executable, "-m", "arena", *arguments, "--cache", str(folder / "cache")]
    return subprocess.run(
        command, env=environment, cwd=folder, check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.cpu
def test_a_run_survives_crashes_and_hangs(tmp_path):
    """A case that crashes or hangs is told, the others are judged, and a later run goes on."""
    options = ["--device", "cpu", "--out", str(tmp_path / "out"), "--dtypes", "float32"]
    kinds = ["--only", "arena_plugin", "--limit", "30", "--jobs", "2", "--unspoilt"]
    arena("judge", *options, *kinds, folder=tmp_path)
    found = {key[1]: row for key, row in rows.read([tmp_path / "out"], rows.JUDGED).items()}
    assert "signal 11" in found["crashes"]["failed"], found["crashes"]
    assert "no result within 30 s" in found["hangs"]["failed"], found["hangs"]
    assert "signal 11" in found["theirs crashes"]["refused"], found["theirs crashes"]
    assert found["theirs crashes"]["verdict"] == "agree"
    verdicts = {name: row.get("verdict") for name, row in found.items()}
    assert verdicts["right"] == "agree" and verdicts["scaled"] == "ours", verdicts
    assert found["right"]["first"]["ours"]["backward_s"] > 0
    assert found["right"]["machine"]["device"]
    # What has a verdict, or crashed, is settled; what was too slow may be tried again.
    unsettled = [name for name, row in found.items() if not rows.settled(row, retry=False)]
    assert unsettled == ["hangs"]
    said = arena("judge", *options, "--only", "right,scaled", folder=tmp_path)
    assert said.strip() == "all variants are judged"


@pytest.mark.cpu
def test_times_and_the_page(tmp_path):
    options = ["--device", "cpu", "--out", str(tmp_path / "out"), "--dtypes", "float32"]
    only = ["--only", "right,refuses", "--sizes", "small"]
    arena("judge", *options, *only, folder=tmp_path)
    arena("time", *options, *only, folder=tmp_path)
    timed = rows.read([tmp_path / "out"], rows.TIMED)
    times = {key[1]: row["us"] for key, row in timed.items()}
    assert min(times["right"].values()) > 0 and list(times["refuses"]) == ["ours"]
    from arena.report import write

    write([tmp_path / "out"], tmp_path / "arena.md")
    page = (tmp_path / "arena.md").read_text()
    assert "| right |" in page and "not for this device" in page and "12 made, in 2 rows" in page
    assert "1 cases" in (tmp_path / "arena.svg").read_text()


def test_a_line_that_is_cut_off_is_left_out(tmp_path):
    row = {"package": "p", "case": "c", "size": "small", "dtype": "float32", "verdict": "agree"}
    lines = [json.dumps({"machine": {"device": "d"}}), json.dumps(row), json.dumps(row)[:20]]
    (tmp_path / rows.JUDGED).write_text("\n".join(lines))
    (found,) = rows.read([tmp_path], rows.JUDGED).values()
    assert found == {**row, "machine": {"device": "d"}}


def test_the_picture_has_every_case():
    points = [picture.Point(f"case {n}", 2 ** (n - 5), n == 3) for n in range(11)]
    tree = ElementTree.fromstring(picture.picture(points, "a title"))
    circles = [e for e in tree.iter() if e.tag.endswith("circle")]
    assert len(circles) == 11
    heights = [float(c.get("cy")) for c in circles]
    assert heights == sorted(heights, reverse=True)


def test_the_page_that_is_checked_in_has_its_picture():
    page = Path(ROOT, "docs", "arena.md").read_text()
    assert "(arena.svg)" not in page or Path(ROOT, "docs", "arena.svg").exists()


def test_judged_rows_hold_what_the_page_needs(device):
    case, variant = arena_plugin.cases()[0], Variant("small", "float32")
    row = judged(make_problem(arena_plugin, case, variant, device), "first")
    assert row["verdict"] == AGREE and not row["spoilt"]["missed"] and row["gradients"]
