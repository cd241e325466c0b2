"""Devices, random seeds and uninitialised memory for every test below this directory."""

import collections
import gc
import itertools
import os
import random
import sys
from functools import partial
from pathlib import Path

import pytest
import torch

# What deterministic mode (see poisoned_memory) asks of cuBLAS; read when CUDA starts.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

ROOT = Path(__file__).resolve().parents[2]
# The kernels are shared with the benchmarks and the examples, so they are no package of the tests.
sys.path[:0] = [str(ROOT / part) for part in ("python/test", "python/examples", "benchmarks")]

import doubt  # noqa: E402
import launched  # noqa: E402
import levels  # noqa: E402
import looking  # noqa: E402
import replay  # noqa: E402
import settings  # noqa: E402

# PyTorch frees a CUDA graph that another one's capture finds unused, which breaks the capture. So
# garbage is collected before each.
if hasattr(torch.compiler.config, "force_cudagraph_gc"):
    torch.compiler.config.force_cudagraph_gc = True

OBSERVER = looking.Observer()
REPLAYER = replay.Replayer()
NOTES, OTHERS, BEFORE = pytest.StashKey(), pytest.StashKey(), pytest.StashKey()
COMMIT = levels.commit()
# Where there is a GPU, of so many cases of the CPU device one runs: all do where there is none.
CPU_CASES = 8
# A case of a device that is not there would only be skipped.
DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
_CASES = itertools.count()


def pytest_addoption(parser):
    parser.addoption("--seed", type=int, default=None, help="repeat a run with its printed seed")
    parser.addoption(
        "--forward-only",
        action="store_true",
        help="launch the plain kernels and compare their outputs only; works with plain Triton "
        "and under TRITON_INTERPRET=1, which checks the kernels and the references themselves",
    )
    parser.addoption(
        "--device",
        choices=["cpu", "cuda", "all", "chosen"],
        default="chosen",
        help="the devices to test on: where there is a GPU, by default all cases of the GPU, and "
        "of those of the CPU one in eight, at each commit other ones if git tells it; a test that "
        "is named runs. A machine without a GPU has no choice",
    )

    parser.addoption(
        "--note-launches", type=Path, help="note in this folder what each test launches"
    )

    parser.addoption(
        "--differing-from",
        type=Path,
        help="a folder of notes from a run with another Triton: of the tests that are not marked "
        "`every_triton`, run those whose kernels are others here (see launched.py)",
    )

    parser.addoption(
        "--replay",
        type=int,
        default=0,
        help="of so many tests, carry out the launches of one once more, as exported modules, too "
        "(see replay.py); 1: of each test",
    )

    parser.addoption(
        "--slow", action="store_true", help="run the tests that need minutes or a lot of memory"
    )

    parser.addoption(
        "--schedules",
        choices=["chosen", "all"],
        default="chosen",
        help="run the tests marked `schedules` under the schedules that the compiler chooses, or "
        "under every one that can be forced on it (see forced.py)",
    )


def pytest_generate_tests(metafunc):
    if metafunc.config.getoption("--schedules") == "all":
        if metafunc.definition.get_closest_marker("schedules"):
            from forced import OPTIONS

            metafunc.parametrize("schedule", OPTIONS, indirect=True)


def pytest_runtest_logreport(report):
    """Name a failure as soon as there is one: a run that is cut off says nothing at its end."""
    if report.failed:
        reason = str(getattr(report.longrepr, "reprcrash", report.longrepr)).strip()
        print(f"\nFAILED {report.nodeid} ({report.when}): {reason[-300:]}", flush=True)


def pytest_terminal_summary(terminalreporter):
    """Say which files take longest: `make pytest` shows the slowest tests, too."""
    seconds = collections.Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0]] += report.duration
    terminalreporter.section("files that take more than a minute")
    for file, duration in seconds.most_common():
        if duration > 60:
            terminalreporter.write_line(f"{duration:7.0f}s {file}")
    terminalreporter.write_line(f"{sum(seconds.values()):7.0f}s all")


def _looks(item) -> bool:
    """Whether launches of a test may be looked at: it has not replaced parts of the package."""
    return not {"monkeypatch", "guarded"} & {*item._fixtureinfo.argnames}


@pytest.fixture(scope="session", autouse=True)
def looked(tmp_path_factory):
    """The processes of a run share what they have looked at."""
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    OBSERVER.share(folder / "looked")
    REPLAYER.share(folder / "replayed")


@pytest.fixture
def unobserved():
    """Nothing but the test itself keeps what it launches."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Leave out what a run with another Triton has shown, and choose LLVM's level for a test."""
    if not item.config.getoption("--forward-only"):
        # For what fixtures compile, too.
        levels.use(levels.of(item.path.name, item.nodeid, COMMIT))
    others = item.config.stash.get(OTHERS, None)
    if others is None or item.get_closest_marker("every_triton") or not others.ran(item.nodeid):
        return
    if not others.differs(item.nodeid):
        pytest.skip(f"the same with Triton {others.version}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Remember which settings there are before a test."""
    item.stash[BEFORE] = settings.settings()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    """Fail a test that leaves settings changed for those behind it."""
    result = yield
    found = settings.changed(item.stash[BEFORE])
    assert not found, f"left behind: {found}"
    return result


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run a test under its schedule, and look at what it has launched in every way there is."""
    if not pyfuncitem.config.getoption("--forward-only"):
        OBSERVER.install()
        doubt.install()
    OBSERVER.clear()
    OBSERVER.notes = "unobserved" not in pyfuncitem._fixtureinfo.argnames
    if OBSERVER.notes and _is_replayed(pyfuncitem):
        REPLAYER.install()
        REPLAYER.begin()
    try:
        result = yield from _under_schedule(pyfuncitem)
        if (notes := pyfuncitem.config.stash.get(NOTES, None)) is not None:
            notes.note(pyfuncitem.nodeid, OBSERVER.states())
        if _looks(pyfuncitem):
            OBSERVER.look()
        found = REPLAYER.replay()
        assert not found, f"an exported module differs: {found}"
        return result
    finally:
        OBSERVER.clear()
        REPLAYER.end()


def _is_replayed(item) -> bool:
    """Whether a test's launches are carried out once more: nothing it needs has replaced parts."""
    each = item.config.getoption("--replay")
    is_chosen = each > 0 and looking.is_chosen(each, item.nodeid)
    return is_chosen and "monkeypatch" not in item.fixturenames


def _under_schedule(pyfuncitem):
    name = pyfuncitem.funcargs.get("schedule")
    if name is None:
        return (yield)
    import forced

    with forced.schedule(name) as found:
        result = yield
    if not found.applies:
        pytest.skip(f"{name}: not for this kernel")
    return result


@pytest.fixture
def needs_gradients():
    """Skips what a forward pass alone does not show."""
    import gradients

    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")


@pytest.fixture
def own_rules(monkeypatch):
    """Rules of one test are not seen by the others."""
    from triton.backends.autodiff.rules import user_rules

    monkeypatch.setattr(user_rules, "_rules", {})
    yield
    user_rules._change()


@pytest.fixture
def differentiable():
    """`differentiable`, imported when Triton's driver has been chosen."""
    from triton.backends.autodiff import differentiable

    return differentiable


@pytest.fixture(autouse=True)
def schedule(request):
    """The schedule that is forced on the test's kernels; None where the compiler chooses."""
    return getattr(request, "param", None)


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--slow"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="--slow"))


def pytest_collection_finish(session):
    """What there is by now stays until the end, and takes a tenth of the time to look through."""
    gc.collect()
    gc.freeze()


def pytest_configure(config):
    import gradients

    config.addinivalue_line("markers", "slow: needs minutes or a lot of memory; see --slow")
    config.addinivalue_line(
        "markers", "every_triton: looks at what differs between Tritons; see --differing-from"
    )
    config.addinivalue_line("markers", "cpu: runs on the CPU device alone, in other processes")
    config.addinivalue_line("markers", "schedules: holds under every schedule; see --schedules")

    gradients.FORWARD_ONLY = config.getoption("--forward-only")
    if config.getoption("--note-launches"):
        config.stash[NOTES] = launched.Notes()
    if folder := config.getoption("--differing-from"):
        config.stash[OTHERS] = launched.Others(folder)


def pytest_unconfigure(config):
    if (notes := config.stash.get(NOTES, None)) is not None:
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        notes.write(config.getoption("--note-launches"), worker)


def _skip_unavailable(device, request):
    chosen = request.config.getoption("--device")
    if chosen not in (device, "all", "chosen"):
        pytest.skip(f"--device={chosen}")
    is_named = any("::" in argument for argument in request.config.args)
    if chosen == "chosen" and device == "cpu" and torch.cuda.is_available() and not is_named:
        if not looking.is_chosen(CPU_CASES, (COMMIT, request.node.nodeid)):
            pytest.skip("of the CPU's cases, others run at this commit")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")


@pytest.fixture(autouse=True)
def of_the_cpu(request):
    """Leave out what the CPU device alone does as its cases are."""
    if request.node.get_closest_marker("cpu"):
        _skip_unavailable("cpu", request)


@pytest.fixture(params=DEVICES)
def device(request):
    """The device to test on. Where there is a GPU the CPU backend is chosen explicitly."""
    _skip_unavailable(request.param, request)
    if request.param == "cuda" or not torch.cuda.is_available():
        yield request.param
        return
    from triton.backends import backends
    from triton.runtime.driver import driver

    if "autodiff" not in backends:
        pytest.skip("the CPU backend is not installed")
    driver.set_active(backends["autodiff"].driver())
    yield request.param
    driver.reset_active()


@pytest.fixture
def operator_name():
    """Makes an operator's name of a short one: PyTorch forgets none, so each case has its own."""
    number = next(_CASES)
    return lambda name: f"autodiff_test::{name}_{number}"


@pytest.fixture
def cuda(request):
    """The GPU, for tests whose sizes only make sense there."""
    _skip_unavailable("cuda", request)
    return "cuda"


@pytest.fixture
def recorded(cuda):
    """Records what a function launches, run once before; returns the graph and the results."""

    def record(step):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = step()
        return graph, results

    return record


@pytest.fixture
def descriptor_memory():
    """Memory for the descriptors that kernels make on a GPU."""
    from kernels.descriptors import give_memory

    give_memory()


@pytest.fixture(autouse=True)
def seed(request):
    """Fresh random inputs in every run; pytest shows the seed of a test that fails."""
    value = request.config.getoption("--seed")
    if value is None:
        value = int.from_bytes(os.urandom(4), "little")
    print(f"--seed={value}")
    random.seed(value)
    torch.manual_seed(value)
    return value


@pytest.fixture(autouse=True)
def poisoned_memory():
    """Uninitialised tensors hold NaN, so that what nobody wrote can't pass for a zero.

    So does what is around random leaves, where nobody may write.
    """
    import gradients
    from poison import poisoned_memory
    from watched import Watch

    gradients.WATCH = Watch()
    with poisoned_memory():
        yield
    touched = gradients.WATCH.touched()
    assert not touched, f"memory beside a tensor was written: {'; '.join(touched)}"


@pytest.fixture(autouse=True)
def exact_float32():
    """float32 products are float32 products, on both sides of every comparison."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)


@pytest.fixture(name="random")
def random_leaves(device, request):
    """Makes random leaves on the test's device, in the test's `dtype` if it has one."""
    from gradients import random_tensor

    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    default = parameters.get("dtype", torch.float32)

    def make(*shape, dtype=None, **options):
        return random_tensor(*shape, device=device, dtype=dtype or default, **options)

    return make


@pytest.fixture
def ran(monkeypatch, schedule):
    """What the last backward of the test ran; None if there is none, or no choice."""
    import gradients

    if gradients.FORWARD_ONLY or schedule is not None:
        return None
    from schedules import Ran
    from triton.backends.autodiff.programs.backward import Backward

    noted, run = Ran(), Backward.run

    def note(backward, *args):
        noted.note(backward)
        return run(backward, *args)

    monkeypatch.setattr(Backward, "run", note)
    return noted


_fresh = itertools.count()


@pytest.fixture
def fresh(monkeypatch):
    """Kernels forget, for the time of the test, what was bound to launches before."""
    from triton.backends.autodiff.launching import known, state

    monkeypatch.setattr(state, "_ATTRIBUTE", f"_states_of_test_{next(_fresh)}")
    monkeypatch.setattr(known.Known, "find", lambda *_: None)


@pytest.fixture
def guarded(monkeypatch, fresh):
    """Puts bands around every buffer that a backward makes; the test's end looks at them."""
    from triton.backends.autodiff.programs import host_steps
    from triton.backends.autodiff.storage import memory

    allocate, bands = memory.allocate, []

    def with_bands(shape, strides, span, dtype, device, zero):
        plain = allocate(shape, strides, span, dtype, device, zero)
        held = plain.untyped_storage().nbytes()
        arena = torch.full((held + 512,), 0x5A, dtype=torch.uint8, device=device)
        arena[256 : 256 + held] = 0 if zero else 0xFF
        bands.append((arena, held))
        typed = arena[256 : 256 + held].view(dtype)
        return typed.as_strided(shape, strides, typed.storage_offset() + plain.storage_offset())

    monkeypatch.setattr(host_steps, "allocating", lambda *given: partial(with_bands, *given))
    monkeypatch.setattr(memory, "allocate", with_bands)
    yield
    assert bands
    for arena, held in bands:
        assert (arena[:256] == 0x5A).all() and (arena[256 + held :] == 0x5A).all()
