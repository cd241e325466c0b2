"""Programs with launches that are unlike each other, their references, and inputs for sizes."""

import torch
import triton
import triton.language as tl
from gradients import random_tensor
from triton.backends.autodiff import differentiable
from triton.tools.tensor_descriptor import TensorDescriptor


def blocks(n, block=32):
    return (triton.cdiv(n, block),)


def quick(call, quantiles):
    call()
    return [1.0] * len(quantiles)


@differentiable
@triton.jit
def product(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    tl.store(y_ptr + i, tl.load(w_ptr + i, mask=i < n).to(tl.float32) * tl.exp(x), mask=i < n)


@differentiable
@triton.jit
def squared(x_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, x * x * factor, mask=i < n)


@differentiable
@triton.jit
def pair(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, tl.exp(x), mask=i < n)
    tl.store(z_ptr + i, x * x * x, mask=i < n)


@differentiable
@triton.jit
def rows(x_ptr, y_ptr, x_row, x_column, y_row, y_column, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row + i * x_column, mask=i < n, other=0.0)
    tl.store(y_ptr + row * y_row + i * y_column, x * tl.sum(x * x, 0), mask=i < n)


@differentiable
@triton.jit
def gathered(x_ptr, index_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(index_ptr + i, mask=i < n, other=0)
    x = tl.load(x_ptr + at, mask=i < n)
    tl.store(y_ptr + i, x * x, mask=i < n)


@differentiable
@triton.jit
def products(x_ptr, ends_ptr, y_ptr):
    segment = tl.program_id(0)
    found = 1.0
    for i in range(tl.load(ends_ptr + segment), tl.load(ends_ptr + segment + 1)):
        found *= tl.load(x_ptr + i)
    tl.store(y_ptr + segment, found)


@differentiable
@triton.jit
def described(x, y, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    tile = x.load([row, 0])
    y.store([row, 0], tile * tl.exp(tile))


@differentiable
@triton.jit
def describing(x_ptr, y_ptr, m, n, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [m, n], [n, 1], [BLOCK, BLOCK])
    y = tl.make_tensor_descriptor(y_ptr, [m, n], [n, 1], [BLOCK, BLOCK])
    row = tl.program_id(0) * BLOCK
    tile = x.load([row, 0])
    y.store([row, 0], tile * tl.exp(tile))


@differentiable
@triton.autotune([triton.Config({"BLOCK": b}) for b in (16, 32)], key=["n"], do_bench=quick)
@triton.jit
def counted(x_ptr, count_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x * x * tl.load(count_ptr + i, mask=i < n), mask=i < n)


def _product(x, w):
    y = torch.empty_like(x)
    product[(max(1, triton.cdiv(x.numel(), 32)),)](x, w, y, x.numel(), BLOCK=32)
    return y * 2


def _part_of_buffer(x, w):
    buffer = torch.zeros(2 * x.numel() + 1, dtype=x.dtype, device=x.device)
    product[blocks(x.numel())](x, w, buffer[1:][: x.numel()], x.numel(), BLOCK=32)
    return buffer * 2


def _part_of_buffer_reference(x, w):
    return torch.cat([x.new_zeros(1), w * x.exp(), x.new_zeros(x.numel())]) * 2


def _over_itself(x):
    z = x * 1
    product[blocks(z.numel())](z, z, z, z.numel(), BLOCK=32)
    return z


def _in_place_twice(x):
    z = x * 1.5
    for factor in (0.5, 0.25):
        squared[blocks(z.numel())](z, z.numel(), factor, BLOCK=32)
    return z + x


def _in_place_behind(x):
    z, n = torch.cat([x, x.sin()]), x.numel()
    squared[blocks(n - 3)](z[n + 3 :], n - 3, 0.5, BLOCK=32)
    return z * 3


def _in_place_behind_reference(x):
    return torch.cat([x, x.sin()[:3], x.sin()[3:] ** 2 * 0.5]) * 3


def _pair(x):
    y, z = torch.empty_like(x), torch.empty_like(x)
    pair[blocks(x.numel())](x, y, z, x.numel(), BLOCK=32)
    return y.sin() + 2 * z


def _one_of_pair(x):
    y, z = torch.empty_like(x), torch.empty_like(x)
    pair[blocks(x.numel())](x, y, z, x.numel(), BLOCK=32)
    return z * y.detach()


def _rows(pick):
    def program(x):
        x = pick(x)
        y = torch.empty(x.shape[1], x.shape[0] + 1, device=x.device).t()[1:]
        rows[(x.shape[0],)](x, y, *x.stride(), *y.stride(), x.shape[1], BLOCK=16)
        return y.div(8).cos()

    def reference(x):
        x = pick(x)
        return (x * (x * x).sum(1, keepdim=True)).div(8).cos()

    return program, reference


def _gathered(x, index):
    y = torch.empty(index.shape, device=x.device)
    gathered[blocks(index.numel())](x, index, y, index.numel(), BLOCK=32)
    return y.sin()


def _products(x, ends):
    y = torch.empty(ends.numel() - 1, device=x.device)
    products[(ends.numel() - 1,)](x, ends, y)
    return y * 3


def _products_reference(x, ends):
    ends = ends.tolist()
    return torch.stack([x[a:b].prod() for a, b in zip(ends, ends[1:], strict=False)]) * 3


def _described(x):
    y = torch.empty_like(x)
    given = (TensorDescriptor(t, list(t.shape), list(t.stride()), [16, 16]) for t in (x, y))
    described[blocks(x.shape[0], 16)](*given, BLOCK=16)
    return y


def _from_tensor(x):
    y = torch.empty_like(x)
    given = (TensorDescriptor.from_tensor(t, [16, 16]) for t in (x, y))
    described[blocks(x.shape[0], 16)](*given, BLOCK=16)
    return y


def _describing(x):
    y = torch.empty_like(x)
    describing[blocks(x.shape[0], 16)](x, y, *x.shape, BLOCK=16)
    return y


def _counted(x, count):
    y = torch.empty_like(x)
    counted[lambda meta: blocks(meta["n"], meta["BLOCK"])](x, count, y, x.numel())
    return y.sin()


def _vectors(count, dtype=torch.float32):
    return lambda k, device: [
        random_tensor(40 + k, device=device, dtype=dtype) for _ in range(count)
    ]


def _matrix(k, device):
    return [random_tensor(8 + k % 5, 12 + k % 3, device=device)]


def _tall(k, device):
    return [random_tensor(32 + k, 16, device=device)]


def _integers(numbers, device, dtype=torch.int32):
    return torch.tensor(numbers, dtype=dtype, device=device)


# A program, its reference, what makes inputs for a size and a device, and whether PyTorch looks
# into its launches.
PROGRAMS = {
    "plain": (_product, lambda x, w: w * x.exp() * 2, _vectors(2), True),
    "float16": (_product, lambda x, w: w * x.exp() * 2, _vectors(2, torch.float16), True),
    "bfloat16": (_product, lambda x, w: w * x.exp() * 2, _vectors(2, torch.bfloat16), True),
    "part of a buffer": (_part_of_buffer, _part_of_buffer_reference, _vectors(2), True),
    "over itself": (_over_itself, lambda x: x * x.exp(), _vectors(1), True),
    "in place": (_in_place_twice, lambda x: ((1.5 * x) ** 2 / 2) ** 2 / 4 + x, _vectors(1), True),
    "in place behind": (_in_place_behind, _in_place_behind_reference, _vectors(1), True),
    "pair": (_pair, lambda x: x.exp().sin() + 2 * x**3, _vectors(1), True),
    "one of a pair": (_one_of_pair, lambda x: x**3 * x.exp().detach(), _vectors(1), True),
    "empty": (
        _product,
        lambda x, w: w * x.exp() * 2,
        lambda k, device: [random_tensor(k, device=device) for _ in range(2)],
        True,
    ),
    "transposed": (*_rows(lambda x: x.t()), _matrix, True),
    "at an offset": (*_rows(lambda x: x[1:, 2:]), _matrix, True),
    "with steps": (*_rows(lambda x: x[::2, 1::2]), _matrix, True),
    "expanded": (*_rows(lambda x: x[:, :1].expand(x.shape[0], 7)), _matrix, False),
    "rows expanded": (*_rows(lambda x: x[:1].expand(5, x.shape[1])), _matrix, False),
    "overlapping": (*_rows(lambda x: x[0].unfold(0, 4, 2)), _matrix, False),
    "gathered": (
        _gathered,
        lambda x, index: (x[index.long()] ** 2).sin(),
        lambda k, device: [
            random_tensor(50, device=device),
            _integers([7 * i % 50 for i in range(30 + k)], device),
        ],
        True,
    ),
    "loops of data": (
        _products,
        _products_reference,
        lambda k, device: [
            random_tensor(40 + k, device=device),
            _integers([0, 3, 3 + k % 7, 20 + k % 5, 40 + k], device),
        ],
        False,
    ),
    "tuned with integers": (
        _counted,
        lambda x, count: (x * x * count).sin(),
        lambda k, device: [
            random_tensor(40 + k, device=device),
            _integers([i % 5 for i in range(40 + k)], device, torch.int64),
        ],
        False,
    ),
    "descriptors": (_described, lambda x: x * x.exp(), _tall, False),
    "descriptors of tensors": (_from_tensor, lambda x: x * x.exp(), _tall, False),
    "descriptors within": (_describing, lambda x: x * x.exp(), _tall, True),
}
