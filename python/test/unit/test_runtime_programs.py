"""Random sequences of launches over shared buffers, against the same in functional PyTorch.

Buffers have histories, operands are views with offsets, in place, one tensor twice, and outputs
are used again. Only what no kernel may be asked for is left out: operands that partly overlap.
"""

import random

import pytest
import torch
from test_api import accumulate, add, double_in_place, scale, two_outputs
from triton.backends.autodiff import differentiable

SIZE = 40
WEIGHTS = torch.arange(1.0, SIZE + 1, dtype=torch.float64)


def _three_squares(x):
    return (3 * x * x,)


# Kernel, scalars, how many operands it reads and writes, and what it writes, from what it reads.
KERNELS = {
    "scale": (differentiable(scale), (3.0,), 1, 1, _three_squares),
    "add": (differentiable(add), (), 2, 1, lambda x, y: (x + y,)),
    "square in place": (differentiable(double_in_place), (), 1, 0, lambda x: (x * x,)),
    "two outputs": (differentiable(two_outputs), (), 1, 2, lambda x: (x.exp(), x * x)),
    "accumulate": (differentiable(accumulate), (), 1, 1, lambda x: (x * x,)),
}


def random_program(rng):
    """Steps of (kernel, operands as (buffer, offset), length, whether the loss sees it)."""
    steps = []
    for _ in range(rng.randint(1, 6)):
        name = rng.choice([*KERNELS, "sine"])
        operands = [(rng.randrange(4), rng.choice([0, 0, 0, 5, 8, 16])) for _ in range(3)]
        step = (name, operands, rng.choice([5, 8, 10, 16]), rng.random() < 0.3)
        if name == "sine" or is_defined(*step[:3]):
            steps.append(step)
    return steps


def is_defined(name, operands, length):
    """Whether outputs overlap nothing, or coincide with an input that is read first."""
    _, _, reads, writes, _ = KERNELS[name]
    operands = operands[: reads + writes]
    for out in range(reads, reads + writes):
        for other, (buffer, offset) in enumerate(operands):
            apart = buffer != operands[out][0] or abs(offset - operands[out][1]) >= length
            same = operands[other] == operands[out] and other < reads and name != "accumulate"
            if other != out and not (apart or same):
                return False
    return True


def launch(step, buffers):
    """Run a step as a launch on views of the buffers."""
    name, operands, length, _ = step
    kernel, scalars, reads, writes, _ = KERNELS[name]
    views = [buffers[b][o : o + length] if o else buffers[b] for b, o in operands[: reads + writes]]
    kernel[(1,)](*views, length, *scalars, BLOCK=16)


def compute(step, buffers):
    """Run a step without changing anything in place."""
    name, operands, length, _ = step
    _, _, reads, writes, function = KERNELS[name]
    values = function(*(buffers[b][o : o + length] for b, o in operands[:reads]))
    targets = operands[reads : reads + writes] or operands[:1]
    for (b, o), value in zip(targets, values, strict=True):
        before, old, after = buffers[b].split([o, length, SIZE - o - length])
        value = old + value if name == "accumulate" else value
        buffers[b] = torch.cat([before, value, after])


def gradients(program, leaves, run, device):
    """The gradients of a weighted sum of everything that a program computes."""
    zeros = torch.zeros(SIZE, dtype=torch.float64, device=device)
    buffers = [leaves[0] * 1, leaves[1] * 1, zeros, zeros + 1]
    weights = WEIGHTS.to(device)
    loss = 0
    for step in program:
        name, operands, _, seen = step
        if name == "sine":
            buffers[operands[0][0]] = torch.sin(buffers[operands[1][0]])
        else:
            run(step, buffers)
        if seen:
            loss = loss + (buffers[operands[0][0]].clone() * weights).sum()
    loss = loss + sum((buffer * weights).sum() for buffer in buffers)
    if not loss.requires_grad:
        return [torch.zeros_like(leaf) for leaf in leaves]
    found = torch.autograd.grad(loss, leaves, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)]


@pytest.mark.parametrize("part", range(4))
def test_random_programs(device, seed, part):
    rng = random.Random(seed * 4 + part)
    refused = 0
    for _ in range(50):
        program = random_program(rng)
        leaves = [torch.rand(SIZE, dtype=torch.float64, device=device) for _ in range(2)]
        leaves = [leaf.requires_grad_() for leaf in leaves]
        expected = gradients(program, leaves, compute, device)
        try:
            found = gradients(program, leaves, launch, device)
        except RuntimeError as error:
            # A later step overwrote what an earlier one needs, which PyTorch refuses as well, or
            # two outputs of one step are partly the same memory.
            known = ("modified by an inplace operation", "share memory, and the kernel writes to")
            assert any(reason in str(error) for reason in known), program
            refused += 1
            continue
        for ours, truth in zip(found, expected, strict=True):
            torch.testing.assert_close(
                ours,
                truth,
                rtol=1e-9,
                atol=1e-9,
                equal_nan=True,
                msg=lambda m, p=program: f"{m}\n{p}",
            )
    assert refused < 25
