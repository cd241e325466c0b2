"""The CPU backend as a Triton backend: forward kernels against PyTorch and the interpreter."""

import os
import subprocess
import sys
import textwrap

import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
EPSILON = {dtype: torch.finfo(dtype).eps for dtype in FLOATS}


@pytest.fixture(autouse=True)
def on_cpu(request):
    """These tests need the CPU driver; on a GPU machine they choose it for their duration."""
    from triton.backends.autodiff.driver import CPUDriver
    from triton.runtime import driver

    if os.environ.get("TRITON_INTERPRET") == "1":
        pytest.skip("kernels are interpreted")
    previous = driver._active
    driver.set_active(CPUDriver())
    yield
    driver._active = previous


def close(actual, expected, dtype, factor=4.0):
    scale = expected.double().abs().max().clamp(min=1e-30)
    error = (actual.double() - expected.double()).abs().max() / scale
    assert error <= factor * EPSILON[dtype], f"relative error {error:.3g} in {dtype}"


# --- elementwise ----------------------------------------------------------------------------------


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    y = tl.load(y_ptr + i, mask=mask)
    tl.store(out_ptr + i, x + y, mask=mask)


@pytest.mark.parametrize("dtype", FLOATS + [torch.int8, torch.int16, torch.int32, torch.int64])
def test_add(dtype):
    n = 1000
    guard = 64
    if dtype.is_floating_point:
        x, y = torch.randn(2, n).to(dtype)
    else:
        x, y = torch.randint(-50, 50, (2, n)).to(dtype)
    out = torch.full((n + guard,), 7, dtype=dtype)
    add_kernel[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)
    torch.testing.assert_close(out[:n], x + y, rtol=0, atol=0)
    assert (out[n:] == 7).all(), "a lane that was masked off wrote"


def test_empty_grid():
    out = torch.ones(4)
    add_kernel[(0,)](out, out, out, 4, BLOCK=4)
    assert (out == 1).all()


@triton.jit
def other_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n, other=-3.0))
    tl.store(out_ptr + BLOCK + i, tl.load(x_ptr + i, mask=i < n))


def test_masked_load_gives_other_or_zero():
    x = torch.randn(10)
    out = torch.empty(64)
    other_kernel[(1,)](x, out, 10, BLOCK=32)
    torch.testing.assert_close(out[:10], x)
    assert (out[10:32] == -3).all()
    assert (out[42:] == 0).all()


@triton.jit
def math_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.exp(x))
    tl.store(out_ptr + n + i, tl.exp2(x))
    tl.store(out_ptr + 2 * n + i, tl.log(tl.abs(x)))
    tl.store(out_ptr + 3 * n + i, tl.log2(tl.abs(x)))
    tl.store(out_ptr + 4 * n + i, tl.sin(x))
    tl.store(out_ptr + 5 * n + i, tl.cos(x))
    tl.store(out_ptr + 6 * n + i, tl.sqrt(tl.abs(x)))
    tl.store(out_ptr + 7 * n + i, tl.rsqrt(tl.abs(x)))
    tl.store(out_ptr + 8 * n + i, tl.erf(x))
    tl.store(out_ptr + 9 * n + i, tl.sigmoid(x))
    tl.store(out_ptr + 10 * n + i, libdevice.tanh(x))
    tl.store(out_ptr + 11 * n + i, libdevice.atan(x))
    tl.store(out_ptr + 12 * n + i, tl.floor(x))
    tl.store(out_ptr + 13 * n + i, tl.ceil(x))
    tl.store(out_ptr + 14 * n + i, libdevice.expm1(x))
    tl.store(out_ptr + 15 * n + i, libdevice.log1p(tl.abs(x)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_math(dtype, scale):
    n = 1024
    x = (torch.randn(n) * scale).to(dtype)
    out = torch.empty(16, n, dtype=dtype)
    math_kernel[(n // 256,)](x, out, n, BLOCK=256)
    d = x.double()
    expected = [
        d.exp(), d.exp2(), d.abs().log(), d.abs().log2(), d.sin(), d.cos(), d.abs().sqrt(),
        d.abs().rsqrt(), d.erf(), d.sigmoid(), d.tanh(), d.atan(), d.floor(), d.ceil(),
        d.expm1(), d.abs().log1p(),
    ]  # fmt: skip
    for row, reference in zip(out, expected, strict=True):
        if dtype == torch.float32:
            error = (row.double() - reference).abs() / reference.abs().clamp(min=1e-3)
            assert error.max() < 8 * EPSILON[dtype]
        else:
            torch.testing.assert_close(row, reference, rtol=4e-15, atol=1e-15)


@triton.jit
def chain_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    y = tl.load(y_ptr + i)
    tl.store(out_ptr + i, (x * y + x) / (y * y + 1) - x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_rounds_after_every_operation(dtype):
    x, y = torch.randn(2, 1024).to(dtype)
    out = torch.empty_like(x)
    chain_kernel[(1,)](x, y, out, BLOCK=1024)
    # PyTorch rounds after every operation too; Triton divides in f32.
    numerator, denominator = x * y + x, y * y + 1
    expected = (numerator.float() / denominator.float()).to(dtype) - x
    torch.testing.assert_close(out, expected, rtol=4 * EPSILON[dtype], atol=4 * EPSILON[dtype])


@triton.jit
def convert_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i).to(out_ptr.dtype.element_ty))


SPECIAL = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 65504.0, 65520.0, 1e-8, 6e-8, 3e38]


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", FLOATS)
def test_float_conversions(source, target):
    x = torch.cat([torch.tensor(SPECIAL, dtype=torch.float64), torch.randn(246) * 10]).to(source)
    out = torch.empty(256, dtype=target)
    convert_kernel[(1,)](x, out, BLOCK=256)
    torch.testing.assert_close(out, x.to(target), rtol=0, atol=0, equal_nan=True)


def test_narrowing_f64_rounds_once():
    # Halfway between two f16 after rounding to f32, but not before.
    x = torch.full((16,), 1 + 2.0**-11 + 2.0**-40, dtype=torch.float64)
    out = torch.empty(16, dtype=torch.float16)
    convert_kernel[(1,)](x, out, BLOCK=16)
    assert (out == 1 + 2.0**-10).all()


@pytest.mark.parametrize("fp8", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_float8(fp8):
    every = torch.arange(256, dtype=torch.uint8).view(fp8)
    wide = torch.empty(256)
    convert_kernel[(1,)](every, wide, BLOCK=256)
    torch.testing.assert_close(wide, every.float(), rtol=0, atol=0, equal_nan=True)
    limit = torch.finfo(fp8).max
    x = torch.cat([torch.randn(1024), torch.randn(1024) * 1e-2, torch.randn(2048) * 30])
    x = x.clamp(-limit, limit)
    narrow = torch.empty(4096, dtype=fp8)
    convert_kernel[(1,)](x, narrow, BLOCK=4096)
    assert (narrow.view(torch.uint8) == x.to(fp8).view(torch.uint8)).all()


@triton.jit
def integer_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    y = tl.load(y_ptr + i)
    tl.store(out_ptr + i, x // y)
    tl.store(out_ptr + n + i, x % y)
    tl.store(out_ptr + 2 * n + i, x & y)
    tl.store(out_ptr + 3 * n + i, x ^ y)
    tl.store(out_ptr + 4 * n + i, x << 3)
    tl.store(out_ptr + 5 * n + i, x >> 2)
    tl.store(out_ptr + 6 * n + i, tl.where(x < y, x, y))


@pytest.mark.parametrize(
    "dtype", [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]
)
def test_integers(dtype):
    n = 512
    info = torch.iinfo(dtype)
    x = torch.randint(info.min, info.max, (n,), dtype=torch.int64).to(dtype)
    y = torch.randint(max(info.min, -(2**40)), min(info.max, 2**40), (n,)).to(dtype)
    y[y == 0] = 3
    x[0], y[0] = info.max, 1
    out = torch.empty(7, n, dtype=dtype)
    integer_kernel[(1,)](x, y, out, n, BLOCK=n)
    # As in C: quotients are truncated.
    torch.testing.assert_close(out[0], torch.div(x, y, rounding_mode="trunc"))
    torch.testing.assert_close(out[1], torch.fmod(x, y))
    torch.testing.assert_close(out[2], x & y)
    torch.testing.assert_close(out[3], x ^ y)
    torch.testing.assert_close(out[4], x << 3)
    torch.testing.assert_close(out[5], x >> 2)
    torch.testing.assert_close(out[6], torch.minimum(x, y))


def test_division_by_zero_does_not_trap():
    for dtype in (torch.int32, torch.int64):
        x = torch.arange(64, dtype=dtype)
        x[1], y = torch.iinfo(dtype).min, torch.zeros(64, dtype=dtype)
        y[1] = -1
        out = torch.empty(7, 64, dtype=dtype)
        integer_kernel[(1,)](x, y, out, 64, BLOCK=64)
        assert (out[1, 2:] == x[2:]).all()


@triton.jit
def bool_kernel(x_ptr, flag_ptr, out_ptr, flag, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    keep = tl.load(flag_ptr + i)
    tl.store(out_ptr + i, (x > 0) & keep & flag)


def test_booleans():
    x = torch.randn(64)
    keep = torch.rand(64) > 0.5
    out = torch.empty(64, dtype=torch.bool)
    for flag in (True, False):
        bool_kernel[(1,)](x, keep, out, flag, BLOCK=64)
        torch.testing.assert_close(out, (x > 0) & keep & flag)


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
    for row, fill, reduce in ((out[0], -float("inf"), torch.amax), (out[1], float("inf"), torch.amin)):
        expected = reduce(x.nan_to_num(fill, float("inf"), -float("inf")), axis)
        expected[x.isnan().all(axis)] = float("nan")
        torch.testing.assert_close(row, expected, rtol=0, atol=0, equal_nan=True)


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


# --- control flow ---------------------------------------------------------------------------------


@triton.jit
def loops_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    if tl.program_id(0) >= n:
        return
    i = tl.arange(0, BLOCK)
    a = tl.load(x_ptr + i)
    b = a * 2
    for _ in range(n):
        a, b = b, a + 1.0
        for j in range(3):
            if j == 1:
                a += b * 0.5
    steps = 0
    while tl.sum(a, axis=0) > 1.0:
        a *= 0.5
        steps += 1
    tl.store(out_ptr + tl.program_id(0) * BLOCK + i, a + steps)


def test_loops_and_early_return():
    x = torch.rand(64, dtype=torch.float64)
    out = torch.zeros(4, 64, dtype=torch.float64)
    loops_kernel[(4,)](x, out, 3, BLOCK=64)
    a, b = x, x * 2
    for _ in range(3):
        a, b = b, a + 1
        a = a + b * 0.5
    steps = 0
    while a.sum() > 1:
        a, steps = a * 0.5, steps + 1
    torch.testing.assert_close(out[:3], (a + steps).expand(3, 64))
    assert (out[3] == 0).all()


@triton.jit(noinline=True)
def scaled(x, factor):
    return x * factor, x + factor


@triton.jit
def call_kernel(x_ptr, out_ptr, factor, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = scaled(factor, 2.0)
    tl.store(out_ptr + i, tl.load(x_ptr + i) * a - b)


def test_call():
    x = torch.randn(64)
    out = torch.empty_like(x)
    call_kernel[(1,)](x, out, 3.0, BLOCK=64)
    torch.testing.assert_close(out, x * 6 - 5)


@triton.jit
def grid_kernel(out_ptr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nx, ny, nz = tl.num_programs(0), tl.num_programs(1), tl.num_programs(2)
    tl.store(out_ptr + (z * ny + y) * nx + x, x + 10 * y + 100 * z + 1000 * nz)


def test_grid():
    out = torch.empty(4, 3, 2, dtype=torch.int32)
    grid_kernel[(2, 3, 4)](out)
    z, y, x = torch.meshgrid(*map(torch.arange, (4, 3, 2)), indexing="ij")
    assert (out == x + 10 * y + 100 * z + 4000).all()


@triton.jit
def assert_kernel(x_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.device_assert(x > 0, "x must be positive")


def test_assert():
    assert_kernel[(1,)](torch.ones(8), BLOCK=8, debug=True)
    with pytest.raises(RuntimeError, match=r"test_cpu_backend.py:\d+.*x must be positive"):
        assert_kernel[(1,)](-torch.ones(8), BLOCK=8, debug=True)


@triton.jit
def asm_kernel(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    y = tl.inline_asm_elementwise(
        "mov.b32 $0, $1;", "=r,r", [tl.load(x_ptr + i)], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(x_ptr + i, y)


def test_unsupported_operation_names_file_and_line():
    with pytest.raises(RuntimeError, match=r"test_cpu_backend.py:\d+.*elementwise_inline_asm"):
        asm_kernel[(1,)](torch.ones(8), BLOCK=8)


# --- atomics --------------------------------------------------------------------------------------


@triton.jit
def count_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.atomic_add(out_ptr + x, 1, mask=i < n)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.int32, torch.int64, torch.float16, torch.bfloat16]
)
def test_atomic_add_under_contention(dtype):
    n = 20000 if dtype.itemsize > 2 else 800  # halves count exactly only so far
    x = torch.randint(0, 8, (n,), dtype=torch.int32)
    out = torch.zeros(8, dtype=dtype)
    count_kernel[(triton.cdiv(n, 64),)](x, out, n, BLOCK=64)
    torch.testing.assert_close(out, torch.bincount(x, minlength=8).to(dtype))


@triton.jit
def atomics_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    zero = tl.zeros_like(i)
    tl.atomic_max(out_ptr + zero, x)
    tl.atomic_min(out_ptr + 1 + zero, x)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32])
def test_atomic_max_min(dtype):
    x = (torch.randn(4096) * 1e6).to(dtype)
    out = torch.zeros(2, dtype=dtype)
    atomics_kernel[(64,)](x, out, BLOCK=64)
    assert out[0] == x.max() and out[1] == x.min()


@triton.jit
def lock_kernel(lock_ptr, sum_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(sum_ptr, tl.load(sum_ptr) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


def test_lock():
    lock = torch.zeros(1, dtype=torch.int32)
    total = torch.zeros(1, dtype=torch.int32)
    lock_kernel[(2000,)](lock, total)
    assert total.item() == 2000


@triton.jit
def ticket_kernel(counter_ptr, out_ptr):
    tl.store(out_ptr + tl.atomic_add(counter_ptr, 1), 1)


def test_atomic_returns_the_old_value():
    counter = torch.zeros(1, dtype=torch.int32)
    out = torch.zeros(500, dtype=torch.int32)
    ticket_kernel[(500,)](counter, out)
    assert (out == 1).all()


# --- Triton's machinery ---------------------------------------------------------------------------


@triton.autotune([triton.Config({"BLOCK": b}) for b in (64, 256)], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = None if EVEN else i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) * 2, mask=mask)


def test_autotune_and_heuristics():
    for n in (1024, 1000):
        x = torch.randn(n)
        out = torch.empty_like(x)
        tuned_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, out, n)
        torch.testing.assert_close(out, x * 2)


def test_do_bench():
    x = torch.randn(4096)
    out = torch.empty_like(x)
    ms = triton.testing.do_bench(lambda: add_kernel[(4,)](x, x, out, 4096, BLOCK=1024), rep=20)
    assert 0 < ms < 1000


@triton.jit
def tuple_kernel(pair, out_ptr, optional, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(pair[0] + i) * pair[1]
    if optional is not None:
        x += tl.load(optional + i)
    tl.store(out_ptr + i, x)


def test_tuples_and_none():
    x, y = torch.randn(2, 32)
    out = torch.empty(32)
    tuple_kernel[(1,)]((x, 3.0), out, None, BLOCK=32)
    torch.testing.assert_close(out, x * 3)
    tuple_kernel[(1,)]((x, 3.0), out, y, BLOCK=32)
    torch.testing.assert_close(out, x * 3 + y)


def test_kernel_from_text(tmp_path):
    """TTIR text, as the backward kernels come, compiles and launches."""
    x = torch.randn(256)
    out = torch.empty_like(x)
    compiled = add_kernel[(1,)](x, x, out, 256, BLOCK=256)
    path = tmp_path / "add_kernel.ttir"
    path.write_text(compiled.asm["ttir"])
    target = triton.runtime.driver.active.get_current_target()
    kernel = triton.compile(str(path), target=target)
    out.zero_()
    arguments = [x, x, out, 256][: len(kernel.src.signature)]
    kernel[(1, 1, 1)](*arguments)
    torch.testing.assert_close(out, x + x)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a tensor on a GPU")
def test_gpu_tensor_is_refused():
    x = torch.ones(8, device="cuda")
    with pytest.raises(ValueError, match="CPU driver"):
        add_kernel[(1,)](x, x, x, 8, BLOCK=8)


# --- the interpreter ------------------------------------------------------------------------------

RANDOM = """
    import sys
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(out_ptr, seed, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(out_ptr + i, tl.rand(seed, i))
        tl.store(out_ptr + N + i, tl.randn(seed, i))
        tl.store(out_ptr + 2 * N + i, tl.randint(seed, i) % 1000)

    out = torch.empty(3 * 256)
    kernel[(1,)](out, 1234567, N=256)
    torch.save(out, sys.argv[1])
"""


def test_random_numbers_equal_the_interpreters(tmp_path):
    script = tmp_path / "random_numbers.py"
    script.write_text(textwrap.dedent(RANDOM))
    results = []
    for interpret in ("0", "1"):
        path = tmp_path / f"out{interpret}.pt"
        environment = os.environ | {"TRITON_INTERPRET": interpret, "CUDA_VISIBLE_DEVICES": ""}
        subprocess.run([sys.executable, script, path], env=environment, check=True)
        results.append(torch.load(path))
    native, interpreted = results
    torch.testing.assert_close(native[:256], interpreted[:256], rtol=0, atol=0)
    torch.testing.assert_close(native[256:512], interpreted[256:512], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(native[512:], interpreted[512:], rtol=0, atol=0)
