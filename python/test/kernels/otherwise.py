"""The same sums, written in several ways: other orders of arguments, loops and directions."""

import torch
import triton
import triton.language as tl


@triton.jit
def product_xwu_kernel(x, w, u, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """y = x w[column] u[row]. The other kernels have other orders of x, w and u."""
    _product(x, w, u, y, M, N, BM, BN)


@triton.jit
def product_xuw_kernel(x, u, w, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    _product(x, w, u, y, M, N, BM, BN)


@triton.jit
def product_wux_kernel(w, u, x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    _product(x, w, u, y, M, N, BM, BN)


@triton.jit
def product_uwx_kernel(u, w, x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    _product(x, w, u, y, M, N, BM, BN)


@triton.jit
def _product(x, w, u, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (r[:, None] < M) & (c[None, :] < N)
    value = tl.load(x + r[:, None] * N + c[None, :], mask=mask, other=0.0)
    value *= tl.load(w + c, mask=c < N, other=0.0)[None, :]
    value *= tl.load(u + r, mask=r < M, other=0.0)[:, None]
    tl.store(y + r[:, None] * N + c[None, :], value, mask=mask)


PRODUCTS = {
    "xwu": product_xwu_kernel,
    "xuw": product_xuw_kernel,
    "wux": product_wux_kernel,
    "uwx": product_uwx_kernel,
}


def product_in(order):
    """A stub whose tensors are x, w and u, for the kernel whose arguments are in this order."""

    def stub(kernel, x, w, u):
        y = torch.empty_like(x)
        M, N = x.shape
        given = {"x": x, "w": w, "u": u}
        grid = (triton.cdiv(M, 4), triton.cdiv(N, 64))
        kernel[grid](*(given[name] for name in order), y, M, N, BM=4, BN=64)
        return y

    return stub


def product_reference(x, w, u):
    return x * w * u[:, None]


@triton.jit
def weighted_kernel(x, w, y, A, B, HOW: tl.constexpr, BN: tl.constexpr):
    """Σ x w over A·B elements of a row, in loops of several forms."""
    r = tl.program_id(0)
    lanes = tl.arange(0, BN)
    x += r * A * B
    acc = tl.zeros((BN,), x.dtype.element_ty)
    if HOW == "one":
        for t in range(0, A * B, BN):
            i = t + lanes
            acc += _term(x + i, w + i, i < A * B)
    if HOW == "split":
        for a in range(A):
            for t in range(0, B, BN):
                acc += _term(x + a * B + t + lanes, w + a * B + t + lanes, t + lanes < B)
    if HOW == "split twice":
        for a in range(A // 2):
            for b in range(2):
                for t in range(0, B, BN):
                    i = (a * 2 + b) * B + t + lanes
                    acc += _term(x + i, w + i, t + lanes < B)
    if HOW == "exchanged":
        for t in range(0, B, BN):
            for a in range(A):
                acc += _term(x + a * B + t + lanes, w + a * B + t + lanes, t + lanes < B)
    if HOW == "down":
        for t in range((tl.cdiv(A * B, BN) - 1) * BN, -1, -BN):
            i = t + lanes
            acc += _term(x + i, w + i, i < A * B)
    if HOW == "shared by rows":
        for a in range(A):
            for t in range(0, B, BN):
                acc += _term(x + a * B + t + lanes, w + t + lanes, t + lanes < B)
    if HOW == "shared by rows, exchanged":
        for t in range(0, B, BN):
            for a in range(A):
                acc += _term(x + a * B + t + lanes, w + t + lanes, t + lanes < B)
    if HOW == "triangle":
        for a in range(tl.minimum(r + 1, A)):
            for t in range(0, B, BN):
                acc += _term(x + a * B + t + lanes, w + a * B + t + lanes, t + lanes < B)
    tl.store(y + r, tl.sum(acc))


@triton.jit
def _term(x, w, mask):
    return tl.load(x, mask=mask, other=0.0) * tl.exp(tl.load(w, mask=mask, other=0.0))


def weighted(kernel, x, w, how):
    y = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    kernel[(x.shape[0],)](x, w, y, x.shape[1], x.shape[2], how, BN=16)
    return y


def weighted_reference(x, w, how):
    terms = x * w.exp()
    if how == "triangle":
        rows, parts = (torch.arange(n, device=x.device) for n in x.shape[:2])
        terms = terms * (parts <= rows[:, None])[:, :, None]
    # Lanes beyond the end have no elements.
    return terms.sum((1, 2))


@triton.jit
def softmax_kernel(x, y, N, FIRST: tl.constexpr, SECOND: tl.constexpr, B: tl.constexpr):
    """A softmax in two passes over a row, each of which goes up or down."""
    x += tl.program_id(0) * N
    y += tl.program_id(0) * N
    m = tl.full([B], float("-inf"), x.dtype.element_ty)
    z = tl.zeros([B], x.dtype.element_ty)
    last = (tl.cdiv(N, B) - 1) * B
    for start in range(0, N, B):
        i = (last - start if FIRST == "down" else start) + tl.arange(0, B)
        v = tl.load(x + i, mask=i < N, other=float("-inf"))
        new = tl.maximum(m, v)
        z = tl.where(new == float("-inf"), z, z * tl.exp(m - new) + tl.exp(v - new))
        m = new
    top = tl.max(m, 0)
    z = tl.sum(tl.exp(m - top) * z, 0)
    if SECOND == "by number":
        for j in range(tl.cdiv(N, B) - 1, -1, -1):
            _normalize(x, y, j * B + tl.arange(0, B), top, z, N)
    elif SECOND == "negative step":
        for start in range(last, -1, -B):
            _normalize(x, y, start + tl.arange(0, B), top, z, N)
    else:
        for start in range(0, N, B):
            begin = last - start if SECOND == "down" else start
            _normalize(x, y, begin + tl.arange(0, B), top, z, N)


@triton.jit
def _normalize(x, y, i, top, z, N):
    v = tl.load(x + i, mask=i < N, other=float("-inf"))
    tl.store(y + i, tl.exp(v - top) / z, mask=i < N)


def softmax(kernel, x, first, second):
    y = torch.empty_like(x)
    kernel[(x.shape[0],)](x, y, x.shape[1], first, second, B=32)
    return y


def softmax_reference(x, first, second):
    return x.softmax(1)


@triton.jit
def taps_kernel(
    x, w, y, T, C: tl.constexpr, OUT: tl.constexpr, K, STEP: tl.constexpr, HOW: tl.constexpr,
    B: tl.constexpr, BC: tl.constexpr, BO: tl.constexpr,
):  # fmt: skip
    """A convolution as products: the taps behind a position, before it, or around it."""
    t = tl.program_id(0) * B + tl.arange(0, B)
    x += tl.program_id(1) * T * C
    o = tl.program_id(2) * BO + tl.arange(0, BO)
    acc = tl.zeros((B, BO), x.dtype.element_ty)
    if HOW == "channels first":
        for c in range(0, C, BC):
            for k in range(K):
                acc += _tap(x, w, t - k * STEP, k, c, o, T, C, OUT, BC)
    elif HOW == "ahead":
        for k in range(K):
            for c in range(0, C, BC):
                acc += _tap(x, w, t + k * STEP, k, c, o, T, C, OUT, BC)
    elif HOW == "around":
        for k in range(K):
            for c in range(0, C, BC):
                acc += _tap(x, w, t + (k - 1) * STEP, k, c, o, T, C, OUT, BC)
    else:
        for k in range(K):
            for c in range(0, C, BC):
                acc += _tap(x, w, t - k * STEP, k, c, o, T, C, OUT, BC)
    mask = (t < T)[:, None]
    tl.store(y + tl.program_id(1) * T * OUT + t[:, None] * OUT + o[None, :], acc, mask=mask)


@triton.jit
def _tap(x, w, s, k, c, o, T, C: tl.constexpr, OUT: tl.constexpr, BC: tl.constexpr):
    lanes = c + tl.arange(0, BC)
    mask = ((s >= 0) & (s < T))[:, None]
    a = tl.load(x + s[:, None] * C + lanes[None, :], mask=mask, other=0.0)
    b = tl.load(w + k * C * OUT + lanes[:, None] * OUT + o[None, :])
    return tl.dot(a, b, input_precision="ieee", out_dtype=x.dtype.element_ty)


def taps(kernel, x, w, step, how):
    y = torch.empty((*x.shape[:2], w.shape[2]), dtype=x.dtype, device=x.device)
    K, C, OUT = w.shape
    # Blocks of outputs share x.
    BO = 16 if how == "blocks" else OUT
    grid = (triton.cdiv(x.shape[1], 16), x.shape[0], OUT // BO)
    kernel[grid](x, w, y, x.shape[1], C, OUT, K, step, how, B=16, BC=16, BO=BO)
    return y


def taps_reference(x, w, step, how):
    length, total = x.shape[1], 0
    for k in range(w.shape[0]):
        far = {"ahead": k * step, "around": (k - 1) * step}.get(how, -k * step)
        pad = max(length, abs(far))
        moved = torch.nn.functional.pad(x, (0, 0, pad, pad))[:, pad + far : pad + far + length]
        total = total + moved @ w[k]
    return total + 0 * x.sum()


@triton.jit
def image_kernel(x, w, y, H, W, KH, KW, B: tl.constexpr):
    """Taps along two axes of a tile, without products."""
    h = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), x.dtype.element_ty)
    for i in range(KH):
        for j in range(KW):
            rows = (h >= i) & (h < H)
            columns = (v >= j) & (v < W)
            mask = rows[:, None] & columns[None, :]
            a = tl.load(x + (h - i)[:, None] * W + (v - j)[None, :], mask=mask, other=0.0)
            acc += a * a * tl.load(w + i * KW + j)
    tl.store(y + h[:, None] * W + v[None, :], acc, mask=(h < H)[:, None] & (v < W)[None, :])


def image(kernel, x, w):
    y = torch.empty_like(x)
    H, W = x.shape
    kernel[(triton.cdiv(H, 8), triton.cdiv(W, 8))](x, w, y, H, W, *w.shape, B=8)
    return y


def image_reference(x, w):
    H, W = x.shape
    pad = torch.nn.functional.pad
    return sum(
        pad(x, (j, 0, i, 0))[:H, :W] ** 2 * w[i, j]
        for i in range(w.shape[0])
        for j in range(w.shape[1])
    )


@triton.jit
def repeated_kernel(x, w, y, A, SHARED: tl.constexpr, B: tl.constexpr):
    """A loop whose iterations all load the same elements of w: a row of the program's, or one."""
    r = tl.program_id(0)
    c = tl.arange(0, B)
    for i in range(A):
        at = (r * A + i) * B + c
        scale = tl.exp(tl.load(w + (c if SHARED else r * B + c)))
        tl.store(y + at, tl.load(x + at) * scale)


def repeated(kernel, x, w, shared):
    y = torch.empty_like(x)
    kernel[(x.shape[0],)](x, w, y, x.shape[1], shared, B=x.shape[2])
    return y


def repeated_reference(x, w, shared):
    return x * w.exp().reshape(-1, 1, x.shape[2])


@triton.jit
def scalars_kernel(x, a, b, y, n, C, B: tl.constexpr):
    """One factor of all programs, one of every C-th, and few elements of each beside many."""
    p = tl.program_id(0)
    i = tl.arange(0, B)
    value = tl.load(x + p * n + i, mask=i < n, other=0.0)
    value = value * tl.load(a) + value * value * tl.load(b + p % C)
    tl.store(y + p * n + i, value, mask=i < n)


def scalars(kernel, x, a, b):
    y = torch.empty_like(x)
    kernel[(x.shape[0],)](x, a, b, y, x.shape[1], b.numel(), B=64)
    return y


def scalars_reference(x, a, b):
    programs = torch.arange(x.shape[0], device=x.device)
    return x * a + x * x * b[programs % b.numel()][:, None]


@triton.jit
def nested_taps_kernel(x, w, y, T, X, K, AHEAD: tl.constexpr, B: tl.constexpr):
    """Taps in a loop that programs run to different ends. There may be more elements than
    positions, or nothing that says where they end.
    """
    t = tl.program_id(0) * B + tl.arange(0, B)
    p = tl.program_id(1)
    acc = tl.zeros((B,), x.dtype.element_ty)
    for i in range(p):
        for k in range(K):
            if AHEAD:
                a = tl.load(x + i * X + t + k, mask=t + k < X, other=0.0)
            else:
                a = tl.load(x + i * X + t - k - 2, mask=t >= k + 2, other=0.0)
            acc += a * a * tl.load(w + k)
    tl.store(y + p * T + t, acc, mask=t < T)


def nested_taps(kernel, x, w, length, ahead):
    programs, size = x.shape[0] + 1, x.shape[1]
    y = torch.empty(programs, length, dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(length, 16), programs)](x, w, y, length, size, w.numel(), ahead, B=16)
    return y


def nested_taps_reference(x, w, length, ahead):
    def row(v):
        far = [k if ahead else -k - 2 for k in range(w.numel())]
        padded = torch.nn.functional.pad(v, (length, length))
        parts = (padded[length + f :][:length] ** 2 * w[k] for k, f in enumerate(far))
        return sum(parts)

    rows = torch.stack([torch.zeros_like(row(x[0])), *map(row, x)])
    return rows.cumsum(0)
