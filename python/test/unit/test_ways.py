"""One launch, carried out by an eager launch, by an exported module, and in a graph.

They have one meaning. Where they differ is a row of a table in docs/host-program.md.
"""

import re
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from exporting import module_at
from gradients import random_tensor
from torch.autograd.graph import saved_tensors_hooks
from triton.backends.autodiff import autodiff
from triton_autodiff.errors import AutodiffError
from triton_autodiff.programs.backward import Backward

pytestmark = pytest.mark.usefixtures("needs_gradients")
PAGE = Path(__file__).parents[3] / "docs" / "host-program.md"
N = 16


@triton.jit
def rows_kernel(x_ptr, w_ptr, y_ptr, stride, N: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, N)
    x, w = tl.load(x_ptr + row * stride + i), tl.load(w_ptr + row * N + i)
    tl.store(y_ptr + row * N + i, w * tl.sin(x))


def rows(kernel, x, w):
    y = torch.empty_like(w)
    kernel[(len(w),)](x, w, y, x.stride(0), N=N)
    return y


def rows_in_place(kernel, x, w):
    kernel[(len(w),)](x, w, w, x.stride(0), N=N)
    return w


@triton.jit
def next_kernel(x_ptr, w_ptr, y_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, after = tl.load(x_ptr + i), tl.load(x_ptr + i + 1)
    tl.store(y_ptr + i, tl.load(w_ptr + i) * tl.sin(x * after))


def following(kernel, x, w):
    y = torch.empty_like(w)
    kernel[(1,)](x, w, y, N=N)
    return y


@triton.jit
def two_kernel(x_ptr, y_ptr, z_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, tl.sin(x))
    tl.store(z_ptr + i, x * tl.cos(x))


def two(kernel, x):
    y, z = torch.empty_like(x), torch.empty_like(x)
    kernel[(1,)](x, y, z, N=N)
    return y, z


@triton.jit
def iterated_kernel(x_ptr, n_ptr, y_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, n = tl.load(x_ptr + i), tl.load(n_ptr)
    while n > 0:
        x = tl.sin(x) + 0.1
        n -= 1
    tl.store(y_ptr + i, x)


def iterated(kernel, x, n):
    y = torch.empty_like(x)
    kernel[(1,)](x, n, y, N=N)
    return y


def exported(op, folder, *args):
    path = op.export(folder / "exported.py", *args)
    return getattr(module_at(path), op.stub.__name__)


def graphed(op):
    torch._dynamo.reset()
    return torch.compile(lambda *args: op(*args), backend="aot_eager", fullgraph=True)


def same(function, right, *args):
    """Assert that gradients of the sum of sines of a result are right."""
    wanted = [a for a in args if torch.is_tensor(a) and a.requires_grad]
    found = torch.autograd.grad(function(*args).sin().sum(), wanted)
    expected = torch.autograd.grad(right(*args).sin().sum(), wanted)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.fixture
def row():
    """Checks that the page has a row."""
    page = PAGE.read_text(encoding="utf-8")
    return lambda begin: re.search(rf"^\| {begin}", page, re.M) or pytest.fail("no such row")


def test_another_plan(device, tmp_path, row):
    row("a launch for which the plan is not right")
    op = autodiff(rows_kernel, rows)
    x, w = (random_tensor(4, N, device=device) for _ in range(2))
    module, graph = exported(op, tmp_path, x, w), graphed(op)
    for function in (op, module, graph):
        same(function, lambda x, w: w * x.sin(), x, w)
    one = random_tensor(1, N, device=device)
    repeated = one.expand(4, N)
    for function in (op, graph):
        same(lambda x, w, f=function: f(x.expand(4, N), w), lambda x, w: w * x.sin(), one, w)
    with pytest.raises(AssertionError):
        module(repeated, w)


def test_elements_around(device, tmp_path, row):
    row("elements around a tensor")
    op = autodiff(next_kernel, following)
    base, w = random_tensor(3 * N, device=device), random_tensor(N, device=device)

    def part(function):
        return lambda base, w: function((base * 1)[N:][:N], w)

    def right(base, w):
        return w * (base[N:][:N] * base[N + 1 :][:N]).sin()

    same(part(op), right, base, w)
    with pytest.raises(AutodiffError, match="is a part of a larger tensor"):
        op.export(tmp_path / "no.py", (base * 1)[N:][:N], w)
    module = exported(op, tmp_path, base, w)
    with pytest.raises(AssertionError):
        part(module)(base, w)
    with pytest.raises(Exception, match="reads around it"):
        same(part(graphed(op)), right, base, w)


def test_hooks_on_saved_tensors(device, tmp_path, row):
    row("hooks on saved tensors")
    op = autodiff(next_kernel, following)
    base, w = torch.randn(3 * N, device=device), random_tensor(N, device=device)
    x = base[N:][:N]
    product = x * base[N + 1 :][:N]
    module = exported(op, tmp_path, x, w)
    for function in (op, module):
        with saved_tensors_hooks(torch.clone, lambda t: t):
            y = function(x, w)
        if function is op:
            found = torch.autograd.grad(y.sum(), w)[0]
            torch.testing.assert_close(found, product.sin())
            continue
        with pytest.raises(AssertionError, match="keeps what is around a tensor"):
            y.sum().backward()


def test_shared_memory(device, tmp_path, row):
    row("two tensors that share memory")
    op, given = autodiff(rows_kernel, rows), autodiff(rows_kernel, rows_in_place)
    x, w = (random_tensor(4, N, device=device) for _ in range(2))
    module = module_at(op.export(tmp_path / "apart.py", x, w)).rows_kernel
    copied = (w * 1).requires_grad_()
    with pytest.raises(AssertionError, match="share memory"):
        module[(4,)](x, copied, copied, N, N=N)
    for function in (given, graphed(given)):
        same(lambda x, w, f=function: f(x, w * 1), lambda x, w: w * x.sin(), x, w)


def test_gradients_that_did_not_come_before(device, tmp_path, row):
    row("a gradient of an output that had none before")
    op = autodiff(two_kernel, two)
    for _ in range(3):
        x = random_tensor(N, device=device)
        op(x)[0].sum().backward()
    module = exported(op, tmp_path, x)
    for function in (op, graphed(op)):
        same(lambda x, f=function: f(x)[1], lambda x: x * x.cos(), x)
    with pytest.raises(AssertionError, match="for which nothing was exported"):
        module(x)[1].sum().backward()


def test_tapes(device, tmp_path, row, monkeypatch):
    row("tapes that get too long")
    op = autodiff(iterated_kernel, iterated, tape_limit=64 * N)
    x = random_tensor(N, device=device)
    few, many = (torch.tensor([n], dtype=torch.int32, device=device) for n in (3, 300))
    module = exported(op, tmp_path, x, few)

    def right(x, n):
        for _ in range(int(n)):
            x = x.sin() + 0.1
        return x

    ran, run = [], Backward.run

    def note(backward, *given):
        ran.append({bound.executable.kernel.digest for bound in backward.launches})
        return run(backward, *given)

    monkeypatch.setattr(Backward, "run", note)
    kinds = []
    for n in (few, many):
        same(module, right, x, n)
        same(op, right, x, n)
        kinds.append(ran.pop())
    assert kinds[0] != kinds[1]
