"""Device functions that random programs call: combiners of reductions and scans, and others."""

import triton
import triton.language as tl


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def maximum(a, b):
    return tl.maximum(a, b)


@triton.jit
def minimum(a, b):
    return tl.minimum(a, b)


@triton.jit
def log_add_exp(a, b):
    top = tl.maximum(a, b)
    return top + tl.log(tl.exp(a - top) + tl.exp(b - top))


@triton.jit
def root_of_squares(a, b):
    return tl.sqrt(a * a + b * b)


@triton.jit
def probabilistic_or(a, b):
    return a + b - a * b


@triton.jit
def linear_recurrence(a, b, c, d):
    """Of pairs (factor, term): x -> a x + b, then x -> c x + d."""
    return a * c, c * b + d


@triton.jit
def complex_product(a, b, c, d):
    return a * c - b * d, a * d + b * c


@triton.jit
def soft_maximum(m, s, n, t):
    """Of pairs (maximum, sum of exponentials relative to it)."""
    top = tl.maximum(m, n)
    return top, s * tl.exp(m - top) + t * tl.exp(n - top)


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
    e = tl.exp(-2.0 * tl.abs(x))
    y = (1.0 - e) / (1.0 + e)
    return tl.where(x < 0, -y, y)


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def norm(x, axis: tl.constexpr):
    return tl.sqrt(tl.sum(x * x, axis, keep_dims=True) + 0.5)


@triton.jit
def cubic(x, y):
    return x * x * x - x * y


@triton.jit(noinline=True)
def cubic_call(x, y):
    return x * x * x - x * y
