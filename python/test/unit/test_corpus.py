"""The corpus table: what it says about good files, bad files, and files that crash it."""

import os
import pathlib

import pytest
from releases import NEWEST
from triton.backends.autodiff import __main__ as command
from triton.backends.autodiff.inspecting import corpus

pytestmark = pytest.mark.every_triton

ROOT = pathlib.Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "test" / "Triton" / "corpus" / ("3.9" if NEWEST else "3.6")

COPY = """
module {
  tt.func public @copy(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
    %0 = tt.load %x : !tt.ptr<f32>
    tt.store %y, %0 : !tt.ptr<f32>
    tt.return
  }
}
"""


def test_samples_round_trip():
    """What this Triton printed compiles to the same assembly after a pass through our parser."""
    rows = corpus.run_corpus(SAMPLES, steps=("parsed", "round-tripped"))
    assert len(rows) == len(list(SAMPLES.glob("*.ttir"))) > 5
    assert {row.file: row.results for row in rows if not row.reached("round-tripped")} == {}


def test_reasons_name_file_and_line(tmp_path, capsys):
    """A file that does not parse says where, and does not keep the others from being examined."""
    (tmp_path / "good.ttir").write_text(COPY)
    (tmp_path / "new.ttir").write_text(COPY.replace("tt.load", "tt.not_yet_invented"))
    status = command.main(["corpus", str(tmp_path), "--steps", "parsed", "differentiated"])
    table = capsys.readouterr().out
    assert status == 1
    assert "new.ttir:4:" in table and "tt.not_yet_invented" in table
    assert "2 files: 1 parsed, 1 differentiated" in table
    (reason,) = (line for line in table.splitlines() if line.startswith("    1 parsed: "))
    assert "tt.not_yet_invented" in reason and "new.ttir" not in reason


def test_kernels_are_accepted(tmp_path):
    """The derived kernels compile."""
    (tmp_path / "copy.ttir").write_text(COPY)
    (row,) = corpus.run_corpus(tmp_path)
    assert row.results == dict.fromkeys(corpus.STEPS, "")
    assert row.kernels >= 1 and row.gradients == 1
    assert set(row.times) == set(corpus.STEPS)


def test_integers_have_no_gradient(tmp_path):
    """A kernel of integers is differentiated, into nothing, and counted apart."""
    (tmp_path / "copy.ttir").write_text(COPY.replace("f32", "i32"))
    rows = corpus.run_corpus(tmp_path, steps=("parsed", "differentiated"))
    assert rows[0].reached("differentiated") and rows[0].gradients == 0
    assert "1 of those differentiated have no gradient" in corpus.format_table(rows)


def test_general_reasons():
    """Equal reasons are equal wherever they stand."""
    for reason in (
        "dir/a.ttir:4:10: error: no rule",
        "copy_bwd: a.ttir:14:1: error: no rule",
        "error: no rule",
        "no rule",
    ):
        assert corpus.general(reason) == "no rule"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_crash_costs_one_row(tmp_path, monkeypatch):
    """A process that dies or hangs leaves its reason, the rest of the table stands."""

    def examine(path, target, steps, report, assemble):
        report("begin", "parsed")
        if path.endswith("dies.ttir"):
            os._exit(3)
        if path.endswith("hangs.ttir"):
            os.read(os.pipe()[0], 1)
        report("parsed", "")

    monkeypatch.setattr(corpus, "examine", examine)
    for name in ("dies", "fine", "hangs"):
        (tmp_path / f"{name}.ttir").write_text(COPY)
    dies, fine, hangs = corpus.run_corpus(
        tmp_path, steps=("parsed",), timeout=10, start_method="fork"
    )
    assert "crash" in dies.results["parsed"]
    assert fine.reached("parsed")
    assert "took more than" in hangs.results["parsed"]
