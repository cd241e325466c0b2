"""A gradient penalty: a loss that contains the gradient of a network by its input.

A critic should have slope one everywhere (Gulrajani et al., "Improved training of Wasserstein
GANs"). So the loss has the norm of its gradient by the input, and training differentiates that once
more. The critic's layers are one kernel: a norm, a product and an activation.
"""

import torch
import triton
import triton.language as tl
from beside_pytorch import are_close
from triton_autodiff import autodiff


@triton.jit
def norm_layer_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, n_rows, n_in, n_out, eps,
    BLOCK_M: tl.constexpr, BLOCK_IN: tl.constexpr, BLOCK_OUT: tl.constexpr,
):  # fmt: skip
    """y = silu(rms_norm(x) @ w + b), a block of rows and of columns for each program."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    outs = tl.program_id(1) * BLOCK_OUT + tl.arange(0, BLOCK_OUT)
    ins = tl.arange(0, BLOCK_IN)
    in_rows, in_outs, in_ins = rows < n_rows, outs < n_out, ins < n_in
    x_mask = in_rows[:, None] & in_ins[None, :]
    x = tl.load(x_ptr + rows[:, None] * n_in + ins[None, :], mask=x_mask, other=0.0)
    w_mask = in_ins[:, None] & in_outs[None, :]
    w = tl.load(w_ptr + ins[:, None] * n_out + outs[None, :], mask=w_mask, other=0.0)
    b = tl.load(b_ptr + outs, mask=in_outs, other=0.0)
    x *= tl.rsqrt(tl.sum(x * x, axis=1) / n_in + eps)[:, None]
    u = tl.dot(x, w, input_precision="ieee") + b[None, :]
    y_mask = in_rows[:, None] & in_outs[None, :]
    tl.store(y_ptr + rows[:, None] * n_out + outs[None, :], u * tl.sigmoid(u), mask=y_mask)


def norm_layer(kernel, x, w, b, eps=1e-5):
    """The stub: x is (rows, inputs), w (inputs, outputs)."""
    (n_rows, n_in), n_out = x.shape, w.shape[1]
    y = x.new_empty(n_rows, n_out)
    block_in = max(16, triton.next_power_of_2(n_in))
    grid = (triton.cdiv(n_rows, 16), triton.cdiv(n_out, 32))
    kernel[grid](
        x.contiguous(), w.contiguous(), b, y, n_rows, n_in, n_out, eps,
        BLOCK_M=16, BLOCK_IN=block_in, BLOCK_OUT=32,
    )  # fmt: skip
    return y


def reference(x, w, b, eps=1e-5):
    """The same as formulas of PyTorch."""
    x = x * (x.square().mean(1, keepdim=True) + eps).rsqrt()
    return torch.nn.functional.silu(x @ w + b)


class Critic(torch.nn.Module):
    """Two layers, which `layer` computes, and a sum."""

    def __init__(self, layer, n_in: int, width: int):
        super().__init__()
        self.layer = layer
        self.w1 = torch.nn.Parameter(torch.randn(n_in, width) / n_in**0.5)
        self.b1 = torch.nn.Parameter(torch.randn(width))
        self.w2 = torch.nn.Parameter(torch.randn(width, width) / width**0.5)
        self.b2 = torch.nn.Parameter(torch.randn(width))
        self.w3 = torch.nn.Parameter(torch.randn(width))

    def forward(self, x):
        return self.layer(self.layer(x, self.w1, self.b1), self.w2, self.b2) @ self.w3


def penalty(critic, x):
    """The mean of (|∂critic/∂x| - 1)²."""
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


def gradients(critic, x):
    """The gradients of the penalty by the critic's parameters."""
    return torch.autograd.grad(penalty(critic, x), critic.parameters())


def with_formulas(critic, dtype):
    """The same critic, in PyTorch."""
    n_in, width = critic.w1.shape
    theirs = Critic(reference, n_in, width)
    theirs.load_state_dict(critic.state_dict())
    return theirs.to(dtype)


def main() -> None:
    torch.manual_seed(0)
    torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
    critic = Critic(autodiff(norm_layer_kernel, norm_layer), n_in=12, width=40)
    x = torch.randn(50, 12)
    truths = gradients(with_formulas(critic, torch.float64), x.double())
    theirs = gradients(with_formulas(critic, torch.float32), x)
    names = [name for name, _ in critic.named_parameters()]
    good = are_close("gradient of the penalty by", names, gradients(critic, x), theirs, truths)

    optimizer = torch.optim.Adam(critic.parameters(), lr=0.01)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = penalty(critic, torch.randn(50, 12))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"training with it: the penalty was {losses[0]:.3f} and is {losses[-1]:.3f}")
    if not good or losses[-1] > 0.3 * losses[0]:
        raise SystemExit("gradient_penalty: the gradients are wrong")


if __name__ == "__main__":
    main()
