"""Kernels whose derivative the user defines in part: assembly, own rules, stopped values."""

import torch
import triton
import triton.language as tl
from triton.backends.autodiff import custom_vjp, stop_gradient
from triton.language.extra.cuda import libdevice

from .common import poisoned


def apply(kernel, *inputs, BLOCK=64, **constants):
    """Launches a kernel ``(inputs…, y_ptr, n)`` over all elements of dense tensors."""
    y = poisoned(inputs[0].shape, inputs[0])
    n = y.numel()
    kernel[(triton.cdiv(n, BLOCK),)](*inputs, y, n, BLOCK=BLOCK, **constants)
    return y


@triton.jit
def assembly_kernel(x_ptr, w_ptr, y_ptr, n, ASM: tl.constexpr, BLOCK: tl.constexpr):
    """One instruction on x and w, in float32."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=1.0)
    w = tl.load(w_ptr + offsets, mask=mask, other=1.0)
    y = tl.inline_asm_elementwise(ASM, "=f,f,f", [x, w], tl.float32, is_pure=True, pack=1)
    tl.store(y_ptr + offsets, y, mask=mask)


SOFTPLUS = """
    {
        .reg .f32 e;
        ex2.approx.f32 e, $1;
        add.f32 e, e, 0f3F800000;
        lg2.approx.f32 $0, e;
    }
"""


@triton.jit
def softplus_kernel(x_ptr, y_ptr, n, ASM: tl.constexpr, BLOCK: tl.constexpr):
    """Assembly of several instructions."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    y = tl.inline_asm_elementwise(ASM, "=f,f", [x], tl.float32, is_pure=True, pack=1)
    tl.store(y_ptr + offsets, y, mask=mask)


SINE_AND_COSINE = "sin.approx.f32 $0, $2; cos.approx.f32 $1, $2;"


@triton.jit
def sine_and_cosine_kernel(x_ptr, y_ptr, n, ASM: tl.constexpr, BLOCK: tl.constexpr):
    """Assembly of two results."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    sine, cosine = tl.inline_asm_elementwise(
        ASM, "=f,=f,f", [x], (tl.float32, tl.float32), is_pure=True, pack=1
    )
    tl.store(y_ptr + offsets, sine * cosine, mask=mask)


@triton.jit
def packed_kernel(x_ptr, y_ptr, n, ASM: tl.constexpr, BLOCK: tl.constexpr):
    """Assembly on two half precision elements at a time."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float16)
    y = tl.inline_asm_elementwise(ASM, "=r,r", [x], tl.float16, is_pure=True, pack=2)
    tl.store(y_ptr + offsets, y, mask=mask)


@triton.jit
def nextafter_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """A library function without a rule of its own."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0)
    tl.store(y_ptr + offsets, x * libdevice.nextafter(x * w, w), mask=mask)


@triton.jit
def stopped_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """x times itself, one of them stopped; in a loop and a branch, too."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    y = stop_gradient(x) * x
    for _ in range(3):
        y += stop_gradient(y) * x
    if n > 10:
        y = y * tl.sum(stop_gradient(x), axis=0)
    tl.store(y_ptr + offsets, y, mask=mask)


def stopped_reference(x, block=64):
    y = x.detach() * x
    for _ in range(3):
        y = y + y.detach() * x
    if x.numel() > 10:
        padded = torch.nn.functional.pad(x.detach(), (0, -x.numel() % block))
        y = y * padded.view(-1, block).sum(1).repeat_interleave(block)[: x.numel()]
    return y


@triton.jit
def _clipped_exp(x, limit, SCALE: tl.constexpr):
    return tl.exp(tl.minimum(x, limit)) * SCALE


@triton.jit
def _clipped_exp_vjp(dy, x, limit, SCALE: tl.constexpr, y):
    """Straight through where x is clipped, and nothing for the limit."""
    return dy * y, 0.0


clipped_exp = custom_vjp(_clipped_exp, _clipped_exp_vjp)


@custom_vjp
@triton.jit
def polar(x, w):
    """Two results, of which both take part in the derivative."""
    return tl.sqrt(x * x + w * w), x / w


@polar.defvjp
@triton.jit
def polar_vjp(d_radius, d_slope, x, w, radius, slope):
    return d_radius * x / radius + d_slope / w, d_radius * w / radius - d_slope * slope / w


@triton.jit
def custom_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Own derivatives in a loop, a branch and one after the other."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=1.0)
    w = tl.load(w_ptr + offsets, mask=mask, other=1.0)
    y = tl.zeros_like(x)
    for i in range(2):
        radius, slope = polar(x + i, w)
        y += radius * slope
    if n > 10:
        y = y * clipped_exp(x, 0.5, SCALE=2.0)
    tl.store(y_ptr + offsets, y, mask=mask)


class _ClippedExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clamp(max=0.5).exp() * 2
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.saved_tensors[0]


def custom_reference(x, w):
    y = 0
    for i in range(2):
        y = y + torch.sqrt((x + i) ** 2 + w * w) * ((x + i) / w)
    return y * _ClippedExp.apply(x) if x.numel() > 10 else y


@custom_vjp
@triton.jit
def row_norm(x, eps):
    """A tile to one number per row, and a scalar argument."""
    return tl.sqrt(tl.sum(x * x, axis=1) + eps)


@row_norm.defvjp
@triton.jit
def row_norm_vjp(d_norm, x, eps, norm):
    return (d_norm / norm)[:, None] * x, tl.sum(d_norm / (2 * norm), axis=0)


@triton.jit
def row_norm_kernel(x_ptr, y_ptr, eps, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + rows[:, None] * N + columns[None, :])
    tl.store(y_ptr + rows, row_norm(x, eps))


def norms(kernel, x, eps):
    y = poisoned((x.shape[0],), x)
    kernel[(1,)](x, y, eps, M=x.shape[0], N=x.shape[1])
    return y


@custom_vjp
@triton.jit
def reading(pointer, x):
    """Reads memory itself, which its derivative says nothing of."""
    return tl.load(pointer) * x


@reading.defvjp
@triton.jit
def reading_vjp(dy, pointer, x, y):
    return 0.0, dy


@triton.jit
def reading_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, reading(x_ptr, x), mask=offsets < n)


@custom_vjp
@triton.jit
def wrong_count(x):
    return x * 2


@wrong_count.defvjp
@triton.jit
def wrong_count_vjp(dy, x, y):
    return dy, dy


@custom_vjp
@triton.jit
def without_rule(x):
    return x * 2


@triton.jit
def broken_kernel(x_ptr, y_ptr, n, RULE: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    if RULE:
        y = wrong_count(x)
    else:
        y = without_rule(x)
    tl.store(y_ptr + offsets, y, mask=offsets < n)


@triton.jit
def _same(x):
    return x


@triton.jit
def _reversed_vjp(dy, x, y):
    return -dy


reversed_gradient = custom_vjp(_same, _reversed_vjp)


@triton.jit
def _scaled_vjp(dy, x, y):
    return dy * tl.sin(reversed_gradient(y))


scaled_gradient = custom_vjp(_same, _scaled_vjp)


@triton.jit
def identities_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    once = reversed_gradient(x) * x
    tl.store(y_ptr + i, once + scaled_gradient(x) * reversed_gradient(x) + 3 * x, mask=i < n)


def identities(kernel, x, BLOCK=64):
    """y = 2x² + 3x, of which the gradient is another one."""
    y = torch.empty_like(x)
    kernel[(triton.cdiv(len(x), BLOCK),)](x, y, len(x), BLOCK=BLOCK)
    return y


@triton.jit
def _clipped_vjp(dy, x, y):
    return tl.minimum(tl.maximum(dy, -1.0), 1.0)


clipped_gradient = custom_vjp(_same, _clipped_vjp)


@triton.jit
def _scaled_clip(x, factor):
    return clipped_gradient(x) * factor


@triton.jit
def clips_kernel(x_ptr, y_ptr, k, HOW: tl.constexpr, BLOCK: tl.constexpr):
    """Sums of multiples of x, of which each has a gradient of its own, clipped to [-1, 1]."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    if HOW == "beside":
        y = clipped_gradient(x) * 3 - clipped_gradient(x) * 5
    elif HOW == "nested":
        y = clipped_gradient(clipped_gradient(x) * 3) + clipped_gradient(x) * 5
    elif HOW == "unrolled":
        y = tl.zeros_like(x)
        for _ in tl.static_range(3):
            y += clipped_gradient(x) * 2
    elif HOW == "loop":
        y = clipped_gradient(x) * 3
        for _ in range(k):
            y += clipped_gradient(x) * 2
    elif HOW == "branch":
        y = clipped_gradient(x) * 3
        if k > 1:
            y += clipped_gradient(x) * 2
    elif HOW == "loaded again":
        y = clipped_gradient(x) * 3 + clipped_gradient(tl.load(x_ptr + i)) * 5
    else:
        y = _scaled_clip(x, 3.0) + _scaled_clip(x, -5.0)
    tl.store(y_ptr + i, y)


def clips(kernel, x, k, how):
    y = torch.empty_like(x)
    kernel[(1,)](x, y, k, HOW=how, BLOCK=len(x))
    return y
