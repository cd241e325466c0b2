"""The CPU backend as a Triton backend: control flow, atomics, Triton's machinery."""

import os
import subprocess
import sys
import textwrap

import pytest
import torch
import triton
import triton.language as tl
from cpu_backend import on_cpu  # noqa: F401
from kernels.elementwise import add_kernel
from triton.tools.tensor_descriptor import TensorDescriptor

pytestmark = pytest.mark.every_triton

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


@triton.jit
def counted_kernel(x_ptr, out_ptr, n):
    i = tl.arange(0, 8)
    x = tl.load(x_ptr + i)
    a, steps = x, 0
    while (steps < n) & (tl.sum(a) < 5.0):
        a = tl.abs(x) + 0.25
        steps += 1
    tl.store(out_ptr + i, x + steps)


def test_while_drops_a_tile():
    """What decides when to stop is not used after the loop."""
    x = torch.linspace(-1, 1, 8, dtype=torch.float64)
    for n, largest, steps in [(3, 0.5, 3), (3, 1.0, 1), (0, 1.0, 0)]:
        out = torch.full((8,), float("nan"), dtype=torch.float64)
        counted_kernel[(1,)](x * largest, out, n)
        torch.testing.assert_close(out, x * largest + steps)


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
        "activemask.b32 $0; // $1",
        "=r,r",
        [tl.load(x_ptr + i)],
        dtype=tl.float32,
        is_pure=True,
        pack=1,
    )
    tl.store(x_ptr + i, y)


def test_unsupported_operation_names_file_and_line():
    with pytest.raises(RuntimeError, match=r"test_cpu_backend.py:\d+.*elementwise_inline_asm"):
        asm_kernel[(1,)](torch.ones(8), BLOCK=8)


@triton.jit
def rotate_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x_ptr + i)
    b, c = a * 2, a * 3
    for _ in range(n):
        a, b, c = b, c, a
    steps = 0
    while steps < n + 1:
        a, b = b, a
        steps += 1
    tl.store(out_ptr + i, a)
    tl.store(out_ptr + N + i, b)
    tl.store(out_ptr + 2 * N + i, c)


def test_loops_that_swap_tiles():
    x = torch.randn(16)
    out = torch.empty(3, 16)
    rotate_kernel[(1,)](x, out, 4, N=16)
    torch.testing.assert_close(out, torch.stack([x * 3, x * 2, x]))


@triton.jit
def print_kernel(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.device_print("value", tl.load(x_ptr + i), i)


def test_print(capfd):
    print_kernel[(1,)](torch.tensor([0.5, 1.5]), N=2)
    text = capfd.readouterr().out
    assert "value" in text and "1.5" in text and "(operand 1) 1" in text


# --- pointers -------------------------------------------------------------------------------------


@triton.jit
def device_descriptor_kernel(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BM, BN])
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [BM, BN])
    row = tl.program_id(0) * BM
    out.store([row, 0], x.load([row, 0]) * 3)


@triton.jit
def host_descriptor_kernel(x, out, BM: tl.constexpr):
    row = tl.program_id(0) * BM
    out.store([row, 0], x.load([row, 0]) * 3)


def test_descriptors():
    x = torch.randn(20, 64)
    out = torch.zeros_like(x)
    device_descriptor_kernel[(2,)](x, out, 20, 64, BM=16, BN=64)
    torch.testing.assert_close(out, x * 3)
    out.zero_()
    tiles = [TensorDescriptor.from_tensor(t, [16, 64]) for t in (x, out)]
    host_descriptor_kernel[(2,)](*tiles, BM=16)
    torch.testing.assert_close(out, x * 3)


@triton.jit
def indirect_kernel(table_ptr, out_ptr, N: tl.constexpr):
    row = tl.program_id(0)
    x_ptr = tl.load(table_ptr + row).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, N)
    tl.store(out_ptr + row * N + i, tl.load(x_ptr + i))


def test_pointers_from_memory():
    a, b = torch.randn(16), torch.randn(16)
    out = torch.empty(2, 16)
    indirect_kernel[(2,)](torch.tensor([a.data_ptr(), b.data_ptr()]), out, N=16)
    torch.testing.assert_close(out, torch.stack([a, b]))


@triton.jit
def choice_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    if n > 2:
        target = out_ptr + i
        x += 1
    else:
        target = out_ptr + N + i
    tl.store(target, x)


def test_pointers_chosen_by_a_branch():
    x = torch.randn(16)
    out = torch.zeros(2, 16)
    for n in (3, 1):
        choice_kernel[(1,)](x, out, n, N=16)
    torch.testing.assert_close(out, torch.stack([x + 1, x]))


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
def adding_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + i, tl.load(x_ptr + i))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_atomic_sums_are_rounded(dtype):
    x, y = (torch.randn(1024, dtype=torch.float64).to(dtype) for _ in range(2))
    x[:3] = torch.tensor([torch.nan, torch.inf, torch.finfo(dtype).max])
    y[2] = x[2]
    out = y.clone()
    adding_kernel[(1,)](x, out, BLOCK=1024)
    torch.testing.assert_close(out, x + y, rtol=0, atol=0, equal_nan=True)


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
        tuned_kernel[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, out, n)
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
