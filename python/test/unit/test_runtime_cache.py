"""Plans in memory and on disk."""

import json
import types
from pathlib import Path

import pytest
from test_plan import PLAN
from triton.backends.autodiff.errors import AutodiffError, PlanError
from triton.backends.autodiff.plans import cache
from triton.backends.autodiff.plans.target import described
from triton.backends.compiler import GPUTarget

REQUEST = {"wanted": [0], "cotangents": None, "atomic": [], "save": True, "reload": True}


@pytest.fixture
def native(monkeypatch, tmp_path):
    """A compiler that counts its runs and always finds the same plan."""
    compiler = types.SimpleNamespace(runs=0, answer=json.dumps(PLAN), version="1")

    def differentiate(ir, request, file_name):
        compiler.runs += 1
        if isinstance(compiler.answer, Exception):
            raise compiler.answer
        return compiler.answer

    fake = types.SimpleNamespace(differentiate=differentiate, version=lambda: compiler.version)
    monkeypatch.setattr(cache, "native", lambda: fake)
    monkeypatch.setattr(cache, "_plans", {})
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_DUMP_DIR", str(tmp_path / "dump"))
    for name in ("TRITON_ALWAYS_COMPILE", "MLIR_ENABLE_DUMP", "TRITON_KERNEL_DUMP"):
        monkeypatch.delenv(name, raising=False)
    compiler.directory = tmp_path
    return compiler


def fresh(ttir="module {}", request=REQUEST):
    """Ask as another process would."""
    cache._plans.clear()
    return cache.plan_for(ttir, request, "k")


def files(directory, name):
    return list(Path(directory).rglob(name))


def test_memory_then_disk(native):
    plan = fresh()
    assert cache.plan_for("module {}", REQUEST, "k") is plan
    assert fresh() == plan
    assert native.runs == 1


def test_key_holds_everything_that_matters(native):
    fresh()
    fresh(ttir="module { }")
    fresh(request={**REQUEST, "atomic": [0]})
    native.version = "2"
    fresh()
    assert native.runs == 4


DEVICES = [
    GPUTarget("cuda", 89, 32),
    GPUTarget("cuda", 90, 32),
    GPUTarget("hip", "gfx942", 64),
    GPUTarget("cpu", "x86_64", 1),
]


def test_devices_have_entries_of_their_own(native):
    for device in DEVICES:
        fresh(request={**REQUEST, **described(device)})
        fresh(request={**REQUEST, **described(device)})
    assert native.runs == len(DEVICES)
    assert len(files(native.directory, "k.plan.json")) == len(DEVICES)


def test_forms_are_accepted_for_a_device(native):
    """What Triton compiles in place of a kernel that it rejects for one device is for that one."""
    one, *others = DEVICES
    cache.note_accepted("module {}", one, "module { }")
    assert cache.accepted_form("module {}", one) == "module { }"
    assert all(cache.accepted_form("module {}", other) is None for other in others)


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff\xfe", b'{"version": 1', b'{"version": 0}'])
def test_damaged_entry_is_replaced(native, damage):
    fresh()
    (entry,) = files(native.directory, "k.plan.json")
    entry.write_bytes(damage)
    fresh()
    assert native.runs == 2
    assert json.loads(entry.read_text()) == PLAN


@pytest.mark.parametrize(
    "variable, value, runs",
    [
        ("TRITON_ALWAYS_COMPILE", "1", 2),
        ("MLIR_ENABLE_DUMP", "1", 2),
        ("MLIR_ENABLE_DUMP", "k", 2),
        ("MLIR_ENABLE_DUMP", "0", 1),
    ],
)
def test_environment(native, monkeypatch, variable, value, runs):
    fresh()
    monkeypatch.setenv(variable, value)
    fresh()
    assert native.runs == runs


def test_kernel_dump(native, monkeypatch):
    monkeypatch.setenv("TRITON_KERNEL_DUMP", "1")
    fresh()
    (plan,) = files(native.directory / "dump", "k.plan.json")
    (ttir,) = files(native.directory / "dump", "k_bwd.ttir")
    assert json.loads(plan.read_text()) == PLAN and ttir.read_text() == "module {}"


def test_errors_name_the_kernel(native):
    native.answer = AutodiffError('kernel.py:3:5: "tt.print" has no rule')
    with pytest.raises(AutodiffError, match=r"'k': kernel.py:3:5.*no rule"):
        fresh()
    native.answer = '{"version": 9}'
    with pytest.raises(PlanError):
        fresh()
    assert not files(native.directory, "*.json")
