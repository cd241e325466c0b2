"""What a fault is, and how a small program is written."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from ..choices import replayed
from ..program import Buffer, Kernel, Program


@dataclass(frozen=True)
class Fault:
    """What was wrong, the kinds of programs that showed it, and one of these."""

    about: str
    kinds: tuple[str, ...]
    program: Program
    device: str = "cpu"
    # See `precision.TYPES`; in float64 on the CPU if there are none.
    types: str | None = None
    # Whether such programs have no gradient.
    refused: bool = False


def written(
    body: str, grid=(1,), lead: int = 0, n: int = 0, tables: dict | None = None, **sizes: int
) -> Program:
    """Return a program: inputs are x1, x2 …, outputs y1, y2 …, of so many elements.

    Copies w1, w2 …, which are not returned, are of another type, A.

    `n` is an argument of the kernel, and `lead` is what lies before x1 in memory. `tables` has
    integers by name.
    """
    k = Kernel(replayed([]), "kernel")
    roles = {"x": "input", "y": "raced", "w": "copy"}
    k.buffers = [
        Buffer(name, roles[name[0]], size, type="A" if name[0] == "w" else "M")
        for name, size in sizes.items()
    ]
    k.buffers[0].lead = lead
    for name, numbers in (tables or {}).items():
        k.buffers.append(Buffer(name, "table", numbers=numbers, type="torch.int32"))
    k.grid, k.scalars = grid, {"n": str(n)}
    k.lines = textwrap.indent(textwrap.dedent(body).strip(), "    ").splitlines()
    return k.finish()
