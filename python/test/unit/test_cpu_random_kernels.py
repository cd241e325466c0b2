"""Random kernels on the CPU backend against Triton's interpreter, which knows nothing of ours.

The kernels are straight-line code, nested loops that carry and swap tiles, reductions, scans,
and stores through which later loads see what earlier ones did not.
"""

import os
import random
import subprocess
import sys
import textwrap

import pytest
import torch

pytestmark = pytest.mark.cpu

EXPRESSIONS = [
    "{x} + {y}",
    "{x} - {y} * 0.5",
    "{x} * {y}",
    "tl.maximum({x}, {y})",
    "tl.minimum({x}, {y})",
    "tl.where({x} > {y}, {z}, {x})",
    "tl.exp(-tl.abs({x}))",
    "{x} / (1.0 + tl.abs({y}))",
    "{x} - tl.max({y}, 1)[:, None]",
    "{x} + tl.sum({y}, 0)[None, :] * 0.1",
    "tl.min({x}, 0)[None, :] + {y}",
    "tl.cumsum({x}, 0) * 0.1",
    "tl.cumsum({x}, 1, reverse=True) * 0.1",
    "tl.trans(tl.trans({x}) * 0.5)",
    "tl.reshape(tl.reshape({x}, (M * N,)) + 1.0, (M, N))",
]

PROGRAM = """
import sys
import torch
import triton
import triton.language as tl

{kernels}

torch.manual_seed({seed})
results = []
for kernel, (M, N) in zip([{names}], {shapes}):
    x = torch.randn(2 * M * N, dtype=torch.float64)
    memory = torch.randn(M * N, dtype=torch.float64)
    out = torch.zeros(4 * M * N, dtype=torch.float64)
    kernel[(1,)](x, memory, out, M=M, N=N)
    results.append((out, memory))
torch.save(results, sys.argv[1])
"""

HEADER = """
@triton.jit
def {name}(x, memory, out, M: tl.constexpr, N: tl.constexpr):
    row, column = tl.arange(0, M)[:, None] * N, tl.arange(0, N)[None, :]
    straight = row + column
    mirrored = row + (N - 1 - column)
    a = tl.load(x + straight)
    b = tl.load(x + M * N + mirrored)
"""


class Writer:
    """Writes one kernel, statement by statement."""

    def __init__(self, source: random.Random):
        self.random, self.lines, self.count = source, [], 0

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def define(self, indent: str, expression: str) -> str:
        name = self.name("v")
        self.lines.append(f"{indent}{name} = {expression}")
        return name

    def pick(self, tiles):
        return self.random.choice(tiles)

    def loop(self, tiles, indent, depth):
        carried = [self.name("c") for _ in range(2)]
        for name in carried:
            self.lines.append(f"{indent}{name} = {self.pick(tiles)}")
        self.lines.append(f"{indent}for _ in range({self.random.randrange(1, 4)}):")
        size = self.random.randrange(1, 5)
        inner = self.block(tiles + carried, indent + "    ", depth + 1, size)
        # Bounded, so that no loop grows what it carries out of range.
        ends = [f"tl.minimum(tl.maximum({self.pick(inner)}, -4.0), 4.0)" for _ in carried]
        if self.random.random() < 0.5:
            ends = carried[::-1]
        self.lines.append(f"{indent}    {', '.join(carried)} = {', '.join(ends)}")
        return carried

    def block(self, tiles, indent, depth, size):
        tiles = list(tiles)
        for _ in range(size):
            kind = self.random.random()
            if kind < 0.15 and depth < 2:
                tiles += self.loop(tiles, indent, depth)
            elif kind < 0.25:
                self.lines.append(f"{indent}tl.store(memory + straight, {self.pick(tiles)})")
                tiles.append(self.define(indent, "tl.load(memory + mirrored)"))
            else:
                x, y, z = (self.pick(tiles) for _ in range(3))
                expression = self.pick(EXPRESSIONS).format(x=x, y=y, z=z)
                tiles.append(self.define(indent, expression))
            tiles = tiles[-6:]
        return tiles

    def kernel(self, name: str) -> str:
        tiles = self.block(["a", "b"], "    ", 0, self.random.randrange(5, 16))
        for i, tile in enumerate(tiles[-4:]):
            self.lines.append(f"    tl.store(out + {i} * M * N + straight, {tile})")
        return HEADER.format(name=name) + "\n".join(self.lines) + "\n"


def test_random_kernels(tmp_path, seed):
    if os.environ.get("TRITON_INTERPRET") == "1":
        pytest.skip("kernels are interpreted")
    source = random.Random(seed)
    names = [f"kernel{i}" for i in range(20)]
    shapes = [(source.choice([2, 8, 16]), source.choice([2, 4, 32])) for _ in names]
    kernels = "\n".join(Writer(source).kernel(name) for name in names)
    program = textwrap.dedent(PROGRAM).format(
        kernels=kernels, names=", ".join(names), shapes=shapes, seed=seed
    )
    script = tmp_path / "random_kernels.py"
    script.write_text(program)
    results = []
    for interpret in ("0", "1"):
        path = tmp_path / f"out{interpret}.pt"
        environment = os.environ | {"TRITON_INTERPRET": interpret, "CUDA_VISIBLE_DEVICES": ""}
        subprocess.run([sys.executable, script, path], env=environment, check=True)
        results.append(torch.load(path))
    for name, native, interpreted in zip(names, *results, strict=True):
        for ours, theirs in zip(native, interpreted, strict=True):
            torch.testing.assert_close(
                ours,
                theirs,
                rtol=1e-9,
                atol=1e-9,
                equal_nan=True,
                msg=lambda m, n=name: f"{n}: {m}",
            )
