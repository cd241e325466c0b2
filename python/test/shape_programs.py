"""Random kernels that move elements of small tiles about, and what they compute, in PyTorch.

Each line of a kernel is a line of PyTorch, too, with a first axis for the programs.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import random
import re
from pathlib import Path

import torch

HEADER = """
import triton
import triton.language as tl


@triton.jit
def moves(x_ptr, s_ptr, y_ptr, bound, A: tl.constexpr, B: tl.constexpr, SIZE: tl.constexpr):
    program = tl.program_id(0)
    places = tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :]
    x = tl.load(x_ptr + program * A * B + places)
    s = tl.zeros([A, B], x.dtype) + tl.load(s_ptr + program)
"""

FOOTER = """
    lanes = tl.arange(0, SIZE)
    tl.store(y_ptr + program * SIZE + lanes, tl.reshape({result}, (SIZE,)), mask=lanes {mask})
"""

# The most elements of a tile.
LARGEST = 512


@dataclasses.dataclass
class Program:
    """A kernel's source, the same lines in PyTorch, and the tile that it loads."""

    source: str
    lines: list[str]
    result: str
    shape: tuple[int, int]
    size: int
    bound: int
    # Whether lanes are stored from the bound on.
    upper: bool

    def load(self, folder: Path):
        """Return the kernel, from a file that is written."""
        path = folder / "moves.py"
        path.write_text(self.source)
        spec = importlib.util.spec_from_file_location("moves", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.moves

    def launch(self, kernel, x, s):
        """Return what the kernel stores, zeros where it stores nothing."""
        y = torch.zeros(x.shape[0], self.size, dtype=x.dtype, device=x.device)
        kernel[(x.shape[0],)](x, s, y, self.bound, A=x.shape[1], B=x.shape[2], SIZE=self.size)
        return y

    def reference(self, x, s):
        """Return the same, computed by PyTorch."""
        names = {"x": x, "s": s[:, None, None].expand(x.shape), "torch": torch}
        for line in self.lines:
            exec(line, names)
        lanes = torch.arange(self.size, device=x.device)
        stored = lanes >= self.bound if self.upper else lanes < self.bound
        return names[self.result].reshape(len(x), -1) * stored


class _Writer:
    """Writes lines in both languages; `values` are the names and shapes of tiles."""

    def __init__(self, choices: random.Random, shape):
        self.choices = choices
        self.values = [("x", shape), ("s", shape)]
        self.triton, self.torch = [], []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def add(self, triton: str, torch: str, shape) -> None:
        name = self.name()
        self.triton.append(f"{name} = {triton}")
        self.torch.append(f"{name} = {torch}")
        self.values.append((name, tuple(shape)))

    def pick(self, accepts=lambda shape: True):
        fit = [value for value in self.values if accepts(value[1])]
        return self.choices.choice(fit[-4:] + fit) if fit else None

    def other(self, shape) -> str:
        """Return a value of a shape: one that there is, or one that is made so."""
        same = self.pick(lambda own: own == shape)
        if same and self.choices.random() < 0.7:
            return same[0]
        return self.converted(self.pick(), shape)

    def converted(self, value, shape) -> str:
        """Return a value in another shape: its elements, or all their sum."""
        name, own = value
        if own == shape:
            return name
        if math.prod(own) == math.prod(shape):
            self.reshape(value, shape)
        else:
            ones = ", ".join(["-1", *["1"] * len(shape)])
            self.add(
                f"tl.zeros({list(shape)}, x.dtype) + "
                f"tl.sum(tl.reshape({name}, ({math.prod(own)},)), 0) * 0.1",
                f"{name}.flatten(1).sum(1).reshape({ones}).expand(-1, {str(list(shape))[1:-1]})"
                " * 0.1",
                shape,
            )
        return self.values[-1][0]

    def unused(self):
        """Return the values that no line reads."""
        read = " ".join(line.split(" = ", 1)[1] for line in self.triton)
        return [value for value in self.values if not re.search(rf"\b{value[0]}\b", read)]

    def reshape(self, value, shape) -> None:
        name, _ = value
        self.add(
            f"tl.reshape({name}, {list(shape)})",
            f"{name}.reshape(len({name}), {str(list(shape))[1:-1]})",
            shape,
        )


def _reshape(w: _Writer) -> None:
    value = w.pick()
    size = math.prod(value[1])
    first = 2 ** w.choices.randint(0, size.bit_length() - 1)
    shape = (first, size // first)
    if size // first >= 2 and w.choices.random() < 0.4:
        shape = (first, 2, size // first // 2)
    w.reshape(value, shape)


def _permute(w: _Writer) -> None:
    name, shape = w.pick()
    order = list(range(len(shape)))
    w.choices.shuffle(order)
    moved = [0, *(axis + 1 for axis in order)]
    w.add(
        f"tl.permute({name}, {order})", f"{name}.permute({moved})", [shape[axis] for axis in order]
    )


def _join(w: _Writer) -> None:
    value = w.pick(lambda shape: 2 * math.prod(shape) <= LARGEST and len(shape) < 3)
    if value:
        name, shape = value
        other = w.other(shape)
        w.add(f"tl.join({name}, {other})", f"torch.stack([{name}, {other}], -1)", (*shape, 2))


def _interleave(w: _Writer) -> None:
    value = w.pick(lambda shape: 2 * math.prod(shape) <= LARGEST)
    if value:
        name, shape = value
        other = w.other(shape)
        w.add(
            f"tl.interleave({name}, {other})",
            f"torch.stack([{name}, {other}], -1).flatten(-2)",
            (*shape[:-1], 2 * shape[-1]),
        )


def _split(w: _Writer) -> None:
    value = w.pick(lambda shape: shape[-1] == 2 and len(shape) > 1)
    if not value:
        whole = w.pick(lambda shape: shape[-1] > 2 and len(shape) == 2)
        if not whole:
            return
        name, (rows, columns) = whole
        if w.choices.random() < 0.5:
            w.reshape(whole, (rows, columns // 2, 2))
        else:
            w.reshape(whole, (rows, 2, columns // 2))
            name, shape = w.values[-1]
            w.add(
                f"tl.permute({name}, (0, 2, 1))",
                f"{name}.permute(0, 1, 3, 2)",
                (rows, columns // 2, 2),
            )
        value = w.values[-1]
    name, shape = value
    first, second = w.name(), w.name()
    w.triton.append(f"{first}, {second} = tl.split({name})")
    w.torch.append(f"{first}, {second} = {name}.unbind(-1)")
    w.values += [(first, shape[:-1]), (second, shape[:-1])]
    if w.choices.random() < 0.5:
        w.add(f"{first} * {second}", f"{first} * {second}", shape[:-1])


def _sum(w: _Writer) -> None:
    value = w.pick(lambda shape: len(shape) > 1)
    if value:
        name, shape = value
        axis = w.choices.randrange(len(shape))
        how = w.choices.choice(["sum", "sum", "max"])
        reduced = f"tl.{how}({name}, {axis}, keep_dims=True)"
        torch_how = "sum" if how == "sum" else "amax"
        w.add(
            f"{name} * {reduced} * 0.3",
            f"{name} * {name}.{torch_how}({axis + 1}, keepdim=True) * 0.3",
            shape,
        )


def _flip(w: _Writer) -> None:
    name, shape = w.pick()
    axis = w.choices.randrange(len(shape))
    w.add(f"tl.flip({name}, {axis})", f"{name}.flip({axis + 1})", shape)


def _scan(w: _Writer) -> None:
    name, shape = w.pick()
    axis = w.choices.randrange(len(shape))
    w.add(f"tl.cumsum({name}, {axis}) * 0.3", f"{name}.cumsum({axis + 1}) * 0.3", shape)


def _select(w: _Writer) -> None:
    """Lanes along an axis beyond a bound take another value, or nothing."""
    name, shape = w.pick()
    axis = w.choices.randrange(len(shape))
    bound = w.choices.randint(0, shape[axis])
    index = ["None"] * len(shape)
    index[axis] = ":"
    lanes = f"tl.arange(0, {shape[axis]})[{', '.join(index)}]"
    view = [1] * (len(shape) + 1)
    view[axis + 1] = shape[axis]
    torch_lanes = f"torch.arange({shape[axis]}, device=x.device).reshape({view})"
    other = w.other(shape) if w.choices.random() < 0.5 else None
    w.add(
        f"tl.where({lanes} < {bound}, {name}, {other or '0.0'})",
        f"torch.where({torch_lanes} < {bound}, {name}, {other or f'torch.zeros_like({name})'})",
        shape,
    )


def _rows(w: _Writer) -> None:
    """Sums of what has a factor in common, and sums of quotients with a divisor in common."""
    value = w.pick(lambda shape: len(shape) > 1)
    if not value:
        return
    name, shape = value
    axis, other = w.choices.randrange(len(shape)), w.other(shape)
    for row in ("factor", "row"):
        what = f"{other} * {other}" if row == "factor" else other
        w.triton.append(f"{row}{w.count} = 1.0 + tl.sum({what}, {axis})")
        w.torch.append(f"{row}{w.count} = 1.0 + ({what}).sum({axis + 1})")
    factor, row = f"factor{w.count}", f"row{w.count}"
    tiled = {
        "triton": [f"tl.expand_dims({v}, {axis})" for v in (factor, f"{row} / {factor}")],
        "torch": [f"({v}).unsqueeze({axis + 1})" for v in (factor, f"{row} / {factor}")],
    }
    how = w.choices.choice(["{x} * {f}", "{x} / {f}", "0.0 - {x}", "{x} / {f} - {q}"])
    texts = {kind: how.format(x=name, f=f, q=q) for kind, (f, q) in tiled.items()}
    if "{q}" not in how:
        texts["triton"] = f"{name} + tl.sum({texts['triton']}, {axis}, keep_dims=True) * 0.2"
        texts["torch"] = f"{name} + ({texts['torch']}).sum({axis + 1}, keepdim=True) * 0.2"
    w.add(texts["triton"], texts["torch"], shape)


def _kept(w: _Writer) -> None:
    """Sums of what one condition keeps, and what is zero anyway."""
    name, shape = w.pick()
    other = w.other(shape)
    condition = w.choices.choice([f"({name} > 0.3)", f"({other} < 0.5)"])
    how = w.choices.choice(
        [
            "where(c, x, 0.0) + where(c, y, 0.0)",
            "where(c, x, 0.0) + where(c, 0.0, y)",
            "where(x == 0.0, 0.0, x) * y",
            "0.0 - where(c, x, 0.0)",
        ]
    )
    for old, new in (("c,", f"{condition},"), ("x", name), ("y", other)):
        how = re.sub(rf"\b{old}", new, how)
    zero = f"torch.zeros_like({name})"
    torch_how = re.sub(r"(?<=, )0\.0(?=[,)])", zero, how).replace("where", "torch.where")
    w.add(how.replace("where", "tl.where"), torch_how, shape)


def _arithmetic(w: _Writer) -> None:
    name, shape = w.pick()
    other = w.other(shape)
    text = w.choices.choice(
        ["{a} * {b}", "{a} + {b} * 0.5", "{a} - {b}", "{a} / (1.0 + {b} * {b})", "{a} * {a} - {b}"]
    ).format(a=name, b=other)
    w.add(text, text, shape)


_STEPS = (
    [_reshape] * 3 + [_permute] * 2 + [_join, _interleave, _interleave] + [_split] * 3
    + [_sum, _flip, _scan, _select, _select, _rows, _rows, _kept, _kept] + [_arithmetic] * 3
)  # fmt: skip


def generate(choices: random.Random) -> Program:
    """Return a random program."""
    shape = (choices.choice([2, 4, 8, 16]), choices.choice([2, 4, 8, 16]))
    writer = _Writer(choices, shape)
    for _ in range(choices.randint(4, 12)):
        choices.choice(_STEPS)(writer)
    result, own = writer.values[-1]
    # What is only compared with something has no gradient: it is added in any case.
    inputs = writer.values[:2]
    for value in [*inputs, *(v for v in writer.unused() if v not in inputs)]:
        if value[0] != result:
            text = f"{result} + {writer.converted(value, own)} * 0.5"
            writer.add(text, text, own)
            result = writer.values[-1][0]
    size = math.prod(own)
    upper = choices.random() < 0.3
    source = HEADER + "".join(f"    {line}\n" for line in writer.triton)
    source += FOOTER.format(result=result, mask=">= bound" if upper else "< bound")
    bound = choices.choice([size, choices.randint(0, size), choices.randint(0, size)])
    return Program(source, writer.torch, result, shape, size, bound, upper)
