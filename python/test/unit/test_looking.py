"""Every way to look at a derivative works for each kind of kernel.

Beside what is here, every way is tried on what other tests launch (conftest.py, looking.py), and on
random programs.
"""

import ast

import gradients
import looking
import pytest
import torch
import triton
import triton.language as tl
from kernels import normalization
from triton.backends.autodiff import AutodiffError, autodiff, differentiable
from triton.backends.autodiff.surface.kernel import DifferentiableKernel
from triton.backends.autodiff.surface.operation import Op


@pytest.fixture(autouse=True)
def needs_gradients():
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")


@triton.jit
def recurrence_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """It has a tape, or an augmented forward that saves the states."""
    columns = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + columns)
    h = tl.zeros([BLOCK], tl.float32)
    for t in range(n):
        h = tl.sin(h * w) + tl.load(x_ptr + t * BLOCK + columns)
        tl.store(y_ptr + t * BLOCK + columns, tl.exp(h) * 0.1)


@triton.jit
def segments_kernel(x_ptr, i_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(i_ptr + i, mask=i < n, other=0)
    tl.atomic_add(y_ptr + at, tl.exp(tl.load(x_ptr + i, mask=i < n, other=0.0)), mask=i < n)


@triton.jit
def product_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK, BLOCK], tl.float32)
    for k in range(0, n, BLOCK):
        x = tl.load(x_ptr + i[:, None] * n + k + i[None, :])
        w = tl.load(w_ptr + (k + i)[:, None] * BLOCK + i[None, :])
        total = tl.dot(x, w, total)
    tl.store(y_ptr + i[:, None] * BLOCK + i[None, :], tl.softmax(total))


@triton.jit
def count_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """It has no gradient, though it takes and returns floats."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, (x > 0).to(tl.float32), mask=i < n)


def normalized(kernel, x, w, b):
    y = torch.empty_like(x)
    rows, columns = x.shape
    kernel[(rows,)](x, w, b, y, columns, columns, columns, 1e-5, BLOCK=64)
    return y


def recurrent(kernel, x, w):
    y = torch.empty_like(x)
    kernel[(1,)](x, w, y, len(x), BLOCK=16)
    return y


def summed(kernel, x):
    y = torch.zeros(9, device=x.device)
    kernel[(2,)](x, torch.arange(50, device=x.device) % 9, y, 50, BLOCK=32)
    return y


def multiplied(kernel, x, w):
    y = torch.empty(16, 16, device=x.device)
    kernel[(1,)](x, w, y, 64, BLOCK=16)
    return y


def counted(kernel, x):
    y = torch.empty_like(x)
    kernel[(1,)](x, y, 50, BLOCK=64)
    return y


# A kernel, its stub and the shapes of its inputs.
KINDS = {
    "augmented forward": (normalization.layer_norm_kernel, normalized, (3, 50), (50,), (50,)),
    "recurrence": (recurrence_kernel, recurrent, (5, 16), (16,)),
    "atomics": (segments_kernel, summed, (50,)),
    "product": (product_kernel, multiplied, (16, 64), (64, 16)),
}
LOOKS = ("explain", "backward_ir", "backward_source", "backward_kernels", "jvp_source")


def test_there_are_no_other_ways():
    """What the two kinds of objects show is what is tried here."""
    own = {"run", "preview", "register", "shardings", "observer"}
    for kind in (DifferentiableKernel, Op):
        public = {name for name in vars(kind) if not name.startswith("_")}
        assert public - own == {*LOOKS, "export"}


@pytest.mark.parametrize("name", KINDS)
def test_ways_of_operations(device, name, tmp_path):
    """After a call, and for the arguments of one."""
    kernel, stub, *shapes = KINDS[name]
    inputs = [torch.randn(*shape, device=device, requires_grad=True) for shape in shapes]
    op = autodiff(kernel, stub)
    previews = [getattr(op, look)(*inputs) for look in LOOKS]
    op(*inputs)
    shown = [getattr(op, look)() for look in LOOKS]
    assert all(shown)
    assert previews[:3] == shown[:3] and previews[4] == shown[4]
    assert op.explain(verbose=True).startswith(shown[0])
    names = [node.name for node in ast.parse(shown[2]).body if isinstance(node, ast.FunctionDef)]
    assert names[-len(shown[3]) :] == list(shown[3])
    if device == "cpu":
        assert op.export(tmp_path / "exported.py").exists()
    assert not list(looking.failures(op.preview((), {})))


@pytest.mark.parametrize("name", KINDS)
def test_ways_of_kernels(device, name, tmp_path):
    """`op.kernel` is a differentiable kernel."""
    kernel, stub, *shapes = KINDS[name]
    inputs = [torch.randn(*shape, device=device, requires_grad=True) for shape in shapes]
    kernel = differentiable(kernel)
    stub(kernel, *inputs)
    assert all(getattr(kernel, look)() for look in LOOKS)
    if device == "cpu":
        assert kernel.export(tmp_path / "exported.py").exists()


def test_two_launches_of_one_kernel(device):
    """Each with an augmented forward, none of which is printed."""

    def twice(kernel, x, w, b):
        return normalized(kernel, normalized(kernel, x, w, b), w, b)

    op = autodiff(normalization.layer_norm_kernel, twice)
    inputs = [torch.randn(*s, device=device, requires_grad=True) for s in ((3, 50), (50,), (50,))]
    op(*inputs)
    assert not list(looking.failures(op.preview((), {})))


def test_without_a_gradient(device):
    """What is refused, is refused in words."""
    kernel = differentiable(count_kernel)
    x = torch.randn(50, device=device, requires_grad=True)
    counted(kernel, x)
    try:
        plans = kernel._plans((), {})
    except AutodiffError as error:
        assert "nothing to differentiate" in str(error)
    else:
        assert not list(looking.failures(plans))


@pytest.mark.parametrize("error", [KeyError("x"), IndexError("x"), AutodiffError("x")])
def test_what_fails_is_told(device, error, monkeypatch, tmp_path):
    """That a way fails is seen, whatever it raises."""
    from triton.backends.autodiff.printing import source

    def fail(*_, **__):
        raise error

    kernel = differentiable(recurrence_kernel)
    recurrent(
        kernel, *(torch.randn(*s, device=device, requires_grad=True) for s in ((5, 16), (16,)))
    )
    plans = kernel._plans((), {})
    # What was looked at in vain before, or in another run, counts for nothing here.
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    whole = source.docstring
    monkeypatch.setattr(source, "docstring", fail)
    assert {
        text.split(":")[0] for text in looking.failures(plans, ("source", "kernels", "ir"))
    } == {
        "source",
        "kernels",
    }
    looker, other = looking.Looker(), looking.Looker()
    looker.share(tmp_path)
    other.share(tmp_path)
    assert looker.look(plans) and not looker.look(plans), "each plan is looked at once"
    assert not other.look(plans), "by all processes together"
    assert looking.Looker().look(plans), "another run looks again"
    monkeypatch.setattr(source, "docstring", whole)
    assert not looking.Looker().look(plans)
    monkeypatch.setattr(source, "docstring", fail)
    assert not looking.Looker().look(plans), "nothing failed, and the code is the same"
