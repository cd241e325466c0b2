"""Flash attention v2: only the forward kernel is written by hand.

The forward is the algorithm of Triton's tutorial: an online softmax in base two over blocks of
keys, with causal masking in two stages (blocks before the diagonal, then blocks on it). The
gradients of q, k and v come from ``autodiff``. Run it for a check against PyTorch; on a GPU it
runs at real sizes in half precision.
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _attend_blocks(
    acc, row_sum, row_max, q, k_base, v_base, rows, dims, qk_scale, low, high, n_context,
    stride_kn, stride_kd, stride_vn, stride_vd,
    BLOCK_N: tl.constexpr, ON_DIAGONAL: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """Online softmax over the keys [low, high)."""
    for start in range(low, high, BLOCK_N):
        start = tl.multiple_of(start, BLOCK_N)
        keys = start + tl.arange(0, BLOCK_N)
        k_ptrs = k_base + keys[None, :] * stride_kn + dims[:, None] * stride_kd
        v_ptrs = v_base + keys[:, None] * stride_vn + dims[None, :] * stride_vd
        if EVEN:
            k = tl.load(k_ptrs)
        else:
            k = tl.load(k_ptrs, mask=(keys < n_context)[None, :], other=0.0)
        qk = tl.dot(q, k) * qk_scale
        if ON_DIAGONAL:
            qk = tl.where(rows[:, None] >= keys[None, :], qk, -1.0e6)
        if not EVEN:
            qk = tl.where((keys < n_context)[None, :], qk, -1.0e6)
        new_max = tl.maximum(row_max, tl.max(qk, 1))
        p = tl.math.exp2(qk - new_max[:, None])
        alpha = tl.math.exp2(row_max - new_max)
        row_sum = row_sum * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        if EVEN:
            v = tl.load(v_ptrs)
        else:
            v = tl.load(v_ptrs, mask=(keys < n_context)[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        row_max = new_max
    return acc, row_sum, row_max


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, sm_scale, m_ptr, out_ptr,
    stride_qz, stride_qh, stride_qm, stride_qd,
    stride_kz, stride_kh, stride_kn, stride_kd,
    stride_vz, stride_vh, stride_vn, stride_vd,
    stride_oz, stride_oh, stride_om, stride_od,
    n_heads, n_context,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr, EVEN: tl.constexpr, GROUP: tl.constexpr = 1,
):  # fmt: skip
    """One block of queries of one head; stores the output and the log-sum-exp in base two.

    GROUP heads share their keys and values.
    """
    tl.static_assert(BLOCK_M % BLOCK_N == 0)
    block = tl.program_id(0)
    z = (tl.program_id(1) // n_heads).to(tl.int64)
    head = (tl.program_id(1) % n_heads).to(tl.int64)
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD_DIM)
    q_ptrs = q_ptr + z * stride_qz + head * stride_qh
    q_ptrs += rows[:, None] * stride_qm + dims[None, :] * stride_qd
    k_base = k_ptr + z * stride_kz + (head // GROUP) * stride_kh
    v_base = v_ptr + z * stride_vz + (head // GROUP) * stride_vh
    row_max = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    row_sum = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    qk_scale = sm_scale * 1.44269504  # 1 / ln 2
    if EVEN:
        q = tl.load(q_ptrs)
    else:
        q = tl.load(q_ptrs, mask=(rows < n_context)[:, None], other=0.0)
    if CAUSAL:
        acc, row_sum, row_max = _attend_blocks(
            acc, row_sum, row_max, q, k_base, v_base, rows, dims, qk_scale,
            0, block * BLOCK_M, n_context,
            stride_kn, stride_kd, stride_vn, stride_vd, BLOCK_N, False, EVEN,
        )  # fmt: skip
        acc, row_sum, row_max = _attend_blocks(
            acc, row_sum, row_max, q, k_base, v_base, rows, dims, qk_scale,
            block * BLOCK_M, min((block + 1) * BLOCK_M, n_context), n_context,
            stride_kn, stride_kd, stride_vn, stride_vd, BLOCK_N, True, EVEN,
        )  # fmt: skip
    else:
        acc, row_sum, row_max = _attend_blocks(
            acc, row_sum, row_max, q, k_base, v_base, rows, dims, qk_scale,
            0, n_context, n_context,
            stride_kn, stride_kd, stride_vn, stride_vd, BLOCK_N, False, EVEN,
        )  # fmt: skip
    acc = acc / row_sum[:, None]
    m_ptrs = m_ptr + tl.program_id(1) * n_context + rows
    out_ptrs = out_ptr + z * stride_oz + head * stride_oh
    out_ptrs += rows[:, None] * stride_om + dims[None, :] * stride_od
    if EVEN:
        tl.store(m_ptrs, row_max + tl.math.log2(row_sum))
        tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty))
    else:
        tl.store(m_ptrs, row_max + tl.math.log2(row_sum), mask=rows < n_context)
        tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=(rows < n_context)[:, None])


def attention(kernel, q, k, v, causal, sm_scale, BLOCK_M=64, BLOCK_N=32, **options):
    """Attention over q, k, v: (batch, heads, context, head dim), of any strides.

    k and v may have fewer heads than q: so many times fewer share one.
    """
    batch, heads, context, head_dim = q.shape
    out = torch.full_like(q, float("nan"))
    m = torch.full((batch, heads, context), float("nan"), dtype=torch.float32, device=q.device)
    kernel[(triton.cdiv(context, BLOCK_M), batch * heads)](
        q, k, v, sm_scale, m, out, *q.stride(), *k.stride(), *v.stride(), *out.stride(),
        heads, context, HEAD_DIM=head_dim, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, CAUSAL=causal,
        EVEN=context % BLOCK_M == 0, GROUP=heads // k.shape[1], **options,
    )  # fmt: skip
    return out


def reference(q, k, v, causal, sm_scale):
    """PyTorch's own attention, in the precision of its inputs."""
    return torch.nn.functional.scaled_dot_product_attention(
        q, k, v, is_causal=causal, scale=sm_scale, enable_gqa=q.shape[1] != k.shape[1]
    )


def gradients(op, inputs, upstream):
    """Runs ``op`` on fresh leaves and returns their gradients."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    op(*leaves).backward(upstream)
    return [x.grad for x in leaves]


def check(form, ours, theirs, truth) -> bool:
    """Prints each gradient's relative error beside PyTorch's in the same precision."""
    good = True
    for name, mine, torchs, exact in zip("qkv", ours, theirs, truth, strict=True):
        error = ((mine.double() - exact).norm() / exact.norm()).item()
        bound = ((torchs.double() - exact).norm() / exact.norm()).item()
        good &= error <= 2 * bound
        print(f"  {form:8} d{name}: relative error {error:.2e} (PyTorch {bound:.2e})")
    return good


def compare(shape, dtype, device, causal) -> bool:
    """Both forms of ``autodiff`` against PyTorch."""
    from triton_autodiff import autodiff, right_partial

    print(f"flash attention, causal={causal}, {tuple(shape)}, {dtype}, {device}")
    sm_scale = 1 / math.sqrt(shape[-1])
    inputs = [0.5 * torch.randn(shape, dtype=dtype, device=device) for _ in range(3)]
    upstream = torch.randn_like(inputs[0])
    torch_op = right_partial(reference, causal, sm_scale)
    theirs = gradients(torch_op, inputs, upstream)
    truth = gradients(torch_op, [x.double() for x in inputs], upstream.double())
    stub = right_partial(attention, causal, sm_scale)

    # Today's form: the kernel and the stub say everything.
    op = autodiff(attention_kernel, stub)
    good = check("new", gradients(op, inputs, upstream), theirs, truth)

    # The earlier form: the grid, the output's index, what the stub makes itself, a warm-up.
    grid = (triton.cdiv(shape[2], 64), shape[0] * shape[1])
    op, backward_kernel = autodiff(
        attention_kernel, stub, grid, idx_upstream=5, non_stub_args_idxs=[3, 4]
    )
    stub(backward_kernel, *inputs)
    return check("earlier", gradients(op, inputs, upstream), theirs, truth) and good


def main() -> None:
    if torch.cuda.is_available():
        shapes, device = [(2, 4, 1024, 64), (2, 4, 1024, 128)], "cuda"
    else:
        shapes, device = [(1, 2, 128, 64)], "cpu"
    results = [
        compare(shape, dtype, device, causal)
        for shape in shapes
        for dtype in (torch.float16, torch.bfloat16)
        for causal in (False, True)
    ]
    if not all(results):
        raise SystemExit("the gradients are not as close to float64 as PyTorch's")


if __name__ == "__main__":
    main()
