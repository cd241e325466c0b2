"""Wrappers under which launches have no history, and what is no wrapper: refused by name."""

import functools
import os
import subprocess
import sys
import threading

import gradients
import pytest
import torch
from triton.backends.autodiff import AutodiffError, autodiff, differentiable
from triton.runtime import JITFunction
from triton.runtime.driver import driver
from wrapped import Bare, by, chosen, compare, inputs, make


@pytest.fixture(autouse=True)
def needs_gradients():
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")


def test_launches_that_nobody_sees(device):
    """A wrapper that had got hold of Triton's launcher before: loud, at the first launch."""
    kernel = make()
    x, w = inputs(device)
    held = kernel.warmup(x.detach(), w.detach(), torch.empty_like(x), 300, 64, grid=(5,))
    held = held.result() if hasattr(held, "result") else held
    run = held.run

    class Past(Bare):
        def __getitem__(self, grid):
            def launch(*args):
                stream = driver.active.get_current_stream(driver.active.get_current_device())
                run(*grid, 1, 1, stream, held.function, held.packed_metadata, None, None, None,
                    *args)  # fmt: skip

            return launch

    past = differentiable(Past(kernel))
    with pytest.raises(AutodiffError, match="the Past of kernel 'scaled' returned without"):
        past[(5,)](x, w, torch.empty_like(x), 300, 64, False)
    with torch.no_grad():
        y = torch.empty_like(x)
        past[(5,)](x, w, y, 300, 64, False)
    torch.testing.assert_close(y, (w * x * x).detach())


def test_wrapper_that_has_nothing_to_launch(device):
    """Without elements there is no gradient to be lost."""

    class Sparing(Bare):
        def __getitem__(self, grid):
            return lambda x, *args: self.fn[grid](x, *args) if x.numel() else None

    x = torch.empty(0, device=device, requires_grad=True)
    w = torch.ones(1, device=device)
    differentiable(Sparing(make()))[(1,)](x, w, torch.empty_like(x), 0, 64)
    with pytest.raises(AutodiffError, match="the Sparing of kernel 'scaled' returned without"):
        differentiable(Sparing(make()))[(1,)](x, w.requires_grad_(), torch.empty_like(x), 0, 64)


class WithoutGradients(Bare):
    def __getitem__(self, grid):
        return torch.no_grad()(super().__getitem__(grid))


class Detaching(Bare):
    def __getitem__(self, grid):
        return lambda *args: super(Detaching, self).__getitem__(grid)(
            *(a.detach() if isinstance(a, torch.Tensor) else a for a in args)
        )


class Elsewhere(Bare):
    def __getitem__(self, grid):
        def launch(*args):
            thread = threading.Thread(target=self.fn[grid], args=args)
            thread.start()
            thread.join()

        return launch


@pytest.mark.parametrize("wrap", [WithoutGradients, Detaching, Elsewhere])
def test_wrapper_that_cuts_histories_off(device, wrap):
    x, w = inputs(device)
    kernel = differentiable(wrap(make()))
    with pytest.raises(AutodiffError, match=f"the {wrap.__name__} of kernel .* no_grad, or with"):
        kernel[(5,)](x, w, torch.empty_like(x), 300, 64)
    with torch.no_grad():
        y = torch.empty_like(x)
        kernel[(5,)](x, w, y, 300, 64)
    torch.testing.assert_close(y, (w * x * x).detach())


def test_wrapper_that_uses_torch_instead(device):
    class Falling(Bare):
        """Has no launch for some inputs, and histories all the same."""

        def __getitem__(self, grid):
            return lambda x, w, y, *args: y.copy_(w * x * x)

    kernel = differentiable(Falling(make()))
    x, w = inputs(device)
    y = torch.empty_like(x)
    kernel[(5,)](x, w, y, 300, 64)
    assert y.requires_grad


def test_function_with_a_launcher_of_its_own(device):
    """A subclass of Triton's, which takes no notice of `warmup`."""

    class Counting(JITFunction):
        launches = 0

        def run(self, *args, grid, warmup, **kwargs):
            self.launches += 1
            super().run(*args, grid=grid, warmup=False, **kwargs)

    function = Counting(make().fn)
    compare(by(differentiable(function), BLOCK=64), device)
    assert function.launches == 1


def test_too_few_arguments_for_a_compiled_kernel(device):
    class Short(Bare):
        def __getitem__(self, grid):
            def launch(*args):
                kernel = self.fn.warmup(*args, grid=grid)
                kernel = kernel.result() if hasattr(kernel, "result") else kernel
                kernel[grid](*args[:4])

            return launch

    x, w = inputs(device)
    with pytest.raises(AutodiffError, match="the Short of kernel 'scaled'.* with 4 arguments"):
        differentiable(Short(make()))[(5, 1, 1)](x, w, torch.empty_like(x), 300, 64)


def test_grid_of_four(device):
    """Triton would look at three of them."""
    x, w = inputs(device)
    kernel = differentiable(chosen(make()))
    for grid in ((5, 1, 1, 1), lambda meta: (5, 1, 1, 1)):
        with pytest.raises(AutodiffError, match="one to three integers"):
            kernel[grid](x, w, torch.empty_like(x), 300)


class Holder:
    """Has a kernel, and is none."""

    def __init__(self):
        self.kernel = make()


class Endless:
    def __getattr__(self, name):
        return self


@pytest.mark.parametrize(
    "thing, message",
    [
        (lambda: functools.partial(make().run, grid=(1,)), "partial: differentiate the kernel"),
        (Holder, "Holder: differentiate its `kernel`"),
        (Endless, "@triton.jit.*got Endless"),
        (lambda: Bare(print), "@triton.jit.*got Bare"),
        (lambda: Bare(differentiable(make())), "Bare of a differentiable kernel: .* last"),
        (lambda: chosen(differentiable(make())), "heuristics is applied to .*goes over all"),
    ],
)
def test_what_is_no_wrapper(thing, message):
    for make_op in (differentiable, lambda kernel: autodiff(kernel, lambda kernel, x: x)):
        with pytest.raises(AutodiffError, match=message) as caught:
            make_op(thing())
        assert isinstance(caught.value, TypeError)


INTERPRETED = """
import torch, triton, triton.language as tl
from triton.runtime.interpreter import InterpretedFunction
from triton.backends.autodiff import differentiable

def quick(call, quantiles):
    call()
    return [1.0] * 3

@differentiable
@triton.autotune([triton.Config({"BLOCK": b}) for b in (64, 128)], key=["n"], do_bench=quick)
@triton.heuristics({"FACTOR": lambda args: 2})
@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr, FACTOR: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, v * v * FACTOR, mask=i < n)

grid = lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)
assert isinstance(kernel.fn.fn._kernel, InterpretedFunction)
torch.set_default_device(triton.runtime.driver.active.get_active_torch_device())
x = torch.randn(100, requires_grad=True)
for _ in range(2):
    y = torch.empty(100)
    kernel[grid](x, y, 100)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient, 4 * x.detach())
# Without us, the interpreter is what runs.
z = torch.empty(100)
assert kernel._kernel[(2,)](x.detach(), z, 100) is None
assert torch.equal(z, y)
"""


def test_wrapped_kernel_decorated_for_the_interpreter(device, tmp_path):
    script = tmp_path / "interpreted.py"
    script.write_text(INTERPRETED)
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    if device == "cpu":
        environment["CUDA_VISIBLE_DEVICES"] = ""
    subprocess.run([sys.executable, str(script)], check=True, env=environment)
