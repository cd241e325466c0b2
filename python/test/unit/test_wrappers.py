"""Kernels under wrappers that nobody here has heard of: they run as they are, launches are nodes.

`test_refused_wrappers.py` has those that are refused by name.
"""

import inspect
import threading
from concurrent.futures import ThreadPoolExecutor

import gradients
import pytest
import torch
import triton
from triton.backends.autodiff import AutodiffError, autodiff, check, differentiable
from wrapped import (
    Bare,
    Callable,
    Direct,
    Entry,
    Measuring,
    Reordered,
    Strict,
    Tuner,
    best,
    blocks,
    by,
    chosen,
    compare,
    configs,
    inputs,
    last,
    make,
    tuned,
)


@pytest.fixture(autouse=True)
def needs_gradients():
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")


@pytest.mark.parametrize(
    "wrap",
    [
        lambda k: Entry(chosen(k)),
        lambda k: Entry(tuned(k)),
        lambda k: Entry(Tuner(k, configs(), ["n"], best)),
        lambda k: Entry(Tuner(chosen(k), [triton.Config({"TWICE": False})], ["n"], last)),
        lambda k: Tuner(k, configs(), ["n"], last),
        lambda k: chosen(Entry(k)),
        lambda k: tuned(Entry(k)),
        lambda k: Entry(chosen(triton.heuristics({"TWICE": lambda args: False})(k))),
        lambda k: Bare(Bare(chosen(k))),
        lambda k: Bare(Tuner(k, configs(), ["n"], best)),
        lambda k: Bare(Entry(chosen(k))),
    ],
)
def test_wrappers_of_the_usual_arguments(device, wrap):
    wrapper = wrap(make())
    kernel = differentiable(wrapper)
    for size in (300, 300, 77, 300):
        compare(by(kernel), device, size=size)
    with torch.no_grad():
        x, w = inputs(device)
        torch.testing.assert_close(by(kernel)(x, w), w * x * x)


@pytest.mark.parametrize("first", ["plain", "differentiable"])
def test_caches_are_shared_with_plain_launches(device, first):
    """Neither finds what it cannot use in the wrapper's cache."""
    wrapper = Entry(chosen(make()))
    kernel = differentiable(wrapper)
    for turn in range(6):
        if (turn % 2 == 0) == (first == "plain"):
            x, w = (t.detach() for t in inputs(device))
            torch.testing.assert_close(by(wrapper)(x, w), w * x * x)
        else:
            compare(by(kernel), device)
    assert len(wrapper.kept) == 1 and wrapper.hits == 5


def test_result_is_the_wrapper_s(device):
    x, w = inputs(device)
    y = torch.empty_like(x)
    entry = differentiable(Entry(chosen(make())))
    for _ in range(2):
        kernel, constants = entry[blocks](x, w, y.detach(), 300)
        assert constants["BLOCK"] == 128 and "tt.func" in kernel.asm["ttir"]
    assert differentiable(Strict(make()))[(5,)](x, w, torch.empty_like(x), 300) == (1, 2, 3)
    assert differentiable(Bare(make()))[(5,)](x, w, torch.empty_like(x), 300, BLOCK=64) is None


def test_tuning_is_not_differentiated(device):
    """Runs that only measure leave no history, and tune what plain launches find, too."""
    tuner = Tuner(make(), configs(), ["n"], best)
    kernel = differentiable(Entry(tuner))
    compare(by(kernel), device)
    assert tuner.measured == 2 and len(tuner.store) == 1
    x, w = inputs(device)
    y = by(kernel)(x, w)
    assert len(kernel._launches) == 1 and tuner.measured == 2
    assert y.grad_fn.next_functions[0][0].variable is x


def test_plain_tuning_is_let_alone(device):
    """Only where a launch may have gradients, there are none while a tuner measures."""
    modes = []

    def noting(call, quantiles):
        modes.append(torch.is_grad_enabled())
        call()
        return [1.0] * len(quantiles)

    tuner = triton.autotune(configs(), key=["n"], do_bench=noting)(make())
    kernel = differentiable(tuner)
    x, w = (t.detach() for t in inputs(device))
    torch.testing.assert_close(by(tuner)(x, w), w * x * x)
    assert modes == [True, True]
    compare(by(kernel), device, size=40)
    assert modes == [True, True, False, False]


def test_tuning_restores_what_has_a_gradient(device):
    """What a tuner writes back to arguments is no step of theirs."""
    tuner = triton.autotune(configs(), key=["n"], restore_value=["x_ptr"])(make())
    compare(by(differentiable(Entry(tuner))), device)


def test_other_arguments(device):
    kernel = differentiable(Reordered(make()))

    def run(x, w):
        y = torch.empty_like(x)
        kernel[(10,)](y, data=x, weight=w)
        return y

    compare(run, device)
    compare(by(differentiable(Strict(make())), (5,)), device)


def test_plain_launch_of_reordered_arguments_is_a_change(device):
    """Of what the kernel writes, not of what has its place among the wrapper's arguments."""
    kernel = differentiable(Reordered(make()))
    x, w = inputs(device)
    y = torch.empty_like(x)
    kernel[(10,)](y, data=x, weight=w)
    before = x._version, w._version
    with torch.no_grad():
        out = torch.empty_like(x)
        kernel[(10,)](out, data=x, weight=w)
    assert out._version == 1 and before == (x._version, w._version)


def test_torch_code_in_a_wrapper(device):
    """w·(2x)² / 2: what PyTorch does there is differentiated by PyTorch."""
    compare(differentiable(Callable(make())), device, factor=2.0)
    compare(differentiable(Callable(make())).launch, device)


def test_compiled_kernels_are_launched_directly(device):
    wrapper = Direct(make())
    for kernel in (differentiable(wrapper), differentiable(wrapper)):
        for size in (300, 300, 40):
            compare(lambda x, w, kernel=kernel: _direct(kernel, x, w), device, size=size)


def _direct(kernel, x, w):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64), 1, 1)](x, w, y, x.numel(), 64, False)
    return y


def test_wrapper_that_launches_many_times(device):
    compare(by(differentiable(Measuring(make()))), device)


def test_several_kernels_under_one_wrapper(device):
    """y = w·(w·x²)²: both launches are nodes."""
    first, second = make(), make()

    class Two(Bare):
        def __getitem__(self, grid):
            def launch(x, w, y, n):
                between = torch.empty_like(x)
                first[grid](x, w, between, n, BLOCK=64)
                self.fn[grid](between, w, y, n, BLOCK=64)

            return launch

    x, w = inputs(device)
    y = torch.empty_like(x)
    differentiable(Two(second))[(5,)](x, w, y, 300)
    found = torch.autograd.grad(y.sum(), (x, w))
    a, b = (t.detach().double().requires_grad_() for t in (x, w))
    truths = torch.autograd.grad((b * (b * a * a) ** 2).sum(), (a, b))
    for gradient, truth in zip(found, truths, strict=True):
        torch.testing.assert_close(gradient.double(), truth, rtol=1e-4, atol=1e-4)


def test_gradient_of_what_a_wrapper_holds(device):
    weight = torch.tensor([3.0], device=device, requires_grad=True)

    class Holding(Bare):
        def __getitem__(self, grid):
            return lambda x, y, n: self.fn[grid](x, weight, y, n, BLOCK=64)

    x = torch.randn(300, device=device)
    y = torch.empty_like(x)
    differentiable(Holding(make()))[(5,)](x, y, 300)
    y.sum().backward()
    torch.testing.assert_close(weight.grad[0], (x * x).sum(), rtol=1e-4, atol=1e-4)


def test_what_is_under_a_wrapper_is_differentiable(device):
    """`kernel.fn[grid]`, which goes past an autotuner, say, is a node as well."""
    kernel = differentiable(tuned(make()))
    assert kernel.fn is kernel.fn and kernel.fn.arg_names == kernel.arg_names
    compare(by(kernel.fn, BLOCK=32), device)
    compare(by(differentiable(Entry(tuned(make()))).fn.fn, BLOCK=32), device)
    assert inspect.isfunction(kernel.fn.fn)


@pytest.mark.parametrize("wrap", [lambda k: Entry(chosen(k)), Bare, tuned])
def test_op_report_and_check(device, wrap):
    wrapper = wrap(make())
    constants = {"BLOCK": 64} if wrap is Bare else {}

    def stub(kernel, x, w):
        return by(kernel, **({"grid": (5,)} if constants else {}), **constants)(x, w)

    op = autodiff(wrapper, stub)
    x, w = inputs(device)
    assert "gradient of x_ptr: plain stores" in op.explain(x, w)
    assert not getattr(wrapper, "hits", 0)
    compare(op, device)
    assert "scaled_bwd" in op.backward_ir()
    check(op, (x, w))
    for _ in range(2):
        compare(op, device)


def test_check_of_a_wrapper_that_makes_tensors(device):
    def called(x, w):
        return differentiable(Callable(make())).launch(x, w)

    with pytest.raises(AutodiffError, match="by a method of its Callable"):
        check(called, inputs(device))

    class Copying(Bare):
        def __getitem__(self, grid):
            return lambda x, *args, **kwargs: self.fn[grid](x.clone(), *args, **kwargs)

    kernel = differentiable(Copying(make()))
    compare(by(kernel, (5,), BLOCK=64), device)
    with pytest.raises(AutodiffError, match="makes tensors of its own"):
        check(by(kernel, (5,), BLOCK=64), inputs(device))


def test_threads(device):
    """One thread's launches are not caught by another one."""
    wrapper = Entry(chosen(make()))
    kernel = differentiable(wrapper)
    compare(by(kernel), device)
    errors = []

    def work(differentiates):
        try:
            for _ in range(30):
                if differentiates:
                    compare(by(kernel), device)
                else:
                    x, w = (t.detach() for t in inputs(device))
                    torch.testing.assert_close(by(wrapper)(x, w), w * x * x)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n % 2 == 0,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]


@pytest.mark.parametrize("wants", [True, False])
def test_threads_that_tune(device, wants):
    """Triton's autotuner keeps the arguments of a launch, which another thread must not see."""
    wrapper = tuned(make())
    kernel = differentiable(wrapper)

    def work(first):
        for size in range(first, first + 20):
            x, w = inputs(device, size)
            with torch.set_grad_enabled(wants):
                y = by(kernel)(x, w)
            torch.testing.assert_close(y, w * x * x)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, (100, 200, 300, 400)))
    assert len(wrapper.cache) == 80
