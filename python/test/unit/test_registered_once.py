"""A registered stub runs once: whatever it draws or counts, its gradient belongs to that run."""

import contextlib
import copy
import gc
import os
import random
import subprocess
import sys
import weakref

import numpy
import pytest
import torch
import triton
import triton.language as tl
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode
from triton_autodiff import AutodiffError, autodiff, check
from triton_autodiff.operators import histories

Tensor = torch.Tensor


pytestmark = pytest.mark.usefixtures("needs_gradients")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


@triton.jit
def product_kernel(x_ptr, w_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, x * w * factor, mask=i < n)


@triton.jit
def dropout_kernel(x_ptr, seed_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(tl.load(seed_ptr), i) > 0.5
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, tl.where(keep, 2 * x, 0.0), mask=i < n)


def launch(kernel, x, w, factor):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, w, y, x.numel(), factor, BLOCK=64)
    return y


calls: list = []
buffer = torch.ones(4)
generator = torch.Generator()


def of_python(kernel, x: Tensor, w: Tensor) -> Tensor:
    calls.append(1)
    return launch(kernel, x, w, 1 + random.random())


def of_numpy(kernel, x: Tensor, w: Tensor) -> Tensor:
    calls.append(1)
    return launch(kernel, x, w, 1 + float(numpy.random.rand()))


def of_torch(kernel, x: Tensor, w: Tensor) -> Tensor:
    calls.append(1)
    return launch(kernel, x, w * torch.rand_like(w), 2.0).sin()


def of_generator(kernel, x: Tensor, w: Tensor) -> Tensor:
    calls.append(1)
    return launch(kernel, x, w * torch.rand(w.shape, generator=generator).to(w), 2.0)


def counted(kernel, x: Tensor, w: Tensor) -> Tensor:
    calls.append(1)
    return launch(kernel, x, w, float(len(calls)))


def of_a_buffer(kernel, x: Tensor, w: Tensor) -> Tensor:
    calls.append(1)
    if type(x) is Tensor and x.device.type != "meta":
        buffer.mul_(1.5)
    return launch(kernel, x, w, float(buffer[0]) if type(x) is Tensor else 1.0)


def with_autocast(kernel, x: Tensor, w: Tensor) -> Tensor:
    calls.append(1)
    scores = x.reshape(-1, 10) @ w.reshape(-1, 10).t()
    return launch(kernel, x, w, 1.0) * scores.sum().float()


def of_views(kernel, x: Tensor, w: Tensor) -> Tensor:
    """What autograd saves are views of arguments, of results, of each other, and expanded."""
    calls.append(1)
    rows = x.reshape(-1, 10)
    mixed = rows.t() @ (rows * w.reshape(-1, 10)[:, :1]).sin()
    y = launch(kernel, x[: mixed.numel()].clone(), mixed.flatten(), 0.1).exp()
    return y * x[1:2] * (y.view(10, 10) @ mixed).flatten()


STUBS = [
    of_python,
    of_numpy,
    of_torch,
    of_generator,
    counted,
    of_a_buffer,
    with_autocast,
    of_views,
]
OPERATIONS = {stub.__name__: autodiff(product_kernel, stub) for stub in STUBS}
REGISTERED = {n: op.register(f"autodiff_test::once_{n}") for n, op in OPERATIONS.items()}


def inputs(device, n=200):
    return [torch.randn(n, device=device, requires_grad=True) for _ in range(2)]


def results(call, name, x, w):
    """What a call gives after the same preparations: the result, the gradients, and how often the
    stub has run.
    """
    torch.manual_seed(1)
    random.seed(1)
    numpy.random.seed(1)
    generator.manual_seed(1)
    buffer.fill_(1)
    calls.clear()
    autocast = name == "with_autocast"
    with torch.autocast(x.device.type, torch.bfloat16) if autocast else contextlib.nullcontext():
        y = call(x, w)
    found = torch.autograd.grad(y.float().square().sum(), (x, w))
    return y.detach(), *found, len(calls)


@pytest.mark.parametrize("name", REGISTERED)
def test_once(device, name):
    x, w = inputs(device)
    expected = results(OPERATIONS[name], name, x, w)
    found = results(REGISTERED[name], name, x, w)
    assert found[3] == 1
    torch.testing.assert_close(found[:3], expected[:3], rtol=0, atol=0)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", [n for n in REGISTERED if n != "of_a_buffer"])
def test_once_in_a_graph(device, name, backend):
    x, w = inputs(device)
    compiled = torch.compile(REGISTERED[name], fullgraph=True, backend=backend)
    results(compiled, name, x, w)
    found = results(compiled, name, x, w)
    assert found[3] == 1
    expected = results(OPERATIONS[name], name, x, w)
    torch.testing.assert_close(found[:3], expected[:3], rtol=1e-4, atol=1e-4)


def dropout(kernel, x: Tensor) -> Tensor:
    calls.append(1)
    seed = torch.randint(0, 2**31 - 1, (1,), device=x.device)
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, seed, y, x.numel(), BLOCK=64)
    return y


dropped = autodiff(dropout_kernel, dropout).register("autodiff_test::once_dropout")


@pytest.mark.parametrize("backend", [None, "aot_eager", "inductor"])
def test_a_mask_is_that_of_the_forward(device, backend):
    op = dropped if backend is None else torch.compile(dropped, fullgraph=True, backend=backend)
    x = torch.randn(1000, device=device, requires_grad=True)
    for _ in range(3):
        y = op(x)
        (g,) = torch.autograd.grad(y.sum(), x)
        assert torch.equal(y != 0, g != 0) and 300 < (g != 0).sum() < 700
    if device == "cpu":
        assert check(dropped, (x,))
    else:
        with pytest.raises(AutodiffError, match="draws random numbers on cuda:0"):
            check(dropped, (x,))
    found = torch.library.opcheck(dropped, (x,), raise_exception=False)
    del found["test_aot_dispatch_dynamic"]  # It compares two runs, which draw other numbers.
    assert set(found.values()) == {"SUCCESS"}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("grad", [True, False])
def test_equal_calls_are_two(device, backend, grad):
    x = torch.randn(1000, device=device, requires_grad=True)
    compiled = torch.compile(lambda x: (dropped(x), dropped(x)), fullgraph=True, backend=backend)
    with torch.set_grad_enabled(grad):
        compiled(x)
        calls.clear()
        one, other = compiled(x)
    assert len(calls) == 2 and not torch.equal(one, other)


def test_opcheck(device):
    x, w = inputs(device)
    for name in ("of_views", "with_autocast"):
        found = torch.library.opcheck(REGISTERED[name], (x, w))
        assert set(found.values()) == {"SUCCESS"}


def test_runs_for_shapes_draw_nothing(device):
    states = random.getstate(), torch.get_rng_state(), numpy.random.get_state()[1].tolist()
    x = torch.empty(20, device="meta")
    for name in ("of_python", "of_numpy", "of_torch"):
        assert REGISTERED[name](x, x).shape == x.shape
    assert states[0] == random.getstate() and states[2] == numpy.random.get_state()[1].tolist()
    assert torch.equal(states[1], torch.get_rng_state())


def test_batches(device):
    x, w = inputs(device, 5)
    calls.clear()
    y = torch.func.vmap(REGISTERED["counted"], (0, None))(torch.stack([x, x]), w)
    assert len(calls) == 2
    torch.testing.assert_close(y, torch.stack([x * w, 2 * x * w]))


def test_what_is_kept(device, operator_name):
    """Neither arguments nor results that the gradient does not read; nothing after it is freed."""

    def exponential(kernel, x: Tensor, w: Tensor) -> Tensor:
        return launch(kernel, x, w, 1.0).exp()

    op = autodiff(product_kernel, exponential).register(operator_name("exponential"))
    leaf, w = torch.randn(50, device=device, requires_grad=True), torch.rand(50, device=device)
    gc.collect()
    before = len(histories._histories)
    x = leaf * 1
    seen = weakref.ref(x)
    y = op(x, w)
    del x
    gc.collect()
    assert seen() is None
    for _ in range(2):
        y.sum().backward(retain_graph=True)
    truth = 2 * w.double() * (leaf.double() * w.double()).exp()
    torch.testing.assert_close(leaf.grad.double(), truth.detach(), rtol=1e-5, atol=1e-5)
    op(leaf, w)  # The latest history is kept.
    del y
    gc.collect()
    assert len(histories._histories) <= before + 1


class _Tripled(torch.autograd.Function):
    """A node that is written in Python, and sees what it saves."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 3 * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 3 * gradient * torch.ones_like(x)


def _end_in_a_launch(kernel, x: Tensor, w: Tensor) -> Tensor:
    return launch(kernel, x, w, 6.0)


def _end_in_a_function(kernel, x: Tensor, w: Tensor) -> Tensor:
    return _Tripled.apply(launch(kernel, x, w, 2.0))


def _end_in_a_view(kernel, x: Tensor, w: Tensor) -> Tensor:
    y = torch.empty(2, x.numel(), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(x.numel(), 64),)](x, w, y[0], x.numel(), 6.0, BLOCK=64)
    return y[0].clone()


def _end_in_two(kernel, x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    return _Tripled.apply(launch(kernel, x, w, 1.0)), launch(kernel, w, x, 3.0)


@pytest.mark.parametrize(
    "stub", [_end_in_a_launch, _end_in_a_function, _end_in_a_view, _end_in_two]
)
def test_nodes_written_in_python_outlive_the_stub(device, stub, operator_name):
    """In PyTorch 2.11, such a node is gone with the result unless its edge owns it."""
    op = autodiff(product_kernel, stub).register(operator_name(stub.__name__))
    x, w = inputs(device)
    known = {*histories._histories}
    result = op(x, w)
    total = sum(result) if isinstance(result, tuple) else result
    (number,) = {*histories._histories} - known
    history = histories._histories[number]
    for edge in (*history.inputs, *history._outputs):
        assert edge.ownership_token is not None or not isinstance(edge.node, torch._C._FunctionBase)
    gc.collect()
    upstream = torch.randn_like(x)
    found = torch.autograd.grad(total, (x, w), upstream)
    for gradient, other in zip(found, (w, x), strict=True):
        torch.testing.assert_close(
            gradient.double(), 6 * other.detach().double() * upstream.double(), rtol=1e-5, atol=1e-5
        )


def test_changes_after_the_call_are_seen(device):
    x, w = inputs(device)
    plain = w.detach().clone()
    y = REGISTERED["counted"](x, plain)
    plain.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    y = REGISTERED["of_torch"](x, w)
    y.mul_(2).sum().backward()  # The sine reads what it was computed of, not its result.


def changed_inside(kernel, x: Tensor, w: Tensor) -> Tensor:
    y = launch(kernel, x, w, 1.0).exp()
    return y.mul_(2)


parameter = torch.randn(200, requires_grad=True)


def with_a_parameter(kernel, x: Tensor, w: Tensor) -> Tensor:
    return launch(kernel, x, w, 1.0) * parameter.to(x)


@pytest.mark.parametrize(
    ("stub", "message"),
    [
        (changed_inside, "changes a tensor of shape .* in place after a gradient needs it"),
        (with_a_parameter, "requires a gradient and is none of the arguments"),
    ],
)
def test_stubs_that_are_refused(device, stub, message, operator_name):
    op = autodiff(product_kernel, stub).register(operator_name(stub.__name__))
    with pytest.raises(AutodiffError, match=message):
        op(*inputs(device))


def test_tensors_by_name_are_refused_when_registered():
    op = autodiff(product_kernel, lambda kernel, x, *, w: launch(kernel, x, w, 1.0))
    with pytest.raises(AutodiffError, match="given by name only, 'w'"):
        op.register("autodiff_test::once_by_name", schema="(Tensor x, *, Tensor w) -> Tensor")


def test_batches_of_gradients_are_of_one_run(device):
    x, w = inputs(device, 3)
    eye = torch.eye(3, device=device)
    calls.clear()
    y = REGISTERED["counted"](x, w)
    for batched in (
        lambda: torch.autograd.grad(y, x, eye, is_grads_batched=True, retain_graph=True),
        lambda: torch.func.vmap(lambda g: torch.autograd.grad(y, x, g, retain_graph=True))(eye),
    ):
        torch.testing.assert_close(batched()[0], w.diag())
    assert len(calls) == 1


def test_checkpoints_draw_the_same_again(device):
    x, w = inputs(device)
    found = []
    for call in (REGISTERED["of_torch"], OPERATIONS["of_torch"]):
        torch.manual_seed(3)
        y = checkpoint(lambda x, call=call: call(x * 2, w).cos(), x, use_reentrant=False)
        found.append(torch.autograd.grad(y.sum(), (x, w)))
    torch.testing.assert_close(*found, rtol=0, atol=0)


def test_the_counter_of_operations_draws_nothing(device):
    x, w = inputs(device)
    expected = results(OPERATIONS["of_torch"], "", x, w)
    with FlopCounterMode(display=False):
        found = results(REGISTERED["of_torch"], "", x, w)
    torch.testing.assert_close(found[:3], expected[:3], rtol=0, atol=0)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_traced_with_its_gradient(device, mode):
    x, w = inputs(device)

    def gradient(x, w):
        return torch.autograd.grad(REGISTERED["of_views"](x, w).sum(), (x, w))

    graph = make_fx(gradient, tracing_mode=mode)(x, w)
    x, w = inputs(device)
    calls.clear()
    torch.testing.assert_close(graph(x, w), gradient(x, w))
    assert len(calls) == 2


def test_compiled_autograd(device):
    x, w = inputs(device)
    compiler = torch.compile(backend="aot_eager")
    with torch._dynamo.compiled_autograd._enable(compiler):
        for _ in range(3):
            x.grad = None
            REGISTERED["of_views"](x * 1, w).sum().backward()
    (expected,) = torch.autograd.grad(OPERATIONS["of_views"](x, w).sum(), x)
    torch.testing.assert_close(x.grad, expected)


def test_copies_are_the_same_operator():
    assert copy.deepcopy(dropped) is dropped


_PROGRAM = """
import sys, torch, triton, triton.language as tl
from triton_autodiff import autodiff

torch._inductor.config.compile_threads = 1


@triton.jit
def kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, KERNEL(tl.load(x_ptr + i)))


def stub(kernel, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = torch.empty_like(x)
    kernel[(1,)](x, y, BLOCK=32)
    return x.exp(), STUB


x = torch.randn(32, requires_grad=True)
op = torch.compile(autodiff(kernel, stub).register("autodiff_test::edited"), fullgraph=True)
results = op(x)
wanted = [y for y in results if y.requires_grad]
(found,) = torch.autograd.grad(sum(wanted).sum(), x)
torch.testing.assert_close(found, len(wanted) * x.exp().detach())
hits = torch._dynamo.utils.counters["aot_autograd"]["autograd_cache_hit"]
print(hits, *[y.requires_grad for y in results])
"""


@pytest.mark.slow
def test_graphs_of_what_has_been_edited_are_not_found(tmp_path):
    """PyTorch keeps compiled graphs in files, and knows operators by their names."""
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    program = tmp_path / "program.py"
    for kernel, stub, expected in [
        ("tl.exp", "y.detach()", "0 True False"),
        ("tl.exp", "y.detach()", "1 True False"),
        ("tl.exp", "y", "0 True True"),
        ("0.0 < ", "y", "0 True False"),
    ]:
        program.write_text(_PROGRAM.replace("KERNEL", kernel).replace("STUB", stub))
        done = subprocess.run(
            [sys.executable, program], env=environment, capture_output=True, text=True
        )
        assert done.stdout.strip() == expected, done.stderr
