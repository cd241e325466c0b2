"""Objects that stand for a tensor, and addresses of tensors, as arguments of a launch."""

import math
import warnings

import gradients
import pytest
import torch
import triton
import triton.language as tl
from gradients import assert_close
from triton.backends.autodiff import AutodiffError, autodiff, differentiable
from triton.backends.autodiff.errors import ArgumentError
from triton.backends.autodiff.storage import addresses


@pytest.fixture(autouse=True)
def needs_gradients():
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")


class Strided:
    """A part of a tensor's memory with strides of its own, which may be negative."""

    def __init__(self, tensor, shape=None, strides=None, offset=0, dtype=None):
        self._base, self.dtype = tensor, dtype or tensor.dtype
        self.shape = tuple(tensor.shape if shape is None else shape)
        self._strides = tuple(tensor.stride() if strides is None else strides)
        self._address = tensor.data_ptr() + offset * self.dtype.itemsize

    def stride(self):
        return self._strides

    def numel(self):
        return math.prod(self.shape)

    def data_ptr(self):
        return self._address


class Slotted:
    """The least that Triton takes for a tensor, and the tensor."""

    __slots__ = ("dtype", "held")

    def __init__(self, tensor):
        self.held, self.dtype = tensor, tensor.dtype

    def data_ptr(self):
        return self.held.data_ptr()


class Address:
    """An address and a type, but no tensor."""

    def __init__(self, tensor):
        self.address, self.dtype = tensor.data_ptr(), tensor.dtype

    def data_ptr(self):
        return self.address


@triton.jit
def wave_kernel(x_ptr, y_ptr, stride_x, stride_y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i * stride_x, mask=i < n)
    tl.store(y_ptr + i * stride_y, tl.sin(x.to(tl.float32)) * x, mask=i < n)


N = 50


def wave(x):
    return torch.sin(x) * x


def launch(x, y, stride_x=1, stride_y=1):
    differentiable(wave_kernel)[(2,)](x, y, stride_x, stride_y, N, BLOCK=32)


def check(x, made, expected, upstream_of=None):
    """Compare what `made()` wrote, and the gradient of `x`, with `expected(x)` in float64."""
    written = made()
    upstream = torch.randn_like(written)
    (found,) = torch.autograd.grad(written, x, upstream)
    gradients = []
    for dtype in (torch.float32, torch.float64):
        leaf = x.detach().to(dtype).requires_grad_()
        y = expected(leaf)
        gradients.append((y.detach(), torch.autograd.grad(y, leaf, upstream.to(dtype))[0]))
    (baseline, base), (truth, true) = gradients
    assert_close("output", written, baseline, truth)
    assert_close("gradient", found, base, true)


# What is passed for a leaf `x`, its stride in the kernel, and what this is in PyTorch.
INPUTS = {
    "the same": (N, lambda x: Strided(x), 1, lambda x: x),
    "with slots": (N, lambda x: Slotted(x), 1, lambda x: x),
    "reinterpreted": (N, lambda x: triton.reinterpret(x, tl.float32), 1, lambda x: x),
    "a part": (90, lambda x: Strided(x, (N,), (1,), 20), 1, lambda x: x[20 : 20 + N]),
    "every other": (2 * N, lambda x: Strided(x, (N,), (2,)), 2, lambda x: x[::2]),
    "backwards": (N, lambda x: Strided(x, (N,), (-1,), N - 1), -1, lambda x: x.flip(0)),
    "a part, backwards": (
        3 * N,
        lambda x: Strided(x, (N,), (-2,), 2 * N),
        -2,
        lambda x: x[2 : 2 * N + 1 : 2].flip(0),
    ),
    "of a view": (
        2 * N,
        lambda x: Strided(x[1::2], (N,), (-2,), 2 * N - 2),
        -2,
        lambda x: x[1::2].flip(0),
    ),
    "of what is computed": (
        N,
        lambda x: Strided(2 * x, (N,), (-1,), N - 1),
        -1,
        lambda x: (2 * x).flip(0),
    ),
}


@triton.jit
def product_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, w = tl.load(x_ptr + i, mask=i < n), tl.load(w_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x * w, mask=i < n)


def test_the_backward_reads_what_is_no_tensor(device):
    """Autograd keeps tensors only; an address stays what it is until the backward."""
    x, w = torch.randn(N, device=device, requires_grad=True), torch.randn(N, device=device)
    y = torch.empty(N, device=device)
    differentiable(product_kernel)[(2,)](x, Address(w), y, N, BLOCK=32)
    (found,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close((y, found), ((x * w).detach(), w))


@pytest.mark.parametrize("name", INPUTS)
def test_inputs(device, name):
    size, made, stride, plain = INPUTS[name]
    x = torch.randn(size, device=device, requires_grad=True)
    y = torch.empty(N, device=device)

    def run():
        launch(made(x), y, stride)
        return y

    check(x, run, lambda x: wave(plain(x)))


@pytest.mark.parametrize("make", [Strided, Slotted, lambda y: triton.reinterpret(y, tl.float32)])
def test_outputs(device, make):
    """The tensor that an object stands for gets the history."""
    x = torch.randn(N, device=device, requires_grad=True)

    def run():
        y = torch.empty(N, device=device)
        launch(x, make(y))
        return y

    check(x, run, wave)


def test_part_of_an_output(device):
    x = torch.randn(N, device=device, requires_grad=True)

    def run():
        y = torch.zeros(3 * N, device=device)
        launch(x, Strided(y, (N,), (2,), 7), stride_y=2)
        return y

    def expected(x):
        y = torch.zeros(3 * N, dtype=x.dtype, device=device)
        return y.index_put((torch.arange(N, device=device) * 2 + 7,), wave(x))

    check(x, run, expected)


def test_output_that_is_written_backwards(device):
    """PyTorch has no view like that; it is right, or an error that says what is not reached."""
    x = torch.randn(N, device=device, requires_grad=True)

    def run():
        y = torch.zeros(N, device=device)
        launch(x, Strided(y, (N,), (-1,), N - 1), stride_y=-1)
        return y

    with pytest.raises(ArgumentError, match="argument 'y_ptr' .*stores around it"):
        check(x, run, lambda x: wave(x).flip(0))


def test_operation(device):
    def flipped(kernel, x):
        y = torch.empty_like(x)
        kernel[(2,)](Strided(x, (N,), (-1,), N - 1), Strided(y), -1, 1, N, BLOCK=32)
        return y

    x = torch.randn(N, device=device, requires_grad=True)
    check(x, lambda: autodiff(wave_kernel, flipped)(x), lambda x: wave(x.flip(0)))


def test_other_bits(device):
    """Numbers of another type in a tensor's memory have no gradient."""
    x = torch.randn(N, device=device, requires_grad=True)
    y = torch.empty(N, device=device)
    said = (
        "argument 'x_ptr' of kernel 'wave_kernel' is a .* takes the memory of a tensor of float32 "
        "for .*bits of floats"
    )
    for as_other in (Strided(x, dtype=torch.bfloat16), triton.reinterpret(x, tl.bfloat16)):
        with pytest.raises(ArgumentError, match=said):
            launch(as_other, y)
    with torch.no_grad():
        launch(triton.reinterpret(x, tl.bfloat16), y)


def test_address_elsewhere(device):
    """An object that holds a tensor whose memory it is not: not silently a constant."""
    x, y = torch.randn(N, device=device, requires_grad=True), torch.empty(N, device=device)
    made = Strided(x)
    other = x.detach().clone()
    made._address = other.data_ptr()
    with pytest.raises(ArgumentError, match="'x_ptr' .*Strided for a tensor that requires a grad"):
        launch(made, y)


def test_object_without_a_tensor(device):
    x = torch.randn(N, device=device, requires_grad=True)
    y = torch.empty(N, device=device)
    with pytest.raises(ArgumentError, match="argument 'y_ptr' .* should be a tensor to carry a gr"):
        launch(x, Address(y))
    with pytest.raises(ArgumentError, match="addresses alone .as a Address.*no_grad"):
        launch(Address(x), Address(y))
    with pytest.warns(UserWarning, match="gets a tensor by its address .as a Address"):
        launch(Address(x), y)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        launch(Address(x), Address(y))
    torch.testing.assert_close(y, wave(x.detach()))


@triton.jit
def addressed_kernel(x_address, y_address, n, BLOCK: tl.constexpr):
    # Triton passes small numbers as i32, and takes no i32 for an address.
    x_ptr = x_address.to(tl.int64).to(tl.pointer_type(tl.float32))
    y_ptr = y_address.to(tl.int64).to(tl.pointer_type(tl.float32))
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, tl.sin(x) * x, mask=i < n)


@triton.jit
def half_addressed_kernel(x_address, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x_ptr = x_address.to(tl.int64).to(tl.pointer_type(tl.float32))
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, tl.sin(x) * x, mask=i < n)


def test_addresses(device):
    """Autograd sees no tensor: that is said at the launch, not by PyTorch at the backward."""
    x = torch.randn(N, device=device, requires_grad=True)
    y = torch.empty(N, device=device)
    kernel = differentiable(addressed_kernel)
    with pytest.raises(ArgumentError, match=r"kernel 'addressed_kernel' \(test_tensor_likes.py:\d+"
                       r"\) gets tensors of floats by their addresses alone"):  # fmt: skip
        kernel[(2,)](x.data_ptr(), y.data_ptr(), N, BLOCK=32)
    with torch.no_grad():
        kernel[(2,)](x.data_ptr(), y.data_ptr(), N, BLOCK=32)
    torch.testing.assert_close(y, wave(x.detach()))
    with pytest.warns(UserWarning, match="gets a tensor by its address .*no gradient goes there"):
        differentiable(half_addressed_kernel)[(2,)](x.data_ptr(), y, N, BLOCK=32)


def test_addresses_in_a_low_heap(monkeypatch):
    """Where Python is not relocatable: between the heap's two ends, small numbers are addresses."""
    small = [64, 1 << 20, True, 0.5, None]
    assert not any(map(addresses._may_be_address, small))
    assert addresses._may_be_address(1 << 40)
    begin = 1 << 21
    monkeypatch.setattr(addresses, "_low_heap", lambda: begin)
    assert not any(map(addresses._may_be_address, small))
    assert addresses._may_be_address(begin)


def test_addresses_in_a_stub(device):
    def addressed(kernel, x):
        y = torch.empty_like(x)
        kernel[(2,)](x.data_ptr(), y, N, BLOCK=32)
        return y

    x = torch.randn(N, device=device, requires_grad=True)
    with pytest.raises(AutodiffError, match="and not its address"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        autodiff(half_addressed_kernel, addressed)(x)
