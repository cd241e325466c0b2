"""Matrix products: plain, grouped, autotuned, with an epilogue, batched."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import poisoned, precision_of


@triton.jit
def _tile_product(
    a_ptr, b_ptr, pid_m, pid_n, m, n, k, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The float32 product tile (pid_m, pid_n), with pointers that advance along k."""
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + inner[None, :] * stride_ak
    b_ptrs = b_ptr + inner[:, None] * stride_bk + columns[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        left = k - start
        a = tl.load(a_ptrs, mask=(rows[:, None] < m) & (inner[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(inner[:, None] < left) & (columns[None, :] < n), other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    return acc


@triton.jit
def _store_tile(
    c_ptr, acc, pid_m, pid_n, m, n, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _store_halves(
    c_ptr, acc, pid_m, pid_n, m, n, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """The same, the left half of the tile first: less shared memory is needed."""
    left, right = tl.split(tl.permute(tl.reshape(acc, BLOCK_M, 2, BLOCK_N // 2), (0, 2, 1)))
    HALF: tl.constexpr = BLOCK_N // 2
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = pid_n * BLOCK_N + tl.arange(0, HALF)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c_ptrs, left.to(c_ptr.dtype.element_ty), mask=mask)
    mask = (rows[:, None] < m) & (columns[None, :] + HALF < n)
    tl.store(c_ptrs + HALF * stride_cn, right.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _grouped(
    pid, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr,
    LAST: tl.constexpr = None,
):  # fmt: skip
    """Tiles in groups of rows, so that programs that run together share operands in L2.

    LAST: how the height of the last group is spelled, if not as the smaller of two numbers.
    """
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    group = pid // (GROUP * tiles_n)
    first = group * GROUP
    if LAST == "chosen":
        height = tl.where(first + GROUP > tiles_m, tiles_m % GROUP, GROUP)
    elif LAST == "branch":
        if tiles_m >= first + GROUP:
            height = GROUP
        else:
            height = tiles_m % GROUP
    elif LAST == "smaller":
        height = tl.where(tiles_m - first < GROUP, tiles_m - first, GROUP)
    elif LAST == "smaller branch":
        if GROUP >= tiles_m - first:
            height = tiles_m - first
        else:
            height = GROUP
    else:
        height = min(tiles_m - first, GROUP)
    pid_m = first + (pid % (GROUP * tiles_n)) % height
    pid_n = (pid % (GROUP * tiles_n)) // height
    return pid_m, pid_n


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A two-dimensional grid, one tile of C a program."""
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    acc = _tile_product(
        a_ptr, b_ptr, pid_m, pid_n, m, n, k, stride_am, stride_ak, stride_bk, stride_bn,
        BLOCK_M, BLOCK_N, BLOCK_K, PRECISION,
    )  # fmt: skip
    _store_tile(c_ptr, acc, pid_m, pid_n, m, n, stride_cm, stride_cn, BLOCK_M, BLOCK_N)


@triton.jit
def grouped_matmul_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
    PRECISION: tl.constexpr, LAST: tl.constexpr = None,
):  # fmt: skip
    pid_m, pid_n = _grouped(tl.program_id(0), m, n, BLOCK_M, BLOCK_N, GROUP, LAST)
    acc = _tile_product(
        a_ptr, b_ptr, pid_m, pid_n, m, n, k, stride_am, stride_ak, stride_bk, stride_bn,
        BLOCK_M, BLOCK_N, BLOCK_K, PRECISION,
    )  # fmt: skip
    _store_tile(c_ptr, acc, pid_m, pid_n, m, n, stride_cm, stride_cn, BLOCK_M, BLOCK_N)


# The same kernel, its tiles chosen by measurement.
autotuned_matmul_kernel = triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32, "GROUP": 4}, num_warps=4),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 32, "GROUP": 8}, num_warps=4),
    ],
    key=["m", "n", "k"],
)(grouped_matmul_kernel)


@triton.jit
def bias_activation_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, m, n, k,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr,
    ACTIVATION: tl.constexpr, GROUP: tl.constexpr = None,
):  # fmt: skip
    """C = activation(A @ B + bias); the gradient needs the product that nobody stored."""
    if GROUP is None:
        pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    else:
        pid_m, pid_n = _grouped(tl.program_id(0), m, n, BLOCK_M, BLOCK_N, GROUP)
    acc = _tile_product(
        a_ptr, b_ptr, pid_m, pid_n, m, n, k, stride_am, stride_ak, stride_bk, stride_bn,
        BLOCK_M, BLOCK_N, BLOCK_K, PRECISION,
    )  # fmt: skip
    columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    bias = tl.load(bias_ptr + columns, mask=columns < n, other=0.0)
    acc += bias[None, :]
    if ACTIVATION == "leaky_relu":
        acc = tl.where(acc >= 0, acc, 0.01 * acc)
    if ACTIVATION == "gelu":
        acc = 0.5 * acc * (1.0 + tl.erf(acc * 0.7071067811865476))
    _store_tile(c_ptr, acc, pid_m, pid_n, m, n, stride_cm, stride_cn, BLOCK_M, BLOCK_N)


def matmul(kernel, a, b, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, **options):
    (m, k), n = a.shape, b.shape[1]
    c = poisoned((m, n), a)
    grid = (triton.cdiv(m, BLOCK_M), triton.cdiv(n, BLOCK_N))
    kernel[grid](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, PRECISION=precision_of(a), **options,
    )  # fmt: skip
    return c


def grouped_matmul(kernel, a, b, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP=3, **options):
    (m, k), n = a.shape, b.shape[1]
    c = poisoned((m, n), a)
    grid = (triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N),)
    kernel[grid](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP=GROUP, PRECISION=precision_of(a),
        **options,
    )  # fmt: skip
    return c


def autotuned_matmul(kernel, a, b):
    (m, k), n = a.shape, b.shape[1]
    c = poisoned((m, n), a)
    kernel[lambda meta: (triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),)](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), PRECISION=precision_of(a)
    )
    return c


def bias_activation(
    kernel, a, b, bias, activation, group=None, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, **options
):
    (m, k), n = a.shape, b.shape[1]
    c = poisoned((m, n), a)
    grid = (triton.cdiv(m, BLOCK_M), triton.cdiv(n, BLOCK_N))
    kernel[grid if group is None else (grid[0] * grid[1],)](
        a, b, bias, c, m, n, k, *a.stride(), *b.stride(), *c.stride(),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, PRECISION=precision_of(a),
        ACTIVATION=activation, GROUP=group, **options,
    )  # fmt: skip
    return c


def bias_activation_reference(a, b, bias, activation, group=None):
    product = torch.addmm(bias, a, b)
    if activation == "gelu":
        return F.gelu(product)
    return F.leaky_relu(product, 0.01)


@triton.jit
def batched_matmul_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k,
    stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn,
    stride_cb, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The batch is a grid axis."""
    batch = tl.program_id(2).to(tl.int64)
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    acc = _tile_product(
        a_ptr + batch * stride_ab, b_ptr + batch * stride_bb, pid_m, pid_n, m, n, k,
        stride_am, stride_ak, stride_bk, stride_bn, BLOCK_M, BLOCK_N, BLOCK_K, PRECISION,
    )  # fmt: skip
    _store_tile(
        c_ptr + batch * stride_cb, acc, pid_m, pid_n, m, n, stride_cm, stride_cn, BLOCK_M, BLOCK_N
    )


def batched_matmul(kernel, a, b, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, **options):
    (batch, m, k), n = a.shape, b.shape[2]
    c = poisoned((batch, m, n), a)
    grid = (triton.cdiv(m, BLOCK_M), triton.cdiv(n, BLOCK_N), batch)
    kernel[grid](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, PRECISION=precision_of(a), **options,
    )  # fmt: skip
    return c


@triton.jit
def block_dot_kernel(
    a_ptr, b_ptr, c_ptr, BATCH: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """One batched tt.dot on three-dimensional tiles."""
    batch = tl.arange(0, BATCH)[:, None, None]
    rows, columns, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + batch * (M * K) + rows[None, :, None] * K + inner[None, None, :])
    b = tl.load(b_ptr + batch * (K * N) + inner[None, :, None] * N + columns[None, None, :])
    c = tl.dot(a, b, input_precision=PRECISION)
    c_ptrs = c_ptr + batch * (M * N) + rows[None, :, None] * N + columns[None, None, :]
    tl.store(c_ptrs, c.to(c_ptr.dtype.element_ty))


def block_dot(kernel, a, b):
    (batch, m, k), n = a.shape, b.shape[2]
    c = poisoned((batch, m, n), a)
    kernel[(1,)](a, b, c, BATCH=batch, M=m, N=n, K=k, PRECISION=precision_of(a))
    return c


@triton.jit
def float8_dot_kernel(
    a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, E5M2: tl.constexpr
):
    """The product of one tile that is rounded to 8-bit floats first."""
    FORMAT: tl.constexpr = tl.float8e5 if E5M2 else tl.float8e4nv
    rows, columns, inner = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    a = tl.load(a_ptr + rows * K + inner[None, :]).to(FORMAT)
    b = tl.load(b_ptr + inner[:, None] * N + columns).to(FORMAT)
    tl.store(c_ptr + rows * N + columns, tl.dot(a, b))


def float8_dot(kernel, a, b, format):
    c = poisoned((a.shape[0], b.shape[1]), a)
    e5m2 = format == torch.float8_e5m2
    kernel[(1,)](a, b, c, M=a.shape[0], N=b.shape[1], K=a.shape[1], E5M2=e5m2)
    return c


def float8_dot_reference(a, b, format):
    # PyTorch's own cast would round the gradient to 8 bits, too.
    a, b = (x + (x.to(format).to(x.dtype) - x).detach() for x in (a, b))
    return a @ b


@triton.jit
def triangular_kernel(
    a_ptr, b_ptr, y_ptr, M, N, K, BLOCK: tl.constexpr, BEFORE: tl.constexpr, STEPS: tl.constexpr
):
    """y = triu(a) b, but for blocks: a program starts `BEFORE` blocks in front of the diagonal."""
    row, column = tl.program_id(0), tl.program_id(1)
    rows, columns = row * BLOCK + tl.arange(0, BLOCK), column * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    first = tl.maximum(row - BEFORE, 0) if BEFORE else row
    last = tl.cdiv(K, BLOCK)
    # Counted in blocks, or in elements.
    for at in range(first * STEPS, last * STEPS, STEPS):
        k = at * (BLOCK // STEPS) + tl.arange(0, BLOCK)
        inside = (rows[:, None] < M) & (k[None, :] < K)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=inside, other=0.0)
        inside = (k[:, None] < K) & (columns[None, :] < N)
        b = tl.load(b_ptr + k[:, None] * N + columns[None, :], mask=inside, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(y_ptr + rows[:, None] * N + columns[None, :], acc, mask=inside)


def triangular(kernel, a, b, before=0, steps=1, BLOCK=16):
    """a: (M, K); b: (K, N)."""
    (M, K), N = a.shape, b.shape[1]
    y = poisoned((M, N), a)
    grid = (triton.cdiv(M, BLOCK), triton.cdiv(N, BLOCK))
    kernel[grid](a, b, y, M, N, K, BLOCK=BLOCK, BEFORE=before, STEPS=steps)
    return y


def triangular_reference(a, b, before=0, steps=1, BLOCK=16):
    row, column = (torch.arange(n, device=a.device) // BLOCK for n in a.shape)
    return (a * (column >= row[:, None] - before)) @ b
