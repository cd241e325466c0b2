"""Layer norm's backward: persistent programs, parameter gradients summed in registers."""

import torch
import triton
import triton.language as tl
from triton.runtime.driver import driver


@triton.jit
def _backward_kernel(
    x_ptr, w_ptr, dy_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_partial_ptr, db_partial_ptr,
    n_rows, n_columns, rows_per_program, BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    w = tl.load(w_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), tl.float32)
    db = tl.zeros((BLOCK,), tl.float32)
    first = program * rows_per_program
    for row in range(first, min(first + rows_per_program, n_rows)):
        offsets = row * n_columns + columns
        x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + row)
        rstd = tl.load(rstd_ptr + row)
        normal = tl.where(mask, (x - mean) * rstd, 0.0)
        scaled = w * dy
        along = tl.sum(normal * scaled, axis=0) / n_columns
        offset = tl.sum(scaled, axis=0) / n_columns
        tl.store(dx_ptr + offsets, (scaled - (normal * along + offset)) * rstd, mask=mask)
        dw += dy * normal
        db += dy
    tl.store(dw_partial_ptr + program * n_columns + columns, dw, mask=mask)
    tl.store(db_partial_ptr + program * n_columns + columns, db, mask=mask)


@triton.jit
def _sum_partials_kernel(
    dw_partial_ptr, db_partial_ptr, dw_ptr, db_ptr, n_partials, n_columns,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    dw = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    db = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, n_partials, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        mask = (rows < n_partials)[:, None] & (columns < n_columns)[None, :]
        offsets = rows[:, None] * n_columns + columns[None, :]
        dw += tl.load(dw_partial_ptr + offsets, mask=mask, other=0.0)
        db += tl.load(db_partial_ptr + offsets, mask=mask, other=0.0)
    tl.store(dw_ptr + columns, tl.sum(dw, axis=0), mask=columns < n_columns)
    tl.store(db_ptr + columns, tl.sum(db, axis=0), mask=columns < n_columns)


def layer_norm_backward(x, weight, mean, rstd, upstream):
    """Gradients of x, weight and bias, contiguous and below 2^31 elements."""
    rows, columns = x.shape
    device = driver.active.get_current_device()
    properties = driver.active.utils.get_device_properties(device)
    multiprocessors = properties["multiprocessor_count"]
    block = triton.next_power_of_2(columns)
    programs = min(rows, multiprocessors * (2 if block <= 4096 else 1))
    per_program = triton.cdiv(rows, programs)
    programs = triton.cdiv(rows, per_program)
    dx = torch.empty_like(x)
    dw, db = torch.empty_like(weight), torch.empty_like(weight)
    partial = torch.empty((2, programs, columns), dtype=torch.float32, device=x.device)
    _backward_kernel[(programs,)](
        x, weight, upstream, mean, rstd, dx, partial[0], partial[1], rows, columns, per_program,
        BLOCK=block, num_warps=16 if block >= 8192 else 8,
    )  # fmt: skip
    _sum_partials_kernel[(triton.cdiv(columns, 32),)](
        partial[0], partial[1], dw, db, programs, columns, BLOCK_M=32, BLOCK_N=32
    )
    return dx, dw, db


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        y, mean, rstd = torch.native_layer_norm(x, (x.shape[1],), weight, bias, eps)
        ctx.save_for_backward(x, weight, mean, rstd)
        return y

    @staticmethod
    def backward(ctx, upstream):
        return *layer_norm_backward(*ctx.saved_tensors, upstream), None


def layer_norm(x, weight, bias, eps=2.0**-17):
    """Layer norm with PyTorch's forward and the backward above."""
    return _LayerNorm.apply(x, weight, bias, eps)
