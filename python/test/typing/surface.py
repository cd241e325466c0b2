"""Every public name, as a type checker has to see it; `make types` runs mypy and pyright on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
import triton_autodiff
from triton_autodiff import (
    AutodiffError,
    GradientCheckError,
    autodiff,
    check,
    custom_vjp,
    differentiable,
    grad,
    register_vjp,
    right_partial,
    stop_gradient,
    value_and_grad,
    vjp,
)
from typing_extensions import assert_type

version: str = triton_autodiff.__version__


@triton.jit
def double(x_ptr: Any, y_ptr: Any, BLOCK: tl.constexpr) -> None:
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, stop_gradient(tl.load(x_ptr + offsets)) * 2)


kernel = differentiable(double, tape_limit=1 << 20)
text: str = kernel.explain() + kernel.backward_ir()
again: Any = differentiable(deterministic=True)(double)[(1,)](1, 2, BLOCK=16)


def stub(launch: Any, x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


op = autodiff(double, right_partial(stub, 2.0), backward={"num_warps": 8}, autotune=False)
result: Any = op(torch.ones(3))
explained: str = op.explain()
forward, backward = autodiff(double, stub, (1,), idx_upstream=1)
report = check(op, (torch.ones(3, requires_grad=True),), elements=4, rtol=None)
passed: bool = report.passed

of_values: Any = (grad(double), value_and_grad(double, argnums=(0, 1)), vjp(double, 0))
printed: str = grad(double).source("fp32")

f = custom_vjp(double)


@f.defvjp
def derivative(dy: float, x: float) -> float:
    return dy


@register_vjp(asm="mov.f32 $0, $1;")
def rule(dy: float, x: float) -> float:
    return dy


assert_type(derivative(1.0, 2.0), float)
assert_type(rule(1.0, 2.0), float)
assert_type(stop_gradient(1.0), float)
bound: Callable[..., torch.Tensor] = right_partial(stub, 2.0)

try:
    kernel.run(grid=(1,))
except GradientCheckError as error:
    print(error.report)
except AutodiffError as error:
    print(str(error))
