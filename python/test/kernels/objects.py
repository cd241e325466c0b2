"""Kernels and operations as modules hold them: by name, under wrappers, in modules of PyTorch."""

import functools

import torch
import triton
import triton.language as tl
from triton.backends.autodiff import autodiff, custom_vjp, differentiable, right_partial


@custom_vjp
@triton.jit
def square(x):
    return x * x


@square.defvjp
@triton.jit
def square_vjp(dy, x, y):
    return 2 * x * dy


@triton.jit
def weighted_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """w · x², element by element."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    w = tl.load(w_ptr + i, mask=i < n)
    tl.store(y_ptr + i, w * square(x), mask=i < n)


def weighted(kernel, x, w, factor=1.0):
    """Factor · w · x²."""
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, w, y, x.numel(), BLOCK=64)
    return factor * y


def weighted_tuned(kernel, x, w):
    """W · x² with blocks that somebody else chooses."""
    y = torch.empty_like(x)
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, w, y, x.numel())
    return y


def tripled(gx, gw, gy):
    """Gradients in which that of x is three times what it should be."""
    return 3 * gx, gw, gy


tuned_kernel = triton.autotune([triton.Config({"BLOCK": b}) for b in (32, 64)], key=["n"])(
    weighted_kernel
)
heuristic_kernel = triton.heuristics({"BLOCK": lambda arguments: 128})(weighted_kernel)
with_limit = differentiable(weighted_kernel, tape_limit=12345, deterministic=True)
double_op = autodiff(weighted_kernel, right_partial(weighted, 2.0))


@differentiable(tape_limit=1 << 20)
@triton.jit
def decorated(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """w · x², as a decorator makes it."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, tl.load(w_ptr + i, mask=i < n) * x * x, mask=i < n)


@functools.partial(autodiff, weighted_kernel)
def decorated_op(kernel, x, w):
    """The operation has the name of its stub."""
    return weighted(kernel, x, w)


class Holder:
    """Names a kernel that no module has at its top."""

    @triton.jit
    def inner_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n)
        tl.store(y_ptr + i, tl.load(w_ptr + i, mask=i < n) * x * x, mask=i < n)


class Weighted(torch.nn.Module):
    """Has an operation whose stub is bound to the module itself."""

    def __init__(self, n):
        super().__init__()
        self.w = torch.nn.Parameter(torch.rand(n) + 0.5)
        self.op = autodiff(weighted_kernel, self._launch)

    def _launch(self, kernel, x):
        return weighted(kernel, x, self.w)

    def forward(self, x):
        """Return w · x²."""
        return self.op(x)


class Squares(torch.utils.data.Dataset):
    """Computes its items, and their gradients, with an operation."""

    def __init__(self, op):
        self.op = op

    def __len__(self):
        return 4

    def __getitem__(self, n):
        x = torch.full((5,), float(n), requires_grad=True)
        y = self.op(x, torch.ones(5))
        return torch.stack([y.detach(), *torch.autograd.grad(y.sum(), x)])


def evaluate(op, x, w, results):
    """Put what an operation gives, and the gradient of its first input, into a queue."""
    x = x.clone().requires_grad_()
    y = op(x, w)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    results.put((y.detach().tolist(), gradient.tolist()))
