"""A transformer block under `torch.compile`: ours, beside the same kernels in operators by hand.

    python benchmarks/compiled_block.py [--small]

Prints milliseconds of a step, forward and backward, and how far gradients are from those of the
eager block. The operators by hand are what a user would write: `torch.library.triton_op`, with a
backward registered, around the kernels of an exported module. `--small` is for a CPU.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch.utils import _triton
from triton.runtime.jit import JITFunction

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python/examples"))

import flash_attention_v2
import layer_norm
from timing import synchronize
from triton_autodiff import autodiff
from triton_autodiff.exporting.arguments import with_types
from triton_autodiff.graphs.kernels import TracedLayout

WARMUP, STEPS = 5, 20


class Traced:
    """A kernel whose launches PyTorch traces."""

    def __init__(self, kernel):
        self._kernel = kernel

    def __getitem__(self, grid):
        return torch.library.wrap_triton(self._kernel)[grid]


class Node:
    """Stands for autograd's context when an exported `autograd.Function` is called without
    autograd.
    """

    def __init__(self, function):
        self._function = function

    def apply(self, *values) -> tuple:
        """Launch, and remember what the backward needs."""
        self._function.forward(self, *values)
        return self.outputs

    def set_materialize_grads(self, value) -> None:
        """Gradients that do not arrive are None."""

    def mark_dirty(self, *tensors) -> None:
        """Note the tensors that the kernel writes to."""
        self.outputs = tensors

    def save_for_backward(self, *tensors) -> None:
        """Save tensors for the backward."""
        self.saved_tensors = tensors

    def gradients(self, upstream: list) -> list[torch.Tensor]:
        """Return the gradients of arguments that have one, in order."""
        found = self._function.backward.__wrapped__(self, *upstream)
        return [gradient for gradient in found if gradient is not None]


def by_hand(folder: Path, name: str, op, tensors, *others):
    """Return an operator by hand that does what `op` does for the same tensors, with its own
    kernels.

    The kernels are in a module in `folder`, from which Python imports.
    """
    path = op.export(folder / f"{name}_by_hand.py", *tensors, *others)
    text = path.read_text(encoding="utf-8")
    kernels = {f"{name}_kernel_fwd", *op.backward_kernels(*tensors, *others)}
    path.write_text(with_types(text, dict.fromkeys(kernels)), encoding="utf-8")
    module = importlib.import_module(path.stem)
    (function,) = (v for v in vars(module).values() if _is_node(v))
    for key, value in list(vars(module).items()):
        if isinstance(value, JITFunction) and key in kernels:
            setattr(module, key, Traced(value))
        elif key.startswith("_require"):
            # Operators by hand have no assertions.
            setattr(module, key, _nothing)
    module._Layout = TracedLayout
    module._added_up = _added_up
    node = Node(function)
    setattr(module, function.__name__, node)
    stub = getattr(module, op.stub.__name__)
    # The indices of saved tensors among those that the graph keeps.
    places: list[int] = []

    @torch.library.triton_op(f"by_hand::{name}", mutates_args={})
    def forward(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        result = stub(*tensors, *others)
        known = [*tensors, result]
        known += [t for t in node.saved_tensors if not any(t is k for k in known)]
        places[:] = [next(n for n, k in enumerate(known) if k is t) for t in node.saved_tensors]
        node.is_result = [y is result for y in node.outputs]
        return known[len(tensors) :]

    @torch.library.triton_op(f"by_hand::{name}_backward", mutates_args={})
    def backward(upstream: torch.Tensor, known: list[torch.Tensor]) -> list[torch.Tensor]:
        node.saved_tensors = [known[n] for n in places]
        found = node.gradients([upstream if is_own else None for is_own in node.is_result])
        return [g.reshape(t.shape) for g, t in zip(found, known, strict=False)]

    def keep(ctx, inputs, output):
        ctx.save_for_backward(*inputs[0], *output)

    def differentiate(ctx, gradients):
        return backward(gradients[0], list(ctx.saved_tensors))

    forward.register_autograd(differentiate, setup_context=keep)
    return lambda *args: forward(list(args[: len(tensors)]))[0]


def _added_up(gradients, partials) -> list[torch.Tensor]:
    return [p.sum(0).to(g.dtype) for g, p in zip(gradients, partials, strict=True)]


def _nothing(*args, **kwargs) -> None:
    pass


def _is_node(value) -> bool:
    return isinstance(value, type) and issubclass(value, torch.autograd.Function)


class Block(torch.nn.Module):
    """Attention and a perceptron, each behind a norm."""

    def __init__(self, norm, attention, width: int, heads: int):
        super().__init__()
        self.norm, self.attention, self.heads = norm, attention, heads
        for name, size in (("qkv", 3), ("out", 1), ("up", 4)):
            setattr(self, name, torch.nn.Linear(width, size * width))
        self.down = torch.nn.Linear(4 * width, width)
        parameter = torch.nn.Parameter
        self.weights = torch.nn.ParameterList([parameter(torch.ones(width)) for _ in range(2)])
        self.biases = torch.nn.ParameterList([parameter(torch.zeros(width)) for _ in range(2)])

    def forward(self, x):
        """Apply the block to rows; returns rows of the same width."""
        batch, length, width = x.shape
        h = self.norm(x, self.weights[0], self.biases[0])
        split = self.qkv(h).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = (part.contiguous() for part in split.permute(2, 0, 3, 1, 4))
        mixed = self.attention(q, k, v, True, 0.125)
        x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
        h = self.norm(x, self.weights[1], self.biases[1])
        return x + self.down(torch.nn.functional.gelu(self.up(h)))


def _step(block, x) -> list[torch.Tensor]:
    y = block(x)
    return [y, *torch.autograd.grad(y, [x, *block.parameters()], torch.ones_like(y))]


def _milliseconds(block, x) -> float:
    times = []
    for number in range(WARMUP + STEPS):
        synchronize()
        start = time.perf_counter()
        _step(block, x)
        synchronize()
        if number >= WARMUP:
            times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def compare(small: bool, folder: Path) -> None:
    """Print a line for each way to run the block."""
    device, dtype = ("cuda", torch.float16) if torch.cuda.is_available() else ("cpu", torch.float32)
    # Without a GPU, this is PyTorch's only check.
    _triton.has_triton = lambda: True
    batch, length, width, heads = (2, 128, 128, 2) if small else (8, 2048, 1024, 16)
    norm = autodiff(layer_norm.layer_norm_kernel, layer_norm.layer_norm)
    attention = autodiff(flash_attention_v2.attention_kernel, flash_attention_v2.attention)

    def random(*shape):
        return torch.randn(shape, device=device, dtype=dtype, requires_grad=True)

    rows = [random(batch, length, width), random(width), random(width)]
    parts = [random(batch, heads, length, width // heads) for _ in range(3)]
    norm(*rows).sum().backward()
    attention(*parts, True, 0.125).sum().backward()
    norm_by_hand = by_hand(folder, "layer_norm", norm, rows)
    attention_by_hand = by_hand(folder, "attention", attention, parts, True, 0.125)
    ours = Block(norm, attention, width, heads).to(device, dtype)
    theirs = Block(norm_by_hand, attention_by_hand, width, heads).to(device, dtype)
    theirs.load_state_dict(ours.state_dict())
    x = random(batch, length, width)
    exact = _step(ours, x)
    print(f"{'':24}{'ms':>8}{'difference':>14}")
    rounds = [("eager", ours)]
    rounds += [("compiled", ours), ("compiled, by hand", theirs)] * 2
    for name, block in rounds:
        torch._dynamo.reset()
        run = block if name == "eager" else torch.compile(block, fullgraph=True)
        found = _step(run, x)
        pairs = zip(found, exact, strict=True)
        difference = max(((a - b).abs().max() / b.abs().max()).item() for a, b in pairs)
        print(f"{name:24}{_milliseconds(run, x):8.3f}{difference:14.1e}", flush=True)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    small = parser.parse_args().small
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        compare(small, Path(folder))


if __name__ == "__main__":
    main()
