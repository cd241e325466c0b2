"""A random program from a sequence of choices."""

from __future__ import annotations

import re

from .choices import Choices
from .control import early_return, statement
from .expressions import scaled
from .grids import shared
from .integers import program_ids
from .lines import along_a_line
from .memory import load, store
from .program import Kernel, Program, Value
from .segments import segmented
from .tiles import converted, operand, shapes

HEADER = '''"""Random programs."""

import torch
import triton
import triton.language as tl
from fuzz import combiners as c
from triton.language.extra import libdevice
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


def generate(choices: Choices, name: str) -> Program:
    """Return the program that a sequence of choices stands for."""
    k = Kernel(choices, name)
    k.rows, k.columns = choices.pick([2, 4, 8]), choices.pick([4, 8, 2, 16])
    if choices.chance(40):
        k.smooth = True
        choices.weighted({shared: 14, along_a_line: 3, segmented: 3})(k)
        return k.finish()
    program_ids(k)
    load(k, choices.pick(shapes(k)))
    while k.burn():
        if k.choices.chance(3) and k.depth == 1:
            early_return(k)
        statement(k)
    store(k, gathered(k, choices.pick(shapes(k))))
    for _ in range(choices.between(0, 2)):
        store(k, operand(k, choices.pick(shapes(k))))
    return k.finish()


def module(programs: list[Program]) -> str:
    """Return the text of a module of programs."""
    return "\n\n".join([HEADER, *(p.source for p in programs)])
