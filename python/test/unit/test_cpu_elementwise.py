"""Elementwise operations of the CPU backend against PyTorch."""

import pytest
import torch
import triton
import triton.language as tl
from cpu_backend import EPSILON, FLOATS, on_cpu  # noqa: F401
from kernels.elementwise import add_kernel
from triton.language.extra import libdevice


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
            # Exponentials overflow in the kernel's type.
            rounded = reference.to(dtype)
            overflows = rounded.isinf()
            assert torch.equal(row[overflows], rounded[overflows])
            error = (row.double() - reference).abs() / reference.abs().clamp(min=1e-3)
            assert error[~overflows].max() < 8 * EPSILON[dtype]
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


@pytest.mark.parametrize("source", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("target", [torch.int32, torch.int64, torch.uint32])
def test_floats_beyond_the_range_of_integers(source, target):
    """They become the nearest integer that there is, and NaN becomes zero, as on GPUs."""
    x = torch.tensor([torch.inf, -torch.inf, torch.nan, 2.5] * 4, dtype=source)
    out = torch.empty(16, dtype=target)
    convert_kernel[(1,)](x, out, BLOCK=16)
    limits = torch.iinfo(target)
    assert out.tolist() == [limits.max, limits.min, 0, 2] * 4


def test_narrowing_f64_rounds_once():
    # Halfway between two f16 after rounding to f32, but not before.
    x = torch.full((16,), 1 + 2.0**-11 + 2.0**-40, dtype=torch.float64)
    out = torch.empty(16, dtype=torch.float16)
    convert_kernel[(1,)](x, out, BLOCK=16)
    assert (out == 1 + 2.0**-10).all()


@pytest.mark.parametrize("source", [torch.int32, torch.int64, torch.uint32])
def test_integers_are_rounded_once(source):
    """Halfway between two bf16 after rounding to f32, but not before."""
    x = torch.full((16,), 2**30 + 2**22 + 1, dtype=torch.int64).to(source)
    out = torch.empty(16, dtype=torch.bfloat16)
    convert_kernel[(1,)](x, out, BLOCK=16)
    assert (out == 2**30 + 2**23).all()


@triton.jit
def cut_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x.to(out_ptr.dtype.element_ty, fp_downcast_rounding="rtz"))


@pytest.mark.parametrize("target", [torch.float16, torch.bfloat16])
def test_conversions_toward_zero(target):
    eps = torch.finfo(target).eps
    x = torch.tensor([torch.inf, -torch.inf, 1 + 0.9 * eps, -1 - 0.9 * eps, torch.nan, 0, -0.0, 1])
    out = torch.empty(8, dtype=target)
    cut_kernel[(1,)](x, out, BLOCK=8)
    expected = torch.tensor([torch.inf, -torch.inf, 1, -1, torch.nan, 0, -0.0, 1], dtype=target)
    torch.testing.assert_close(out, expected, rtol=0, atol=0, equal_nan=True)


WITHOUT_MINUS_ZERO = [torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]


@pytest.mark.parametrize("fp8", [torch.float8_e4m3fn, torch.float8_e5m2, *WITHOUT_MINUS_ZERO])
def test_float8(fp8):
    every = torch.arange(256, dtype=torch.uint8).view(fp8)
    wide = torch.empty(256)
    convert_kernel[(1,)](every, wide, BLOCK=256)
    torch.testing.assert_close(wide, every.float(), rtol=0, atol=0, equal_nan=True)
    limit = torch.finfo(fp8).max
    x = torch.cat([torch.randn(1024), torch.randn(1024) * 1e-2, torch.randn(2048) * 30])
    x = x.clamp(-limit, limit)
    x[:2] = torch.tensor([-0.0, -1e-9])
    narrow = torch.empty(4096, dtype=fp8)
    convert_kernel[(1,)](x, narrow, BLOCK=4096)
    assert (narrow.view(torch.uint8) == x.to(fp8).view(torch.uint8)).all()


@pytest.mark.parametrize("fp8", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_float8_saturates(fp8):
    """What is too large becomes the largest number, as on GPUs; infinity stays if there is one."""
    limit = torch.finfo(fp8).max
    x = torch.tensor([1.07 * limit, -2 * limit, 1e30, -torch.inf] * 4)
    out = torch.empty(16, dtype=fp8)
    convert_kernel[(1,)](x, out, BLOCK=16)
    largest = torch.inf if fp8 == torch.float8_e5m2 else limit
    assert out.float()[:4].tolist() == [limit, -limit, limit, -largest]


@triton.jit
def erfcx_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, libdevice.erfcx(tl.load(x_ptr + i)))


def test_scaled_complementary_error_function():
    """Its square is not rounded: near 6 that would be an error of sixteen units."""
    x = torch.linspace(2, 8, 1024, dtype=torch.float64)
    out = torch.empty_like(x)
    erfcx_kernel[(1,)](x, out, BLOCK=1024)
    torch.testing.assert_close(out, torch.special.erfcx(x), rtol=1.5e-15, atol=0)


@triton.jit
def shift_kernel(x_ptr, amount_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x, amount = tl.load(x_ptr + i), tl.load(amount_ptr + i)
    tl.store(out_ptr + i, x << amount)
    tl.store(out_ptr + BLOCK + i, x >> amount)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint32])
def test_shifts_by_any_amount(dtype):
    """Shifting by the width, or more, leaves no bit of a number but its sign."""
    bits = dtype.itemsize * 8
    x = torch.tensor([1, 5, 2**31 - 1, 2**30 + 3] * 4).to(dtype)
    if dtype.is_signed:
        x[8:] = -x[8:]
    amounts = torch.tensor([0, 1, bits - 1, bits, bits + 1, 2 * bits, 3, 63] * 2).to(dtype)
    out = torch.empty(2, 16, dtype=dtype)
    shift_kernel[(1,)](x, amounts, out, BLOCK=16)
    for n, (number, amount) in enumerate(zip(x.tolist(), amounts.tolist(), strict=True)):
        mask = 2**bits - 1
        assert out[0, n].item() & mask == number << amount & mask
        assert out[1, n].item() == number >> amount


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


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8])
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
