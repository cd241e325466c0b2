"""A random program from a sequence of choices."""

from __future__ import annotations

from .choices import Choices
from .control import early_return, statement
from .integers import program_ids
from .memory import load, store
from .program import Kernel, Program
from .tiles import operand, shapes

HEADER = '''"""Random programs."""

import torch
import triton
import triton.language as tl
from fuzz import combiners as c
from triton.language.extra import libdevice

DTYPE = torch.float64
'''


def generate(choices: Choices, name: str) -> Program:
    """Return the program that a sequence of choices stands for."""
    k = Kernel(choices, name)
    k.rows, k.columns = choices.pick([2, 4, 8]), choices.pick([4, 8, 2, 16])
    program_ids(k)
    load(k, choices.pick(shapes(k)))
    while k.burn():
        if k.choices.chance(3) and k.depth == 1:
            early_return(k)
        statement(k)
    for _ in range(choices.between(1, 3)):
        store(k, operand(k, choices.pick(shapes(k))))
    return k.finish()


def module(programs: list[Program]) -> str:
    """Return the text of a module of programs."""
    return "\n\n".join([HEADER, *(p.source for p in programs)])
