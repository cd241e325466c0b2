"""A first look: write a forward kernel, get its gradients, train with them.

Runs in a few seconds on a CPU; uses the GPU where there is one.
"""

import torch
import triton
import triton.language as tl
from triton_autodiff import autodiff


@triton.jit
def gated_layer_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, n_rows, n_columns, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """y = u * sigmoid(u) with u = x * w + b, a scale and a shift for each column."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    mask = (rows < n_rows)[:, None] & (columns < n_columns)[None, :]
    offsets = rows[:, None] * n_columns + columns[None, :]
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    w = tl.load(w_ptr + columns, mask=columns < n_columns, other=0.0)
    b = tl.load(b_ptr + columns, mask=columns < n_columns, other=0.0)
    u = x * w[None, :] + b[None, :]
    tl.store(y_ptr + offsets, u * tl.sigmoid(u), mask=mask)


def gated_layer(kernel, x, w, b):
    """The stub: allocates the output and launches ``kernel``, which comes first."""
    n_rows, n_columns = x.shape
    y = torch.empty_like(x)
    grid = (triton.cdiv(n_rows, 32),)
    block_n = triton.next_power_of_2(n_columns)
    kernel[grid](x, w, b, y, n_rows, n_columns, BLOCK_M=32, BLOCK_N=block_n)
    return y


def reference(x, w, b):
    return torch.nn.functional.silu(x * w + b)


def check_gradients(op, device) -> bool:
    """The gradients beside PyTorch's, both measured against float64."""
    inputs = [torch.randn(*shape, device=device) for shape in [(100, 30), (30,), (30,)]]
    upstream = torch.randn_like(inputs[0])

    def gradients(function, dtype):
        leaves = [x.to(dtype).requires_grad_() for x in inputs]
        return torch.autograd.grad(function(*leaves), leaves, upstream.to(dtype))

    ours, theirs = gradients(op, torch.float32), gradients(reference, torch.float32)
    truths = gradients(reference, torch.float64)
    good = True
    for name, mine, torchs, truth in zip("xwb", ours, theirs, truths, strict=True):
        error, bound = (((g - truth).norm() / truth.norm()).item() for g in (mine, torchs))
        good &= error <= 2 * bound + 1e-6
        print(f"  d{name}: relative error against float64 {error:.1e} (PyTorch: {bound:.1e})")
    return good


def train(op, device) -> float:
    """Recovers the layer's parameters from its outputs; returns the last loss."""
    x = torch.randn(512, 8, device=device)
    with torch.no_grad():
        target = reference(x, 2 * torch.rand(8, device=device), torch.rand(8, device=device))
    w = torch.full((8,), 0.5, device=device, requires_grad=True)
    b = torch.zeros(8, device=device, requires_grad=True)
    optimizer = torch.optim.Adam([w, b], lr=0.05)
    for step in range(301):
        optimizer.zero_grad()
        loss = ((op(x, w, b) - target) ** 2).mean()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"  step {step:3}: loss {loss.item():.2e}")
    return loss.item()


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    op = autodiff(gated_layer_kernel, gated_layer)
    print(f"gradients of a Triton kernel on {device}:")
    good = check_gradients(op, device)
    print("training with them:")
    loss = train(op, device)
    if not good or loss > 1e-4:
        raise SystemExit("quickstart: the gradients are wrong")
    print("gradient check passed")


if __name__ == "__main__":
    main()
