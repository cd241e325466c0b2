"""Derivatives of gradients that kernels compute: `grad` of `grad`, and `differentiable`."""

import pytest
import torch
import triton
import triton.language as tl
from gradients import random_tensor
from kernels import device_functions as kernels
from pulled import assert_all_close, said
from triton_autodiff import custom_vjp, differentiable, grad, stop_gradient, vjp

pytestmark = pytest.mark.usefixtures("needs_gradients")


@pytest.mark.parametrize("function", kernels.CURVES, ids=lambda f: f.__name__)
def test_three_orders(device, function):
    x = (random_tensor(16, device=device).detach().abs() % 1.5 + 0.4).requires_grad_()
    gradient, curve = function, kernels.CURVES[function]
    one = torch.ones_like(x)
    for _ in range(3):
        gradient = grad(gradient)
        assert_all_close([kernels.apply(gradient, x)], curve, (x,), (one,), roundings=64)
        curve = slope_of(curve)


def slope_of(curve):
    """The gradient of the sum of a function of PyTorch."""

    def slope(x):
        (y,) = torch.autograd.grad(curve(x).sum(), x, create_graph=True, materialize_grads=True)
        return y if y.requires_grad else y + 0 * x

    return slope


@triton.jit
def deviation(x):
    d = tl.log(x) / x - 0.25
    return d * d * tl.sqrt(x)


slope_of_deviation = grad(deviation)


@triton.jit
def slope_kernel(x_ptr, y_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(y_ptr + i, slope_of_deviation(tl.load(x_ptr + i)))


def test_a_kernel_with_a_gradient_is_differentiable(device):
    x = (random_tensor(64, device=device).detach().abs() + 0.5).requires_grad_()
    y = torch.empty_like(x)
    differentiable(slope_kernel)[(4,)](x, y, 16)
    dy = torch.randn_like(y)
    (found,) = torch.autograd.grad(y, x, dy)

    def slope(x):
        d = x.log() / x - 0.25
        return torch.autograd.grad((d * d * x.sqrt()).sum(), x, create_graph=True)[0]

    assert_all_close((found,), slope, (x,), (dy,), roundings=64)


@pytest.mark.parametrize("function", kernels.FUNCTIONS, ids=lambda f: f.__name__)
def test_functions_twice(device, function):
    """The kernel that pulls back is differentiated, by its cotangent, too."""

    def reference(x, y, dz):
        z = kernels.FUNCTIONS[function](x, y)
        return torch.autograd.grad(z, (x, y), dz, create_graph=True)

    x, y, dz = (random_tensor(16, device=device, scale=0.7) for _ in range(3))
    dx, dy = torch.empty_like(x), torch.empty_like(y)
    kernel = differentiable(kernels.pulling_kernel)
    kernel[(1,)](x, y, dz, dx, dy, vjp(function), 16)
    upstreams = torch.randn_like(dx), torch.randn_like(dy)
    found = torch.autograd.grad((dx, dy), (x, y, dz), upstreams, materialize_grads=True)
    assert_all_close(found, reference, (x, y, dz), upstreams, roundings=256)


@triton.jit
def ratio(x, y):
    return x / y + tl.log(x)


pull_ratio = vjp(ratio)


@triton.jit
def ratio_kernel(x_ptr, y_ptr, dz_ptr, dx_ptr, dy_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    dx, dy = pull_ratio(tl.load(x_ptr + i), tl.load(y_ptr + i), tl.load(dz_ptr + i))
    tl.store(dx_ptr + i, dx)
    tl.store(dy_ptr + i, dy)


def test_derivative_by_a_cotangent_that_is_zero(device):
    """A pullback of a pullback pushes tangents forward, at any cotangent."""
    x, y = (random_tensor(16, device=device).detach().abs() + 0.5 for _ in range(2))
    dz = torch.zeros(16, device=device, requires_grad=True)
    dx, dy = torch.empty_like(x), torch.empty_like(y)
    differentiable(ratio_kernel)[(1,)](x, y, dz, dx, dy, 16)
    u, v = torch.randn_like(x), torch.randn_like(y)
    (found,) = torch.autograd.grad((dx, dy), dz, (u, v))
    torch.testing.assert_close(found, u * (1 / y + 1 / x) - v * x / (y * y))


@triton.jit
def half_stopped(x):
    return x * stop_gradient(x * x)


def test_what_was_stopped_stays_so(device):
    x = random_tensor(16, device=device, grad=False)
    torch.testing.assert_close(kernels.apply(grad(half_stopped), x), x * x)
    assert not kernels.apply(grad(grad(half_stopped)), x).any()


@custom_vjp
@triton.jit
def straight_through(x):
    return tl.floor(x)


@straight_through.defvjp
@triton.jit
def straight_through_vjp(dy, x, y):
    return dy


@triton.jit
def quantized_square(x):
    y = straight_through(x)
    return y * y


def test_derivative_of_ones_own(device):
    x = random_tensor(16, device=device, grad=False)
    torch.testing.assert_close(kernels.apply(grad(quantized_square), x), 2 * torch.floor(x))
    with pytest.raises(Exception) as raised:
        kernels.apply(grad(grad(quantized_square)), x)
    assert "derivative of its own is differentiated again" in said(raised.value)
