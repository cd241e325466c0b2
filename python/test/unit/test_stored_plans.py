"""Plans kept in a file, and how those of another compiler differ from them."""

import gzip
import json
import os
import re

import pytest
import torch
from gradients import random_tensor
from kernels import normalization as norm
from test_corpus import COPY
from triton.backends.autodiff import AutodiffError, autodiff
from triton.backends.autodiff import __main__ as command
from triton.backends.autodiff.inspecting import differences, stored_plans
from triton.backends.autodiff.plans import recording

TARGETS = ["cuda:80", "cuda:89", "cuda:90", "cuda:100", "cuda:120", "hip:gfx942", "cpu"]


@pytest.fixture(scope="module")
def requests(tmp_path_factory):
    """What a layer norm asks for when it is launched, and a kernel of which nothing is known."""
    folder = tmp_path_factory.mktemp("requests")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(recording.VARIABLE, str(folder))
        device = "cuda" if torch.cuda.is_available() else "cpu"
        x, w, b = (random_tensor(*shape, device=device) for shape in ((16, 128), (128,), (128,)))
        y = autodiff(norm.layer_norm_kernel, norm.layer_norm)(x, w, b)
        y.sum().backward()
    (folder / "copy.ttir").write_text(COPY)
    return folder


@pytest.fixture(scope="module")
def stored(requests, tmp_path_factory):
    """The plans of these in a file."""
    path = tmp_path_factory.mktemp("plans") / "plans.gz"
    assert command.main(["corpus", str(requests), "--record", str(path)]) == 0
    return path


def lines_of(path):
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def write(path, lines):
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    return path


def changed(stored, path, change, target="cuda:90"):
    """Write a file in which `change` was made to the first plan for a target that it suits."""
    header, *entries = map(json.loads, lines_of(stored))
    for entry in entries:
        answer = entry["answers"][target]
        plan = json.loads(answer["plan"])
        if change(plan):
            answer["plan"] = json.dumps(plan)
            return write(path, map(json.dumps, (header, *entries)))
    raise AssertionError("there is no such plan")


def test_requests_of_launches_are_recorded(requests):
    """They hold what was asked, and are written once, also where the plan is known already."""
    asked = recording.read(requests)
    names = {a.name for a in asked}
    assert names == {"layer_norm_kernel", "copy"}
    assert all("tt.func" in a.ttir and "wanted" in a.request for a in asked)
    assert [a.key for a in asked] == sorted({a.key for a in asked})


def test_recording(monkeypatch, tmp_path):
    """Known plans are recorded, too; where nothing can be written, an error says so."""
    from triton_autodiff.plans.cache import plan_for

    request = {**recording.REQUEST, "target": "cpu"}
    plan_for(COPY, request, "copy")
    monkeypatch.setenv(recording.VARIABLE, str(tmp_path / "a" / "b"))
    for _ in range(2):
        plan_for(COPY, request, "copy")
    assert recording.read(tmp_path) == [recording.Asked("copy", COPY, request)]
    assert len(list((tmp_path / "a" / "b").iterdir())) == 1
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(recording.VARIABLE, str(tmp_path / "file"))
    with pytest.raises(AutodiffError, match=f"{recording.VARIABLE}=.*file cannot be written"):
        plan_for(COPY, request, "copy")


def test_equal_compilers_have_equal_plans(requests, stored, tmp_path, capsys):
    """Two runs write the same bytes, whatever the number of processes, and nothing differs."""
    again = tmp_path / "again"
    command.main(["corpus", str(requests), "--record", str(again), "--jobs", "3"])
    assert again.read_bytes() == stored.read_bytes()
    header, *entries = map(json.loads, lines_of(stored))
    assert header["count"] == len(entries) >= 2
    assert all(list(entry["answers"]) == TARGETS for entry in entries)
    capsys.readouterr()
    assert command.main(["corpus", "--compare", str(stored)]) == 0
    plans = len(entries) * len(TARGETS)
    assert capsys.readouterr().out == f"{plans} plans: {plans} the same, 0 accepted, 0 different\n"


def _ttir(plan):
    kernel = plan["backward"][0]
    before = kernel["ttir"]
    kernel["ttir"] = before.replace("arith.addf", "arith.subf", 1)
    return kernel["ttir"] != before


def _order(plan):
    """Swap two operations that do not need one another; where constants stand does not count."""
    lines = plan["backward"][0]["ttir"].splitlines()
    for i, pair in enumerate(zip(lines, lines[1:], strict=False)):
        a, b = (re.match(r"\s*(%\S+) = ((?:arith|tt)\.\w+) [^{]*$", line) for line in pair)
        if a and b and len({a[2], b[2], "arith.constant"}) == 3 and a[1] not in b[0]:
            lines[i : i + 2] = reversed(pair)
            plan["backward"][0]["ttir"] = "\n".join(lines)
            return True
    return False


def _buffer(plan):
    for buffer in plan["buffers"][:1]:
        buffer["size"] = ["add", 1, buffer["size"]]
    return bool(plan["buffers"])


def _new_buffer(plan):
    plan["buffers"].append({"name": "more", "kind": "tape", "dtype": "f32", "size": 1})
    return True


def _check(plan):
    checks = [c for g in plan["gradients"] for c in g["checks"]]
    for check in checks[:1]:
        check["offset"] = 3
    return bool(checks)


def _grid(plan):
    plan["backward"][0]["grid"] = [1, 2, 3]
    return True


def _offer(plan):
    plan["next"].append([{"ask": "axes", "value": [4]}])
    return True


def _report(plan):
    plan["report"]["inactive"] = [{"argument": 1, "reason": "integer"}]
    return True


def _assumed(plan):
    plan["assumed"] = [["arg", 1]]
    return True


def _kernel(plan):
    plan["backward"].append({**plan["backward"][0], "name": "another"})
    return True


def _flag(plan):
    """What Python takes for equal."""
    plan["gradients"][0]["returned"] = 1
    return True


CHANGES = {
    _ttir: r"backward\[\w+\]\.ttir",
    _order: r"backward\[\w+\]\.ttir",
    _buffer: r"buffers\[\w+\]\.size",
    _new_buffer: r"buffers\[more\]",
    _check: r"gradients\[argument \d\]\.checks\[argument \d\].offset",
    _grid: r"backward\[\w+\]\.grid",
    _offer: "next",
    _report: r"report\.inactive(\[.*)?",
    _assumed: "assumed",
    _kernel: r"backward\[another\]",
    _flag: r"gradients\[argument \d\]\.returned",
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_each_difference_is_named(stored, tmp_path, capsys, change):
    path = changed(stored, tmp_path / "plans", change)
    assert command.main(["corpus", "--compare", str(path), "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)
    assert rows and {row["target"] for row in rows} == {"cuda:90"}
    assert {re.fullmatch(CHANGES[change], row["field"]) is not None for row in rows} == {True}
    assert all(any(line[0] in "+-" for line in row["lines"]) for row in rows)
    assert command.main(["corpus", "--compare", str(path)]) == 1
    out = capsys.readouterr().out
    assert ", 0 accepted, 1 different" in out and f"({rows[0]['target']}): " in out
    assert all(row["field"] in out for row in rows)


def test_an_error_in_place_of_a_plan(stored, tmp_path, capsys):
    """In the compiler's answer, or in the file's."""
    header, *entries = map(json.loads, lines_of(stored))
    entries[0]["ttir"] = entries[0]["ttir"].replace("tt.store", "tt.not_yet_invented")
    entries[1]["answers"]["cpu"] = {"error": "no rule"}
    path = write(tmp_path / "plans", map(json.dumps, (header, *entries)))
    assert command.main(["corpus", "--compare", str(path)]) == 1
    out = capsys.readouterr().out
    # The same difference for all targets is shown once.
    assert f"({', '.join(sorted(TARGETS))}): error\n" in out
    assert re.search(r"    - plan: \w+\n    \+ error: .*tt.not_yet_invented", out)
    assert re.search(r"\(cpu\): error\n  error\n    - error: no rule\n    \+ plan: \w+\n", out)
    assert f"{len(TARGETS) + 1} different" in out


def test_differences_are_accepted(stored, tmp_path, capsys):
    """A file says which, and why; what it says for nothing is listed."""
    path = changed(stored, tmp_path / "plans", _grid)
    accept = tmp_path / "accepted"
    accept.write_text(
        "# a comment\n\n* cuda:* backward.grid: a grid of six\n* cpu backward.grid: another one\n"
    )
    arguments = ["corpus", "--compare", str(path), "--accept", str(accept)]
    assert command.main(arguments) == 0
    out = capsys.readouterr().out
    assert "1 accepted, 0 different" in out and "(cuda:90): accepted, a grid of six" in out
    assert "nothing is * cpu backward.grid: another one" in out
    accept.write_text("* cuda:80 backward.grid: another target\n")
    assert command.main(arguments) == 1
    for text in ("* * backward.grid:", "* backward.grid: two", "* * backward.grid six"):
        accept.write_text(f"\n{text}\n")
        assert command.main(arguments) == 2
        assert "accepted:2: expected KERNEL TARGET FIELD: reason" in capsys.readouterr().err
    accept.write_text("* * backward.grid: the first line counts, too\n")
    assert command.main(arguments) == 0


def damages(stored):
    """Contents of a file that is damaged, and what an error says of it."""
    content, lines = stored.read_bytes(), lines_of(stored)
    header, entry = json.loads(lines[0]), json.loads(lines[1])
    entry["answers"]["cpu"] = {"plan": 1, "error": 2}
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 255
    yield b"", "no file of plans"
    yield b"no file of ours", "damaged, or no file of plans"
    yield content[: len(content) // 2], "damaged"
    yield bytes(flipped), "damaged"
    for text, message in (
        (lines[:-1], f"{len(lines) - 2} of {len(lines) - 1} requests"),
        ([*lines, lines[-1]], "damaged"),
        ([*lines[:-1], lines[-1][:-9]], "damaged"),
        (lines[1:], "no file of plans"),
        ([json.dumps({**header, "version": 0}), *lines[1:]], "version 0"),
        ([lines[0], json.dumps(entry)], "no answers"),
        ([lines[0], "{}"], "'name'"),
    ):
        yield gzip.compress("\n".join(text).encode()), message


def test_damaged_files(stored, tmp_path, capsys):
    path = tmp_path / "plans"
    for content, message in damages(stored):
        path.write_bytes(content)
        with pytest.raises(AutodiffError, match=message) as raised:
            list(stored_plans.read(path))
        assert str(path) in str(raised.value)
    assert command.main(["corpus", "--compare", str(path)]) == 2
    assert "\nerror: " in f"\n{capsys.readouterr().err}"
    assert command.main(["corpus", "--compare", str(tmp_path / "none")]) == 2


def test_damaged_requests(tmp_path, capsys):
    arguments = ["corpus", str(tmp_path), "--record", str(tmp_path / "plans")]
    assert command.main(arguments) == 2 and "holds no *.json" in capsys.readouterr().err
    for text, message in (("{", "is damaged"), ("[]", "no request"), ('{"name": 1}', "'name'")):
        (tmp_path / "a.json").write_text(text)
        assert command.main(arguments) == 2
        error = capsys.readouterr().err
        assert "a.json" in error and message in error
    for wrong in (["corpus"], ["corpus", "x", "--compare", "y"]):
        assert command.main(wrong) == 2
    (tmp_path / "a.json").unlink()
    (tmp_path / "a.ttir").write_text(COPY)
    for target in ("tpu", "cuda:sm_90"):
        assert command.main([*arguments, "--targets", "cpu", target]) == 2
        assert f"unknown target {target!r}" in capsys.readouterr().err
    assert command.main([*arguments[:-1], str(tmp_path / "none" / "plans")]) == 2
    assert not (tmp_path / "plans").exists()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_crash_is_one_error(monkeypatch, tmp_path):
    """A compiler that dies for a target has that as its answer, and answers for the others."""

    def derive(asked, target):
        if target == "cuda:90":
            os._exit(3)
        return {"plan": f'{{"kernel": "{asked.name}"}}'}

    run_each = stored_plans.run_each
    monkeypatch.setattr(stored_plans, "derive", derive)
    monkeypatch.setattr(
        stored_plans, "run_each", lambda *rest: run_each(*rest, start_method="fork")
    )
    corpus = [recording.Asked(name, COPY, recording.REQUEST) for name in "ab"]
    counts = stored_plans.record(tmp_path / "plans", corpus)
    assert counts == (2 * (len(TARGETS) - 1), 2)
    for entry in stored_plans.read(tmp_path / "plans"):
        assert [target for target in TARGETS if "plan" not in entry.answers[target]] == ["cuda:90"]
        assert "(a crash)" in entry.answers["cuda:90"]["error"]
    assert not any(found.differences for found in stored_plans.compare_with(tmp_path / "plans"))


# --------------------------------------------------------------------------------------------
# What counts in TTIR
# --------------------------------------------------------------------------------------------

BRANCHES = """
#loc = loc("a.py":1:0)
module {
  tt.func public @k(%x: !tt.ptr<f32> loc("x"(#loc)), %n: i32) attributes {a = "loc(%x"} {
    %a:2 = scf.if %c -> (f32, f32) {
      %0 = tt.load %x : !tt.ptr<f32> loc(#loc5)
      scf.yield %0, %0 : f32, f32 loc(callsite(#loc1 at "f(.py":3:4))
    } else {
      %0 = arith.negf %a : f32
      scf.yield %0, %0 : f32, f32
    } loc(#loc)
    %r = scf.for %i = %n to %n step %n iter_args(%s = %a#1) -> (f32)  : i32 {
      scf.yield %s : f32
    }
    tt.return loc(#loc6)
  } loc(#loc)
} loc(#loc)
#loc1 = loc(unknown)
"""
RENAMED = """
module {
  tt.func public @k(%arg0: !tt.ptr<f32>, %arg1: i32) attributes {a = "loc(%x"} {
    %0:2 = scf.if %c -> (f32, f32) {
      %5 = tt.load %arg0 : !tt.ptr<f32>
      scf.yield %5, %5 : f32, f32
    } else {
      %7 = arith.negf %0 : f32
      scf.yield %7, %7 : f32, f32
    }
    %9 = scf.for %arg2 = %arg1 to %arg1 step %arg1 iter_args(%arg3 = %0#1) -> (f32)  : i32 {
      scf.yield %arg3 : f32
    }
    tt.return
  }
}
"""


def _differ(before, after):
    plans = ({"plan": {"kernel": "k", "ttir": text}} for text in (before, after))
    return differences.compare(*plans)


def test_all_new_entries_are_named():
    """Also the first one, and where the old plan has none."""
    entries = [{"name": name, "size": 1} for name in ("a", "b", "c")]
    for known, fields in ((1, ["buffers[b]", "buffers[c]"]), (0, [f"buffers[{n}]" for n in "abc"])):
        before, after = ({"plan": {"buffers": these}} for these in (entries[:known], entries))
        for pair, sign in (((before, after), "+"), ((after, before), "-")):
            found = differences.compare(*pair)
            assert [difference.field for difference in found] == fields
            assert all(difference.lines[0][0] == sign for difference in found)


@pytest.mark.parametrize("letters, shown", [(39, '"' + "a" * 39), (40, "…" + "a" * 40)])
def test_of_what_long_values_have_in_common_forty_characters_are_shown(letters, shown):
    """Only where there are more, something is left out; the quotation mark is one of them."""
    plans = ({"plan": {"reason": "a" * letters + end}} for end in "xy")
    (difference,) = differences.compare(*plans)
    assert difference.lines == (f'- {shown}x"', f'+ {shown}y"')


def test_names_and_locations_do_not_count():
    assert _differ(BRANCHES, RENAMED) == [] == _differ(RENAMED, BRANCHES)


@pytest.mark.parametrize(
    "old, new",
    [
        ("scf.yield %7, %7", "scf.yield %7, %0"),
        ("%0#1", "%0#0"),
        ("loc(%x", "loc(%y"),
        ("negf", "absf"),
        ("iter_args(%arg3", "iter_args(%arg1"),
        ("%arg1 to %arg1", "%arg1 to %c"),
        ("    tt.return\n", "    tt.return\n    tt.return\n"),
    ],
)
def test_all_else_counts(old, new):
    after = RENAMED.replace(old, new, 1)
    assert after != RENAMED
    for pair in ((BRANCHES, after), (after, BRANCHES)):
        assert [difference.field for difference in _differ(*pair)] == ["ttir"]


def test_lines_that_are_the_same_are_not_shown():
    """An operation more does not make those behind it differ."""
    line = "      %5 = tt.load %arg0 : !tt.ptr<f32>\n"
    after = RENAMED.replace(line, f"      %1 = arith.mulf %c, %c : f32\n{line}")
    (difference,) = _differ(BRANCHES, after)
    changed = [line for line in difference.lines[2:] if line[0] in "+-"]
    assert len(changed) == 1 and re.match(r"\+ +%\d+ = arith.mulf %\d+, %\d+ : f32$", changed[0])
