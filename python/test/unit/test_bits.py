"""Floats that are selected, negated, exchanged, rounded and packed by arithmetic on their bits."""

import pytest
import torch
import triton
import triton.language as tl
from gradients import assert_gradients_close, differentiated, random_tensor

DTYPES = pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str
)
BITS = {2: tl.int16, 4: tl.int32, 8: tl.int64}


@triton.jit
def _chosen(x, w, a, b, HOW: tl.constexpr):
    """Return the bits that some arithmetic on the bits `a` of x and `b` of w makes."""
    SIGN: tl.constexpr = -(1 << (a.dtype.primitive_bitwidth - 1))
    c = (x > w).to(a.dtype)
    if HOW == "abs":
        bits = a & ~SIGN
    elif HOW == "abs by shifts":
        bits = a ^ ((a >> (a.dtype.primitive_bitwidth - 1)) & SIGN)
    elif HOW == "negated":
        bits = a ^ SIGN
    elif HOW == "minus abs":
        bits = a | SIGN
    elif HOW == "copysign":
        bits = (a & ~SIGN) | (b & SIGN)
    elif HOW == "times sign":
        bits = a ^ (b & SIGN)
    elif HOW == "and, or":
        bits = (a & -c) | (b & ~-c)
    elif HOW == "xor":
        bits = b ^ ((a ^ b) & (0 - c))
    elif HOW == "product":
        bits = a * c + b * (1 - c)
    elif HOW == "where":
        bits = a ^ tl.where(x > w, 0, a ^ b)
    elif HOW == "other":
        larger = tl.where(x > w, a, b)
        bits = larger ^ a ^ b
    elif HOW == "complement":
        bits = ~(~a & -c) & ~(~b & (c - 1))
    return bits


@triton.jit
def two_kernel(x_ptr, w_ptr, y_ptr, n, HOW: tl.constexpr, BITS: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n)
    w = tl.load(w_ptr + i, mask=i < n)
    a, b = x.to(BITS, bitcast=True), w.to(BITS, bitcast=True)
    y = _chosen(x, w, a, b, HOW).to(x.dtype, bitcast=True)
    tl.store(y_ptr + i, y * w, mask=i < n)


def _two(kernel, x, w, how):
    y = torch.empty_like(x)
    bits = BITS[x.element_size()]
    kernel[(triton.cdiv(x.numel(), 16),)](x, w, y, x.numel(), how, bits, B=16)
    return y


def _two_reference(x, w, how):
    larger, smaller = torch.where(x > w, x, w), torch.where(x > w, w, x)
    y = {
        "abs": x.abs(),
        "abs by shifts": x.abs(),
        "negated": -x,
        "minus abs": -x.abs(),
        "copysign": torch.copysign(x, w.detach()),
        "times sign": torch.where(torch.signbit(w), -x, x),
        "other": smaller,
    }.get(how, larger)
    return y * w


@DTYPES
@pytest.mark.parametrize(
    "how",
    [
        "abs",
        "abs by shifts",
        "negated",
        "minus abs",
        "copysign",
        "times sign",
        "and, or",
        "xor",
        "product",
        "where",
        "other",
        "complement",
    ],
)
def test_two(device, how, dtype):
    x, w = (random_tensor(37, device=device, dtype=dtype) for _ in range(2))
    with torch.no_grad():
        w[3] = x[3]
    op = differentiated(two_kernel, _two)
    assert_gradients_close(op, _two_reference, (x, w, how))


@pytest.mark.parametrize("how", ["and, or", "xor", "where", "other"])
def test_special_numbers(device, how):
    """What is not chosen has no gradient, whatever it is."""
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([inf, -inf, 1.0, nan, 2.0, 0.0, -0.0, 1.0], device=device)
    w = torch.tensor([1.0, 2.0, inf, 3.0, nan, -0.0, 0.0, 1.0], device=device)
    op = differentiated(two_kernel, _two)
    gradients = []
    for function in (_two_reference, op):
        leaves = [t.clone().requires_grad_() for t in (x, w)]
        y = function(*leaves, how)
        gradients.append(torch.autograd.grad(y, leaves, torch.ones_like(y)))
    for truth, gradient in zip(*gradients, strict=True):
        torch.testing.assert_close(gradient, truth, equal_nan=True)


@triton.jit
def swap_kernel(x_ptr, y_ptr, N: tl.constexpr, BITS: tl.constexpr, HOW: tl.constexpr):
    """A step of a bitonic sort, as Triton 2 wrote it."""
    x = tl.load(x_ptr + tl.arange(0, N))
    two = tl.arange(0, 2)[None, :, None]
    v = tl.reshape(x, [N // 4, 2, 2])
    if HOW == "masks":
        left = tl.sum(tl.where(two == 0, v, 0.0), 1)
        right = tl.sum(tl.where(two == 1, v, 0.0), 1)
    else:
        left, right = tl.sum(v * (1 - two), 1), tl.sum(v * two, 1)
    left = tl.reshape(tl.broadcast_to(left[:, None, :], [N // 4, 2, 2]), [N])
    right = tl.reshape(tl.broadcast_to(right[:, None, :], [N // 4, 2, 2]), [N])
    il = left.to(x.dtype).to(BITS, bitcast=True)
    ir = right.to(x.dtype).to(BITS, bitcast=True)
    ix = x.to(BITS, bitcast=True)
    flip = (tl.arange(0, N) // (N // 2)).to(BITS)
    if HOW == "int":
        y = ix ^ tl.where((left > right) ^ flip, il ^ ir, tl.zeros_like(ix))
    elif HOW == "order":
        y = ix ^ tl.where(((left > right) ^ 1) != 0, il ^ ir, tl.zeros_like(ix))
    elif HOW == "and":
        y = ix ^ ((il ^ ir) & -(left > right).to(BITS))
    else:
        y = ix ^ tl.where(left > right, il ^ ir, tl.zeros_like(ix))
    tl.store(y_ptr + tl.arange(0, N), y.to(x.dtype, bitcast=True))


def _swap(kernel, x, how):
    y = torch.empty_like(x)
    kernel[(1,)](x, y, x.numel(), BITS[x.element_size()], how)
    return y


def _swap_reference(x, how):
    v = x.view(-1, 2, 2)
    swapped = v[:, :1] > v[:, 1:]
    if how == "int":
        swapped = swapped ^ (torch.arange(len(v), device=x.device) >= len(v) // 2)[:, None, None]
    elif how == "order":
        swapped = ~swapped
    return torch.where(swapped, v.flip(1), v).flatten()


@DTYPES
@pytest.mark.parametrize("how", ["int", "order", "plain", "and", "masks"])
def test_exchange(device, how, dtype):
    x = (torch.randperm(32, device=device).to(dtype) / 8 - 2.1).requires_grad_()
    op = differentiated(swap_kernel, _swap)
    assert_gradients_close(op, _swap_reference, (x, how))


@triton.jit
def _exchanged(x, flip, i: tl.constexpr, n: tl.constexpr):
    shape: tl.constexpr = [2 ** (n - 1 - i), 2, 2**i]
    y = tl.reshape(x, shape)
    two = tl.arange(0, 2)[None, :, None]
    left = tl.broadcast_to(tl.sum(y * (1 - two), 1)[:, None, :], shape)
    right = tl.broadcast_to(tl.sum(y * two, 1)[:, None, :], shape)
    left, right = tl.reshape(left, x.shape), tl.reshape(right, x.shape)
    il, ir = left.to(tl.int32, bitcast=True), right.to(tl.int32, bitcast=True)
    ix = x.to(tl.int32, bitcast=True)
    ret = ix ^ tl.where((left > right) ^ flip, il ^ ir, tl.zeros_like(ix))
    return ret.to(x.dtype, bitcast=True)


@triton.jit
def sort_kernel(x_ptr, w_ptr, y_ptr, n: tl.constexpr):
    N: tl.constexpr = 2**n
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    for stage in tl.static_range(1, n + 1):
        flip = (i // 2**stage) % 2
        for step in tl.static_range(stage):
            x = _exchanged(x, flip, stage - 1 - step, n)
    tl.store(y_ptr + i, x * tl.load(w_ptr + i))


def _sort(kernel, x, w):
    y = torch.empty_like(x)
    kernel[(1,)](x, w, y, x.numel().bit_length() - 1)
    return y


def test_sort(device):
    """A whole bitonic sort by exchanges of bits."""
    x = (torch.randperm(16, device=device) / 4 - 1.9).requires_grad_()
    w = random_tensor(16, device=device)
    op = differentiated(sort_kernel, _sort)
    assert_gradients_close(op, lambda x, w: x.sort().values * w, (x, w))


@triton.jit
def rounded_kernel(x_ptr, y_ptr, n, HOW: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n)
    bits = x.to(tl.int32, bitcast=True)
    if HOW == "cleared":
        y = (bits & -65536).to(tl.float32, bitcast=True)
    elif HOW == "set":
        y = (bits | 15).to(tl.float32, bitcast=True)
    elif HOW == "half":
        y = (bits >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True).to(tl.float32)
    elif HOW == "there and back":
        half = x.to(tl.bfloat16).to(tl.int16, bitcast=True)
        y = (half.to(tl.int32) << 16).to(tl.float32, bitcast=True)
    elif HOW == "power of two":
        y = (bits & 0x7F800000).to(tl.float32, bitcast=True)
    tl.store(y_ptr + i, x * y, mask=i < n)


def _rounded(kernel, x, how):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), how, B=16)
    return y


@pytest.mark.parametrize("how", ["cleared", "set", "half", "there and back", "power of two"])
def test_rounded(device, how):
    """Bits that are dropped are a rounding; without the fraction, all is piecewise constant."""
    x = random_tensor(37, device=device)
    bits = x.detach().view(torch.int32)
    y = {
        "cleared": bits & -65536,
        "set": bits | 15,
        "half": bits & -65536,
        "there and back": x.detach().bfloat16().float().view(torch.int32),
        "power of two": bits & 0x7F800000,
    }[how].view(torch.float32)
    z = differentiated(rounded_kernel, _rounded)(x, how)
    torch.testing.assert_close(z, x * y)
    upstream = torch.randn_like(z)
    (gradient,) = torch.autograd.grad(z, x, upstream)
    slope = y if how == "power of two" else x + y
    torch.testing.assert_close(gradient, upstream * slope.detach())


@triton.jit
def packed_kernel(k_ptr, v_ptr, y_ptr, z_ptr, HOW: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    row = tl.program_id(0) * N
    key = tl.load(k_ptr + row + i)
    value = tl.load(v_ptr + row + i)
    high = key.to(tl.int32, bitcast=True).to(tl.int64)
    low = value.to(tl.int32, bitcast=True).to(tl.int64)
    if HOW == "sum":
        packed = (high << 32) + (low & 0xFFFFFFFF)
    else:
        packed = (high << 32) | (low & 0xFFFFFFFF)
    if HOW == "sort":
        packed = tl.sort(packed)
    elif HOW == "topk":
        packed = tl.sort(packed, descending=True)
    elif HOW == "pairs":
        x = tl.reshape(packed, [N // 2, 2])
        a, b = tl.split(x)
        packed = tl.reshape(tl.join(tl.minimum(a, b), tl.maximum(a, b)), [N])
    elif HOW == "max":
        packed = tl.broadcast_to(tl.max(packed, 0)[None], [N])
    elif HOW == "min":
        packed = tl.broadcast_to(tl.min(packed, 0)[None], [N])
    elif HOW == "where":
        other = tl.flip(packed, 0)
        packed = tl.where(packed > other, packed, other)
    tl.store(y_ptr + row + i, packed.to(tl.int32).to(tl.float32, bitcast=True))
    tl.store(z_ptr + row + i, (packed >> 32).to(tl.int32).to(tl.float32, bitcast=True))


def _packed(kernel, key, value, how):
    y, z = torch.empty_like(key), torch.empty_like(key)
    kernel[(len(key),)](key, value, y, z, how, key.shape[1])
    return torch.stack([y, z])


def _packed_reference(key, value, how):
    order = key.argsort(1, descending=how == "topk")
    if how in ("plain", "sum"):
        order = torch.arange(key.shape[1], device=key.device).expand_as(order)
    elif how == "pairs":
        order = key.unflatten(1, (-1, 2)).argsort(2)
        order = (order + 2 * torch.arange(order.shape[1], device=key.device)[:, None]).flatten(1)
    elif how in ("max", "min"):
        order = order[:, -1:] if how == "max" else order[:, :1]
        order = order.expand_as(key)
    elif how == "where":
        here = torch.arange(key.shape[1], device=key.device).expand_as(order)
        order = torch.where(key > key.flip(1), here, here.flip(1))
    return torch.stack([value.gather(1, order), key.gather(1, order)])


@pytest.mark.parametrize("how", ["plain", "sum", "sort", "topk", "pairs", "max", "min", "where"])
def test_packed(device, how):
    """A key above its value in one integer; positive keys are in order as integers are."""
    key = (torch.randperm(48, device=device).view(3, 16) / 8 + 0.1).requires_grad_()
    value = random_tensor(3, 16, device=device)
    op = differentiated(packed_kernel, _packed)
    assert_gradients_close(op, _packed_reference, (key, value, how))


@triton.jit
def ordered_kernel(x_ptr, w_ptr, y_ptr, N: tl.constexpr, HOW: tl.constexpr):
    """Sorts floats as integers in the same order, each above its place."""
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    bits = x.to(tl.uint32, bitcast=True)
    key = bits ^ tl.where((bits & 0x80000000) != 0, 0xFFFFFFFF, 0x80000000).to(tl.uint32)
    packed = (key.to(tl.uint64) << 16) | (N - 1 - i).to(tl.uint64)
    if HOW == "sort":
        packed = tl.sort(packed)
    else:
        packed = tl.broadcast_to(tl.max(packed.to(tl.int64), 0)[None], [N]).to(tl.uint64)
    key = (packed >> 16).to(tl.uint32)
    bits = key ^ tl.where((key & 0x80000000) == 0, 0xFFFFFFFF, 0x80000000).to(tl.uint32)
    place = (packed & 0xFFFF).to(tl.int32)
    tl.store(y_ptr + i, bits.to(tl.float32, bitcast=True) * tl.load(w_ptr + place))


def _ordered(kernel, x, w, how):
    y = torch.empty_like(x)
    kernel[(1,)](x, w, y, x.numel(), how)
    return y


def _ordered_reference(x, w, how):
    order = x.argsort()
    if how == "max":
        order = order[-1:].expand_as(order)
    return x[order] * w[len(x) - 1 - order]


@pytest.mark.parametrize("how", ["sort", "max"])
def test_ordered_keys(device, how):
    x = (torch.randperm(16, device=device) / 4 - 1.9).requires_grad_()
    op = differentiated(ordered_kernel, _ordered)
    w = random_tensor(16, device=device)
    assert_gradients_close(op, _ordered_reference, (x, w, how))


@triton.jit
def _larger(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def refused_pack_kernel(x_ptr, y_ptr, n, HOW: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    packed = (tl.load(x_ptr + i).to(tl.int32, bitcast=True).to(tl.int64) << 32) | i
    if HOW == "loop":
        for k in range(n):
            other = tl.load(x_ptr + k).to(tl.int32, bitcast=True).to(tl.int64) << 32
            packed = tl.maximum(packed, other | k)
    elif HOW == "branch":
        if n > 2:
            packed = tl.sort(packed)
    elif HOW == "scan":
        packed = tl.associative_scan(packed, 0, _larger)
    elif HOW == "arithmetic":
        packed = packed * 3
    tl.store(y_ptr + i, (packed >> 32).to(tl.int32).to(tl.float32, bitcast=True))


@pytest.mark.parametrize(
    "how, reason",
    [
        ("loop", "a loop carries them: let it carry the float"),
        ("branch", "a branch chooses them: use tl.where"),
        ("scan", "a scan combines them: scan the float"),
        ("arithmetic", r"'arith\.muli' at \S*test_bits\.py:\d+:\d+ computes with them"),
    ],
)
def test_refused_packs(device, how, reason):
    """What is not followed is named, and what to do."""
    from triton.backends.autodiff import AutodiffError

    def run(kernel, x):
        y = torch.empty_like(x)
        kernel[(1,)](x, y, 3, how, x.numel())
        return y

    x = random_tensor(16, device=device)
    with pytest.raises(AutodiffError, match=f"test_bits.py(?s:.*)but {reason}"):
        differentiated(refused_pack_kernel, run)(x).sum().backward()


@triton.jit
def refused_kernel(x_ptr, y_ptr, HOW: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    bits = x.to(tl.int32, bitcast=True)
    if HOW == "sum":
        y = bits + 1
    elif HOW == "mixed":
        y = bits ^ (x + 1).to(tl.int32, bitcast=True)
    elif HOW == "shifted":
        y = bits << 1
    elif HOW == "fraction":
        y = (bits & 0x7FFFFF) | 0x3F800000
    elif HOW == "all lanes":
        y = tl.broadcast_to(tl.xor_sum(bits, 0)[None], [N])
    tl.store(y_ptr + i, y.to(tl.float32, bitcast=True))


@pytest.mark.parametrize(
    "how, reason",
    [
        ("sum", "derivative lost"),
        ("mixed", "exclusive or of several floats"),
        ("shifted", "not at the places"),
        ("fraction", "exponent is not that of a float"),
        ("all lanes", "derivative lost"),
    ],
)
def test_refused(device, how, reason):
    from triton.backends.autodiff import AutodiffError

    def run(kernel, x):
        y = torch.empty_like(x)
        kernel[(1,)](x, y, how, x.numel())
        return y

    x = random_tensor(16, device=device)
    with pytest.raises(AutodiffError, match=f"test_bits.py(?s:.*){reason}"):
        differentiated(refused_kernel, run)(x).sum().backward()
