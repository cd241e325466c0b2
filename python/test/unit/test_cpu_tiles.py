"""Operations of the CPU backend on whole tiles against PyTorch."""

import pytest
import torch
import triton
import triton.language as tl
from cpu_backend import FLOATS, close, on_cpu  # noqa: F401

# --- shapes ---------------------------------------------------------------------------------------


@triton.jit
def transpose_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    tl.store(out_ptr + n[:, None] * M + m[None, :], tl.trans(x))


def test_transpose_in_place():
    """All of a tile is read before any of it is written, even through one pointer."""
    x = torch.randn(32, 32)
    out = x.clone()
    transpose_kernel[(1,)](out, out, M=32, N=32)
    torch.testing.assert_close(out, x.t().contiguous())


@triton.jit
def shift_kernel(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i + 1, tl.load(x_ptr + i) * 2)


def test_store_after_load():
    x = torch.randn(65)
    expected = torch.cat([x[:1], x[:-1] * 2])
    shift_kernel[(1,)](x, BLOCK=64)
    torch.testing.assert_close(x, expected)


@triton.jit
def shapes_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    a, b = tl.split(tl.reshape(x, (N // 2, 2)))
    j = tl.arange(0, N // 2)
    tl.store(out_ptr + j, a)
    tl.store(out_ptr + N // 2 + j, b)
    joined = tl.reshape(tl.join(b, a), (N,))
    tl.store(out_ptr + N + i, joined)
    square = tl.permute(tl.reshape(x, (N // 8, 2, 4)), (1, 2, 0))
    tl.store(out_ptr + 2 * N + i, tl.reshape(square, (N,)))
    both = tl.cat(a, b, can_reorder=True)
    tl.store(out_ptr + 3 * N + i, both)
    tl.store(out_ptr + 4 * N + i, tl.gather(x, N - 1 - i, axis=0))


def test_shapes():
    n = 128
    x = torch.randn(n)
    out = torch.empty(5 * n)
    shapes_kernel[(1,)](x, out, N=n)
    a, b = x.reshape(-1, 2).unbind(1)
    torch.testing.assert_close(out[:n], torch.cat([a, b]))
    torch.testing.assert_close(out[n : 2 * n], torch.stack([b, a], 1).flatten())
    torch.testing.assert_close(
        out[2 * n : 3 * n], x.reshape(n // 8, 2, 4).permute(1, 2, 0).flatten()
    )
    torch.testing.assert_close(out[3 * n : 4 * n].sort().values, x.sort().values)
    torch.testing.assert_close(out[4 * n :], x.flip(0))


@triton.jit
def gather_kernel(x_ptr, index_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.gather(tl.load(x_ptr + i), tl.load(index_ptr + i), axis=0))


def test_gather_stays_in_the_tile():
    """Which element an index out of range gives is not defined; that it is one of the tile is."""
    x, out = torch.randn(16), torch.empty(16)
    index = torch.tensor([-(2**31), -1, 16, 2**31 - 1] * 4, dtype=torch.int32)
    gather_kernel[(1,)](x, index, out, N=16)
    assert torch.isin(out, x).all()


# --- reductions and scans -------------------------------------------------------------------------


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + row * stride + i, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    y = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * stride + i, y, mask=mask)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(7, 100), (64, 256), (3, 1000)])
def test_softmax(dtype, shape):
    x = torch.randn(shape).to(dtype)
    out = torch.empty_like(x)
    m, n = shape
    softmax_kernel[(m,)](x, out, n, n, BLOCK=triton.next_power_of_2(n))
    computed = torch.float32 if dtype == torch.float64 else dtype
    close(out, x.double().softmax(1), computed)


@triton.jit
def reduce_kernel(x_ptr, s_ptr, m_ptr, i_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    k = n if AXIS == 0 else m
    tl.store(s_ptr + k, tl.sum(x, axis=AXIS))
    tl.store(m_ptr + k, tl.min(x, axis=AXIS))
    tl.store(i_ptr + k, tl.argmax(x, axis=AXIS))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", FLOATS + [torch.int32, torch.int64])
def test_reduce(axis, dtype):
    m, n = 32, 64
    x = torch.randn(m, n).to(dtype) if dtype.is_floating_point else torch.randint(-99, 99, (m, n))
    x = x.to(dtype)
    size = n if axis == 0 else m
    total, least = torch.empty(2, size, dtype=dtype)
    index = torch.empty(size, dtype=torch.int32)
    reduce_kernel[(1,)](x, total, least, index, M=m, N=n, AXIS=axis)
    if dtype.is_floating_point:
        close(total, x.double().sum(axis), dtype, 8)
    else:
        torch.testing.assert_close(total, x.sum(axis).to(dtype))
    torch.testing.assert_close(least, x.amin(axis))
    torch.testing.assert_close(x.gather(axis, index.long().unsqueeze(axis)).squeeze(axis),
                               x.amax(axis))  # fmt: skip


@triton.jit
def max_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    k = tl.arange(0, N) if AXIS == 0 else tl.arange(0, M)
    size: tl.constexpr = N if AXIS == 0 else M
    tl.store(out_ptr + k, tl.max(x, axis=AXIS))
    tl.store(out_ptr + size + k, tl.min(x, axis=AXIS))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(4, 8), (8, 32), (64, 4)])
def test_max_of_numbers_and_nan(axis, dtype, shape):
    """NaN counts only where there is nothing else."""
    m, n = shape
    x = torch.randn(m, n).to(dtype)
    x[:, 1] = float("nan")
    x[1, :] = float("nan")
    x[2, 2], x[3, 3] = float("inf"), -float("inf")
    out = torch.empty(2, n if axis == 0 else m, dtype=dtype)
    max_kernel[(1,)](x, out, M=m, N=n, AXIS=axis)
    for row, fill, reduce in (
        (out[0], -float("inf"), torch.amax),
        (out[1], float("inf"), torch.amin),
    ):
        expected = reduce(x.nan_to_num(fill, float("inf"), -float("inf")), axis)
        expected[x.isnan().all(axis)] = float("nan")
        torch.testing.assert_close(row, expected, rtol=0, atol=0, equal_nan=True)


@triton.jit
def larger(x, y):
    return tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL).to(x.dtype)


@triton.jit
def smaller(x, y):
    return tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL).to(x.dtype)


@triton.jit
def propagating_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr + tl.arange(0, M), tl.reduce(x, 1, larger))
    tl.store(out_ptr + M + tl.arange(0, M), tl.reduce(x, 1, smaller))


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_that_is_propagated(dtype):
    """In PyTorch's maxima, too, NaN counts wherever it is."""
    x = torch.randn(8, 16).to(dtype)
    x[2, 3] = x[5, 0] = x[6, 15] = torch.nan
    out = torch.empty(2, 8, dtype=dtype)
    propagating_kernel[(1,)](x, out, M=8, N=16)
    expected = torch.stack([x.amax(1), x.amin(1)])
    torch.testing.assert_close(out, expected, rtol=0, atol=0, equal_nan=True)


def test_argmax_takes_the_first():
    x = torch.zeros(16, 32)
    out = torch.empty(16, dtype=torch.int32)
    rest = torch.empty(2, 16)
    reduce_kernel[(1,)](x, rest[0], rest[1], out, M=16, N=32, AXIS=1)
    assert (out == 0).all()


@triton.jit
def welford(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    count = count_a + count_b
    delta = mean_b - mean_a
    weight = count_b / count
    return mean_a + delta * weight, m2_a + m2_b + delta * delta * count_a * weight, count


@triton.jit
def welford_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    zero = tl.zeros_like(x)
    mean, m2, count = tl.reduce((x, zero, zero + 1), AXIS, welford)
    size: tl.constexpr = N if AXIS == 0 else M
    k = tl.arange(0, size)
    tl.store(out_ptr + k, mean)
    tl.store(out_ptr + size + k, m2 / count)


@pytest.mark.parametrize("axis", [0, 1])
def test_reduce_tuples(axis):
    x = torch.randn(32, 64)
    out = torch.empty(2, x.shape[1 - axis])
    welford_kernel[(1,)](x, out, M=32, N=64, AXIS=axis)
    torch.testing.assert_close(out[0], x.mean(axis), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(out[1], x.var(axis, unbiased=False), rtol=1e-5, atol=1e-6)


@triton.jit
def recurrence(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@triton.jit
def scan_kernel(
    a_ptr, b_ptr, sum_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr,
    REVERSE: tl.constexpr,
):  # fmt: skip
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(a_ptr + offsets)
    b = tl.load(b_ptr + offsets)
    tl.store(sum_ptr + offsets, tl.cumsum(a, axis=AXIS, reverse=REVERSE))
    _, h = tl.associative_scan((a, b), AXIS, recurrence, reverse=REVERSE)
    tl.store(out_ptr + offsets, h)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan(axis, reverse):
    a = torch.rand(16, 32, dtype=torch.float64)
    b = torch.randn(16, 32, dtype=torch.float64)
    total, out = torch.empty_like(a), torch.empty_like(a)
    scan_kernel[(1,)](a, b, total, out, M=16, N=32, AXIS=axis, REVERSE=reverse)

    def flip(t):
        return t.flip(axis) if reverse else t

    torch.testing.assert_close(total, flip(flip(a).cumsum(axis)))
    expected, state = [], torch.zeros_like(a.select(axis, 0))
    for x, y in zip(flip(a).unbind(axis), flip(b).unbind(axis), strict=True):
        state = x * state + y
        expected.append(state)
    torch.testing.assert_close(out, flip(torch.stack(expected, axis)))


@triton.jit
def sort_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.sort(tl.load(x_ptr + i)))


def test_sort():
    x = torch.randn(128)
    out = torch.empty_like(x)
    sort_kernel[(1,)](x, out, N=128)
    torch.testing.assert_close(out, x.sort().values)


@triton.jit
def histogram_kernel(x_ptr, out_ptr, N: tl.constexpr, BINS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + tl.arange(0, BINS), tl.histogram(x, BINS))


def test_histogram():
    x = torch.randint(0, 16, (512,), dtype=torch.int32)
    out = torch.empty(16, dtype=torch.int32)
    histogram_kernel[(1,)](x, out, N=512, BINS=16)
    torch.testing.assert_close(out, torch.bincount(x, minlength=16).int())


@triton.jit
def masked_histogram_kernel(x_ptr, mask_ptr, out_ptr, N: tl.constexpr, BINS: tl.constexpr):
    i = tl.arange(0, N)
    counts = tl.histogram(tl.load(x_ptr + i), BINS, mask=tl.load(mask_ptr + i) != 0)
    tl.store(out_ptr + tl.arange(0, BINS), counts)


def test_masked_histogram():
    """Neither lanes that are left out nor numbers without a bin are counted."""
    x = torch.randint(-4, 20, (512,), dtype=torch.int32)
    mask = torch.randint(0, 2, (512,), dtype=torch.int8)
    out = torch.empty(16, dtype=torch.int32)
    masked_histogram_kernel[(1,)](x, mask, out, N=512, BINS=16)
    counted = x[(mask != 0) & (x >= 0) & (x < 16)]
    torch.testing.assert_close(out, torch.bincount(counted, minlength=16).int())


# --- matrix products ------------------------------------------------------------------------------


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    rows = tl.cdiv(M, BM)
    columns = tl.cdiv(N, BN)
    in_group = GROUP * columns
    first = pid // in_group * GROUP
    height = min(rows - first, GROUP)
    pid_m = first + (pid % in_group) % height
    pid_n = (pid % in_group) // height
    am = (pid_m * BM + tl.arange(0, BM)) % M
    bn = (pid_n * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    a_ptrs = a_ptr + (am[:, None] * stride_am + k[None, :] * stride_ak)
    b_ptrs = b_ptr + (k[:, None] * stride_bk + bn[None, :] * stride_bn)
    acc = tl.zeros((BM, BN), dtype=ACC)
    for step in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=k[None, :] < K - step * BK, other=0)
        b = tl.load(b_ptrs, mask=k[:, None] < K - step * BK, other=0)
        acc = tl.dot(a, b, acc, out_dtype=ACC)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    cm = pid_m * BM + tl.arange(0, BM)
    cn = pid_n * BN + tl.arange(0, BN)
    c_ptrs = c_ptr + stride_cm * cm[:, None] + stride_cn * cn[None, :]
    mask = (cm[:, None] < M) & (cn[None, :] < N)
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=mask)


def matmul(a, b, out_dtype, acc=tl.float32, blocks=(32, 64, 32)):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=out_dtype)
    bm, bn, bk = blocks
    grid = (triton.cdiv(m, bm) * triton.cdiv(n, bn),)
    matmul_kernel[grid](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(),
        BM=bm, BN=bn, BK=bk, GROUP=4, ACC=acc,
    )  # fmt: skip
    return c


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(64, 64, 64), (100, 70, 50), (37, 129, 65)])
@pytest.mark.parametrize("transposed", [False, True])
def test_matmul(dtype, shape, transposed):
    m, n, k = shape
    a = torch.randn(m, k).to(dtype)
    b = torch.randn(n, k).to(dtype).t() if transposed else torch.randn(k, n).to(dtype)
    acc = tl.float64 if dtype == torch.float64 else tl.float32
    close(matmul(a, b, dtype, acc), a.double() @ b.double(), dtype)


def test_matmul_int8():
    a, b = torch.randint(-128, 127, (2, 64, 64), dtype=torch.int8)
    torch.testing.assert_close(matmul(a, b, torch.int32, tl.int32), a.int() @ b.int())


@triton.jit
def batched_kernel(a_ptr, b_ptr, c_ptr, B: tl.constexpr, N: tl.constexpr):
    batch = tl.arange(0, B)[:, None, None] * N * N
    i = batch + tl.arange(0, N)[None, :, None] * N + tl.arange(0, N)[None, None, :]
    c = tl.dot(tl.load(a_ptr + i), tl.load(b_ptr + i), input_precision="ieee")
    tl.store(c_ptr + i, c)


def test_batched_dot():
    a, b = torch.randn(2, 4, 32, 32)
    c = torch.empty_like(a)
    batched_kernel[(1,)](a, b, c, B=4, N=32)
    close(c, a.double() @ b.double(), torch.float32)


@triton.jit
def two_products_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a, b = tl.load(a_ptr + i), tl.load(b_ptr + i)
    first, second = tl.dot(a, tl.trans(b)), tl.dot(tl.trans(a), b)
    tl.store(out_ptr + i, second)
    third = tl.dot(a, b, acc=first, out_dtype=first.dtype)
    tl.store(out_ptr + N * N + i, tl.sum(first, 1)[:, None] + third)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_products_of_one_accumulator(n, dtype):
    a, b = (torch.randn(n, n, dtype=dtype) for _ in range(2))
    out = torch.full((2, n, n), float("nan"), dtype=dtype)
    two_products_kernel[(1,)](a, b, out, N=n)
    a, b = a.double(), b.double()
    first = a @ b.T
    expected = torch.stack([a.T @ b, first.sum(1)[:, None] + first + a @ b])
    close(out, expected, dtype, factor=4.0 * n)


@triton.jit
def overwriting_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(x_ptr + i, tl.zeros((N,), tl.float32))
    tl.store(out_ptr, tl.sum(x))


def test_a_load_before_a_store_is_done_before_it():
    """Though the only use of what is loaded is behind the store."""
    x, out = torch.randint(1, 9, (64,)).float(), torch.empty(1)
    total = x.sum()
    overwriting_kernel[(1,)](x, out, N=64)
    assert out == total and not x.any()


@triton.jit
def following_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    first = tl.load(x_ptr + i)
    second = tl.zeros((N,), tl.float32)
    third = tl.zeros((N,), tl.float32)
    for _ in range(n):
        before = first
        first = tl.cumsum(first)
        third = tl.flip(second, 0) + third
        second = tl.flip(before, 0) + second
    tl.store(out_ptr + i, first)
    tl.store(out_ptr + N + i, second)
    tl.store(out_ptr + 2 * N + i, third)


def test_carried_tiles_that_read_each_other():
    """A tile is not computed in memory from which another one still reads."""
    x, out = torch.randint(-2, 3, (16,)).float(), torch.empty(3, 16)
    following_kernel[(1,)](x, out, 4, N=16)
    first, second, third = x, torch.zeros(16), torch.zeros(16)
    for _ in range(4):
        first, second, third = first.cumsum(0), first.flip(0) + second, second.flip(0) + third
    assert torch.equal(out, torch.stack([first, second, third]))
