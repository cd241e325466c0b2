"""Reductions and scans of tuples with any combine function, along any axis of a tile.

Every combiner is an associative function, some without a neutral element, some not commutative.
The reference is PyTorch code that folds from the first element to the last.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
import triton
import triton.language as tl

from .common import poisoned


@dataclasses.dataclass
class Combiner:
    """The function in Triton and in PyTorch, and what it is applied to."""

    function: triton.JITFunction
    reference: Callable
    members: int = 1
    # The element that changes nothing, if there is one.
    neutral: tuple | None = None
    # Bounds of the samples, by member.
    domain: tuple = ((-2.0, 2.0),)


@triton.jit
def product(a, b):
    return a * b


@triton.jit
def hypotenuse(a, b):
    return tl.sqrt(a * a + b * b)


@triton.jit
def log_add_exp(a, b):
    m = tl.maximum(a, b)
    return m + tl.log(tl.exp(a - m) + tl.exp(b - m))


@triton.jit
def either(a, b):
    return a + b - a * b


@triton.jit
def parallel(a, b):
    return a * b / (a + b)


@triton.jit
def larger(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def branching_product(a, b):
    """A product by way of logarithms where they exist: the other side has a pole there."""
    if a > 0 and b > 0:
        result = tl.exp(tl.log(a) + tl.log(b))
    else:
        result = a * b
    return result


def _branching_product(a, b):
    return a * b


@triton.jit
def affine(a1, b1, a2, b2):
    """x -> a2 (a1 x + b1) + b2: a linear recurrence."""
    return a1 * a2, a2 * b1 + b2


@triton.jit
def matrix(a1, b1, c1, d1, a2, b2, c2, d2):
    """The product of 2x2 matrices."""
    return a1 * a2 + b1 * c2, a1 * b2 + b1 * d2, c1 * a2 + d1 * c2, c1 * b2 + d1 * d2


def _matrix(a1, b1, c1, d1, a2, b2, c2, d2):
    return a1 * a2 + b1 * c2, a1 * b2 + b1 * d2, c1 * a2 + d1 * c2, c1 * b2 + d1 * d2


@triton.jit
def welford(mean1, m1, weight1, mean2, m2, weight2):
    """Mean, sum of squared deviations and weight of a union."""
    delta = mean2 - mean1
    weight = weight1 + weight2
    share = tl.where(weight == 0.0, 0.0, weight2 / weight)
    mean = mean1 + delta * share
    return mean, m1 + m2 + delta * delta * weight1 * share, weight


def _welford(mean1, m1, weight1, mean2, m2, weight2):
    delta = mean2 - mean1
    weight = weight1 + weight2
    empty = weight == 0
    share = weight2 / torch.where(empty, torch.ones_like(weight), weight)
    share = torch.where(empty, torch.zeros_like(weight), share)
    mean = mean1 + delta * share
    return mean, m1 + m2 + delta * delta * weight1 * share, weight


@triton.jit
def online_softmax(m1, s1, m2, s2):
    """A running maximum and the sum of exponentials below it."""
    m = tl.maximum(m1, m2)
    return m, s1 * tl.exp(m1 - m) + s2 * tl.exp(m2 - m)


def _online_softmax(m1, s1, m2, s2):
    m = torch.maximum(m1, m2)
    return m, s1 * torch.exp(m1 - m) + s2 * torch.exp(m2 - m)


@triton.jit
def arg_larger(a1, b1, a2, b2):
    """The pair whose first member is larger; the second one is a float as well."""
    first = a1 > a2
    return tl.where(first, a1, a2), tl.where(first, b1, b2)


def _arg_larger(a1, b1, a2, b2):
    first = a1 > a2
    return torch.where(first, a1, a2), torch.where(first, b1, b2)


COMBINERS = {
    "product": Combiner(product, torch.mul, neutral=(1.0,)),
    "hypotenuse": Combiner(hypotenuse, torch.hypot, domain=((0.2, 2.0),)),
    "log_add_exp": Combiner(log_add_exp, torch.logaddexp),
    "either": Combiner(either, lambda a, b: a + b - a * b, neutral=(0.0,)),
    "parallel": Combiner(parallel, lambda a, b: a * b / (a + b), domain=((0.5, 2.0),)),
    "larger": Combiner(larger, lambda a, b: torch.where(a > b, a, b), neutral=(-float("inf"),)),
    "branching_product": Combiner(branching_product, _branching_product, neutral=(1.0,)),
    "affine": Combiner(
        affine,
        lambda a1, b1, a2, b2: (a1 * a2, a2 * b1 + b2),
        members=2,
        neutral=(1.0, 0.0),
        domain=((-1.2, 1.2), (-2.0, 2.0)),
    ),
    "matrix": Combiner(
        matrix, _matrix, members=4, neutral=(1.0, 0.0, 0.0, 1.0), domain=((-0.8, 0.8),) * 4
    ),
    "welford": Combiner(
        welford,
        _welford,
        members=3,
        neutral=(0.0, 0.0, 0.0),
        domain=((-2.0, 2.0), (0.0, 1.0), (0.5, 2.0)),
    ),
    "online_softmax": Combiner(
        online_softmax,
        _online_softmax,
        members=2,
        neutral=(-1e9, 0.0),
        domain=((-3.0, 3.0), (0.5, 2.0)),
    ),
    "arg_larger": Combiner(
        arg_larger,
        _arg_larger,
        members=2,
        neutral=(-float("inf"), 0.0),
        domain=((-2.0, 2.0), (-2.0, 2.0)),
    ),
}

# Those whose result depends on the order of what is combined.
ORDERED = ("affine", "matrix")

# Where kernels run without further ado.
HOME = "cuda" if torch.cuda.is_available() else "cpu"

# Triton lowers no branch in a combine function for GPUs, not even in a forward.
FOR_GPUS = [name for name in COMBINERS if name != "branching_product"]


@triton.jit
def _offsets(a, b, c, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    """Row-major offsets into an a*b*c array, and which of them exist."""
    i = tl.arange(0, A)[:, None, None]
    j = tl.arange(0, B)[None, :, None]
    k = tl.arange(0, C)[None, None, :]
    return (i * b + j) * c + k, (i < a) & (j < b) & (k < c)


@triton.jit
def _load_members(
    x_ptr, a, b, c, OTHER, MEMBERS: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    offsets, mask = _offsets(a, b, c, A, B, C)
    size = a * b * c
    xs = (tl.load(x_ptr + offsets, mask=mask, other=OTHER[0]),)
    for member in tl.static_range(1, MEMBERS):
        xs = xs + (tl.load(x_ptr + member * size + offsets, mask=mask, other=OTHER[member]),)
    return xs


def _make_reduce(combine):
    """A kernel that reduces one tile of tuples."""

    @triton.jit
    def kernel(
        x_ptr, y_ptr, a, b, c, OTHER: tl.constexpr, MEMBERS: tl.constexpr,
        AXIS: tl.constexpr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr,
    ):  # fmt: skip
        xs = _load_members(x_ptr, a, b, c, OTHER, MEMBERS, A, B, C)
        ys = tl.reduce(xs, AXIS, combine, keep_dims=True)
        if AXIS == 0:
            offsets, mask = _offsets(1, b, c, 1, B, C)
            size = b * c
        elif AXIS == 1:
            offsets, mask = _offsets(a, 1, c, A, 1, C)
            size = a * c
        else:
            offsets, mask = _offsets(a, b, 1, A, B, 1)
            size = a * b
        for member in tl.static_range(MEMBERS):
            tl.store(y_ptr + member * size + offsets, ys[member], mask=mask)

    return kernel


def _make_scan(combine):
    """A kernel that scans one tile of tuples."""

    @triton.jit
    def kernel(
        x_ptr, y_ptr, a, b, c, OTHER: tl.constexpr, MEMBERS: tl.constexpr, AXIS: tl.constexpr,
        REVERSE: tl.constexpr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr,
    ):  # fmt: skip
        xs = _load_members(x_ptr, a, b, c, OTHER, MEMBERS, A, B, C)
        ys = tl.associative_scan(xs, AXIS, combine, reverse=REVERSE)
        offsets, mask = _offsets(a, b, c, A, B, C)
        for member in tl.static_range(MEMBERS):
            tl.store(y_ptr + member * a * b * c + offsets, ys[member], mask=mask)

    return kernel


REDUCE = {name: _make_reduce(combiner.function) for name, combiner in COMBINERS.items()}
SCAN = {name: _make_scan(combiner.function) for name, combiner in COMBINERS.items()}


def _meta(x, name):
    """Launch arguments for members of shape (a, b, c), stacked along a first dimension."""
    combiner = COMBINERS[name]
    blocks = [triton.next_power_of_2(size) for size in x.shape[1:]]
    # Without a neutral element no lane along the axis may be masked off.
    neutral = combiner.neutral or (1.0,) * combiner.members
    meta = {"OTHER": neutral, "MEMBERS": combiner.members}
    return meta | dict(zip("ABC", blocks, strict=True))


def reduce(kernel, x, name, axis):
    members, *shape = x.shape
    y = poisoned((members, *(1 if i == axis else n for i, n in enumerate(shape))), x)
    kernel[(1,)](x, y, *shape, AXIS=axis, **_meta(x, name))
    return y


def scan(kernel, x, name, axis, reverse=False):
    y = poisoned(x.shape, x)
    kernel[(1,)](x, y, *x.shape[1:], AXIS=axis, REVERSE=reverse, **_meta(x, name))
    return y


def _steps(x, name, axis, reverse=False):
    """All partial results of a fold along the axis, in the order of the elements."""
    combiner = COMBINERS[name]

    def combine(running, new):
        result = combiner.reference(*running, *new)
        return result if isinstance(result, tuple) else (result,)

    elements = list(x.unbind(axis + 1))
    running = [tuple(elements.pop(-1 if reverse else 0))]
    while elements:
        running.append(combine(running[-1], tuple(elements.pop(-1 if reverse else 0))))
    return [torch.stack(step) for step in (reversed(running) if reverse else running)]


def reduce_reference(x, name, axis):
    return _steps(x, name, axis)[-1].unsqueeze(axis + 1)


def scan_reference(x, name, axis, reverse=False):
    return torch.stack(_steps(x, name, axis, reverse), dim=axis + 1)


def full_axis(name, shape, axis):
    """The shape, with a full axis where the combiner has no neutral element to fill it up."""
    if COMBINERS[name].neutral is None:
        shape = [8 if i == axis else n for i, n in enumerate(shape)]
    return tuple(shape)


def sample(name, shape, device, dtype):
    """Members from the combiner's domain."""
    domain = COMBINERS[name].domain
    low, high = torch.tensor(domain, dtype=torch.float64).t()
    low, high = (bound.view(-1, *[1] * len(shape)) for bound in (low, high))
    x = torch.rand(len(domain), *shape, dtype=torch.float64) * (high - low) + low
    return x.to(device, dtype).requires_grad_()


@triton.jit
def extremum_kernel(
    x_ptr, y_ptr, index_ptr, m, n, OP: tl.constexpr, AXIS: tl.constexpr, LEFT: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """A maximum or minimum with its position, times two."""
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    mask = (rows < m) & (columns < n)
    low = -float("inf") if OP == "max" else float("inf")
    x = tl.load(x_ptr + rows * n + columns, mask=mask, other=low)
    if OP == "max":
        y, index = tl.max(x, AXIS, return_indices=True, return_indices_tie_break_left=LEFT)
    else:
        y, index = tl.min(x, AXIS, return_indices=True, return_indices_tie_break_left=LEFT)
    offsets = tl.arange(0, N if AXIS == 0 else M)
    mask = offsets < (n if AXIS == 0 else m)
    tl.store(y_ptr + offsets, y * 2, mask=mask)
    tl.store(index_ptr + offsets, index, mask=mask)


def extremum(kernel, x, op, axis, left=True):
    m, n = x.shape
    y = poisoned((x.shape[1 - axis],), x)
    index = torch.empty(y.shape, dtype=torch.int32, device=x.device)
    blocks = {"M": triton.next_power_of_2(m), "N": triton.next_power_of_2(n)}
    kernel[(1,)](x, y, index, m, n, OP=op, AXIS=axis, LEFT=left, **blocks)
    return y, index


def extremum_values(kernel, x, op, axis):
    return extremum(kernel, x, op, axis)[0]


def extremum_reference(x, op, axis):
    return 2 * (x.max(axis) if op == "max" else x.min(axis)).values
