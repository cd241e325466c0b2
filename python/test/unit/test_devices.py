"""Devices and streams: kernels run where their tensors are, and after what made these.

Memory that is not written yet holds NaN (`late`), so that what runs too early is seen.
"""

import threading

import gradients
import pytest
import torch
import triton
import triton.language as tl
from kernels import loops, normalization
from kernels import whiles as while_loops
from triton.backends.autodiff import AutodiffError, autodiff, differentiable
from triton.backends.autodiff.errors import ArgumentError
from triton.tools.tensor_descriptor import TensorDescriptor

TOLERANCE = 1e-4
# So many cycles of a GPU take longer than all that the host does meanwhile.
CYCLES = 200_000_000


@pytest.fixture(autouse=True)
def needs_gradients():
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")


@pytest.fixture
def other(cuda):
    """A GPU that is not the current one."""
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU only")
    torch.cuda.set_device(0)
    yield torch.device("cuda", 1)
    assert torch.cuda.current_device() == 0


@triton.jit
def scaled_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, tl.load(w_ptr) * tl.exp(x), mask=i < n)


def scaled(kernel, x, w):
    y = torch.empty_like(x)
    kernel[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, w, y, x.numel(), BLOCK=256)
    return y


def scaled_reference(x, w):
    return w * torch.exp(x)


@triton.jit
def pair_kernel(pair, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(pair[0] + i) * tl.load(pair[1] + i))


@triton.jit
def described_kernel(source, y_ptr):
    i = tl.arange(0, 32)
    tile = source.load([0, 0])
    tl.store(y_ptr + i[:, None] * 32 + i[None, :], tile * tile)


class Kept:
    """A wrapper that launches what it has compiled by itself."""

    def __init__(self, fn):
        self.fn, self.kept = fn, {}

    def __getitem__(self, grid):
        def launch(*args, BLOCK):
            key = torch.cuda.current_device()
            if key not in self.kept:
                self.kept[key] = self.fn[grid](*args, BLOCK=BLOCK)
            else:
                extents = grid({"n": args[3], "BLOCK": BLOCK})
                self.kept[key][(*extents, 1, 1)](*args, BLOCK)

        return launch


def tuned(kernel):
    configs = [triton.Config({"BLOCK": block}) for block in (128, 256)]
    return triton.autotune(configs, key=["n"])(kernel)


def tuned_scaled(kernel, x, w):
    y = torch.empty_like(x)
    kernel[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, w, y, x.numel())
    return y


def leaves(*shapes, device):
    tensors = [torch.rand(shape, dtype=torch.float64) + 0.5 for shape in shapes]
    return [t.to(device, torch.float32).requires_grad_() for t in tensors]


def newton(kernel, x):
    return while_loops.newton(kernel, x, TOLERANCE)


def newton_reference(x):
    return while_loops.newton_reference(x, TOLERANCE)


# What saves in the forward, adds partial sums up, tapes, counts iterations, tunes, is wrapped.
CASES = {
    "plain stores and a sum": (scaled_kernel, scaled, scaled_reference, ((5000,), (1,)), {}),
    "tuned": (tuned(scaled_kernel), tuned_scaled, scaled_reference, ((5000,), (1,)), {}),
    "tuned backward": (
        scaled_kernel, scaled, scaled_reference, ((5000,), (1,)), {"autotune": True}
    ),
    "wrapped": (Kept(scaled_kernel), scaled, scaled_reference, ((5000,), (1,)), {}),
    "partial sums": (
        normalization.layer_norm_kernel, normalization.layer_norm,
        normalization.layer_norm_reference, ((700, 300), (300,), (300,)), {}
    ),
    "deterministic": (
        normalization.layer_norm_kernel, normalization.layer_norm,
        normalization.layer_norm_reference, ((700, 300), (300,), (300,)), {"deterministic": True}
    ),
    "a tape": (loops.rnn_kernel, loops.rnn, loops.rnn_reference, ((2, 7, 40), (40,), (2, 40)), {}),
    "counted iterations": (
        while_loops.newton_kernel, newton, newton_reference, ((64,),), {}
    ),
}  # fmt: skip


def check(run, reference, inputs, upstream=None):
    """Values and gradients of `run` against float64 on the device of the inputs."""
    y = run(*inputs)
    upstream = torch.randn_like(y) if upstream is None else upstream
    found = torch.autograd.grad(y, inputs, upstream)
    compare((y, *found), reference, inputs, upstream)


def compare(found, reference, inputs, upstream):
    exact = [t.detach().double().requires_grad_() for t in inputs]
    truth = reference(*exact)
    truths = torch.autograd.grad(truth, exact, upstream.double())
    for value, right in zip(found, (truth, *truths), strict=True):
        assert value.device == right.device
        torch.testing.assert_close(value.double(), right, rtol=1e-3, atol=1e-3)


# --------------------------------------------------------------------------------------- devices


@pytest.mark.parametrize("name", CASES)
def test_device_that_is_not_current(other, name):
    kernel, stub, reference, shapes, options = CASES[name]
    op = autodiff(kernel, stub, **options)
    for device in (other, torch.device("cuda", 0), other):
        check(op, reference, leaves(*shapes, device=device))
        with torch.no_grad():
            inputs = leaves(*shapes, device=device)
            y = op(*inputs)
            torch.testing.assert_close(y, reference(*inputs).detach(), rtol=1e-3, atol=1e-3)


def test_device_of_what_is_within_an_argument(other):
    """The current device has nothing to do with tensors in tuples, or behind descriptors."""
    a, b = leaves((64,), (64,), device=other)
    y = torch.empty(64, device=other)
    differentiable(pair_kernel)[(1,)]((a, b), y, BLOCK=64)
    found = torch.autograd.grad(y, (a, b), torch.ones_like(y))
    for gradient, truth in zip(found, (b, a), strict=True):
        torch.testing.assert_close(gradient, truth.detach())
    (x,) = leaves((32, 32), device=other)
    y = torch.empty(32, 32, device=other)
    differentiable(described_kernel)[(1,)](TensorDescriptor.from_tensor(x, [32, 32]), y)
    (gradient,) = torch.autograd.grad(y, x, torch.ones_like(y))
    torch.testing.assert_close(gradient, 2 * x.detach())


@pytest.mark.parametrize("multithreaded", [True, False])
def test_one_backward_over_two_devices(other, multithreaded):
    first, second = differentiable(scaled_kernel), differentiable(scaled_kernel)

    def run(x, w):
        near = scaled(first, x, w)
        far = scaled(second, near.to(other).cos(), w.to(other))
        return scaled(first, far.to(x.device).sin(), w)

    def reference(x, w):
        return scaled_reference(scaled_reference(scaled_reference(x, w).cos(), w).sin(), w)

    inputs = leaves((3000,), (1,), device="cuda:0")
    with torch.autograd.set_multithreading_enabled(multithreaded):
        check(run, reference, inputs)


def test_threads_with_devices_of_their_own(other):
    kernel = differentiable(tuned(scaled_kernel))
    errors = []

    def work(index):
        try:
            torch.cuda.set_device(index)
            for _ in range(20):
                inputs = leaves((3000,), (1,), device="cuda")
                check(lambda x, w: tuned_scaled(kernel, x, w), scaled_reference, inputs)
                assert inputs[0].get_device() == index
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n % 2,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]


@pytest.mark.parametrize("wrap", [lambda kernel: kernel, tuned, Kept])
@pytest.mark.parametrize("strange", ["x", "w", "y"])
def test_arguments_on_two_devices(other, wrap, strange):
    x, w = leaves((300,), (1,), device="cuda:0")
    given = {"x": x, "w": w, "y": torch.empty(300, device="cuda:0")}
    given[strange] = given[strange].detach().to(other).requires_grad_(strange != "y")
    kernel = differentiable(wrap(scaled_kernel))
    constants = {"BLOCK": 256} if wrap is not tuned else {}
    with pytest.raises(ArgumentError, match="'scaled_kernel' are on cuda:[01] and cuda:[01]"):
        kernel[lambda meta: (2,)](*given.values(), 300, **constants)


# --------------------------------------------------------------------------------------- streams


def late(tensor):
    """A copy that is there when the current stream has slept; NaN before."""
    copy = torch.full_like(tensor, float("nan"), requires_grad=False)
    torch.cuda.current_stream().synchronize()
    torch.cuda._sleep(CYCLES)
    return copy.copy_(tensor)


@pytest.fixture
def side(cuda):
    return torch.cuda.Stream()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("compiled", [True, False])
def test_side_stream(side, name, compiled):
    """A forward on a stream of its own, with inputs that come late; the backward follows it."""
    kernel, stub, reference, shapes, options = CASES[name]
    op = autodiff(kernel, stub, **options)
    inputs = leaves(*shapes, device="cuda")
    if compiled:
        check(op, reference, inputs)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = op(*map(late, inputs))
    upstream = torch.randn_like(y)
    found = torch.autograd.grad(y, inputs, upstream)
    torch.cuda.current_stream().wait_stream(side)
    compare((y, *found), reference, inputs, upstream)


def test_upstream_gradient_from_another_stream(side):
    """It comes late, on the stream that calls the backward."""
    kernel = differentiable(scaled_kernel)
    inputs = leaves((5000,), (1,), device="cuda")
    check(lambda *tensors: scaled(kernel, *tensors), scaled_reference, inputs)
    y = scaled(kernel, *inputs)
    upstream = torch.randn_like(y)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        found = torch.autograd.grad(y, inputs, late(upstream))
        compare((y, *found), scaled_reference, inputs, upstream)


def test_two_streams_in_one_graph(side):
    """Nodes on either stream; PyTorch makes them wait for one another in the backward."""
    kernel = differentiable(scaled_kernel)
    inputs = leaves((5000,), (1,), device="cuda")

    def run(x, w):
        main = torch.cuda.current_stream()
        near = scaled(kernel, late(x), w)
        side.wait_stream(main)
        with torch.cuda.stream(side):
            near.record_stream(side)
            far = scaled(kernel, late(near.cos()), w)
        main.wait_stream(side)
        far.record_stream(main)
        return scaled(kernel, far.sin(), w)

    def reference(x, w):
        return scaled_reference(scaled_reference(scaled_reference(x, w).cos(), w).sin(), w)

    for _ in range(3):
        check(run, reference, inputs)


def test_memory_is_not_given_away_too_early(side):
    """Temporaries, saved values and gradients of a side stream, while the main one allocates."""
    op = autodiff(normalization.layer_norm_kernel, normalization.layer_norm)
    inputs = leaves((700, 300), (300,), (300,), device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    results = []
    for _ in range(5):
        with torch.cuda.stream(side):
            torch.cuda._sleep(CYCLES // 10)
            y = op(*inputs)
            upstream = torch.randn_like(y)
        found = torch.autograd.grad(y, inputs, upstream)
        results.append((y, upstream, found))
        del y, found
        for _ in range(20):
            torch.full((700, 300), float("nan"), device="cuda")
    torch.cuda.synchronize()
    for y, upstream, found in results:
        compare((y, *found), normalization.layer_norm_reference, inputs, upstream)


def test_launch_on_a_stream_that_is_not_current(side):
    class Sideways(Kept):
        def __getitem__(self, grid):
            def launch(*args):
                kernel = self.fn.warmup(*args, grid=grid)
                kernel = kernel.result() if hasattr(kernel, "result") else kernel
                kernel[grid](*args, stream=side.cuda_stream)

            return launch

    x, w = leaves((300,), (1,), device="cuda")
    with pytest.raises(AutodiffError, match="'scaled_kernel' is launched on a stream that is not"):
        differentiable(Sideways(scaled_kernel))[(2, 1, 1)](x, w, torch.empty_like(x), 300, 256)


@pytest.mark.parametrize("multithreaded", [True, False])
def test_first_backward_in_a_thread(cuda, multithreaded):
    """Backward kernels are compiled, tuned and launched where autograd runs them."""
    op = autodiff(normalization.layer_norm_kernel, normalization.layer_norm, autotune=True)
    inputs = leaves((700, 300), (300,), (300,), device="cuda")
    y = op(*inputs)
    upstream = torch.randn_like(y)
    torch.cuda.synchronize()
    found = []

    def work():
        with torch.autograd.set_multithreading_enabled(multithreaded):
            found.extend(torch.autograd.grad(y, inputs, upstream))
        torch.cuda.current_stream().synchronize()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    compare((y, *found), normalization.layer_norm_reference, inputs, upstream)
