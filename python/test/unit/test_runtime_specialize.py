"""From kernels and arguments to compiled kernels: no device is needed, only a target."""

import os
import subprocess
import sys
import types

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.autodiff.launching import nodes
from triton.backends.autodiff.launching.specialization import Specialization
from triton.backends.autodiff.launching.specialize import Resolver
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver


@pytest.fixture(autouse=True)
def target(monkeypatch, tmp_path):
    """A driver that compiles for a GPU and launches nothing."""
    active = types.SimpleNamespace(
        get_current_device=lambda: 0,
        get_current_stream=lambda device: 0,
        get_current_target=lambda: GPUTarget("cuda", 90, 32),
        get_benchmarker=lambda: lambda call, quantiles: (1.0, 1.0, 1.0),
        launcher_cls=lambda source, metadata: None,
        utils=types.SimpleNamespace(
            get_device_properties=lambda device: {"max_shared_mem": 2**20},
            load_binary=lambda *args: (object(), object(), 0, 0, 1024),
        ),
    )
    monkeypatch.setattr(driver, "_active", active)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


@triton.jit
def scale(x, y, n, factor, skip, BLOCK: tl.constexpr, BIAS: tl.constexpr = 0.0):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i * skip, mask=i < n)
    tl.store(y + i, v * factor + BIAS, mask=i < n)


def specialized(resolver, *args, grid=(1,), **kwargs):
    """The specialization and the launch for some arguments."""
    launches = []
    nodes.each_launch(resolver, launches.append, args, kwargs, grid)
    (launch,) = launches
    return Specialization(launch.kernel, launch.function), launch


def test_arguments_of_the_ttir_function():
    x, y = torch.zeros(8), torch.zeros(8)
    spec, launch = specialized(Resolver(scale), x, y, 8, 0.5, 1, BLOCK=16)
    assert spec.names == ("x", "y", "n", "factor")
    assert spec.types == ("*fp32", "*fp32", "i32", "fp32")
    assert spec.pointers == (0, 1)
    assert spec.flatten(launch.values) == [x, y, 8, 0.5]
    assert launch.values[4:] == [1, 16, 0.0]
    assert "tt.func public @scale" in spec.ttir
    spec, _ = specialized(Resolver(scale), x, y, 8, 0.5, skip=3, BLOCK=16, BIAS=1.0)
    assert spec.names == ("x", "y", "n", "factor", "skip")


def test_options_and_grid():
    x = torch.zeros(8)
    seen = {}

    def grid(meta):
        seen.update(meta)
        return (triton.cdiv(meta["n"], meta["BLOCK"]), 2)

    spec, launch = specialized(
        Resolver(scale), x, x, 40, 0.5, 1, 16, grid=grid, num_warps=8, num_stages=2
    )
    assert launch.grid == (3, 2, 1)
    assert seen["BIAS"] == 0.0 and seen["skip"] == 1
    assert spec.options["num_warps"] == 8 and spec.options["num_stages"] == 2
    assert "maxnreg" not in spec.options


def test_tuples_and_none():
    @triton.jit
    def pick(pointers, sizes, extra, y):
        tl.store(y, tl.load(pointers[1] + sizes[0]))

    x, y = torch.zeros(8), torch.zeros(8)
    resolver = Resolver(pick)
    spec, launch = specialized(resolver, (x, y), (4, (1, 6)), None, y)
    assert spec.names == ("pointers[0]", "pointers[1]", "sizes[0]", "sizes[1][1]", "y")
    flat = spec.flatten(launch.values)
    assert flat[0] is x and flat[1] is y and flat[2:4] == [4, 6]


def configs():
    return [triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((16, 1), (64, 2))]


def fastest_is_second(kernel_call, quantiles):
    fastest_is_second.calls += 1
    return [3.0 - fastest_is_second.calls] * 3


heuristic = triton.heuristics({"BIAS": lambda args: float(args["n"])})


@pytest.mark.parametrize("nesting", ["autotune", "heuristics", "both", "both, the other way"])
def test_wrapped_kernels(nesting):
    fastest_is_second.calls = 0
    tune = triton.autotune(configs(), key=["n"], do_bench=fastest_is_second)
    kernel = scale
    if nesting in ("heuristics", "both, the other way"):
        kernel = heuristic(kernel)
    if nesting != "heuristics":
        kernel = tune(kernel)
    if nesting == "both":
        kernel = heuristic(kernel)
    x = torch.zeros(128)
    options = {"BLOCK": 64, "num_warps": 2} if nesting == "heuristics" else {}
    resolver = Resolver(kernel)
    for _ in range(2):
        spec, launch = specialized(
            resolver, x, x, 128, 2.0, 3, grid=lambda m: (m["n"] // m["BLOCK"],), **options
        )
        assert launch.grid == (2, 1, 1)
        assert launch.values[5] == 64 and spec.options["num_warps"] == 2
        assert launch.values[6] == (0.0 if nesting == "autotune" else 128.0)
    if nesting != "heuristics":
        assert fastest_is_second.calls == 2
        tuner = kernel.fn if nesting == "both" else kernel
        assert tuner.best_config.kwargs == {"BLOCK": 64}
        assert len(tuner.cache) == 1
        assert resolver.function is scale


def test_hooks_of_a_config_run_once_per_launch():
    calls = []
    config = triton.Config({"BLOCK": 16}, pre_hook=lambda args: calls.append(args["n"]))
    kernel = triton.autotune([config], key=["n"])(scale)
    resolver = Resolver(kernel)
    x = torch.zeros(8)
    for n in (8, 9):
        specialized(resolver, x, x, n, 2.0, 1)
    assert calls == [8, 9]


def test_host_descriptor_is_taken_apart():
    from triton.tools.tensor_descriptor import TensorDescriptor

    @triton.jit
    def copy(source, y):
        i = tl.arange(0, 16)
        tl.store(y + i[:, None] * 16 + i[None, :], source.load([0, 0]))

    x, y = torch.zeros(16, 16), torch.zeros(16, 16)
    source = TensorDescriptor.from_tensor(x, [16, 16], padding="nan")
    spec, launch = specialized(Resolver(copy), source, y)
    assert spec.names[:3] == ("source.base", "source.is_nan", "source.shape[0]")
    assert spec.types == ("*fp32", "i1", "i32", "i32", "i64", "i64", "*fp32")
    assert spec.pointers == (0, 6)
    leaves = spec.flatten(launch.values)
    assert leaves[0] is x and leaves[1:6] == [True, 16, 16, 16, 1] and leaves[6] is y


@pytest.mark.parametrize("thing", [print, 3, "kernel", lambda x: x, object(), scale.fn])
def test_what_is_no_kernel(thing):
    with pytest.raises(TypeError, match="@triton.jit"):
        Resolver(thing)


INTERPRETED = """
import types, torch, triton, triton.language as tl
from triton.runtime.driver import driver
from triton.backends.compiler import GPUTarget
from triton.backends.autodiff.launching.specialization import Specialization
from triton.backends.autodiff.launching.specialize import Resolver
from triton.runtime.interpreter import InterpretedFunction

@triton.jit
def helper(v):
    return tl.sum(v, 0) + v.max(0)

@triton.jit
def kernel(x, y, BLOCK: tl.constexpr):
    v = tl.load(x + tl.arange(0, BLOCK))
    tl.store(y, helper(tl.softmax(v)) + tl.cdiv(BLOCK, 3))

assert isinstance(kernel, InterpretedFunction)
x, y = torch.randn(8), torch.zeros(1)
kernel[(1,)](x, y, BLOCK=8)
before = y.clone()
driver._active = types.SimpleNamespace(
    get_current_device=lambda: 0, get_current_stream=lambda d: 0,
    get_current_target=lambda: GPUTarget("cuda", 90, 32))
resolver = Resolver(kernel)
launch = resolver.resolve((x, y), {"BLOCK": 8}, (1,))
spec = Specialization(launch.kernel, resolver.function)
assert "tt.reduce" in spec.ttir and spec.names == ("x", "y")
y.zero_()
kernel[(1,)](x, y, BLOCK=8)
assert torch.equal(y, before)
"""


def test_kernel_decorated_for_the_interpreter(tmp_path):
    """The interpreter keeps working, before and after."""
    script = tmp_path / "interpreted.py"
    script.write_text(INTERPRETED)
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, str(script)], check=True, env=environment)
