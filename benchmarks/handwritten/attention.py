"""FlashAttention-2's backward: delta first, then dK and dV by key block, then dQ by query block."""

import torch
import triton
import triton.language as tl


@triton.jit
def _delta_kernel(out_ptr, dout_ptr, delta_ptr, HEAD_DIM: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    offsets = rows[:, None] * HEAD_DIM + tl.arange(0, HEAD_DIM)[None, :]
    out = tl.load(out_ptr + offsets).to(tl.float32)
    dout = tl.load(dout_ptr + offsets).to(tl.float32)
    tl.store(delta_ptr + rows, tl.sum(out * dout, axis=1))


@triton.jit
def _dkdv_blocks(
    dk, dv, k, v, q_ptr, dout_ptr, m_ptr, delta_ptr, keys, dims, scale_log2, low, high,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    for start in range(low, high, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        q_t = tl.load(q_ptr + rows[None, :] * HEAD_DIM + dims[:, None])
        m = tl.load(m_ptr + rows)
        p_t = tl.math.exp2(tl.dot(k, q_t) * scale_log2 - m[None, :])
        if MASKED:
            p_t = tl.where(rows[None, :] >= keys[:, None], p_t, 0.0)
        dout = tl.load(dout_ptr + rows[:, None] * HEAD_DIM + dims[None, :])
        dv = tl.dot(p_t.to(dout.dtype), dout, dv)
        delta = tl.load(delta_ptr + rows)
        dp_t = tl.dot(v, tl.trans(dout))
        ds_t = p_t * (dp_t - delta[None, :])
        dk = tl.dot(ds_t.to(q_t.dtype), tl.trans(q_t), dk)
    return dk, dv


@triton.jit
def _dkdv_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, m_ptr, delta_ptr, dk_ptr, dv_ptr, sm_scale, n_context,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64)
    q_ptr += head * n_context * HEAD_DIM
    dout_ptr += head * n_context * HEAD_DIM
    m_ptr += head * n_context
    delta_ptr += head * n_context
    first = tl.program_id(0) * BLOCK_N
    keys = first + tl.arange(0, BLOCK_N)
    dims = tl.arange(0, HEAD_DIM)
    offsets = head * n_context * HEAD_DIM + keys[:, None] * HEAD_DIM + dims[None, :]
    k = tl.load(k_ptr + offsets)
    v = tl.load(v_ptr + offsets)
    dk = tl.zeros((BLOCK_N, HEAD_DIM), tl.float32)
    dv = tl.zeros((BLOCK_N, HEAD_DIM), tl.float32)
    scale_log2 = sm_scale * 1.44269504
    low = 0
    if CAUSAL:
        dk, dv = _dkdv_blocks(
            dk, dv, k, v, q_ptr, dout_ptr, m_ptr, delta_ptr, keys, dims, scale_log2,
            first, first + BLOCK_N, HEAD_DIM, BLOCK_M, True,
        )  # fmt: skip
        low = first + BLOCK_N
    dk, dv = _dkdv_blocks(
        dk, dv, k, v, q_ptr, dout_ptr, m_ptr, delta_ptr, keys, dims, scale_log2,
        low, n_context, HEAD_DIM, BLOCK_M, False,
    )  # fmt: skip
    tl.store(dk_ptr + offsets, (dk * sm_scale).to(k.dtype))
    tl.store(dv_ptr + offsets, dv.to(v.dtype))


@triton.jit
def _dq_blocks(
    dq, q, dout, m, delta, k_ptr, v_ptr, rows, dims, scale_log2, low, high,
    HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    for start in range(low, high, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        offsets = keys[None, :] * HEAD_DIM + dims[:, None]
        k_t = tl.load(k_ptr + offsets)
        v_t = tl.load(v_ptr + offsets)
        p = tl.math.exp2(tl.dot(q, k_t) * scale_log2 - m[:, None])
        if MASKED:
            p = tl.where(rows[:, None] >= keys[None, :], p, 0.0)
        ds = p * (tl.dot(dout, v_t) - delta[:, None])
        dq = tl.dot(ds.to(k_t.dtype), tl.trans(k_t), dq)
    return dq


@triton.jit
def _dq_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, m_ptr, delta_ptr, dq_ptr, sm_scale, n_context,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64)
    k_ptr += head * n_context * HEAD_DIM
    v_ptr += head * n_context * HEAD_DIM
    first = tl.program_id(0) * BLOCK_M
    rows = first + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD_DIM)
    offsets = head * n_context * HEAD_DIM + rows[:, None] * HEAD_DIM + dims[None, :]
    q = tl.load(q_ptr + offsets)
    dout = tl.load(dout_ptr + offsets)
    m = tl.load(m_ptr + head * n_context + rows)
    delta = tl.load(delta_ptr + head * n_context + rows)
    dq = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    scale_log2 = sm_scale * 1.44269504
    high = n_context
    if CAUSAL:
        dq = _dq_blocks(
            dq, q, dout, m, delta, k_ptr, v_ptr, rows, dims, scale_log2,
            first, first + BLOCK_M, HEAD_DIM, BLOCK_N, True,
        )  # fmt: skip
        high = first
    dq = _dq_blocks(
        dq, q, dout, m, delta, k_ptr, v_ptr, rows, dims, scale_log2, 0, high,
        HEAD_DIM, BLOCK_N, False,
    )  # fmt: skip
    tl.store(dq_ptr + offsets, (dq * sm_scale).to(q.dtype))


def attention_backward(q, k, v, out, m, upstream, causal, sm_scale):
    """Gradients of q, k and v: contiguous (batch, heads, context, head dim), context % 128 == 0.

    ``m`` is the log-sum-exp in base two that the forward stored.
    """
    batch, heads, context, head_dim = q.shape
    delta = torch.empty((batch, heads, context), dtype=torch.float32, device=q.device)
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    _delta_kernel[(batch * heads * context // 128,)](
        out, upstream, delta, HEAD_DIM=head_dim, BLOCK=128
    )
    options = {"num_warps": 4 if head_dim <= 64 else 8, "num_stages": 3}
    common = {"HEAD_DIM": head_dim, "CAUSAL": causal, **options}
    _dkdv_kernel[(context // 128, batch * heads)](
        q, k, v, upstream, m, delta, dk, dv, sm_scale, context, BLOCK_M=32, BLOCK_N=128, **common
    )
    _dq_kernel[(context // 128, batch * heads)](
        q, k, v, upstream, m, delta, dq, sm_scale, context, BLOCK_M=128, BLOCK_N=32, **common
    )
    return dq, dk, dv
