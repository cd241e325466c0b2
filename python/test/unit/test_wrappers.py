"""Kernels under wrappers that nobody here has heard of: they run as they are, launches are nodes.

The classes are like those of libraries: they keep compiled kernels and launch these themselves,
return other things than Triton does, take other arguments, tune in ways of their own.
"""

import functools
import inspect
import os
import subprocess
import sys
import threading

import gradients
import pytest
import torch
import triton
import triton.language as tl
from triton.backends.autodiff import AutodiffError, autodiff, check, differentiable
from triton.runtime import Autotuner, Heuristics, JITFunction
from triton.runtime.driver import driver
from triton.runtime.jit import KernelInterface


@pytest.fixture(autouse=True)
def needs_gradients():
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")


def make():
    """A kernel that nobody has compiled: y = w · x² of n elements."""

    @triton.jit
    def scaled(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr, TWICE: tl.constexpr = False):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n)
        y = tl.load(w_ptr) * x * x
        if TWICE:
            y += y
        tl.store(y_ptr + i, y, mask=i < n)

    return scaled


def inputs(device, size=300):
    x = torch.randn(size, device=device, dtype=torch.float64).float().requires_grad_()
    w = torch.randn(1, device=device, dtype=torch.float64).float().requires_grad_()
    return x, w


def blocks(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def compare(run, device, factor=1.0, size=300):
    """`run(x, w)` is factor · w · x², and so are its gradients."""
    x, w = inputs(device, size)
    y = run(x, w)
    upstream = torch.randn_like(y)
    found = torch.autograd.grad(y, (x, w), upstream)
    leaves = [t.detach().double().requires_grad_() for t in (x, w)]
    expected = factor * leaves[1] * leaves[0] ** 2
    truths = torch.autograd.grad(expected, leaves, upstream.double())
    torch.testing.assert_close(y.double(), expected.detach(), rtol=1e-5, atol=1e-5)
    for gradient, truth in zip(found, truths, strict=True):
        torch.testing.assert_close(gradient.double(), truth, rtol=1e-4, atol=1e-4)


def by(kernel, grid=blocks, **constants):
    """A function that launches a kernel of the usual arguments."""

    def run(x, w):
        y = torch.full_like(x, float("nan"), requires_grad=False)
        kernel[grid](x, w, y, x.numel(), **constants)
        return y

    return run


# -------------------------------------------------------------------------------- the wrappers


class Entry(KernelInterface):
    """Keeps what its function compiles and launches that by itself, from the second time on."""

    def __init__(self, fn):
        self.fn = fn
        self.arg_names = fn.arg_names
        self.kept = {}
        self.hits = 0
        self.lock = threading.Lock()
        while not isinstance(fn, JITFunction):
            fn = fn.fn
        self.function = fn
        self.signature = fn.signature

    def run(self, *args, **kwargs):
        named = {k: v for k, v in kwargs.items() if k in self.signature.parameters}
        bound = self.signature.bind_partial(*args, **named)
        key = tuple(self._key(v) for v in bound.arguments.values()), tuple(bound.arguments)
        if key not in self.kept:
            with self.lock:
                kernel = self.fn.run(*args, **kwargs)
                self.kept[key] = kernel, self._constants(bound.arguments)
            return self.kept[key]
        self.hits += 1
        kernel, constants = self.kept[key]
        meta = {**bound.arguments, **constants}
        grid = kwargs["grid"](meta) if callable(kwargs["grid"]) else kwargs["grid"]
        kernel[(*grid, 1, 1)[:3]](*(meta[name] for name in self.signature.parameters))
        return kernel, constants

    @staticmethod
    def _key(value):
        if isinstance(value, torch.Tensor):
            return value.dtype, value.data_ptr() % 16 == 0
        return type(value), value

    def _constants(self, given):
        parameters = self.signature.parameters.values()
        constants = {p.name: p.default for p in parameters if p.default is not p.empty}
        fn = self.fn
        while not isinstance(fn, JITFunction):
            if isinstance(fn, Autotuner):
                constants |= fn.best_config.kwargs
            elif isinstance(fn, Heuristics):
                constants |= {n: f({**given, **constants}) for n, f in fn.values.items()}
            else:
                raise RuntimeError(f"what is a {type(fn).__name__}?")
            fn = fn.fn
        return constants


class Tuner(Autotuner):
    """An autotuner with a signature, a policy and a store of its own."""

    def __init__(self, fn, configs, key, policy):
        super().__init__(fn, fn.arg_names, configs, key, None, None)
        self.policy = policy
        self.store = []
        self.measured = 0

    def run(self, *args, **kwargs):
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        key = tuple(self.nargs[k] for k in self.keys)
        found = next((config for k, config in self.store if k == key), None)
        if found is None:

            def bench(config):
                self.measured += 1
                return self._bench(*args, config=config, **kwargs)

            found = self.policy(bench, self.configs)
            self.store.append((key, found))
        self.best_config = found
        result = self.fn.run(*args, **kwargs, **found.all_kwargs())
        self.nargs = None
        return result


def configs():
    return [triton.Config({"BLOCK": b}) for b in (64, 128)]


def best(bench, configs):
    times = {config: bench(config) for config in configs}
    return min(times, key=times.get)


def last(bench, configs):
    times = [bench(config) for config in configs]
    return configs[len(times) - 1]


def quick(call, quantiles):
    call()
    return [1.0] * len(quantiles)


tuned = triton.autotune(configs(), key=["n"], do_bench=quick)
chosen = triton.heuristics({"BLOCK": lambda args: 128})


class Bare:
    """Neither `run` nor Triton's interface; returns nothing."""

    def __init__(self, fn):
        self.fn = fn

    def __getitem__(self, grid):
        def launch(*args, **kwargs):
            self.fn[grid](*args, **kwargs)

        return launch


class Strict:
    """Its `run` takes neither `warmup` nor what it does not know; returns numbers."""

    def __init__(self, fn):
        self.fn = fn

    def __getitem__(self, grid):
        return functools.partial(self.run, grid)

    def run(self, grid, x, w, y, n, BLOCK=64):
        self.fn[grid](x, w, y, n, BLOCK=BLOCK)
        return 1, 2, 3


class Reordered:
    """Takes what it writes first, and names of its own; chooses constants."""

    def __init__(self, fn):
        self.fn = fn

    def __getitem__(self, grid):
        def launch(out, *, data, weight):
            kernel = self.fn[grid]
            return kernel(y_ptr=out, n=data.numel(), x_ptr=data, w_ptr=weight, BLOCK=32)

        return launch


class Callable:
    """Is called, makes its output, and has torch code around the launch."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, x, w):
        return self.launch(2 * x, w) / 2

    def launch(self, x, w):
        y = torch.empty_like(x)
        self.fn[(triton.cdiv(x.numel(), 64),)](x, w, y, x.numel(), BLOCK=64)
        return y


class Direct:
    """Calls the launcher of the compiled kernel, as Triton does."""

    def __init__(self, fn):
        self.fn = fn

    def __getitem__(self, grid):
        def launch(*args):
            kernel = self.fn.warmup(*args, grid=grid)
            kernel = kernel.result() if hasattr(kernel, "result") else kernel
            stream = driver.active.get_current_stream(driver.active.get_current_device())
            kernel.run(*grid, stream, kernel.function, kernel.packed_metadata, None, None, None,
                       *args)  # fmt: skip

        return launch


class Measuring:
    """Tunes by launching in a way of its own, more than once."""

    def __init__(self, fn):
        self.fn = fn

    def __getitem__(self, grid):
        def launch(*args):
            for block in (256, 32, 64, 64):
                self.fn[lambda meta: blocks(meta)](*args, BLOCK=block)

        return launch


# ------------------------------------------------------------------------------------ they work


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


# ------------------------------------------------------------------------- or are refused by name


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


def holder():
    from torch.library import wrap_triton

    return wrap_triton(make())


class Endless:
    def __getattr__(self, name):
        return self


@pytest.mark.parametrize(
    "thing, message",
    [
        (lambda: functools.partial(make().run, grid=(1,)), "partial: differentiate the kernel"),
        (holder, "TraceableTritonKernelWrapper: differentiate its `kernel`"),
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
