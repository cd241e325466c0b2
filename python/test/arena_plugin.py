"""A plug-in of the arena with what packages may have: right and wrong backwards, crashes, hangs."""

import os
import signal
import time

import torch
import triton
import triton.language as tl
from arena.case import BF16, F32, Case

PACKAGES = ()
MODULES = (__name__,)
DIMENSIONS = {"small": {"rows": 6, "width": 40}, "users": {"rows": 6, "width": 40}}
EXCLUDED = {"nothing": "it is not there"}


@triton.jit
def _silu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(y_ptr + i, x * tl.sigmoid(x), mask=i < n)


class Silu(torch.autograd.Function):
    """x · sigmoid(x), and a gradient times what the class says."""

    factor = 1.0

    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        _silu_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        ctx.save_for_backward(x)
        return y

    @classmethod
    def gradient(cls, x, dy):
        s = x.float().sigmoid()
        return (cls.factor * dy * (s + x * s * (1 - s))).to(x.dtype)

    @staticmethod
    def backward(ctx, dy):
        return Silu.gradient(ctx.saved_tensors[0], dy)


class Scaled(Silu):
    """The gradient is off by two percent."""

    factor = 1.02

    @staticmethod
    def backward(ctx, dy):
        return Scaled.gradient(ctx.saved_tensors[0], dy)


class Empty(Silu):
    """Adds to memory that nobody wrote."""

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        # So much that it is new, and zero, if nobody fills it.
        scratch = torch.empty(2**24, device=x.device)[: x.numel()].view_as(x)
        return Silu.gradient(x, dy) + scratch.to(x.dtype)


class Refuses(Silu):
    """Has no backward."""

    @staticmethod
    def backward(ctx, dy):
        raise NotImplementedError("not for this device")


class Crashes(Silu):
    """Has a backward that ends the process."""

    @staticmethod
    def backward(ctx, dy):
        os.kill(os.getpid(), signal.SIGSEGV)


def _aborts(x):
    os.kill(os.getpid(), signal.SIGSEGV)


def _hangs(x):
    time.sleep(600)


def cases():
    """Each kind once."""
    functions = {
        "right": lambda x: Silu.apply(x),
        "scaled": lambda x: Scaled.apply(x),
        "empty": lambda x: Empty.apply(x),
        "refuses": lambda x: Refuses.apply(x),
        "theirs crashes": lambda x: Crashes.apply(x),
        # As `f = Function.apply` in a module, where nobody finds it.
        "bound": lambda x, apply=Scaled.apply: apply(x),
        "crashes": _aborts,
        "hangs": _hangs,
    }
    return [
        Case(
            name,
            "kinds",
            function,
            lambda m: {"x": m(m.rows, m.width)},
            torch.nn.functional.silu if name == "scaled" else None,
            dtypes=(BF16, F32),
        )
        for name, function in functions.items()
    ]
