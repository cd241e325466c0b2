"""Host time of a differentiable launch minus that of a plain launch, in microseconds.

The kernel does next to nothing, so that the time is that of the launch. Each number is the median
over batches; on a GPU, a batch is short enough not to fill the launch queue. Backward times are for
one node in a graph of many: the start of autograd's engine, which uses another thread for a GPU, is
PyTorch's own time and shown separately.
"""

import statistics
import time

import torch
import triton
import triton.language as tl
from triton_autodiff import differentiable

BATCH, BATCHES = 50, 40
LIMIT = 60.0


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


class ByHand(torch.autograd.Function):
    """A minimal autograd node without us, for comparison."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x)
        ctx.mark_dirty(y)
        square[(1,)](x, y, 64, BLOCK=64)
        return y

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dx = torch.empty_like(x)
        square_backward[(1,)](x, dy, dx, 64, BLOCK=64)
        return dx, None


def microseconds(call, prepare=lambda: None) -> float:
    """The median time of one call; `prepare` makes its argument, untimed."""
    times = []
    for batch in range(BATCHES + 5):
        arguments = [prepare() for _ in range(BATCH)]
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        start = time.perf_counter()
        for argument in arguments:
            call(argument)
        if batch >= 5:
            times.append((time.perf_counter() - start) / BATCH * 1e6)
    return statistics.median(times)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(64, device=device, requires_grad=True)
    g = torch.randn(64, device=device)
    plain = x.detach()
    ours = differentiable(square)

    def output():
        return torch.empty(64, device=device)

    def by_ours(before, y):
        ours[(1,)](before, y, 64, BLOCK=64)

    def chain(launch, nodes):
        y = x
        for _ in range(nodes):
            before, y = y, output()
            launch(before, y)
        return y

    def forward(launch):
        return microseconds(lambda y: launch(x, y), output)

    def backward(launch, nodes):
        graph = microseconds(lambda y: torch.autograd.grad(y, x, g), lambda: chain(launch, nodes))
        return graph / nodes

    bare = microseconds(lambda y: square[(1,)](plain, y, 64, BLOCK=64), output)
    bare_backward = microseconds(
        lambda dx: square_backward[(1,)](plain, g, dx, 64, BLOCK=64), output
    )
    rows = [
        ("forward", bare, forward(ByHand.apply), forward(by_ours)),
        ("backward, of 20 nodes", bare_backward, backward(ByHand.apply, 20), backward(by_ours, 20)),
        ("backward, of 1 node", bare_backward, backward(ByHand.apply, 1), backward(by_ours, 1)),
        ("no gradient wanted", bare, bare, microseconds(lambda y: by_ours(plain, y), output)),
    ]
    print(f"{device + ', microseconds':24} bare  by hand     ours  over bare")
    for name, least, hand, mine in rows:
        print(f"{name:20} {least:8.1f} {hand:8.1f} {mine:8.1f} {mine - least:10.1f}")
    if max(mine - least for _, least, _, mine in rows[:2]) > LIMIT:
        raise SystemExit(f"more than {LIMIT:.0f} us over a bare launch")


if __name__ == "__main__":
    main()
