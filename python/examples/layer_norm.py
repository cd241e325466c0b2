"""Layer norm over rows of any length: only the forward kernel is written by hand.

The kernel is the one of Triton's tutorial: it loops over the columns three times, for the mean,
for the variance and for the output, and stores mean and rstd. ``autodiff`` makes the gradients of
x, weight and bias. Run it for a check against PyTorch.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(
    x_ptr, y_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, stride, n_columns, eps,
    BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + columns, mask=columns < n_columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / n_columns
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < n_columns, other=0.0).to(tl.float32)
        x = tl.where(columns < n_columns, x - mean, 0.0)
        squares += x * x
    variance = tl.sum(squares, axis=0) / n_columns
    rstd = 1 / tl.sqrt(variance + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < n_columns
        weight = tl.load(weight_ptr + columns, mask=mask)
        bias = tl.load(bias_ptr + columns, mask=mask)
        x = tl.load(x_ptr + columns, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + columns, (x - mean) * rstd * weight + bias, mask=mask)


def layer_norm(kernel, x, weight, bias, eps=1e-5, BLOCK=None, **options):
    """Normalises the last dimension of a dense x."""
    y = torch.full_like(x, float("nan"))
    rows = x.reshape(-1, x.shape[-1])
    m, n = rows.shape
    mean = torch.full((m,), float("nan"), dtype=torch.float32, device=x.device)
    rstd = torch.full((m,), float("nan"), dtype=torch.float32, device=x.device)
    BLOCK = BLOCK or min(1024, triton.next_power_of_2(n))
    kernel[(m,)](rows, y, weight, bias, mean, rstd, rows.stride(0), n, eps, BLOCK=BLOCK, **options)
    return y


def reference(x, weight, bias, eps=1e-5):
    """PyTorch's own layer norm, in the precision of its inputs."""
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, eps)


def gradients(op, inputs, upstream):
    """Runs ``op`` on fresh leaves and returns their gradients."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    op(*leaves).backward(upstream)
    return [x.grad for x in leaves]


def check(form, ours, theirs, truth) -> bool:
    """Prints each gradient's relative error beside PyTorch's in the same precision."""
    good = True
    for name, mine, torchs, exact in zip(("x", "weight", "bias"), ours, theirs, truth, strict=True):
        error = ((mine.double() - exact).norm() / exact.norm()).item()
        bound = ((torchs.double() - exact).norm() / exact.norm()).item()
        good &= error <= 2 * bound
        print(f"  {form:8} d{name:6}: relative error {error:.2e} (PyTorch {bound:.2e})")
    return good


def main() -> None:
    from triton_autodiff import autodiff

    cuda = torch.cuda.is_available()
    device, dtype = ("cuda", torch.float16) if cuda else ("cpu", torch.float16)
    m, n = (4096, 8192) if cuda else (64, 1000)
    weight = torch.rand(n, dtype=dtype, device=device)
    bias = torch.rand(n, dtype=dtype, device=device)
    x = -2.3 + 0.5 * torch.randn(m, n, dtype=dtype, device=device)
    upstream = 0.1 * torch.randn_like(x)
    print(f"layer norm, {m} x {n}, {dtype}, {device}")
    inputs = (x, weight, bias)
    theirs = gradients(reference, inputs, upstream)
    truth = gradients(reference, [t.double() for t in inputs], upstream.double())

    # Today's form: the kernel and the stub say everything.
    op = autodiff(layer_norm_kernel, layer_norm)
    good = check("new", gradients(op, inputs, upstream), theirs, truth)

    # The earlier form: the grid, the output's index, the arguments that the stub makes itself.
    op, backward_kernel = autodiff(
        layer_norm_kernel, layer_norm, grid=(m,), idx_upstream=1, non_stub_args_idxs=[4, 5]
    )
    layer_norm(backward_kernel, x, weight, bias)
    good &= check("earlier", gradients(op, inputs, upstream), theirs, truth)
    if not good:
        raise SystemExit("the gradients are not as close to float64 as PyTorch's")


if __name__ == "__main__":
    main()
