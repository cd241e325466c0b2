"""Kernels whose outputs depend on their inputs in ways that do, or do not, make a history."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

N = 16


@triton.jit
def elementwise(x, y, F: tl.constexpr):
    """y = F(x), for tiles of 16 elements, and the numbers of their lanes."""
    i = tl.arange(0, 16)
    tl.store(y + i, F(tl.load(x + i), i))


@triton.jit
def _copysign(x, i):
    return libdevice.copysign(tl.full([16], 1.0, x.dtype), x)


@triton.jit
def _where_constants(x, i):
    return tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, 0.0)).to(x.dtype)


@triton.jit
def _zero(x, i):
    return 0.0 * x


@triton.jit
def _difference(x, i):
    return x - x


@triton.jit
def _floor(x, i):
    return tl.floor(x)


@triton.jit
def _rint(x, i):
    return libdevice.rint(x)


@triton.jit
def _mask(x, i):
    return (x > 0).to(x.dtype)


@triton.jit
def _count(x, i):
    return tl.zeros([16], x.dtype) + tl.sum((x > 0).to(x.dtype), 0)


@triton.jit
def _running_count(x, i):
    return tl.cumsum((x > 0).to(x.dtype), 0)


@triton.jit
def _argmax(x, i):
    return tl.zeros([16], x.dtype) + tl.argmax(x, 0).to(x.dtype)


@triton.jit
def _maximum(x, i):
    return tl.zeros([16], x.dtype) + tl.max(x, 0)


@triton.jit
def _place_as_a_float(x, i):
    return tl.zeros([16], x.dtype) + tl.reduce((x, i.to(x.dtype)), 0, _larger)[1]


@triton.jit
def _largest_with_place(x, i):
    return tl.zeros([16], x.dtype) + tl.reduce((x, i.to(x.dtype)), 0, _larger)[0]


@triton.jit
def _larger(a, i, b, j):
    return tl.where(a > b, a, b), tl.where(a > b, i, j)


@triton.jit
def _running_place(x, i):
    return tl.associative_scan((x, i.to(x.dtype)), 0, _larger)[1]


@triton.jit
def _integer(x, i):
    return x.to(tl.int32).to(x.dtype)


@triton.jit
def _bits_moved(x, i):
    bits = x.to(tl.int32, bitcast=True)
    return tl.where(i % 2 == 0, bits, bits).to(x.dtype, bitcast=True)


@triton.jit
def _exponent(x, i):
    return ((x.to(tl.int32, bitcast=True) >> 23) & 255).to(x.dtype)


@triton.jit
def _digits_counted(x, i):
    return tl.histogram(x.to(tl.int32, bitcast=True) & 15, 16).to(x.dtype)


@triton.jit
def _chosen(x, i):
    return tl.where(x > 0, x, 0.5)


@triton.jit
def _chosen_numbers(x, i):
    return tl.where(x > 0, i, 2 * i).to(x.dtype)


@triton.jit
def _bounded_loop(x, i):
    total = tl.zeros([16], x.dtype)
    for _ in range(tl.sum((x > 0).to(tl.int32), 0)):
        total += 1.5
    return total


@triton.jit
def _loop(x, i):
    total = tl.zeros([16], x.dtype)
    for _ in range(3):
        total += x
    return total


@triton.jit
def _branch_on_it(x, i):
    result = tl.full([16], 2.0, x.dtype)
    if tl.sum(x, 0) > 0:
        result = result * 2
    return result


@triton.jit
def _branch_of_it(x, i):
    result = tl.full([16], 2.0, x.dtype)
    if tl.sum(i, 0) > 0:
        result = x
    return result


@triton.jit
def _rounded(x, i):
    return x.to(tl.float16).to(x.dtype)


@triton.jit
def _is_nan(x, i):
    return libdevice.isnan(x).to(x.dtype)


@triton.jit
def _product_of_masks(x, i):
    masks = (x[:, None] > x[None, :]).to(x.dtype)
    return tl.sum(tl.dot(masks, masks, input_precision="ieee"), 1)


@triton.jit
def _gathered(x, i):
    return tl.gather(x, 15 - i, 0)


@triton.jit
def _gathered_by_it(x, i):
    return tl.gather(i.to(x.dtype), tl.abs(x).to(tl.int32) % 16, 0)


@triton.jit
def _sorted(x, i):
    return tl.sort(x)


@triton.jit
def _noise(x, i):
    return tl.rand(7, i)


@triton.jit
def _constant(x, i):
    return tl.full([16], 3.0, x.dtype)


def _full(x, value):
    return torch.zeros(N, dtype=x.dtype) + value


def _places(x):
    return torch.arange(N, dtype=x.dtype)


# The same in PyTorch: whether the result has a history, and the gradient, are the same. None: there
# is no such operation, and no history.
FLOWS = {
    "copysign": (_copysign, lambda x: torch.copysign(torch.ones(N), x)),
    "chosen constants": (_where_constants, lambda x: torch.where(x > 0, 1.0, -1.0)),
    "zero times": (_zero, lambda x: 0 * x),
    "a difference": (_difference, lambda x: x - x),
    "floor": (_floor, torch.floor),
    "rint": (_rint, torch.round),
    "a mask": (_mask, lambda x: (x > 0).float()),
    "a count": (_count, lambda x: _full(x, (x > 0).float().sum())),
    "a running count": (_running_count, lambda x: (x > 0).float().cumsum(0)),
    "an arg-max": (_argmax, lambda x: _full(x, x.argmax())),
    "a maximum": (_maximum, lambda x: _full(x, x.max())),
    "a place, carried as a float": (_place_as_a_float, lambda x: _full(x, x.argmax())),
    "a maximum with its place": (_largest_with_place, lambda x: _full(x, x.max())),
    "running places": (_running_place, lambda x: x.cummax(0).indices.float()),
    "an integer": (_integer, lambda x: x.int().float()),
    "bits that are moved": (_bits_moved, lambda x: x.clone()),
    "the exponent": (_exponent, lambda x: (x.view(torch.int32) >> 23 & 255).float()),
    "digits that are counted": (_digits_counted, None),
    "one of two": (_chosen, lambda x: torch.where(x > 0, x, 0.5)),
    "one of two numbers": (_chosen_numbers, lambda x: _places(x) * torch.where(x > 0, 1, 2)),
    "how often a loop runs": (_bounded_loop, lambda x: _full(x, 1.5 * int((x > 0).sum()))),
    "a loop": (_loop, lambda x: x + x + x),
    "a branch on it": (_branch_on_it, lambda x: _full(x, 4.0 if x.sum() > 0 else 2.0)),
    "a branch of it": (_branch_of_it, lambda x: x.clone()),
    "rounded": (_rounded, lambda x: x.half().float()),
    "whether it is NaN": (_is_nan, lambda x: x.isnan().float()),
    "a product of masks": (
        _product_of_masks,
        lambda x: ((x[:, None] > x).float() @ (x[:, None] > x).float()).sum(1),
    ),
    "gathered": (_gathered, lambda x: x.flip(0)),
    "gathered by it": (_gathered_by_it, lambda x: _places(x)[x.abs().int() % N]),
    "sorted": (_sorted, lambda x: x.sort().values),
    "noise": (_noise, None),
    "a constant": (_constant, lambda x: _full(x, 3.0)),
}


@triton.jit
def statistics(x, w, mean, count, n, B: tl.constexpr):
    """The mean of weighted elements of each block, and how many there are."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    mask = i < n
    v = tl.load(x + i, mask=mask, other=0.0)
    scale = tl.load(w)
    c = tl.sum((mask & (v > 0)).to(v.dtype), 0)
    tl.store(mean + tl.program_id(0), tl.sum(v, 0) / B)
    tl.store(count + tl.program_id(0), tl.where(scale > 0, c, -c))


@triton.jit
def _merge(m1, c1, s1, m2, c2, s2):
    c = c1 + c2
    m = (m1 * c1 + m2 * c2) / tl.maximum(c, 1)
    return m, c, s1 + c1 * m1 * m1 + s2 + c2 * m2 * m2 - c * m * m


@triton.jit
def moments(x, mean, m2, count, n, B: tl.constexpr):
    """The first stage of a variance: moments of each block, and how many elements it has."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    mask = i < n
    v = tl.load(x + i, mask=mask, other=0.0)
    c = tl.sum(mask.to(v.dtype), 0)
    m = tl.sum(v, 0) / c
    tl.store(mean + tl.program_id(0), m)
    tl.store(m2 + tl.program_id(0), tl.sum(v * v, 0) - c * m * m)
    tl.store(count + tl.program_id(0), c)


@triton.jit
def variance(mean, m2, count, y, total, k, n, B: tl.constexpr):
    """The second stage: the variance, and the number of all elements."""
    i = tl.arange(0, B)
    m = tl.load(mean + i, mask=i < k, other=0.0)
    c = tl.load(count + i, mask=i < k, other=0.0)
    s = tl.load(m2 + i, mask=i < k, other=0.0)
    m, c, s = tl.reduce((m, c, s), 0, _merge)
    tl.store(y, s / n)
    tl.store(total, c)


@triton.jit
def through_memory(x, scratch, y, HOW: tl.constexpr):
    """What goes through memory: a value, whether it is positive, or its address."""
    i = tl.arange(0, 16)
    v = tl.load(x + i)
    if HOW == "value":
        tl.store(scratch + i, v)
    elif HOW == "mask":
        tl.store(scratch + i, (v > 0).to(v.dtype))
    elif HOW == "atomic mask":
        tl.atomic_add(scratch + i, (v > 0).to(v.dtype))
    elif HOW == "atomic value":
        tl.atomic_add(scratch + i, v)
    elif HOW == "address":
        tl.store(scratch + (v > 0).to(tl.int32) * 16 + i, 1.0)
    tl.debug_barrier()
    tl.store(y + i, tl.load(scratch + i) * 2)


@triton.jit
def steady(x, y, HOW: tl.constexpr):
    """What has derivative zero."""
    i = tl.arange(0, 16)
    v = tl.load(x + i)
    if HOW == "a count":
        v = tl.zeros([16], v.dtype) + tl.sum((v > 0).to(v.dtype), 0)
    elif HOW == "floor":
        v = tl.floor(v)
    else:
        v = 0.0 * v
    tl.store(y + i, v)


@triton.jit
def looked_up(x, table, y):
    """Elements of a table at places that x says."""
    i = tl.arange(0, 16)
    place = tl.abs(tl.load(x + i)).to(tl.int32) % 16
    tl.store(y + i, tl.load(table + place))


@triton.jit
def update(x, z, FULLY: tl.constexpr):
    """Sets elements of z to constants where x is positive, or everywhere; adds zero to x."""
    i = tl.arange(0, 16)
    v = tl.load(x + i)
    mask = (v > 0) | FULLY
    tl.store(z + i, 7.0, mask=mask)


@triton.jit
def parts(x, w, y, z):
    """Each of two outputs depends on one of two inputs; w is also compared."""
    i = tl.arange(0, 16)
    v, u = tl.load(x + i), tl.load(w + i)
    tl.store(y + i, tl.where(u > 0, v * v, v))
    tl.store(z + i, tl.exp(u))


@triton.jit
def never(x, y, start, ROUNDS: tl.constexpr):
    """y stays what it was: the inner loop has k % 3 = 0 iterations, which takes a while to see."""
    row = tl.program_id(0)
    first = tl.load(start)
    k = 0
    for _ in range(row, row + ROUNDS * 2, 2):
        for _ in range(first, first + k % 3):
            tl.store(y + row, tl.load(x + row) * 2)
        k += 3
