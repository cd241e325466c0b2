"""The command line, and what is logged: as a user runs them, in a process of their own."""

import contextlib
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path

import pytest
import torch
import triton
from test_corpus import COPY
from triton.backends.compiler import GPUTarget
from triton.runtime.cache import get_cache_manager
from triton.runtime.driver import driver
from triton_autodiff import __main__ as command
from triton_autodiff.errors import AutodiffError
from triton_autodiff.faults import table
from triton_autodiff.inspecting import doctor, example
from triton_autodiff.support import leftovers, waiting

pytestmark = pytest.mark.every_triton

# Of modules that Triton compiles for a driver.
EXT_SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
EXAMPLE = """
import torch, triton, triton.language as tl
from triton_autodiff import autodiff

@triton.jit
def cube(x_ptr, y_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(y_ptr + tl.arange(0, BLOCK), x * x * x)

def stub(kernel, x):
    y = torch.empty_like(x)
    kernel[(1,)](x, y, BLOCK=16)
    return y

def wrong(kernel, x):
    y = stub(kernel, x)
    return y + (y.detach() - y) / 4

def inputs():
    device = triton.runtime.driver.active.get_active_torch_device()
    return (torch.rand(16, device=device).add_(1).requires_grad_(),)

def example():
    return autodiff(cube, stub), inputs()

def example_of_a_mistake():
    return autodiff(cube, wrong), inputs()

def three():
    return 3
"""


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    """A cache directory of one's own."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def run(*arguments, name="triton_autodiff", **variables):
    """Run a command; returns its status and what it printed."""
    return subprocess.run(
        [sys.executable, "-m", name, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )


@pytest.mark.parametrize("name", ["triton_autodiff", "triton.backends.autodiff"])
def test_explain(home, name):
    (home / "copy.ttir").write_text(COPY)
    done = run("explain", home / "copy.ttir", name=name)
    assert done.returncode == 0, done.stderr
    assert "kernel copy: gradients of x; writes y" in done.stdout
    assert "gradient of x: plain stores" in done.stdout and not done.stderr


def test_explain_prints_the_backward(home, capsys):
    (home / "copy.ttir").write_text(COPY)
    assert command.main(["explain", str(home / "copy.ttir"), "--target", "cpu", "--ir"]) == 0
    assert "tt.func public @copy_bwd" in capsys.readouterr().out


def test_explain_names_arguments_as_the_source_does(home, capsys):
    text = COPY.replace("%x:", "%arg0:").replace("%x :", "%arg0 :")
    text = text.replace("!tt.ptr<f32>,", '!tt.ptr<f32> loc("input_ptr"(#loc)),', 1)
    (home / "copy.ttir").write_text("#loc = loc(unknown)\n" + text)
    assert command.main(["explain", str(home / "copy.ttir")]) == 0
    assert "gradients of input_ptr; writes y" in capsys.readouterr().out


def test_explain_of_what_cannot_be(home, capsys):
    (home / "new.ttir").write_text(COPY.replace("tt.load", "tt.not_yet_invented"))
    assert command.main(["explain", str(home / "new.ttir")]) == 2
    assert re.match("error: .*tt.not_yet_invented", capsys.readouterr().err)
    assert command.main(["explain", str(home / "none.ttir")]) == 2
    assert "none.ttir" in capsys.readouterr().err


@pytest.mark.parametrize(
    "function, status, text",
    [
        ("", 0, "gradients of stub are right"),
        (":example_of_a_mistake", 1, "gradients of wrong are wrong in"),
        (":three", 2, "should return an operation and its inputs, got 3"),
        (":nothing", 2, "has no function 'nothing'"),
    ],
)
def test_check(home, function, status, text):
    (home / "cubes.py").write_text(EXAMPLE)
    done = run("check", f"{home / 'cubes.py'}{function}", "--elements", 4)
    assert done.returncode == status, done.stderr
    assert text in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_doctor_of_a_good_installation():
    done = run("doctor")
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("wrong")] == []
    assert done.returncode == 0 and lines[-1] == "nothing is wrong"
    for found in ("Python 3", "PyTorch 2", "Triton 3", "native library", "cache directory"):
        assert any(line.startswith("ok") and found in line for line in lines), found
    assert re.search("gradient on .*: right", done.stdout)


class Loading:
    """A driver that has Triton compile a module of its own into the cache, as those of GPUs do."""

    def get_current_target(self):
        get_cache_manager("0" * 64).put("", f"cuda_utils{EXT_SUFFIX}", binary=False)
        return GPUTarget("cuda", 90, 32)


def test_doctor_names_what_is_wrong(home, monkeypatch):
    """Each kind of trouble is one finding, with a way out, and does not hide the others."""
    (home / "file").touch()
    monkeypatch.setenv("TRITON_CACHE_DIR", str(home / "file" / "cache"))
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    monkeypatch.setattr(driver, "_active", Loading())
    monkeypatch.setattr(doctor, "TRITON", ((2, 0), (2, 9)))
    monkeypatch.setattr(doctor, "__version__", "0.0.1")
    monkeypatch.setattr(example, "gradient_is_right", lambda: ("cpu", False))
    monkeypatch.setitem(
        doctor.entry_point.faults, "triton_autodiff.driver", ImportError("no such class")
    )
    findings = list(doctor.examine())
    wrong = [str(finding) for finding in findings if finding.mark == "wrong"]
    assert len(wrong) == 6 and all("-> " in text for text in wrong), wrong
    for text in ("2.0 to 2.9 is", "file/cache", "two versions", "no such class", "cpu: wrong"):
        assert sum(text in found for found in wrong) == 1, text
    assert "kernels are compiled for cuda 90" in [finding.text for finding in findings]
    notes = [finding.text for finding in findings if finding.mark == "note"]
    assert any("TRITON_ALWAYS_COMPILE=1" in note for note in notes)


def test_doctor_lists_faults_of_others(monkeypatch):
    """Those of what is installed; where there is a GPU, only those that are about it."""
    there = table.numbers(triton.__version__) < (3, 8)
    for capability, of_hopper in ((None, True), (90, True), (80, False)):
        found = set() if capability is None else {capability}
        monkeypatch.setattr(doctor, "_capabilities", lambda found=found: found)
        findings = list(doctor._faults())
        assert {finding.mark for finding in findings} == {"note"}
        texts = [finding.text for finding in findings]
        assert len(texts) == len(set(texts)) and not any("\n" in text for text in texts)
        of_triton = f"fault reduced-lanes of Triton {triton.__version__}: A reduction combines"
        assert sum(text.startswith(of_triton) for text in texts) == there
        assert any("fault omitted-products of ptxas 1" in text for text in texts) == of_hopper
        assert any("fault lost-sums of ptxas 1" in text for text in texts) == (of_hopper and there)


def test_a_folder_in_which_nothing_can_be_written():
    """Not even by root, who may write wherever anybody may."""
    with pytest.raises(OSError):
        doctor._require_writable(Path("/proc"))


def test_doctor_where_triton_is_broken(home):
    """What needs Triton cannot be had, and the doctor says why."""
    (home / "triton").mkdir()
    (home / "triton" / "__init__.py").write_text("raise OSError('libtriton is damaged')")
    rest = os.environ.get("PYTHONPATH", "")
    done = run("doctor", PYTHONPATH=os.pathsep.join(filter(None, [str(home), rest])))
    assert done.returncode == 1
    assert "Triton cannot be imported: OSError: libtriton is damaged" in done.stdout
    assert "ok    Python" in done.stdout and "Traceback" not in done.stderr


def test_clear_leaves_what_others_wrote(home):
    """Ours goes, whatever it is; files of Triton's and of nobody stay."""
    (home / "cubes.py").write_text(EXAMPLE)
    assert run("check", home / "cubes.py", "--elements", 1).returncode == 0
    cache = home / "cache"
    theirs = {
        "A/kernel.ttir": COPY,
        "A/kernel.json": "{}",
        "A/kernel.cubin": "…",
        "B/notes.txt": "",
        "kernel.obj": "",
        "C/kernel.obj": "",
        "C/plan.json": "{}",
        f"D/cuda_utils{EXT_SUFFIX}": "",
    }
    for name, text in theirs.items():
        (cache / name).parent.mkdir(exist_ok=True)
        (cache / name).write_text(text)
    (cache / "B" / "k.tuning.json").write_text("[]")
    before = {file for file in cache.rglob("*") if file.is_file()}
    shown = run("cache", "show")
    assert re.search(r"\d plans", shown.stdout) and re.search(r"\d generated kernels", shown.stdout)
    assert "1 measurements" in shown.stdout
    assert before == {file for file in cache.rglob("*") if file.is_file()}
    assert run("cache", "clear").returncode == 0
    left = {file for file in cache.rglob("*") if file.is_file()}
    assert left >= {cache / name for name in theirs}
    # What Triton compiled for a GPU is Triton's: kernels, and what loads and launches them.
    folders = {file.parent for file in left if str(file.relative_to(cache)) not in theirs}
    for folder in folders:
        assert any((*folder.glob("__grp__*"), *folder.glob(f"*{EXT_SUFFIX}"))), folder
    assert not any(file.name.endswith((".plan.json", ".tuning.json")) for file in left)
    assert run("check", home / "cubes.py", "--elements", 1).returncode == 0
    assert leftovers.find(home / "nowhere") == []


def test_clear_where_another_process_deletes_the_same(tmp_path):
    """What is gone already is no error, and all else goes as well."""
    names = "k.plan.json", "k.tuning.json"
    (tmp_path / "A").mkdir()
    for name in (*names, "kernel.json"):
        (tmp_path / "A" / name).write_text("{}")
    found = leftovers.find(tmp_path)
    assert sorted(leftover.path.name for leftover in found) == [*names]
    found[0].path.unlink()
    leftovers.remove(found)
    assert [path.name for path in tmp_path.rglob("*")] == ["A", "kernel.json"]
    shutil.rmtree(tmp_path / "A")
    leftovers.remove(found)


def test_log(home):
    """With the variable, what is derived and compiled is on stderr, with seconds."""
    (home / "cubes.py").write_text(EXAMPLE)
    example = ("check", home / "cubes.py", "--elements", 1)
    logged = run(*example, TRITON_AUTODIFF_LOG="info").stderr
    for text in (
        "differentiating kernel 'cube'",
        "compiling kernel 'cube_bwd'",
        "checking the gradient of input 0 (x)",
    ):
        assert re.search(rf"^triton_autodiff: {re.escape(text)}: \d+\.\d\d s$", logged, re.M), text
    again = run(*example, TRITON_AUTODIFF_LOG="info").stderr
    assert "compiling kernel 'cube_bwd'" in again and "differentiating" not in again
    assert run(*example).stderr == ""
    done = run(*example, TRITON_AUTODIFF_LOG="loud")
    assert done.returncode == 2 and "debug, info, notice, off" in done.stderr


def test_log_goes_where_the_program_sends_it(home):
    code = """
import logging, sys
logging.basicConfig(format="mine: %(message)s", level=logging.INFO, stream=sys.stdout)
from triton_autodiff.inspecting.example import gradient_is_right
gradient_is_right()
"""
    command = [sys.executable, "-c", code]
    for variables in ({}, {"TRITON_AUTODIFF_LOG": "info", "TRITON_ALWAYS_COMPILE": "1"}):
        environment = {**os.environ, **variables}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert "mine: differentiating kernel 'scaled_exponential'" in done.stdout, done.stderr
        assert "scaled_exponential" not in done.stderr


def test_what_takes_long_is_announced(monkeypatch, caplog):
    """While it goes on, and once more; work within it is not, and what is quick never."""
    monkeypatch.setattr(waiting, "_PATIENCE", 0.05)
    monkeypatch.setattr(waiting, "_AGAIN", 0.05)
    with caplog.at_level(waiting.NOTICE, "triton_autodiff"):
        with waiting.work("quick work"):
            pass
        with waiting.work("slow work"), waiting.work("part of it"):
            deadline = time.monotonic() + 30
            while len(caplog.messages) < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
        announced = list(caplog.messages)
        with pytest.raises(ZeroDivisionError), waiting.work("work that fails"):
            time.sleep(0.2)
            raise ZeroDivisionError
    assert announced[:2] == ["still slow work (0 s)"] * 2
    assert re.fullmatch(r"slow work: \d+\.\d\d s", announced[-1])
    assert not any("quick" in m or "part" in m for m in caplog.messages)
    assert caplog.messages[-1].startswith("work that fails: ")


@pytest.mark.parametrize("ends", [None, AutodiffError, SystemExit, KeyboardInterrupt])
def test_no_thread_outlives_the_work(ends, caplog):
    """However it ends: a thread that the interpreter cuts off may abort the process."""
    before = threading.active_count()
    during = []
    with caplog.at_level(waiting.NOTICE, "triton_autodiff"):
        for _ in range(50):
            with contextlib.suppress(*([ends] if ends else [])), waiting.work("some work"):
                during.append(threading.active_count())
                if ends:
                    raise ends
            assert threading.active_count() == before
    assert set(during) == {before + 1}


def test_work_without_more_threads(monkeypatch, caplog):
    """It is done, without being announced, as it is while the interpreter ends."""

    def start(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with caplog.at_level(logging.INFO, "triton_autodiff"), waiting.work("some work"):
        pass
    assert caplog.messages[-1].startswith("some work: ")


def test_commands_compute_gradients_in_their_thread(home, monkeypatch, capsys):
    """An error in a thread of autograd's could abort the process that ends with it."""
    seen = []

    def examine():
        seen.append(torch._C._is_multithreading_enabled())
        return []

    monkeypatch.setattr(doctor, "examine", examine)
    assert torch._C._is_multithreading_enabled()
    assert command.main(["doctor"]) == 0 and seen == [False]
    assert torch._C._is_multithreading_enabled()
    monkeypatch.setenv("TRITON_AUTODIFF_LOG", "loud")
    waiting.start.cache_clear()
    assert command.main(["doctor"]) == 2 and len(seen) == 1
    assert "debug, info, notice, off" in capsys.readouterr().err


def test_log_variable_is_checked(monkeypatch):
    monkeypatch.setenv("TRITON_AUTODIFF_LOG", "loud")
    with pytest.raises(AutodiffError, match="TRITON_AUTODIFF_LOG=loud"):
        waiting.start.__wrapped__()


def test_missing_folder_and_other_text(tmp_path, capsys):
    """What is wrong is said of what was given."""
    assert command.main(["corpus", str(tmp_path / "nothing")]) == 2
    assert "nothing does not exist" in capsys.readouterr().err
    (tmp_path / "kernel.ttir").write_text("import torch")
    assert command.main(["explain", str(tmp_path / "kernel.ttir")]) == 2
    told = capsys.readouterr().err
    assert "kernel.ttir:1:1" in told and "cache" not in told


def test_corpus_as_json(home):
    (home / "copy.ttir").write_text(COPY)
    done = run("corpus", home, "--steps", "parsed", "--json")
    (row,) = json.loads(done.stdout)
    assert done.returncode == 0 and row["file"] == "copy.ttir" and row["parsed"]["ok"]
    assert Path(home / "copy.ttir").exists() and "copy.ttir" in done.stderr
