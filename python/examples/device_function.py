"""A function that kernels call, and its gradient as another one.

The example of the first Triton autodiff (github.com/srush/triton-autodiff), which differentiated
Python's source: here it is `vjp`, in kernels that load and store around it.
"""

import torch
import triton
import triton.language as tl
from triton_autodiff import vjp


@triton.jit
def fn1(x, y):
    a = tl.exp(x)
    b = tl.log(tl.expand_dims(y, 1))
    c = a + b
    return a * b + tl.dot(c, c, input_precision="ieee")


fn1_back = vjp(fn1)


@triton.jit
def forward_kernel(x_ptr, y_ptr, z_ptr):
    i = tl.arange(0, 16)
    z = fn1(tl.load(x_ptr + i), tl.load(y_ptr + i))
    tl.store(z_ptr + 16 * i[:, None] + i, z)


@triton.jit
def backward_kernel(x_ptr, y_ptr, dx_ptr, dy_ptr, dz_ptr):
    i = tl.arange(0, 16)
    dz = tl.load(dz_ptr + 16 * i[:, None] + i)
    dx, dy = fn1_back(tl.load(x_ptr + i), tl.load(y_ptr + i), dz)
    tl.store(dx_ptr + i, dx)
    tl.store(dy_ptr + i, dy)


def reference(x, y):
    a = x.exp()
    b = y[:, None].log()
    c = a + b
    return a * b + c @ c


def check(forward, backward, function, x_shape, y_shape, z_shape, device) -> bool:
    """Whether two kernels compute a function of PyTorch and its gradient: beside float64."""
    x, dz = torch.randn(x_shape, device=device), torch.randn(z_shape, device=device)
    y = torch.rand(y_shape, device=device) + 0.5
    z, dx, dy = torch.empty_like(dz), torch.empty_like(x), torch.empty_like(y)
    forward[(1,)](x, y, z)
    backward[(1,)](x, y, dx, dy, dz)

    leaves = [value.double().requires_grad_() for value in (x, y)]
    truth = function(*leaves)
    truths = truth.detach(), *torch.autograd.grad(truth, leaves, dz.double())
    good = True
    for name, ours, true in zip(("z", "dx", "dy"), (z, dx, dy), truths, strict=True):
        error = ((ours - true).norm() / true.norm()).item()
        good &= error < 1e-5
        print(f"  {name}: relative error against float64 {error:.1e}")
    return good


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    print(fn1_back.source("fp32[16]", "fp32[16]"))
    print(f"on {device}:")
    if not check(forward_kernel, backward_kernel, reference, (16,), (16,), (16, 16), device):
        raise SystemExit("device_function: the gradients are wrong")
    print("check succeeded")


if __name__ == "__main__":
    main()
