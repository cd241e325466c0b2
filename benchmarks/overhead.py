"""Host time of a differentiable launch beside that of a hand-written node, in microseconds.

The kernels do next to nothing, so that the time is that of the launch. There is one with two
tensors, and one with 12 tensors and 16 numbers. Each number is the median over batches, and those
of a row take turns; on a GPU, a batch is short enough not to fill the launch queue. Backward times
are for one node in a graph of many: the start of autograd's engine, which uses another thread for a
GPU, is PyTorch's own time and shown separately.
"""

import statistics
import time

import torch
import triton
import triton.language as tl
from triton.compiler import CompiledKernel
from triton_autodiff import differentiable

# Triton's own launch function, which nobody sees.
ALONE = CompiledKernel.run
BATCH, BATCHES = 50, 40
SIZE = 64
# The most that a launch may take beside the other one, by row, on a machine with a GPU.
LIMITS = {
    "2 tensors: forward": 10.0,
    "2 tensors: backward, of 20 nodes": 0.0,
    "2 tensors: no gradient wanted": 3.0,
    "12 tensors: forward": 20.0,
    "12 tensors: backward, of 20 nodes": 5.0,
    "12 tensors: no gradient wanted": 5.0,
}


@triton.jit
def square(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, v * v, mask=i < n)


@triton.jit
def square_backward(x, dy, dx, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(dx + i, 2 * v * tl.load(dy + i, mask=i < n), mask=i < n)


@triton.jit
def wide(x, a, b, c, d, e, f, g, h, i, j, y, n, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10, k11, k12,
         k13, k14, k15, BLOCK: tl.constexpr):  # fmt: skip
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < n
    total = tl.load(x + lane, mask=inside) * (k1 + k2 + k3 + k4 + k5)
    total += tl.load(a + lane, mask=inside) * k6 + tl.load(b + lane, mask=inside) * k7
    total += tl.load(c + lane, mask=inside) * k8 + tl.load(d + lane, mask=inside) * k9
    total += tl.load(e + lane, mask=inside) * k10 + tl.load(f + lane, mask=inside) * k11
    total += tl.load(g + lane, mask=inside) * k12 + tl.load(h + lane, mask=inside) * k13
    total += tl.load(i + lane, mask=inside) * k14 + tl.load(j + lane, mask=inside) * k15
    tl.store(y + lane, total, mask=inside)


@triton.jit
def wide_backward(dy, dx, n, k1, k2, k3, k4, k5, BLOCK: tl.constexpr):
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < n
    tl.store(dx + lane, tl.load(dy + lane, mask=inside) * (k1 + k2 + k3 + k4 + k5), mask=inside)


NUMBERS = (SIZE, *range(2, 17))


class SquareByHand(torch.autograd.Function):
    """A minimal autograd node without us, for comparison."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x)
        ctx.mark_dirty(y)
        square[(1,)](x, y, SIZE, BLOCK=SIZE)
        return y

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dx = torch.empty_like(x)
        square_backward[(1,)](x, dy, dx, SIZE, BLOCK=SIZE)
        return dx, None


class WideByHand(torch.autograd.Function):
    """The same with more tensors and numbers; only the first tensor has a gradient."""

    @staticmethod
    def forward(ctx, x, y, others):
        ctx.mark_dirty(y)
        wide[(1,)](x, *others, y, *NUMBERS, BLOCK=SIZE)
        return y

    @staticmethod
    def backward(ctx, dy):
        dx = torch.empty_like(dy)
        wide_backward[(1,)](dy, dx, *NUMBERS[:6], BLOCK=SIZE)
        return dx, None, None


def microseconds(*contestants) -> list[float]:
    """The median times of one call of each contestant, `(call, prepare, count)`, we the last one: a
    call takes what `prepare` made, untimed, and does `count` things.

    Batches of all take turns, so that a host that changes its speed is the same for each.
    """
    times: list[list[float]] = [[] for _ in contestants]
    seen = CompiledKernel.run
    for batch in range(BATCHES + 5):
        for (call, prepare, count), found in zip(contestants, times, strict=True):
            # We see the launches of others, which takes time: not for those that do without us.
            is_ours = found is times[-1]
            CompiledKernel.run = seen if is_ours else ALONE
            arguments = [prepare() for _ in range(BATCH)]
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            start = time.perf_counter()
            for argument in arguments:
                call(argument)
            if batch >= 5:
                found.append((time.perf_counter() - start) / BATCH / count * 1e6)
    CompiledKernel.run = seen
    return [statistics.median(found) for found in times]


def compare(name, x, bare, bare_backward, by_hand, by_ours):
    """Yield rows: a name, the times of a bare launch, of the hand-written node, and of ours."""
    upstream, plain = torch.randn_like(x), x.detach()

    def output(*_):
        return torch.empty_like(plain)

    def chain(launch, nodes):
        y = x
        for _ in range(nodes):
            before, y = y, output()
            launch(before, y)
        return y

    def forward(launch, x):
        return lambda y: launch(x, y), output, 1

    def backward(launch, nodes):
        def call(y):
            torch.autograd.grad(y, x, upstream)

        return call, lambda: chain(launch, nodes), nodes

    yield (
        f"{name}: forward",
        *microseconds(forward(bare, plain), forward(by_hand, x), forward(by_ours, x)),
    )
    least = (lambda dx: bare_backward(plain, upstream, dx)), output, 1
    for nodes in (20, 1):
        row = f"{name}: backward, of {nodes} node{'s' * (nodes > 1)}"
        yield row, *microseconds(least, backward(by_hand, nodes), backward(by_ours, nodes))
    bare_time, ours = microseconds(forward(bare, plain), forward(by_ours, plain))
    yield f"{name}: no gradient wanted", bare_time, bare_time, ours


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(SIZE, device=device, requires_grad=True)
    others = [torch.randn(SIZE, device=device) for _ in range(10)]
    our_square, our_wide = differentiable(square), differentiable(wide)
    rows = [
        *compare(
            "2 tensors",
            x,
            lambda x, y: square[(1,)](x, y, SIZE, BLOCK=SIZE),
            lambda x, dy, dx: square_backward[(1,)](x, dy, dx, SIZE, BLOCK=SIZE),
            SquareByHand.apply,
            lambda x, y: our_square[(1,)](x, y, SIZE, BLOCK=SIZE),
        ),
        *compare(
            "12 tensors",
            x,
            lambda x, y: wide[(1,)](x, *others, y, *NUMBERS, BLOCK=SIZE),
            lambda x, dy, dx: wide_backward[(1,)](dy, dx, *NUMBERS[:6], BLOCK=SIZE),
            lambda x, y: WideByHand.apply(x, y, others),
            lambda x, y: our_wide[(1,)](x, *others, y, *NUMBERS, BLOCK=SIZE),
        ),
    ]
    print(f"{device + ', microseconds':34} bare  by hand     ours  over by hand")
    for name, least, hand, mine in rows:
        print(f"{name:33} {least:6.1f} {hand:8.1f} {mine:8.1f} {mine - hand:13.1f}")
    limits = LIMITS if device == "cuda" else {}
    slow = [name for name, _, hand, mine in rows if mine - hand > limits.get(name, float("inf"))]
    if slow:
        raise SystemExit(f"longer than the limits of benchmarks/overhead.py: {', '.join(slow)}")


if __name__ == "__main__":
    main()
