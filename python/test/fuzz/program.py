"""A random kernel while it is written, and the text that comes of it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

from .choices import Choices

# Float inputs hold numbers of at most this size.
LARGEST = 1.5


@dataclass(frozen=True)
class Value:
    """A variable of the kernel: float ("f") or int ("i"), and bounds of its elements."""

    text: str
    kind: str
    shape: tuple[int, ...]
    low: float
    high: float

    @property
    def size(self) -> float:
        """The largest absolute value of an element."""
        return max(abs(self.low), abs(self.high))


@dataclass
class Buffer:
    """A pointer argument.

    Its role is "input", "output" (starts as NaN), "update" (a copy of an input, updated in place),
    "sum" (starts as zeros, only ever added to), or "table" (integers, in `numbers`). Outputs and
    updates are divided among the programs of the grid: `size` is that of one program's share then.
    """

    name: str
    role: str
    size: int = 1
    numbers: list[int] = field(default_factory=list)

    @property
    def shared_out(self) -> bool:
        return self.role in ("output", "update")


@dataclass
class Program:
    """The text of a kernel (its head and its body's lines) and its stub, and what they need."""

    name: str
    head: str
    body: list[str]
    stub: str
    inputs: dict[str, int]
    wanted: list[str]
    features: list[str] = field(default_factory=list)
    # Whether rounding changes results by little, wherever it happens.
    smooth: bool = False

    @property
    def source(self) -> str:
        """The text of both functions."""
        return "\n".join([self.head, *self.body, "", "", self.stub])


class Kernel:
    """Collects the lines, arguments and values of a kernel that is being written."""

    def __init__(self, choices: Choices, name: str):
        self.choices, self.name = choices, name
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0
        self.fuel = 6 + choices.below(20)
        self.buffers: list[Buffer] = []
        self.scalars: dict[str, str] = {}
        # What floats are computed in, and what they are in memory.
        self.constants: dict[str, str] = {"T": "T", "M": "M"}
        self.features: set[str] = set()
        self.values: list[Value] = []
        # Ranges of shared-out buffers that hold numbers wherever this point is reached.
        self.written: list[tuple] = []
        # Inputs and outputs that are divided into tiles.
        self.tiled: set[str] = set()
        self.smooth = False
        self.grid: tuple[int, ...] = (1,)
        # How many programs go through the numbers along the first axis, if not one for each.
        self.launched: int | None = None
        self.share = "0"

    def emit(self, line: str) -> None:
        """Add a line at the current depth."""
        self.lines.append("    " * self.depth + line)

    def fresh(self, prefix: str) -> str:
        """Return an unused name."""
        self.count += 1
        return f"{prefix}{self.count}"

    def define(self, expression, kind, shape, low, high, prefix="v") -> Value:
        """Assign an expression to a new variable that later ones may use."""
        name = self.fresh(prefix)
        self.emit(f"{name} = {expression}")
        value = Value(name, kind, tuple(shape), low, high)
        self.values.append(value)
        return value

    def floating(self, expression, shape, low, high) -> Value:
        """Define a float variable."""
        return self.define(expression, "f", shape, low, high)

    def integer(self, expression, shape, low, high) -> Value:
        """Define an integer variable."""
        return self.define(expression, "i", shape, low, high, "k")

    def feature(self, name: str) -> None:
        """Note that the program uses something, for the statistics of what is refused."""
        self.features.add(name)

    def burn(self) -> bool:
        """Use up a statement; False if the program is long enough."""
        self.fuel -= 1
        return self.fuel >= 0

    @contextlib.contextmanager
    def block(self):
        """Write an indented block, whose variables end with it."""
        values, written = list(self.values), list(self.written)
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.emit("pass")
        self.depth -= 1
        self.values, self.written = values, written

    def argument(self, number: int) -> str:
        """Return an integer as a literal, a run-time argument or a constexpr argument."""
        how = self.choices.weighted({"literal": 2, "argument": 2, "constexpr": 1})
        if how == "literal":
            return str(number)
        table = self.scalars if how == "argument" else self.constants
        prefix = "n" if how == "argument" else "N"
        for name, value in table.items():
            if value == str(number):
                return name
        name = self.fresh(prefix)
        table[name] = str(number)
        return name

    def buffer(self, role: str) -> Buffer:
        """Return a new buffer."""
        names = {"input": "x", "output": "y", "update": "z", "sum": "a", "table": "t"}
        buffer = Buffer(self.fresh(names[role]), role)
        self.buffers.append(buffer)
        if buffer.shared_out:
            self.constants[f"S_{buffer.name}"] = ""
        return buffer

    def having(self, *roles: str) -> list[Buffer]:
        """Return the buffers in one of these roles."""
        return [b for b in self.buffers if b.role in roles]

    def finish(self) -> Program:
        """Return the program's text."""
        programs = 1
        for extent in self.grid:
            programs *= extent
        for buffer in self.having("output", "update"):
            self.constants[f"S_{buffer.name}"] = str(buffer.size)
        sizes = {b.name: b.size * (programs if b.shared_out else 1) for b in self.buffers}
        inputs = {b.name: sizes[b.name] for b in self.having("input", "update")}
        names = [*(b.name for b in self.buffers), *self.scalars]
        constants = [f"{name}: tl.constexpr" for name in self.constants]
        head = f"@triton.jit\ndef {self.name}({', '.join(names + constants)}):"
        types = ["*", "T=tl.float64", "M=tl.float64", "DTYPE=torch.float64"]
        text = [f"def {self.name}_stub({', '.join(['kernel', *inputs, *types])}):"]
        for b in self.buffers:
            made = {
                "input": None,
                "table": f"torch.tensor({b.numbers}, dtype=torch.int32)",
                "output": f"torch.full(({sizes[b.name]},), float('nan'), dtype=DTYPE)",
                "sum": f"torch.zeros({sizes[b.name]}, dtype=DTYPE)",
                "update": f"{b.name}.clone()",
            }[b.role]
            if made is not None:
                text.append(f"    {b.name} = {made}")
        given = [*(b.name for b in self.buffers), *self.scalars.values()]
        given += [f"{name}={value}" for name, value in self.constants.items()]
        launched = (self.launched or self.grid[0], *self.grid[1:])
        text.append(f"    kernel[{launched}]({', '.join(given)})")
        results = [b.name for b in self.having("output", "update", "sum")]
        text.append(f"    return {', '.join(results)},\n")
        optional = [name for name in inputs if self.choices.chance(15)]
        wanted = [name for name in inputs if name not in optional] or list(inputs)
        stub = "\n".join(text)
        # A mask may change with the last bit of what it compares.
        smooth = self.smooth and "mask from data" not in self.features
        features = sorted(self.features)
        return Program(self.name, head, self.lines, stub, inputs, wanted, features, smooth)
