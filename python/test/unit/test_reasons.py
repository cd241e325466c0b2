"""A reason is true: without what it names, the schedule is another one.

Each kernel is one of those whose gradients meet in atomics, or do not take a schedule that others
take. `REMOVED` leaves out what the compiler's remark names.
"""

import re

import gradients
import pytest
import torch
import triton
import triton.language as tl
from triton.backends.autodiff import AutodiffError, differentiable


@pytest.fixture(autouse=True)
def needs_gradients(device):
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing is derived in the forward pass")
    with torch.device(device):
        yield


@triton.jit
def edge_kernel(x_ptr, y_ptr, n, REMOVED: tl.constexpr, B: tl.constexpr):
    """Neighbours, where the first element is its own."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    if REMOVED:
        a = tl.load(x_ptr + i - 1, mask=(i < n) & (i > 0), other=0.0)
    else:
        a = tl.load(x_ptr + tl.maximum(i - 1, 0), mask=i < n, other=0.0)
    b = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, a * b, mask=i < n)


@triton.jit
def partner_kernel(x_ptr, y_ptr, n, REMOVED: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    a = tl.load(x_ptr + (i if REMOVED else i ^ 1), mask=i < n, other=0.0)
    tl.store(y_ptr + i, a * a, mask=i < n)


@triton.jit
def offset_kernel(x_ptr, w_ptr, y_ptr, n, REMOVED: tl.constexpr, B: tl.constexpr):
    """A number for each pair of rows, from the second one on."""
    r = tl.program_id(0)
    c = tl.arange(0, B)
    w = tl.load(w_ptr + (r // 2 if REMOVED else r // 2 + 1))
    x = tl.load(x_ptr + r * n + c, mask=c < n, other=0.0)
    tl.store(y_ptr + r * n + c, x * w, mask=c < n)


@triton.jit
def early_kernel(x_ptr, w_ptr, y_ptr, lens, M, N, REMOVED: tl.constexpr, B: tl.constexpr):
    """Rows beyond a length are left out."""
    b = tl.program_id(0)
    r = tl.program_id(1)
    if not REMOVED:
        if r >= tl.load(lens + b):
            return
    i = tl.arange(0, B)
    x = tl.load(x_ptr + (b * M + r) * N + i, mask=i < N, other=0.0)
    w = tl.load(w_ptr + i, mask=i < N, other=0.0)
    tl.store(y_ptr + (b * M + r) * N + i, x * x * w, mask=i < N)


@triton.jit
def decay_kernel(x_ptr, a_ptr, y_ptr, T, N, REMOVED: tl.constexpr, B: tl.constexpr):
    """A number of each step, which blocks of channels share."""
    b = tl.program_id(1)
    i = tl.program_id(0) * B + tl.arange(0, B)
    h = tl.zeros([B], tl.float32)
    for t in range(T):
        x = tl.load(x_ptr + (b * T + t) * N + i, mask=i < N, other=0.0)
        a = tl.load(a_ptr + b * T + t)
        h = x * a if REMOVED else h * a + x
        tl.store(y_ptr + (b * T + t) * N + i, h, mask=i < N)


@triton.jit
def best_kernel(x_ptr, y_ptr, N, REMOVED: tl.constexpr, B: tl.constexpr):
    """The largest element, loaded again where it is."""
    r = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x_ptr + r * N + i, mask=i < N, other=-float("inf"))
    best = tl.max(v, 0) if REMOVED else tl.load(x_ptr + r * N + tl.argmax(v, 0))
    tl.store(y_ptr + r, best)


@triton.jit
def label_kernel(x_ptr, t_ptr, y_ptr, N, REMOVED: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < N
    at = i * 50
    if not REMOVED:
        at += tl.load(t_ptr + i, mask=m, other=0)
    tl.store(y_ptr + i, -tl.load(x_ptr + at, mask=m, other=0.0), mask=m)


@triton.jit
def attention_kernel(
    Q, K, V, Out, M0, L0, A, N, REMOVED: tl.constexpr, B: tl.constexpr, D: tl.constexpr
):
    """The log-sum-exp is carried, and begins with what memory holds."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    d = tl.arange(0, D)
    q = tl.load(Q + i[:, None] * D + d[None, :])
    if REMOVED:
        m = tl.full([B], -float("inf"), tl.float32)
        lse = m
        acc = tl.zeros([B, D], tl.float32)
    else:
        m = tl.load(M0 + i)
        lse = tl.load(L0 + i)
        acc = tl.load(A + i[:, None] * D + d[None, :])
    for s in range(0, N, B):
        j = s + tl.arange(0, B)
        k = tl.load(K + j[:, None] * D + d[None, :])
        v = tl.load(V + j[:, None] * D + d[None, :])
        qk = tl.dot(q, tl.trans(k))
        new = tl.maximum(m, tl.max(qk, 1))
        p = tl.exp(qk - new[:, None])
        acc = acc * tl.exp(m - new)[:, None] + tl.dot(p, v)
        lse = new + tl.log(tl.exp(lse - new) + tl.sum(p, 1))
        m = new
    tl.store(Out + i[:, None] * D + d[None, :], acc * tl.exp(m - lse)[:, None])


@triton.jit
def wrapped_kernel(X, W, Out, M, K, REMOVED: tl.constexpr, B: tl.constexpr):
    """Rows modulo their number, which no mask of the store leaves out."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    row = i if REMOVED else i % M
    n = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros([B, B], tl.float32)
    for s in range(0, K, B):
        k = s + tl.arange(0, B)
        x = tl.load(X + row[:, None] * K + k[None, :])
        w = tl.load(W + k[:, None] * 32 + n[None, :])
        acc += tl.dot(x, w)
    tl.store(Out + i[:, None] * 32 + n[None, :], acc)


@triton.jit
def last_kernel(a_ptr, y_ptr, N, REMOVED: tl.constexpr, B: tl.constexpr):
    """The last element beside the row, whose iterations have an order."""
    r = tl.program_id(0)
    acc = tl.zeros([B], tl.float32)
    for s in range(0, N, B):
        i = s + tl.arange(0, B)
        v = tl.load(a_ptr + r * N + i, mask=i < N, other=0.0)
        acc = acc + v * v if REMOVED else tl.sin(acc) + v
    if not REMOVED:
        acc += tl.load(a_ptr + r * N + N - 1)
    tl.store(y_ptr + r, tl.sum(acc, 0))


@triton.jit
def picked_kernel(a_ptr, t_ptr, y_ptr, N, REMOVED: tl.constexpr, B: tl.constexpr):
    """An element at an index from memory, of rows that two loads take."""
    r = tl.program_id(0)
    i = tl.arange(0, B)
    picked = tl.load(a_ptr + r * N + tl.load(t_ptr + r))
    v = tl.load(a_ptr + r * N + i, mask=i < N, other=0.0)
    if not REMOVED:
        v *= tl.load(a_ptr + r * N + i, mask=i < N - 1, other=0.0)
    tl.store(y_ptr + r, tl.sum(tl.where(i < N, tl.exp(picked - v), 0.0), 0))


@triton.jit
def divided_kernel(x_ptr, y_ptr, sh, sm, REMOVED: tl.constexpr, N: tl.constexpr):
    """Rows of what lanes and programs are together, divided."""
    i = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x_ptr + (i if REMOVED else (i * sh) // sm))
    tl.store(y_ptr + i, v * v)


@triton.jit
def recurrence_kernel(x_ptr, y_ptr, N, REMOVED: tl.constexpr):
    """A row of a program's own, whose elements two iterations read."""
    p = tl.program_id(0)
    a = tl.load(x_ptr + p * N)
    tl.store(y_ptr + p * N, a)
    for t in range(1, N):
        x = tl.load(x_ptr + p * N + t)
        a = x + 0.6 * a if REMOVED else x + 0.5 * tl.load(x_ptr + p * N + t - 1) + 0.6 * a
        tl.store(y_ptr + p * N + t, a)


@triton.jit
def jagged_kernel(w_ptr, x_ptr, off, y_ptr, N, REMOVED: tl.constexpr, B: tl.constexpr):
    """A weight for pairs, which sequences share; their lengths come from memory."""
    b = tl.program_id(0)
    m = tl.arange(0, B)
    s = tl.load(off + b)
    n = B if REMOVED else tl.load(off + b + 1) - s
    acc = tl.zeros((B,), tl.float32)
    for t in range(0, N, B):
        j = t + tl.arange(0, B)
        w = tl.load(w_ptr + m[:, None] * N + j[None, :], mask=(m < n)[:, None], other=0.0)
        acc += tl.sum(w * tl.load(x_ptr + b * N + j)[None, :], 1)
    tl.store(y_ptr + b * B + m, acc)


@triton.jit
def block_kernel(a_ptr, b_ptr, c_ptr, REMOVED: tl.constexpr, B: tl.constexpr):
    """A product whose loop has one iteration, or two."""
    m = tl.program_id(0) * B + tl.arange(0, B)
    n = tl.program_id(1) * B + tl.arange(0, B)
    j = tl.arange(0, 16)
    acc = tl.zeros((B, B), tl.float32)
    for s in range(0, 32 if REMOVED else 16, 16):
        a = tl.load(a_ptr + m[:, None] * 32 + s + j[None, :])
        acc += tl.dot(a, tl.load(b_ptr + n[None, :] * 32 + s + j[:, None]))
    tl.store(c_ptr + m[:, None] * 64 + n[None, :], acc)


def _grad(*shape):
    return torch.rand(shape, requires_grad=True)


def _index(*numbers):
    return torch.tensor(numbers, dtype=torch.int32)


# A kernel, its grid, arguments and constants; whose gradient, and what a remark says of it.
CASES = [
    (edge_kernel, (2,), lambda: (_grad(100), torch.empty(100), 100), {"B": 64}, "x_ptr",
     "gather-windows .* `arith.maxsi` at"),
    (partner_kernel, (2,), lambda: (_grad(100), torch.empty(100), 100), {"B": 64}, "x_ptr",
     "plain-stores .* `arith.xori` at"),
    (offset_kernel, (6,), lambda: (_grad(6, 8), _grad(4)[:3], torch.empty(6, 8), 8), {"B": 8},
     "w_ptr", "the first element that it reaches is number 1"),
    (early_kernel, (4, 7),
     lambda: (_grad(4, 7, 20), _grad(20), torch.empty(4, 7, 20), _index(3, 7, 0, 5), 7, 20),
     {"B": 32}, "w_ptr", "persist .* left to the condition at"),
    (best_kernel, (7,), lambda: (_grad(7, 40), torch.empty(7), 40), {"B": 64}, "x_ptr",
     "plain-stores .* it depends on what `tt.reduce` at"),
    (label_kernel, (3,),
     lambda: (_grad(40, 50), torch.zeros(40, dtype=torch.int32), torch.empty(40), 40), {"B": 16},
     "x_ptr", "plain-stores .* it depends on what is loaded at"),
    (attention_kernel, (4,),
     lambda: (*(_grad(64, 16) for _ in range(3)), torch.empty(64, 16), torch.rand(64),
              torch.rand(64), torch.rand(64, 16), 64),
     {"B": 16, "D": 16}, "K", "interchange .* iterations of the loop at .* have an order"),
    (wrapped_kernel, (4, 2), lambda: (_grad(64, 32), _grad(32, 32), torch.empty(64, 32), 64, 32),
     {"B": 16}, "X", "interchange .* `arith.remsi` at"),
    (last_kernel, (5,), lambda: (_grad(5, 40), torch.empty(5), 40), {"B": 16}, "a_ptr",
     "interchange .* iterations of the loop at .* have an order"),
    (picked_kernel, (5,),
     lambda: (_grad(5, 40), torch.zeros(5, dtype=torch.int32), torch.empty(5), 40), {"B": 64},
     "a_ptr", "merge-gathered .* it is loaded as a whole in two places"),
    (divided_kernel, (3,), lambda: (_grad(48), torch.empty(48), 16, 16), {"N": 16}, "x_ptr",
     "plain-stores .* `arith.divsi` at"),
    (recurrence_kernel, (8,), lambda: (_grad(8, 20), torch.empty(8, 20), 20), {}, "x_ptr",
     "plain-stores .* it is loaded at .* and .*, in other steps or bounds"),
    (jagged_kernel, (3,),
     lambda: (_grad(16, 32), _grad(3, 32), _index(0, 12, 20, 32), torch.empty(3, 16), 32),
     {"B": 16}, "w_ptr", "interchange .* a mask or a loop lets programs go depends on all of"),
    (block_kernel, (4, 4), lambda: (_grad(64, 32), _grad(64, 32), torch.empty(64, 64)),
     {"B": 16}, "b_ptr", "interchange .* no loop contributes"),
]  # fmt: skip


def _explained(kernel, grid, arguments, constants, removed):
    return differentiable(kernel).explain(*arguments(), grid=grid, REMOVED=removed, **constants)


def _schedule(text, name):
    """What `explain()` says of a gradient: how it is summed, and the remarks."""
    found = re.search(rf"  gradient of {name}: (.*)((\n    .*)*)", text)
    return found.group(1), found.group(2)


@pytest.mark.parametrize(
    "kernel, grid, arguments, constants, name, reason", CASES, ids=[c[0].__name__ for c in CASES]
)
def test_reason(kernel, grid, arguments, constants, name, reason):
    before, why = _schedule(_explained(kernel, grid, arguments, constants, False), name)
    assert "atomic" in before
    assert re.search(reason, why), why
    after, _ = _schedule(_explained(kernel, grid, arguments, constants, True), name)
    assert "atomic" not in after


@triton.jit
def loss_kernel(x_ptr, t_ptr, l_ptr, N, REMOVED: tl.constexpr, B: tl.constexpr):
    """The score of a label, looked up or selected."""
    r = tl.program_id(0)
    i = tl.arange(0, B)
    label = tl.load(t_ptr + r)
    v = tl.load(x_ptr + r * N + i, mask=i < N, other=-float("inf"))
    if REMOVED:
        p = tl.sum(tl.where(i == label, v, 0.0), 0)
    else:
        p = tl.load(x_ptr + r * N + label)
    m = tl.max(v, 0)
    tl.store(l_ptr + r, tl.log(tl.sum(tl.exp(v - m), 0)) + m - p)


def test_refusal():
    """The error of a deterministic backward says what stands in the way."""
    kernel = differentiable(loss_kernel, deterministic=True)
    labels = torch.zeros(6, dtype=torch.int32)

    def explain(removed):
        arguments = (_grad(6, 20), labels, torch.empty(6), 20)
        return kernel.explain(*arguments, grid=(6,), REMOVED=removed, B=32)

    with pytest.raises(
        AutodiffError, match=r"plain-stores at .*: no: .* loaded at test_reasons.py"
    ):
        explain(False)
    assert "plain stores" in explain(True)


def test_everything_that_was_tried():
    """Also of what is no gradient, and of schedules that were not taken where another one was."""
    kernel = differentiable(decay_kernel)
    arguments = (_grad(3, 6, 40), _grad(3, 6), torch.empty(3, 6, 40), 6, 40)
    text = kernel.explain(*arguments, grid=(3, 3), verbose=True, REMOVED=True, B=16)
    tried = text.partition("what was tried:")[2]
    assert re.search(
        r"\n    interchange at test_reasons.py:\d+: yes: each iteration of the loop", tried
    )
    assert re.search(r"\n    batch-loops at test_reasons.py:\d+: no: ", tried)
