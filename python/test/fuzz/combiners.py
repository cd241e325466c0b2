"""Device functions that random programs call: combiners of reductions and scans, and others."""

import triton
import triton.language as tl
from kernels.combiners import affine as linear_recurrence  # noqa: F401
from kernels.combiners import either as probabilistic_or  # noqa: F401
from kernels.combiners import hypotenuse as root_of_squares  # noqa: F401
from kernels.combiners import log_add_exp  # noqa: F401
from kernels.combiners import online_softmax as soft_maximum  # noqa: F401
from kernels.combiners import product as multiply  # noqa: F401
from triton.backends.autodiff import custom_vjp


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def maximum(a, b):
    return tl.maximum(a, b)


@triton.jit
def minimum(a, b):
    return tl.minimum(a, b)


@triton.jit
def average(a, b):
    """Not associative, but the same in any order where all are equal."""
    return (a + b) * 0.5


@triton.jit
def difference(a, b):
    """Not associative."""
    return a - b


@triton.jit
def complex_product(a, b, c, d):
    return a * c - b * d, a * d + b * c


@triton.jit
def moments(n, mean, square, m, other_mean, other_square):
    """Of triples (weight, mean, sum of squared distances from it)."""
    weight = n + m
    distance = other_mean - mean
    share = m / weight
    squares = square + other_square + distance * distance * n * share
    return weight, mean + distance * share, squares


@triton.jit
def larger_pair(a, i, b, j):
    take = (a > b) | ((a == b) & (i < j))
    return tl.where(take, a, b), tl.where(take, i, j)


@triton.jit
def tanh(x):
    # Smooth at zero, unlike a function of abs(x), whose derivative there is none.
    return 1.0 - 2.0 / (tl.exp(2.0 * x) + 1.0)


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def noisy(x, size, sample):
    """A number that is off by a part of its size, up or down as a sample says."""
    t = x * 97.3 + sample
    up = t - 2.0 * tl.floor(t * 0.5) < 1.0
    return x * (1.0 + tl.where(up, size, -size).to(x.dtype))


@custom_vjp
@triton.jit
def noisy_contribution(x, size, sample):
    """A number as it is, of which what it contributes to its gradient is off."""
    return x


@noisy_contribution.defvjp
@triton.jit
def _noisy_contribution_vjp(dy, x, size, sample, y):
    return noisy(dy, size, sample), 0.0, 0.0


@triton.jit
def norm(x, axis: tl.constexpr):
    return tl.sqrt(tl.sum(x * x, axis, keep_dims=True) + 0.5)


@triton.jit
def cubic(x, y):
    return x * x * x - x * y


@triton.jit(noinline=True)
def cubic_call(x, y):
    return x * x * x - x * y


# The same as Triton's functions, but NaN if an operand is (see `propagation`).


@triton.jit
def nan_of(x):
    return tl.where(x != x, x, 0.0)


@triton.jit
def nan_maximum(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def nan_minimum(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def nan_clamp(x, low, high):
    return tl.clamp(x, low, high) + nan_of(x)


@triton.jit
def nan_place(place, x, axis: tl.constexpr, keep_dims: tl.constexpr = False):
    found = tl.max((x != x).to(tl.int32), axis, keep_dims=keep_dims)
    return (place + found) % x.shape[axis]


@triton.jit
def nan_argmax(x, axis: tl.constexpr, keep_dims: tl.constexpr = False):
    return nan_place(tl.argmax(x, axis, keep_dims=keep_dims), x, axis, keep_dims)


@triton.jit
def nan_argmin(x, axis: tl.constexpr, keep_dims: tl.constexpr = False):
    return nan_place(tl.argmin(x, axis, keep_dims=keep_dims), x, axis, keep_dims)


@triton.jit
def nan_max(x, axis: tl.constexpr, keep_dims: tl.constexpr = False, return_indices=False):
    nan = tl.sum(nan_of(x), axis, keep_dims=keep_dims)
    if return_indices:
        most, place = tl.max(x, axis, return_indices=True)
        return most + nan, nan_place(place, x, axis)
    else:
        return tl.max(x, axis, keep_dims=keep_dims) + nan


@triton.jit
def nan_min(x, axis: tl.constexpr, keep_dims: tl.constexpr = False, return_indices=False):
    if return_indices:
        least, place = nan_max(-x, axis, return_indices=True)
        return -least, place
    else:
        return -nan_max(-x, axis, keep_dims)


@triton.jit
def nan_sort(x, descending: tl.constexpr = False):
    nan = tl.sum(nan_of(x), len(x.shape) - 1, keep_dims=True)
    return tl.sort(x, descending=descending) + nan


@triton.jit
def nan_larger_pair(a, i, b, j):
    most, place = larger_pair(a, i, b, j)
    return most + nan_of(a) + nan_of(b), place


@triton.jit
def nan_soft_maximum(a, s, b, t):
    most, total = soft_maximum(a, s, b, t)
    return most + nan_of(a) + nan_of(b), total


@triton.jit
def nan_store(pointer, value, mask=None):
    if mask is None:
        before = tl.load(pointer)
    else:
        before = tl.load(pointer, mask=mask, other=0.0)
    tl.store(pointer, value + nan_of(before), mask)


@triton.jit
def abs_by_bits(x):
    """Clear the sign."""
    width: tl.constexpr = x.dtype.primitive_bitwidth
    bits = x.to(tl.core.get_int_dtype(bitwidth=width, signed=True), bitcast=True)
    return (bits & ~(-(1 << (width - 1)))).to(x.dtype, bitcast=True)


@triton.jit
def negated_by_bits(x):
    """Change the sign."""
    width: tl.constexpr = x.dtype.primitive_bitwidth
    bits = x.to(tl.core.get_int_dtype(bitwidth=width, signed=True), bitcast=True)
    return (bits ^ -(1 << (width - 1))).to(x.dtype, bitcast=True)


@triton.jit
def chosen_by_bits(x, y, condition):
    """Return x where a condition holds, else y: by an exclusive or of what they differ in."""
    integer = tl.core.get_int_dtype(bitwidth=x.dtype.primitive_bitwidth, signed=True)
    a, b = x.to(integer, bitcast=True), y.to(integer, bitcast=True)
    return (b ^ ((a ^ b) & -condition.to(integer))).to(x.dtype, bitcast=True)


@triton.jit
def exchanged_by_bits(x):
    """Put neighbours along the last axis in order, as Triton 2 did."""
    integer = tl.core.get_int_dtype(bitwidth=x.dtype.primitive_bitwidth, signed=True)
    shape: tl.constexpr = [x.numel // 2, 2]
    # Sums make +0.0 of -0.0: its sign would stay behind, and change the other value.
    pairs = tl.reshape(x + 0.0, shape)
    place = tl.arange(0, 2)[None, :]
    left = tl.sum(tl.where(place == 0, pairs, 0.0), 1)
    right = tl.sum(tl.where(place == 1, pairs, 0.0), 1)
    left = tl.broadcast_to(left[:, None], shape)
    right = tl.broadcast_to(right[:, None], shape)
    both = left.to(integer, bitcast=True) ^ right.to(integer, bitcast=True)
    bits = pairs.to(integer, bitcast=True)
    exchanged = bits ^ tl.where(left > right, both, tl.zeros_like(both))
    return tl.reshape(exchanged.to(x.dtype, bitcast=True), x.shape)
