"""A random kernel while it is written, and the text that comes of it."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field

from .choices import Choices

# Float inputs hold numbers of at most this size.
LARGEST = 1.5
# What a stub may be given: the types that floats are computed in (T) and that they have in memory
# (M, another one A, one of 8 bits F), the precision of products, and what outputs hold before.
OPTIONS = {
    "T": "torch.float64",
    "M": "torch.float64",
    "A": "torch.float64",
    "F": "torch.float64",
    "P": '"ieee"',
    "fill": 'float("nan")',
}
# Those that the kernel gets as well.
CONSTANTS = {"T": "tl_type(T)", "M": "tl_type(M)", "A": "tl_type(A)", "P": "P"}
NAME = re.compile(r"\b[a-z]+\d+\b")


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


@dataclass(frozen=True)
class Lanes:
    """Where a value counts, if not everywhere: elsewhere it may be anything, NaN too.

    The mask is a vector along an axis of the value, or, without an axis, a tile of its shape.
    """

    mask: str
    axis: int | None = None


@dataclass
class Buffer:
    """A pointer argument.

    Its role is "input", "output" (starts as NaN), "update" (a copy of an input, updated in place),
    "sum" (starts as zeros, only ever added to), "table" (integers, in `numbers`), "raced" (an
    output to which all programs store at the same places), or "copy" (of something in between, in
    any type, of which nothing is returned). Outputs, updates and copies are divided among the
    programs of the grid: `size` is that of one program's share then. `type` is one of OPTIONS.
    The kernel gets a view that begins behind `lead` elements, and `hidden` elements are left out
    at the end: what it reads there is beside the tensor.
    """

    name: str
    role: str
    size: int = 1
    numbers: list[int] = field(default_factory=list)
    type: str = "M"
    lead: int = 0
    hidden: int = 0

    @property
    def shared_out(self) -> bool:
        return self.role in ("output", "update", "copy")


@dataclass
class Program:
    """The text of a kernel (its head and its body's lines) and its stub, and what they need."""

    name: str
    head: str
    body: list[str]
    stub: str
    inputs: dict[str, int]
    outputs: list[str]
    wanted: list[str]
    # Of each buffer of floats, one of OPTIONS.
    types: dict[str, str] = field(default_factory=dict)
    features: list[str] = field(default_factory=list)
    # Whether rounding changes results by little, wherever it happens.
    smooth: bool = False
    # Whether several programs of the grid store to one place.
    races: bool = False
    # For some outputs, the inputs whose floats reach them: their history in autograd.
    histories: dict[str, list[str]] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The text of both functions."""
        return "\n".join([self.head, *self.body, "", "", self.stub])

    def adds_to(self, buffer: str) -> bool:
        """Return whether the kernel adds to a buffer atomically."""
        return any(f"tl.atomic_add({buffer} " in line for line in self.body)


class Kernel:
    """Collects the lines, arguments and values of a kernel that is being written."""

    def __init__(self, choices: Choices, name: str, without=frozenset(), on_gpu: bool = False):
        self.choices, self.name = choices, name
        # Kinds that are left out, and whether the kernel has to compile for a GPU.
        self.without, self.on_gpu = without, on_gpu
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0
        # On a GPU many small programs say more: compilation takes most of the time.
        self.fuel = 3 + choices.below(8) if on_gpu else 4 + choices.below(16)
        self.buffers: list[Buffer] = []
        self.scalars: dict[str, str] = {}
        self.constants: dict[str, str] = dict(CONSTANTS)
        self.features: set[str] = set()
        self.offered: set[str] = set()
        self.values: list[Value] = []
        # Of values that do not count everywhere, by name.
        self.lanes: dict[str, Lanes] = {}
        # A mask along an axis, for all axes as long as it is.
        self.tail: tuple[str, int] | None = None
        # Ranges of shared-out buffers that hold numbers wherever this point is reached.
        self.written: list[tuple] = []
        # Inputs and outputs that are divided into tiles.
        self.tiled: set[str] = set()
        # For outputs of which it is known, the inputs whose floats reach them.
        self.histories: dict[str, list[str]] = {}
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

    def floating(self, expression, shape, low, high, lanes: Lanes | None | str = "same") -> Value:
        """Define a float variable.

        It counts in the same lanes as all that it is made of, element by element, if the caller
        does not say where.
        """
        if lanes == "same":
            lanes = self.common([self.lanes.get(n) for n in NAME.findall(expression)], shape)
        value = self.define(expression, "f", shape, low, high)
        if lanes is not None:
            self.lanes[value.text] = lanes
        return value

    def common(self, several: list[Lanes | None], shape) -> Lanes | None:
        """Return the lanes that all of several are about, in a value of this shape."""
        left = list(dict.fromkeys(lanes for lanes in several if lanes is not None))
        if len(left) < 2:
            return left[0] if left else None
        name = self.fresh("m")
        axes = {lanes.axis for lanes in left}
        if len(axes) == 1:
            self.emit(f"{name} = {' & '.join(lanes.mask for lanes in left)}")
            return Lanes(name, left[0].axis)
        masks = " & ".join(self.mask_of(lanes, shape) for lanes in left)
        self.emit(f"{name} = tl.broadcast_to({masks}, {list(shape)})")
        return Lanes(name)

    @staticmethod
    def mask_of(lanes: Lanes, shape) -> str:
        """Return a mask that broadcasts to a shape."""
        if lanes.axis is None or len(shape) < 2:
            return lanes.mask
        index = ", ".join(":" if i == lanes.axis else "None" for i in range(len(shape)))
        return f"{lanes.mask}[{index}]"

    def integer(self, expression, shape, low, high) -> Value:
        """Define an integer variable."""
        return self.define(expression, "i", shape, low, high, "k")

    def feature(self, name: str) -> None:
        """Note that the program uses something, for the statistics of what is refused."""
        self.features.add(name)

    def kind(self, family: str, options: dict[str, int]) -> str:
        """Choose one of several kinds by weight, none that is left out, and note it."""
        offered = {option: w for option, w in options.items() if w}
        self.offered.update(f"{family} {option}" for option in offered)
        options = {o: w for o, w in offered.items() if f"{family} {o}" not in self.without}
        how = self.choices.weighted(options)
        self.feature(f"{family} {how}")
        return how

    def maybe(self, name: str, percent: int) -> bool:
        """Return whether something optional happens, and note it if so."""
        self.offered.add(name)
        happens = self.choices.chance(percent) and name not in self.without
        if happens:
            self.feature(name)
        return happens

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
        names = {"input": "x", "output": "y", "update": "z", "sum": "a", "table": "t", "raced": "y"}
        buffer = Buffer(self.fresh(names.get(role, "w")), role)
        self.buffers.append(buffer)
        if role == "table":
            types = {"torch.int32": 6, "torch.int64": 1, "torch.int8": 1, "torch.uint8": 1}
            buffer.type = self.kind("table of", types)
        elif role == "copy":
            buffer.type = self.kind("copy in", {"A": 3, "M": 1, "F": 1})
        else:
            # Of 8 bits is what needs no gradient.
            coarse = role == "input" and len(self.having("input")) > 1
            buffer.type = self.kind("memory", {"M": 6, "A": 2, "F": coarse})
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
        for buffer in self.having("output", "update", "copy"):
            self.constants[f"S_{buffer.name}"] = str(buffer.size)
        sizes = {
            b.name: max(b.lead + b.size * (programs if b.shared_out else 1) - b.hidden, 1)
            for b in self.buffers
        }
        inputs = {b.name: sizes[b.name] for b in self.having("input", "update")}
        names = [*(b.name for b in self.buffers), *self.scalars]
        constants = [f"{name}: tl.constexpr" for name in self.constants]
        head = f"@triton.jit\ndef {self.name}({', '.join(names + constants)}):"
        options = [f"{name}={default}" for name, default in OPTIONS.items()]
        text = [f"def {self.name}_stub({', '.join(['kernel', *inputs, '*', *options])}):"]
        first = next(iter(inputs))
        for b in self.buffers:
            place = f"dtype={b.type}, device={first}.device"
            size = sizes.get(b.name)
            # What is made of an input belongs to the same example of a batch.
            made = {
                "input": None,
                "table": f"torch.tensor({b.numbers}, {place})",
                "output": f"{first}.new_full(({size},), fill, dtype={b.type})",
                "raced": f"{first}.new_full(({size},), fill, dtype={b.type})",
                "copy": f"{first}.new_full(({size},), fill).to({b.type})",
                "sum": f"{first}.new_zeros({size}, dtype={b.type})",
                "update": f"{b.name}.clone()",
            }[b.role]
            if made is not None:
                text.append(f"    {b.name} = {made}")
        given = [b.name + (f"[{b.lead}:]" if b.lead else "") for b in self.buffers]
        given += [*self.scalars.values(), *(f"{n}={v}" for n, v in self.constants.items())]
        launched = (self.launched or self.grid[0], *self.grid[1:])
        text.append(f"    kernel[{launched}]({', '.join(given)})")
        results = [b.name for b in self.having("output", "raced", "update", "sum")]
        text.append(f"    return {', '.join(results)},\n")
        types = {b.name: b.type for b in self.buffers if b.role != "table"}
        # Gradients of 8 bits say little.
        fine = [name for name in inputs if types[name] != "F"] or list(inputs)
        optional = [name for name in fine if self.choices.chance(15)]
        wanted = [name for name in fine if name not in optional] or fine
        # A mask may change with the last bit of what it compares.
        smooth = self.smooth and "mask data" not in self.features
        return Program(
            self.name, head, self.lines, "\n".join(text), inputs, results, wanted, types,
            sorted(self.features), smooth, bool(self.having("raced")), self.histories,
        )  # fmt: skip
