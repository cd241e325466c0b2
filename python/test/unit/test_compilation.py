"""Kernels are compiled side by side: those of a backward, and with them those of the forward."""

import threading
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from gradients import assert_gradients_close
from kernels import matmul, normalization
from triton.backends.autodiff import AutodiffError, autodiff
from triton.backends.autodiff.compiling import executable, together
from triton.backends.autodiff.compiling.executable import Executable
from triton.backends.autodiff.compiling.together import compile_all
from triton.backends.autodiff.launching import state
from triton.backends.autodiff.plans.plan import Kernel
from triton.backends.compiler import GPUTarget

pytestmark = pytest.mark.every_triton

HOST = GPUTarget("cpu", "x86_64", 1)
_TIMEOUT = 60  # seconds, which only a failing test waits


@pytest.fixture
def compiler(monkeypatch):
    """A compiler that calls `meet(name)` while it compiles a kernel."""
    found = types.SimpleNamespace()

    def compile_(path, target, options):
        found.meet(Path(path).read_text())
        source = types.SimpleNamespace(module=1)
        return types.SimpleNamespace(asm={}, kernel=b"", _init_handles=int, src=source)

    monkeypatch.setattr(executable, "triton_compile", compile_)
    return found


def made(*names):
    return [Executable(Kernel(name, name, None, ()), HOST, {}) for name in names]


def test_side_by_side(compiler):
    barrier = threading.Barrier(3)
    compiler.meet = lambda name: barrier.wait(_TIMEOUT)
    kernels = made("a", "b", "c")
    compile_all(kernels + kernels)
    assert all(kernel.compiled is not None for kernel in kernels)


def test_once(compiler):
    """What has been compiled is not compiled again, by itself or with others."""
    names = []
    compiler.meet = names.append
    kernels = made("a", "b", "c")
    kernels[1].compile()
    compile_all(kernels)
    compile_all(kernels)
    compile_all([])
    assert sorted(names) == ["a", "b", "c"]


def test_first_error(compiler):
    """The error is the first kernel's, whenever it comes, and the others have ended by then."""
    others = threading.Semaphore(0)

    def meet(name):
        if name == "a":
            assert others.acquire(timeout=_TIMEOUT) and others.acquire(timeout=_TIMEOUT)
        else:
            others.release()
        if name != "c":
            raise RuntimeError("no")

    compiler.meet = meet
    kernels = made("a", "b", "c")
    with pytest.raises(AutodiffError, match="kernel 'a'"):
        compile_all(kernels)
    assert [kernel.compiled is None for kernel in kernels] == [True, True, False]


def test_one_after_another_while_passes_are_printed(compiler, monkeypatch):
    monkeypatch.setenv("MLIR_ENABLE_DUMP", "1")
    threads = []
    compiler.meet = lambda name: threads.append((name, threading.current_thread()))
    compile_all(made("a", "b"))
    assert threads == [(name, threading.current_thread()) for name in ("a", "b")]


def test_on_the_current_device(compiler, monkeypatch):
    """Whose properties a kernel is compiled for, and where it is loaded."""
    here = threading.local()
    here.device = 3
    active = types.SimpleNamespace(
        get_current_device=lambda: getattr(here, "device", 0),
        set_current_device=lambda device: setattr(here, "device", device),
    )
    monkeypatch.setattr(together, "driver", types.SimpleNamespace(active=active))
    devices = []
    compiler.meet = lambda name: devices.append(active.get_current_device())
    compile_all(made("a", "b"))
    assert devices == [3, 3]


# --------------------------------------------------------------------------------------------
# Forward and backward
# --------------------------------------------------------------------------------------------


@pytest.fixture
def compiled(monkeypatch):
    """The names of kernels as they are compiled, after `meet()` was called, where it is given."""
    found = types.SimpleNamespace(names=[], meet=lambda: None)
    real = Executable._compile

    def compile_(self):
        found.names.append(self.kernel.name)
        found.meet()
        return real(self)

    monkeypatch.setattr(Executable, "_compile", compile_)
    return found


def fresh(kernel):
    """A kernel again, of which nothing is compiled yet."""
    return triton.jit(kernel.fn)


def single():
    """A new kernel that stores to one tensor."""

    @triton.jit
    def exp_kernel(x, y, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + i, tl.exp(tl.load(x + i, mask=i < n)), mask=i < n)

    def stub(kernel, x):
        y = torch.full_like(x, float("nan"))
        kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
        return y

    return autodiff(exp_kernel, stub)


def double():
    """A new kernel that stores to two."""

    @triton.jit
    def two_kernel(x, y, z, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(x + i, mask=i < n)
        tl.store(y + i, tl.exp(value), mask=i < n)
        tl.store(z + i, value * value, mask=i < n)

    def stub(kernel, x):
        y, z = torch.full_like(x, float("nan")), torch.full_like(x, float("nan"))
        kernel[(triton.cdiv(x.numel(), 16),)](x, y, z, x.numel(), BLOCK=16)
        return y, z

    return autodiff(two_kernel, stub)


def assert_exp_gradient(x, y):
    torch.testing.assert_close(x.grad, y.detach())


def test_products(device, compiled):
    """The kernels of a product's backward wait for one another, while the forward does."""
    op = autodiff(fresh(matmul.matmul_kernel), matmul.matmul)
    a, b = (torch.randn(*shape, device=device) for shape in ((40, 50), (50, 60)))
    inputs = a.requires_grad_(), b.requires_grad_()
    barrier = threading.Barrier(2)
    compiled.meet = lambda: barrier.wait(_TIMEOUT)
    y = op(*inputs)
    assert len(compiled.names) == 2
    y.sum().backward()
    assert len(compiled.names) == 2
    compiled.meet = lambda: None
    assert_gradients_close(op, torch.matmul, inputs)


def test_saving_forward(device, compiled):
    """A forward that saves compiles beside the backward that needs it."""
    op = autodiff(fresh(normalization.layer_norm_kernel), normalization.layer_norm)
    x, w, b = (torch.randn(*shape, device=device) for shape in ((6, 100), (100,), (100,)))
    inputs = tuple(leaf.requires_grad_() for leaf in (x, w, b))
    barrier = threading.Barrier(2)
    compiled.meet = lambda: barrier.wait(_TIMEOUT)
    op(*inputs).sum().backward()
    kinds = {name.removeprefix("layer_norm_kernel_")[:3] for name in compiled.names}
    assert kinds == {"fwd", "bwd"}
    compiled.meet = lambda: None
    assert_gradients_close(op, normalization.layer_norm_reference, inputs)


def test_only_what_will_run(device, compiled):
    """Which of two outputs gets a gradient, a first forward does not know."""
    op, x = double(), torch.randn(40, device=device, requires_grad=True)
    y, _ = op(x)
    assert compiled.names == []
    y.sum().backward()
    assert len(compiled.names) == 1
    assert_exp_gradient(x, y)
    # Now one does.
    x = torch.randn(50, device=device, requires_grad=True)
    y, _ = op(x)
    known = list(compiled.names)
    y.sum().backward()
    assert compiled.names == known
    assert_exp_gradient(x, y)


def rows():
    """A new kernel that stores a tensor, and a smaller one."""

    @triton.jit
    def rows_kernel(x, y, s, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        place = tl.program_id(0) * n + i
        value = tl.load(x + place, mask=i < n, other=0.0)
        tl.store(s + tl.program_id(0), tl.sum(value * value, 0))
        tl.store(y + place, tl.sin(value), mask=i < n)

    def stub(kernel, x):
        y, s = torch.full_like(x, float("nan")), torch.full_like(x[:, 0], float("nan"))
        kernel[(len(x),)](x, y, s, x.shape[1], BLOCK=64)
        return y, s

    return autodiff(rows_kernel, stub)


def test_the_largest_output(device, compiled):
    """Its gradient is likely to come, and if it comes alone, nothing is left to be compiled."""
    op, x = rows(), torch.randn(3, 40, device=device, requires_grad=True)
    y, _ = op(x)
    assert len(compiled.names) == 1
    y.sum().backward()
    assert len(compiled.names) == 1
    torch.testing.assert_close(x.grad, x.detach().cos())


def test_derived_by_the_caller(device, monkeypatch):
    """In its thread, whose stream may be what makes the memory that decides."""
    threads = []
    real = state.plan_for

    def plan_for(*args):
        threads.append(threading.current_thread())
        return real(*args)

    monkeypatch.setattr(state, "plan_for", plan_for)
    rows()(torch.randn(3, 40, device=device, requires_grad=True))
    assert len(threads) > 1 and set(threads) == {threading.current_thread()}


@pytest.mark.parametrize("both", (False, True), ids=("other", "both"))
def test_what_was_not_foreseen(device, compiled, both):
    """A wrong guess takes time, and does nothing else: the gradients that come are right."""
    op = rows()
    for n in (40, 50):
        before = len(compiled.names)
        x = torch.randn(3, n, device=device, requires_grad=True)
        y, s = op(x)
        ahead = len(compiled.names)
        assert ahead == before + (n == 40)
        (y.sum() + s.sum() if both else s.sum()).backward()
        # The second time, it is foreseen.
        assert len(compiled.names) == ahead + (n == 40)
        expected = 2 * x + x.cos() if both else 2 * x
        torch.testing.assert_close(x.grad, expected.detach())


def test_nothing_without_a_gradient(device, compiled):
    op = single()
    op(torch.randn(40, device=device))
    with torch.no_grad():
        op(torch.randn(40, device=device, requires_grad=True))
    assert compiled.names == []


def test_an_error_is_the_backward_s(device, compiled):
    """A forward does not mind that its backward cannot be compiled; its backward says so."""

    def fail():
        raise AutodiffError("no room")

    op, x = single(), torch.randn(40, device=device, requires_grad=True)
    compiled.meet = fail
    y = op(x)
    assert len(compiled.names) == 1
    torch.testing.assert_close(y, x.exp())
    for _ in range(2):
        with pytest.raises(AutodiffError, match="no room"):
            y.sum().backward(retain_graph=True)
    compiled.meet = lambda: None
    y.sum().backward()
    assert_exp_gradient(x, y)


def test_an_error_of_the_forward(device, compiled):
    """It is raised at once, whatever becomes of the backward."""
    op = autodiff(fresh(normalization.layer_norm_kernel), normalization.layer_norm)
    x, w, b = (torch.randn(*shape, device=device) for shape in ((6, 90), (90,), (90,)))

    def fail():
        raise AutodiffError(f"no room for {compiled.names}")

    compiled.meet = fail
    with pytest.raises(AutodiffError, match="layer_norm_kernel_fwd"):
        op(x.requires_grad_(), w, b)


def test_in_the_cache_of_the_call(device, monkeypatch, tmp_path):
    """A forward leaves nothing to be done that would find another cache, or other knobs."""

    def kernels():
        texts = {path.stem.lstrip("@") for path in Path(folder).rglob("*.ttir")}
        return {name for name in texts if not name.endswith(".accepted")}

    folder = tmp_path / "forward"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder))
    one, two = single(), double()
    x = torch.randn(40, device=device, requires_grad=True)
    before = threading.enumerate()
    y, (z, _) = one(x), two(x)
    assert threading.enumerate() == before
    found = kernels()
    assert "exp_kernel_bwd" in found and "two_kernel_bwd" not in found
    folder = tmp_path / "backward"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder))
    (y.sum() + z.sum()).backward()
    assert kernels() == {"two_kernel_bwd"}
    torch.testing.assert_close(x.grad, (y + z).detach())


def test_threads(device):
    """Several make the first call of an operation at once."""
    op = single()
    leaves = [torch.randn(n, device=device, requires_grad=True) for n in (40, 50, 48, 64)]
    barrier = threading.Barrier(len(leaves))

    def call(x):
        barrier.wait(_TIMEOUT)
        y = op(x)
        y.sum().backward()
        return y

    with ThreadPoolExecutor() as pool:
        outputs = list(pool.map(call, leaves))
    for x, y in zip(leaves, outputs, strict=True):
        assert_exp_gradient(x, y)
