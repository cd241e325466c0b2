"""Combine functions and what they combine: where the order matters, and where it does not.

Tuples have a member that is differentiated, and others that are not: counts, keys, constants.
"""

import torch
import triton
import triton.language as tl

from .common import poisoned


@triton.jit
def mean(a, b):
    return (a + b) / 2


@triton.jit
def difference(a, b):
    return a - b


@triton.jit
def clipped_sum(a, b):
    """Associative for positive numbers only."""
    return tl.minimum(a + b, 1.0)


@triton.jit
def from_zero(a, b):
    """The CUSUM of quality control, which has to be computed one by one."""
    return tl.maximum(a + b, 0.0)


@triton.jit
def last(a, b):
    return b + 0 * a


@triton.jit
def counted_mean(mean1, count1, mean2, count2):
    """As libraries write it: a count is zero, or at least one."""
    count = count1 + count2
    return (mean1 * count1 + mean2 * count2) / tl.maximum(count, 1), count


@triton.jit
def segment_sum(x1, key1, x2, key2):
    """For keys that are sorted."""
    return tl.where(key1 == key2, x1 + x2, x2), key2


@triton.jit
def two_largest(x1, second1, x2, second2):
    second = tl.where(x1 > x2, second1, second2)
    return tl.maximum(x1, x2), tl.maximum(tl.minimum(x1, x2), second)


@triton.jit
def log_product(x1, sign1, x2, sign2):
    return x1 + x2, sign1 * sign2


@triton.jit
def exclusive_sum(x1, sum1, x2, sum2):
    return x2, sum1 + x1 + sum2


@triton.jit
def decayed_sum(x1, decay1, x2, decay2):
    return x1 * decay2 + x2, decay1 * decay2


@triton.jit
def guarded_log_sum(x1, unused1, x2, unused2):
    """Of powers of two; where nothing has been seen, −∞."""
    m = tl.maximum(x1, x2)
    m_safe = tl.where(m == -float("inf"), 0.0, m)
    return m_safe + tl.log2(tl.exp2(x1 - m_safe) + tl.exp2(x2 - m_safe)), unused1 + unused2


@triton.jit
def log_sum_by_powers_of_two(x1, unused1, x2, unused2):
    """With constants of a few digits, whose product is not one."""
    m = tl.maximum(x1, x2)
    powers = tl.exp2((x1 - m) * 1.442695) + tl.exp2((x2 - m) * 1.442695)
    return m + tl.log2(powers) * 0.693147, unused1 + unused2


# The functions of one member, which have no derivative, and those of two, which have.
UNORDERLY = {f.__name__: f for f in (mean, difference, clipped_sum, from_zero)}
PAIRS = {
    f.__name__: f
    for f in (
        counted_mean,
        segment_sum,
        two_largest,
        log_product,
        exclusive_sum,
        decayed_sum,
        guarded_log_sum,
        log_sum_by_powers_of_two,
    )
}
# Those whose sides may be swapped.
SYMMETRIC = (
    "counted_mean",
    "two_largest",
    "log_product",
    "guarded_log_sum",
    "log_sum_by_powers_of_two",
)
# What goes with x, unless it is loaded.
_CONSTANTS = {
    "two_largest": -float("inf"),
    "exclusive_sum": 0.0,
    "guarded_log_sum": 0.0,
    "log_sum_by_powers_of_two": 0.0,
}


def _make(combine, member):
    """Kernels that reduce, or scan, rows of pairs; `member` of the pairs is stored."""
    member = tl.constexpr(member)

    @triton.jit
    def reduced(
        x_ptr, w_ptr, y_ptr, OTHER: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
    ):  # fmt: skip
        i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
        x = tl.load(x_ptr + i * N + j)
        w = tl.load(w_ptr + i * N + j) if OTHER is None else tl.full((M, N), OTHER, tl.float32)
        y = tl.reduce((x, w), 1, combine)
        tl.store(y_ptr + tl.arange(0, M), y[member])

    @triton.jit
    def scanned(
        x_ptr, w_ptr, y_ptr, OTHER: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
    ):  # fmt: skip
        i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
        x = tl.load(x_ptr + i * N + j)
        w = tl.load(w_ptr + i * N + j) if OTHER is None else tl.full((M, N), OTHER, tl.float32)
        y = tl.associative_scan((x, w), 1, combine)
        tl.store(y_ptr + i * N + j, y[member])

    return reduced, scanned


MEMBERS = {"two_largest": 1, "exclusive_sum": 1}
KERNELS = {name: _make(combine, MEMBERS.get(name, 0)) for name, combine in PAIRS.items()}


def reduced(kernel, x, w, name):
    y = poisoned((x.shape[0],), x)
    kernel[(1,)](x, w, y, OTHER=_CONSTANTS.get(name), M=x.shape[0], N=x.shape[1])
    return y


def scanned(kernel, x, w, name):
    y = poisoned(x.shape, x)
    kernel[(1,)](x, w, y, OTHER=_CONSTANTS.get(name), M=x.shape[0], N=x.shape[1])
    return y


def others(name, shape, device):
    """What goes with x where it is loaded."""
    if name == "counted_mean":
        return torch.randint(0, 3, shape, device=device).float()
    if name == "segment_sum":
        return torch.randint(0, 2, shape, device=device).cumsum(1).int()
    if name == "log_product":
        return torch.randint(0, 2, shape, device=device).float() * 2 - 1
    return torch.rand(shape, device=device)


def _exclusive(x, w):
    return torch.cat([torch.zeros_like(x[:, :1]), x.cumsum(1)[:, :-1]], 1)


def _segments(x, w):
    return torch.stack(
        [(x[:, : n + 1] * (w[:, : n + 1] == w[:, n : n + 1])).sum(1) for n in range(x.shape[1])], 1
    )


def _decayed(x, w):
    y = [x[:, 0]]
    for n in range(1, x.shape[1]):
        y.append(y[-1] * w[:, n] + x[:, n])
    return torch.stack(y, 1)


def _second(x, w):
    first = torch.full_like(x[:, :1], -float("inf"))
    rest = [x[:, : n + 1].topk(2, 1).values[:, 1:] for n in range(1, x.shape[1])]
    return torch.cat([first, *rest], 1)


def _counted(x, w):
    """The first element is itself, whatever its count."""
    means = (x * w).cumsum(1) / w.cumsum(1).clamp(min=1)
    return torch.cat([x[:, :1], means[:, 1:]], 1)


# What a scan gives, of which a reduction is the last.
REFERENCES = {
    "counted_mean": _counted,
    "segment_sum": _segments,
    "two_largest": _second,
    "log_product": lambda x, w: x.cumsum(1),
    "exclusive_sum": _exclusive,
    "decayed_sum": _decayed,
    "guarded_log_sum": lambda x, w: (x * 0.6931471805599453).logcumsumexp(1) / 0.6931471805599453,
    "log_sum_by_powers_of_two": lambda x, w: x.logcumsumexp(1),
}


def scan_reference(x, w, name):
    return REFERENCES[name](x, w)


def reduce_reference(x, w, name):
    return REFERENCES[name](x, w)[:, -1]


def make_plain(combine):
    """A kernel that reduces rows of numbers, one that scans them, and one that reduces copies."""

    @triton.jit
    def reduced_rows(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
        i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
        tl.store(y_ptr + tl.arange(0, M), tl.reduce(tl.load(x_ptr + i * N + j), 1, combine))

    @triton.jit
    def scanned_rows(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
        places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
        tl.store(y_ptr + places, tl.associative_scan(tl.load(x_ptr + places), 1, combine))

    @triton.jit
    def reduced_copies(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
        i = tl.arange(0, M)
        x = tl.load(x_ptr + i)
        copies = tl.broadcast_to((x * x)[:, None], (M, N))
        tl.store(y_ptr + i, tl.reduce(copies, 1, combine))

    @triton.jit
    def scanned_copies(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
        i, j = tl.arange(0, M), tl.arange(0, N)
        x = tl.load(x_ptr + i)
        copies = tl.broadcast_to((x * x)[:, None], (M, N))
        tl.store(y_ptr + i[:, None] * N + j, tl.associative_scan(copies, 1, combine))

    return reduced_rows, scanned_rows, reduced_copies, scanned_copies
