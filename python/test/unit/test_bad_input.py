"""Bad input gives a Python exception that names it and says what to do; it never crashes or hangs.

What is odd but meant to work is here, too: threads, forks. For caches see test_damaged_caches.py.
"""

import copy
import os
import signal
import threading
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from triton.backends import autodiff as package
from triton.backends.autodiff import AutodiffError, autodiff, differentiable, library
from triton.backends.autodiff.errors import ArgumentError
from triton.backends.autodiff.plans import cache


@triton.jit
def scale(x, y, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, v * v * factor, mask=i < n)


@triton.jit
def product(xs, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(xs[0] + i) * tl.load(xs[1] + i))


@triton.jit
def endless(x, y, n):
    tl.store(y, tl.load(x))
    endless(x, y, n)


@triton.jit
def opaque(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(
        y + i,
        tl.inline_asm_elementwise("activemask.b32 $0; // $1", "=r,r", [v], tl.float32, True, 1),
    )


def leaf(device, size=64):
    return torch.randn(size, device=device, requires_grad=True)


def launch(device, kernel=scale, grid=(1,), **changed):
    """Launch `scale` with some of its arguments changed; returns input and output."""
    arguments = {"x": leaf(device), "y": torch.empty(64, device=device), "n": 64, "factor": 2.0}
    arguments.update({"BLOCK": 64}, **changed)
    differentiable(kernel)[grid](**arguments)
    return arguments["x"], arguments["y"]


@pytest.fixture
def empty_cache(monkeypatch, tmp_path):
    """A cache folder of this test's own, and a kernel that nobody has compiled in it."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_plans", {})
    return tmp_path


def fresh(kernel=scale):
    """A copy of a kernel that has compiled nothing yet, as in another process."""
    cache._plans.clear()
    return triton.jit(copy.copy(kernel.fn))


# ------------------------------------------------------------------------------------- the grid

GRIDS = {
    "negative": ((-1,), "-1 programs along x"),
    "float": ((1.5,), r"one to three integers.*got \(1.5,\)"),
    "nan": ((float("nan"),), "one to three integers"),
    "empty": ((), r"one to three integers.*got \(\)"),
    "four axes": ((1, 1, 1, 1), "one to three integers"),
    "text": ("abc", "one to three integers.*got 'abc'"),
    "number": (1, "one to three integers.*got 1"),
    "none": (None, "one to three integers.*got None"),
    "nested": (((1,),), "one to three integers"),
    "function of nonsense": (lambda meta: "x", "one to three integers.*got 'x'"),
    "function of nothing": (lambda meta: None, "one to three integers.*got None"),
    "too many": ((2**31,), "2147483648 programs along x: 0 to 2147483647"),
    "far too many": ((1, 2**40), "1099511627776 programs along y"),
}


@pytest.mark.parametrize("name", GRIDS)
def test_grid(device, name):
    grid, message = GRIDS[name]
    with pytest.raises(ArgumentError, match=f"grid of kernel 'scale'.*{message}"):
        launch(device, grid=grid)


def test_error_of_a_grid_function_is_its_own(device):
    with pytest.raises(KeyError, match="WIDTH"):
        launch(device, grid=lambda meta: (meta["WIDTH"],))


@pytest.mark.parametrize("grid", [(0,), [0, 5], (torch.tensor(0),)])
def test_empty_grids_are_fine(device, grid):
    y = torch.ones(64, device=device)
    x, y = launch(device, grid=grid, y=y)
    y.sum().backward()
    assert (y == 1).all() and not x.grad.any()


@pytest.mark.parametrize("name", ["negative", "nan", "too many"])
def test_grid_of_a_plain_launch_on_the_cpu(name):
    if torch.cuda.is_available():
        pytest.skip("the GPU's driver is active")
    grid, message = GRIDS[name]
    with pytest.raises(ArgumentError, match=message):
        scale[grid](torch.ones(64), torch.empty(64), 64, 2.0, BLOCK=64)


# -------------------------------------------------------------------------------- the arguments


def without_memory(device):
    tensor = torch.randn(64, device=device)
    tensor.untyped_storage().resize_(0)
    return tensor


def with_too_little_memory(device):
    tensor = torch.randn(64, device=device)
    tensor.untyped_storage().resize_(100)
    return tensor


def negated(device):
    return torch.randn(64, dtype=torch.complex64, device=device).conj().imag


def nested(device):
    return torch.nested.nested_tensor([torch.ones(3), torch.ones(4)], device=device)


def bits(device):
    return torch.zeros(64, dtype=torch.uint8, device=device).view(torch.bits8)


def wrapped(device):
    from torch.testing._internal.two_tensor import TwoTensor

    return TwoTensor(torch.randn(64, device=device), torch.randn(64, device=device))


ARGUMENTS = {
    "complex": (lambda d: {"y": torch.empty(64, dtype=torch.complex64, device=d)}, "'y'.*complex"),
    "sparse": (lambda d: {"x": torch.randn(64, device=d).to_sparse().requires_grad_()},
               "'x'.*sparse"),
    "meta": (lambda d: {"x": torch.empty(64, device="meta", requires_grad=True)}, "'x'.*meta"),
    "nested": (lambda d: {"y": nested(d)}, "'y'.*nested"),
    "no memory": (lambda d: {"y": without_memory(d)}, r"'y'.*shape \(64,\) without the memory"),
    "no memory, wanted": (lambda d: {"x": without_memory(d).requires_grad_()},
                          "'x'.*without the memory"),
    "little memory": (lambda d: {"y": with_too_little_memory(d)}, "'y'.*without the memory"),
    "wrapper": (lambda d: {"x": wrapped(d).requires_grad_()}, r"'x'.*TwoTensor.*holds \(a, b\)"),
    "negated": (lambda d: {"x": negated(d).requires_grad_()}, r"'x'.*resolve_neg\(\)"),
    "expanded output": (lambda d: {"y": torch.zeros(1, device=d).expand(64)}, "'y'.*clone"),
    "no type for it": (lambda d: {"y": bits(d)}, "'y'.*bits8"),
    "none": (lambda d: {"y": None}, "'y'.*is None, but the kernel uses it"),
    "list": (lambda d: {"y": [0.0] * 64}, "'y'.*should be a tensor, a number.*got list"),
    "array": (lambda d: {"y": torch.zeros(64).numpy()}, "'y'.*got ndarray"),
    "text": (lambda d: {"n": "64"}, "'n'.*got str '64'"),
    "dictionary": (lambda d: {"x": {}}, "'x'.*got dict"),
    "tensor for a number": (lambda d: {"n": torch.tensor(64, device=d)}, r"'n'.*item\(\)"),
    "tensor for a constexpr": (lambda d: {"BLOCK": torch.tensor(64)},
                               "'BLOCK'.*constexpr.*should be a number"),
    "too large": (lambda d: {"n": 2**70}, "'n' of kernel 'scale' is 1180591620717411303424"),
    "unknown": (lambda d: {"WIDTH": 3}, "WIDTH.*its parameters: x, y, n, factor, BLOCK"),
}  # fmt: skip


@pytest.mark.parametrize("name", ARGUMENTS)
def test_argument(device, name):
    change, message = ARGUMENTS[name]
    with pytest.raises(ArgumentError, match=message):
        launch(device, **change(device))


@pytest.mark.parametrize(
    "values, message",
    [
        ((64, 2.0), "missing 1 required positional argument: 'BLOCK'; its parameters: x, y"),
        ((64, 2.0, 64, 1), "takes 5 positional arguments but 6 were given"),
    ],
)
def test_number_of_arguments(device, values, message):
    with pytest.raises(ArgumentError, match=f"kernel 'scale' {message}"):
        differentiable(scale)[(1,)](leaf(device), torch.empty(64, device=device), *values)


@pytest.mark.parametrize(
    "block, message", [(63, "power of 2"), (2**21, "exceeds triton maximum"), (-1, "arange")]
)
def test_constexpr_is_refused_by_triton_with_its_line(device, block, message):
    with pytest.raises(triton.CompilationError, match=f"(?s)tl.arange.*{message}"):
        launch(device, BLOCK=block)


def test_memory_of_a_plain_launch_on_the_cpu():
    if torch.cuda.is_available():
        pytest.skip("the GPU's driver is active")
    with pytest.raises(ValueError, match=r"without memory.*shape torch.Size\(\[64\]\)"):
        scale[(1,)](torch.ones(64), without_memory("cpu"), 64, 2.0, BLOCK=64)
    scale[(1,)](torch.ones(0), torch.empty(0), 0, 2.0, BLOCK=64)


@pytest.mark.parametrize(
    "bad, message",
    [
        (lambda x: (x, "b"), "'xs'.*got str 'b'"),
        (lambda x: [x, x], "'xs'.*got list"),
        (lambda x: (x, torch.zeros(64).to_sparse()), None),
        (lambda x: (x, without_memory(x.device)), r"'xs\[1\]'.*without the memory"),
        (lambda x: (x.detach(), without_memory(x.device)), "'xs'.*without the memory"),
    ],
)
def test_tuple_arguments(device, bad, message):
    x = leaf(device)
    y = torch.empty(64, device=device)
    with pytest.raises((ArgumentError, RuntimeError), match=message):
        differentiable(product)[(1,)](bad(x), y, BLOCK=64)
    other = leaf(device)
    differentiable(product)[(1,)]((x, other), y, BLOCK=64)
    y.sum().backward()
    torch.testing.assert_close(x.grad, other.detach())


@pytest.mark.parametrize("grad", [False, True])
def test_vmap(device, grad):
    x = torch.randn(3, 64, device=device, requires_grad=grad)
    y = torch.empty(64, device=device)
    with pytest.raises(ArgumentError, match="'y'.*same tensor for all examples"):
        torch.func.vmap(lambda row: differentiable(scale)[(1,)](row, y, 64, 2.0, BLOCK=64))(x)


def test_inference_tensors(device):
    with torch.inference_mode():
        x, y = launch(device)
        assert not y.requires_grad
        output = torch.empty(64, device=device)
    with pytest.raises(RuntimeError, match="inference"):
        launch(device, y=output)


class Tagged(torch.Tensor):
    """A subclass with memory of its own, as most are."""


@pytest.mark.parametrize("make", [torch.nn.Parameter, lambda t: t.as_subclass(Tagged)])
def test_subclasses_with_memory(device, make):
    x = make(torch.randn(64, device=device)).requires_grad_()
    launch(device, x=x)[1].sum().backward()
    torch.testing.assert_close(x.grad.as_subclass(torch.Tensor), 4 * x.detach().data)


class Buffer:
    """What stands for a tensor to Triton, as the buffers of some kernel libraries do."""

    def __init__(self, tensor):
        self._base, self.dtype, self.device = tensor, tensor.dtype, tensor.device

    def data_ptr(self):
        return self._base.data_ptr()


@pytest.mark.parametrize("name", ["x", "y"])
def test_buffers_in_place_of_tensors(device, name):
    """They are taken, if they hold their tensor (test_tensor_likes.py); another one does not do."""
    tensors = {"x": leaf(device), "y": torch.empty(64, device=device)}
    launch(device, **tensors | {name: Buffer(tensors[name])})
    upstream = torch.randn(64, device=device)
    (found,) = torch.autograd.grad(tensors["y"], tensors["x"], upstream)
    _, y = launch(device, x=tensors["x"], y=torch.empty(64, device=device))
    assert torch.equal(found, torch.autograd.grad(y, tensors["x"], upstream)[0])
    buffer = Buffer(tensors[name].detach())
    buffer._base, buffer.data_ptr = torch.empty(1), lambda: tensors[name].data_ptr()
    if name == "y":
        with pytest.raises(ArgumentError, match="'y'.*written.*be a tensor"):
            launch(device, x=leaf(device), y=buffer)


def test_no_dimensions(device):
    x = torch.tensor(3.0, device=device, requires_grad=True)
    _, y = launch(device, x=x, y=torch.empty((), device=device), n=1)
    y.backward()
    assert x.grad.item() == 12


# ------------------------------------------------------------------------- kernels and stubs


def test_recursion(device):
    with pytest.raises(AutodiffError, match="'endless' calls itself.*write a loop"):
        differentiable(endless)[(1,)](leaf(device, 1), torch.empty(1, device=device), 3)


def test_operation_without_a_rule(device):
    with pytest.raises(RuntimeError, match=r"test_bad_input.py:\d+:\d+.*elementwise_inline_asm"):
        differentiable(opaque)[(1,)](leaf(device), torch.empty(64, device=device), BLOCK=64)


NO_STUBS = {
    "number": ({"stub": 3}, TypeError, "function of"),
    "a kernel": ({"stub": scale}, TypeError, "function of"),
    "negative index": ({"idx_upstream": -1}, ArgumentError, "5 parameters, 0 to 4"),
    "large index": ({"non_stub_args_idxs": [1, 99]}, ArgumentError, "5 parameters, 0 to 4"),
    "flag for an index": ({"idx_upstream": True}, TypeError, "argument indices"),
    "index for indices": ({"non_stub_args_idxs": 4}, TypeError, "argument indices, got 4"),
    "text for a function": ({"post_process_fn": "x"}, TypeError, "post_process_fn.*function"),
}


@pytest.mark.parametrize("name", NO_STUBS)
def test_arguments_of_autodiff(name):
    arguments, error, message = NO_STUBS[name]
    with pytest.raises(error, match=message):
        autodiff(scale, **{"stub": lambda kernel: None, **arguments})


@pytest.mark.parametrize("kernel", [print, None, scale.fn, int, "scale"])
def test_no_kernel(kernel):
    with pytest.raises(TypeError, match="decorated with @triton.jit"):
        autodiff(kernel, lambda kernel: None)


def test_stub_that_goes_past_its_kernel(device):
    def stub(kernel, x):
        y = torch.empty_like(x, requires_grad=False)
        with torch.no_grad():
            scale[(1,)](x, y, 64, 2.0, BLOCK=64)
        return y

    with pytest.raises(AutodiffError, match="did not launch the kernel it was given"):
        autodiff(scale, stub)(leaf(device))
    with torch.no_grad():
        autodiff(scale, stub)(leaf(device))


def test_stub_without_a_launch_may_be_plain_torch(device):
    x = leaf(device)
    autodiff(scale, lambda kernel, x: x * 2)(x).sum().backward()
    assert (x.grad == 2).all()


def test_error_of_a_stub_is_its_own():
    def stub(kernel):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        autodiff(scale, stub)()


def test_result_of_a_stub_may_be_anything(device):
    def stub(kernel, x, y):
        kernel[(1,)](x, y, 64, 2.0, BLOCK=64)
        return "done"

    y = torch.empty(64, device=device)
    assert autodiff(scale, stub)(leaf(device), y) == "done"
    assert y.requires_grad


# ----------------------------------------------------------------------------- the backward


@pytest.mark.parametrize(
    "upstream, message",
    [
        (lambda y: None, "scalar outputs"),
        (lambda y: torch.ones(32, device=y.device), "[sS]hape"),
        (lambda y: torch.ones(64, dtype=torch.complex64, device=y.device), "[cC]omplex"),
        (lambda y: torch.ones(64, device="meta"), "expected device"),
    ],
)
def test_upstream_gradient(device, upstream, message):
    _, y = launch(device)
    with pytest.raises(RuntimeError, match=message):
        y.backward(upstream(y))


def test_upstream_gradient_of_another_precision(device):
    x, y = launch(device)
    y.backward(torch.ones(64, dtype=torch.float64, device=device))
    torch.testing.assert_close(x.grad, 4 * x.detach())


def test_backward_after_a_change(device):
    x, y = launch(device, x=leaf(device).clone())
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_backward_twice(device):
    _, y = launch(device)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


# ------------------------------------------------------- caches, the library, other processes


@pytest.mark.parametrize("text", ["", "garbage", "module {\n  tt.frobnicate\n}"])
def test_unreadable_ttir(text, empty_cache):
    with pytest.raises(AutodiffError) as caught:
        cache.plan_for(text, {"wanted": [0]}, "k")
    for part in ("cannot differentiate kernel 'k'", f"Triton {triton.__version__}", "update",
                 str(empty_cache)):  # fmt: skip
        assert part in str(caught.value)


def test_cache_folder_that_vanishes(device, empty_cache):
    kernel = fresh()
    _, y = launch(device, kernel=kernel)
    for file in sorted(empty_cache.rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    y.sum().backward()
    launch(device, kernel=kernel, n=63)[1].sum().backward()


def test_cache_folder_that_cannot_be_written(empty_cache, monkeypatch):
    blocked = empty_cache / "file"
    blocked.touch()
    text = Path(__file__).parents[3] / "third_party/autodiff/test/Rules/Memory.mlir"
    monkeypatch.setattr(cache, "get_cache_manager", lambda key: Blocked(blocked / key))
    with pytest.raises(AutodiffError, match="TRITON_CACHE_DIR.*can be written"):
        cache.write_ir(text.read_text(), "k")


class Blocked:
    """A cache manager whose folder cannot be made; file permissions do not stop root."""

    def __init__(self, folder):
        self.folder = folder

    def get_file(self, filename):
        return None

    def put(self, *args, **kwargs):
        os.makedirs(self.folder)


def test_missing_library(device, monkeypatch, tmp_path, empty_cache):
    monkeypatch.delitem(__import__("sys").modules, f"{package.__name__}._native", raising=False)
    monkeypatch.delattr(package, "_native", raising=False)
    monkeypatch.setattr(package, "__path__", [])
    library.native.cache_clear()
    with pytest.raises(AutodiffError, match="native library.*one version of Python"):
        launch(device, kernel=fresh())[1].sum().backward()


def test_threads_at_once(device, empty_cache):
    kernel = differentiable(fresh())
    errors = []

    def work():
        try:
            for _ in range(5):
                x = leaf(device)
                y = torch.empty(64, device=device)
                kernel[(1,)](x, y, 64, 2.0, BLOCK=64)
                (g,) = torch.autograd.grad(y.sum(), x)
                torch.testing.assert_close(g, 4 * x.detach())
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_fork_after_use():
    """The library's threads do not exist in a child; it must not wait for them."""
    if torch.cuda.is_available():
        pytest.skip("CUDA does not survive a fork")

    def step():
        # Few elements, many programs: PyTorch's own threads do not survive a fork either.
        x, y = launch("cpu", grid=(512,), x=leaf("cpu", 4096), n=4096, BLOCK=8,
                      y=torch.empty(4096))  # fmt: skip
        y.sum().backward()
        return x

    step()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        code = 1
        try:
            x = step()
            code = 0 if torch.allclose(x.grad, 4 * x.detach()) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
