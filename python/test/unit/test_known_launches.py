"""Launches like an earlier one run from a record; one thing that changes is seen.

In every test (doubt.py), a record that Triton's own search or the plan's would not confirm is an
error. Here one thing changes between two launches.
"""

import contextlib
import threading

import pytest
import torch
import triton
import triton.language as tl
from gradients import random_tensor
from triton import knobs
from triton.backends.autodiff import known, register_vjp, runtime
from triton.backends.autodiff.errors import ArgumentError, AutodiffError

pytestmark = pytest.mark.every_triton

FACTOR = tl.constexpr(3)


@triton.jit
def scaled(x_ptr, y_ptr, n, k, s, MODE: tl.constexpr, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = x * x * k + x * s
    if MODE == "negative":
        y = -y
    tl.store(y_ptr + i, y.to(KIND).to(x.dtype), mask=i < n)


def truth(x, k, s, mode):
    y = x * x * k + x * s
    return -y if mode == "negative" else y


@pytest.fixture
def ways(monkeypatch):
    """Notes whether launches were known."""
    noted, launch_known = [], runtime.launch_known

    def note(*given):
        ran, execution = launch_known(*given)
        noted.append(ran)
        return ran, execution

    monkeypatch.setattr(runtime, "launch_known", note)
    return noted


@pytest.fixture
def kernel(differentiable):
    """A kernel without records, though functions are shared by tests."""
    return differentiable(scaled)


class Caller:
    """Launches a kernel, and compares results and gradients with PyTorch's in float64."""

    def __init__(self, kernel, device):
        self.kernel, self.device = kernel, device
        self.given = dict(k=3, s=0.5, MODE="positive", KIND=tl.float32)
        self.x = random_tensor(100, device=device)

    def __call__(self, grid=None, options=(), output=None, **changed):
        given = {**self.given, **changed}
        x = given.pop("x", self.x)
        y = torch.full_like(x, float("nan")) if output is None else output
        grid = (triton.cdiv(x.numel(), 64),) if grid is None else grid
        compiled = self.kernel[grid](x, y, x.numel(), **given, BLOCK=64, **dict(options))
        if compiled is None:
            return None
        exact = x.detach().double().requires_grad_()
        wanted = truth(exact, given["k"], given["s"], given["MODE"])
        bound = 2e-2 if x.dtype.itemsize < 4 else 1e-4
        bound = dict(rtol=bound, atol=bound)
        torch.testing.assert_close(y.detach().double(), wanted.detach(), **bound)
        if y.requires_grad:
            u = torch.randn_like(y)
            (gradient,) = torch.autograd.grad(y, x, u)
            (right,) = torch.autograd.grad(wanted, exact, u.double())
            torch.testing.assert_close(gradient.double(), right, **bound)
        return compiled

    def known(self, ways, **given):
        """Launch until that is known."""
        for _ in range(3):
            compiled = self(**given)
        assert ways[-1] is True
        return compiled


@pytest.fixture
def call(kernel, device):
    return Caller(kernel, device)


@pytest.mark.parametrize("wanted", [True, False])
def test_a_launch_becomes_known(call, ways, wanted):
    call.x.requires_grad_(wanted)
    first = call()
    assert call.known(ways) is first
    assert (
        call.known(ways, grid=lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]), 1, 1)) is first
    )


def beside(x, elements):
    """Return x in other memory, so many elements after an aligned address."""
    room = torch.zeros(x.numel() + elements, dtype=x.dtype, device=x.device)
    room[elements:] = x.detach()
    return room[elements:].requires_grad_(x.requires_grad)


CHANGES = {
    "alignment": lambda x: dict(x=beside(x, 1)),
    "a size of one": lambda x: dict(x=x.detach()[:1].clone().requires_grad_(x.requires_grad)),
    "a part": lambda x: dict(x=x.detach()[3:].requires_grad_(x.requires_grad)),
    "half precision": lambda x: dict(x=x.detach().half().requires_grad_(x.requires_grad)),
    "a parameter": lambda x: dict(x=torch.nn.Parameter(x.detach(), x.requires_grad)),
    "a number that is one": lambda x: dict(k=1),
    "a multiple of 16": lambda x: dict(k=32),
    "a long number": lambda x: dict(k=2**33),
    "a negative number": lambda x: dict(k=-3),
    "a float for an integer": lambda x: dict(k=2.5),
    "an integer for a float": lambda x: dict(s=2),
    "truth for a float": lambda x: dict(s=True),
    "another float": lambda x: dict(s=-1.5),
    "a constant text": lambda x: dict(MODE="negative"),
    "a constant type": lambda x: dict(KIND=tl.float64),
    "an option": lambda x: dict(options=dict(num_warps=2)),
    "more programs": lambda x: dict(grid=(3,)),
    "another gradient": lambda x: dict(x=x.detach().clone().requires_grad_(not x.requires_grad)),
}


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_arguments(call, ways, change, wanted):
    """Both launches are right in turn, and both are known in the end."""
    call.x.requires_grad_(wanted)
    before = call.known(ways)
    changed = CHANGES[change](call.x)
    call(**changed)
    assert call() is before
    assert ways[-1]
    call.known(ways, **changed)
    assert call() is before


def test_the_same_under_other_names(call, ways):
    """Equal numbers of other types are other constants."""
    call.known(ways)
    kernel, x = call.kernel, call.x
    y = torch.empty_like(x)
    for n, k in ((x.numel(), True), (x.numel(), 1), (x.numel(), 1.0)):
        kernel[(2,)](x, y, n, k, 0.0, "positive", tl.float32, BLOCK=64)
        torch.testing.assert_close(y, x * x)


REFUSED = {
    "too many": lambda x: ((x, x.clone(), 1, 2, 3.0, "positive", tl.float32, 64, 5), {}),
    "too few": lambda x: ((x, x.clone(), 1), {}),
    "twice": lambda x: ((x, x.clone(), 1, 2, 3.0, "positive", tl.float32, 64), dict(n=1)),
    "no option": lambda x: ((x, x.clone(), 1, 2, 3.0, "positive", tl.float32, 64), dict(m=1)),
}


@pytest.mark.parametrize("how", REFUSED)
def test_what_triton_refuses(call, ways, how):
    call.known(ways)
    args, kwargs = REFUSED[how](call.x)
    with pytest.raises((TypeError, KeyError, ValueError, AutodiffError)):
        call.kernel[(2,)](*args, **kwargs)


@pytest.mark.parametrize("grid", [(1.0,), (-1,), (1, 1, 1, 1), "1", (), lambda meta: 1.5])
def test_grids(call, ways, grid):
    call.known(ways)
    with pytest.raises(ArgumentError, match="the grid of kernel 'scaled'"):
        call(grid=grid)


def test_a_grid_is_asked_once(call, ways):
    call.x.requires_grad_()
    asked = []

    def grid(meta):
        asked.append(meta)
        return (2,)

    call.known(ways, grid=(2,))
    call(grid=grid)
    assert len(asked) == 1 and asked[0]["k"] == 3
    call(grid=lambda meta: asked.append(0) or (3,))
    assert len(asked) == 2


SETTINGS = {
    "debug": lambda patch: patch.setattr(knobs.runtime, "debug", True),
    "instrumentation": lambda patch: patch.setattr(
        knobs.compilation, "instrumentation_mode", "consan"
    ),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_triton(call, ways, setting, monkeypatch):
    before = call.known(ways)
    with monkeypatch.context() as patch:
        SETTINGS[setting](patch)
        count = len(ways)
        with contextlib.suppress(Exception):  # What it is for may be missing here.
            assert call() is not before
        assert len(ways) == count
    assert call() is before


def test_hooks_before_the_run(call, ways):
    call.known(ways)
    seen = []
    scaled.add_pre_run_hook(lambda *args, **kwargs: seen.append(kwargs["k"]))
    try:
        call()
    finally:
        scaled.pre_run_hooks.clear()
    assert seen and set(seen) == {3}


def test_hooks_at_launch(call, ways, monkeypatch):
    call.known(ways)
    seen = []
    hook = lambda metadata: seen.append(metadata.get()["name"])  # noqa: E731
    monkeypatch.setattr(knobs.runtime, "launch_enter_hook", hook)
    call()
    assert ways[-1] and "scaled" in seen[0]


def test_hooks_at_stages(call, ways, monkeypatch):
    call.known(ways)
    count, asked = len(ways), []

    def hook(*given):
        asked.append(given)
        return "key", "hash" if not given else None

    monkeypatch.setattr(knobs.runtime, "add_stages_inspection_hook", hook)
    with contextlib.suppress(Exception):  # What a hook returns differs between Tritons.
        call()
    assert bool(asked) is (len(ways) == count)


def test_another_run(call, ways, monkeypatch):
    """Somebody may replace how Triton launches."""
    call.known(ways)
    count, seen, run = len(ways), [], triton.JITFunction.run
    monkeypatch.setattr(
        triton.JITFunction, "run", lambda *args, **kwargs: seen.append(args) or run(*args, **kwargs)
    )
    call()
    assert seen and len(ways) == count


def test_forgotten_kernels(call, ways):
    before = call.known(ways)
    scaled.device_caches.clear()
    assert call() is not before
    assert call.known(ways) is not before


GLOBAL = 2


@triton.jit
def with_global(x_ptr, y_ptr, K: tl.constexpr):
    i = tl.arange(0, 16)
    tl.store(y_ptr + i, tl.load(x_ptr + i) * FACTOR * K)


def test_globals(differentiable, device, ways, monkeypatch):
    """Triton's error stays."""
    kernel, x = differentiable(with_global), torch.randn(16, device=device)
    for _ in range(3):
        kernel[(1,)](x, torch.empty_like(x), K=2)
    assert ways[-1]
    monkeypatch.setitem(with_global.fn.__globals__, "FACTOR", tl.constexpr(5))
    with pytest.raises(RuntimeError, match="FACTOR has changed"):
        kernel[(1,)](x, torch.empty_like(x), K=2)


@triton.jit
def spread(x_ptr, i_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(i_ptr + i, mask=i < n, other=0)
    tl.store(y_ptr + i, tl.load(x_ptr + index), mask=i < n)


def test_deterministic_mode(differentiable, device, ways):
    kernel, x = differentiable(spread), torch.randn(64, device=device, requires_grad=True)
    index = torch.zeros(64, dtype=torch.int32, device=device)

    def call():
        y = torch.empty_like(x)
        kernel[(1,)](x, index, y, 64, BLOCK=64)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        assert gradient[0] == 64 and (gradient[1:] == 0).all()

    for _ in range(3):
        call()
    assert ways[-1]
    before = torch.get_deterministic_debug_mode()
    torch.use_deterministic_algorithms(True)
    try:
        with pytest.raises(AutodiffError, match="determinis"):
            call()
    finally:
        torch.set_deterministic_debug_mode(before)
    call()
    assert ways[-1]


@triton.jit
def with_assembly(x_ptr, y_ptr):
    i = tl.arange(0, 32)
    x = tl.load(x_ptr + i)
    y = tl.inline_asm_elementwise(
        "add.f32 $0, $1, 0f00000000;", "=f,f", [x], tl.float32, is_pure=True, pack=1
    )
    tl.store(y_ptr + i, y)


@triton.jit
def twice(dy, x, y):
    return 2 * dy


@triton.jit
def thrice(dy, x, y):
    return 3 * dy


def test_registered_rules(differentiable, device, ways, own_rules):
    kernel = differentiable(with_assembly)
    x = torch.randn(32, device=device, requires_grad=True)

    def gradient():
        y = torch.empty_like(x)
        kernel[(1,)](x, y)
        return torch.autograd.grad(y.sum(), x)[0][0].item()

    for rule, factor in ((None, 1), (twice, 2), (thrice, 3)):
        if rule is not None:
            register_vjp(rule, asm="add.f32 $0, $1, 0f00000000;")
        for _ in range(4):
            assert gradient() == factor


def test_hooks_on_saved_tensors(call, ways):
    call.x.requires_grad_()
    call.known(ways)
    count, packed = len(ways), []

    def pack(tensor):
        packed.append(tensor)
        return tensor.clone()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        call()
    assert packed and not any(ways[count:])


@triton.jit
def product(x_ptr, w_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i) * tl.load(w_ptr + i))


@pytest.mark.parametrize("wanted", [True, False])
def test_what_a_known_launch_overwrites(differentiable, device, ways, wanted):
    """The backward that reads it again is PyTorch's error, or ours, which names the launch."""
    kernel = differentiable(product)
    x = torch.randn(64, device=device, requires_grad=True)
    w = torch.randn(64, device=device)
    other = x if wanted else x.detach()
    for _ in range(4):
        written = torch.empty_like(w)
        kernel[(1,)](x, w, torch.empty_like(w), BLOCK=64)
        kernel[(1,)](other, w, written, BLOCK=64)
    assert ways[-2:] == [True, True]
    version = written._version
    y = torch.empty_like(w)
    kernel[(1,)](x, written.detach(), y, BLOCK=64)
    kernel[(1,)](other, w, written.detach(), BLOCK=64)
    assert ways[-2:] == [True, True] and written._version == version + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*product"):
        y.sum().backward()


def test_a_storage_without_memory(call, ways):
    call.x.requires_grad_()
    call.known(ways)
    count = len(ways)
    freed = call.x.detach().clone().requires_grad_()
    freed.untyped_storage().resize_(0)
    with pytest.raises((ArgumentError, ValueError), match="memory"):
        call.kernel[(2,)](freed, torch.empty_like(call.x), 100, **call.given, BLOCK=64)
    assert len(ways) == count


SHARED = {
    "one tensor": lambda room: (room[:64], room[:64]),
    "parts that overlap": lambda room: (room[:64], room[32:96]),
    "parts beside each other": lambda room: (room[:64], room[64:128]),
    "a view of the whole": lambda room: (torch.randn_like(room[:64]), room[:64].view(64)),
}


@pytest.mark.parametrize("how", SHARED)
def test_shared_memory(call, ways, how):
    """Launches whose arguments share memory are looked at each time."""
    x = torch.randn(64, device=call.device, requires_grad=True)
    call.x = x
    call.known(ways, grid=(1,))
    count = len(ways)
    first, second = SHARED[how](torch.randn(128, device=call.device))
    expected = truth(first.double(), 3, 0.5, "positive")
    call.kernel[(1,)](
        first, second, 64 if how != "parts that overlap" else 8, **call.given, BLOCK=64
    )
    if how != "parts that overlap":
        torch.testing.assert_close(second.double(), expected, rtol=1e-4, atol=1e-4)
    assert len(ways) == count or how == "a view of the whole"


def test_a_leaf_that_is_written(call, ways):
    call.x.requires_grad_()
    call.known(ways)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        call.kernel[(2,)](call.x, torch.ones_like(call.x, requires_grad=True), 100, **call.given,
                          BLOCK=64)  # fmt: skip


def test_no_gradient_in_between(call, ways):
    call.x.requires_grad_()
    call.known(ways)
    with torch.no_grad():
        call.known(ways)
        y = torch.empty_like(call.x)
        call(output=y)
    assert not y.requires_grad
    call.known(ways)


def test_tangents(call, ways):
    import torch.autograd.forward_ad as forward

    call.known(ways)
    with forward.dual_level():
        x = forward.make_dual(call.x, torch.ones_like(call.x))
        with pytest.raises(AutodiffError, match="tangent"):
            call.kernel[(2,)](x, torch.empty_like(call.x), 100, **call.given, BLOCK=64)


def test_negatives(call, ways):
    call.known(ways)
    x = torch.randn(100, dtype=torch.complex64, device=call.device).conj().imag.contiguous()
    call(x=x)
    lazy = torch._neg_view(x).requires_grad_()
    with pytest.raises(ArgumentError, match="negatives"):
        call.kernel[(2,)](lazy, torch.empty_like(x), 100, **call.given, BLOCK=64)


def test_threads(call, ways):
    """Records do not change, so threads share them."""
    call.x.requires_grad_()
    call.known(ways)
    errors = []

    def many():
        try:
            for n in range(20):
                call(k=(3, 1, 16)[n % 3])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=many) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_inside_of_a_launch(call, ways, monkeypatch):
    """A hook at a launch may launch the same kernel."""
    call.known(ways)
    inner, depth = [], []

    def hook(metadata):
        if not depth:
            depth.append(0)
            inner.append(call())

    monkeypatch.setattr(knobs.runtime, "launch_enter_hook", hook)
    call()
    assert inner and all(ways)


def test_streams_and_captures(kernel, cuda, ways):
    x = torch.randn(100, device="cuda", requires_grad=True)
    call = Caller(kernel, "cuda")
    call.x = x
    call.known(ways)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(1_000_000)
        call.known(ways)
    torch.cuda.synchronize()
    y, u = torch.empty_like(x), torch.randn_like(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel[(2,)](x, y, 100, **call.given, BLOCK=64)
        (gradient,) = torch.autograd.grad(y, x, u)
    assert ways[-1]
    with torch.no_grad():
        x.normal_()
    graph.replay()
    exact = x.detach().double().requires_grad_()
    wanted = truth(exact, 3, 0.5, "positive")
    torch.testing.assert_close(y.double(), wanted.detach())
    torch.testing.assert_close(gradient.double(), torch.autograd.grad(wanted, exact, u.double())[0])


def test_devices(kernel, cuda, ways):
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    for device in ("cuda:0", "cuda:1", "cuda:0", "cuda:1") * 2:
        call = Caller(kernel, device)
        call.x.requires_grad_()
        call()
    with torch.cuda.device(1):
        call = Caller(kernel, "cuda:1")
        call.x.requires_grad_()
        call.known(ways)


def test_many_launches_are_forgotten(call, ways, monkeypatch):
    monkeypatch.setattr(known, "_MOST", 4)
    for n in range(12):
        call.x = random_tensor(20 + n, device=call.device)
        call(grid=(1,))
        assert len(call.kernel._known._table.records) <= 4


def escaped(transform):
    """Return a tensor that a transform of `torch.func` has wrapped, and that has left it."""
    found = []
    transform(lambda x: (found.append(x), x.sum())[1])(torch.randn(3, 16))
    return found[0]


STRANGE = {
    "on the meta device": lambda: torch.randn(16, device="meta"),
    "sparse": lambda: torch.randn(16).to_sparse(),
    "zero": lambda: torch._efficientzerotensor(16),
    "complex": lambda: torch.randn(16, dtype=torch.complex64),
    "functional": lambda: torch._to_functional_tensor(torch.ones(16)),
    "of gradients": lambda: escaped(torch.func.grad),
    "of a batch": lambda: escaped(torch.func.vmap),
    "empty": lambda: torch.empty(0),
    "a subclass": lambda: torch.ones(16).as_subclass(type("Own", (torch.Tensor,), {})),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_tensors_without_a_key(call, ways, kind):
    call.known(ways)
    args = STRANGE[kind](), torch.empty(16), 16, 3, 0.5, "positive", tl.float32, 64
    assert call.kernel._known.key(args, {}) is None


def test_options_are_told_apart(call, ways):
    call.known(ways)
    key = call.kernel._known.key
    args = call.x, torch.empty_like(call.x), 100, 3, 0.5, "positive", tl.float32
    given = [{}, {"num_warps": 2}, {"num_warps": 4}, {"num_stages": 2}, {"num_warps": "2"}]
    keys = {key(args, {"BLOCK": 64, **options}).key for options in given}
    assert len(keys) == len(given)
    assert key(args, {"BLOCK": 64, "num_warps": (2,)}) is None
