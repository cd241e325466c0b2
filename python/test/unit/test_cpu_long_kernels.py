"""Kernels with long bodies: compiled in time linear in their length, and freed.

What is compared is what the compiler makes of bodies of several lengths: LLVM's time grows with the
code, with the square of the loops of one function, and with that of the calls in it.
"""

import gc
import itertools
import json
import linecache
import os
import re
import signal
import threading
import time

import pytest
import torch
import triton
import triton.language as tl
from cpu_backend import close, on_cpu  # noqa: F401
from triton.backends.autodiff import differentiable
from triton.backends.autodiff.library import native

pytestmark = pytest.mark.cpu

# Loops of a function, or calls in it.
_LONGEST = 128
# Blocks of a function: four for each of its loops at most.
_BLOCKS = 4 * _LONGEST


@triton.jit
def products_kernel(x_ptr, w_ptr, y_ptr, LENGTH: tl.constexpr):
    i = tl.arange(0, 16)
    at = i[:, None] * 16 + i[None, :]
    x = tl.load(x_ptr + at)
    for _ in tl.static_range(LENGTH):
        w = tl.load(w_ptr + at)
        x = tl.sin(tl.dot(x, w, input_precision="ieee")) * 0.5 + x * 0.5
    tl.store(y_ptr + at, x)


def products(x, w, length):
    for _ in range(length):
        x = torch.sin(x @ w) * 0.5 + x * 0.5
    return x


@triton.jit
def sums_kernel(x_ptr, w_ptr, y_ptr, LENGTH: tl.constexpr):
    i = tl.arange(0, 256)
    x = tl.load(x_ptr + i)
    for j in tl.static_range(LENGTH):
        x = x * 0.5 - tl.sum(x * x, 0) * 0.0001 + tl.load(w_ptr + j)
    tl.store(y_ptr + i, x)


def sums(x, w, length):
    x = x.flatten()
    for j in range(length):
        x = x * 0.5 - (x * x).sum() * 0.0001 + w.flatten()[j]
    return x.view(16, 16)


@triton.jit
def sort_kernel(x_ptr, w_ptr, y_ptr, LENGTH: tl.constexpr):
    i = tl.arange(0, LENGTH)
    tl.store(y_ptr + i, tl.sort(tl.load(x_ptr + i)))


def sort(x, w, length):
    return x.flatten()[:length].sort().values


def compiled(kernel, length):
    """Return the kernel's TTIR."""
    signature = dict(x_ptr="*fp32", w_ptr="*fp32", y_ptr="*fp32", LENGTH="constexpr")
    source = triton.compiler.ASTSource(kernel, signature, {"LENGTH": length})
    return triton.compile(source, target=triton.runtime.driver.active.get_current_target())


def functions(kernel, length, dump):
    """Return the functions of the optimized LLVM IR, each a list of lines."""
    native().compile_cpu(compiled(kernel, length).asm["ttir"], "{}")
    found = re.findall(r"^define .*?^}", dump.read_text(), re.MULTILINE | re.DOTALL)
    return [function.splitlines() for function in found]


def count_calls(function):
    """Return how often the function calls parts of the kernel."""
    return sum(" call " in line and ".part" in line for line in function)


@pytest.fixture
def dump(tmp_path, monkeypatch):
    """The file that LLVM IR is written to."""
    path = tmp_path / "kernel.ll"
    monkeypatch.setenv("TRITON_AUTODIFF_DUMP_LLVM", str(path))
    return path


@pytest.mark.parametrize(
    "kernel, lengths",
    [(products_kernel, (64, 128)), (sums_kernel, (128, 256)), (sort_kernel, (128, 256))],
)
def test_code_grows_with_the_body(kernel, lengths, dump):
    sizes = []
    for length in lengths:
        parts = functions(kernel, length, dump)
        sizes.append(sum(map(len, parts)))
        blocks = [sum(re.match(r"[\w.]+:", line) is not None for line in part) for part in parts]
        assert len(parts) > 2 and max(blocks) <= _BLOCKS, f"{max(blocks)} blocks in one function"
        calls = max(map(count_calls, parts))
        assert 0 < calls < 2 * _LONGEST, f"{calls} calls in one function"
    assert sizes[1] <= 2.3 * sizes[0], f"lines of LLVM IR: {sizes}"


@triton.jit
def steps_kernel(x_ptr, w_ptr, y_ptr, LENGTH: tl.constexpr):
    i = tl.arange(0, 256)
    x = tl.load(x_ptr + i)
    for j in tl.static_range(LENGTH):
        x = tl.sin(x) * tl.load(w_ptr + j) + x
    tl.store(y_ptr + i, x)


@pytest.mark.parametrize("kernel, derives", [(sums_kernel, False), (steps_kernel, True)])
def test_time_grows_with_the_body(kernel, derives):
    """Four times the body takes about four times as long, not sixteen times."""

    def text(length):
        text = compiled(kernel, length).asm["ttir"]
        if not derives:
            return text
        request = {"target": "cpu", "triton": triton.__version__}
        return json.loads(native().differentiate(text, json.dumps(request)))["backward"][0]["ttir"]

    def seconds(text):
        begin = time.process_time()
        native().compile_cpu(text, "{}")
        return time.process_time() - begin

    short, long = text(128), text(512)
    # The least of three: a machine's pace changes.
    assert min(seconds(long) / seconds(short) for _ in range(3)) < 6


@pytest.mark.parametrize("kernel", [products_kernel, sums_kernel])
def test_stack_does_not_grow(kernel):
    """Tiles that live one after the other share a place."""

    def stack(length):
        _, description = native().compile_cpu(compiled(kernel, length).asm["ttir"], "{}")
        return int(re.search(r'"stack":\s*(\d+)', description)[1])

    assert stack(128) == stack(256)


@triton.jit
def running_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.cumsum(tl.load(x_ptr + i)))


def test_tiles_are_not_on_a_small_stack():
    """A launching thread runs programs, too, but only if their tiles fit on its stack."""
    n = 2**20
    x, out = torch.randint(-8, 8, (n,)).float(), torch.empty(n)
    # The compiler needs more of the stack than a launch.
    running_kernel[(1,)](x, out, N=n)
    out.fill_(torch.nan)
    before = threading.stack_size(2**20)
    try:
        thread = threading.Thread(target=lambda: running_kernel[(1,)](x, out, N=n))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    torch.testing.assert_close(out, x.cumsum(0))


def test_forked_processes_have_threads_of_their_own():
    """Of the threads, only the one that forks goes on in the child."""
    n = 2**17
    x, out = torch.randint(-8, 8, (n,)).float(), torch.empty(n).share_memory_()
    # Its tile is on a thread's stack.
    running_kernel[(1,)](x, out, N=n)
    out.fill_(torch.nan)
    child = os.fork()
    if child == 0:
        # Nothing else: PyTorch's threads are gone, too.
        running_kernel[(1,)](x, out, N=n)
        os._exit(0)
    end = time.monotonic() + 60
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < end:
        time.sleep(0.05)
    if ended == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert ended == (child, 0)
    torch.testing.assert_close(out, x.cumsum(0))


@triton.jit
def large_kernel(x_ptr, out_ptr, N: tl.constexpr, TILES: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    total = x
    for _ in tl.static_range(TILES):
        x = tl.cumsum(x)
        total += x
    tl.store(out_ptr + i, total)


def test_stacks_grow():
    """Threads begin with stacks of 64 MiB, and get larger ones for a kernel that needs more."""
    n, tiles = 2**20, 9
    x, out = torch.zeros(n, dtype=torch.float64), torch.empty(n, dtype=torch.float64)
    x[-1] = 1
    large_kernel[(1,)](x, out, N=n, TILES=tiles)
    assert torch.equal(out, x * (tiles + 1))


def test_equal_nests_are_one_function(dump):
    """Of a loop that is unrolled, each step runs the same code, but for where a tile is stored
    because there are many operations in a row."""
    parts = functions(products_kernel, 256, dump)
    assert sum(not count_calls(part) for part in parts) < 12


@pytest.mark.parametrize(
    "kernel, reference, length",
    [(products_kernel, products, 96), (sums_kernel, sums, 200), (sort_kernel, sort, 256)],
)
def test_results(kernel, reference, length):
    x, w = torch.randn(16, 16), torch.randn(16, 16) * 0.1
    expected = reference(x.double(), w.double(), length)
    y = torch.full_like(expected, float("nan"), dtype=torch.float32)
    kernel[(3,)](x, w, y, length)
    close(y, expected, torch.float32, factor=4.0 * length)


_SOURCE = """
@triton.jit
def scale_kernel(x_ptr, y_ptr):
    i = tl.arange(0, 16)
    tl.store(y_ptr + i, tl.load(x_ptr + i) * {factor}.0)
"""


def made(factor):
    """Return a kernel of its own."""
    name, text = f"<scale by {factor}>", _SOURCE.format(factor=factor)
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {"triton": triton, "tl": tl, "__name__": __name__}
    exec(compile(text, name, "exec"), scope)
    return scope["scale_kernel"]


def mappings():
    """Return how many mappings of memory this process has."""
    with open("/proc/self/maps") as maps:
        return sum(1 for _ in maps)


@pytest.mark.parametrize("derives", [False, True])
def test_kernels_are_freed(derives, unobserved):
    """The code of a kernel, and of its backward, goes with the kernel."""
    x, y = torch.randn(16, requires_grad=derives), torch.empty(16)
    factors = itertools.count(1)

    def launch():
        factor = next(factors)
        kernel = differentiable(made(factor)) if derives else made(factor)
        out = y.clone()
        kernel[(1,)](x, out)
        assert torch.equal(out, x * factor)
        if derives:
            assert (torch.autograd.grad(out.sum(), x)[0] == factor).all()
        return kernel

    launch()
    gc.collect()
    before = mappings()
    kernels = [launch() for _ in range(20)]
    held = mappings()
    del kernels
    gc.collect()
    assert held >= before + 20 and mappings() <= before + 5
