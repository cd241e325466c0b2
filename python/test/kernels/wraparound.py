"""Positions modulo the length of a tensor: tiles that go around its end."""

import torch
import triton
import triton.language as tl

from .common import poisoned
from .matmul import _grouped, _store_tile


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """The product as Triton's tutorial computes it, and its imitators: no mask along m and n.

    It is launched as `matmul.grouped_matmul_kernel` is.
    """
    pid_m, pid_n = _grouped(tl.program_id(0), m, n, BLOCK_M, BLOCK_N, GROUP)
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_rows = tl.max_contiguous(tl.multiple_of(rows % m, BLOCK_M), BLOCK_M)
    a_ptrs = a_ptr + a_rows[:, None] * stride_am + inner[None, :] * stride_ak
    b_ptrs = b_ptr + inner[:, None] * stride_bk + (columns % n)[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(k, BLOCK_K)):
        a = tl.load(a_ptrs, mask=inner[None, :] < k - step * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=inner[:, None] < k - step * BLOCK_K, other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    _store_tile(c_ptr, acc, pid_m, pid_n, m, n, stride_cm, stride_cn, BLOCK_M, BLOCK_N)


@triton.jit
def rows_kernel(x_ptr, out_ptr, n, columns: tl.constexpr, FORM: tl.constexpr, BLOCK: tl.constexpr):
    """Squares and sums of rows, which may be those of a tile that goes around the end."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    places = tl.arange(0, columns)[None, :]
    if FORM == "before":
        x = tl.load(x_ptr - ((rows - 2 * n) % n)[:, None] * columns + places)
    elif FORM == "selected" or FORM == "divided":
        x = tl.load(x_ptr + tl.where(rows < n, rows, 0)[:, None] * columns + places)
    else:
        x = tl.load(x_ptr + (rows % n)[:, None] * columns + places)
    sums = tl.sum(x * x, axis=1)
    if FORM == "summed":
        sums = tl.sum(sums, axis=0) + rows * 0.0
    if FORM == "branch":
        total = tl.zeros((BLOCK,), tl.float32)
        for i in range(3):
            if i != 1:
                total += sums
        sums = total
    if FORM == "divided":
        # The gradient of what is divided is a sum over rows, those beyond the end among them.
        sums = tl.sum(tl.load(x_ptr + places) / (1.5 + tl.abs(x)), axis=1)
    if FORM == "kept":
        tl.store(out_ptr + rows, sums)
    elif FORM == "longer":
        tl.store(out_ptr + rows, sums, mask=rows < n + 1)
    elif FORM == "before":
        tl.store(out_ptr + rows, sums, mask=rows - 2 * n < n)
    else:
        tl.store(out_ptr + rows, sums, mask=rows < n)


def _length(x, form, block):
    """How many rows there are, and sums are stored."""
    n = len(x) // 3 if form == "before" else len(x)
    whole = triton.cdiv(n, block) * block
    return n, {"kept": whole, "longer": min(n + 1, whole)}.get(form, n)


def rows(kernel, x, form, BLOCK=8):
    n, stored = _length(x, form, BLOCK)
    out = poisoned((stored,), x, torch.float32)
    grid = (triton.cdiv(n, BLOCK),)
    kernel[grid](x, out, n, columns=x.shape[1], FORM=form, BLOCK=BLOCK)
    return out


def rows_reference(x, form, BLOCK=8):
    n, stored = _length(x, form, BLOCK)
    places = torch.arange(triton.cdiv(n, BLOCK) * BLOCK, device=x.device)
    sums = (x[:1] / (1.5 + x.abs()) if form == "divided" else x * x).sum(1)
    if form == "before":
        return sums[(2 * n - places) % n][:stored]
    sums = sums[places % n]
    if form == "summed":
        sums = sums.view(-1, BLOCK).sum(1, keepdim=True).expand(-1, BLOCK).reshape(-1)
    return (2 * sums if form == "branch" else sums)[:stored]
