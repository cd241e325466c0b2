"""Accesses by blocks: tensor descriptors made in the kernel and on the host."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


def padded(tensor, multiple=8):
    """`tensor` with rows that are aligned as descriptors want them: a view of wider rows."""
    columns = tensor.shape[-1]
    wide = -(-columns // multiple) * multiple
    return torch.nn.functional.pad(tensor, (0, wide - columns))[..., :columns]


def give_memory():
    """Let descriptors that kernels make live in memory of PyTorch: on a GPU, Triton asks for it."""
    if torch.cuda.is_available():
        triton.set_allocator(
            lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda")
        )


# --- made in the kernel -----------------------------------------------------------------------


@triton.jit
def weighted_square_kernel(x, w, y, M, N, s, BM: tl.constexpr, BN: tl.constexpr):
    """y = w · x² by blocks, the last ones out of bounds."""
    dx = tl.make_tensor_descriptor(x, [M, N], [s, 1], [BM, BN])
    dy = tl.make_tensor_descriptor(y, [M, N], [s, 1], [BM, BN])
    dw = tl.make_tensor_descriptor(w, [N], [1], [BN])
    row = tl.program_id(0) * BM
    for column in range(0, N, BN):
        v = dx.load([row, column])
        dy.store([row, column], v * v * dw.load([column])[None, :])


def weighted_square(kernel, x, w):
    x = padded(x)
    y = padded(torch.full_like(x, float("nan")))
    M, N = x.shape
    kernel[(triton.cdiv(M, 16),)](x, w, y, M, N, x.stride(0), BM=16, BN=32)
    return y


@triton.jit
def nan_row_sum_kernel(x, y, M, N, s, BM: tl.constexpr, BN: tl.constexpr):
    """Sums of rows, shifted by one column to the left: both ends of a row are out of bounds."""
    dx = tl.make_tensor_descriptor(x, [M, N], [s, 1], [BM, BN], padding_option="nan")
    row = tl.program_id(0) * BM
    v = dx.load([row, -1])
    total = tl.sum(tl.where(v == v, tl.exp(v), 0.0), axis=1)
    rows = row + tl.arange(0, BM)
    tl.store(y + rows, total, mask=rows < M)


def nan_row_sum(kernel, x):
    x = padded(x)
    y = torch.full((x.shape[0],), float("nan"), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(x.shape[0], 8),)](x, y, *x.shape, x.stride(0), BM=8, BN=64)
    return y


@triton.jit
def matmul_kernel(
    a, b, c, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """c = a·b with descriptors for all three."""
    da = tl.make_tensor_descriptor(a, [M, K], [sa, 1], [BM, BK])
    db = tl.make_tensor_descriptor(b, [K, N], [sb, 1], [BK, BN])
    dc = tl.make_tensor_descriptor(c, [M, N], [sc, 1], [BM, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(da.load([m, k]), db.load([k, n]), total, input_precision="ieee")
    dc.store([m, n], total.to(dc.dtype))


def matmul(kernel, a, b):
    a, b = padded(a), padded(b)
    (M, K), N = a.shape, b.shape[1]
    c = padded(torch.full((M, N), float("nan"), dtype=a.dtype, device=a.device))
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 16))
    strides = (a.stride(0), b.stride(0), c.stride(0))
    kernel[grid](a, b, c, M, N, K, *strides, BM=32, BN=16, BK=16)
    return c


@triton.jit
def chosen_kernel(x, z, y, M, N, s, which, BM: tl.constexpr, BN: tl.constexpr):
    """Blocks of x and z in turn: a loop swaps their descriptors, a branch picks the first."""
    dx = tl.make_tensor_descriptor(x, [M, N], [s, 1], [BM, BN])
    dz = tl.make_tensor_descriptor(z, [M, N], [s, 1], [BM, BN])
    dy = tl.make_tensor_descriptor(y, [M, N], [s, 1], [BM, BN])
    row = tl.program_id(0) * BM
    now, then = dx, dz
    if which > 0:
        now, then = dz, dx
    for column in range(0, N, BN):
        v = now.load([row, column])
        dy.store([row, column], v * v * v)
        now, then = then, now


def chosen(kernel, x, z, which):
    x, z = padded(x), padded(z)
    y = padded(torch.full_like(x, float("nan")))
    grid = (triton.cdiv(x.shape[0], 16),)
    kernel[grid](x, z, y, *x.shape, x.stride(0), which, BM=16, BN=16)
    return y


@triton.jit
def rows_kernel(x, rows, y, R, C, s, N: tl.constexpr, B: tl.constexpr):
    """y[rows[i], 4:4+B] = x[rows[i], 2:2+B]²; rows that do not exist are dropped."""
    dx = tl.make_tensor_descriptor(x, [R, C], [s, 1], [1, B])
    dy = tl.make_tensor_descriptor(y, [R, C], [s, 1], [1, B])
    which = tl.load(rows + tl.arange(0, N))
    v = dx.gather(which, 2)
    dy.scatter(v * v, which, 4)


def rows(kernel, x, index):
    x = padded(x)
    y = padded(torch.zeros_like(x))
    kernel[(1,)](x, index, y, *x.shape, x.stride(0), N=index.numel(), B=16)
    return y


@triton.jit
def reduce_kernel(x, y, M, N, s, BM: tl.constexpr, BN: tl.constexpr):
    """y[0:BM] += x² by blocks: programs add to one."""
    dx = tl.make_tensor_descriptor(x, [M, N], [s, 1], [BM, BN])
    dy = tl.make_tensor_descriptor(y, [BM, N], [s, 1], [BM, BN])
    v = dx.load([tl.program_id(0) * BM, 0])
    dy.atomic_add([0, 0], v * v)


def reduce_blocks(kernel, x):
    x = padded(x)
    y = padded(torch.zeros_like(x[:8]))
    kernel[(triton.cdiv(x.shape[0], 8),)](x, y, *x.shape, x.stride(0), BM=8, BN=32)
    return y


# --- made on the host -------------------------------------------------------------------------


@triton.jit
def host_kernel(dx, dw, dy, BM: tl.constexpr, BN: tl.constexpr):
    """y = exp(x)·w with everything that is known about sizes taken from the descriptors."""
    row = tl.program_id(0) * BM
    for column in range(0, dx.shape[1], BN):
        v = dx.load([row, column])
        dy.store([row, column], tl.exp(v.to(tl.float32)).to(v.dtype) * dw.load([0, column]))


def host(kernel, x, w, columns=slice(None), padding="zero"):
    x, w = padded(x), padded(w)
    y = padded(torch.full_like(x, float("nan")))
    x, w, y = x[:, columns], w[:, columns], y[:, columns]
    make = TensorDescriptor.from_tensor
    arguments = (
        make(x, [16, 32], padding=padding),
        make(w, [1, 32], padding=padding),
        make(y, [16, 32]),
    )
    kernel[(triton.cdiv(x.shape[0], 16),)](*arguments, BM=16, BN=32)
    return y


@triton.jit
def batched_kernel(operands, y, N, BM: tl.constexpr, BN: tl.constexpr):
    """y[b, m] = Σn x[b, m, n]·z[b, m, n]: descriptors of rank three in a tuple."""
    dx, dz = operands
    batch, row = tl.program_id(0), tl.program_id(1) * BM
    v = dx.load([batch, row, 0]) * dz.load([batch, row, 0])
    rows = row + tl.arange(0, BM)
    total = tl.sum(tl.reshape(v, [BM, BN]), axis=1)
    tl.store(y + batch * N + rows, total, mask=rows < N)


def batched(kernel, x, z):
    x, z = padded(x), padded(z)
    batch, N, columns = x.shape
    y = torch.full((batch, N), float("nan"), dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(columns)
    operands = tuple(TensorDescriptor.from_tensor(t, [1, 4, block]) for t in (x, z))
    kernel[(batch, triton.cdiv(N, 4))](operands, y, N, BM=4, BN=block)
    return y
