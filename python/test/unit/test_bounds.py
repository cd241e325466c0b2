"""TRITON_AUTODIFF_CHECK=1: no generated kernel leaves its memory unseen, and none does."""

import gradients
import pytest
import torch
import triton
import triton.language as tl
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import elementwise as ew
from kernels import gather, loops, whiles
from kernels import matmul as mm
from kernels import normalization as norm
from kernels import softmax as sm


@pytest.fixture(autouse=True)
def checking(monkeypatch):
    """Kernels that are first differentiated in this test check their accesses."""
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")
    from triton.backends.autodiff.launching import state

    monkeypatch.setenv("TRITON_AUTODIFF_CHECK", "1")
    # The kernels are shared with other tests, which do not check.
    monkeypatch.setattr(state, "_ATTRIBUTE", "_checking_state")


@triton.jit
def take_kernel(x_ptr, index_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + offsets, mask=offsets < n, other=0)
    x = tl.load(x_ptr + index, mask=offsets < n)
    tl.store(y_ptr + offsets, x * x * x, mask=offsets < n)


def _take(kernel, x, index):
    y = torch.empty(index.shape, device=x.device)
    kernel[(triton.cdiv(index.numel(), 32),)](x, index, y, index.numel(), BLOCK=32)
    return y


def _kernels(op):
    """The generated kernels of an operation's last call."""
    (state, plan, execution), *_ = op.kernel._plans((), {})
    return execution.backward.plan.kernels


@pytest.mark.parametrize("case", ["matmul", "softmax", "embedding", "layer norm", "loop"])
def test_gradients_are_the_same(device, case):
    roundings = 8
    if case == "matmul":
        op, reference = differentiated(mm.matmul_kernel, mm.matmul), torch.matmul
        inputs = random_tensor(33, 50, device=device), random_tensor(50, 41, device=device)
    elif case == "softmax":
        op, reference = differentiated(sm.softmax_kernel, sm.rowwise), sm.softmax_reference
        inputs = (random_tensor(7, 33, device=device, dtype=torch.float16),)
    elif case == "embedding":
        op = differentiated(gather.embedding_kernel, gather.embedding)
        reference = gather.embedding_reference
        index = torch.randint(0, 17, (40,), device=device)
        inputs = index, random_tensor(17, 33, device=device)
    elif case == "layer norm":
        op, reference = (
            differentiated(norm.layer_norm_kernel, norm.layer_norm),
            norm.layer_norm_reference,
        )
        inputs = [random_tensor(*s, device=device) for s in ((9, 70), (70,), (70,))]
    else:
        op, reference = differentiated(loops.rnn_kernel, loops.rnn), loops.rnn_reference
        inputs = [random_tensor(*s, device=device) for s in ((2, 7, 20), (20,), (2, 20))]
        # A weight above 1 makes more of each rounding in every step.
        inputs[1] = random_tensor(20, device=device, scale=0.3)
        # Of 7 steps each rounds a product, a sum and a hyperbolic tangent: a difference, a sum, a
        # quotient and an exponential, whose argument is scaled first and whose approximation on
        # GPUs is off by two units. On the way back there are a square, a difference and two
        # products, and the sum over batches.
        roundings = 7 * (2 + 3 + 1 + 4 + 4) + 1
    assert_gradients_close(op, reference, inputs, roundings=roundings)
    for kernel in _kernels(op):
        assert kernel.accesses and all("kernels/" in a.position for a in kernel.accesses)


def test_kernels_that_count_iterations(device):
    """They check what they load, and gradients are the same."""
    x, w = random_tensor(4, 5, 8, device=device), random_tensor(8, device=device, scale=0.4)
    lengths = torch.tensor([3, 0, 5, 1], dtype=torch.int32, device=device)
    op = differentiated(whiles.ragged_kernel, whiles.ragged)
    assert_gradients_close(op, whiles.ragged_reference, (x, w, lengths))
    (_, plan, _), *_ = op.kernel._plans((), {})
    assert plan.counting is not None and plan.counting.accesses


def test_load_outside_of_what_was_kept(device):
    """The forward may read all of a storage; a hook that copies the view loses the rest."""
    from triton.backends.autodiff.errors import BoundsError

    op = differentiated(take_kernel, _take)
    x = torch.rand(5000, device=device)[:50].detach().requires_grad_()
    index = torch.arange(100, device=device) % 50
    index[70] = 4000
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = op(x, index)
    message = r"'take_kernel_bwd': load at .*test_bounds.py:\d+:\d+ goes 16000 bytes from the start"
    with pytest.raises(BoundsError, match=message + " of argument 'x_ptr', which holds 200 bytes"):
        y.sum().backward()


@pytest.mark.parametrize("kind", ["gradient", "upstream gradient"])
@pytest.mark.parametrize("case", ["atomic", "store"])
def test_buffer_that_is_too_short(device, monkeypatch, kind, case, fresh):
    """What a wrong plan or a wrong buffer would do is seen before it does harm."""
    from triton.backends.autodiff.errors import BoundsError
    from triton.backends.autodiff.programs import host_steps

    def short(*given):
        dtype = next(part for part in given if isinstance(part, torch.dtype))
        return lambda *_: torch.zeros(8, dtype=dtype, device=device)

    monkeypatch.setattr(host_steps, "allocating" if kind == "gradient" else "laying_out", short)
    index = torch.arange(100, device=device)
    if case == "atomic":
        x = random_tensor(100, device=device)
        y = differentiated(take_kernel, _take)(x, index)
    else:
        x = random_tensor(100, device=device)
        y = differentiated(ew.gelu_tanh_kernel, ew.unary)(x)
    owner = "x_ptr" if kind == "gradient" else "y_ptr"
    with pytest.raises(BoundsError, match=f"the {kind} of argument '{owner}'"):
        y.backward(torch.ones_like(y))


def test_checked_kernels_compile_for_a_gpu(tmp_path):
    """Without a GPU, too: Triton takes the checks as it takes the rest."""
    from triton.backends.autodiff import autodiff
    from triton.backends.compiler import GPUTarget

    if torch.cuda.is_available():
        pytest.skip("the other tests run them")
    a, b = (torch.randn(16, 16, requires_grad=True) for _ in range(2))
    index = torch.randint(0, 16, (20,))
    calls = [
        (autodiff(mm.matmul_kernel, mm.matmul), (a, b)),
        (autodiff(norm.layer_norm_kernel, norm.layer_norm), (a, b[0], b[1])),
        (autodiff(gather.embedding_kernel, gather.embedding), (index, a)),
    ]
    for op, inputs in calls:
        op(*inputs)
        for n, kernel in enumerate(_kernels(op)):
            path = tmp_path / f"{kernel.name}{n}.ttir"
            path.write_text(kernel.ttir)
            compiled = triton.compile(str(path), target=GPUTarget("cuda", 90, 32))
            assert ".min.s64" in compiled.asm["ptx"]


def test_tangents_and_second_derivatives(device):
    """What says which arguments are stored is a plan of no gradient, which checks nothing."""
    op = differentiated(take_kernel, _take)
    x, index = random_tensor(50, device=device), torch.randperm(50, device=device)
    value, tangent = torch.func.jvp(lambda x: op(x, index), (x,), (torch.ones_like(x),))
    torch.testing.assert_close(value, x[index] ** 3)
    torch.testing.assert_close(tangent, 3 * x[index] ** 2)
    x.requires_grad_()
    (slope,) = torch.autograd.grad(op(x, index).sum(), x, create_graph=True)
    slope.sum().backward()
    torch.testing.assert_close(x.grad, 6 * x.detach())
