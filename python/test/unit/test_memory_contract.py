"""The memory contract with real kernels, case by case: what autograd may hand a launch, and get."""

import contextlib
import gc
import inspect
import threading
import time
import weakref
from pathlib import Path

import gradients
import pytest
import torch
import triton
import triton.language as tl
from gradients import assert_close, assert_gradients_close, differentiated, random_tensor
from kernels import elementwise as ew
from kernels import gather, normalization
from kernels import matmul as mm
from kernels import softmax as sm
from torch.utils.checkpoint import checkpoint


@pytest.fixture(autouse=True)
def needs_gradients():
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")


@pytest.fixture
def launched():
    """The kernel `y[i] = x[i] * w[i]` as the tests below launch it, on memory of their choice."""
    from triton.backends.autodiff import differentiable

    kernel = differentiable(times_kernel)

    def launch(x, w, y, n=None):
        n = y.numel() if n is None else n
        kernel[(triton.cdiv(n, 32),)](x, w, y, n, BLOCK=32)
        return y

    launch.kernel = kernel
    return launch


@triton.jit
def times_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    w = tl.load(w_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x * w, mask=mask)


@triton.jit
def two_stores_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, 2 * x, mask=mask)
    tl.store(z_ptr + offsets, x * x, mask=mask)


@triton.jit
def unit_rows_kernel(x_ptr, norm_ptr, y_ptr, BLOCK: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * BLOCK + columns)
    norm = tl.sqrt(tl.sum(x * x))
    tl.store(norm_ptr + row, norm)
    tl.store(y_ptr + row * BLOCK + columns, x / norm)


def _pair(device, n=100, dtype=torch.float32):
    return (random_tensor(n, device=device, dtype=dtype) for _ in range(2))


# Where autograd keeps what the backward needs.


def _to_another_layout(tensor):
    """What hooks that move tensors elsewhere and back do to strides and offsets."""
    return torch.cat([tensor.new_zeros(3), tensor.reshape(-1)])[3:].view(tensor.shape)


@pytest.mark.parametrize("kind", ["save_on_cpu", "contiguous", "kept"])
@pytest.mark.parametrize("layout", ["dense", "transposed", "strided", "expanded"])
def test_saved_tensor_hooks(device, kind, layout):
    base = random_tensor(48, 64, device=device)
    w = random_tensor(24, 40, device=device)
    view = {
        "dense": lambda b: b.view(-1)[: 20 * 24].view(20, 24),
        "transposed": lambda b: b.t()[:20, :24],
        "strided": lambda b: b[:40:2, 1:49:2],
        "expanded": lambda b: b[:1, :24].expand(20, 24),
    }[layout]
    matmul = differentiated(mm.matmul_kernel, mm.matmul)

    def op(base, w):
        hooks = {
            "save_on_cpu": torch.autograd.graph.save_on_cpu,
            "contiguous": lambda: torch.autograd.graph.saved_tensors_hooks(
                _to_another_layout, lambda t: t
            ),
            "kept": lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
        }[kind]
        with hooks():
            return matmul(view(base), w)

    assert_gradients_close(op, lambda base, w: view(base) @ w, (base, w))


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(device, reentrant):
    x, w = random_tensor(12, 24, device=device), random_tensor(24, 40, device=device)
    matmul = differentiated(mm.matmul_kernel, mm.matmul)
    softmax = differentiated(sm.softmax_kernel, sm.rowwise)

    def section(x, w):
        return softmax(matmul(torch.sin(x), w))

    upstream = torch.randn(12, 40, device=device)
    found = []
    for f in (section, lambda *args: checkpoint(section, *args, use_reentrant=reentrant)):
        x.grad = w.grad = None
        f(x, w).backward(upstream)
        found.append((x.grad, w.grad))
    torch.testing.assert_close(*found)


def test_saved_input_changed_before_the_backward(device, launched):
    x, w = _pair(device)
    doubled = 2 * x
    y = launched(doubled, w, torch.empty_like(x))
    doubled.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@triton.jit
def step_kernel(a_ptr, b_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n)
    tl.store(b_ptr + i, tl.sin(a) * a, mask=i < n)


@pytest.mark.skipif("config.getoption('--forward-only')", reason="about backwards")
@pytest.mark.parametrize("part", [False, True])
def test_workspace_that_is_used_again(device, part):
    """The error names the argument that was overwritten, the launch that did it, the way out."""

    def steps(kernel, x):
        u, v = (torch.zeros(60, device=device)[5 * part : 50 + 5 * part] for _ in range(2))
        for t in range(2):
            kernel[(1,)](v if t else x, u, x.numel(), BLOCK=64)
            kernel[(1,)](u, v, x.numel(), BLOCK=64)
        return v

    overwrites = inspect.getsourcelines(steps)[1] + 4
    y = differentiated(step_kernel, steps)(random_tensor(50, device=device))
    with pytest.raises(RuntimeError) as caught:
        y.sum().backward()
    for said in (
        "argument 'a_ptr' of kernel 'step_kernel' has been modified by an inplace operation",
        f"{Path(__file__).name}:{overwrites} wrote to its argument 'b_ptr'",
        "a tensor of its own",
        "clone()",
    ):
        assert said in str(caught.value)


def test_saved_indices_changed_before_the_backward(device):
    table = random_tensor(20, device=device)
    index = torch.randint(0, 20, (40,), device=device)
    y = differentiated(gather.take_kernel, gather.take)(table, index)
    index.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_saved_output_changed_before_the_backward(device):
    """The backward reads what the forward has stored rather than compute it again."""
    from triton.backends.autodiff import differentiable

    x = random_tensor(7, 32, device=device)
    norm, y = torch.empty(7, device=device), torch.empty_like(x)
    differentiable(unit_rows_kernel)[(7,)](x, norm, y, BLOCK=32)
    norm.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward(torch.randn_like(y))


@pytest.mark.skipif("config.getoption('--forward-only')", reason="about backwards")
def test_parts_of_an_output(device):
    """Launches that write a part each: none of them changes what another one has stored."""
    from triton.backends.autodiff import differentiable

    kernel = differentiable(unit_rows_kernel)
    x = random_tensor(8, 32, device=device)
    norm, y = torch.empty(8, device=device), torch.empty_like(x)
    for rows in (slice(0, 3), slice(3, 8)):
        kernel[(len(x[rows]),)](x[rows], norm[rows], y[rows], BLOCK=32)
    upstream = torch.randn_like(y)
    (gradient,) = torch.autograd.grad(y, x, upstream)
    truth = x.detach().double().requires_grad_()
    unit = truth / truth.norm(dim=1, keepdim=True)
    (expected,) = torch.autograd.grad(unit, truth, upstream.double())
    torch.testing.assert_close(gradient.double(), expected, rtol=1e-5, atol=1e-5)


def test_output_that_is_not_saved_may_change(device, launched):
    x, w = _pair(device)
    y = launched(x, w, torch.empty_like(x))
    y.mul_(3)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 3 * w.detach())


def test_nothing_outlives_the_graph(device, launched):
    """Collected by reference counts alone: no cycle keeps a launch's memory."""
    x, w = _pair(device)
    scaled, y = x * 2, torch.empty_like(x)
    watched = [weakref.ref(scaled), weakref.ref(y)]
    gc.collect()
    gc.disable()
    try:
        launched(scaled, w, y)
        y.sum().backward()
        del scaled, y
        assert [r() for r in watched] == [None, None]
    finally:
        gc.enable()


# Outputs.


def test_view_taken_before_the_launch(device, launched):
    """A view of the output follows its history, as with PyTorch's in-place operations."""
    x, w = _pair(device, 96)
    buffer = torch.zeros(96, device=device)
    view = buffer.view(4, 24)[1:3]
    launched(x, w, buffer)
    view.backward(torch.arange(48.0, device=device).view(2, 24))
    expected = torch.zeros(96, device=device)
    expected[24:72] = torch.arange(48.0, device=device)
    torch.testing.assert_close(x.grad, expected * w.detach())


def test_chained_in_place_launches(device, launched):
    """Each launch overwrites a part of what the launch before has written."""
    x, w = _pair(device, 96)
    buffer = torch.zeros(96, device=device)
    launched(x, w, buffer)
    launched(buffer[:64].clone(), w, buffer[32:], 64)
    upstream = torch.randn(96, device=device)
    buffer.backward(upstream)
    a, b = x.detach().double().requires_grad_(), w.detach().double().requires_grad_()
    first = a * b
    torch.cat([first[:32], first[:64] * b[:64]]).backward(upstream.double())
    # In the precision of the launches.
    torch.testing.assert_close(x.grad, a.grad.float())
    torch.testing.assert_close(w.grad, b.grad.float())


def test_output_with_gaps(device):
    """Every second column of a buffer; what lies between keeps its own gradient."""
    x, w = random_tensor(20, 24, device=device), random_tensor(24, device=device)
    b, old = random_tensor(24, device=device), random_tensor(20, 48, device=device)

    def stub(kernel, x, w, b, old):
        buffer = old * 2
        y = buffer[:, 1::2]
        kernel[(2, 1)](x, w, b, y, 20, 24, *x.stride(), 1, *y.stride(), BLOCK_M=16, BLOCK_N=32)
        return buffer

    def reference(x, w, b, old):
        return torch.stack([2 * old[:, ::2], x * w + b], 2).reshape(20, 48)

    op = differentiated(ew.affine_columns_kernel, stub)
    assert_gradients_close(op, reference, (x, w, b, old))


def test_output_that_is_an_input(device, launched):
    x, w = _pair(device)

    def op(x, w):
        y = x * 1
        return launched(y, w, y)

    assert_gradients_close(op, torch.mul, (x, w))
    assert_gradients_close(lambda x, w: op(x, w) * op(w, x), lambda x, w: (x * w) ** 2, (x, w))


@pytest.mark.parametrize("kind", ["one tensor", "two views", "detached", "shifted"])
def test_two_outputs_in_one_place(device, kind):
    """Which store decides what the memory holds is the kernel's secret."""
    from triton.backends.autodiff import differentiable

    x = random_tensor(100, device=device)
    buffer = torch.empty(100, device=device)
    y, z = {
        "one tensor": (buffer, buffer),
        "two views": (buffer[:], buffer[:]),
        "detached": (buffer, buffer.detach()),
        "shifted": (buffer[:60], buffer[40:]),
    }[kind]
    with pytest.raises(RuntimeError, match="'y_ptr' and 'z_ptr'.*share memory"):
        differentiable(two_stores_kernel)[(2,)](x, y, z, 60, BLOCK=32)


def test_two_outputs_side_by_side(device):
    from triton.backends.autodiff import differentiable

    x = random_tensor(96, device=device)
    buffer = torch.empty(192, device=device)
    halves = buffer[:96], buffer[96:]
    differentiable(two_stores_kernel)[(3,)](x, *halves, 96, BLOCK=32)
    upstream = torch.randn(192, device=device)
    buffer.backward(upstream)
    torch.testing.assert_close(x.grad, 2 * upstream[:96] + 2 * x.detach() * upstream[96:])


# Upstream gradients.


def _upstreams(device):
    base = torch.randn(400, device=device)
    return {
        "zero stride": base[:1].expand(100),
        "every third": base[:300:3],
        "odd offset": base[1:101],
        "negated": torch._neg_view(base[:100]),
        "complex part": torch.view_as_complex(base[:200].view(100, 2)).conj().imag,
    }


UPSTREAMS = ["zero stride", "every third", "odd offset", "negated", "complex part"]


@pytest.mark.parametrize("kind", UPSTREAMS)
@pytest.mark.parametrize("n", [1, 100])
def test_upstream_gradient_in_memory(device, launched, kind, n):
    x, w = _pair(device, n)
    y = launched(x, w, torch.empty_like(x))
    upstream = _upstreams(device)[kind][:n]
    y.backward(upstream)
    torch.testing.assert_close(x.grad, w.detach() * upstream)
    torch.testing.assert_close(w.grad, x.detach() * upstream)


def test_sparse_upstream_gradient(device, launched):
    x, w = _pair(device)
    y = launched(x, w, torch.empty_like(x))
    upstream = torch.randn(100, device=device).relu()
    y.backward(upstream.to_sparse())
    torch.testing.assert_close(x.grad, w.detach() * upstream)


def test_upstream_gradient_is_not_changed(device, launched):
    """Atomics that use up an upstream gradient use up a copy."""
    x, w = _pair(device)
    y = launched(x, w, torch.empty_like(x))
    upstream = torch.randn(100, device=device)
    before = upstream.clone()
    y.backward(upstream)
    assert torch.equal(upstream, before)


# Sizes.


@pytest.mark.parametrize("grid", ["empty", "one program"])
def test_empty_tensors(device, grid):
    from triton.backends.autodiff import differentiable

    x, w, y = (torch.empty(0, device=device, requires_grad=r) for r in (True, True, False))
    kernel = differentiable(times_kernel)
    kernel[(0 if grid == "empty" else 1,)](x, w, y, 0, BLOCK=32)
    y.sum().backward()
    assert x.grad.shape == w.grad.shape == (0,)


def test_empty_matmul(device):
    matmul = differentiated(mm.matmul_kernel, mm.matmul)
    for m, k, n in [(0, 8, 8), (8, 8, 0)]:
        a, b = random_tensor(m, k, device=device), random_tensor(k, n, device=device)
        matmul(a, b).sum().backward()
        assert a.grad.shape == (m, k) and not a.grad.any()
        assert b.grad.shape == (k, n) and not b.grad.any()


def test_zero_dimensional_tensors(device, launched):
    x, w = (torch.rand((), device=device).requires_grad_() for _ in range(2))
    assert_gradients_close(lambda x, w: launched(x, w, torch.empty_like(x)), torch.mul, (x, w))


# What PyTorch wraps around operations.


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_autocast(device, dtype):
    """PyTorch code of the stub is cast, the kernel gets what it is given."""
    x, w = random_tensor(16, 24, device=device), random_tensor(24, 40, device=device)
    gelu = differentiated(ew.gelu_tanh_kernel, ew.unary)

    def op(function, x, w):
        with torch.autocast(device, dtype):
            y = function(x @ w)
        assert y.dtype == dtype
        return y

    ours = torch.autograd.grad(op(gelu, x, w).float().square().sum(), (x, w))
    theirs = torch.autograd.grad(op(ew.gelu_tanh_reference, x, w).float().square().sum(), (x, w))
    a, b = x.detach().double().requires_grad_(), w.detach().double().requires_grad_()
    truths = torch.autograd.grad(ew.gelu_tanh_reference(a @ b).square().sum(), (a, b))
    for ours_, theirs_, truth in zip(ours, theirs, truths, strict=True):
        assert_close("gradient", ours_, theirs_, truth)


def test_hooks(device, launched):
    x, w = _pair(device)
    seen = []
    middle = x * 2
    middle.register_hook(lambda g: seen.append("middle") or 10 * g)
    x.register_post_accumulate_grad_hook(lambda t: seen.append("leaf"))
    y = launched(middle, w, torch.empty_like(x))
    y.register_hook(lambda g: seen.append("output") or 3 * g)
    y.grad_fn.register_hook(lambda gi, go: seen.append("node"))
    y.sum().backward()
    assert seen == ["output", "node", "middle", "leaf"]
    torch.testing.assert_close(x.grad, 60 * w.detach())


def test_anomaly_mode(device, launched):
    x, w = _pair(device)
    with torch.autograd.detect_anomaly():
        y = launched(x, w, torch.zeros(300, device=device)[100:200])
        y.square().sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach() * w.detach() ** 2)
    with pytest.raises(RuntimeError, match="nan values"), torch.autograd.detect_anomaly():
        launched(x, w, torch.empty_like(x)).backward(torch.full((100,), float("nan")).to(device))


def test_jacobian(device, launched):
    x, w = (t.detach() for t in _pair(device, 6))
    jacobian = torch.autograd.functional.jacobian(lambda x: launched(x, w, torch.empty_like(w)), x)
    torch.testing.assert_close(jacobian, torch.diag(w))


def test_threads(device):
    """Launches, first uses of plans and backwards from many threads at once."""
    from triton.backends.autodiff import differentiable

    kernel = differentiable(times_kernel)
    barrier, failures = threading.Barrier(8), []

    def work(seed):
        try:
            barrier.wait()
            for step in range(10):
                n = 64 + 16 * seed + step
                x, w = (torch.rand(n, device=device, requires_grad=True) for _ in range(2))
                y = torch.empty(n + 8, device=device)[step % 2 * 4 :][:n]
                kernel[(triton.cdiv(n, 32),)](x, w, y, n, BLOCK=32)
                y.sum().backward()
                torch.testing.assert_close(x.grad, w.detach())
        except Exception as error:  # the main thread shows it
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    with _interrupted_anywhere():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures, failures[0]


@contextlib.contextmanager
def _interrupted_anywhere():
    """Let other threads run whenever garbage is collected, inside of Python's own parts, too."""

    def wait(phase, info):
        time.sleep(0.002)

    threshold = gc.get_threshold()
    gc.callbacks.append(wait)
    gc.set_threshold(300)
    try:
        yield
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(wait)


# Memory around what a kernel may touch.


def test_guard_bands(device, guarded):
    """Odd sizes, strides and offsets, stored and atomic gradients, of half and of single floats."""
    for dtype in (torch.float32, torch.float16):
        base = random_tensor(64, 96, device=device, dtype=dtype)
        w, b = (random_tensor(24, device=device, dtype=dtype) for _ in range(2))
        affine = differentiated(ew.affine_columns_kernel, ew.affine_columns)
        matmul = differentiated(mm.matmul_kernel, mm.matmul)
        for view in (base[3:23, 5:29], base.t()[:20, :24], base[:20, :1].expand(20, 24)):
            y = affine(view, w, b)
            matmul(y, view.t()).float().square().sum().backward()
    table = random_tensor(17, 33, device=device)
    index = torch.randint(0, 17, (40,), device=device)
    differentiated(gather.embedding_kernel, gather.embedding)(index, table).sum().backward()
    x = random_tensor(7, 33, device=device)
    differentiated(sm.log_softmax_kernel, sm.rowwise)(x).square().sum().backward()


# GPUs.


def test_side_stream_and_a_stub_of_torch_code(cuda, launched):
    x, w = _pair(cuda, 1 << 20)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y = launched(torch.sin(x), w, torch.empty_like(x))
        loss = y.square().sum()
    torch.cuda.current_stream().wait_stream(stream)
    loss.backward()
    s = torch.sin(x.detach())
    torch.testing.assert_close(w.grad, 2 * s**2 * w.detach())


def test_second_gpu(cuda, launched):
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    x, w = _pair("cuda:1")
    assert torch.cuda.current_device() == 0
    y = launched(x, w, torch.empty_like(x))
    y.backward(torch.ones_like(y))
    assert torch.cuda.current_device() == 0 and x.grad.device == x.device
    torch.testing.assert_close(x.grad, w.detach())
    with pytest.raises((RuntimeError, ValueError), match="cuda:0"):
        launched(x, w, torch.empty(100, device="cuda:0"))


def test_streams_of_the_second_gpu(cuda, monkeypatch):
    """The backward follows the forward to its device and stream, whatever is current by then."""
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    from triton import knobs
    from triton.backends.autodiff import autodiff

    launches = []

    def note(metadata):
        launches.append((torch.cuda.current_device(), torch.cuda.current_stream()))

    monkeypatch.setattr(knobs.runtime, "launch_enter_hook", note)
    shapes = (300, 200), (200,), (200,)
    x, w, b = (torch.randn(*shape, device="cuda:1", requires_grad=True) for shape in shapes)
    side = torch.cuda.Stream("cuda:1")
    side.wait_stream(torch.cuda.current_stream("cuda:1"))
    op = autodiff(normalization.layer_norm_kernel, normalization.layer_norm)
    with torch.cuda.stream(side), torch.cuda.device(0):
        y = op(x, w, b)
    forwards = len(launches)
    torch.cuda.synchronize("cuda:1")
    assert torch.cuda.current_device() == 0
    upstream = torch.randn_like(y)
    found = torch.autograd.grad(y, (x, w, b), upstream)
    torch.cuda.synchronize("cuda:1")
    assert torch.cuda.current_device() == 0
    assert forwards and len(launches) > forwards and set(launches) == {(1, side)}
    exact = [t.detach().double().requires_grad_() for t in (x, w, b)]
    reference = normalization.layer_norm_reference
    theirs = torch.autograd.grad(reference(x, w, b), (x, w, b), upstream)
    truths = torch.autograd.grad(reference(*exact), exact, upstream.double())
    for name, ours, theirs_, truth in zip("xwb", found, theirs, truths, strict=True):
        assert_close(name, ours, theirs_, truth)
        assert ours.device == x.device
