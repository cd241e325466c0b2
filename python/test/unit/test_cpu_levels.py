"""LLVM's levels: numbers stay what they are at each."""

import levels
import pytest
import torch
import triton
import triton.language as tl
from cpu_backend import on_cpu  # noqa: F401

LEVELS = pytest.mark.parametrize("level", [0, 1, 2])
# Of subnormal numbers and the smallest ones of the others: the distance between them.
SPACING = {torch.bfloat16: 2.0**-133, torch.float16: 2.0**-24, torch.float32: 2.0**-149}


def spaced(dtype, *shape):
    """Return random numbers around the smallest normal one, about half of them subnormal."""
    largest = 2 / torch.finfo(dtype).eps
    steps = torch.randint(-int(largest), int(largest), shape, dtype=torch.float64)
    return (steps * SPACING[dtype]).to(dtype)


def rounded(exact, dtype):
    """Return float64 numbers as numbers of a type, whose subnormal ones PyTorch might flush."""
    steps = exact / SPACING[dtype]
    small = steps.abs() <= 2 / torch.finfo(dtype).eps
    return torch.where(small, steps.round() * SPACING[dtype], exact).to(dtype)


@triton.jit(noinline=True)
def halfway(x, y):
    return x - y


@triton.jit
def arithmetic_kernel(x_ptr, y_ptr, w_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y, w = tl.load(x_ptr + i), tl.load(y_ptr + i), tl.load(w_ptr + i)
    tl.store(out_ptr + i, x + y)
    tl.store(out_ptr + N + i, x - y)
    tl.store(out_ptr + 2 * N + i, x * w)
    tl.store(out_ptr + 3 * N + i, tl.fma(x, w, y))
    tl.store(out_ptr + 4 * N + i, x / w)
    tl.store(out_ptr + 5 * N + i, -x)
    tl.store(out_ptr + 6 * N + i, tl.maximum(x, y))
    tl.store(out_ptr + 7 * N + i, (x.to(tl.float64) + y.to(tl.float64)).to(x.dtype))
    # Values that are carried from block to block.
    carried, sign = x, w
    for _ in range(tl.num_programs(0)):
        sign = tl.where(y > 0, -sign, sign)
        carried = carried + y
    tl.store(out_ptr + 8 * N + i, carried)
    for j in range(N):
        one = tl.load(x_ptr + j)
        other = tl.load(y_ptr + j)
        if other > 0:
            one = halfway(one, other)
        tl.store(out_ptr + 9 * N + j, one)


@triton.jit
def add(x, y):
    return x + y


@triton.jit
def together_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr, tl.sum(x))
    tl.store(out_ptr + 1, tl.max(x))
    tl.store(out_ptr + 2, tl.reduce(x, 0, add))
    tl.store(out_ptr + N + i, tl.cumsum(x))
    tl.store(out_ptr + 2 * N + i, tl.sort(x))
    tl.atomic_add(out_ptr + 3 + 0 * i, x)
    total = tl.zeros((), x.dtype)
    for j in range(N):
        total += tl.load(x_ptr + j)
    tl.store(out_ptr + 4, total)


@LEVELS
@pytest.mark.parametrize("dtype", SPACING)
def test_subnormal_numbers_stay(dtype, level, tmp_path, monkeypatch):
    path = tmp_path / "kernel.ll"
    monkeypatch.setenv("TRITON_AUTODIFF_DUMP_LLVM", str(path))
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    n = 64
    x, y = spaced(dtype, 2, n)
    w = torch.randn(n).to(dtype)
    out = torch.full((10, n), torch.nan, dtype=dtype)
    arithmetic_kernel[(1,)](x, y, w, out, n, opt_level=level)
    a, b, c = x.double(), y.double(), w.double()
    truth = [a + b, a - b, a * c, a * c + b, a / c, -a, torch.maximum(a, b), a + b, a + b]
    truth.append(torch.where(b > 0, a - b, a))
    for i, exact in enumerate(truth):
        torch.testing.assert_close(out[i], rounded(exact, dtype), rtol=0, atol=0, msg=f"{i}")
    # A bf16 that LLVM knows of is rounded wherever it goes through a register of f32.
    assert "bfloat" not in path.read_text()


@LEVELS
@pytest.mark.parametrize("dtype", SPACING)
def test_subnormal_numbers_add_up(dtype, level):
    n = 64
    # All sums of these are exact, in any order.
    x = (torch.randint(-2, 3, (n,)) * SPACING[dtype]).to(dtype)
    out = torch.zeros(3, n, dtype=dtype)
    together_kernel[(1,)](x, out, n, opt_level=level)
    total = x.double().sum().to(dtype)
    assert out[0, :5].tolist() == [total, x.max(), total, total, total]
    assert torch.equal(out[1], rounded(x.double().cumsum(0), dtype))
    assert torch.equal(out[2], x.sort().values)


@triton.jit
def sum_of_products_kernel(x_ptr, y_ptr, z_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    product = tl.load(x_ptr + i) * tl.load(y_ptr + i)
    tl.store(out_ptr + i, product + tl.load(z_ptr + i))


@LEVELS
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_each_operation_is_rounded(dtype, level):
    """A product in a sum is rounded as a product alone, whatever is around it."""
    x, y = torch.randn(2, 256, dtype=dtype)
    # What is left is the product's own rounding.
    z = -(x * y)
    out = torch.full_like(x, torch.nan)
    sum_of_products_kernel[(1,)](x, y, z, out, 256, opt_level=level)
    assert torch.equal(out, torch.zeros_like(x))


@LEVELS
def test_special_numbers_stay(level):
    """Rounding quiets NaN, and neither infinity nor -0 becomes another number."""
    bits = [0x0000, 0x8000, 0x0001, 0x8001, 0x7F80, 0xFF80, 0x7F81, 0x7FC0, 0x7F7F, 0x3F80]
    x = torch.tensor(bits, dtype=torch.uint16).view(torch.bfloat16).repeat(8)[:64].contiguous()
    y = torch.tensor([0.0, -0.0, 1.0, torch.inf], dtype=torch.bfloat16).repeat(16)
    out = torch.empty(10, 64, dtype=torch.bfloat16)
    arithmetic_kernel[(1,)](x, y, y, out, 64, opt_level=level)
    for found, right in zip(out, [x + y, x - y, x * y], strict=False):
        assert torch.equal(found.isnan(), right.isnan())
        kept = ~right.isnan() & ((right == 0) | (right.abs() >= 2.0**-126))
        assert torch.equal(found[kept].view(torch.int16), right[kept].view(torch.int16))
    # Quiet ones.
    nans = out[:5][out[:5].isnan()].view(torch.int16)
    assert len(nans) and ((nans & 0x40) != 0).all()


@triton.jit
def exp_kernel(x_ptr, y_ptr):
    tl.store(y_ptr, tl.exp(tl.load(x_ptr)))


def test_the_level_is_that_of_the_environment(monkeypatch):
    """A backward has that of its forward, however late it is compiled."""
    from triton.backends.autodiff import differentiable

    seen = []
    listen = lambda metadata, **others: seen.append((metadata["name"], metadata["opt_level"]))  # noqa: E731
    monkeypatch.setattr(triton.knobs.compilation, "listener", listen)
    kernel = differentiable(exp_kernel)
    for level in (0, 1, 2):
        levels.use(level)
        x, y = torch.ones(1, requires_grad=True), torch.empty(1)
        kernel[(1,)](x, y)
        monkeypatch.setenv(levels.VARIABLE, "2")
        y.backward()
        assert {found for _, found in seen} == {level} and len(seen) == 2, seen
        seen.clear()


@pytest.mark.parametrize("text", ["3", "-1", "", "two"])
def test_an_unknown_level_is_an_error(text, monkeypatch):
    monkeypatch.setenv(levels.VARIABLE, text)
    with pytest.raises(ValueError, match=f"{levels.VARIABLE} is {text!r}, and has to be 0, 1 or 2"):
        together_kernel[(1,)](torch.zeros(2), torch.zeros(10), 2)
    monkeypatch.delenv(levels.VARIABLE)
    with pytest.raises(ValueError, match="opt_level is 3, and has to be"):
        together_kernel[(1,)](torch.zeros(2), torch.zeros(10), 2, opt_level=3)


def test_tests_have_both_levels(monkeypatch):
    """Those of the CPU backend have what users have; so has a tenth of the others, by turns."""
    monkeypatch.setattr(levels, "CHOSEN", None)
    names = [f"test_a.py::test_{i}" for i in range(1000)]

    def usual(commit):
        return {name for name in names if levels.of("test_a.py", name, commit) == levels.USUAL}

    assert 60 < len(usual("a")) < 150 and usual("a") != usual("b")
    assert all(levels.of("test_cpu_tiles.py", name, "a") == levels.USUAL for name in names)
    monkeypatch.setattr(levels, "CHOSEN", "1")
    assert {levels.of(file, "x", "a") for file in ("test_a.py", "test_cpu_a.py")} == {1}
