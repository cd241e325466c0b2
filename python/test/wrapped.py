"""Wrappers of kernels as libraries have them, and what is computed under them: y = w · x².

The classes keep compiled kernels and launch these themselves, return other things than Triton does,
take other arguments, tune in ways of their own.
"""

import functools
import threading

import torch
import triton
import triton.language as tl
from triton.runtime import Autotuner, Heuristics, JITFunction
from triton.runtime.driver import driver
from triton.runtime.jit import KernelInterface


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
