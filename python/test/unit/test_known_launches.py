"""Launches like an earlier one run from a record; one thing that changes is seen.

In every test (doubt.py), a record that Triton's own search or the plan's would not confirm is an
error. Here one thing changes between two launches.
"""

import contextlib
import inspect
import threading

import pytest
import torch
import triton
import triton.language as tl
from gradients import random_tensor
from triton import knobs
from triton.backends.autodiff import register_vjp
from triton.backends.autodiff.errors import ArgumentError, AutodiffError
from triton.backends.autodiff.launching import known, nodes

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
    noted, launch_known = [], nodes.launch_known

    def note(*given):
        ran, execution = launch_known(*given)
        noted.append(ran)
        return ran, execution

    monkeypatch.setattr(nodes, "launch_known", note)
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

    def is_known(self, **changed) -> bool:
        """Whether a launch would run from a record; nothing else looks at it."""
        find = inspect.unwrap(known.Known.find)
        kwargs = dict(self.given, BLOCK=64, **changed)
        args = self.x, torch.empty_like(self.x), self.x.numel()
        return find(self.kernel._known, args, kwargs) is not None

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


def transposed(wanted, device):
    """Return a tensor whose elements have another order in memory."""
    return torch.randn(10, 10, device=device).t().requires_grad_(wanted)


CHANGES = {
    "alignment": lambda x: dict(x=beside(x, 1)),
    "a size of one": lambda x: dict(x=x.detach()[:1].clone().requires_grad_(x.requires_grad)),
    "a part": lambda x: dict(x=x.detach()[3:].requires_grad_(x.requires_grad)),
    "half precision": lambda x: dict(x=x.detach().half().requires_grad_(x.requires_grad)),
    "a parameter": lambda x: dict(x=torch.nn.Parameter(x.detach(), x.requires_grad)),
    "a number that is one": lambda x: dict(k=1),
    "a multiple of 16": lambda x: dict(k=32),
    "a long number": lambda x: dict(k=2**33 + 3),
    "another shape": lambda x: dict(x=x.detach().view(50, 2).requires_grad_(x.requires_grad)),
    "one axis more": lambda x: dict(x=x.detach()[None].requires_grad_(x.requires_grad)),
    "other strides": lambda x: dict(x=transposed(x.requires_grad, x.device)),
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


def test_shapes_and_strides_have_plans_of_their_own(call, ways):
    """Each is right after the others, whatever they have in common."""
    shapes = [(100,), (50, 2), (2, 50), (1, 100), (100, 1), (10, 10)]
    inputs = [torch.randn(*shape, device=call.device, requires_grad=True) for shape in shapes]
    inputs += [transposed(True, call.device)]
    for x in 4 * inputs:
        call(x=x)
    assert all(ways[-len(inputs) :])


@triton.jit
def optional(x_ptr, y_ptr, s, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    if s is not None:
        x *= s
    tl.store(y_ptr + i, x)


def test_nothing_for_a_number(differentiable, device, ways):
    kernel, x = differentiable(optional), torch.randn(16, device=device, requires_grad=True)
    for s in (2.0, None, False, 3.0, None) * 3:
        y = torch.empty_like(x)
        kernel[(1,)](x, y, s, BLOCK=16)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        torch.testing.assert_close(gradient, torch.full_like(x, 1 if s is None else float(s)))
    assert all(ways[-5:])


def test_the_same_under_other_names(call, ways):
    """Equal numbers of other types are other constants."""
    call.known(ways)
    kernel, x = call.kernel, call.x
    y = torch.empty_like(x)
    for n, k in ((x.numel(), True), (x.numel(), 1), (x.numel(), 1.0)):
        kernel[(2,)](x, y, n, k, 0.0, "positive", tl.float32, BLOCK=64)
        torch.testing.assert_close(y, x * x)


REFUSED = {
    "too many": lambda given: ((*given, 5), {}),
    "too few": lambda given: (given[:-1], {}),
    "twice": lambda given: (given, dict(n=100)),
    "no option": lambda given: (given, dict(m=1)),
}


@pytest.mark.parametrize("how", REFUSED)
def test_what_triton_refuses(call, ways, how):
    x = call.x.detach()
    given = x, torch.empty_like(x), 100, 3, 0.5, "positive", tl.float32, 64
    for _ in range(3):
        call.kernel[(2,)](*given)
    assert ways[-1]
    args, kwargs = REFUSED[how](given)
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
        assert not call.is_known()
    assert call.is_known() and call() is before


def test_hooks_before_the_run(call, ways):
    call.known(ways)
    seen = []
    scaled.add_pre_run_hook(lambda *args, **kwargs: seen.append(kwargs["k"]))
    try:
        assert not call.is_known()
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
    asked = []

    def hook(*given):
        asked.append(given)
        return "key", "hash"

    monkeypatch.setattr(knobs.runtime, "add_stages_inspection_hook", hook)
    is_known = call.is_known()
    with contextlib.suppress(Exception):  # What a hook returns differs between Tritons.
        scaled.run(call.x, call.x, 100, **call.given, BLOCK=64, grid=(1,), warmup=True)
    # Triton 3.6 asks when it compiles.
    assert is_known is not bool(asked)
    for _ in range(3):
        with contextlib.suppress(Exception):
            call(k=5)
    assert not asked or not call.is_known(k=5)


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
    (cache,) = [c[0] for c in scaled.device_caches.values() if before in c[0].values()]
    (name,) = [name for name, kernel in cache.items() if kernel is before]
    cache.pop(name)
    assert not call.is_known()
    assert call() is not before
    scaled.device_caches.clear()
    assert not call.is_known()
    assert call.known(ways) is not before


def test_another_device_number(call, ways, monkeypatch):
    """Triton keeps kernels by it; on the CPU, it says how they are compiled."""
    call.known(ways)
    driver = type(triton.runtime.driver.active)
    if driver.__name__ != "CPUDriver":
        pytest.skip("a GPU's number cannot be set")
    monkeypatch.setattr(driver, "get_current_device", lambda self: -77)
    assert not call.is_known()


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
    find = inspect.unwrap(known.Known.find)
    monkeypatch.setitem(with_global.fn.__globals__, "FACTOR", tl.constexpr(5))
    assert find(kernel._known, (x, torch.empty_like(x)), {"K": 2}) is None
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


FACTOR_OF_RULE = tl.constexpr(4)


@triton.jit
def by_global(dy, x, y):
    return FACTOR_OF_RULE * dy


def test_globals_of_rules(differentiable, device, ways, own_rules, monkeypatch):
    """A rule whose globals have changed is an error, also where the launch was known."""
    register_vjp(by_global, asm="add.f32 $0, $1, 0f00000000;")
    kernel, x = differentiable(with_assembly), torch.randn(32, device=device, requires_grad=True)

    def gradient():
        y = torch.empty_like(x)
        kernel[(1,)](x, y)
        return torch.autograd.grad(y.sum(), x)[0][0].item()

    for _ in range(4):
        assert gradient() == 4
    with monkeypatch.context() as patch:
        patch.setitem(by_global.fn.__globals__, "FACTOR_OF_RULE", tl.constexpr(5))
        with pytest.raises(RuntimeError, match="FACTOR_OF_RULE has changed"):
            gradient()
    assert gradient() == 4


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


def test_a_leaf_like_what_was_written_before(call, ways):
    """What is written in place may have a history, but may be no leaf."""
    x = call.x.requires_grad_()
    for _ in range(4):
        y = torch.ones(100, device=x.device, requires_grad=True) * 2
        call.kernel[(2,)](x, y, 100, **call.given, BLOCK=64)
    leaf = torch.ones(100, device=x.device, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        call.kernel[(2,)](x, leaf, 100, **call.given, BLOCK=64)
    assert (leaf == 1).all()


def test_a_view_after_a_tensor(call, ways):
    """The tensor that a view is of gets the history, too."""
    x = call.x.requires_grad_()
    call.known(ways)
    base = torch.empty(100, device=x.device)
    call.kernel[(2,)](x, base.view(100), 100, **call.given, BLOCK=64)
    (gradient,) = torch.autograd.grad(base.sum(), x)
    torch.testing.assert_close(gradient, 6 * x.detach() + 0.5)


def test_an_output_that_is_an_input(differentiable, device, ways):
    """The backward reads what the launch overwrites: it is copied before."""
    kernel = differentiable(product)
    x = torch.randn(64, device=device, requires_grad=True)
    for _ in range(4):
        w = torch.randn(64, device=device)
        kernel[(1,)](x, w, torch.empty_like(w), BLOCK=64)
    assert ways[-1]
    before = w.clone()
    kernel[(1,)](x, w, w, BLOCK=64)
    (gradient,) = torch.autograd.grad(w.sum(), x)
    torch.testing.assert_close(gradient, before)


def test_inputs_of_other_lengths(differentiable, device, ways):
    """A gradient has the length of its tensor, though the kernel sees none."""
    kernel = differentiable(spread)
    index = torch.arange(64, dtype=torch.int32, device=device)
    for size in (100, 64, 80) * 4:
        x, y = torch.randn(size, device=device, requires_grad=True), torch.empty(64, device=device)
        kernel[(1,)](x, index, y, 64, BLOCK=64)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        torch.testing.assert_close(gradient, (torch.arange(size, device=device) < 64).float())
    assert all(ways[-3:])
    kernel, w = differentiable(product), torch.randn(64, device=device)
    for size in (100, 64, 80) * 4:
        x, y = torch.randn(size, device=device, requires_grad=True), torch.empty(64, device=device)
        kernel[(1,)](x, w, y, BLOCK=64)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        assert gradient.shape == x.shape
        torch.testing.assert_close(gradient[:64], w)
    assert all(ways[-3:])


@triton.jit
def neighbors(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i - 1, mask=i < n)
    tl.store(y_ptr + i, x * x, mask=i < n)


def test_an_input_beside_the_output(differentiable, device, ways):
    """The same layouts, in one storage and in two."""

    def parts(together):
        rooms = [torch.rand(128, device=device) + 1 for _ in range(2 - together)]
        x, y = (
            torch.empty(0, device=device).set_(room.untyped_storage(), first, (64,), (1,))
            for room, first in zip((rooms[0], rooms[-1]), (64, 0), strict=True)
        )
        return x.requires_grad_(), y

    def outcome(kernel, together):
        x, y = parts(together)
        before = rooms = x.detach().clone()
        try:
            kernel[(1,)](x, y, 64, BLOCK=64)
            return torch.autograd.grad(y.sum(), x)[0] / before - 2 * (rooms == before)
        except (ArgumentError, AutodiffError) as error:
            return type(error)

    kernel = differentiable(neighbors)
    for _ in range(4):
        outcome(kernel, False)
    fresh, found = outcome(differentiable(neighbors), True), outcome(kernel, True)
    assert type(found) is type(fresh)
    if isinstance(fresh, torch.Tensor):
        torch.testing.assert_close(found[:-1], fresh[:-1])


@triton.jit
def converted(x_ptr, y_ptr, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i).to(KIND).to(tl.float32))


def test_types_that_are_made_anew(differentiable, device, ways):
    """A constant is what it says, wherever it lies."""
    kernel, x = differentiable(converted), torch.randn(16, device=device)
    for n in range(60):
        kind, y = tl.dtype("fp16" if n % 2 else "fp32"), torch.empty_like(x)
        kernel[(1,)](x, y, KIND=kind, BLOCK=16)
        torch.testing.assert_close(y, x.half().float() if n % 2 else x, rtol=0, atol=0)
        del kind
    assert all(ways[-20:])


@pytest.mark.parametrize("dtype", ["int1", "int4", "uint3", "uint8", "bool"])
def test_short_integers(differentiable, device, ways, dtype):
    """For DLPack they are bytes like others."""
    kernel, y = differentiable(converted), torch.empty(16, device=device)
    for _ in range(4):
        kernel[(1,)](torch.ones(16, dtype=torch.int8, device=device), y, tl.float32, BLOCK=16)
    assert ways[-1]
    other = torch.ones(16, dtype=torch.int8, device=device).view(getattr(torch, dtype))
    find = inspect.unwrap(known.Known.find)
    assert find(kernel._known, (other, y, tl.float32), {"BLOCK": 16}) is None


@triton.jit
def by_place(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n))


def test_arguments_that_python_refuses(differentiable, device, ways):
    kernel, x = differentiable(by_place), torch.randn(16, device=device)
    y = torch.empty_like(x)
    for _ in range(4):
        kernel[(1,)](x, y, 16, BLOCK=16)
    assert ways[-1]
    for args, kwargs in (
        ((x, y, 16), dict(n=16, BLOCK=16)),
        ((x, y, 16), dict(x_ptr=x, BLOCK=16)),
        ((x, y, 16, 16), dict(BLOCK=16)),
        ((x, y), dict(BLOCK=16)),
        ((x, y, 16), dict(BLOCK=16, grid=(1,))),
    ):
        assert kernel._known.key(args, kwargs) is None or "grid" in kwargs
        with pytest.raises((TypeError, ArgumentError)):
            kernel[(1,)](*args, **kwargs)


@triton.jit
def by_name(x_ptr, y_ptr, n, *, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n))


def test_parameters_without_a_place(differentiable, device, ways):
    kernel, x = differentiable(by_name), torch.randn(16, device=device)
    y = torch.empty_like(x)
    try:
        for _ in range(4):
            kernel[(1,)](x, y, 16, BLOCK=16)
    except triton.CompilationError:
        pytest.skip("this Triton has none")
    assert ways[-1] and kernel._known.key((x, y, 16, 16), {}) is None
    with pytest.raises((TypeError, ArgumentError)):
        kernel[(1,)](x, y, 16, 16)


def test_debugging_of_one_function(call, ways):
    call.known(ways)
    scaled.debug = True
    try:
        assert not call.is_known()
    finally:
        scaled.debug = None
    assert call.is_known()


def test_another_way_to_launch(call, ways, monkeypatch):
    """Somebody may replace Triton's property."""
    call.known(ways)
    compiled = triton.compiler.CompiledKernel
    before = compiled.run
    with monkeypatch.context() as patch:
        patch.setattr(compiled, "run", property(lambda kernel: before.fget(kernel)))
        assert not call.is_known()
        call.known(ways)
    assert not call.is_known()
    call.known(ways)


def test_hooks_that_count(call, ways, monkeypatch):
    """A hook may have an attribute like that of Triton's chains."""

    class Counter:
        calls = 0

        def __call__(self, metadata):
            self.calls += 1

    for wanted in (False, True):
        call.x.requires_grad_(wanted)
        call.known(ways)
        with monkeypatch.context() as patch:
            hook = Counter()
            patch.setattr(knobs.runtime, "launch_enter_hook", hook)
            call()
            assert hook.calls == 1 + wanted  # and the backward's


def test_grids_of_hooks(differentiable, device, ways, monkeypatch):
    """What a kernel says of its launches gets the grid that was given."""
    grids = []

    def described(grid, metadata, arguments):
        grids.append(grid)
        return {"name": "described"}

    function = triton.jit(launch_metadata=described)(spread.fn)
    kernel, x = differentiable(function), torch.randn(64, device=device)
    index = torch.zeros(64, dtype=torch.int32, device=device)
    monkeypatch.setattr(knobs.runtime, "launch_enter_hook", lambda metadata: metadata.get())
    for _ in range(4):
        kernel[(1,)](x, index, torch.empty_like(x), 64, BLOCK=64)
    assert grids == 4 * [(1,)]


def test_grid_functions_that_change_arguments(call, ways):
    call.x.requires_grad_(False)
    call.known(ways)
    outputs = []
    for find in (True, False):
        kernel = call.kernel if find else type(call.kernel)(scaled)
        y = torch.zeros_like(call.x)
        kernel[lambda meta: (meta.__setitem__("n", 3), (2,))[1]](
            call.x, y, 100, **call.given, BLOCK=64
        )
        outputs.append(y)
    assert torch.equal(*outputs)


def test_grid_functions_run_without_gradients(call, ways):
    call.x.requires_grad_()
    call.known(ways)
    seen = []
    call(grid=lambda meta: seen.append(torch.is_grad_enabled()) or (2,))
    assert ways[-1] and seen == [False]


@triton.jit
def flagged(x_ptr, y_ptr, FLAG: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    if FLAG is None:
        x *= 5
    elif FLAG:
        x *= 3
    tl.store(y_ptr + i, x)


def test_constant_truth(differentiable, device, ways):
    kernel, x = differentiable(flagged), torch.randn(16, device=device, requires_grad=True)
    for flag in (True, False, None, 1, 0) * 4:
        y = torch.empty_like(x)
        kernel[(1,)](x, y, flag, BLOCK=16)
        factor = 5 if flag is None else 3 if flag else 1
        torch.testing.assert_close(y.detach(), factor * x.detach())
    assert all(ways[-5:])


class Modes:
    """Ways to look at PyTorch's operations."""

    @staticmethod
    def dispatch(call):
        from torch.utils._python_dispatch import TorchDispatchMode

        class Looking(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                return function(*args, **(kwargs or {}))

        with Looking():
            return call.is_known()

    @staticmethod
    def func(call):
        found = []
        torch.func.grad(lambda t: (found.append(call.is_known()), t.sum())[1])(torch.ones(2))
        return found[0]

    @staticmethod
    def tangents(call):
        with torch.autograd.forward_ad.dual_level():
            # Without a tangent, there is nothing to see.
            assert call.is_known()
            call.x = torch.autograd.forward_ad.make_dual(call.x, torch.ones_like(call.x))
            return call.is_known()

    @staticmethod
    def jit(call):
        found = []
        function = lambda t: (found.append(call.is_known()), t + 1)[1]  # noqa: E731
        torch.jit.trace(function, torch.ones(2), check_trace=False)
        return found[0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["dispatch", "func", "tangents", "jit"])
def test_somebody_looks(call, ways, mode):
    call.x = call.x.detach()
    call.known(ways)
    assert call.is_known() and not getattr(Modes, mode)(call)


def test_kernels_that_make_pointers(differentiable, device):
    @triton.jit
    def kernel(address, y_ptr):
        i = tl.arange(0, 16)
        # An address may be a short integer.
        x_ptr = address.to(tl.int64).to(tl.pointer_type(tl.float32))
        tl.store(y_ptr + i, tl.load(x_ptr + i))

    launched, x = differentiable(kernel), torch.randn(16, device=device)
    y = torch.empty_like(x)
    with torch.no_grad():
        for _ in range(4):
            launched[(1,)](x.data_ptr(), y)
    torch.testing.assert_close(y, x)
    assert launched._known.find((x.data_ptr(), y), {}) is None


def test_the_last_writes(monkeypatch):
    """No more than so many are noted."""
    from triton.backends.autodiff.launching import plain_launches

    writes, launched, noted = {}, [], []
    stored = (plain_launches.Pointer("x", (0,), True, 0),)
    effects = plain_launches.Effects("kernel", (), stored, (9,), 11)
    monkeypatch.setattr(plain_launches, "writes", writes)
    monkeypatch.setattr(plain_launches, "MOST_WRITES", 2)
    monkeypatch.setattr(plain_launches, "effects_of", lambda kernel: effects)
    monkeypatch.setattr(plain_launches, "_note_each", lambda *given: noted.append(given))
    observed = plain_launches._observed(None, lambda *args: launched.append(args))

    def launch(x, y, z, *args):
        observed(x, y, z, *6 * [None], *args)

    tensors = [torch.ones(4) for _ in range(4)]
    for n, tensor in enumerate(tensors):
        launch(1, 1, 1, tensor, n)
        assert tensor._version == 1 and len(writes) <= 2
    launch(1, 0, 1, tensors[0], 0)
    launch(1, 1, 1, tensors[0])
    assert tensors[0]._version == 1 and len(launched) == 6 and not noted
    launch(1, 1, 1, 7, 0)
    assert noted == [(effects, stored, (7, 0))]


def test_upstream_gradients_that_look_alike(device):
    """What does not fit is copied, whatever came before."""
    from triton.backends.autodiff.storage.memory import Span, laying_out

    lay = laying_out((16,), (1,), torch.float32, Span(0, 16), torch.device(device))
    first = torch.randn(16, device=device)
    assert lay(first) is first and lay(first) is first
    beside_it = torch.randn(17, device=device)[1:]
    others = {
        "not aligned": beside_it,
        "negated": torch._neg_view(first),
        "of integers": torch.arange(16, dtype=torch.int32, device=device),
        "half": first.half(),
        "with gaps": torch.randn(32, device=device)[::2],
        "expanded": torch.randn(1, device=device).expand(16),
        "zero": torch._efficientzerotensor(16, device=device),
    }
    for name, upstream in others.items():
        laid_out = lay(upstream)
        assert laid_out is not upstream, name
        assert laid_out.data_ptr() % 16 == 0 and laid_out.stride() == (1,), name
        torch.testing.assert_close(laid_out, (upstream + 0).float(), msg=name)
    assert lay(first) is first and (lay(None) == 0).all()


@triton.jit
def two_outputs(x_ptr, y_ptr, z_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, x * x)
    tl.store(z_ptr + i, tl.exp(x))


def test_gradients_that_nobody_expected(differentiable, device, ways):
    """After a backward for one output, launches are planned for that one."""
    kernel, x = differentiable(two_outputs), torch.randn(16, device=device, requires_grad=True)

    def launch():
        y, z = torch.empty_like(x), torch.empty_like(x)
        kernel[(1,)](x, y, z, BLOCK=16)
        return y, z

    for _ in range(4):
        launch()
    _, before, *_ = kernel._launches[-1]
    assert ways[-1]
    before.state.expect(before.wanted, (1,))
    launch()
    assert not ways[-1]
    for _ in range(3):
        y, z = launch()
    assert ways[-1] and kernel._launches[-1][1] is not before
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient, 2 * x.detach())
    y, z = launch()
    (gradient,) = torch.autograd.grad((y + z).sum(), x)
    torch.testing.assert_close(gradient, 2 * x.detach() + x.detach().exp())


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
        y = torch.empty_like(call.x)
        call.kernel[(2,)](x, y, 100, **call.given, BLOCK=64)
        value, tangent = forward.unpack_dual(y)
    # By a gradient, as elements do not depend on each other.
    leaf = call.x.detach().requires_grad_()
    plain = torch.empty_like(leaf)
    call.kernel[(2,)](leaf, plain, 100, **call.given, BLOCK=64)
    torch.testing.assert_close(value, plain.detach())
    (gradient,) = torch.autograd.grad(plain.sum(), leaf)
    torch.testing.assert_close(tangent, gradient)
    call.known(ways)


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
    call.x.requires_grad_()
    call.known(ways)
    inner, depth = [], []

    def hook(metadata):
        if not depth:
            depth.append(0)
            inner.append(call())

    monkeypatch.setattr(knobs.runtime, "launch_enter_hook", hook)
    call()
    assert inner and ways[-1]


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
    torch.testing.assert_close(y, wanted.detach().float())
    (right,) = torch.autograd.grad(wanted, exact, u.double())
    torch.testing.assert_close(gradient, right.float())


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
