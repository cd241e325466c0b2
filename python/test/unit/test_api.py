"""The public surface on real kernels."""

import os
import subprocess
import sys

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.autodiff import AutodiffError, autodiff, differentiable, right_partial
from triton.backends.autodiff.errors import ArgumentError


@triton.jit
def scale(x, y, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, v * v * factor, mask=i < n)


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    b = tl.load(y + i, mask=i < n)
    tl.store(z + i, a + b, mask=i < n)


@triton.jit
def double_in_place(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(x + i, v * v, mask=i < n)


@triton.jit
def two_outputs(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, tl.exp(v), mask=i < n)
    tl.store(z + i, v * v, mask=i < n)


@triton.jit
def softmax(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * n + i, e / tl.sum(e, 0), mask=i < n)


@triton.jit
def arg_max(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=-float("inf"))
    tl.store(y, tl.argmax(v, 0))


@triton.jit
def accumulate(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.atomic_add(y + i, v * v, mask=i < n)


def scaled(kernel, x, factor=3.0):
    y = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 64),)](x, y, n, factor, BLOCK=64)
    return y


def test_decorator(device):
    kernel = differentiable(scale)
    assert differentiable(kernel) is kernel
    assert kernel.__name__ == "scale" and kernel.arg_names == scale.arg_names
    assert kernel.fn is scale.fn and "scale" in repr(kernel)
    with pytest.raises(RuntimeError, match=r"kernel\[grid\]"):
        kernel(1)
    with pytest.raises(AttributeError):
        _ = kernel.no_such_thing
    x = torch.randn(100, device=device, requires_grad=True)
    y = torch.empty_like(x, requires_grad=False)
    compiled = kernel[(2,)](x, y, 100, 3.0, BLOCK=64)
    assert compiled is kernel.run(x, y.detach(), 100, 3.0, BLOCK=64, grid=(2,), warmup=True)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 6 * x.detach())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_dtypes(device, dtype):
    x = torch.randn(100, device=device, dtype=dtype, requires_grad=True)
    scaled(differentiable(scale), x).backward(torch.full((100,), 2.0, dtype=dtype, device=device))
    assert x.grad.dtype == dtype
    torch.testing.assert_close(x.grad, 12 * x.detach(), rtol=1e-2, atol=1e-2)


def test_gradcheck(device):
    x = torch.randn(3, 20, device=device, dtype=torch.float64, requires_grad=True)

    def rows(x):
        y = torch.empty_like(x)
        differentiable(softmax)[(3,)](x, y, x.stride(0), 20, BLOCK=32)
        return y

    assert torch.autograd.gradcheck(rows, x, fast_mode=False)
    wide = torch.randn(3, 50, device=device, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: rows(w[:, 10:30]), wide)


def test_in_place(device):
    leaf = torch.randn(100, device=device, requires_grad=True)
    x = leaf * 1
    kernel = differentiable(double_in_place)
    kernel[(2,)](x, 100, BLOCK=64)
    kernel[(2,)](x, 100, BLOCK=64)
    x.sum().backward()
    torch.testing.assert_close(leaf.grad, 4 * leaf.detach() ** 3)


def test_partial_in_place(device):
    """Only the first half is updated; the rest passes its gradient on."""
    leaf = torch.randn(100, device=device, requires_grad=True)
    x = leaf * 1
    differentiable(double_in_place)[(1,)](x, 50, BLOCK=64)
    upstream = torch.randn(100, device=device)
    x.backward(upstream)
    expected = upstream.clone()
    expected[:50] *= 2 * leaf.detach()[:50]
    torch.testing.assert_close(leaf.grad, expected)


def test_constants_into_a_history(device):
    """The kernel's input has no gradient; what it writes to has."""
    x = torch.randn(100, device=device)
    old = torch.randn(120, device=device, requires_grad=True)
    upstream = torch.randn(120, device=device)
    for kernel, factor in ((accumulate, ()), (scale, (3.0,))):
        y = old * 2
        differentiable(kernel)[(2,)](x, y, 100, *factor, BLOCK=64)
        (gradient,) = torch.autograd.grad(y, old, upstream)
        expected = 2 * upstream
        if kernel is scale:
            expected[:100] = 0
        torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("view", [False, True])
def test_output_with_a_history(device, view):
    """What the kernel leaves in place keeps its gradient, what it overwrites has none."""
    x = torch.randn(100, device=device, requires_grad=True)
    old = torch.randn(150, device=device, requires_grad=True)
    buffer = old * 2
    y = buffer[20:] if view else buffer
    differentiable(scale)[(2,)](x, y, 100, 3.0, BLOCK=64)
    upstream = torch.randn(150, device=device)
    buffer.backward(upstream)
    first = 20 if view else 0
    kept = torch.ones(150, device=device)
    kept[first : first + 100] = 0
    torch.testing.assert_close(old.grad, 2 * kept * upstream)
    written = upstream[first : first + 100]
    torch.testing.assert_close(x.grad, 6 * x.detach() * written)


def test_accumulation_into_a_history(device):
    """What is added to keeps its gradient."""
    x = torch.randn(100, device=device, requires_grad=True)
    old = torch.randn(120, device=device, requires_grad=True)
    y = old * 2
    kernel = differentiable(accumulate)
    for _ in range(2):
        kernel[(2,)](x, y, 100, BLOCK=64)
    upstream = torch.randn(120, device=device)
    y.backward(upstream)
    torch.testing.assert_close(old.grad, 2 * upstream)
    torch.testing.assert_close(x.grad, 4 * x.detach() * upstream[:100])


def test_output_buffer_used_again(device):
    """The second launch overwrites what the first one wrote, after it has been read."""
    x = torch.randn(100, device=device, requires_grad=True)
    y = torch.empty(100, device=device)
    kernel = differentiable(scale)
    kernel[(2,)](x, y, 100, 3.0, BLOCK=64)
    first = y * 1
    kernel[(2,)](x, y, 100, 5.0, BLOCK=64)
    (first + y).sum().backward()
    torch.testing.assert_close(x.grad, 16 * x.detach())


def test_alias_of_input_and_output(device):
    leaf = torch.randn(100, device=device, requires_grad=True)
    x = leaf * 1
    differentiable(scale)[(2,)](x, x, 100, 3.0, BLOCK=64)
    x.sum().backward()
    torch.testing.assert_close(leaf.grad, 6 * leaf.detach())


def test_one_tensor_twice(device):
    x = torch.randn(100, device=device, requires_grad=True)
    z = torch.empty(100, device=device)
    differentiable(add)[(2,)](x, x, z, 100, BLOCK=64)
    z.sum().backward()
    torch.testing.assert_close(x.grad, torch.full((100,), 2.0, device=device))


@pytest.mark.parametrize("used", ["y", "z", "both"])
def test_several_outputs(device, used):
    x = torch.randn(100, device=device, requires_grad=True)
    stats = torch.zeros(2, 100, device=device)
    for outputs in ((torch.empty(100, device=device), torch.empty(100, device=device)), stats):
        y, z = outputs[0], outputs[1]
        x.grad = None
        differentiable(two_outputs)[(2,)](x, y, z, 100, BLOCK=64)
        expected = 0
        loss = 0
        if used != "z":
            loss, expected = loss + y.sum(), expected + x.detach().exp()
        if used != "y":
            loss, expected = loss + (3 * z).sum(), expected + 6 * x.detach()
        loss.backward()
        torch.testing.assert_close(x.grad, expected)


@pytest.mark.parametrize("upstream", ["expanded", "transposed", "offset"])
def test_upstream_layouts(device, upstream):
    x = torch.randn(10, 10, device=device, requires_grad=True)
    g = {
        "expanded": torch.tensor(2.0, device=device).expand(10, 10),
        "transposed": torch.randn(10, 10, device=device).t(),
        "offset": torch.randn(101, device=device)[1:].view(10, 10),
    }[upstream]
    scaled(differentiable(scale), x).backward(g)
    torch.testing.assert_close(x.grad, 6 * x.detach() * g)


def test_larger_tensor_than_the_kernel_reads(device):
    x = torch.randn(100, device=device, requires_grad=True)
    y = torch.zeros(100, device=device)
    differentiable(scale)[(1,)](x, y, 30, 3.0, BLOCK=64)
    y.sum().backward()
    expected = 6 * x.detach()
    expected[30:] = 0
    torch.testing.assert_close(x.grad, expected)


def test_wrapped_kernels(device):
    configs = [triton.Config({"BLOCK": b}) for b in (32, 64)]
    tuned = triton.autotune(configs, key=["n"])(scale)
    x = torch.randn(100, device=device, requires_grad=True)
    y = torch.empty(100, device=device)
    kernel = differentiable(tuned)
    for _ in range(2):
        y = torch.empty(100, device=device)
        kernel[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, y, 100, 3.0)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 6 * x.detach())
    assert kernel.best_config in configs
    sized = triton.heuristics({"BLOCK": lambda a: triton.next_power_of_2(a["n"])})(scale)
    y = torch.empty(100, device=device)
    differentiable(sized)[(1,)](x, y, 100, 3.0)
    x.grad = None
    y.sum().backward()
    torch.testing.assert_close(x.grad, 6 * x.detach())


def test_tuning_restores_what_it_changes(device):
    configs = [triton.Config({"BLOCK": b}) for b in (128, 256)]
    tuned = triton.autotune(configs, key=["n"], restore_value=["x"])(double_in_place)
    leaf = torch.rand(100, device=device, requires_grad=True)
    x = leaf * 1
    differentiable(tuned)[(1,)](x, 100)
    torch.testing.assert_close(x.detach(), leaf.detach() ** 2)
    x.sum().backward()
    torch.testing.assert_close(leaf.grad, 2 * leaf.detach())


def test_autodiff(device):
    op = autodiff(scale, scaled)
    x = torch.randn(100, device=device, requires_grad=True)
    op(x, factor=5.0).sum().backward()
    torch.testing.assert_close(x.grad, 10 * x.detach())
    assert op.__name__ == "scaled"


def test_earlier_form(device):
    stub = right_partial(scaled, 3.0)
    op, bwd_kernel = autodiff(scale, stub, (2,), idx_upstream=1, non_stub_args_idxs=[1])
    x = torch.randn(100, device=device, requires_grad=True)
    warm = stub(bwd_kernel, x)
    assert not warm.requires_grad
    torch.testing.assert_close(warm, 3 * x.detach() ** 2)
    op(x).sum().backward()
    torch.testing.assert_close(x.grad, 6 * x.detach())
    wrong, _ = autodiff(scale, stub, idx_upstream=0)
    with pytest.raises(ArgumentError, match="idx_upstream=0.*stores to y"):
        wrong(x)


def test_post_process(device):
    seen = []

    def process(gx, gy):
        seen.append((gx.shape, gy.shape))
        return 10 * gx, gy

    def stub(kernel, x, y):
        z = torch.empty(100, device=x.device)
        kernel[(2,)](x, y, z, 100, BLOCK=64)
        return z

    op = autodiff(add, stub, post_process_fn=process)
    x, y = (torch.randn(100, device=device, requires_grad=True) for _ in range(2))
    op(x, y).sum().backward()
    assert seen == [((100,), (100,))]
    assert (x.grad == 10).all() and (y.grad == 1).all()


def test_torch_code_in_the_stub(device):
    def stub(kernel, x):
        return scaled(kernel, torch.sin(x)) * x

    x = torch.randn(100, device=device, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(autodiff(scale, stub), x, fast_mode=True)


def test_backward_text_and_report(device):
    x = torch.randn(100, device=device, requires_grad=True)
    op = autodiff(scale, scaled)
    with pytest.raises(AutodiffError, match="not been launched"):
        op.backward_ir()
    given = op.backward_ir(x)
    assert "tt.func" in given
    op(x)
    assert op.backward_ir() == given
    report = op.explain()
    assert "gradients of x; writes y" in report and "gradient of x" in report
    kernel = differentiable(scale)
    y = torch.empty_like(x, requires_grad=False)
    kernel[(2,)](x.detach(), y, 100, 3.0, BLOCK=64)
    assert "tt.func" in kernel.backward_ir()
    assert "tt.func" in kernel.backward_ir(x, y, 100, 3.0, BLOCK=64, grid=(2,))


def test_kernel_without_float_outputs(device):
    x = torch.randn(50, device=device, requires_grad=True)
    index = torch.zeros(1, dtype=torch.int32, device=device)
    kernel = differentiable(arg_max)
    kernel[(1,)](x, index, 50, BLOCK=64)
    assert index.item() == x.argmax().item() and not index.requires_grad
    with pytest.raises(AutodiffError, match="nothing to differentiate"):
        kernel.backward_ir()


def test_integer_output_counts_as_changed(device):
    x = torch.randn(50, device=device, requires_grad=True)
    index = torch.zeros(1, dtype=torch.int32, device=device)
    before = index._version
    differentiable(arg_max)[(1,)](x, index, 50, BLOCK=64)
    assert index._version > before


@triton.jit
def reports(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.inline_asm_elementwise(
        "activemask.b32 $0; // $1", "=r,r", [tl.load(x + i)], tl.float32, True, 1
    )
    tl.store(y + i, v)


def test_unsupported_operation_names_the_line(device):
    x = torch.randn(64, device=device, requires_grad=True)
    y = torch.empty(64, device=device)
    if device == "cpu":
        pytest.skip("the CPU backend refuses inline assembly before we do")
    with pytest.raises(AutodiffError, match=r"'reports'.*test_api.py.*elementwise_inline_asm"):
        differentiable(reports)[(1,)](x, y, BLOCK=64)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda d: torch.randn(64, dtype=torch.complex64, device=d), "'y'.*complex64"),
        (lambda d: torch.randn(64, device=d).to_sparse(), "'y'.*sparse"),
        (lambda d: torch.empty(64, device="meta"), "'y'.*meta"),
        (
            lambda d: torch.quantize_per_tensor(torch.randn(64), 0.1, 0, torch.qint8),
            "'y'.*quantized",
        ),
    ],
)
def test_bad_tensors(device, make, message):
    x = torch.randn(64, device=device, requires_grad=True)
    with pytest.raises(ArgumentError, match=message):
        differentiable(scale)[(1,)](x, make(device), 64, 2.0, BLOCK=64)


def test_tensor_on_another_device(cuda):
    x = torch.randn(64, device=cuda, requires_grad=True)
    with pytest.raises(ArgumentError, match="'y'.*is on cpu, but the kernel runs on cuda"):
        differentiable(scale)[(1,)](x, torch.empty(64), 64, 2.0, BLOCK=64)


@pytest.mark.parametrize("thing", [print, None, scale.fn, "scale"])
def test_what_is_no_kernel(thing):
    for function in (differentiable, lambda k: autodiff(k, scaled)):
        with pytest.raises(TypeError, match="@triton.jit"):
            function(thing)


def test_bad_arguments_of_autodiff():
    for arguments in (
        {"stub": 3},
        {"stub": scaled, "post_process_fn": 3},
        {"stub": scaled, "idx_upstream": "y"},
        {"stub": scaled, "non_stub_args_idxs": [1.5]},
    ):
        with pytest.raises(TypeError):
            autodiff(scale, **arguments)
    with pytest.raises(ArgumentError, match="5 parameters"):
        autodiff(scale, scaled, idx_upstream=7)


def test_side_stream(cuda):
    x = torch.randn(1 << 20, device=cuda, requires_grad=True)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y = scaled(differentiable(scale), x)
    torch.cuda.current_stream().wait_stream(stream)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 6 * x.detach())


def test_cuda_graph(cuda, recorded):
    x = torch.randn(1000, device=cuda, requires_grad=True)
    kernel = differentiable(scale)

    def step():
        (gradient,) = torch.autograd.grad(scaled(kernel, x).sum(), x)
        return gradient

    graph, gradient = recorded(step)
    with torch.no_grad():
        x.copy_(torch.randn(1000, device=cuda))
    graph.replay()
    torch.testing.assert_close(gradient, 6 * x.detach())


IMPORTS = """
import sys, triton, triton.backends.autodiff
loaded = [m for m in sys.modules if m == "torch" or m.startswith("triton.backends.autodiff.")]
allowed = {"triton.backends.autodiff.compiler", "triton.backends.autodiff.driver"}
assert set(loaded) <= allowed, loaded
"""


def test_importing_triton_imports_nothing_of_ours():
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    subprocess.run([sys.executable, "-c", IMPORTS], check=True, env=environment)
