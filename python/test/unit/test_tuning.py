"""Launch options of the backward: the user's, and those that measure best."""

import json

import pytest
import torch
import triton
from gradients import assert_gradients_close
from kernels import gather, matmul, normalization
from triton.backends.autodiff import autodiff, differentiable
from triton.backends.autodiff.compiling import tuning
from triton.backends.autodiff.compiling.executable import Executable
from triton.backends.autodiff.errors import ArgumentError, DoesNotFit
from triton.backends.compiler import GPUTarget
from triton.runtime.errors import OutOfResources

HOST = GPUTarget("cpu", "x86_64", 1)


def leaves(device, *shapes):
    return [torch.randn(*shape, device=device).requires_grad_() for shape in shapes]


def product(device, **options):
    """Return an operation with two backward kernels, and its inputs."""
    op = autodiff(matmul.matmul_kernel, matmul.matmul, **options)
    return op, leaves(device, (40, 50), (50, 60))


def assert_right(op, a, b):
    assert_gradients_close(op, torch.matmul, (a, b))


def execution_of(op):
    return op.kernel._launches[-1][1]


# The user's choice.


def test_backward_options(device):
    op, (a, b) = product(device, backward={"num_warps": 8, "num_stages": 2})
    assert_right(op, a, b)
    assert len(ran(op)) > 1
    for kernel in ran(op):
        assert (kernel.compiled.metadata.num_warps, kernel.compiled.metadata.num_stages) == (8, 2)
    assert execution_of(op).state.spec.kernel.metadata.num_warps == 4
    assert "(num_stages=2, num_warps=8)" in op.explain()


def test_forward_that_saves_keeps_its_options(device):
    op = autodiff(
        normalization.layer_norm_kernel, normalization.layer_norm, backward={"num_warps": 2}
    )
    op(*leaves(device, (5, 60), (60,), (60,))).sum().backward()
    executable_plan = execution_of(op).backward.executable_plan
    assert executable_plan.forward.compiled.metadata.num_warps == 4
    assert {kernel.compiled.metadata.num_warps for kernel in ran(op)} == {2}


@pytest.mark.parametrize(
    "given, error, message",
    [
        (8, TypeError, "backward should be a dictionary"),
        ({"warps": 8}, ArgumentError, "'warps' is none of the options num_warps"),
        ({"num_warps": "8"}, TypeError, "num_warps should be an integer"),
        ({"num_warps": True}, TypeError, "num_warps should be an integer"),
        ({"num_warps": 6}, ArgumentError, "num_warps should be a power of two, got 6"),
        ({"widen": 3}, ArgumentError, "widen should be a power of two, got 3"),
        ({"num_stages": 0}, ArgumentError, "num_stages should be positive, got 0"),
        (
            {"schedules": "merge"},
            ArgumentError,
            "some of batch, unravel, merge, interchange, persist, got 'merge'",
        ),
        ({"schedules": ["fast"]}, ArgumentError, r"schedules should be .*got \['fast'\]"),
        ({"schedules": 3}, ArgumentError, "schedules should be .*got 3"),
    ],
)
def test_bad_options(given, error, message):
    with pytest.raises(error, match=message):
        autodiff(matmul.matmul_kernel, matmul.matmul, backward=given)


def test_bad_autotune():
    with pytest.raises(TypeError, match="autotune should be True or False"):
        autodiff(matmul.matmul_kernel, matmul.matmul, autotune="yes")


def test_widen_is_a_request(device):
    inputs = leaves(device, (256, 128), (128, 256))
    for widen in (1, 2):
        op, _ = product(device, backward={"widen": widen})
        assert_right(op, *inputs)
        plan = execution_of(op).backward.plan
        assert len(plan.backward) == 2
        assert all(bool(kernel.variants) == (widen > 1) for kernel in plan.backward)


def test_options_that_are_not_given_again_stay():
    first = differentiable(matmul.matmul_kernel, tape_limit=9, backward={"num_warps": 8})
    second = differentiable(first, deterministic=True)
    options = second._resolver.options
    assert (options.tape_limit, options.deterministic) == (9, True)
    assert options.backward == (("num_warps", 8),) and options.autotune is None


@pytest.mark.parametrize(
    "schedules, sums, kernels",
    [
        ([], {"atomic"}, 1),
        (["persist", "merge"], {"partial"}, 1),
        (["interchange"], {"store"}, 2),
        (None, {"store"}, 2),
    ],
)
def test_schedules_of_a_product(device, schedules, sums, kernels):
    backward = None if schedules is None else {"schedules": schedules}
    op, (a, b) = product(device, backward=backward)
    assert_right(op, a, b)
    assert {g.accumulate for g in execution_of(op).backward.plan.gradients} == sums
    assert len(ran(op)) == kernels


@pytest.mark.parametrize("schedules, sums", [([], "atomic"), (["persist"], "partial")])
def test_schedules_of_a_norm(device, schedules, sums):
    op = autodiff(
        normalization.layer_norm_kernel,
        normalization.layer_norm,
        backward={"schedules": schedules},
    )
    op(*leaves(device, (5, 60), (60,), (60,))).sum().backward()
    plan = execution_of(op).backward.plan
    assert [g.accumulate for g in plan.gradients] == ["store", sums, sums]


def test_variant_that_does_not_fit(device, monkeypatch):
    """Tiles that are wider than the forward's need not fit: the next variant takes the place."""
    # With more processors, wider tiles leave some of them without work.
    monkeypatch.setattr("triton.backends.autodiff.checking.facts.processors", lambda device: 2)
    op, _ = product(device, **anew())
    inputs = leaves(device, (256, 128), (128, 256))
    wide = []
    real = Executable._compile

    def compile_(self):
        if "wide" in self.kernel.name:
            wide.append(self.kernel.name)
            self.fits = False
            raise DoesNotFit("too wide")
        return real(self)

    monkeypatch.setattr(Executable, "_compile", compile_)
    assert_right(op, *inputs)
    count = len(wide)
    assert count or device == "cuda"
    assert not any("wide" in executable.kernel.name for executable in ran(op))
    assert_right(op, *inputs)
    assert len(wide) == count


# What measures best.


class Timer:
    """Launches as a benchmark does, and reports the time that a table holds for the options."""

    def __init__(self):
        self.measured = []

    def __call__(self, executable, grid, operands):
        executable.launch(grid, operands)
        executable.launch(grid, operands)
        options = executable.options
        name = executable.kernel.name
        self.measured.append((name, options["num_stages"], options["num_warps"]))
        return self.time(*self.measured[-1])

    def time(self, name, stages, warps):
        return 1.0 / warps + stages / 10


@pytest.fixture
def timer(monkeypatch, tmp_path):
    from triton import knobs

    found = Timer()
    monkeypatch.setattr(tuning, "measures", lambda device: True)
    monkeypatch.setattr(tuning, "benchmark", found)
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        yield found


# Kernels keep what was found for as long as they live, by their options.
_limits = iter(range(10**9, 2 * 10**9))


def anew():
    """Return an option that changes nothing but makes everything be found out again."""
    return {"tape_limit": next(_limits)}


def ran(op):
    """The kernels that the last backward ran."""
    return [executable for executable, *_ in execution_of(op).shown.launches]


def chosen(op):
    metadata = [executable.compiled.metadata for executable in ran(op)]
    return [(m.num_stages, m.num_warps) for m in metadata]


def test_takes_the_best_of_each_kernel(device, timer):
    op, (a, b) = product(device, autotune=True, **anew())

    def time(name, stages, warps):
        wanted = (2, 8) if "interchanged0" in name else (4, 4)
        return 1.0 if (stages, warps) == wanted else 2.0

    timer.time = time
    assert_right(op, a, b)
    names = [executable.kernel.name for executable in ran(op)]
    assert len(names) == 2 and chosen(op) == [
        (2, 8) if "interchanged0" in n else (4, 4) for n in names
    ]
    first = len(timer.measured)
    assert first == len(set(timer.measured))
    assert_right(op, a, b)
    assert_right(op, *leaves(device, (41, 49), (49, 59)))
    assert len(timer.measured) == first and chosen(op).count((2, 8)) == 1
    assert "(num_stages=2, num_warps=8)" in op.explain()


def test_reads_what_others_found(device, timer):
    op, (a, b) = product(device, autotune=True, **anew())
    assert_right(op, a, b)
    best, first = chosen(op), len(timer.measured)
    op, _ = product(device, autotune=True, **anew())
    assert_right(op, a, b)
    assert len(timer.measured) == first and chosen(op) == best == [(2, 8)] * 2


def test_damaged_file(device, timer, tmp_path):
    op, (a, b) = product(device, autotune=True, **anew())
    assert_right(op, a, b)
    (path,) = tmp_path.rglob("*.tuning.json")
    entries = json.loads(path.read_text())
    damaged = [
        [],
        [{**entries[0], "variant": "0"}, entries[1]],
        [{**entries[0], "choice": {"num_stages": 1, "num_warps": 0}}, entries[1]],
        7,
    ]
    for text in ("[{", *map(json.dumps, damaged)):
        path.write_text(text)
        timer.measured.clear()
        op, _ = product(device, autotune=True, **anew())
        assert_right(op, a, b)
        assert timer.measured


def test_atomic_gradients_are_not_added_to(device, timer):
    """Measuring adds to gradients in memory that is thrown away."""
    table, index = torch.randn(5, 16, device=device), torch.randint(5, (20,), device=device)
    table.requires_grad_()
    op = autodiff(gather.embedding_kernel, gather.embedding, autotune=True, **anew())
    (found,) = torch.autograd.grad(op(index, table).sum(), table)
    expected = torch.bincount(index, minlength=5).float()[:, None].expand(5, 16)
    assert timer.measured and torch.equal(found, expected)


def test_skips_what_does_not_compile(device, timer, monkeypatch):
    real = Executable._compile

    def compile_(self):
        if self.options["num_warps"] == 8:
            raise OutOfResources(2, 1, "shared memory")
        return real(self)

    monkeypatch.setattr(Executable, "_compile", compile_)
    op, (a, b) = product(device, autotune=True, **anew())
    assert_right(op, a, b)
    assert chosen(op) == [(2, 4)] * 2 and all(warps == 4 for _, _, warps in timer.measured)


def test_leaves_alone_what_the_user_chose(device, timer):
    op, (a, b) = product(device, autotune=True, backward={"num_warps": 2}, **anew())
    assert_right(op, a, b)
    assert {warps for _, _, warps in timer.measured} == {2} and chosen(op) == [(2, 2)] * 2


@pytest.fixture
def few_processors(monkeypatch):
    """A machine for which few programs are enough, so that tiles may be longer."""
    monkeypatch.setattr("triton.backends.autodiff.checking.facts.processors", lambda device: 1)


@pytest.mark.parametrize("best", [("", "_wide2"), ("_wide1", ""), ("_wide0", "_wide0")])
def test_best_variant_of_each_kernel(device, timer, few_processors, best):
    """Each kernel has the tiles that suit it, and only promising ones are tried with options."""
    wanted = {f"interchanged{n}{variant}": 2 ** -(n + 1) for n, variant in enumerate(best)}

    def time(name, stages, warps):
        gain = wanted.get(name.removeprefix("matmul_kernel_bwd_"), 1.0)
        return gain * (1.0 if (stages, warps) == (2, 8) else 2.0)

    timer.time = time
    inputs = leaves(device, (256, 128), (128, 256))
    for _ in range(2):
        op, _ = product(device, autotune=True, **anew())
        assert_right(op, *inputs)
        names = [executable.kernel.name for executable in ran(op)]
        assert {name.removeprefix("matmul_kernel_bwd_") for name in names} == {*wanted}
        assert chosen(op) == [(2, 8)] * 2
    tried = {name: 0 for name, *_ in timer.measured}
    for name, *_ in timer.measured:
        tried[name] += 1
    for kernel in ("interchanged0", "interchanged1"):
        counts = sorted(count for name, count in tried.items() if kernel in name)
        assert len(counts) > 3 and counts[-3:-2] == [1] and counts[-2] > 3


def test_gains_in_the_noise_are_none(device, timer):
    timer.time = lambda name, stages, warps: 1.0 if (stages, warps) == (3, 4) else 0.99
    op, (a, b) = product(device, autotune=True, **anew())
    assert_right(op, a, b)
    assert chosen(op) == [(3, 4)] * 2


def test_autotuned_forward(device, timer):
    """Who tunes the forward has the backward tuned, with the forward's options as candidates."""
    configs = [triton.Config({}, num_warps=warps, num_stages=4) for warps in (1, 2)]
    kernel = triton.autotune(configs=configs, key=["m", "n", "k"])(matmul.matmul_kernel)
    a, b = leaves(device, (40, 50), (50, 60))
    assert_right(autodiff(kernel, matmul.matmul, autotune=False, **anew()), a, b)
    assert not timer.measured
    timer.time = lambda name, stages, warps: 1.0 if (stages, warps) == (4, 1) else 2.0
    op = autodiff(kernel, matmul.matmul, **anew())
    assert_right(op, a, b)
    assert {(4, 1), (4, 2)} <= {(stages, warps) for _, stages, warps in timer.measured}
    assert chosen(op) == [(4, 1)] * 2


def test_no_room(device, timer, monkeypatch):
    """Where there is no memory for a second backward, the first one runs as it is."""
    op, (a, b) = product(device, autotune=True, **anew())

    def measure(*_):
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(tuning, "_measure", measure)
    assert_right(op, a, b)
    assert not timer.measured and chosen(op) == [(3, 4)] * 2


def test_some_outputs(device, timer):
    """Each set of outputs with a gradient has a backward, which is tuned by itself."""
    import test_api

    op = autodiff(test_api.two_outputs, _two_outputs, autotune=True, **anew())
    for _ in range(2):
        (x,) = leaves(device, (40,))
        y, z = op(x)
        torch.testing.assert_close(torch.autograd.grad(z.sum(), x)[0], 2 * x.detach())
        y, z = op(x)
        (both,) = torch.autograd.grad(y.sum() + z.sum(), x)
        torch.testing.assert_close(both, (x.exp() + 2 * x).detach())


def _two_outputs(kernel, x):
    y, z = torch.empty_like(x), torch.empty_like(x)
    kernel[(1,)](x, y, z, len(x), BLOCK=64)
    return y, z


def test_sizes_for_which_other_kernels_are_made(device, timer, monkeypatch):
    """Where sizes allow, tiles are wider: those are kernels of their own, and measured as such."""
    # Few programs are enough for two processors.
    monkeypatch.setattr("triton.backends.autodiff.checking.facts.processors", lambda device: 2)
    op, small = product(device, autotune=True, **anew())
    large = leaves(device, (256, 128), (128, 256))
    assert_right(op, *small)
    first, kernels = len(timer.measured), [executable.kernel for executable in ran(op)]
    assert_right(op, *large)
    # Large enough for tiles of their own they are on a machine with few processors only.
    others = kernels != [executable.kernel for executable in ran(op)]
    assert others or device == "cuda"
    assert (len(timer.measured) > first) == others
    assert all(executable.chosen for executable in ran(op))
    count = len(timer.measured)
    assert_right(op, *small)
    assert_right(op, *large)
    assert len(timer.measured) == count


def test_nothing_is_measured_on_cpu(monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("the CPU backend is not active here")
    monkeypatch.setattr(tuning, "benchmark", None)
    op, (a, b) = product("cpu", autotune=True, **anew())
    assert_right(op, a, b)


def test_measures_on_gpu(cuda):
    op, (a, b) = product(cuda, autotune=True, **anew())
    assert_right(op, a, b)
    assert execution_of(op).backward.executable_plan.measured


def test_nothing_is_measured_in_a_capture(cuda):
    device = torch.device(cuda)
    assert tuning.measures(device)
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        assert not tuning.measures(device)
