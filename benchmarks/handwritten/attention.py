"""FlashAttention-2's backward: delta first, then dK and dV by key block, then dQ by query block.

Query heads may share key and value heads in groups. Causal attention may be restricted to a window
of keys: loops then end at the blocks with the window's far edge, which are masked.
"""

import flash_attention_v2 as flash
import torch
import triton
import triton.language as tl
from kernels import grouped_attention as grouped
from kernels import window_attention as windowed


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
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, MASKED: tl.constexpr, window=None,
):  # fmt: skip
    for start in range(low, high, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        q_t = tl.load(q_ptr + rows[None, :] * HEAD_DIM + dims[:, None])
        m = tl.load(m_ptr + rows)
        p_t = tl.math.exp2(tl.dot(k, q_t) * scale_log2 - m[None, :])
        if MASKED:
            p_t = tl.where(rows[None, :] >= keys[:, None], p_t, 0.0)
        if window is not None:
            p_t = tl.where(rows[None, :] - keys[:, None] < window, p_t, 0.0)
        dout = tl.load(dout_ptr + rows[:, None] * HEAD_DIM + dims[None, :])
        dv = tl.dot(p_t.to(dout.dtype), dout, dv)
        delta = tl.load(delta_ptr + rows)
        dp_t = tl.dot(v, tl.trans(dout))
        ds_t = p_t * (dp_t - delta[None, :])
        dk = tl.dot(ds_t.to(q_t.dtype), tl.trans(q_t), dk)
    return dk, dv


@triton.jit
def _dkdv_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, m_ptr, delta_ptr, dk_ptr, dv_ptr, sm_scale, n_context, window,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    shared = tl.program_id(1).to(tl.int64)
    first = tl.program_id(0) * BLOCK_N
    keys = first + tl.arange(0, BLOCK_N)
    dims = tl.arange(0, HEAD_DIM)
    offsets = shared * n_context * HEAD_DIM + keys[:, None] * HEAD_DIM + dims[None, :]
    k = tl.load(k_ptr + offsets)
    v = tl.load(v_ptr + offsets)
    dk = tl.zeros((BLOCK_N, HEAD_DIM), tl.float32)
    dv = tl.zeros((BLOCK_N, HEAD_DIM), tl.float32)
    scale_log2 = sm_scale * 1.44269504
    for member in range(GROUP):
        head = shared * GROUP + member
        q_head = q_ptr + head * n_context * HEAD_DIM
        dout_head = dout_ptr + head * n_context * HEAD_DIM
        m_head = m_ptr + head * n_context
        delta_head = delta_ptr + head * n_context
        low, high = 0, n_context
        if CAUSAL:
            dk, dv = _dkdv_blocks(
                dk, dv, k, v, q_head, dout_head, m_head, delta_head, keys, dims, scale_log2,
                first, first + BLOCK_N, HEAD_DIM, BLOCK_M, True,
            )  # fmt: skip
            low = first + BLOCK_N
        if window is not None:
            # In this range, all queries see all keys of the block; later queries see some of them.
            high = min(low + (window - BLOCK_N) // BLOCK_M * BLOCK_M, n_context)
            dk, dv = _dkdv_blocks(
                dk, dv, k, v, q_head, dout_head, m_head, delta_head, keys, dims, scale_log2,
                high, min(low + window - 1, n_context), HEAD_DIM, BLOCK_M, False, window,
            )  # fmt: skip
        dk, dv = _dkdv_blocks(
            dk, dv, k, v, q_head, dout_head, m_head, delta_head, keys, dims, scale_log2,
            low, high, HEAD_DIM, BLOCK_M, False,
        )  # fmt: skip
    tl.store(dk_ptr + offsets, (dk * sm_scale).to(k.dtype))
    tl.store(dv_ptr + offsets, dv.to(v.dtype))


@triton.jit
def _dq_blocks(
    dq, q, dout, m, delta, k_ptr, v_ptr, rows, dims, scale_log2, low, high,
    HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr, MASKED: tl.constexpr, window=None,
):  # fmt: skip
    for start in range(low, high, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        offsets = keys[None, :] * HEAD_DIM + dims[:, None]
        k_t = tl.load(k_ptr + offsets)
        v_t = tl.load(v_ptr + offsets)
        p = tl.math.exp2(tl.dot(q, k_t) * scale_log2 - m[:, None])
        if MASKED:
            p = tl.where(rows[:, None] >= keys[None, :], p, 0.0)
        if window is not None:
            p = tl.where(rows[:, None] - keys[None, :] < window, p, 0.0)
        ds = p * (tl.dot(dout, v_t) - delta[:, None])
        dq = tl.dot(ds.to(k_t.dtype), tl.trans(k_t), dq)
    return dq


@triton.jit
def _dq_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, m_ptr, delta_ptr, dq_ptr, sm_scale, n_context, window,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64)
    k_ptr += head // GROUP * n_context * HEAD_DIM
    v_ptr += head // GROUP * n_context * HEAD_DIM
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
    low, high = 0, n_context
    if CAUSAL:
        dq = _dq_blocks(
            dq, q, dout, m, delta, k_ptr, v_ptr, rows, dims, scale_log2,
            first, first + BLOCK_M, HEAD_DIM, BLOCK_N, True,
        )  # fmt: skip
        high = first
    if window is not None:
        low = tl.cdiv(tl.maximum(first + BLOCK_M - window, 0), BLOCK_N) * BLOCK_N
        dq = _dq_blocks(
            dq, q, dout, m, delta, k_ptr, v_ptr, rows, dims, scale_log2,
            tl.maximum(first - window + 1, 0) // BLOCK_N * BLOCK_N, low,
            HEAD_DIM, BLOCK_N, False, window,
        )  # fmt: skip
    dq = _dq_blocks(
        dq, q, dout, m, delta, k_ptr, v_ptr, rows, dims, scale_log2, low, high,
        HEAD_DIM, BLOCK_N, False,
    )  # fmt: skip
    tl.store(dq_ptr + offsets, (dq * sm_scale).to(q.dtype))


def _tuned(kernel, tiles):
    """The kernel, autotuned over the usual configurations of two tile sizes."""
    usual = [(tile, warps, stages) for tile in tiles for warps in (4, 8) for stages in (2, 3)]
    configs = [
        triton.Config(dict(zip(("BLOCK_M", "BLOCK_N"), tile, strict=True)), w, s)
        for tile, w, s in [*usual, ((64, 64), 4, 2), ((128, 128), 8, 2)]
    ]
    key = ["n_context", "window", "HEAD_DIM", "CAUSAL", "GROUP"]
    return triton.autotune(configs, key=key)(kernel)


_tuned_dkdv_kernel = _tuned(_dkdv_kernel, [(32, 128), (64, 128)])
_tuned_dq_kernel = _tuned(_dq_kernel, [(128, 32), (128, 64)])


def attention_backward(q, k, v, out, m, upstream, causal, sm_scale, tuned=True, window=None):
    """Gradients of q, k and v: contiguous (batch, heads, context, head dim), context % 128 == 0.

    ``m`` is the log-sum-exp in base two that the forward stored. If there is a ``window``, it is as
    long as a block at least.
    """
    assert window is None or (causal and window >= 128)
    batch, heads, context, head_dim = q.shape
    shared = k.shape[1]
    delta = torch.empty((batch, heads, context), dtype=torch.float32, device=q.device)
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    _delta_kernel[(batch * heads * context // 128,)](
        out, upstream, delta, HEAD_DIM=head_dim, BLOCK=128
    )
    common = {"HEAD_DIM": head_dim, "CAUSAL": causal, "GROUP": heads // shared}
    by_keys, by_queries = {}, {}
    if not tuned:
        common |= {"num_warps": 4 if head_dim <= 64 else 8, "num_stages": 3}
        by_keys, by_queries = {"BLOCK_M": 32, "BLOCK_N": 128}, {"BLOCK_M": 128, "BLOCK_N": 32}
    kernel = _tuned_dkdv_kernel if tuned else _dkdv_kernel
    kernel[lambda meta: (context // meta["BLOCK_N"], batch * shared)](
        q, k, v, upstream, m, delta, dk, dv, sm_scale, context, window, **by_keys, **common
    )
    kernel = _tuned_dq_kernel if tuned else _dq_kernel
    kernel[lambda meta: (context // meta["BLOCK_M"], batch * heads)](
        q, k, v, upstream, m, delta, dq, sm_scale, context, window, **by_queries, **common
    )
    return dq, dk, dv


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, causal, sm_scale, tuned, window):
        batch, heads, context, dim = q.shape
        out, m = torch.empty_like(q), torch.empty(q.shape[:3], device=q.device)
        tiles = {"BLOCK_M": 64, "BLOCK_N": 64, "EVEN": True, "num_warps": 4}
        grid = (context // 64, batch * heads)
        if window is not None:
            windowed.window_attention_kernel[grid](
                q, k, v, m, out, sm_scale, context, window, HEAD_DIM=dim, **tiles
            )
        elif k.shape[1] == heads:
            flash.attention_kernel[grid](
                q, k, v, sm_scale, m, out, *q.stride(), *k.stride(), *v.stride(), *out.stride(),
                heads, context, HEAD_DIM=dim, CAUSAL=causal, **tiles,
            )  # fmt: skip
        else:
            grouped.grouped_attention_kernel[grid](
                q, k, v, sm_scale, m, out, heads, k.shape[1], context, HEAD_DIM=dim, **tiles
            )
        ctx.save_for_backward(q, k, v, out, m)
        ctx.options = (causal, sm_scale, tuned, window)
        return out

    @staticmethod
    def backward(ctx, upstream):
        gradients = attention_backward(*ctx.saved_tensors, upstream, *ctx.options)
        return *gradients, *(None for _ in ctx.options)


def attention(q, k, v, causal, sm_scale, tuned=True, window=None):
    """Attention with the backward above; see ``attention_backward`` for what it takes."""
    return _Attention.apply(q, k, v, causal, sm_scale, tuned, window)
