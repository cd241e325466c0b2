"""Kernels and operations as objects: copies, pickles, other processes, and what they are called."""

import copy
import functools
import inspect
import io
import os
import pickle
import subprocess
import sys
import types
import warnings
from pathlib import Path

import gradients
import pytest
import torch
import triton
import triton.language as tl
from kernels import objects
from torch.optim.swa_utils import AveragedModel
from torch.profiler import ProfilerActivity, profile
from triton.backends.autodiff import AutodiffError, autodiff, differentiable
from triton.backends.autodiff.kernels import naming

pytestmark = pytest.mark.every_triton


@pytest.fixture(autouse=True)
def needs_gradients():
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")


def copies(thing):
    """A thing as copies and pickles return it."""
    saved = io.BytesIO()
    torch.save(thing, saved)
    saved.seek(0)
    return [
        copy.copy(thing),
        copy.deepcopy(thing),
        *(pickle.loads(pickle.dumps(thing, protocol)) for protocol in (0, 2, 5)),
        pickle._loads(pickle._dumps(thing)),
        torch.load(saved, weights_only=False),
    ]


def check_op(op, device, factor=1.0):
    """`op(x, w)` is factor · w · x², and so are its gradients."""
    x, w = (torch.randn(150, device=device, requires_grad=True) for _ in range(2))
    y = op(x, w)
    upstream = torch.randn_like(y)
    found = torch.autograd.grad(y, (x, w), upstream)
    torch.testing.assert_close(y, factor * w * x * x)
    torch.testing.assert_close(found[0], upstream * factor * 2 * w * x)
    torch.testing.assert_close(found[1], upstream * factor * x * x)


OPS = {
    "plain": lambda: autodiff(objects.weighted_kernel, objects.weighted),
    "differentiable": lambda: autodiff(objects.with_limit, objects.weighted),
    "autotuned": lambda: autodiff(objects.tuned_kernel, objects.weighted_tuned),
    "heuristics": lambda: autodiff(objects.heuristic_kernel, objects.weighted_tuned),
    "in a class": lambda: autodiff(objects.Holder.inner_kernel, objects.weighted),
    "under a wrapper": lambda: autodiff(objects.tuned_kernel.fn, objects.weighted),
    "partial": lambda: autodiff(
        objects.weighted_kernel, functools.partial(objects.weighted, factor=1.0)
    ),
    "earlier form": lambda: autodiff(objects.weighted_kernel, objects.weighted, idx_upstream=2),
}


@pytest.mark.parametrize("name", OPS)
def test_copies_of_operations(device, name):
    op = OPS[name]()
    check_op(op, device)
    for other in copies(op):
        check_op(other, device)
        assert other.kernel._kernel is op.kernel._kernel
        assert other.kernel._resolver.options == op.kernel._resolver.options
        assert other._idx_upstream == op._idx_upstream


def test_copies_of_kernels(device):
    for kernel in (objects.with_limit, differentiable(objects.tuned_kernel, autotune=False)):
        for other in copies(kernel):
            assert other._kernel is kernel._kernel
            assert other._resolver.options == kernel._resolver.options
    # What has a name is what the name stands for.
    for named in (objects.decorated, objects.decorated_op):
        assert all(other is named for other in copies(named))
    assert copy.deepcopy(objects.with_limit) is objects.with_limit
    check_op(objects.decorated_op, device)
    for other in copies(objects.double_op):
        check_op(other, device, factor=2.0)


def test_warmup_kernel_and_post_process(device):
    op, warm = autodiff(
        objects.weighted_kernel, objects.weighted, idx_upstream=2, post_process_fn=objects.tripled
    )
    x, w, y = (torch.rand(10, device=device, requires_grad=True) for _ in range(3))
    for other, kernel in zip(copies(op), copies(warm), strict=True):
        assert other._post_process is objects.tripled
        assert not objects.weighted(kernel, x.detach(), w.detach()).requires_grad


@pytest.mark.parametrize("make", [copy.deepcopy, lambda m: copies(m)[-1], AveragedModel])
def test_copy_of_a_module_has_its_own_parameters(device, make):
    """The stub is bound to the module: in a copy, to the copy."""
    module = objects.Weighted(20).to(device)
    other = make(module)
    inner = getattr(other, "module", other)
    x = torch.randn(20, device=device)
    with torch.no_grad():
        inner.w.mul_(3)
    torch.testing.assert_close(module(x), module.w * x * x)
    torch.testing.assert_close(other(x), 3 * module.w * x * x)
    other(x).sum().backward()
    assert module.w.grad is None
    torch.testing.assert_close(inner.w.grad, x * x)


def make_local():
    @triton.jit
    def local_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n)
        tl.store(y_ptr + i, tl.load(w_ptr + i, mask=i < n) * x * x, mask=i < n)

    return local_kernel


def test_what_has_no_name(device):
    kernel = differentiable(make_local())
    op = autodiff(kernel, objects.weighted)
    nameless = autodiff(
        objects.weighted_kernel, lambda kernel, x, w: objects.weighted(kernel, x, w)
    )
    for thing, name in (
        (kernel, r"kernel 'make_local.<locals>.local_kernel' of module"),
        (op, r"kernel 'make_local.<locals>.local_kernel' of module"),
        (nameless, r"function 'test_what_has_no_name.<locals>.<lambda>' of module"),
    ):
        with pytest.raises(AutodiffError, match=f"{name}.*top of a module") as caught:
            pickle.dumps(thing)
        assert isinstance(caught.value, pickle.PickleError)
        assert copy.copy(thing) is thing
    # A copy needs no name.
    check_op(copy.deepcopy(op), device)
    check_op(copy.deepcopy(nameless), device)


def test_what_is_no_longer_there(monkeypatch):
    module = types.ModuleType("module_of_kernels")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    tuned = triton.autotune([triton.Config({"BLOCK": 64})], key=[])(objects.weighted_kernel)
    module.tuned = tuned
    text = pickle.dumps(differentiable(tuned))
    assert pickle.loads(text)._kernel is tuned
    module.tuned = triton.autotune([triton.Config({"BLOCK": 64})], key=[])(
        objects.Holder.inner_kernel
    )
    with pytest.raises(AutodiffError, match="'tuned' of module 'module_of_kernels'.*does not have"):
        pickle.loads(text)
    del module.tuned
    with pytest.raises(AutodiffError, match="'tuned' of module 'module_of_kernels'.*top of a"):
        pickle.loads(text)
    monkeypatch.delitem(sys.modules, module.__name__)
    with pytest.raises(AutodiffError, match="No module named 'module_of_kernels'"):
        pickle.loads(text)
    named = pickle.dumps(objects.decorated)
    monkeypatch.setattr(objects, "decorated", objects.weighted)
    with pytest.raises(AutodiffError, match="'decorated' of module .*it is a function"):
        pickle.loads(named)


def test_another_version_wrote_it(monkeypatch):
    things = (objects.with_limit, objects.decorated, OPS["plain"]())
    texts = []
    with monkeypatch.context() as patch:
        patch.setattr(naming, "FORMAT", 99)
        patch.setattr(naming, "__version__", "7.8.9")
        texts += [pickle.dumps(thing) for thing in things]
    for text in texts:
        with pytest.raises(AutodiffError, match=r"written by triton-autodiff 7\.8\.9 \(format 99"):
            pickle.loads(text)
    with monkeypatch.context() as patch:
        patch.setattr(naming, "__version__", "7.8.9")
        text = pickle.dumps(things[0])
    assert pickle.loads(text)._kernel is things[0]._kernel


@pytest.fixture
def method(request, monkeypatch):
    """How processes start, which do not see a GPU."""
    if request.param == "fork" and torch.cuda.is_available():
        pytest.skip("CUDA does not survive a fork")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return request.param


@pytest.mark.parametrize("method", ["spawn", "forkserver"], indirect=True)
def test_processes(method):
    """Processes know no more than the pickle says."""
    context = torch.multiprocessing.get_context(method)
    results = context.SimpleQueue()
    ops = [OPS["plain"](), objects.decorated_op, objects.double_op]
    x, w = torch.arange(6.0), torch.rand(6)
    workers = [context.Process(target=objects.evaluate, args=(op, x, w, results)) for op in ops[:2]]
    for worker in workers:
        worker.start()
    found = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    for y, gradient in found:
        torch.testing.assert_close(torch.tensor(y), w * x * x)
        torch.testing.assert_close(torch.tensor(gradient), 2 * w * x)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"], indirect=True)
def test_workers_of_a_data_loader(method):
    dataset = objects.Squares(OPS["plain"]())
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=2, num_workers=1, multiprocessing_context=method
    )
    found = torch.cat(list(loader))
    n = torch.arange(4.0)[:, None].expand(4, 5)
    torch.testing.assert_close(found, torch.stack([n * n, 2 * n], 1))


def test_interactive_session_is_refused(monkeypatch):
    """What a spawned process would not have is refused before it starts."""
    from multiprocessing import context

    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(objects.Holder.inner_kernel, "__module__", "__main__")
    main.Holder = objects.Holder
    kernel = differentiable(objects.Holder.inner_kernel)
    assert pickle.loads(pickle.dumps(kernel))._kernel is kernel._kernel
    context.set_spawning_popen(object())
    try:
        with pytest.raises(AutodiffError, match="'Holder.inner_kernel' is defined in an interact"):
            pickle.dumps(kernel)
    finally:
        context.set_spawning_popen(None)


SCRIPT = """
import torch
from kernels import objects
from triton.backends.autodiff import autodiff
import triton, triton.language as tl
if __name__ == "__main__":
    @triton.jit
    def guarded_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
        tl.store(y_ptr, 1.0)
    context = torch.multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    op = autodiff(guarded_kernel, objects.weighted)
    args = (op, torch.rand(3), torch.rand(3), results)
    worker = context.Process(target=objects.evaluate, args=args)
    worker.start()
    worker.join()
    assert worker.exitcode
"""


def test_a_spawned_process_says_what_it_does_not_have(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    tests = Path(__file__).parents[1]
    command = [sys.executable, str(tmp_path / "script.py")]
    paths = str(tests), os.environ.get("PYTHONPATH", "")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "PickleError: this pickle refers to 'guarded_kernel' of module '__main__'" in done.stderr


def test_what_they_are_called():
    op = objects.double_op
    assert repr(op) == "autodiff(weighted_kernel, weighted)"
    assert (op.__name__, op.__qualname__, op.__module__) == (
        "weighted",
        "weighted",
        objects.__name__,
    )
    assert op.__doc__ == "Factor · w · x²."
    assert str(inspect.signature(op)) == "(x, w)"
    assert str(inspect.signature(OPS["plain"]())) == "(x, w, factor=1.0)"
    assert str(inspect.signature(OPS["partial"]())) == "(x, w, *, factor=1.0)"
    assert str(inspect.signature(objects.Weighted(3).op)) == "(x)"
    assert (
        str(inspect.signature(autodiff(objects.weighted_kernel, lambda *args: None))) == "(*args)"
    )
    assert OPS["partial"]().__name__ == "weighted"
    called = autodiff(objects.weighted_kernel, torch.nn.Identity())
    assert repr(called) == "autodiff(weighted_kernel, Identity)"
    inspect.signature(type(op))
    kernel = objects.with_limit
    assert "weighted_kernel" in repr(kernel) and kernel.__doc__ == "w · x², element by element."
    assert list(inspect.signature(kernel).parameters) == ["x_ptr", "w_ptr", "y_ptr", "n", "BLOCK"]
    assert list(inspect.signature(objects.tuned_kernel.fn.fn).parameters)[-1] == "BLOCK"


def into_a_view(kernel, x, w):
    """W · x² in the middle of other memory."""
    y = x.new_zeros(x.numel() + 4)[2:-2]
    kernel[(triton.cdiv(x.numel(), 64),)](x, w, y, x.numel(), BLOCK=64)
    return y


def test_nodes_have_the_name_of_their_kernel(device):
    x, w = (torch.rand(20, device=device, requires_grad=True) for _ in range(2))
    op = autodiff(objects.weighted_kernel, lambda kernel, x, w: objects.weighted(kernel, x, w) + 0)
    y = op(x, w)  # it holds the graph: a node of Python's holds nothing
    node = y.grad_fn.next_functions[0][0]
    while node is not None and "Mul" in node.name():
        node = node.next_functions[0][0]
    assert node.name() == "weighted_kernelBackward"
    written = autodiff(objects.weighted_kernel, into_a_view)(x, w)
    pending, names = [written.grad_fn], set()
    while pending:
        node = pending.pop()
        names.add(node.name())
        pending += [following for following, _ in node.next_functions if following is not None]
    assert "weighted_kernelBackward" in names and not any("Launch" in name for name in names)
    assert not any("Graft" in name for name in names)


def test_profiles_show_kernels(device):
    x, w = (torch.rand(20, device=device, requires_grad=True) for _ in range(2))
    op = OPS["plain"]()
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        op(x, w).sum().backward()
    names = {event.key for event in profiled.key_averages()}
    assert {"weighted_kernel", "weighted_kernelBackward"} <= names


def test_anomaly_mode_names_the_kernel_and_the_launch(device):
    x = torch.full((20,), float("inf"), device=device, requires_grad=True)
    w = torch.zeros(20, device=device, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught, torch.autograd.detect_anomaly():
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError, match="weighted_kernelBackward.* returned nan"):
            OPS["plain"]()(x, w).sum().backward()
    said = "".join(str(warning.message) for warning in caught)
    assert "kernel[(triton.cdiv(x.numel(), 64),)](x, w, y" in said
