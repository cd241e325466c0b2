"""Random straight-line programs, and what they compute, one element at a time."""

from __future__ import annotations

import math
import random
import re
import struct

from .table import TABLE, signed

FLOATS, INTEGERS, PREDICATES = ("f0", "f1", "f2"), ("i0", "i1", "i2"), ("p", "q")
# ptxas (12.8, at each level) converts to a float what the guard of one has left as it was.
UNGUARDED = re.compile(r"set\.\w+(\.ftz)?\.f32\.")
COMPARISONS = {
    "lt": lambda x, y: x < y,
    "ge": lambda x, y: x >= y,
    "neu": lambda x, y: not x == y,
    "eq": lambda x, y: x == y,
}


def _kind(register: str) -> str:
    return "f32" if register in FLOATS else "i32"


def _candidates():
    """Return the exact instructions of registers of 32 bits."""
    kinds = {"f32", "i32"}
    return [
        instruction
        for instruction in TABLE.values()
        if instruction.pack == 1
        and instruction.tolerance is None
        and instruction.capability <= 80
        and {*instruction.operands, instruction.result} <= kinds
        and not instruction.text.startswith("{")
    ]


class Program:
    """A program of one float and one integer operand, whose result is a float."""

    def __init__(self, rng: random.Random, length: int):
        self.steps: list[tuple] = []
        # Conversions to tf32 take registers of bits only.
        lines = [f".reg .b32 f<{len(FLOATS)}>, i<{len(INTEGERS)}>;"]
        lines += [f".reg .pred {', '.join(PREDICATES)};"]
        lines += ["mov.f32 f0, $1; mov.b32 i0, $2; mov.f32 f1, 0f3FC00000; mov.f32 f2, -2.0;"]
        lines += ["mov.b32 i1, 77; mov.b32 i2, -5; setp.lt.f32 p|q, f0, f1;"]
        candidates = _candidates()
        for _ in range(length):
            line, run = rng.choice((self._compare, self._copy, *[self._compute] * 5))(
                rng, candidates
            )
            guard = rng.choice((None, None, None, *PREDICATES))
            if UNGUARDED.match(line):
                guard = None
            wanted = rng.random() < 0.5
            lines.append((f"@{'' if wanted else '!'}{guard} " if guard else "") + line)
            self.steps.append((guard, wanted, run))
        self.result = rng.choice(FLOATS)
        self.text = "{ " + " ".join(lines) + f" mov.f32 $0, {self.result}; }}"

    def _compute(self, rng, candidates):
        instruction = rng.choice(candidates)
        target = rng.choice(FLOATS if instruction.result == "f32" else INTEGERS)
        sources = [rng.choice(FLOATS if k == "f32" else INTEGERS) for k in instruction.operands]
        text = instruction.text
        for number, register in reversed(list(enumerate([target, *sources]))):
            text = text.replace(f"${number}", register)

        def run(state):
            state[target] = instruction.function(*(state[s] for s in sources))

        return text, run

    def _compare(self, rng, _):
        name, test = rng.choice(list(COMPARISONS.items()))
        registers = rng.choice((FLOATS, INTEGERS))
        kind = "f32" if registers is FLOATS else "s32"
        a, b = rng.choice(registers), rng.choice(registers)
        opcode = name if kind == "f32" else name.replace("neu", "ne")
        pair = rng.random() < 0.5

        def run(state):
            state["p"] = test(state[a], state[b])
            if pair:
                state["q"] = not state["p"]

        return f"setp.{opcode}.{kind} p{'|q' if pair else ''}, {a}, {b};", run

    def _copy(self, rng, _):
        registers = rng.choice((FLOATS, INTEGERS))
        target, a, b = (rng.choice(registers) for _ in range(3))
        predicate = rng.choice(PREDICATES)

        def run(state):
            state[target] = state[a] if state[predicate] else state[b]

        return f"selp.b32 {target}, {a}, {b}, {predicate};", run

    def evaluate(self, x: float, n: int) -> float:
        """Return the result; NaN also where a NaN has come up, whose bits nobody knows."""
        state = {"f0": x, "i0": n, "f1": 1.5, "f2": -2.0, "i1": 77, "i2": -5}
        state |= {"p": x < 1.5, "q": not x < 1.5}
        for guard, wanted, run in self.steps:
            if guard is None or state[guard] == wanted:
                run(state)
                for register in INTEGERS:
                    state[register] = signed(int(state[register]), 32)
                if any(math.isnan(state[register]) for register in FLOATS):
                    return math.nan
        return struct.unpack("f", struct.pack("f", state[self.result]))[0]
