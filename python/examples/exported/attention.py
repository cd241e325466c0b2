"""`attention` with its gradients, as Triton kernels.

Made by Triton-Autodiff 0.1.0 from the kernel `attention_kernel`, with Triton 3.9.0 for cpu. It was
made for launches that are like the one that it was exported from; whatever is not is an
AssertionError:

- `q_ptr`: a tensor (float16, cpu)
- `k_ptr`: a tensor (float16, cpu)
- `v_ptr`: a tensor (float16, cpu)
- `sm_scale`: fp32
- `m_ptr`: a tensor (float32, cpu)
- `out_ptr`: a tensor (float16, cpu, all of its storage)
- `stride_qz`: i32
- `stride_qh`: i32
- `stride_qm`: i32
- `stride_kz`: i32
- `stride_kh`: i32
- `stride_kn`: i32
- `stride_vz`: i32
- `stride_vh`: i32
- `stride_vn`: i32
- `stride_oz`: i32
- `stride_oh`: i32
- `stride_om`: i32
- `n_heads`: i32
- `n_context`: i32
- `stride_qd` = 1
- `stride_kd` = 1
- `stride_vd` = 1
- `stride_od` = 1
- `HEAD_DIM` = 64
- `BLOCK_M` = 64
- `BLOCK_N` = 32
- `CAUSAL` = True
- `EVEN` = True
- `GROUP` = 1
- gradients of `q_ptr`, `k_ptr`, `v_ptr`, from those of `out_ptr`
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch.autograd import forward_ad


@triton.jit
def attention_kernel_fwd(
    q_ptr,  # tl.pointer_type(tl.float16), a multiple of 16
    k_ptr,  # tl.pointer_type(tl.float16), a multiple of 16
    v_ptr,  # tl.pointer_type(tl.float16), a multiple of 16
    sm_scale,  # tl.float32
    m_ptr,  # tl.pointer_type(tl.float32), a multiple of 16
    out_ptr,  # tl.pointer_type(tl.float16), a multiple of 16
    stride_qz,  # tl.int32, a multiple of 16
    stride_qh,  # tl.int32, a multiple of 16
    stride_qm,  # tl.int32, a multiple of 16
    stride_kz,  # tl.int32, a multiple of 16
    stride_kh,  # tl.int32, a multiple of 16
    stride_kn,  # tl.int32, a multiple of 16
    stride_vz,  # tl.int32, a multiple of 16
    stride_vh,  # tl.int32, a multiple of 16
    stride_vn,  # tl.int32, a multiple of 16
    stride_oz,  # tl.int32, a multiple of 16
    stride_oh,  # tl.int32, a multiple of 16
    stride_om,  # tl.int32, a multiple of 16
    n_heads,  # tl.int32
    n_context,  # tl.int32, a multiple of 16
):
    """`attention_kernel`, for these types and constants."""
    HEAD_DIM: tl.constexpr = 64
    BLOCK_M: tl.constexpr = 64
    BLOCK_N: tl.constexpr = 32
    block = tl.program_id(0)
    program = tl.program_id(1)
    z = (program // n_heads).to(tl.int64)
    head = (program % n_heads).to(tl.int64)
    rows_part = block * BLOCK_M
    arange = tl.arange(0, 64)
    rows = rows_part + arange
    q_ptrs = q_ptr + (z * stride_qz.to(tl.int64) + head * stride_qh.to(tl.int64))
    rows_1 = rows[:, None]
    offset = rows_1 * stride_qm
    arange_1 = arange[None, :]
    arange_2 = tl.broadcast_to(arange_1, [64, 64])
    q_ptrs_1 = q_ptrs + (offset + arange_2)
    k_base = k_ptr + (z * stride_kz.to(tl.int64) + head * stride_kh.to(tl.int64))
    v_base = v_ptr + (z * stride_vz.to(tl.int64) + head * stride_vh.to(tl.int64))
    qk_scale = sm_scale * 1.442695
    q = tl.load(q_ptrs_1)
    arange_3 = tl.arange(0, BLOCK_N)
    arange_4 = arange[:, None]
    acc = tl.full([BLOCK_M, HEAD_DIM], 0.0, tl.float32)
    row_sum = tl.full([BLOCK_M], 0.0, tl.float32)
    new_max = tl.full([BLOCK_M], float("-inf"), tl.float32)
    for i in range(0, rows_part, BLOCK_N):
        keys = i + arange_3
        k_ptrs = k_base + keys[None, :] * stride_kn + arange_4
        v_ptrs = v_base + keys[:, None] * stride_vn + arange_1
        qk = tl.dot(q, tl.load(k_ptrs)) * qk_scale
        new_max_1 = tl.maximum(new_max, tl.max(qk, 1))
        p = tl.exp2(qk - new_max_1[:, None])
        alpha = tl.exp2(new_max - new_max_1)
        row_sum_1 = row_sum * alpha + tl.sum(p, 1)
        acc_1 = acc * alpha[:, None]
        v = tl.load(v_ptrs)
        p_1 = p.to(tl.float16)
        acc, row_sum, new_max = tl.dot(p_1, v, acc_1), row_sum_1, new_max_1
    stop = tl.minimum((block + 1) * BLOCK_M, n_context)
    arange_5 = tl.arange(0, BLOCK_N)
    arange_6 = arange[:, None]
    acc_2 = acc
    row_sum_2 = row_sum
    new_max_2 = new_max
    for i_1 in range(rows_part, stop, BLOCK_N):
        keys_1 = i_1 + arange_5
        keys_2 = keys_1[None, :]
        k_ptrs_1 = k_base + keys_2 * stride_kn + arange_6
        v_ptrs_1 = v_base + keys_1[:, None] * stride_vn + arange_1
        qk_1 = tl.dot(q, tl.load(k_ptrs_1)) * qk_scale
        mask = rows_1 >= keys_2
        qk_2 = tl.where(mask, qk_1, -1.0e6)
        new_max_3 = tl.maximum(new_max_2, tl.max(qk_2, 1))
        p_2 = tl.exp2(qk_2 - new_max_3[:, None])
        alpha_1 = tl.exp2(new_max_2 - new_max_3)
        row_sum_3 = row_sum_2 * alpha_1 + tl.sum(p_2, 1)
        acc_3 = acc_2 * alpha_1[:, None]
        v_1 = tl.load(v_ptrs_1)
        p_3 = p_2.to(tl.float16)
        acc_2, row_sum_2, new_max_2 = tl.dot(p_3, v_1, acc_3), row_sum_3, new_max_3
    acc_4 = acc_2 / row_sum_2[:, None]
    m_ptrs = m_ptr + program * n_context + rows
    out_ptrs = (
        out_ptr
        + (z * stride_oz.to(tl.int64) + head * stride_oh.to(tl.int64))
        + (rows_1 * stride_om + arange_2)
    )
    tl.store(m_ptrs, new_max_2 + tl.log2(row_sum_2))
    tl.store(out_ptrs, acc_4.to(tl.float16))


@triton.jit
def attention_kernel_bwd(
    q_ptr,  # tl.pointer_type(tl.float16), a multiple of 16
    k_ptr,  # tl.pointer_type(tl.float16), a multiple of 16
    v_ptr,  # tl.pointer_type(tl.float16), a multiple of 16
    sm_scale,  # tl.float32
    m_ptr,  # tl.pointer_type(tl.float32), a multiple of 16
    out_ptr,  # tl.pointer_type(tl.float16), a multiple of 16
    stride_qz,  # tl.int32, a multiple of 16
    stride_qh,  # tl.int32, a multiple of 16
    stride_qm,  # tl.int32, a multiple of 16
    stride_kz,  # tl.int32, a multiple of 16
    stride_kh,  # tl.int32, a multiple of 16
    stride_kn,  # tl.int32, a multiple of 16
    stride_vz,  # tl.int32, a multiple of 16
    stride_vh,  # tl.int32, a multiple of 16
    stride_vn,  # tl.int32, a multiple of 16
    stride_oz,  # tl.int32, a multiple of 16
    stride_oh,  # tl.int32, a multiple of 16
    stride_om,  # tl.int32, a multiple of 16
    n_heads,  # tl.int32
    n_context,  # tl.int32, a multiple of 16
    d_out_ptr,  # tl.pointer_type(tl.float16), a multiple of 16
    handover_acc,  # tl.pointer_type(tl.float32), a multiple of 16
    handover_log_row_sum,  # tl.pointer_type(tl.float32), a multiple of 16
    d_q_ptr,  # tl.pointer_type(tl.float16), a multiple of 16
    head_end: tl.int64,  # tl.int64
    z_end: tl.int64,  # tl.int64
    zero: tl.int64,  # tl.int64
):
    """A backward kernel of `attention_kernel`.

    It computes `d_q_ptr`, from `d_out_ptr`. A program does the backward of one program of the
    forward. It leaves `handover_acc` and `handover_log_row_sum` to
    `attention_kernel_bwd_interchanged0`. A comment is the statement of the forward whose gradient
    comes next, and the rule for it, in which x̄ is the gradient of an operand x, and ȳ that of the
    result.

    The host passes on, `grid` being the forward's:
    - head_end: max(remainder(program_1, n_heads) for program_1 in range(grid[1])) + 1
    - z_end: max(divided(program_1, n_heads) for program_1 in range(grid[1])) + 1
    - zero: zero, which Triton's compiler must not know: added to a sum between two loops, it lets
    the products of the second one overlap
    """
    n_heads = tl.cast(n_heads, tl.int32)
    HEAD_DIM: tl.constexpr = 64
    BLOCK_M: tl.constexpr = 64
    BLOCK_N: tl.constexpr = 32
    program = tl.program_id(1)
    block = tl.program_id(0)
    z = (program // n_heads).to(tl.int64)
    head = (program % n_heads).to(tl.int64)
    rows_part = block * BLOCK_M
    arange = tl.arange(0, 64)
    rows = rows_part + arange
    offset = z * stride_qz.to(tl.int64) + head * stride_qh.to(tl.int64)
    q_ptrs = q_ptr + offset
    d_q_ptrs = d_q_ptr + offset
    rows_1 = rows[:, None]
    offset_1 = rows_1 * stride_qm
    arange_1 = arange[None, :]
    arange_2 = tl.broadcast_to(arange_1, [64, 64])
    offset_2 = offset_1 + arange_2
    q_ptrs_1 = q_ptrs + offset_2
    d_q_ptrs_1 = d_q_ptrs + offset_2
    k_base = k_ptr + (z * stride_kz.to(tl.int64) + head * stride_kh.to(tl.int64))
    v_base = v_ptr + (z * stride_vz.to(tl.int64) + head * stride_vh.to(tl.int64))
    qk_scale = sm_scale * 1.442695
    q = tl.load(q_ptrs_1)
    arange_3 = tl.arange(0, BLOCK_N)
    arange_4 = tl.broadcast_to(arange[:, None], [64, BLOCK_N])
    arange_5 = tl.broadcast_to(arange_1, [BLOCK_N, 64])
    n = tl.minimum((block + 1) * BLOCK_M, n_context)
    rows_2 = tl.broadcast_to(rows_1, [BLOCK_M, BLOCK_N])
    m = tl.load(m_ptr + program * n_context + rows)
    log_row_sum = tl.where(m == float("-inf"), float("inf"), m)
    block_1 = block.to(tl.int64)
    head_end_1 = head_end.to(tl.int32).to(tl.int64)
    z_part = program.to(tl.int64)
    n_heads_1 = n_heads.to(tl.int64)
    program_1 = z_part % n_heads_1
    offset_3 = block_1 * head_end_1
    offset_4 = offset_3 + program_1
    z_end_1 = z_end.to(tl.int32).to(tl.int64)
    program_2 = z_part // n_heads_1
    offset_5 = (offset_4 * z_end_1 + program_2) * BLOCK_M
    tl.store(handover_log_row_sum + offset_5 + arange, log_row_sum)
    offset_6 = z * stride_oz.to(tl.int64) + head * stride_oh.to(tl.int64)
    out_ptrs = out_ptr + offset_6
    d_out_ptrs = d_out_ptr + offset_6
    offset_7 = rows_1 * stride_om + arange_2
    out_ptrs_1 = out_ptrs + offset_7
    d_out_ptrs_1 = d_out_ptrs + offset_7
    acc = tl.load(out_ptrs_1).to(tl.float32)
    # tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty))  (flash_attention_v2.py:107)
    d_out = tl.load(d_out_ptrs_1).to(tl.float32)
    # acc = acc / row_sum[:, None]  (flash_attention_v2.py:101)
    #     div: x̄₁ += ȳ/x₂, x̄₂ −= ȳ/x₂·y
    d_acc_term = 0.0 - d_out * acc
    mask = d_out == 0.0
    d_acc_term_1 = tl.sum(tl.where(mask, 0.0, d_acc_term), 1)
    tl.store(handover_acc + offset_5 + arange, d_acc_term_1)
    n_iterations = ((tl.maximum(n - rows_part, 0) + 31).to(tl.uint32) // BLOCK_N).to(tl.int32)
    log_row_sum_1 = tl.broadcast_to(log_row_sum[:, None], [BLOCK_M, BLOCK_N])
    # row_sum = row_sum * alpha + tl.sum(p, 1)  (flash_attention_v2.py:40)
    d_row_sum_term = tl.broadcast_to(d_acc_term_1[:, None], [64, 32])
    # for start in range(low, high, BLOCK_N):  (flash_attention_v2.py:23)
    if n_iterations > 0:
        d_q_1 = tl.full([BLOCK_M, HEAD_DIM], 0.0, tl.float32)
        for i in range(n_iterations):
            keys = rows_part + i * BLOCK_N + arange_3
            keys_1 = keys[None, :]
            k_ptrs = k_base + keys_1 * stride_kn + arange_4
            v_ptrs = v_base + keys[:, None] * stride_vn + arange_5
            k = tl.load(k_ptrs)
            qk = tl.dot(q, k) * qk_scale
            mask_1 = rows_2 >= keys_1
            p = tl.exp2(tl.where(mask_1, qk, -1.0e6) - log_row_sum_1)
            # acc = tl.dot(p.to(v.dtype), v, acc)  (flash_attention_v2.py:46)
            #     dot: Ā += D̄·Bᵀ, B̄ += Aᵀ·D̄, C̄ += D̄
            d_p = tl.dot(d_out, tl.trans(tl.load(v_ptrs).to(tl.float32)), d_row_sum_term)
            # qk = tl.dot(q, k) * qk_scale  (flash_attention_v2.py:32)
            #     dot: Ā += D̄·Bᵀ, B̄ += Aᵀ·D̄, C̄ += D̄
            # p = tl.math.exp2(qk - new_max[:, None])  (flash_attention_v2.py:38)
            #     exp2: x̄ += ȳ·y·ln 2
            # qk = tl.where(rows[:, None] >= keys[None, :], qk, -1.0e6)  (flash_attention_v2.py:34)
            #     select: x̄₁ += c ? ȳ : 0, x̄₂ += c ? 0 : ȳ
            d_q_2 = tl.dot(tl.where(mask_1, d_p * p, 0.0), tl.trans(k.to(tl.float32)), d_q_1)
            d_q_1 = d_q_2
        d_q = d_q_1
    else:
        d_q = tl.full([BLOCK_M, HEAD_DIM], 0.0, tl.float32)
    n_iterations_1 = ((tl.maximum(rows_part, 0) + 31).to(tl.uint32) // BLOCK_N).to(tl.int32)
    d_term = d_q + zero.to(tl.int32).to(tl.float32)
    if n_iterations_1 > 0:
        d_q_4 = d_term
        for i_1 in range(n_iterations_1):
            keys_2 = i_1 * BLOCK_N + arange_3
            k_ptrs_1 = k_base + keys_2[None, :] * stride_kn + arange_4
            v_ptrs_1 = v_base + keys_2[:, None] * stride_vn + arange_5
            k_1 = tl.load(k_ptrs_1)
            p_1 = tl.exp2(tl.dot(q, k_1) * qk_scale - log_row_sum_1)
            d_p_1 = tl.dot(d_out, tl.trans(tl.load(v_ptrs_1).to(tl.float32)), d_row_sum_term)
            d_q_4 = tl.dot(d_p_1 * p_1, tl.trans(k_1.to(tl.float32)), d_q_4)
        d_q_3 = d_q_4
    else:
        d_q_3 = d_term
    # q = tl.load(q_ptrs)  (flash_attention_v2.py:81)
    tl.store(d_q_ptrs_1, (d_q_3 * 0.6931472 * qk_scale).to(tl.float16))


@triton.jit
def attention_kernel_bwd_interchanged0(
    q_ptr,  # tl.pointer_type(tl.float16), a multiple of 16
    k_ptr,  # tl.pointer_type(tl.float16), a multiple of 16
    v_ptr,  # tl.pointer_type(tl.float16), a multiple of 16
    sm_scale,  # tl.float32
    stride_qz,  # tl.int32, a multiple of 16
    stride_qh,  # tl.int32, a multiple of 16
    stride_qm,  # tl.int32, a multiple of 16
    stride_kz,  # tl.int32, a multiple of 16
    stride_kh,  # tl.int32, a multiple of 16
    stride_kn,  # tl.int32, a multiple of 16
    stride_vz,  # tl.int32, a multiple of 16
    stride_vh,  # tl.int32, a multiple of 16
    stride_vn,  # tl.int32, a multiple of 16
    stride_oz,  # tl.int32, a multiple of 16
    stride_oh,  # tl.int32, a multiple of 16
    stride_om,  # tl.int32, a multiple of 16
    n_context,  # tl.int32, a multiple of 16
    d_out_ptr,  # tl.pointer_type(tl.float16), a multiple of 16
    handover_acc,  # tl.pointer_type(tl.float32), a multiple of 16
    handover_log_row_sum,  # tl.pointer_type(tl.float32), a multiple of 16
    d_k_ptr,  # tl.pointer_type(tl.float16), a multiple of 16
    d_v_ptr,  # tl.pointer_type(tl.float16), a multiple of 16
    n_iterations: tl.int64,  # tl.int64
    z_end: tl.int64,  # tl.int64
    head_end: tl.int64,  # tl.int64
    n_programs: tl.int64,  # tl.int64
    zero: tl.int64,  # tl.int64
):
    """A backward kernel of `attention_kernel`.

    It computes `d_k_ptr` and `d_v_ptr`, from `d_out_ptr`. A program is an iteration of the loop at
    flash_attention_v2.py:23, and sums over the programs of the forward that run it. It reads
    `handover_acc` and `handover_log_row_sum`, which `attention_kernel_bwd` has left. A comment is
    the statement of the forward whose gradient comes next, and the rule for it, in which x̄ is the
    gradient of an operand x, and ȳ that of the result.

    The host passes on, `grid` being the forward's:
    - n_iterations: max(max(-(-max(min((program_0 + 1) * 64, n_context) for program_0 in
    range(grid[0])) // 32), 0), max(-(-max(program_0 * 64 for program_0 in range(grid[0])) // 32),
    0))
    - z_end: max(divided(program_1, n_heads) for program_1 in range(grid[1])) + 1
    - head_end: max(remainder(program_1, n_heads) for program_1 in range(grid[1])) + 1
    - n_programs: grid[0]
    - zero: zero, which Triton's compiler must not know: added to a sum between two loops, it lets
    the products of the second one overlap
    """
    HEAD_DIM: tl.constexpr = 64
    BLOCK_M: tl.constexpr = 64
    BLOCK_N: tl.constexpr = 32
    n_iterations_1 = n_iterations.to(tl.int32)
    z_end_1 = z_end.to(tl.int32)
    head_end_1 = head_end.to(tl.int32)
    program = tl.program_id(0)
    program_1 = program % n_iterations_1
    program_2 = program // n_iterations_1
    z = program_2 % z_end_1
    head = program_2 // z_end_1 % head_end_1
    n = program_1 * BLOCK_N
    n_programs_1 = n_programs.to(tl.int32)
    n_1 = (tl.maximum(n, -BLOCK_M) + BLOCK_M) // BLOCK_M
    n_2 = tl.minimum(n_programs_1, n_1)
    start = tl.maximum((tl.maximum(n - BLOCK_M, -BLOCK_M) + BLOCK_M) // BLOCK_M, 0)
    stop = tl.where(n - n_context >= 0, 0, n_2)
    condition = start < stop
    qk_scale = sm_scale * 1.442695
    if condition:
        keys = n + tl.arange(0, BLOCK_N)
        offset = keys[None, :] * stride_kn
        z_1 = z.to(tl.int64)
        offset_1 = z_1 * stride_kz.to(tl.int64)
        head_1 = head.to(tl.int64)
        k_ptrs = tl.broadcast_to(
            k_ptr + (offset_1 + head_1 * stride_kh.to(tl.int64)) + offset, [64, BLOCK_N]
        )
        arange = tl.arange(0, 64)
        k_ptrs_1 = k_ptrs + arange[:, None]
        keys_1 = keys[:, None]
        offset_2 = keys_1 * stride_vn
        v_base = v_ptr + (z_1 * stride_vz.to(tl.int64) + head_1 * stride_vh.to(tl.int64))
        v_ptrs = tl.broadcast_to(v_base + offset_2, [BLOCK_N, 64])
        arange_1 = arange[None, :]
        v_ptrs_1 = v_ptrs + arange_1
        q_ptrs = q_ptr + (z_1 * stride_qz.to(tl.int64) + head_1 * stride_qh.to(tl.int64))
        arange_2 = tl.broadcast_to(arange_1, [64, 64])
        d_out_ptrs = d_out_ptr + (z_1 * stride_oz.to(tl.int64) + head_1 * stride_oh.to(tl.int64))
        # acc = tl.dot(p.to(v.dtype), v, acc)  (flash_attention_v2.py:46)
        #     dot: Ā += D̄·Bᵀ, B̄ += Aᵀ·D̄, C̄ += D̄
        v = tl.load(v_ptrs_1).to(tl.float32)
        head_end_2 = head_end_1.to(tl.int64)
        z_end_2 = z_end_1.to(tl.int64)
        k = tl.load(k_ptrs_1)
        keys_2 = tl.broadcast_to(keys_1, [BLOCK_N, BLOCK_M])
        k_1 = tl.trans(k)
        d_k_1 = tl.full([BLOCK_N, HEAD_DIM], 0.0, tl.float32)
        d_v_1 = tl.full([BLOCK_N, HEAD_DIM], 0.0, tl.float32)
        for i in range(start, stop):
            rows = i * BLOCK_M + arange
            mask = tl.broadcast_to((n <= rows)[:, None], [BLOCK_M, HEAD_DIM])
            rows_1 = rows[:, None]
            q = tl.load(q_ptrs + (rows_1 * stride_qm + arange_2))
            # qk = tl.dot(q, k) * qk_scale  (flash_attention_v2.py:32)
            #     dot: Ā += D̄·Bᵀ, B̄ += Aᵀ·D̄, C̄ += D̄
            q_1 = tl.where(mask, q.to(tl.float32), 0.0)
            mask_1 = rows[None, :] >= keys_2
            # tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty))  (flash_attention_v2.py:107)
            d_out = tl.load(d_out_ptrs + (rows_1 * stride_om + arange_2)).to(tl.float32)
            d_out_1 = tl.trans(d_out)
            offset_3 = ((i.to(tl.int64) * head_end_2 + head_1) * z_end_2 + z_1) * 64
            # acc = acc / row_sum[:, None]  (flash_attention_v2.py:101)
            # row_sum = row_sum * alpha + tl.sum(p, 1)  (flash_attention_v2.py:40)
            handover_acc_1 = tl.broadcast_to(
                tl.load(handover_acc + offset_3 + arange)[None, :], [32, 64]
            )
            d_p = tl.dot(v, d_out_1, handover_acc_1)
            p_part = (
                tl.where(mask_1, tl.dot(k_1, tl.trans(q)) * qk_scale, -1.0e6)
                - tl.load(handover_log_row_sum + offset_3 + arange)[None, :]
            )
            p = tl.exp2(p_part)
            # p = tl.math.exp2(qk - new_max[:, None])  (flash_attention_v2.py:38)
            #     exp2: x̄ += ȳ·y·ln 2
            # qk = tl.where(rows[:, None] >= keys[None, :], qk, -1.0e6)  (flash_attention_v2.py:34)
            #     select: x̄₁ += c ? ȳ : 0, x̄₂ += c ? 0 : ȳ
            d_k_1, d_v_1 = (
                tl.dot(tl.where(mask_1, d_p * p, 0.0), q_1, d_k_1),
                tl.dot(p.to(tl.float16).to(tl.float32), d_out, d_v_1),
            )
        d_k, d_v = tl.trans(d_k_1), d_v_1
    else:
        d_k, d_v = (
            tl.full([HEAD_DIM, BLOCK_N], 0.0, tl.float32),
            tl.full([BLOCK_N, HEAD_DIM], 0.0, tl.float32),
        )
    start_1 = tl.maximum(n_1, 0)
    if start_1 < n_programs_1:
        z_2 = z.to(tl.int64)
        offset_4 = z_2 * stride_qz.to(tl.int64)
        head_2 = head.to(tl.int64)
        q_ptrs_1 = q_ptr + (offset_4 + head_2 * stride_qh.to(tl.int64))
        arange_3 = tl.arange(0, 64)
        arange_4 = arange_3[None, :]
        arange_5 = tl.broadcast_to(arange_4, [64, 64])
        d_out_ptrs_1 = d_out_ptr + (z_2 * stride_oz.to(tl.int64) + head_2 * stride_oh.to(tl.int64))
        v_base_1 = v_ptr + (z_2 * stride_vz.to(tl.int64) + head_2 * stride_vh.to(tl.int64))
        keys_3 = n + tl.arange(0, BLOCK_N)
        v_1 = tl.load(v_base_1 + keys_3[:, None] * stride_vn + arange_4).to(tl.float32)
        head_end_3 = head_end_1.to(tl.int64)
        z_end_3 = z_end_1.to(tl.int64)
        k_ptrs_2 = (
            k_ptr
            + (z_2 * stride_kz.to(tl.int64) + head_2 * stride_kh.to(tl.int64))
            + keys_3[None, :] * stride_kn
        )
        k_2 = tl.load(tl.broadcast_to(k_ptrs_2, [64, BLOCK_N]) + arange_3[:, None])
        d_k_3 = tl.trans(d_k)
        zero_1 = zero.to(tl.int32).to(tl.float32)
        d_k_4 = d_k_3 + zero_1
        d_v_3 = d_v + zero_1
        k_3 = tl.trans(k_2)
        d_k_5 = d_k_4
        d_v_4 = d_v_3
        for i_1 in range(start_1, n_programs_1):
            rows_2 = (i_1 * 64 + arange_3)[:, None]
            q_2 = tl.load(q_ptrs_1 + (rows_2 * stride_qm + arange_5))
            q_3 = q_2.to(tl.float32)
            d_out_2 = tl.load(d_out_ptrs_1 + (rows_2 * stride_om + arange_5)).to(tl.float32)
            d_out_3 = tl.trans(d_out_2)
            offset_5 = ((i_1.to(tl.int64) * head_end_3 + head_2) * z_end_3 + z_2) * 64
            handover_acc_2 = tl.broadcast_to(
                tl.load(handover_acc + offset_5 + arange_3)[None, :], [32, 64]
            )
            d_p_1 = tl.dot(v_1, d_out_3, handover_acc_2)
            p_part_1 = (
                tl.dot(k_3, tl.trans(q_2)) * qk_scale
                - tl.load(handover_log_row_sum + offset_5 + arange_3)[None, :]
            )
            p_1 = tl.exp2(p_part_1)
            d_k_5, d_v_4 = (
                tl.dot(d_p_1 * p_1, q_3, d_k_5),
                tl.dot(p_1.to(tl.float16).to(tl.float32), d_out_2, d_v_4),
            )
        d_k_2, d_v_2 = tl.trans(d_k_5), d_v_4
    else:
        d_k_2, d_v_2 = d_k, d_v
    d_k_6 = d_k_2 * 0.6931472 * qk_scale
    z_3 = z.to(tl.int64)
    offset_6 = z_3 * stride_kz.to(tl.int64)
    head_3 = head.to(tl.int64)
    d_k_base = d_k_ptr + (offset_6 + head_3 * stride_kh.to(tl.int64))
    keys_4 = n + tl.arange(0, BLOCK_N)
    d_k_ptrs = tl.broadcast_to(d_k_base + keys_4[None, :] * stride_kn, [64, BLOCK_N])
    rows_3 = tl.arange(0, 64)
    # k = tl.load(k_ptrs)  (flash_attention_v2.py:29)
    tl.store(d_k_ptrs + rows_3[:, None], d_k_6.to(tl.float16))
    d_v_base = d_v_ptr + (z_3 * stride_vz.to(tl.int64) + head_3 * stride_vh.to(tl.int64))
    d_v_ptrs = (
        tl.broadcast_to(d_v_base + keys_4[:, None] * stride_vn, [BLOCK_N, 64]) + rows_3[None, :]
    )
    # v = tl.load(v_ptrs)  (flash_attention_v2.py:43)
    tl.store(d_v_ptrs, d_v_2.to(tl.float16))


class AttentionKernel(torch.autograd.Function):
    """One launch of `attention_kernel`.

    Takes the grid and the arguments, returns what it writes: `m_ptr`, `out_ptr`. The gradients of
    `q_ptr`, `k_ptr`, `v_ptr` come from those of `out_ptr`. A gradient of `m_ptr` is an
    AssertionError.
    """

    @staticmethod
    def forward(
        ctx,
        grid,
        q_ptr,
        k_ptr,
        v_ptr,
        sm_scale,
        m_ptr,
        out_ptr,
        stride_qz,
        stride_qh,
        stride_qm,
        stride_kz,
        stride_kh,
        stride_kn,
        stride_vz,
        stride_vh,
        stride_vn,
        stride_oz,
        stride_oh,
        stride_om,
        n_heads,
        n_context,
    ):
        """Launch the kernel, and keep what the backward reads."""
        attention_kernel_fwd[grid](
            q_ptr,
            k_ptr,
            v_ptr,
            sm_scale,
            m_ptr,
            out_ptr,
            stride_qz,
            stride_qh,
            stride_qm,
            stride_kz,
            stride_kh,
            stride_kn,
            stride_vz,
            stride_vh,
            stride_vn,
            stride_oz,
            stride_oh,
            stride_om,
            n_heads,
            n_context,
            num_warps=4,
            num_stages=3,
        )
        ctx.set_materialize_grads(False)
        ctx.mark_dirty(m_ptr, out_ptr)
        ctx.save_for_backward(q_ptr, k_ptr, v_ptr, m_ptr, out_ptr)
        ctx.launch = (
            grid,
            sm_scale,
            stride_qz,
            stride_qh,
            stride_qm,
            stride_kz,
            stride_kh,
            stride_kn,
            stride_vz,
            stride_vh,
            stride_vn,
            stride_oz,
            stride_oh,
            stride_om,
            n_heads,
            n_context,
            _Layout.of(q_ptr),
            _Layout.of(k_ptr),
            _Layout.of(v_ptr),
            _Layout.of(m_ptr),
            _Layout.of(out_ptr),
        )
        return m_ptr, out_ptr

    @staticmethod
    def backward(ctx, *upstream):
        """Return the gradients, which cannot be differentiated again."""
        return _first_order("attention_kernel", AttentionKernel.gradients, ctx, upstream)

    @staticmethod
    def gradients(ctx, d_m, d_out_ptr):
        """Return the gradients of q_ptr, k_ptr, v_ptr."""
        q_ptr, k_ptr, v_ptr, m_ptr, out_ptr = ctx.saved_tensors
        (
            grid,
            sm_scale,
            stride_qz,
            stride_qh,
            stride_qm,
            stride_kz,
            stride_kh,
            stride_kn,
            stride_vz,
            stride_vh,
            stride_vn,
            stride_oz,
            stride_oh,
            stride_om,
            n_heads,
            n_context,
            like_q,
            like_k,
            like_v,
            like_m,
            like_out,
        ) = ctx.launch
        q_ptr = like_q.restored(q_ptr)
        k_ptr = like_k.restored(k_ptr)
        v_ptr = like_v.restored(v_ptr)
        m_ptr = like_m.restored(m_ptr)
        out_ptr = like_out.restored(out_ptr)
        _require(d_m is None, "a gradient of m_ptr came, for which nothing was exported")
        d_out_ptr = like_out.upstream(d_out_ptr)
        head_end = max(_remainder(program_1, n_heads) for program_1 in range(grid[1])) + 1
        z_end = max(_divided(program_1, n_heads) for program_1 in range(grid[1])) + 1
        zero = grid[0] - grid[0]
        n_iterations = max(
            max(
                -(-max(min((program_0 + 1) * 64, n_context) for program_0 in range(grid[0])) // 32),
                0,
            ),
            max(-(-max(program_0 * 64 for program_0 in range(grid[0])) // 32), 0),
        )
        n_programs = grid[0]
        handover_acc = torch.empty(
            grid[2] * grid[1] * n_programs * 64, dtype=torch.float32, device=like_q.device
        )
        handover_log_row_sum = torch.empty(
            grid[2] * grid[1] * n_programs * 64, dtype=torch.float32, device=like_q.device
        )
        d_q_ptr = like_q.empty(torch.float16)
        d_k_ptr = like_k.empty(torch.float16)
        d_v_ptr = like_v.empty(torch.float16)
        attention_kernel_bwd[grid](
            q_ptr,
            k_ptr,
            v_ptr,
            sm_scale,
            m_ptr,
            out_ptr,
            stride_qz,
            stride_qh,
            stride_qm,
            stride_kz,
            stride_kh,
            stride_kn,
            stride_vz,
            stride_vh,
            stride_vn,
            stride_oz,
            stride_oh,
            stride_om,
            n_heads,
            n_context,
            d_out_ptr,
            handover_acc,
            handover_log_row_sum,
            d_q_ptr,
            head_end,
            z_end,
            zero,
            num_warps=4,
            num_stages=3,
        )
        blocks = (n_iterations * z_end * head_end,)
        attention_kernel_bwd_interchanged0[blocks](
            q_ptr,
            k_ptr,
            v_ptr,
            sm_scale,
            stride_qz,
            stride_qh,
            stride_qm,
            stride_kz,
            stride_kh,
            stride_kn,
            stride_vz,
            stride_vh,
            stride_vn,
            stride_oz,
            stride_oh,
            stride_om,
            n_context,
            d_out_ptr,
            handover_acc,
            handover_log_row_sum,
            d_k_ptr,
            d_v_ptr,
            n_iterations,
            z_end,
            head_end,
            n_programs,
            zero,
            num_warps=4,
            num_stages=3,
        )
        return None, d_q_ptr, d_k_ptr, d_v_ptr, *[None] * 17


@functools.lru_cache(1024)
def _check_attention_kernel(
    grid,
    stride_qz,
    stride_qh,
    stride_qm,
    stride_kz,
    stride_kh,
    stride_kn,
    stride_vz,
    stride_vh,
    stride_vn,
    stride_oz,
    stride_oh,
    stride_om,
    n_heads,
    n_context,
    like_q,
    like_k,
    like_v,
    like_out,
):
    """Assert what the kernels of `attention_kernel` are for."""
    _require_whole("out_ptr", like_out)
    extents = _box(
        grid,
        lambda program_0, program_1, program_2: (
            _divided(program_1, n_heads),
            _remainder(program_1, n_heads),
            program_0,
        ),
        True,
    )
    _require_cover(
        "q_ptr",
        like_q,
        0,
        [
            _indices(stride_qz, [(1, extents[0])]),
            _indices(stride_qh, [(1, extents[1])]),
            _indices(stride_qm * 64, [(1, extents[2])]),
            _indices(stride_qm, [(1, 64)]),
            _indices(1, [(1, 64)]),
        ],
    )
    _box(
        grid,
        lambda program_0, program_1, program_2: (
            program_0,
            _divided(program_1, n_heads),
            _remainder(program_1, n_heads),
        ),
        True,
    )
    _require_cover(
        "k_ptr",
        like_k,
        0,
        [
            _indices(
                stride_kz,
                [(1, max(_divided(program_1, n_heads) for program_1 in range(grid[1])) + 1)],
            ),
            _indices(
                stride_kh,
                [(1, max(_remainder(program_1, n_heads) for program_1 in range(grid[1])) + 1)],
            ),
            _indices(
                stride_kn * 32,
                [
                    (
                        1,
                        max(
                            max(
                                -(
                                    -max(
                                        min((program_0 + 1) * 64, n_context)
                                        for program_0 in range(grid[0])
                                    )
                                    // 32
                                ),
                                0,
                            ),
                            max(-(-max(program_0 * 64 for program_0 in range(grid[0])) // 32), 0),
                        ),
                    )
                ],
            ),
            _indices(stride_kn, [(1, 32)]),
            _indices(1, [(1, 64)]),
        ],
    )
    _require_cover(
        "v_ptr",
        like_v,
        0,
        [
            _indices(
                stride_vz,
                [(1, max(_divided(program_1, n_heads) for program_1 in range(grid[1])) + 1)],
            ),
            _indices(
                stride_vh,
                [(1, max(_remainder(program_1, n_heads) for program_1 in range(grid[1])) + 1)],
            ),
            _indices(
                stride_vn * 32,
                [
                    (
                        1,
                        max(
                            max(
                                -(
                                    -max(
                                        min((program_0 + 1) * 64, n_context)
                                        for program_0 in range(grid[0])
                                    )
                                    // 32
                                ),
                                0,
                            ),
                            max(-(-max(program_0 * 64 for program_0 in range(grid[0])) // 32), 0),
                        ),
                    )
                ],
            ),
            _indices(stride_vn, [(1, 32)]),
            _indices(1, [(1, 64)]),
        ],
    )
    _require_distinct(
        "m_ptr",
        [
            _indices(n_context, [(1, grid[1])]),
            _indices(64, [(1, grid[0])]),
            _indices(1, [(1, 64)]),
            _indices(0, [(1, grid[2])]),
        ],
    )
    extents_1 = _box(
        grid,
        lambda program_0, program_1, program_2: (
            _divided(program_1, n_heads),
            _remainder(program_1, n_heads),
            program_0,
        ),
        False,
    )
    _require_distinct(
        "out_ptr",
        [
            _indices(stride_oz, [(1, extents_1[0])]),
            _indices(stride_oh, [(1, extents_1[1])]),
            _indices(stride_om * 64, [(1, extents_1[2])]),
            _indices(stride_om, [(1, 64)]),
            _indices(1, [(1, 64)]),
        ],
    )


def _launch_attention_kernel(
    grid,
    q_ptr,
    k_ptr,
    v_ptr,
    sm_scale,
    m_ptr,
    out_ptr,
    stride_qz,
    stride_qh,
    stride_qm,
    stride_qd,
    stride_kz,
    stride_kh,
    stride_kn,
    stride_kd,
    stride_vz,
    stride_vh,
    stride_vn,
    stride_vd,
    stride_oz,
    stride_oh,
    stride_om,
    stride_od,
    n_heads,
    n_context,
    HEAD_DIM=64,
    BLOCK_M=64,
    BLOCK_N=32,
    CAUSAL=True,
    EVEN=True,
    GROUP=1,
    **options,
):
    """Launch `attention_kernel`, after asserting what it was exported for."""
    grid = _three(grid, locals())
    _require_options(
        options,
        {
            "num_warps": 4,
            "num_ctas": 1,
            "num_stages": 3,
            "warp_size": 1,
            "enable_fp_fusion": False,
            "default_dot_input_precision": "ieee",
            "debug": False,
            "opt_level": 2,
        },
    )
    _require_tensor("q_ptr", q_ptr, torch.float16, "cpu", True)
    _require_tensor("k_ptr", k_ptr, torch.float16, "cpu", True)
    _require_tensor("v_ptr", v_ptr, torch.float16, "cpu", True)
    _require(type(sm_scale) is float, "sm_scale was a float")
    _require_tensor("m_ptr", m_ptr, torch.float32, "cpu", True)
    _require_tensor("out_ptr", out_ptr, torch.float16, "cpu", True)
    _require_integer("stride_qz", stride_qz, 32, 16)
    _require_integer("stride_qh", stride_qh, 32, 16)
    _require_integer("stride_qm", stride_qm, 32, 16)
    _require_integer("stride_kz", stride_kz, 32, 16)
    _require_integer("stride_kh", stride_kh, 32, 16)
    _require_integer("stride_kn", stride_kn, 32, 16)
    _require_integer("stride_vz", stride_vz, 32, 16)
    _require_integer("stride_vh", stride_vh, 32, 16)
    _require_integer("stride_vn", stride_vn, 32, 16)
    _require_integer("stride_oz", stride_oz, 32, 16)
    _require_integer("stride_oh", stride_oh, 32, 16)
    _require_integer("stride_om", stride_om, 32, 16)
    _require_integer("n_heads", n_heads, 32)
    _require_integer("n_context", n_context, 32, 16)
    _require_same("stride_qd", stride_qd, 1)
    _require_same("stride_kd", stride_kd, 1)
    _require_same("stride_vd", stride_vd, 1)
    _require_same("stride_od", stride_od, 1)
    _require_same("HEAD_DIM", HEAD_DIM, 64)
    _require_same("BLOCK_M", BLOCK_M, 64)
    _require_same("BLOCK_N", BLOCK_N, 32)
    _require_same("CAUSAL", CAUSAL, True)
    _require_same("EVEN", EVEN, True)
    _require_same("GROUP", GROUP, 1)
    _require_no_part("m_ptr", m_ptr)
    _require_no_part("out_ptr", out_ptr)
    tensors = {"q_ptr": q_ptr, "k_ptr": k_ptr, "v_ptr": v_ptr, "m_ptr": m_ptr, "out_ptr": out_ptr}
    _require_one_device(tensors, None)
    _require_meetings(tensors, ("m_ptr", "out_ptr"), ())
    _check_attention_kernel(
        grid,
        stride_qz,
        stride_qh,
        stride_qm,
        stride_kz,
        stride_kh,
        stride_kn,
        stride_vz,
        stride_vh,
        stride_vn,
        stride_oz,
        stride_oh,
        stride_om,
        n_heads,
        n_context,
        _Layout.of(q_ptr),
        _Layout.of(k_ptr),
        _Layout.of(v_ptr),
        _Layout.of(out_ptr),
    )
    AttentionKernel.apply(
        grid,
        q_ptr,
        k_ptr,
        v_ptr,
        sm_scale,
        m_ptr,
        out_ptr,
        stride_qz,
        stride_qh,
        stride_qm,
        stride_kz,
        stride_kh,
        stride_kn,
        stride_vz,
        stride_vh,
        stride_vn,
        stride_oz,
        stride_oh,
        stride_om,
        n_heads,
        n_context,
    )


def attention(q, k, v, causal, sm_scale, BLOCK_M=64, BLOCK_N=32, **options):
    """Attention over q, k, v: (batch, heads, context, head dim), of any strides.

    k and v may have fewer heads than q: so many times fewer share one.
    """
    kernel = attention_kernel
    batch, heads, context, head_dim = q.shape
    out = torch.full_like(q, float("nan"))
    m = torch.full((batch, heads, context), float("nan"), dtype=torch.float32, device=q.device)
    kernel[(triton.cdiv(context, BLOCK_M), batch * heads)](
        q, k, v, sm_scale, m, out, *q.stride(), *k.stride(), *v.stride(), *out.stride(),
        heads, context, HEAD_DIM=head_dim, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, CAUSAL=causal,
        EVEN=context % BLOCK_M == 0, GROUP=heads // k.shape[1], **options,
    )  # fmt: skip
    return out


# Assertions, memory, and sums of gradients.


_ALIGNMENT = 16
_GAPS = "programs or iterations leave gaps or repeat addresses"


def _require(condition: bool, message: str) -> None:
    """Raise an `AssertionError` unless a condition holds, even if Python skips asserts."""
    if not condition:
        raise AssertionError(message)


def _is_batch(gradient) -> bool:
    """Whether a gradient is a batch of them, by PyTorch's vmap."""
    if gradient is None:
        return False
    functorch = torch._C._functorch
    wrapped = functorch.is_functorch_wrapped_tensor(gradient)
    return wrapped or functorch.is_legacy_batchedtensor(gradient)


def _require_plain(name: str, tensor: torch.Tensor) -> None:
    """Raise for a tensor that has a tangent, or that a transform of `torch.func` has wrapped."""
    what = None
    if _is_batch(tensor):
        what = "is wrapped by a transform of torch.func, or a batch"
    elif forward_ad._current_level >= 0 and forward_ad.unpack_dual(tensor).tangent is not None:
        what = "has a tangent"
    if what is not None:
        raise AssertionError(
            f"{name} {what}: this module has first derivatives in reverse mode only. The operation "
            "or kernel that it was exported from has the others"
        )


def _require_tensor(name: str, value, dtype, device: str, aligned: bool) -> None:
    """Raise unless an argument is a plain tensor of this dtype on this device."""
    is_tensor = isinstance(value, torch.Tensor)
    if not is_tensor:
        raise AssertionError(f"{name} was a tensor, it is {value!r}")
    if value.dtype != dtype:
        raise AssertionError(f"{name} was of {dtype}, it is of {value.dtype}")
    if value.device.type != device:
        raise AssertionError(f"{name} was on {device}, it is on {value.device}")
    if value.layout is not torch.strided or value.is_neg():
        raise AssertionError(f"{name} has to hold its elements as they are: {value.layout}")
    _require_plain(name, value)
    if aligned and value.data_ptr() % 16:
        raise AssertionError(f"{name} began at a multiple of 16 bytes, not at {value.data_ptr()}")


def _leaves_behind(node):
    """Yield the leaves of autograd's graph that a node depends on."""
    seen, stack = {node}, [node]
    while stack:
        current = stack.pop()
        leaf = getattr(current, "variable", None)
        if leaf is not None:
            yield leaf
        for following, _ in current.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                stack.append(following)


class _Once(torch.autograd.Function):
    """The identity on its first input; to differentiate it is an error."""

    @staticmethod
    def forward(ctx, error, name, reason, gradient, *anchors):
        ctx.error, ctx.name, ctx.reason = error, name, reason
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx, _):
        raise ctx.error(
            f"the gradient of {ctx.name} cannot be differentiated again: {ctx.reason}. If it need "
            "not be, take this gradient without create_graph=True, or detach() it"
        )


def _refuse_second(error, name, reason, node, upstream, inputs, gradients) -> list:
    """Return `gradients`, the results of a `node`, so that to differentiate them is an `error` (a
    class), for a `reason`.

    They depend on `upstream` and on `inputs`, as far as these are known, and through `node` on
    leaves.
    """
    anchors = [t for t in (*upstream, *inputs) if t is not None and t.requires_grad]
    anchors += _leaves_behind(node)
    about = error, name, reason
    return [g if g is None else _Once.apply(*about, g.detach(), *anchors) for g in gradients]


def _first_order(kernel: str, gradients_of, ctx, upstream) -> tuple:
    """Return the gradients of a launch of a kernel, so that to differentiate them is an error."""
    for gradient in upstream:
        if gradient is not None:
            _require_plain(f"an upstream gradient of kernel {kernel!r}", gradient)
    with torch.no_grad():
        gradients = gradients_of(ctx, *upstream)
    if not torch.is_grad_enabled():
        return gradients
    reason = (
        "this module has first derivatives only; the operation or kernel that it was exported from "
        "has all"
    )
    about = RuntimeError, f"kernel {kernel!r}", reason
    return tuple(_refuse_second(*about, ctx, upstream, ctx.saved_tensors, gradients))


def _require_integer(name: str, value, bits: int, divisor: int = 1) -> None:
    """Raise unless a scalar is an integer of so many bits, and a multiple of `divisor`."""
    if type(value) is not int or not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise AssertionError(f"{name} was an integer of {bits} bits, it is {value!r}")
    if value % divisor:
        raise AssertionError(f"{name} was a multiple of {divisor}, it is {value}")


def _require_same(name: str, value, given) -> None:
    """Raise unless an argument equals the value that the kernel was compiled for."""
    if type(value) is not type(given) or value != given:
        raise AssertionError(f"{name} was {given!r}, it is {value!r}")


def _require_options(options: dict, given: dict) -> None:
    """Raise unless options of a launch are those that the kernels were compiled with."""
    for name, value in options.items():
        if name not in given:
            raise AssertionError(f"{name} is neither a parameter nor an option")
        _require_same(name, value, given[name])


def _require_no_part(name: str, tensor: torch.Tensor) -> None:
    """Raise if a tensor is a part of another one, whose other elements may change meanwhile."""
    if tensor._is_view() and tensor._base.numel() != tensor.numel():
        raise AssertionError(f"{name} was no part of another tensor, it is: clone it")


@functools.cache
def _capability_of(device: torch.device) -> tuple[int, int]:
    """Return a GPU's compute capability."""
    return torch.cuda.get_device_capability(device)


def _require_one_device(tensors: dict, capability) -> None:
    """Raise unless tensors are on one device, of this capability if it is a GPU (else None)."""
    devices = {tensor.device for tensor in tensors.values()}
    if len(devices) != 1:
        raise AssertionError(f"all tensors were on one device, they are on {devices}")
    if capability is None:
        return
    device = devices.pop()
    if device.index != torch.cuda.current_device():
        raise AssertionError(f"the tensors are on {device}, which is not the current device")
    here = _capability_of(device)
    if here != capability:
        raise AssertionError(f"the device's capability was {capability}, it is {here}")


def _extent(shape, strides) -> int:
    """Return the number of elements from the first to the last one of a strided tensor."""
    reach = 1
    for size, stride in zip(shape, strides, strict=True):
        if size == 0:
            return 0
        reach += (size - 1) * stride
    return reach


def _sum_of_bytes(tensor: torch.Tensor) -> int:
    """Return the number of bytes from the first to the last element."""
    return _extent(tensor.shape, tensor.stride()) * tensor.element_size()


def _in_one_storage(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors lie in one storage, which has memory."""
    try:
        address = one.untyped_storage().data_ptr()
        return address != 0 and address == other.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # one has none
        return False


def _require_meetings(tensors: dict, written: tuple, meetings: tuple, beside: tuple = ()) -> None:
    """Raise unless the same tensors as before share memory with a written one, at one start, and
    lie `beside` one in its storage.
    """
    ranges = [(name, t.data_ptr(), t.data_ptr() + _sum_of_bytes(t)) for name, t in tensors.items()]
    for place, (a, first, end) in enumerate(ranges):
        for b, other, other_end in ranges[place + 1 :]:
            if a in written or b in written:
                meet = first < other_end and other < end
                if meet != ((a, b) in meetings) or (meet and first != other):
                    how = "share" if meet else "shared"
                    raise AssertionError(f"{a} and {b} {how} memory: not as before")
                if not meet and (a, b) not in beside and _in_one_storage(tensors[a], tensors[b]):
                    raise AssertionError(
                        f"{a} and {b} are parts of one tensor: not as before, and the kernel may "
                        "read around them. Export a launch of such parts"
                    )


class _Span(NamedTuple):
    """A range of elements around a data pointer."""

    lead: int
    total: int

    def covering(self, first: int, last: int) -> _Span:
        """Return the span, extended to contain these elements."""
        lead = max(self.lead, -first)
        return _Span(lead, lead + max(self.total - self.lead, last + 1))

    def widened(self, margin: int) -> _Span:
        """Return the span with `margin` more elements on both sides."""
        return _Span(self.lead + margin, self.total + 2 * margin)


def _tensor_span(tensor: torch.Tensor) -> _Span:
    """Return the span of the tensor's own elements."""
    return _Span(0, _extent(tensor.shape, tensor.stride()))


def _storage_span(tensor: torch.Tensor) -> _Span:
    """Return the span of the tensor's whole storage, relative to its data pointer."""
    itemsize = tensor.element_size()
    nbytes = tensor.untyped_storage().nbytes()
    lead = tensor.storage_offset()
    # A storage may end inside an element (a view as a wider dtype); a resized one may end early.
    return _Span(lead, max(nbytes // itemsize, lead + _tensor_span(tensor).total))


def _room_for(span: _Span, dtype, device, zero: bool) -> tuple[torch.Tensor, int]:
    """Return memory that covers a span, and where its data pointer is in it, aligned."""
    padding = -span.lead % max(1, _ALIGNMENT // dtype.itemsize)
    make = torch.zeros if zero else torch.empty
    return make(span.total + padding, dtype=dtype, device=device), span.lead + padding


def _is_non_overlapping(shape, strides) -> bool:
    """Return whether no two elements are proved to share memory by the nesting of strides.

    Sufficient, not necessary: an interleaving that is distinct for another reason counts as
    overlapping, which costs an exact computation later and nothing else.
    """
    if 0 in shape:
        return True
    reach = 0
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return False
            reach += (size - 1) * stride
    return True


def _is_dense(shape, strides) -> bool:
    """Return whether elements fill the memory from first to last, each address once."""
    count = 1
    for size in shape:
        count *= size
    return _extent(shape, strides) == count and _is_non_overlapping(shape, strides)


def _allocate(shape, strides, span: _Span, dtype, device, zero: bool) -> torch.Tensor:
    """Return a tensor of `shape` and `strides` whose memory covers `span` and is aligned.

    With `zero`, all of the span is zero, not only the tensor's own elements.
    """
    tight = span.lead == 0 and span.total == _extent(shape, strides)
    if tight and not zero:
        return torch.empty_strided(shape, strides, dtype=dtype, device=device)
    if tight and _is_dense(shape, strides):
        return torch.empty_strided(shape, strides, dtype=dtype, device=device).zero_()
    flat, start = _room_for(span, dtype, device, zero)
    return flat.as_strided(shape, strides, start)


def _same_strides(shape, a, b) -> bool:
    """Return whether strides `a` and `b` address a tensor of `shape` in the same way."""
    return all(size <= 1 or s == t for size, s, t in zip(shape, a, b, strict=True))


def _fits(tensor: torch.Tensor, shape, strides, dtype) -> bool:
    """Return whether a kernel can read `tensor` with these strides, dtype and alignment."""
    return (
        tensor.dtype == dtype
        and not tensor.is_neg()
        and not tensor._is_zerotensor()
        and _same_strides(shape, tensor.stride(), strides)
        and tensor.data_ptr() % _ALIGNMENT == 0
    )


def _lay_out(upstream: torch.Tensor, shape, strides, dtype, span: _Span) -> torch.Tensor:
    """Return an upstream gradient with the addressing of its output, copied only if necessary.

    Elements of the span outside of the output tensor have gradient zero.
    """
    if upstream.layout is not torch.strided:
        upstream = upstream.to_dense()
    if upstream._is_zerotensor():
        # It has no memory.
        return _allocate(shape, strides, span, dtype, upstream.device, True)
    tight = span.lead == 0 and span.total == _extent(shape, strides)
    if tight and _is_dense(shape, strides):
        if _fits(upstream, shape, strides, dtype):
            return upstream
        return _allocate(shape, strides, span, dtype, upstream.device, False).copy_(upstream)
    return _allocate(shape, strides, span, dtype, upstream.device, True).copy_(upstream)


def _restore(tensor: torch.Tensor, strides, span: _Span) -> torch.Tensor:
    """Return what autograd saved of a tensor, with the strides that the kernel expects.

    Hooks on saved tensors may return a tensor with the same elements in another layout.
    """
    shape = tensor.shape
    if _fits(tensor, shape, strides, tensor.dtype):
        return tensor
    copy = _allocate(shape, strides, span, tensor.dtype, tensor.device, True)
    if _is_non_overlapping(shape, strides):
        return copy.copy_(tensor)
    places = torch.arange(_extent(shape, strides), device=tensor.device)
    flat = copy.as_strided(places.shape, (1,))
    flat[places.as_strided(shape, strides).reshape(-1)] = tensor.reshape(-1)
    return copy


class _Layout(NamedTuple):
    """The layout of a tensor: storage, shape, strides, dtype."""

    shape: torch.Size
    strides: tuple[int, ...]
    span: _Span
    dtype: torch.dtype
    device: torch.device

    @classmethod
    def of(cls, tensor: torch.Tensor) -> _Layout:
        """Return the layout of a tensor."""
        span = _storage_span(tensor)
        return cls(tensor.shape, tensor.stride(), span, tensor.dtype, tensor.device)

    @property
    def size(self) -> int:
        """The number of elements from the first to the last one."""
        return _extent(self.shape, self.strides)

    def empty(self, dtype: torch.dtype) -> torch.Tensor:
        """Return memory with the same layout."""
        return torch.empty_strided(self.shape, self.strides, dtype=dtype, device=self.device)

    def memory(self, dtype: torch.dtype, span: _Span, zero: bool) -> torch.Tensor:
        """Return memory with the same layout, extended to a span around the tensor."""
        return _allocate(self.shape, self.strides, span, dtype, self.device, zero)

    def zeros(self) -> torch.Tensor:
        """Return the gradient of a tensor without influence."""
        return torch.zeros(self.shape, dtype=self.dtype, device=self.device)

    def room(
        self, dtype: torch.dtype, span: _Span, zero: bool, content: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return memory that covers a span around the tensor, from its first element to the end.

        A graph may copy what a kernel writes to: it copies what it sees.
        """
        if span.lead == 0 and span.total == self.size:
            made = self.memory(dtype, span, zero)
            return made if content is None else made.copy_(content)
        flat, start = _room_for(span, dtype, self.device, zero)
        if content is not None:
            flat.as_strided(self.shape, self.strides, start).copy_(content)
        return flat[start:]

    def view_of(self, room: torch.Tensor) -> torch.Tensor:
        """Return the tensor's own elements in such memory."""
        return room if room.shape == self.shape else room.as_strided(self.shape, self.strides)

    def upstream(self, gradient: torch.Tensor | None) -> torch.Tensor:
        """Return an upstream gradient in the layout that kernels read; None is zero."""
        if gradient is None:
            return self.memory(self.dtype, self.span, True)
        return _lay_out(gradient, self.shape, self.strides, self.dtype, self.span)

    def sums(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        """Return memory for `count` partial sums of the gradient, one after the other."""
        shape, strides = (count, *self.shape), (self.size, *self.strides)
        return torch.empty_strided(shape, strides, dtype=dtype, device=self.device)

    def restored(self, kept: torch.Tensor, around: bool = False) -> torch.Tensor:
        """Return what autograd saved of a tensor in its own layout, which hooks may change.

        Raises if the kernel may read `around` it, in its storage, and a hook has kept only the
        tensor.
        """
        held, (lead, total) = _storage_span(kept), self.span
        # Something may be in front of a copy of the whole storage, so that it is aligned.
        padding = held.lead - lead
        has_surroundings = padding == held.total - total
        has_surroundings &= 0 <= padding * kept.element_size() < _ALIGNMENT
        is_alike = _same_strides(self.shape, kept.stride(), self.strides) and not kept.is_neg()
        if has_surroundings and is_alike and kept.dtype == self.dtype:
            return kept
        is_whole = self.span == _Span(0, self.size)
        _require(is_whole or not around, "a hook on saved tensors keeps what is around a tensor")
        return _restore(kept.to(self.dtype), self.strides, self.span)


def _require_whole(name: str, like: _Layout) -> None:
    """Raise unless a tensor fills its storage, with each element once."""
    if like.span != _Span(0, like.size) or not _is_dense(like.shape, like.strides):
        raise AssertionError(f"{name} was all that its storage holds, it is a part or repeats some")


def _merge(dims) -> tuple[tuple[int, int], ...]:
    """Return sorted `(extent, stride)` pairs, without extents of one, and contiguous ones merged.

    Two index spaces without repeated offsets that merge to the same pairs have the same offsets.
    """
    merged: list[tuple[int, int]] = []
    for extent, stride in sorted((d for d in dims if d[0] != 1), key=lambda d: (d[1], d[0])):
        if merged and stride == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        else:
            merged.append((extent, stride))
    return tuple(merged)


def _distinct(dims) -> bool:
    """Return whether all offsets of merged `(extent, stride)` pairs are proved to differ."""
    span = 0
    for extent, stride in dims:
        if stride <= span:
            return False
        span += (extent - 1) * stride
    return True


def _spelled(dims) -> str:
    """Describe merged `(extent, stride)` pairs in words."""
    return " by ".join(f"{extent} elements of stride {stride}" for extent, stride in dims) or "one"


def _cover(shape, strides, offset: int, dims) -> str | None:
    """Return why `Indices` from an offset on do not touch each element of a tensor once.

    None if they do.
    """
    first = offset + sum(dim.place for dim in dims)
    if first != 0:
        return f"the first element that it reaches is number {first}"
    if any(dim.count is None for dim in dims):
        return _GAPS
    if any(dim.count <= 0 for dim in dims):
        return "it reaches no element"
    reached = _merge((dim.count, dim.stride) for dim in dims)
    held = _merge(zip(shape, strides, strict=True))
    if not _distinct(reached):
        return f"it repeats addresses ({_spelled(reached)})"
    if reached != held:
        return f"it reaches {_spelled(reached)}, and the tensor is {_spelled(held)}"
    return None


def _require_cover(name: str, like: _Layout, offset: int, dims) -> None:
    """Raise unless each element of a tensor gets its gradient once."""
    objection = _cover(like.shape, like.strides, offset, dims)
    if objection is not None:
        raise AssertionError(f"the kernel reached each element of {name} once: {objection}")


def _repeat(dims) -> str | None:
    """Return why `Indices` may touch an element twice; None if they cannot."""
    pairs = []
    for stride, digits, count, _ in dims:
        # Bounds only exclude accesses.
        apart = [(extent, stride * step) for step, extent in digits]
        pairs += apart if count is None else [(count, stride)]
    if any(extent <= 0 for extent, _ in pairs) or _distinct(_merge(pairs)):
        return None
    return "it may reach an element more than once"


def _require_distinct(name: str, dims) -> None:
    """Raise unless no element is touched twice."""
    objection = _repeat(dims)
    if objection is not None:
        raise AssertionError(f"the kernel reached no element of {name} twice: {objection}")


def _box(grid, place_of, filled: bool) -> list[int]:
    """Return the extents of a box in which each program has its own position.

    Raises if two programs share one, or, with `filled`, if a position is empty.
    """
    z, y, x = (range(_extent) for _extent in reversed(grid))
    places = [place_of(i, j, k) for k in z for j in y for i in x]
    extents = [max(along) + 1 for along in zip(*places, strict=True)]
    apart = len(set(places)) == len(places) and min(map(min, places), default=0) >= 0
    if not apart or (filled and math.prod(extents) != len(places)):
        raise AssertionError(f"programs had places of their own in a box, here of {extents}")
    return extents


class _Kernel:
    """Launches a kernel with gradients: `kernel[grid](…)`."""

    def __init__(self, *launches):
        self._launches = launches

    def __getitem__(self, grid):
        return functools.partial(self._launch, grid)

    def _launch(self, grid, *args, **options):
        if len(self._launches) == 1:
            return self._launches[0](grid, *args, **options)
        objections = []
        for launch in self._launches:
            try:
                return launch(grid, *args, **options)
            except AssertionError as error:
                objections.append(str(error))
        raise AssertionError("nothing was exported for this launch: " + "; ".join(objections))


def _three(grid, arguments: dict) -> tuple[int, int, int]:
    """Return the extents of a grid along three axes."""
    grid = grid(arguments) if callable(grid) else grid
    grid = (grid,) if isinstance(grid, int) else tuple(grid)
    return (*grid, 1, 1)[:3]


def _divided(a, b):
    """Divide integers, or arrays of them, and truncate towards zero, as C does."""
    quotient = abs(a) // abs(b)
    return quotient * (1 - 2 * ((a < 0) != (b < 0)))


def _remainder(a, b):
    """Return the remainder of C's division."""
    return a - b * _divided(a, b)


class _Indices(NamedTuple):
    """An index from `place` to `place` + count - 1, and its stride.

    The count is None if the digits leave gaps or repeat values.
    """

    stride: int
    digits: list[tuple[int, int]]
    count: int | None
    place: int


def _length_of(digits) -> int | None:
    """Return the length of the range that `(step, extent)` digits add up to; zero if it is empty.

    None if it has gaps or repeated values.
    """
    length = 1
    for step, extent in sorted(digits):
        # If it is the only value, its step does not matter.
        if length != step and extent > 1 and length > 0:
            return None
        length *= max(extent, 0)
    return length


def _indices(stride, digits, bound=None, start=None) -> _Indices:
    """Return the values of a sum of `(step, extent)` digits, below a bound and from a start on.

    Digits that count down are replaced by ones that count up from the other end. If the digits are
    None, there are gaps.
    """
    if digits is None:
        return _Indices(abs(stride), [], None, 0)
    lowest = sum(s * (e - 1) for s, e in digits if s < 0 < e)
    digits = sorted((abs(s), e) for s, e in digits if e != 1)
    count, place = _length_of(digits), 0
    if count is not None:
        first = 0 if start is None else max(start - lowest, 0)
        count = (count if bound is None else min(count, bound - lowest)) - first
        place = stride * (lowest + first + (max(count - 1, 0) if stride < 0 else 0))
    return _Indices(abs(stride), digits, count, place)


attention_kernel = _Kernel(_launch_attention_kernel)
