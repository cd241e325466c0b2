"""A random program from a sequence of choices."""

from __future__ import annotations

import functools
import re

from .choices import Choices, seeded
from .control import early_return, statement
from .endless import is_endless
from .expressions import scaled
from .grids import shared
from .integers import count, program_ids
from .lanes import tail
from .lines import along_a_line
from .memory import load, store, store_steady
from .mirrored import mirrored
from .program import Kernel, Program, Value
from .segments import segmented
from .tiled import tiled
from .tiles import converted, operand, shapes
from .waits import chained

HEADER = '''"""Random programs."""

import torch
import triton
import triton.language as tl
from fuzz import combiners as c
from triton.language.extra import libdevice


def tl_type(dtype):
    """Return Triton's name of a type."""
    return getattr(tl, str(dtype).removeprefix("torch."))
'''


def loose_ends(k: Kernel) -> list[Value]:
    """Return the floats that nothing has read since they were last assigned."""
    loose = []
    for value in k.values:
        name = re.compile(rf"\b{value.text}\b")
        last = next(line for line in reversed(k.lines) if name.search(line))
        if value.kind == "f" and name.search(re.split(r" [+-]?= ", last)[0]):
            loose.append(value)
    return loose


def gathered(k: Kernel, shape: tuple[int, ...]) -> Value:
    """Return a sum of loose ends, so that little of a program does not matter."""
    total = operand(k, shape)
    for value in loose_ends(k)[-5:]:
        if value != total:
            part = scaled(k, converted(k, value, shape), 3.0)
            low, high = total.low + part.low, total.high + part.high
            total = k.floating(f"{total.text} + {part.text}", shape, low, high)
    return total


def write(choices: Choices, name: str, without=frozenset(), on_gpu: bool = False) -> Kernel:
    """Write the kernel that a sequence of choices stands for, without some kinds."""
    k = Kernel(choices, name, without, on_gpu)
    k.rows, k.columns = choices.pick([2, 4, 8, 1]), choices.pick([4, 8, 2, 16, 1])
    if choices.chance(40):
        k.smooth = True
        kinds = {
            "shared": (shared, 14),
            "line": (along_a_line, 3),
            "segments": (segmented, 3),
            "chain": (chained, 2),
            "tiles": (tiled, 3),
            "mirrored": (mirrored, 2),
        }
        kinds[k.kind("programs of", {name: weight for name, (_, weight) in kinds.items()})][0](k)
        return k
    program_ids(k)
    if choices.chance(50):
        tail(k, k.share, count(k.grid) - 1, [k.rows, k.columns])
    load(k, choices.pick(shapes(k)))
    while k.burn():
        if k.depth == 1 and k.maybe("early return", 3):
            early_return(k)
        statement(k)
    store(k, gathered(k, choices.pick(shapes(k))))
    for _ in range(choices.between(0, 2)):
        store(k, operand(k, choices.pick(shapes(k))))
    if k.maybe("steady output", 20):
        store_steady(k, operand(k, choices.pick(shapes(k))))
    return k


@functools.cache
def kinds(on_gpu: bool = False) -> frozenset[str]:
    """Return the kinds that programs have, or might have."""
    found: set[str] = set()
    for number in range(100):
        k = write(seeded(f"kinds:{number}"), "kernel", on_gpu=on_gpu)
        found |= k.features | k.offered
    return frozenset(found)


def generate(choices: Choices, name: str, without=frozenset(), on_gpu: bool = False) -> Program:
    """Return the program that a sequence of choices stands for."""
    return write(choices, name, without, on_gpu).finish()


def program_of(request: dict) -> Program:
    """Return the program that a request is about."""
    if "program" in request:
        return Program(**request["program"])
    on_gpu = bool(request.get("on_gpu"))
    without = frozenset(request.get("without", ()))
    seed = request["seed"]
    while True:
        program = generate(seeded(seed), request["name"], without, on_gpu)
        if not on_gpu or not is_endless(program):
            return program
        seed = f"{seed}:again"


def module(programs: list[Program]) -> str:
    """Return the text of a module of programs."""
    return "\n\n".join([HEADER, *(p.source for p in programs)])
