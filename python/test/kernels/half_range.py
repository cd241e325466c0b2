"""Products in half precision whose cotangents do not fit in it."""

import torch
import triton
import triton.language as tl

SIZE, STEPS = 16, 3


@triton.jit
def _square(p, rows, columns, SIZE: tl.constexpr):
    return tl.load(p + rows[:, None] * SIZE + columns[None, :])


@triton.jit
def product_kernel(a_ptr, b_ptr, y_ptr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    y = tl.dot(_square(a_ptr, i, i, SIZE), _square(b_ptr, i, i, SIZE))
    tl.store(y_ptr + i[:, None] * SIZE + i[None, :], y.to(y_ptr.dtype.element_ty))


def product(kernel, a, b, dtype):
    y = torch.empty_like(a, dtype=dtype)
    kernel[(1,)](a, b, y, SIZE=SIZE)
    return y


def product_reference(a, b, dtype):
    return (wide(a) @ wide(b)).to(wider(a, dtype))


@triton.jit
def norm_kernel(a_ptr, b_ptr, y_ptr, eps, SIZE: tl.constexpr, FORM: tl.constexpr):
    """A product, each row over its root mean square, in several spellings."""
    i = tl.arange(0, SIZE)
    h = tl.dot(_square(a_ptr, i, i, SIZE), _square(b_ptr, i, i, SIZE))
    square = tl.sum(h * h, axis=1) / SIZE + eps
    if FORM == "quotient":
        y = h / tl.sqrt(square)[:, None]
    elif FORM == "rsqrt":
        y = h * tl.rsqrt(square)[:, None]
    elif FORM == "reciprocal":
        y = h * (1 / tl.sqrt(square))[:, None]
    else:
        y = h * tl.exp(-0.5 * tl.log(square))[:, None]
    tl.store(y_ptr + i[:, None] * SIZE + i[None, :], y.to(y_ptr.dtype.element_ty))


def norm(kernel, a, b, eps, form):
    y = torch.empty_like(a)
    kernel[(1,)](a, b, y, eps, SIZE=SIZE, FORM=form)
    return y


def norm_reference(a, b, eps, form):
    h = wide(a) @ wide(b)
    return (h / (h.square().mean(1, keepdim=True) + eps).sqrt()).to(a.dtype)


@triton.jit
def steps_kernel(a_ptr, b_ptr, y_ptr, eps, SIZE: tl.constexpr, STEPS: tl.constexpr):
    """A sum of products, over its root mean square after every step: what a product gets comes
    of those of later steps, and of the loop's results."""
    i = tl.arange(0, SIZE)
    h = tl.zeros([SIZE, SIZE], tl.float32)
    for step in range(STEPS):
        a = _square(a_ptr + step * SIZE * SIZE, i, i, SIZE)
        h += tl.dot(a, _square(b_ptr + step * SIZE * SIZE, i, i, SIZE))
        h = h / tl.sqrt(tl.sum(h * h, axis=1) / SIZE + eps)[:, None]
    tl.store(y_ptr + i[:, None] * SIZE + i[None, :], h.to(y_ptr.dtype.element_ty))


def steps(kernel, a, b, eps):
    y = torch.empty_like(a[0])
    kernel[(1,)](a, b, y, eps, SIZE=SIZE, STEPS=STEPS)
    return y


def steps_reference(a, b, eps):
    h = 0
    for x, y in zip(wide(a), wide(b), strict=True):
        h = h + x @ y
        h = h / (h.square().mean(1, keepdim=True) + eps).sqrt()
    return h.to(a.dtype)


def wide(x):
    """As a kernel multiplies it: what the sums are in is wider than half precision."""
    return x.float() if x.dtype == torch.float16 else x


def wider(x, dtype):
    """The type of a result, in a reference that runs in float64, too."""
    return x.dtype if x.dtype == torch.float64 else dtype
